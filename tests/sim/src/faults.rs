//! What goes wrong: a list that the seed decides, whatever the run does, so that any entry can be left out.

use core::fmt;
use core::time::Duration;

use springtide_core::rng::{Rng, mix};
use springtide_core::time::Instant;

use crate::plan::{Plan, Role};
use crate::queue::Pid;

/// Something that goes wrong.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Fault {
    /// So many of a thousand frames are lost, for a while.
    Lose(u32, Duration),
    /// So many of a thousand frames come twice, for a while.
    Repeat(u32, Duration),
    /// Frames take up to so long, for a while: they overtake each other.
    Slow(Duration, Duration),
    /// Nothing gets from the first to the second, for a while.
    Cut(Pid, Pid, Duration),
    /// The process dies, and comes back after a while with what was durable.
    Crash(Pid, Duration),
    /// The process stands still, for a while.
    Freeze(Pid, Duration),
    /// The process' clock jumps ahead.
    Ahead(Pid, Duration),
    /// The process' clock jumps back.
    Back(Pid, Duration),
    /// A bit of the node's memory flips; the number chooses which.
    Flip(Pid, u64),
    /// Writes land in two steps with a pause between, for a while.
    Tear(Duration, Duration),
    /// One-sided operations land up to so late, for a while.
    Late(Duration, Duration),
    /// The client puts as many values as it can, for a while.
    Fill(Pid, Duration),
}

impl Fault {
    /// Fault number `index` of a run, and how long after the one before it.
    pub fn of(plan: &Plan, index: u32) -> (Duration, Self) {
        let mut rng = Rng::new(mix(plan.seed ^ 0xfa17).wrapping_add(u64::from(index)));
        let rng = &mut rng;
        let gap = Duration::from_nanos(rng.below(plan.trouble.as_nanos() as u64 * 2));
        let fault = match rng.below(24) {
            0 | 1 => Self::Lose(10 + rng.below(300) as u32, span(rng, 500)),
            2 | 3 => Self::Repeat(10 + rng.below(500) as u32, span(rng, 500)),
            4 | 5 => Self::Slow(span(rng, 200), span(rng, 500)),
            6..=8 => {
                let (from, to) = (any(plan, rng), any(plan, rng));
                Self::Cut(from, to, span(rng, 3_000))
            }
            9 | 10 => Self::Crash(one(plan, rng, Role::Client), span(rng, 500)),
            11 => Self::Crash(one(plan, rng, Role::Node), span(rng, 2_000)),
            12 => Self::Crash(one(plan, rng, Role::Master), span(rng, 500)),
            13..=15 => Self::Freeze(any(plan, rng), span(rng, 4_000)),
            16 => Self::Ahead(any(plan, rng), span(rng, 3_000)),
            17 => Self::Back(any(plan, rng), span(rng, 1_000)),
            18 | 19 => Self::Flip(one(plan, rng, Role::Node), rng.next_u64()),
            20 => Self::Tear(span(rng, 50), span(rng, 500)),
            21 | 22 => Self::Late(span(rng, 6_000), span(rng, 300)),
            _ => Self::Fill(one(plan, rng, Role::Client), span(rng, 300)),
        };
        (gap, fault)
    }
}

/// Up to `most` milliseconds, short ones more often.
fn span(rng: &mut Rng, most: u64) -> Duration {
    let most = 1 + rng.below(most * 1_000);
    Duration::from_micros(1 + rng.below(most))
}

fn any(plan: &Plan, rng: &mut Rng) -> Pid {
    Pid(rng.below(plan.processes().into()) as u16)
}

fn one(plan: &Plan, rng: &mut Rng, role: Role) -> Pid {
    let all = plan.pids().filter(|&pid| plan.role(pid) == role);
    let count = all.clone().count() as u64;
    all.clone().nth(rng.below(count) as usize).expect("a plan has processes of every kind")
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let p = |pid: &Pid| pid.0;
        match self {
            Self::Lose(share, time) => write!(f, "{share} of 1000 frames are lost for {time:?}"),
            Self::Repeat(share, time) => write!(f, "{share} of 1000 frames come twice for {time:?}"),
            Self::Slow(by, time) => write!(f, "frames take up to {by:?} for {time:?}"),
            Self::Cut(from, to, time) => write!(f, "nothing gets from {} to {} for {time:?}", p(from), p(to)),
            Self::Crash(pid, time) => write!(f, "{} dies, and is back after {time:?}", p(pid)),
            Self::Freeze(pid, time) => write!(f, "{} stands still for {time:?}", p(pid)),
            Self::Ahead(pid, by) => write!(f, "the clock of {} jumps {by:?} ahead", p(pid)),
            Self::Back(pid, by) => write!(f, "the clock of {} jumps {by:?} back", p(pid)),
            Self::Flip(pid, which) => write!(f, "a bit flips in {} ({which:x})", p(pid)),
            Self::Tear(by, time) => write!(f, "writes land in two steps, {by:?} apart, for {time:?}"),
            Self::Late(by, time) => write!(f, "one-sided operations land up to {by:?} late for {time:?}"),
            Self::Fill(pid, time) => write!(f, "{} puts all it can for {time:?}", p(pid)),
        }
    }
}

/// What the network is like at the moment.
#[derive(Clone, Debug)]
pub struct Weather {
    /// Shares of a thousand, and until when.
    pub lose: (u32, Instant),
    /// As `lose`.
    pub repeat: (u32, Instant),
    /// How much slower at most, and until when.
    pub slow: (Duration, Instant),
    /// The pause of torn writes, and until when.
    pub tear: (Duration, Instant),
    /// How late at most, and until when.
    pub late: (Duration, Instant),
    cut: Vec<Instant>,
    processes: usize,
}

impl Weather {
    /// A fine day among `processes` processes.
    pub fn new(processes: u16) -> Self {
        let processes = usize::from(processes);
        let (share, span) = ((0, Instant::ORIGIN), (Duration::ZERO, Instant::ORIGIN));
        Self {
            lose: share,
            repeat: share,
            slow: span,
            tear: span,
            late: span,
            cut: vec![Instant::ORIGIN; processes * processes],
            processes,
        }
    }

    /// Until when nothing gets from `from` to `to`; in the past if it does.
    pub fn cut(&self, from: Pid, to: Pid) -> Instant {
        self.cut[from.index() * self.processes + to.index()]
    }

    /// Cuts a way until `until`, at least.
    pub fn cut_until(&mut self, from: Pid, to: Pid, until: Instant) {
        let cut = &mut self.cut[from.index() * self.processes + to.index()];
        *cut = (*cut).max(until);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fault_is_the_same_whatever_comes_before() {
        let plan = Plan::new(7, 1);
        let all: Vec<_> = (0..500).map(|index| Fault::of(&plan, index)).collect();
        assert!((0..500).rev().all(|index| Fault::of(&plan, index) == all[index as usize]));
        let crashes = all.iter().filter(|(_, fault)| matches!(fault, Fault::Crash(..))).count();
        assert!(crashes > 20 && all.iter().any(|(_, fault)| matches!(fault, Fault::Late(..))));
    }
}
