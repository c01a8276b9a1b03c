//! Copies between segments: the source is kept while they run.

use alloc::collections::VecDeque;

use super::super::{CopyEndError, Quiet};
use super::{SeatState, Shard};
use crate::id::{MemberId, ObjectId};
use crate::object::{NONE, ReplicaState, Use};
use crate::space::Grant;
use crate::time::Instant;

/// Copies that run, in the order of their deadlines.
pub(super) type Deadlines = VecDeque<(Instant, ObjectId)>;

/// One copy that runs.
#[derive(Clone, Copy, Debug)]
pub(super) struct Copy {
    copier: MemberId,
    /// The replica it reads; [`NONE`] if that is gone.
    from: u32,
    /// The replica it writes; [`NONE`] if that, or the object, is gone.
    to: u32,
    started: Instant,
}

/// Whether an object is being copied.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(in crate::master) enum Copying {
    Yes,
    No,
}

impl Copy {
    /// What it is, as numbers.
    pub(super) const fn words(&self) -> [u64; 4] {
        [self.copier.to_bits(), self.from as u64, self.to as u64, self.started.nanos()]
    }
}

impl Shard {
    pub(in crate::master) fn copying(&self, object: ObjectId) -> Copying {
        let running = !self.copies.is_empty() && self.copies.contains_key(&object);
        if running { Copying::Yes } else { Copying::No }
    }

    /// Begins a copy of the object in `slot` from its replica on `from` into `grant`; the caller has checked that it
    /// may. `None` if there is no such replica or the tables are full.
    pub(in crate::master) fn copy_start(
        &mut self,
        now: Instant,
        slot: u32,
        copier: MemberId,
        from: crate::id::SegmentId,
        grant: &Grant,
    ) -> Option<ObjectId> {
        let (id, object) = self.objects.at(slot)?;
        let seat = self.seats.of(from)?;
        let (from, _) = self.replicas.of(object).find(|(_, replica)| replica.seat == seat)?;
        let to = self.attach(slot, grant)?;
        self.replicas[from].set_use(Use::Copied);
        self.copies.insert(id, Copy { copier, from, to, started: now });
        self.copy_deadlines.push_back((now + self.times.discard, id));
        Some(id)
    }

    fn take_copy(&mut self, object: ObjectId, copier: MemberId) -> Result<Copy, CopyEndError> {
        let copy = *self.copies.get(&object).ok_or(CopyEndError::NoTask)?;
        if copy.copier != copier {
            return Err(CopyEndError::Owner);
        }
        self.copies.remove(&object);
        Ok(copy)
    }

    pub(in crate::master) fn copy_end(
        &mut self,
        now: Instant,
        object: ObjectId,
        copier: MemberId,
    ) -> Result<(), CopyEndError> {
        let copy = self.take_copy(object, copier)?;
        self.end_use(now, copy.from);
        if copy.to == NONE || self.seats.at(self.replicas[copy.to].seat).state == SeatState::Gone {
            return Err(CopyEndError::NoTask);
        }
        self.set_state(copy.to, ReplicaState::Complete);
        Ok(())
    }

    pub(in crate::master) fn copy_abort(
        &mut self,
        now: Instant,
        object: ObjectId,
        copier: MemberId,
        quiet: Quiet,
    ) -> Result<(), CopyEndError> {
        let copy = self.take_copy(object, copier)?;
        self.drop_copy(now, copy, quiet);
        Ok(())
    }

    /// Gives up to `budget` copies up whose time is over.
    pub(in crate::master) fn expire_copies(&mut self, now: Instant, budget: u32) {
        for _ in 0..budget {
            match self.copy_deadlines.front() {
                Some(&(due, object)) if due.reached(now) => {
                    self.copy_deadlines.pop_front();
                    let over = |copy: &&Copy| (copy.started + self.times.discard).reached(now);
                    if let Some(&copy) = self.copies.get(&object).filter(over) {
                        self.copies.remove(&object);
                        self.drop_copy(now, copy, Quiet::Unknown);
                    }
                }
                _ => return,
            }
        }
    }

    fn drop_copy(&mut self, now: Instant, copy: Copy, quiet: Quiet) {
        self.end_use(now, copy.from);
        if copy.to != NONE {
            let slot = self.replicas[copy.to].object;
            self.detach(copy.to);
            let fence = (quiet == Quiet::Unknown).then_some(copy.started);
            self.release(now, copy.to, Instant::ORIGIN, fence);
            // The source may have left meanwhile.
            if self.objects.at(slot).is_some_and(|(_, object)| object.replicas == NONE) {
                self.lose(now, slot);
            }
        }
    }

    fn end_use(&mut self, now: Instant, from: u32) {
        if from == NONE {
            return;
        }
        let replica = &mut self.replicas[from];
        replica.set_use(Use::Idle);
        if replica.is(ReplicaState::Draining) {
            let drain = replica.object;
            self.settle_drain_at(now, drain);
        }
    }

    /// The object goes while it is copied: the copy may go on reading, what it writes is for nothing. Gives back since
    /// when it may have been writing.
    pub(super) fn orphan_copy(&mut self, object: ObjectId) -> Option<Instant> {
        let copy = self.copies.get_mut(&object)?;
        copy.to = NONE;
        Some(copy.started)
    }

    /// Replica `number` is forgotten: no copy reads or writes it any more.
    pub(super) fn forget_copies(&mut self, number: u32) {
        for copy in self.copies.values_mut() {
            for end in [&mut copy.from, &mut copy.to] {
                if *end == number {
                    *end = NONE;
                }
            }
        }
    }
}
