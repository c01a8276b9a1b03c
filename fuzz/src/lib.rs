//! What fuzzers feed, as functions of bytes: histories of operations against naive models, then every decoder.
//!
//! `cargo +nightly fuzz run master_ops` runs one of them for as long as it is let, `.ci/run fuzz` each of them for a
//! while. Who embeds the core is told to run the operations on changes of their own. A function panics when it found
//! something; its return says nothing. Each is also run, by an ordinary test, over the inputs that are kept in
//! `fuzz/corpus`, so that what a fuzzer found stays found on every toolchain.
//!
//! With `--no-default-features` the targets that need the command are left out, and all builds much faster.
#![forbid(unsafe_code)]

use std::path::{Path, PathBuf};

mod client;
mod decode;
mod engine;
mod input;
mod master;
mod node;
mod space;

pub use client::client_ops;
#[cfg(feature = "command")]
pub use decode::{addresses, settings, trace};
pub use decode::{frames, messages, shm_wire, tcp_wire};
pub use engine::engine_ops;
pub use input::Input;
pub use master::master_ops;
pub use node::node_ops;
pub use space::space_ops;

/// A target: its name, and what it does with bytes.
pub type Target = (&'static str, fn(&[u8]));

/// Every target. The names are those of the programs and of the folders of `fuzz/corpus`.
pub const TARGETS: &[Target] = &[
    ("space_ops", space_ops),
    ("master_ops", master_ops),
    ("engine_ops", engine_ops),
    ("node_ops", node_ops),
    ("client_ops", client_ops),
    ("frames", frames),
    ("messages", messages),
    ("tcp_wire", tcp_wire),
    ("shm_wire", shm_wire),
    #[cfg(feature = "command")]
    ("addresses", addresses),
    #[cfg(feature = "command")]
    ("trace", trace),
    #[cfg(feature = "command")]
    ("settings", settings),
];

/// Runs the target `name` over the files and folders in the program's arguments, and says how many inputs that were.
/// This is what a target does when no fuzzing engine is linked to it.
///
/// # Panics
/// When a file cannot be read, or the target finds something.
pub fn replay(name: &str) {
    let target = TARGETS.iter().find(|(known, _)| *known == name).expect("a target names itself").1;
    let mut inputs = 0;
    for path in std::env::args_os().skip(1) {
        for path in files(Path::new(&path)) {
            target(&std::fs::read(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display())));
            inputs += 1;
        }
    }
    println!("{name}: {inputs} inputs");
}

/// The file `path`, or the files of the folder `path`, by name.
fn files(path: &Path) -> Vec<PathBuf> {
    let Ok(entries) = std::fs::read_dir(path) else { return vec![path.to_owned()] };
    let mut files: Vec<_> =
        entries.flatten().map(|entry| entry.path()).filter(|path| path.is_file()).collect();
    files.sort();
    files
}

#[cfg(test)]
mod tests;
