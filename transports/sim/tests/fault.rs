//! The fault decorator: harmless when it has nothing to do, and what it does stays within the contract.

mod world;

use core::time::Duration;

use springtide_transport::conformance::{Side, World, check, run_all};
use springtide_transport_sim::{Fault, Faults, Order, Shape};
use world::SimWorld;

fn faulty(faults: Faults) -> impl FnMut() -> Box<dyn World> {
    let mut seed = 0;
    move || -> Box<dyn World> {
        seed += 1;
        let wrap = move |end, side| -> Box<dyn springtide_transport::Transport> {
            let faults = if side == Side::Initiator { faults } else { Faults::default() };
            Box::new(Fault::new(end, seed, faults))
        };
        Box::new(SimWorld::new(Shape::default(), Box::new(wrap)))
    }
}

#[test]
fn without_faults_it_is_the_transport_behind() {
    assert_eq!(run_all(&mut faulty(Faults::default())), []);
}

#[test]
fn late_and_unordered_completions_break_no_rule() {
    let late = Faults {
        delay: 500_000,
        delay_by: Duration::from_millis(1),
        order: Order::Shuffled,
        ..Faults::default()
    };
    assert_eq!(run_all(&mut faulty(late)), []);
}

#[test]
fn ops_that_fail_or_are_lost_still_end_once_and_keep_their_memory() {
    let lossy = Faults { lose: 200_000, fail: 200_000, order: Order::Shuffled, ..Faults::default() };
    for rule in [2, 10, 11, 16] {
        let mut factory = faulty(if rule == 16 { Faults { lose: 0, fail: 0, ..lossy } } else { lossy });
        for _ in 0..5 {
            assert_eq!(check(rule, &mut factory), Ok(()));
        }
    }
}
