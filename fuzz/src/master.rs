//! Histories of a master's commands against the naive model that the core's own tests use.

use springtide_core::evict::Kind;

use crate::Input;
use model::{LENGTHS, Model, Step};

#[path = "../../core/tests/master/model.rs"]
mod model;
#[path = "../../core/tests/master/pool.rs"]
#[expect(dead_code, reason = "the core's tests use the rest of it")]
mod pool;

/// The longest history: checks after each step look at all there is, so that longer ones find less in the same time.
const STEPS: usize = 400;

/// Runs a master and its model beside each other. The first byte says which policy evicts.
///
/// Covered: put start, end and abort, extents granted ahead and their publication, get, exists, remove, copies, time,
/// heartbeats with fence reports, nodes that leave and come back, eviction by every policy. After each step all
/// promises and all figures are compared; at the end, after a quiet time, nothing may be left over.
pub fn master_ops(data: &[u8]) {
    let mut input = Input::new(data);
    let mut model = Model::new(input.choose(&Kind::ALL));
    for _ in 0..STEPS {
        if input.is_empty() {
            break;
        }
        model.step(step(&mut input));
    }
    model.wind_up();
}

fn step(input: &mut Input<'_>) -> Step {
    let kind = input.below(40);
    let which = usize::from(input.byte());
    let (client, node) = (which % 2, which % 2);
    let key = input.byte() % 12;
    match kind {
        0..8 => Step::Start {
            client,
            key,
            len: input.below(LENGTHS.len()),
            replicas: 1 + input.below(2) as u32,
            pin: input.byte() % 6,
        },
        8..10 => Step::Reserve { client, len: input.below(LENGTHS.len()), count: 1 + input.below(3) as u32 },
        10..17 => Step::End { which },
        17..19 => Step::Publish { which, key },
        19..21 => Step::Abort { which, quiet: input.flag() },
        21..26 => Step::Get { key },
        26..29 => Step::Remove { key, force: input.flag() },
        29..31 => Step::CopyStart { key, node },
        31..33 => Step::CopyEnd { which },
        33 => Step::CopyAbort { which, quiet: input.flag() },
        34..37 => Step::Pass { millis: millis(input) },
        37 => Step::Report { node },
        38 => Step::Leave { node },
        _ => Step::Join { node },
    }
}

fn millis(input: &mut Input<'_>) -> u64 {
    let number = u64::from(input.short());
    match number % 8 {
        0 => 300_000,
        1..4 => 5_000 + number % 15_000,
        _ => 1 + number % 3_000,
    }
}
