//! Runs tests under tools that watch them: Miri, the sanitizers, loom.

use std::process::{Command, Stdio};

use clap::ValueEnum;

use crate::root;

/// Whether what cannot run here is a failure.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// Make it a failure if this machine cannot run it.
    #[arg(long, value_name = "WHAT")]
    require: Option<Require>,
}

/// What may not be skipped.
#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Require {
    /// Everything.
    All,
}

/// A tool that watches tests.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Tool {
    Miri,
    Address,
    Thread,
    Loom,
}

/// What a tool needs beside the workspace's own toolchain.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Need {
    Nothing,
    Nightly,
    Miri,
    Source,
    Fuzz,
}

/// One run of cargo: the package, and further arguments.
type Run = (&'static str, &'static [&'static str]);

/// Interpreted, so only what is small: blocks and copies, where the unsafe code is, and the tables that number them.
const MIRI: &[Run] = &[
    ("springtide-hal", &["--lib"]),
    ("springtide-hal-host", &["--lib", "copy"]),
    (
        "springtide-core",
        &[
            "--lib",
            "slab",
            "chunks",
            "agrees_with_an_interval_map",
            "only_live_slots",
            "a_wrong_handle",
            "every_field_is_checked",
            "a_fence_ends",
        ],
    ),
    ("springtide-transport-shm", &["--lib", "table", "entry", "message::", "both_come_back"]),
    ("springtide-transport-tcp", &["--lib", "table", "address"]),
    ("springtide-driver", &["--lib", "pause", "shutdown", "by_id"]),
];

/// The modules that talk to the system.
const SYSTEM: &[Run] = &[
    ("springtide-hal", &["--lib"]),
    ("springtide-hal-host", &["--lib"]),
    ("springtide-transport-shm", &["--lib", "--tests"]),
    ("springtide-transport-tcp", &["--lib", "--tests"]),
    ("springtide-driver", &["--lib", "--tests"]),
];

/// Where two threads share anything.
const LOOM: &[Run] =
    &[("springtide-hal-host", &["--lib", "loom"]), ("springtide-driver", &["--lib", "loom"])];

impl Tool {
    const fn name(self) -> &'static str {
        match self {
            Self::Miri => "miri",
            Self::Address => "asan",
            Self::Thread => "tsan",
            Self::Loom => "loom",
        }
    }

    const fn need(self) -> Need {
        match self {
            Self::Miri => Need::Miri,
            Self::Address => Need::Nightly,
            Self::Thread => Need::Source,
            Self::Loom => Need::Nothing,
        }
    }

    const fn runs(self) -> &'static [Run] {
        match self {
            Self::Miri => MIRI,
            Self::Address | Self::Thread => SYSTEM,
            Self::Loom => LOOM,
        }
    }

    /// The tests of `package` under this tool. Each tool has a target folder of its own: flags differ, and cargo would
    /// build everything anew at each change.
    fn command(self, (package, arguments): Run) -> Command {
        let mut command = Command::new(if self == Self::Loom { "cargo" } else { "rustup" });
        if self != Self::Loom {
            command.args(["run", "nightly", "cargo"]);
        }
        if self == Self::Miri {
            command.arg("miri");
        }
        let (test, names): (Vec<&str>, Vec<&str>) = arguments.iter().partition(|word| word.starts_with("--"));
        command.args(["test", "--locked", "--package", package]).args(test);
        command.arg("--target-dir").arg(root().join("target/tools").join(self.name()));
        match self {
            Self::Miri => {
                command.env("MIRIFLAGS", "-Zmiri-disable-isolation").env("PROPTEST_CASES", "3");
            }
            Self::Address => {
                command.arg("--target").arg(host()).env("RUSTFLAGS", "-Zsanitizer=address");
            }
            Self::Thread => {
                // It must see system calls: pages that are unmapped and mapped again are no race, and who reads an eventfd
                // comes after who wrote it. So they go through the C library.
                command.args(["-Zbuild-std", "--target"]).arg(host());
                command.env("RUSTFLAGS", "-Zsanitizer=thread --cfg rustix_use_libc");
            }
            Self::Loom => {
                // What needs the system is left out of this build, and what only that uses is dead.
                command.env("RUSTFLAGS", "--cfg loom -A dead_code").env("LOOM_MAX_PREEMPTIONS", "3");
            }
        }
        command.arg("--").args(names).current_dir(root()).stdin(Stdio::null());
        command
    }
}

/// Runs the tests that `tool` watches. `Ok(true)` if they pass, or cannot run here and need not.
pub(crate) fn run(tool: Tool, args: &Args) -> Result<bool, String> {
    if let Some(why) = tool.need().missing() {
        return Ok(skip(tool.name(), &why, args.require));
    }
    let mut sound = true;
    for &run in tool.runs() {
        println!("{}: {} {}", tool.name(), run.0, run.1.join(" "));
        let status = tool.command(run).status().map_err(|error| format!("cargo does not start: {error}"))?;
        sound &= status.success();
    }
    Ok(sound)
}

/// Says that `what` was skipped, and whether that will do.
pub(crate) fn skip(what: &str, why: &str, require: Option<Require>) -> bool {
    println!("SKIPPED: {what}: {why}");
    println!("0 passed, 0 failed, 1 skipped");
    require.is_none()
}

impl Need {
    /// Why it is not there; `None` if it is.
    pub(crate) fn missing(self) -> Option<String> {
        let setup = "`cargo xtask setup` installs it";
        let runs = |words: &[&str]| {
            let mut command = Command::new("rustup");
            command.args(words).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
            command.status().is_ok_and(|status| status.success())
        };
        match self {
            Self::Nothing => None,
            Self::Nightly if !runs(&["run", "nightly", "rustc", "--version"]) => {
                Some(format!("needs a nightly toolchain; {setup}"))
            }
            Self::Nightly => None,
            _ if Self::Nightly.missing().is_some() => Self::Nightly.missing(),
            Self::Miri if !runs(&["run", "nightly", "cargo", "miri", "--version"]) => {
                Some(format!("needs the component miri of the nightly toolchain; {setup}"))
            }
            Self::Fuzz if !runs(&["run", "nightly", "cargo", "fuzz", "--version"]) => {
                Some(format!("needs cargo-fuzz; {setup}"))
            }
            Self::Miri | Self::Source if !has_source() => {
                Some(format!("needs the component rust-src of the nightly toolchain; {setup}"))
            }
            Self::Miri | Self::Source | Self::Fuzz => None,
        }
    }
}

fn has_source() -> bool {
    nightly(&["--print", "sysroot"])
        .is_some_and(|root| std::path::Path::new(root.trim()).join("lib/rustlib/src/rust/library").is_dir())
}

/// The machine that nightly builds for.
pub(crate) fn host() -> String {
    let text = nightly(&["--version", "--verbose"]).unwrap_or_default();
    let host = text.lines().find_map(|line| line.strip_prefix("host: "));
    host.unwrap_or("x86_64-unknown-linux-gnu").to_owned()
}

/// What the nightly compiler says.
fn nightly(words: &[&str]) -> Option<String> {
    let output = Command::new("rustup").args(["run", "nightly", "rustc"]).args(words).output().ok()?;
    output.status.success().then(|| String::from_utf8_lossy(&output.stdout).into_owned())
}
