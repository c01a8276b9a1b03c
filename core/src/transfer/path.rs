//! One path: how it is doing, what is on it, and when to try it again.

use alloc::collections::VecDeque;
use alloc::vec::Vec;
use core::time::Duration;

use super::estimate::Estimate;
use super::{Config, PathHealth, PathShape, PathStats};
use crate::id::TargetId;
use crate::rng::Rng;
use crate::time::{Instant, nanos};

#[derive(Debug)]
pub(super) struct Path {
    pub(super) shape: PathShape,
    pub(super) estimate: Estimate,
    pub(super) health: PathHealth,
    pub(super) breaker: Breaker,
    pub(super) load: Load,
    pub(super) totals: Totals,
    /// The targets that are attached.
    pub(super) targets: Vec<TargetId>,
    /// Those that may have work, in turn.
    pub(super) ready: VecDeque<TargetId>,
    /// Whether the lane is being told to take ops.
    pub(super) called: bool,
    /// When it was last measured.
    pub(super) measured: Instant,
}

/// What is on a path now.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Load {
    pub(super) flying: u32,
    pub(super) outstanding: u64,
    /// The last completion, or the first post after it was empty.
    pub(super) moved: Instant,
}

/// What was on it altogether.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Totals {
    pub(super) bytes: u64,
    pub(super) ops: u64,
    pub(super) errors: u64,
}

/// Keeps a path out of use that fails.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Breaker {
    /// Failed ops in a row.
    pub(super) failures: u32,
    /// Openings in a row that failed.
    pub(super) openings: u32,
    /// How long the last pause was; zero after a success.
    pub(super) pause: Duration,
    /// When the current pause, or the time allowed for opening, is over.
    pub(super) until: Instant,
}

impl Path {
    pub(super) fn new(now: Instant, shape: PathShape, config: &Config) -> Self {
        let breaker = Breaker { until: now + config.stall, ..Breaker::default() };
        Self {
            shape: PathShape { max_op: shape.max_op.max(1), depth: shape.depth.max(1), ..shape },
            estimate: Estimate::new(shape.latency, shape.bandwidth),
            health: PathHealth::Opening,
            breaker,
            load: Load { moved: now, ..Load::default() },
            totals: Totals::default(),
            targets: Vec::new(),
            ready: VecDeque::new(),
            called: false,
            measured: now,
        }
    }

    /// Whether it may take an op now.
    pub(super) fn is_usable(&self, now: Instant) -> bool {
        match self.health {
            PathHealth::Up => true,
            PathHealth::Suspect => self.load.flying == 0 && self.breaker.until.reached(now),
            PathHealth::Opening | PathHealth::Closing | PathHealth::Down => false,
        }
    }

    /// Whether there is no point in waiting for it.
    pub(super) const fn is_hopeless(&self, config: &Config) -> bool {
        self.breaker.openings >= config.attempts && !matches!(self.health, PathHealth::Up)
    }

    /// How many ops it takes on top of what it has.
    pub(super) fn depth_left(&self) -> u32 {
        let depth = if self.health == PathHealth::Suspect { 1 } else { self.shape.depth };
        depth.saturating_sub(self.load.flying)
    }

    /// Whether as much is on it as is good for those who come after.
    pub(super) fn is_full(&self, config: &Config) -> bool {
        let floor = 4 * u64::from(self.shape.max_op);
        if self.load.outstanding < floor {
            return false;
        }
        let time = nanos(config.standing).saturating_add(nanos(self.estimate.latency()) * 2);
        self.load.outstanding >= self.estimate.bytes_in(time)
    }

    /// Nanoseconds until `len` bytes more would be done. Grows while nothing moves that should have.
    pub(super) fn predict(&self, now: Instant, len: u64) -> u64 {
        let usual = self.estimate.time(self.load.outstanding.saturating_add(len));
        if self.load.flying == 0 {
            return usual;
        }
        usual.saturating_add(self.overdue(now).saturating_mul(4))
    }

    /// How much longer than predicted nothing has moved.
    fn overdue(&self, now: Instant) -> u64 {
        nanos(now.since(self.load.moved)).saturating_sub(self.estimate.time(self.load.outstanding))
    }

    /// When it counts as stalled if nothing moves.
    pub(super) fn stalls_at(&self, config: &Config) -> Instant {
        let predicted = Duration::from_nanos(self.estimate.time(self.load.outstanding).saturating_mul(8));
        self.load.moved + config.stall.max(predicted)
    }

    /// Puts an op on it; gives back how many bytes are before it, its own among them.
    pub(super) fn load(&mut self, now: Instant, len: u32) -> u64 {
        if self.load.flying == 0 {
            self.load.moved = now;
        }
        self.load.flying += 1;
        self.load.outstanding += u64::from(len);
        self.load.outstanding
    }

    /// Takes an op off it.
    pub(super) fn unload(&mut self, len: u32) {
        debug_assert!(self.load.flying > 0 && self.load.outstanding >= u64::from(len));
        self.load.flying = self.load.flying.saturating_sub(1);
        self.load.outstanding = self.load.outstanding.saturating_sub(u64::from(len));
    }

    /// An op succeeded.
    pub(super) fn succeeded(&mut self, now: Instant, ahead: u64, elapsed: u64, bytes: u32) {
        self.estimate.observe(ahead, elapsed);
        self.measured = now;
        self.totals.ops += 1;
        self.totals.bytes += u64::from(bytes);
        self.breaker.failures = 0;
        self.breaker.pause = Duration::ZERO;
        if self.health == PathHealth::Suspect {
            self.health = PathHealth::Up;
        }
    }

    /// An op failed, and nobody asked for it.
    pub(super) fn failed(&mut self, now: Instant, config: &Config, rng: &mut Rng) {
        self.breaker.failures = self.breaker.failures.saturating_add(1);
        let trips = match self.health {
            PathHealth::Up => self.breaker.failures >= config.trip,
            PathHealth::Suspect => self.breaker.until.reached(now),
            _ => false,
        };
        if trips {
            self.suspect(now, config, rng);
        }
    }

    /// Puts a path in use on trial, after a pause.
    pub(super) fn suspect(&mut self, now: Instant, config: &Config, rng: &mut Rng) {
        if matches!(self.health, PathHealth::Up | PathHealth::Suspect) {
            self.health = PathHealth::Suspect;
            self.pause(now, config, rng);
        }
    }

    /// Begins the next pause: twice as long as the last, give or take a quarter.
    pub(super) fn pause(&mut self, now: Instant, config: &Config, rng: &mut Rng) {
        let (first, most) = config.backoff;
        self.breaker.pause = (self.breaker.pause * 2).clamp(first, most.max(first));
        let quarter = nanos(self.breaker.pause) / 4;
        let jitter = Duration::from_nanos(rng.below(quarter * 2 + 1));
        self.breaker.until = now + (self.breaker.pause - Duration::from_nanos(quarter)) + jitter;
    }

    pub(super) const fn stats(&self) -> PathStats {
        PathStats {
            health: self.health,
            bytes: self.totals.bytes,
            ops: self.totals.ops,
            errors: self.totals.errors,
            flying: self.load.flying,
            outstanding: self.load.outstanding,
            latency: self.estimate.latency(),
            bandwidth: self.estimate.bandwidth(),
        }
    }
}
