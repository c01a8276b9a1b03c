//! A few seeds that are always run, and that a run is the same every time.

use std::collections::BTreeSet;

use springtide_tests_sim::plan::Plan;
use springtide_tests_sim::shrink::run;
use springtide_tests_sim::trace::Trace;
use springtide_tests_sim::world::World;

/// Enough for leases to end, puts to be given up, and processes to come back.
const EVENTS: u64 = 20_000;

fn outcome(plan: &Plan) -> springtide_tests_sim::world::Outcome {
    World::new(plan.clone(), BTreeSet::new(), Trace::Off).run()
}

#[test]
fn fixed_seeds_are_quiet() {
    for seed in 1..=20 {
        let outcome = outcome(&Plan::new(seed, EVENTS));
        if let Some(violation) = outcome.violation {
            panic!("{violation}\n  cargo xtask sim --seed {seed} --events {EVENTS} --trace   or   --shrink");
        }
        assert!(outcome.events >= EVENTS && outcome.operations > 500, "seed {seed}: {outcome:?}");
    }
}

#[test]
fn the_same_seed_gives_the_same_run() {
    for seed in [3, 17, 1_000_003] {
        let plan = Plan::new(seed, EVENTS);
        let (first, again) = (outcome(&plan), outcome(&plan));
        assert_eq!(first, again, "seed {seed}");
        let other = outcome(&Plan::new(seed + 1, EVENTS));
        assert_ne!(first.digest, other.digest, "seeds {seed} and the next");
    }
}

#[test]
fn leaving_a_fault_out_changes_the_run_and_no_other_fault() {
    let plan = Plan::new(5, EVENTS);
    let all = run(&plan, &BTreeSet::new());
    let fewer = run(&plan, &(0..all.faults).collect());
    assert!(all.violation.is_none() && fewer.violation.is_none());
    assert_ne!(all.digest, fewer.digest);
}
