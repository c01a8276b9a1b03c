//! Making room: at once for a put that finds none, and ahead of need by the watermark (S0A-083).

use core::time::Duration;

use super::shard::{Softly, Spared};
use super::{MILLION, Master, PutError, SoftPinned};
use crate::id::SegmentId;
use crate::place::Grants;
use crate::space::NoSpace;
use crate::time::Instant;

/// A put that finds no hole evicts at most twice this many less one: 1, 2, 4 … and tries again after each.
const PUT_BATCH: u32 = 16;
/// Entries that a put looks at in all.
const PUT_EFFORT: u32 = 4_096;
/// Victims of one step of a round.
const STEP: u32 = 64;
/// Entries that a step of a round looks at, in calls of [`CALL`].
const STEP_EFFORT: u32 = 1_024;
const CALL: u32 = 64;
/// A round that found nothing to evict is not followed by another for so long.
const PAUSE: Duration = Duration::from_millis(100);
/// A round takes at most so many times the eviction ratio of the evictable objects (case 16).
const ROUND_LIMIT: u64 = 3;

/// Whether a request may evict at once.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Evict {
    IfNeeded,
    No,
}

/// An eviction round: it ends when the use is far enough below the watermark, or after its share of the objects.
#[derive(Debug)]
pub(super) struct Round {
    /// How many objects it may still evict; zero if none is running.
    left: u64,
    softly: Softly,
    /// Entries spared since the last victim.
    spared: Spared,
    not_before: Instant,
}

impl Default for Round {
    fn default() -> Self {
        Self { left: 0, softly: Softly::Spare, spared: Spared::default(), not_before: Instant::ORIGIN }
    }
}

impl Master {
    /// Grants as many extents as are wanted, in preferred segments first; evicts a bounded number of objects if there is no hole.
    pub(super) fn place_or_evict(
        &mut self,
        now: Instant,
        stored: u64,
        wanted: (u32, &[SegmentId]),
        avoid: &[SegmentId],
        grants: &mut Grants,
    ) -> Result<(), PutError> {
        let (mut batch, mut spared) = (1, Spared::default());
        loop {
            let error = match self.control.place(stored, wanted, avoid, grants) {
                Ok(()) => return Ok(()),
                Err(error) => error,
            };
            let hopeless = !matches!(error, NoSpace::NoHole { .. }) || batch > PUT_BATCH;
            if hopeless || !self.evict_some(now, batch, &mut spared) {
                self.no_room += 1;
                return Err(error.into());
            }
            batch *= 2;
        }
    }

    /// Evicts up to `count` objects; says whether any went. Soft pins count until everything has been looked at.
    fn evict_some(&mut self, now: Instant, count: u32, spared: &mut Spared) -> bool {
        let mut any = false;
        for _ in 0..count {
            let all = self.shard.evictable();
            // A policy may look at an entry a few times before it names it.
            let effort = u64::from(PUT_EFFORT).saturating_sub(spared.all()).min(4 * all) as u32;
            let mut gone = self.shard.evict(now, Softly::Spare, effort, spared);
            let soft = self.config.soft_pinned == SoftPinned::LastResort && spared.pinned > 0;
            if gone.is_none() && soft && spared.all() >= all {
                gone = self.shard.evict(now, Softly::Take, effort, spared);
            }
            if gone.is_none() {
                break;
            }
            any = true;
        }
        if !any && spared.leased > 0 {
            self.blocked_by_leases += 1;
        }
        self.settle(now);
        any
    }

    /// Begins a round if too much is used and none is running. The last object stays: making room ahead of need for
    /// nothing but itself would lose what was put a moment ago. A put that needs its room still gets it.
    pub(super) fn watch(&mut self) {
        if self.round.left == 0 && self.shard.evictable() > 1 && self.is_over(self.config.high_watermark) {
            let ratio = u64::from(self.config.eviction_ratio) * ROUND_LIMIT;
            let share = u128::from(self.shard.evictable()) * u128::from(ratio) / u128::from(MILLION);
            self.round.left = (share as u64).max(1);
            self.round.softly = Softly::Spare;
            self.round.spared = Spared::default();
        }
    }

    /// Whether more than `mark` parts per million of the open segments are in use, without what is on its way out.
    fn is_over(&self, mark: u32) -> bool {
        let usage = self.control.space.usage();
        let held = usage.used.saturating_sub(self.shard.tally.pending.draining);
        u128::from(held) * u128::from(MILLION) > u128::from(usage.capacity) * u128::from(mark)
    }

    /// When the round goes on.
    pub(super) fn round_due(&self) -> Instant {
        if self.round.left == 0 { Instant::NEVER } else { self.round.not_before }
    }

    /// One step of the round.
    pub(super) fn evict_step(&mut self, now: Instant) {
        let low = self.config.high_watermark.saturating_sub(self.config.eviction_ratio);
        let (mut victims, mut calls) = (0, 0);
        while self.round_due().reached(now) && victims < STEP && calls < STEP_EFFORT / CALL {
            if !self.is_over(low) {
                self.round.left = 0;
                return;
            }
            let Round { softly, mut spared, .. } = self.round;
            match self.shard.evict(now, softly, CALL, &mut spared) {
                Some(evicted) => {
                    victims += evicted.objects as u32;
                    self.round.left = self.round.left.saturating_sub(evicted.objects);
                    self.round.spared = Spared::default();
                    self.settle(now);
                }
                None => {
                    calls += 1;
                    self.round.spared = spared;
                    self.pass(now);
                }
            }
        }
    }

    /// After a call that found nothing: once all have been looked at, soft pins no longer count, or the round pauses.
    fn pass(&mut self, now: Instant) {
        let spared = self.round.spared;
        if spared.all() < self.shard.evictable() {
            return;
        }
        self.round.spared = Spared::default();
        let soft = self.config.soft_pinned == SoftPinned::LastResort && spared.pinned > 0;
        if soft && self.round.softly == Softly::Spare {
            self.round.softly = Softly::Take;
            return;
        }
        self.blocked_by_leases += u64::from(spared.leased > 0);
        self.round.softly = Softly::Spare;
        self.round.not_before = now + PAUSE;
    }
}
