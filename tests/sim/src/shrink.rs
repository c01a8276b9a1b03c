//! Which faults a failure needs: delta debugging over the list of faults.

use std::collections::BTreeSet;

use crate::oracle::Violation;
use crate::plan::Plan;
use crate::trace::Trace;
use crate::world::{Outcome, World};

/// A failing run with as few faults as were found to be enough.
#[derive(Clone, Debug)]
pub struct Shrunk {
    /// The faults that it needs, by number.
    pub needed: BTreeSet<u32>,
    /// The faults that are left out.
    pub spared: BTreeSet<u32>,
    /// What is seen then.
    pub violation: Violation,
    /// How many runs it took.
    pub runs: u32,
}

/// Runs `plan` without the faults `spared`.
pub fn run(plan: &Plan, spared: &BTreeSet<u32>) -> Outcome {
    World::new(plan.clone(), spared.clone(), Trace::Off).run()
}

/// Leaves out of the failing `plan` all faults that are not needed for a violation of the same rule. `None` if it does
/// not fail.
pub fn shrink(plan: &Plan) -> Option<Shrunk> {
    let first = run(plan, &BTreeSet::new());
    let violation = first.violation?;
    // Faults that come after the violation are not needed; without others there may be more events.
    let plan = Plan { events: plan.events.max(first.events), ..plan.clone() };
    let all: BTreeSet<u32> = (0..first.faults).collect();
    let later: BTreeSet<u32> = (first.faults..first.faults + 4_096).collect();
    let rule = violation.rule;
    let mut runs = 1;
    let mut best = violation;
    let mut fails = |needed: &BTreeSet<u32>| {
        runs += 1;
        let spared = all.difference(needed).chain(&later).copied().collect();
        let outcome = run(&plan, &spared);
        outcome.violation.filter(|seen| seen.rule == rule).inspect(|seen| best = seen.clone()).is_some()
    };
    let needed = minimal(all.clone(), &mut fails);
    let spared = all.difference(&needed).chain(&later).copied().collect();
    Some(Shrunk { needed, spared, violation: best, runs })
}

/// A subset of `all` that still `fails`, and of which no single part can be left out (ddmin).
fn minimal(all: BTreeSet<u32>, fails: &mut dyn FnMut(&BTreeSet<u32>) -> bool) -> BTreeSet<u32> {
    let mut needed = all;
    let mut parts = 2;
    while !needed.is_empty() {
        let list: Vec<u32> = needed.iter().copied().collect();
        let size = list.len().div_ceil(parts);
        let without = |part: &[u32]| needed.iter().filter(|fault| !part.contains(fault)).copied().collect();
        let smaller = list.chunks(size).map(without).find(|smaller: &BTreeSet<u32>| fails(smaller));
        match smaller {
            Some(smaller) => {
                needed = smaller;
                parts = (parts - 1).max(2);
            }
            None if size == 1 => break,
            None => parts = (parts * 2).min(list.len()),
        }
    }
    needed
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finds_the_two_that_are_needed() {
        let all: BTreeSet<u32> = (0..100).collect();
        let mut runs = 0;
        let needed = minimal(all, &mut |some| {
            runs += 1;
            some.contains(&17) && some.contains(&63)
        });
        assert_eq!(needed, BTreeSet::from([17, 63]));
        assert!(runs < 100, "{runs} runs");
    }

    #[test]
    fn a_failure_that_needs_nothing_is_left_with_nothing() {
        assert!(minimal((0..9).collect(), &mut |_| true).is_empty());
    }
}
