//! The doors for time: what is due, and when to come again.

use super::events::earliest;
use super::{Master, Next};
use crate::time::Instant;

/// Puts, copies and drains that one step looks at, of each.
const STEP: u32 = 64;
/// Replicas of segments that left that one step sweeps.
const SWEEP: u32 = 256;

impl Master {
    /// Does what is due, in a bounded step: health, puts to give up, bytes to release, segments to sweep, eviction.
    /// Early or late is harmless.
    pub fn handle_timeout(&mut self, now: Instant) {
        let now = self.clock.observe(now);
        self.control.handle_timeout(now);
        self.settle(now);
        self.shard.expire_puts(now, STEP);
        self.shard.expire_copies(now, STEP);
        self.shard.settle_drains(now, STEP);
        self.shard.sweep(now, SWEEP);
        self.settle(now);
        self.watch();
        self.evict_step(now);
    }

    /// Takes note of the time, and gives it back as this machine counts it: never earlier than before.
    pub fn observe(&mut self, now: Instant) -> Instant {
        self.clock.observe(now)
    }

    /// What the master has to say; [`Next::Wait`] comes last.
    pub fn poll(&mut self, now: Instant) -> Next {
        let now = self.clock.observe(now);
        self.control.events.pop_front().unwrap_or_else(|| Next::Wait(self.due(now)))
    }

    /// When [`handle_timeout`](Self::handle_timeout) has something to do; not before `now`.
    fn due(&self, now: Instant) -> Option<Instant> {
        if self.shard.has_to_sweep() {
            return Some(now);
        }
        let due = [self.control.due(), self.shard.due(), self.round_due()];
        earliest(due).map(|due| due.max(now))
    }
}
