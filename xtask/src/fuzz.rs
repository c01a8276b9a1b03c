//! Runs the fuzz targets for a while each.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Mutex;
use std::thread;

use crate::root;
use crate::tools::{Need, Require, host, skip};

/// Which targets to run, and for how long.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// Seconds that each target runs.
    #[arg(long, default_value_t = 20)]
    seconds: u32,
    /// Make it a failure if this machine cannot fuzz.
    #[arg(long, value_name = "WHAT")]
    require: Option<Require>,
    /// The targets to run; all of them if none is named.
    targets: Vec<String>,
}

/// The targets are safe code, in which a sanitizer of addresses finds nothing and takes half of the time; integer
/// overflows and debug assertions stay on. Link-time optimisation would take longer than it gives back.
const BUILD: [&str; 6] = ["run", "nightly", "cargo", "fuzz", "build", "--sanitizer=none"];

/// Builds all targets once and runs each, as many at a time as there are processors. New inputs go to
/// `target/xtask/corpus`, what makes a target fail to `fuzz/artifacts`. `Ok(true)` if nothing was found.
pub(crate) fn run(args: &Args) -> Result<bool, String> {
    if let Some(why) = Need::Fuzz.missing() {
        return Ok(skip("fuzz", &why, args.require));
    }
    let targets = targets(&args.targets)?;
    let mut build = Command::new("rustup");
    build.args(BUILD).current_dir(root()).stdin(Stdio::null());
    build.env("CARGO_PROFILE_RELEASE_LTO", "off").env("CARGO_PROFILE_RELEASE_CODEGEN_UNITS", "16");
    let built = build.status().map_err(|error| format!("rustup does not start: {error}"))?;
    if !built.success() {
        return Ok(false);
    }
    let folder = programs();
    let (left, failed) = (Mutex::new(targets.into_iter()), Mutex::new(Vec::new()));
    let jobs = thread::available_parallelism().map_or(1, usize::from);
    thread::scope(|scope| {
        for _ in 0..jobs {
            scope.spawn(|| {
                while let Some(target) = next(&left) {
                    let found = fuzz(&folder, &target, args.seconds);
                    println!("{target}: {}", found.as_ref().map_or_else(Clone::clone, Clone::clone));
                    if found.is_err() {
                        failed.lock().expect("nothing panics while it is held").push(target);
                    }
                }
            });
        }
    });
    let failed = failed.into_inner().expect("nothing panics while it is held");
    for target in &failed {
        println!(
            "{target} found something: fuzz/artifacts/{target}; repeat: cargo run -p springtide-fuzz --bin {target} FILE"
        );
    }
    Ok(failed.is_empty())
}

fn next(left: &Mutex<impl Iterator<Item = String>>) -> Option<String> {
    left.lock().expect("nothing panics while it is held").next()
}

/// The targets that `names` names, or all: each is a file of `fuzz/fuzz_targets`.
fn targets(names: &[String]) -> Result<Vec<String>, String> {
    let folder = root().join("fuzz/fuzz_targets");
    let files =
        fs::read_dir(&folder).map_err(|error| format!("cannot read {}: {error}", folder.display()))?;
    let stem = |path: PathBuf| path.file_stem().map(|stem| stem.to_string_lossy().into_owned());
    let mut all: Vec<_> = files.flatten().filter_map(|entry| stem(entry.path())).collect();
    all.sort();
    if let Some(unknown) = names.iter().find(|name| !all.contains(name)) {
        return Err(format!("there is no target {unknown}; there are {}", all.join(", ")));
    }
    Ok(if names.is_empty() { all } else { names.to_vec() })
}

/// Where the built targets are.
fn programs() -> PathBuf {
    let target = std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| root().join("target"), PathBuf::from);
    target.join(host()).join("release")
}

/// Runs one target; how many inputs it took, or the end of what it said before it failed.
fn fuzz(folder: &Path, target: &str, seconds: u32) -> Result<String, String> {
    let place = |path: &str| {
        let path = root().join(path).join(target);
        fs::create_dir_all(&path).map(|()| path).map_err(|error| error.to_string())
    };
    let (corpus, artifacts, kept) =
        (place("target/xtask/corpus")?, place("fuzz/artifacts")?, place("fuzz/corpus")?);
    let mut run = Command::new(folder.join(target));
    run.arg(format!("-max_total_time={seconds}")).args(["-print_final_stats=1", "-timeout=20"]);
    run.arg(format!("-artifact_prefix={}/", artifacts.display())).args([corpus, kept]);
    let output = run.stdin(Stdio::null()).output().map_err(|error| error.to_string())?;
    let said = String::from_utf8_lossy(&output.stderr);
    let runs = said.lines().find_map(|line| line.strip_prefix("stat::number_of_executed_units:"));
    match runs {
        Some(runs) if output.status.success() => Ok(format!("{} inputs in {seconds} s", runs.trim())),
        _ => {
            let lines: Vec<_> = said.lines().collect();
            Err(format!("FAILED\n{}", lines[lines.len().saturating_sub(40)..].join("\n")))
        }
    }
}
