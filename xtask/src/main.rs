//! Tasks of the workspace: `cargo xtask setup`, `test`, `sim` and `broken`, and tests under tools that watch them.
#![forbid(unsafe_code)]

mod broken;
mod fuzz;
mod setup;
mod sim;
mod tally;
mod test;
mod tools;

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::{Parser, Subcommand};

use tools::Tool;

/// Tasks of the workspace.
#[derive(Parser)]
#[command(bin_name = "cargo xtask")]
struct Args {
    #[command(subcommand)]
    task: Task,
}

#[derive(Subcommand)]
enum Task {
    /// Install what the tests need. Says what it does; run twice, it does nothing the second time.
    Setup,
    /// Run every test: unit, integration and documentation tests, the house checks, the proof that the core needs no
    /// std. Installs nothing; what this machine cannot run is counted as skipped.
    Test(test::Args),
    /// Run the cluster simulator.
    #[command(disable_help_flag = true)]
    Sim(sim::Args),
    /// Break the product's rules one by one, and see that the simulator notices.
    Broken(broken::Args),
    /// Run every fuzz target for a while.
    Fuzz(fuzz::Args),
    /// Run the tests of tables, rings and slabs under Miri.
    Miri(tools::Args),
    /// Run the tests of the system modules under AddressSanitizer.
    Asan(tools::Args),
    /// Run the tests of the system modules under ThreadSanitizer.
    Tsan(tools::Args),
    /// Run what threads share in all its orders under loom.
    Loom(tools::Args),
}

fn main() -> ExitCode {
    let done = match Args::parse().task {
        Task::Setup => setup::run(),
        Task::Test(args) => test::run(&args),
        Task::Sim(args) => sim::run(&args),
        Task::Broken(args) => broken::run(&args),
        Task::Fuzz(args) => fuzz::run(&args),
        Task::Miri(args) => tools::run(Tool::Miri, &args),
        Task::Asan(args) => tools::run(Tool::Address, &args),
        Task::Tsan(args) => tools::run(Tool::Thread, &args),
        Task::Loom(args) => tools::run(Tool::Loom, &args),
    };
    match done {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(message) => {
            eprintln!("xtask: {message}");
            ExitCode::FAILURE
        }
    }
}

/// The root of the workspace.
fn root() -> PathBuf {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    here.parent().map_or_else(|| here.to_path_buf(), Path::to_path_buf)
}

/// Whether `program` is on the path.
fn installed(program: &str) -> bool {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path).any(|folder| folder.join(program).is_file())
}
