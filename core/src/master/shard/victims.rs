//! Which object goes when room is needed.

use super::super::Quiet;
use super::replicas::Replicas;
use super::{SeatState, Seats, Shard};
use crate::evict::{Keep, Policy, Removed};
use crate::object::{Object, ReplicaState};
use crate::time::Instant;

/// How many objects of a victim's group go with it at most.
const GROUP_STEP: u32 = 32;

/// Whether soft-pinned objects may go.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(in crate::master) enum Softly {
    Spare,
    Take,
}

/// What went.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(in crate::master) struct Evicted {
    pub(in crate::master) objects: u64,
}

/// What was spared, and why.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(in crate::master) struct Spared {
    pub(in crate::master) leased: u64,
    pub(in crate::master) pinned: u64,
    pub(in crate::master) other: u64,
}

impl Spared {
    pub(in crate::master) const fn all(&self) -> u64 {
        self.leased + self.pinned + self.other
    }
}

impl Shard {
    /// How many objects may be evicted, leases and soft pins aside.
    pub(in crate::master) fn evictable(&self) -> u64 {
        self.evictor.len() as u64
    }

    /// Evicts the object that the policy names, and others of its group; looks at up to `effort` entries.
    pub(in crate::master) fn evict(
        &mut self,
        now: Instant,
        softly: Softly,
        effort: u32,
        spared: &mut Spared,
    ) -> Option<Evicted> {
        let Self { objects, replicas, seats, evictor, .. } = self;
        let victim = evictor.victim(effort, &mut |slot| match objects.at(slot) {
            Some((_, object)) => verdict(object, replicas, seats, now, softly, spared),
            None => Keep::Spare,
        })?;
        let mut evicted = Evicted::default();
        let mut next = self.groups.after(victim);
        self.evict_one(now, victim, &mut evicted);
        for _ in 0..GROUP_STEP {
            let Some(slot) = next else { break };
            next = self.groups.after(slot);
            if self.may_go(now, slot, softly) {
                self.evict_one(now, slot, &mut evicted);
            }
        }
        Some(evicted)
    }

    fn may_go(&self, now: Instant, slot: u32, softly: Softly) -> bool {
        let mut spared = Spared::default();
        self.objects.at(slot).is_some_and(|(_, object)| {
            object.is_complete()
                && object.pin != Instant::NEVER
                && verdict(object, &self.replicas, &self.seats, now, softly, &mut spared) == Keep::Take
        })
    }

    fn evict_one(&mut self, now: Instant, slot: u32, evicted: &mut Evicted) {
        let Some((_, object)) = self.objects.at(slot) else { return };
        self.tally.evicted += 1;
        self.tally.evicted_bytes += object.len;
        evicted.objects += 1;
        self.take_out(now, slot, Removed::Evicted, Quiet::Yes);
    }
}

/// Whether a finished object may go, and what it counts for if not.
fn verdict(
    object: &Object,
    replicas: &Replicas,
    seats: &Seats,
    now: Instant,
    softly: Softly,
    spared: &mut Spared,
) -> Keep {
    if object.lease() > now {
        spared.leased += 1;
        return Keep::Spare;
    }
    if softly == Softly::Spare && object.pinned(now) {
        spared.pinned += 1;
        return Keep::Spare;
    }
    // Being copied, or nowhere that would become free: a silent owner's memory takes nothing new.
    let copied =
        replicas.of(object).any(|(_, replica)| replica.is_copied() || replica.is(ReplicaState::Reserved));
    let frees = replicas.of(object).any(|(_, replica)| seats.at(replica.seat).state == SeatState::Answers);
    if copied || !frees {
        spared.other += 1;
        return Keep::Spare;
    }
    Keep::Take
}
