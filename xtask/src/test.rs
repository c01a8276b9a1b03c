//! Runs every test there is, and counts.

use std::ffi::OsStr;
use std::io::{BufRead, BufReader, IsTerminal, Read};
use std::path::Path;
use std::process::{Command, Stdio};

use clap::ValueEnum;

use crate::tally::Tally;
use crate::{installed, root};

/// What to run, and whether skips are failures.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// Make a skipped test a failure.
    #[arg(long, value_name = "WHAT")]
    require: Option<Require>,
    /// Run only tests whose name contains this.
    filter: Option<String>,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Require {
    /// Every test must run.
    All,
}

/// Runs the tests that `args` names; the last line printed is `N passed, N failed, N skipped`. `Ok(true)` if nothing
/// failed, and nothing was skipped that had to run.
pub(crate) fn run(args: &Args) -> Result<bool, String> {
    let folder = root().join("target/xtask");
    std::fs::create_dir_all(&folder).map_err(|error| format!("cannot make {}: {error}", folder.display()))?;
    let skips = folder.join("skips");
    std::fs::write(&skips, "").map_err(|error| format!("cannot write {}: {error}", skips.display()))?;
    let suite = Suite { filter: args.filter.as_deref(), skips: &skips };

    let mut tally = Tally::default();
    let mut sound =
        if installed("cargo-nextest") { suite.nextest(&mut tally)? } else { suite.cargo_test(&mut tally)? };
    sound &= suite.doc_tests(&mut tally)?;
    suite.nostd(&mut tally)?;
    if !sound && tally.failed() == 0 {
        // Nothing was counted: it did not build.
        tally.check(false);
    }

    tally.read_skips(&std::fs::read_to_string(&skips).unwrap_or_default());
    for (name, reason) in tally.skips() {
        println!("SKIPPED: {name}: {reason}");
    }
    let missing = args.require == Some(Require::All) && tally.skipped() > 0;
    if missing {
        println!("every test was required to run; `cargo xtask setup` installs what most of them need");
    }
    println!("{tally}");
    Ok(tally.failed() == 0 && !missing)
}

struct Suite<'a> {
    filter: Option<&'a str>,
    skips: &'a Path,
}

/// On which of its outputs a runner writes its summary.
enum Summary {
    Stdout,
    Stderr,
}

impl Suite<'_> {
    fn nextest(&self, tally: &mut Tally) -> Result<bool, String> {
        let mut run = self.cargo(["nextest", "run", "--workspace", "--no-fail-fast", "--no-tests=pass"]);
        let sound = watch(run.args(self.filter), &Summary::Stderr, |line| tally.read(line))?;
        // Its summary counts tests that the filter leaves out as skipped; only ignored ones are.
        let mut list = self.cargo(["nextest", "list", "--workspace", "--run-ignored=ignored-only"]);
        let list = list.arg("--message-format=oneline").args(self.filter).stderr(Stdio::null()).output();
        let list = list.map_err(|error| format!("cargo nextest does not start: {error}"))?;
        let ignored = String::from_utf8_lossy(&list.stdout).lines().filter(|line| line.contains(' ')).count();
        tally.ignore(ignored as u64);
        Ok(sound)
    }

    fn cargo_test(&self, tally: &mut Tally) -> Result<bool, String> {
        let mut run =
            self.cargo(["test", "--workspace", "--no-fail-fast", "--lib", "--bins", "--tests", "--examples"]);
        watch(run.args(self.filter), &Summary::Stdout, |line| tally.read(line))
    }

    fn doc_tests(&self, tally: &mut Tally) -> Result<bool, String> {
        let mut run = self.cargo(["test", "--workspace", "--no-fail-fast", "--doc"]);
        watch(run.args(self.filter), &Summary::Stdout, |line| tally.read(line))
    }

    /// Builds and runs the program without std, and checks the core for a target that has none.
    fn nostd(&self, tally: &mut Tally) -> Result<(), String> {
        if self.filter.is_some_and(|filter| !"nostd".contains(filter)) {
            return Ok(());
        }
        let mut run = self.cargo(["run", "--quiet", "--manifest-path=tests/nostd/Cargo.toml"]);
        let status = run.arg("--target-dir=target/nostd").status();
        let status = status.map_err(|error| format!("cargo does not start: {error}"))?;
        println!(
            "nostd: {}",
            if status.success() { "the core links and runs without std" } else { "FAILED" }
        );
        tally.check(status.success());
        Ok(())
    }

    fn cargo<const N: usize>(&self, words: [&str; N]) -> Command {
        let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
        let mut command = Command::new(cargo);
        command.args(words).current_dir(root()).stdin(Stdio::null()).env("SPRINGTIDE_SKIPS", self.skips);
        command
    }
}

/// Runs `command`, passes its output on, and shows each line of the summary's side to `read`. Whether it succeeded.
fn watch(command: &mut Command, summary: &Summary, mut read: impl FnMut(&str)) -> Result<bool, String> {
    if std::io::stdout().is_terminal() && std::env::var_os("NO_COLOR").is_none() {
        command.env("CARGO_TERM_COLOR", "always");
    }
    match summary {
        Summary::Stdout => command.stdout(Stdio::piped()),
        Summary::Stderr => command.stderr(Stdio::piped()),
    };
    let name = command.get_args().next().map(OsStr::to_string_lossy).unwrap_or_default().into_owned();
    let mut child = command.spawn().map_err(|error| format!("cargo {name} does not start: {error}"))?;
    let output: Option<Box<dyn Read>> = match summary {
        Summary::Stdout => child.stdout.take().map(|pipe| Box::new(pipe) as _),
        Summary::Stderr => child.stderr.take().map(|pipe| Box::new(pipe) as _),
    };
    for line in output.into_iter().flat_map(|pipe| BufReader::new(pipe).split(b'\n')) {
        let line = line.map_err(|error| format!("cargo {name}: {error}"))?;
        let line = String::from_utf8_lossy(&line);
        match summary {
            Summary::Stdout => println!("{line}"),
            Summary::Stderr => eprintln!("{line}"),
        }
        read(&line);
    }
    let status = child.wait().map_err(|error| format!("cargo {name}: {error}"))?;
    Ok(status.success())
}
