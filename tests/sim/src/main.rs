//! Runs seeds, tells one run, or shrinks one that fails.
#![forbid(unsafe_code)]

use std::collections::BTreeSet;
use std::process::ExitCode;

use core::time::Duration;

use clap::Parser;
use rustix::time::{ClockId, clock_gettime};
use springtide_tests_sim::plan::Plan;
use springtide_tests_sim::shrink;
use springtide_tests_sim::trace::Trace;
use springtide_tests_sim::world::World;

/// The cluster simulator.
#[derive(Parser)]
#[command(name = "cargo xtask sim")]
struct Args {
    /// Which seeds to run, as `A..=B`, `A..B` or one number.
    #[arg(long, default_value = "1..=100", value_parser = seeds)]
    seeds: (u64, u64),
    /// One seed; with `--trace` or `--shrink` only this.
    #[arg(long)]
    seed: Option<u64>,
    /// Events of each seed before everything is mended.
    #[arg(long, default_value_t = 100_000)]
    events: u64,
    /// Tell what happens, line by line.
    #[arg(long)]
    trace: bool,
    /// Leave out all faults that a failure does not need.
    #[arg(long)]
    shrink: bool,
    /// Only these faults happen, by number.
    #[arg(long, value_delimiter = ',')]
    only: Option<Vec<u32>>,
    /// Go on after a violation.
    #[arg(long)]
    keep_going: bool,
}

fn seeds(text: &str) -> Result<(u64, u64), String> {
    let number = |text: &str| text.parse::<u64>().map_err(|error| format!("{text:?}: {error}"));
    match text.split_once("..") {
        None => number(text).map(|seed| (seed, seed)),
        Some((first, last)) => match last.strip_prefix('=') {
            Some(last) => Ok((number(first)?, number(last)?)),
            None => Ok((number(first)?, number(last)?.saturating_sub(1))),
        },
    }
}

fn main() -> ExitCode {
    let args = Args::parse();
    let (first, last) = args.seed.map_or(args.seeds, |seed| (seed, seed));
    if args.shrink {
        return shrunk(&Plan::new(first, args.events));
    }
    let spared = args
        .only
        .as_ref()
        .map_or_else(BTreeSet::new, |only| (0..100_000).filter(|fault| !only.contains(fault)).collect());
    let trace = if args.trace { Trace::On } else { Trace::Off };
    let (mut events, mut operations, mut violations, mut ran) = (0, 0, 0, 0);
    let begun = now();
    for seed in first..=last {
        let plan = Plan::new(seed, args.events);
        let outcome = World::new(plan, spared.clone(), trace).run();
        ran += 1;
        events += outcome.events;
        operations += outcome.operations;
        if trace == Trace::On {
            println!("seed {seed}: digest {:016x}", outcome.digest);
        }
        if let Some(violation) = outcome.violation {
            violations += 1;
            println!("seed {seed}: {violation} (event {})", outcome.events);
            println!("  cargo xtask sim --seed {seed} --events {} --trace   or   --shrink", args.events);
            if !args.keep_going {
                break;
            }
        }
    }
    let seconds = (now() - begun).as_secs_f64();
    println!(
        "{ran} seeds, {events} events, {operations} operations, {violations} violations, {:.0} events per second",
        events as f64 / seconds
    );
    if violations == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// How much processor time this process has used: others on the machine do not change how fast a run is.
fn now() -> Duration {
    let used = clock_gettime(ClockId::ProcessCPUTime);
    Duration::new(used.tv_sec as u64, used.tv_nsec as u32)
}

fn shrunk(plan: &Plan) -> ExitCode {
    let Some(shrunk) = shrink::shrink(plan) else {
        println!("seed {}: no violation", plan.seed);
        return ExitCode::SUCCESS;
    };
    println!("seed {}: {} ({} runs)", plan.seed, shrunk.violation, shrunk.runs);
    println!("{} faults are needed:", shrunk.needed.len());
    for &fault in &shrunk.needed {
        println!("  {fault}: {}", springtide_tests_sim::faults::Fault::of(plan, fault).1);
    }
    let only: Vec<String> = shrunk.needed.iter().map(u32::to_string).collect();
    let (seed, events) = (plan.seed, plan.events);
    println!("  cargo xtask sim --seed {seed} --events {events} --trace --only {}", only.join(","));
    ExitCode::FAILURE
}
