//! A shard: objects, their replicas, leases and what is to be given up. It asks the control machine for nothing; what
//! it has to say waits in `out`.

mod copies;
mod drains;
mod look;
mod objects;
mod replicas;
mod seats;
mod victims;
mod warm;

use alloc::collections::BTreeMap;
use alloc::vec::Vec;
use core::num::NonZeroU32;
use core::time::Duration;

use super::events::{ToControl, ToShard};
use super::{Config, Location, Locations, Ready};
use crate::evict::Evictor;
use crate::id::{ObjectId, TenantId};
use crate::key::Key;
use crate::object::{Groups, Index, KeyHasher, NONE, Object, Objects, Phase, Replica, ReplicaState};
use crate::place::Grants;
use crate::range::Extent;
use crate::rng::Rng;
use crate::space::Grant;
use crate::time::Instant;

pub(super) use copies::Copying;
use copies::{Copy, Deadlines};
use drains::Drains;
pub(super) use objects::Begin;
use replicas::Replicas;
use seats::{Pending, SeatState, Seats};
pub(super) use victims::{Softly, Spared};

/// One part of the objects, by the hash of their keys.
#[derive(Debug)]
pub(super) struct Shard {
    pub(super) hasher: KeyHasher,
    pub(super) objects: Objects,
    index: Index,
    replicas: Replicas,
    seats: Seats,
    groups: Groups,
    evictor: Evictor,
    drains: Drains,
    copies: BTreeMap<ObjectId, Copy>,
    copy_deadlines: Deadlines,
    /// The put that began first, and the one that began last, of those that have not ended.
    oldest: u32,
    newest: u32,
    times: Times,
    pub(super) tally: Tally,
    pub(super) out: Vec<ToControl>,
}

/// How long things may take.
#[derive(Clone, Copy, Debug)]
struct Times {
    lease: Duration,
    discard: Duration,
    release: Duration,
}

/// What a shard counts.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(super) struct Tally {
    /// Bytes that hold no readable object, on segments that are in the pool.
    pub(super) pending: Pending,
    pub(super) complete: u64,
    pub(super) writing: u64,
    pub(super) discarded: u64,
    pub(super) lost: u64,
    pub(super) evicted: u64,
    pub(super) evicted_bytes: u64,
}

impl Shard {
    pub(super) fn new(config: &Config, rng: &mut Rng, generation: NonZeroU32) -> Self {
        let times = Times { lease: config.lease, discard: config.put_discard, release: config.put_release };
        Self {
            hasher: KeyHasher::new(rng),
            objects: Objects::starting(generation),
            index: Index::new(),
            replicas: Replicas::default(),
            seats: Seats::default(),
            groups: Groups::default(),
            evictor: Evictor::new(config.policy),
            drains: Drains::new(rng.next_u64()),
            copies: BTreeMap::new(),
            copy_deadlines: Deadlines::new(),
            oldest: NONE,
            newest: NONE,
            times,
            tally: Tally::default(),
            out: Vec::new(),
        }
    }

    #[inline]
    fn find(&self, tenant: TenantId, key: Key<'_>, hash: u64) -> Option<u32> {
        self.index.find(hash, |slot| {
            self.objects
                .at(slot)
                .is_some_and(|(_, object)| object.tenant == tenant && *object.key == *key.bytes())
        })
    }

    /// The slot of `key`, if it is there and not all of it is gone.
    #[inline]
    pub(super) fn peek(&self, tenant: TenantId, key: Key<'_>, hash: u64) -> Option<u32> {
        let slot = self.find(tenant, key, hash)?;
        self.is_alive(self.objects.at(slot)?.1).then_some(slot)
    }

    /// As [`peek`](Self::peek), but what is gone or given up makes way.
    pub(super) fn occupied(
        &mut self,
        now: Instant,
        tenant: TenantId,
        key: Key<'_>,
        hash: u64,
    ) -> Option<u32> {
        let slot = self.find(tenant, key, hash)?;
        let (_, object) = self.objects.at(slot)?;
        if !self.is_alive(object) {
            self.lose(now, slot);
            return None;
        }
        if matches!(object.phase, Phase::Writing { deadline, .. } if deadline.reached(now)) {
            self.discard(now, slot);
            return None;
        }
        Some(slot)
    }

    /// Whether `object` is an extent granted ahead that was not published.
    pub(super) fn is_reserved(&self, object: ObjectId) -> bool {
        let object = self.objects.slot(object).and_then(|slot| self.objects.at(slot));
        object.is_some_and(|(_, object)| object.key.is_empty() && !object.is_complete())
    }

    /// The extents of an object, as they were granted.
    pub(super) fn grants(&self, object: ObjectId) -> Option<Grants> {
        let (_, object) = self.objects.at(self.objects.slot(object)?)?;
        let grant = |replica: &Replica| {
            let seat = self.seats.at(replica.seat);
            let grant = Grant { segment: seat.segment, extent: replica.extent(), handle: replica.handle };
            (seat.state != SeatState::Gone).then_some(grant)
        };
        Some(self.replicas.of(object).filter_map(|(_, replica)| grant(replica)).collect())
    }

    /// When the next put, copy or drain is due.
    pub(super) fn due(&self) -> Instant {
        let copy = self.copy_deadlines.front().map_or(Instant::NEVER, |&(due, _)| due);
        self.put_due().min(copy).min(self.drains.due())
    }

    /// The object in `slot`, with its id.
    #[inline]
    pub(super) fn object(&self, slot: u32) -> Option<(ObjectId, &Object)> {
        self.objects.at(slot)
    }

    /// Whether a replica is on a segment that is in the pool.
    #[inline]
    fn is_alive(&self, object: &Object) -> bool {
        if object.home().seat().is_some_and(|seat| self.seats.at(seat).state != SeatState::Gone) {
            return true;
        }
        let mut replicas = self.replicas.of(object);
        replicas.any(|(_, replica)| self.seats.at(replica.seat).state != SeatState::Gone)
    }

    /// Whether a replica of `object` can be read now.
    #[inline]
    pub(super) fn is_readable(&self, object: &Object) -> bool {
        object.home().seat().is_some_and(|seat| self.seats.at(seat).state == SeatState::Answers)
            || self.locations(object).iter().any(|location| location.ready == Ready::Yes)
    }

    /// Where the replicas of `object` are, as far as they are not gone.
    pub(super) fn locations(&self, object: &Object) -> Locations {
        if let Some((seat, extent)) = object.home().only() {
            return self.location(seat, extent, ReplicaState::Complete).into_iter().collect();
        }
        // An object has no more replicas than fit.
        let location = |replica: &Replica| self.location(replica.seat, replica.extent(), replica.state());
        self.replicas.of(object).filter_map(|(_, replica)| location(replica)).collect()
    }

    /// What readers get to know of a replica, unless it is gone.
    #[inline]
    fn location(&self, seat: u32, extent: Extent, state: ReplicaState) -> Option<Location> {
        let seat = self.seats.at(seat);
        let ready = match (seat.state, state) {
            (SeatState::Gone, _) => return None,
            (_, ReplicaState::Reserved) => Ready::Writing,
            (SeatState::Silent, _) => Ready::Silent,
            (SeatState::Answers, _) => Ready::Yes,
        };
        Some(Location { segment: seat.segment, extent, owner: seat.owner, ready })
    }

    /// Hears what the control machine says.
    pub(super) fn handle(&mut self, now: Instant, event: ToShard) {
        match event {
            ToShard::Opened { segment, owner } => self.seats.open(segment, owner),
            ToShard::Reach { segment, reach } => self.seats.reach(segment, reach),
            ToShard::Gone { segment } => self.close(segment),
            ToShard::Fenced { number } => self.fenced(now, number),
        }
    }
}
