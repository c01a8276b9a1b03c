//! An object's way through the shard: begun, ended or given up, removed.

use core::time::Duration;

use super::super::{EndError, PublishError, Quiet};
use super::{SeatState, Shard};
use crate::checksum::{BLOCK, Checksum, stored_len};
use crate::evict::{Policy, Removed};
use crate::id::{MemberId, ObjectId, SegmentId, TenantId};
use crate::key::Key;
use crate::object::{Home, Links, NONE, Name, Object, Phase, Replica, ReplicaState};
use crate::place::Grants;
use crate::space::MAX_REPLICAS;
use crate::time::Instant;

/// Nanoseconds of a millisecond.
const MILLI: u64 = 1_000_000;

/// A put that begins.
#[derive(Clone, Copy, Debug)]
pub(in crate::master) struct Begin<'a> {
    /// None for an extent granted ahead.
    pub(in crate::master) key: Option<Key<'a>>,
    pub(in crate::master) hash: u64,
    pub(in crate::master) tenant: TenantId,
    pub(in crate::master) len: u64,
    pub(in crate::master) writer: MemberId,
    pub(in crate::master) request: u64,
    /// See [`Object::pin`].
    pub(in crate::master) pin: Instant,
    pub(in crate::master) group: Option<u64>,
}

impl Shard {
    /// Enters an object that is to be written into `grants`. `None`, and the grants go back, if a table is full.
    pub(in crate::master) fn begin(
        &mut self,
        now: Instant,
        begin: &Begin<'_>,
        grants: &Grants,
    ) -> Option<ObjectId> {
        let id = self.objects.insert(Object {
            key: begin.key.map_or(Name::EMPTY, |key| key.bytes().into()),
            hash: (begin.hash >> 32) as u32,
            len: begin.len,
            phase: Phase::Writing {
                deadline: now + self.times.discard,
                request: begin.request,
                links: Links::ALONE,
            },
            writer: begin.writer,
            pin: begin.pin,
            tenant: begin.tenant,
            replicas: NONE,
        });
        let Some(slot) = id.and_then(|id| self.objects.slot(id)) else {
            self.out.extend(grants.iter().map(|&grant| super::ToControl::Released(grant)));
            return None;
        };
        self.tally.writing += 1;
        self.push_newest(slot);
        if let Some(group) = begin.group {
            self.groups.add(group, slot);
        }
        let entered = begin.key.is_none() || self.index.insert(begin.hash, slot).is_ok();
        let mut attached = entered;
        for grant in grants {
            if !attached || self.attach(slot, grant).is_none() {
                attached = false;
                self.out.push(super::ToControl::Released(*grant));
            }
        }
        if !attached {
            self.take_out(now, slot, Removed::Dropped, Quiet::Yes);
            return None;
        }
        id
    }

    /// The slot of a put of `writer`, ended or not.
    pub(in crate::master) fn own(&self, object: ObjectId, writer: MemberId) -> Result<u32, EndError> {
        let slot = self.objects.slot(object).ok_or(EndError::Gone)?;
        let Some((_, object)) = self.objects.at(slot) else { return Err(EndError::Gone) };
        if object.writer != writer {
            return Err(EndError::Owner);
        }
        if self.is_alive(object) { Ok(slot) } else { Err(EndError::Gone) }
    }

    /// Whether the extents of the object in `slot` have room for a value of `len` bytes with this checksum.
    pub(in crate::master) fn has_room(&self, slot: u32, len: u64, checksum: Checksum) -> bool {
        let sums = checksum != Checksum::None && len > BLOCK;
        let needed = if sums { stored_len(len) } else { Some(len) };
        let Some((_, object)) = self.objects.at(slot) else { return false };
        needed.is_some_and(|needed| {
            self.replicas.of(object).all(|(_, replica)| needed <= replica.extent().len())
        })
    }

    /// Drops the replicas of the unfinished object in `slot` on segments where its writer failed; the owners are asked
    /// to end the writes before the bytes are used again. Says whether any replica is left; if not, nothing is dropped.
    pub(in crate::master) fn drop_failed(&mut self, now: Instant, slot: u32, failed: &[SegmentId]) -> bool {
        if failed.is_empty() {
            return true;
        }
        let Some((_, object)) = self.objects.at(slot) else { return false };
        let Phase::Writing { deadline, .. } = object.phase else { return false };
        let seats: heapless::Vec<u32, MAX_REPLICAS> =
            failed.iter().take(MAX_REPLICAS).filter_map(|&segment| self.seats.of(segment)).collect();
        let unwritten = |replica: &Replica| seats.contains(&replica.seat);
        // A replica whose segment left the pool and is not swept yet is none that could be read.
        let lost = |replica: &Replica| self.seats.at(replica.seat).state == SeatState::Gone;
        if self.replicas.of(object).all(|(_, replica)| unwritten(replica) || lost(replica)) {
            return false;
        }
        let numbers: heapless::Vec<u32, MAX_REPLICAS> = self
            .replicas
            .of(object)
            .filter(|(_, replica)| unwritten(replica))
            .map(|(number, _)| number)
            .collect();
        for number in numbers {
            self.detach(number);
            self.release(now, number, Instant::ORIGIN, Some(deadline - self.times.discard));
        }
        true
    }

    /// Makes the object in `slot` readable.
    pub(in crate::master) fn finish(&mut self, now: Instant, slot: u32, checksum: Checksum) {
        self.unlink(slot);
        let Some(object) = self.objects.at_mut(slot) else { return };
        let hard = object.pin == Instant::NEVER;
        let pin_for = if hard { 0 } else { object.pin.nanos() };
        if pin_for > 0 {
            object.pin = now + Duration::from_nanos(pin_for);
        }
        let pin_for = u32::try_from(pin_for.div_ceil(MILLI)).unwrap_or(u32::MAX);
        // Its first lease is over at once: a fresh object can be evicted (S0A-080).
        let (hash, mut number) = (object.hash, object.replicas);
        let home = Home::UNKNOWN;
        object.phase = Phase::Complete { lease: Instant::ORIGIN, checksum, pin_for, home };
        while number != NONE {
            self.set_state(number, ReplicaState::Complete);
            number = self.replicas[number].next;
        }
        self.find_home(slot);
        self.tally.writing -= 1;
        self.tally.complete += 1;
        if !hard {
            self.evictor.insert(slot, hash.into());
        }
    }

    /// Gives the extent granted ahead in `slot` its key, and makes it readable.
    pub(in crate::master) fn publish(
        &mut self,
        now: Instant,
        slot: u32,
        (tenant, key, hash): (TenantId, Key<'_>, u64),
        len: u64,
        checksum: Checksum,
    ) -> Result<(), PublishError> {
        self.index.insert(hash, slot).map_err(|_| PublishError::Full)?;
        if let Some(object) = self.objects.at_mut(slot) {
            object.key = key.bytes().into();
            (object.hash, object.tenant, object.len) = ((hash >> 32) as u32, tenant, len);
        }
        self.finish(now, slot, checksum);
        Ok(())
    }

    /// Remembers which request the unfinished object in `slot` was the answer to last.
    pub(in crate::master) fn note_request(&mut self, slot: u32, last: u64) {
        if let Some(object) = self.objects.at_mut(slot)
            && let Phase::Writing { request, .. } = &mut object.phase
        {
            *request = last;
        }
    }

    /// Removes the object in `slot` with all its replicas. `quiet` says whether the writer of an unfinished one may
    /// still be writing.
    pub(in crate::master) fn take_out(&mut self, now: Instant, slot: u32, why: Removed, quiet: Quiet) {
        let Some((id, object)) = self.objects.at(slot) else { return };
        let (hash, has_key) = (object.hash, !object.key.is_empty());
        if has_key {
            self.index.remove(u64::from(hash) << 32, slot);
        }
        let mut fence = self.orphan_copy(id);
        let Some((_, object)) = self.objects.at(slot) else { return };
        match object.phase {
            Phase::Complete { .. } => {
                self.evictor.remove(slot, why);
                self.tally.complete -= 1;
            }
            Phase::Writing { deadline, .. } => {
                fence = (quiet == Quiet::Unknown).then(|| deadline - self.times.discard);
                self.unlink(slot);
                self.tally.writing -= 1;
            }
        }
        self.groups.remove(slot);
        let Some(object) = self.objects.remove(slot) else { return };
        let (lease, mut number) = (object.lease(), object.replicas);
        while number != NONE {
            let replica = self.replicas[number];
            // What is still written was never shown to a reader, and nobody writes what is complete.
            let writing = replica.is(ReplicaState::Reserved);
            let (until, fence) = if writing { (Instant::ORIGIN, fence) } else { (lease, None) };
            self.release(now, number, until, fence);
            number = replica.next;
        }
    }

    /// The object in `slot` has no replica left on any segment of the pool.
    pub(in crate::master) fn lose(&mut self, now: Instant, slot: u32) {
        if let Some((_, object)) = self.objects.at(slot) {
            self.tally.lost += u64::from(object.is_complete());
            self.take_out(now, slot, Removed::Dropped, Quiet::Yes);
        }
    }

    /// Drops the replica of the finished object in `slot` on `segment`, and the object with its last one. Says whether
    /// there was one.
    pub(in crate::master) fn drop_replica(&mut self, now: Instant, slot: u32, segment: SegmentId) -> bool {
        let Some((_, object)) = self.objects.at(slot) else { return false };
        let Some(seat) = self.seats.of(segment) else { return false };
        let until = object.lease();
        let found = self.replicas.of(object).find(|(_, replica)| replica.seat == seat);
        let Some((number, _)) = found else { return false };
        self.detach(number);
        self.release(now, number, until, None);
        if self.objects.at(slot).is_some_and(|(_, object)| object.replicas == NONE) {
            self.take_out(now, slot, Removed::Dropped, Quiet::Yes);
        }
        true
    }

    /// Gives up to `budget` puts up whose time is over (S0A-082).
    pub(in crate::master) fn expire_puts(&mut self, now: Instant, budget: u32) {
        for _ in 0..budget {
            if !self.put_due().reached(now) {
                return;
            }
            self.discard(now, self.oldest);
        }
    }

    /// Gives the put in `slot` up: its writer may still be writing.
    pub(in crate::master) fn discard(&mut self, now: Instant, slot: u32) {
        self.tally.discarded += 1;
        self.take_out(now, slot, Removed::Dropped, Quiet::Unknown);
    }

    /// When the oldest put is given up.
    pub(in crate::master) fn put_due(&self) -> Instant {
        match self.objects.at(self.oldest).map(|(_, object)| object.phase) {
            Some(Phase::Writing { deadline, .. }) => deadline,
            _ => Instant::NEVER,
        }
    }

    /// Renews the lease and the soft pin of the finished object in `slot` (S0A-078), and tells the policy that it was read.
    #[inline]
    pub(in crate::master) fn read(&mut self, now: Instant, slot: u32) {
        let until = now + self.times.lease;
        if let Some(object) = self.objects.at_mut(slot)
            && let Phase::Complete { lease, pin_for, .. } = &mut object.phase
        {
            *lease = (*lease).max(until);
            if *pin_for > 0 {
                object.pin = object.pin.max(now + Duration::from_millis((*pin_for).into()));
            }
        }
        self.evictor.touch(slot);
    }

    /// What is read or finished next need not follow what came before.
    pub(in crate::master) fn begin_batch(&mut self) {
        self.evictor.begin_batch();
    }

    fn links(&mut self, slot: u32) -> Option<&mut Links> {
        match &mut self.objects.at_mut(slot)?.phase {
            Phase::Writing { links, .. } => Some(links),
            Phase::Complete { .. } => None,
        }
    }

    fn push_newest(&mut self, slot: u32) {
        let prev = core::mem::replace(&mut self.newest, slot);
        if let Some(links) = self.links(slot) {
            *links = Links { prev, next: NONE };
        }
        match self.links(prev) {
            Some(links) => links.next = slot,
            None => self.oldest = slot,
        }
    }

    fn unlink(&mut self, slot: u32) {
        let Some(&mut Links { prev, next }) = self.links(slot) else { return };
        match self.links(prev) {
            Some(links) => links.next = next,
            None => self.oldest = next,
        }
        match self.links(next) {
            Some(links) => links.prev = prev,
            None => self.newest = prev,
        }
    }
}
