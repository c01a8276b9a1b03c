//! What the facade's features bring along, and what they do not.

use std::collections::BTreeSet;
use std::process::Command;

use crate::root;

/// The packages that are built into the facade with `features` alone.
fn built(features: &str) -> BTreeSet<String> {
    let mut cargo = Command::new(env!("CARGO"));
    cargo.current_dir(root()).args(["tree", "--package", "springtide", "--edges", "normal,build"]);
    cargo.args(["--no-default-features", "--features", features, "--locked", "--prefix", "none"]);
    let output = cargo.args(["--format", "{p}"]).output().expect("cargo runs");
    assert!(output.status.success(), "cargo tree: {}", String::from_utf8_lossy(&output.stderr));
    let text = String::from_utf8(output.stdout).expect("cargo writes text");
    let names = text.lines().filter_map(|line| line.split_whitespace().next());
    let names: BTreeSet<_> = names.map(str::to_owned).collect();
    assert!(names.contains("springtide-core"), "no tree: {text}");
    names
}

/// Which runtimes' crates are among `packages`.
fn runtimes(packages: &BTreeSet<String>) -> Vec<&'static str> {
    let of = |marks: &[&str]| packages.iter().any(|name| marks.iter().any(|mark| name.starts_with(mark)));
    let known: [(_, &[&str]); 3] = [
        ("tokio", &["tokio", "mio", "springtide-tokio"]),
        ("smol", &["async-", "polling", "smol", "springtide-smol"]),
        ("thread", &["springtide-thread"]),
    ];
    known.iter().filter(|(_, marks)| of(marks)).map(|(name, _)| *name).collect()
}

#[test]
fn a_build_with_smol_links_no_tokio() {
    assert_eq!(runtimes(&built("smol,tcp,shm")), ["smol"]);
}

#[test]
fn each_runtime_brings_only_itself() {
    assert_eq!(runtimes(&built("tcp,shm")), [""; 0]);
    assert_eq!(runtimes(&built("tokio,tcp,shm")), ["tokio"]);
    assert_eq!(runtimes(&built("thread,tcp,shm")), ["thread"]);
    assert_eq!(runtimes(&built("tokio,smol,thread")), ["tokio", "smol", "thread"]);
}
