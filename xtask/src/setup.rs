//! Installs what the tests need and the machine lacks.

use std::process::Command;

use crate::installed;
use crate::tools::Need;

/// A Debian package, the program by which to see that it is there, and what it is for.
struct Package {
    name: &'static str,
    program: &'static str,
    purpose: &'static str,
}

const PACKAGES: &[Package] = &[Package {
    name: "build-essential",
    program: "cc",
    purpose: "the linker of every program, and the C library's start-up code",
}];

/// Targets of rustc beside the host's.
const TARGETS: &[(&str, &str)] =
    &[("x86_64-unknown-none", "checks the core for a machine without an operating system")];

/// The version of cargo-fuzz that the targets are built with.
const FUZZ: &str = "0.13.2";

/// Installs what is missing; `Ok(true)` if everything is there at the end.
pub(crate) fn run() -> Result<bool, String> {
    packages()?;
    targets()?;
    nightly();
    if installed("cargo-nextest") {
        println!("cargo-nextest: there");
    } else {
        println!("cargo-nextest: not there; the tests run by cargo test, which is slower but the same tests");
    }
    println!("setup: done");
    Ok(true)
}

fn packages() -> Result<(), String> {
    let mut missing = Vec::new();
    for Package { name, program, purpose } in PACKAGES {
        if installed(program) {
            println!("{name}: there ({program})");
        } else {
            println!("{name}: missing ({purpose})");
            missing.push(*name);
        }
    }
    if missing.is_empty() {
        return Ok(());
    }
    let names = missing.join(" ");
    if !is_root() {
        return Err(format!("installing packages needs root; run: sudo apt-get install --yes {names}"));
    }
    if !installed("apt-get") {
        return Err(format!("this is no Debian system; install by hand what stands for: {names}"));
    }
    call(Command::new("apt-get").args(["update", "--quiet"]))?;
    call(Command::new("apt-get").args(["install", "--yes", "--no-install-recommends"]).args(missing))
}

fn targets() -> Result<(), String> {
    if !installed("rustup") {
        println!("rustup: not there; targets stay as they are");
        return Ok(());
    }
    let list = Command::new("rustup").args(["target", "list", "--installed"]).output();
    let list = list.map_err(|error| format!("rustup does not start: {error}"))?;
    let have = String::from_utf8_lossy(&list.stdout);
    for (target, purpose) in TARGETS {
        if have.lines().any(|line| line == *target) {
            println!("target {target}: there");
        } else {
            println!("target {target}: missing ({purpose})");
            call(Command::new("rustup").args(["target", "add", target]))?;
        }
    }
    Ok(())
}

/// What fuzzing and the tools that watch tests need. Where it cannot be had the steps that need it say that they are
/// skipped, so that is no failure here.
fn nightly() {
    if !installed("rustup") {
        println!("rustup: not there; what needs a nightly toolchain will be skipped");
        return;
    }
    let toolchain: &[&str] = &["toolchain", "install", "nightly", "--profile", "minimal", "--no-self-update"];
    let component = |name| ["component", "add", name, "--toolchain", "nightly"];
    let fuzz = ["install", "cargo-fuzz", "--locked", "--version", FUZZ];
    let wanted = [
        ("nightly toolchain", Need::Nightly, "rustup", toolchain),
        ("rust-src", Need::Source, "rustup", &component("rust-src")),
        ("miri", Need::Miri, "rustup", &component("miri")),
        ("cargo-fuzz", Need::Fuzz, "cargo", &fuzz),
    ];
    for (name, need, program, words) in wanted {
        if need.missing().is_none() {
            println!("{name}: there");
        } else if let Err(error) = call(Command::new(program).args(words)) {
            println!("{name}: cannot be installed ({error}); what needs it will be skipped");
        }
    }
}

fn is_root() -> bool {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let effective = status.lines().find_map(|line| line.strip_prefix("Uid:"));
    effective.and_then(|ids| ids.split_whitespace().nth(1)) == Some("0")
}

/// Runs `command`, after saying so.
fn call(command: &mut Command) -> Result<(), String> {
    let words: Vec<_> = command.get_args().map(|word| word.to_string_lossy().into_owned()).collect();
    let line = format!("{} {}", command.get_program().to_string_lossy(), words.join(" "));
    println!("+ {line}");
    let status = command.env("DEBIAN_FRONTEND", "noninteractive").status();
    match status {
        Ok(status) if status.success() => Ok(()),
        Ok(status) => Err(format!("`{line}` failed ({status})")),
        Err(error) => Err(format!("`{line}` does not start: {error}")),
    }
}
