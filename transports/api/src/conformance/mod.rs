//! The contract's rules as tests that any transport can be held against.
//!
//! A transport's tests implement [`World`] (two connected ends in this process, memory for them, and time) and write
//! `conformance_tests!(factory);`, where `factory` is a function that builds a fresh world: one `#[test]` for each
//! rule. [`run_all`] does the same without the test harness.
//!
//! Both ends live in one process and are driven by hand: an end that is not called is a frozen peer, and one that was
//! dropped by [`World::kill`] is a dead one.

mod cost;
mod data;
mod guard;
mod life;
mod rig;
mod wake;

use core::fmt;
use core::time::Duration;

use springtide_core::time::Instant;
use springtide_hal::Block;

use crate::Transport;

/// One of the two ends.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Side {
    /// Opens the path and submits.
    Initiator,
    /// Owns the segment.
    Target,
}

/// Two ends of a transport, memory for them, and time.
pub trait World {
    /// The end on `side`; `None` once it was killed.
    fn transport(&mut self, side: Side) -> Option<&mut dyn Transport>;
    /// Zeroed memory that both ends can expose, of at least `len` bytes.
    fn block(&mut self, len: u64) -> Block;
    /// The time that the ends are told.
    fn now(&self) -> Instant;
    /// Lets `time` pass. A virtual clock advances; a world in real time may just yield, for the kernel's sake.
    fn pass(&mut self, time: Duration);
    /// Ends the target as the death of its process would: its transport is dropped.
    fn kill(&mut self);
    /// A new target, as a restart of its process makes one: at the same address if the transport can.
    fn restart(&mut self);
    /// Whether the end's `wake_fd` is readable now; `false` if it has none.
    fn readable(&mut self, side: Side) -> bool;
    /// How many allocations this thread has made so far; `None` if nobody counts, which passes rule 15 unseen.
    fn allocations(&self) -> Option<u64> {
        None
    }
}

/// A rule that a transport broke.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Violation {
    /// The rule's number.
    pub rule: u8,
    /// What happened.
    pub what: String,
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "rule {}: {}", self.rule, self.what)
    }
}

impl core::error::Error for Violation {}

/// Builds a fresh world. One rule may need several.
pub type Factory<'a> = &'a mut dyn FnMut() -> Box<dyn World>;

/// A check of one rule.
pub type Check = fn(Factory<'_>) -> Result<(), Violation>;

/// Every rule's check; rule `n` is `RULES[n - 1]`.
pub const RULES: [Check; 16] = [
    data::exact_prefix,
    life::once,
    data::done_means_there,
    data::room,
    guard::bounds,
    guard::stale_ids,
    guard::tickets,
    guard::fence,
    life::idle_targets_serve,
    life::lost_keeps_memory,
    data::no_stray_bytes,
    wake::arm,
    guard::incarnation,
    cost::budget,
    cost::no_allocation,
    life::closed_paths_end,
];

/// Checks rule `number`, from 1.
///
/// # Panics
/// When there is no such rule.
pub fn check(number: usize, factory: Factory<'_>) -> Result<(), Violation> {
    RULES[number - 1](factory)
}

/// Checks every rule; gives back those that are broken.
pub fn run_all(factory: Factory<'_>) -> Vec<Violation> {
    RULES.iter().filter_map(|check| check(factory).err()).collect()
}

/// One `#[test]` for each rule, over the worlds that `$factory` (a `fn() -> impl World`) builds.
#[macro_export]
macro_rules! conformance_tests {
    ($factory:expr) => {
        $crate::conformance_tests!(@each $factory,
            rule_01_exact_prefix 1, rule_02_once 2, rule_03_done_means_there 3, rule_04_room 4, rule_05_bounds 5,
            rule_06_stale_ids 6, rule_07_tickets 7, rule_08_fence 8, rule_09_idle_targets_serve 9,
            rule_10_lost_keeps_memory 10, rule_11_no_stray_bytes 11, rule_12_arm 12, rule_13_incarnation 13,
            rule_14_budget 14, rule_15_no_allocation 15, rule_16_closed_paths_end 16);
    };
    (@each $factory:expr, $($name:ident $number:literal),*) => {$(
        #[test]
        fn $name() {
            let mut factory = || -> Box<dyn $crate::conformance::World> { Box::new($factory()) };
            if let Err(violation) = $crate::conformance::check($number, &mut factory) {
                panic!("{violation}");
            }
        }
    )*};
}
