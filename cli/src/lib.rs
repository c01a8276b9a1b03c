//! The `springtide` command as a library: what its `main` calls, and what its tests look at.
//!
//! - [`args`]: the command line; [`config`]: the file and the environment behind it
//! - [`commands`], [`mod@bench`]: what each command does
//! - [`size`], [`duration`], [`fraction`], [`address`]: values as people write them
//! - [`output`], [`progress`], [`logging`], [`exit`]: what people and programs get to see
//! - [`workload`]: requests, read from a trace or generated
//! - [`signals`], [`latency`], [`process`]: tools of the commands
#![forbid(unsafe_code)]

pub mod address;
pub mod args;
pub mod bench;
pub mod cluster;
pub mod commands;
pub mod config;
pub mod duration;
pub mod exit;
pub mod fraction;
pub mod latency;
pub mod logging;
pub mod output;
pub mod process;
pub mod progress;
pub mod reports;
pub mod signals;
pub mod size;
pub mod workload;

use springtide_hal_host::huge::HugePages;

/// Keeps the tables of a large pool in huge pages, in a process that [keeps ahead](keep_ahead).
#[global_allocator]
static MEMORY: HugePages = HugePages::new();

/// Starts the thread that makes huge pages present: for processes that keep large tables. Without it they lie in
/// ordinary pages, so a system that gives no thread is no reason to stop.
pub fn keep_ahead() {
    let started = std::thread::Builder::new().name("springtide-pages".into()).spawn(|| MEMORY.keep_ahead());
    if let Err(error) = started {
        tracing::warn!(%error, "no thread for huge pages; large tables will be slower");
    }
}
