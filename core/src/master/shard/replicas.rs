//! Replicas: their lists by object, and their way out.

use core::iter;
use core::ops::{Index, IndexMut};

use super::super::events::ToControl;
use super::{SeatState, Shard};
use crate::id::SegmentId;
use crate::object::{Home, NONE, Object, Phase, Pool, Replica, ReplicaState};
use crate::space::Grant;
use crate::time::Instant;

/// A step of a sweep looks at so many replicas for each that it may forget: they lie in a row, so it is not long.
const LOOKS: u32 = 16;

/// The table of replicas.
#[derive(Debug)]
pub(super) struct Replicas {
    pool: Pool<Replica>,
    vacant: u32,
}

impl Default for Replicas {
    fn default() -> Self {
        Self { pool: Pool::default(), vacant: NONE }
    }
}

impl Replicas {
    fn add(&mut self, replica: Replica) -> Option<u32> {
        let number = if self.vacant == NONE { self.pool.add(|| Replica::VACANT)? } else { self.vacant };
        if number == self.vacant {
            self.vacant = self.pool[number].next;
        }
        self.pool[number] = replica;
        Some(number)
    }

    fn vacate(&mut self, number: u32) {
        let replica = &mut self.pool[number];
        *replica = Replica::VACANT;
        replica.next = self.vacant;
        self.vacant = number;
    }

    #[inline]
    pub(super) fn get(&self, number: u32) -> Option<&Replica> {
        self.pool.get(number)
    }

    /// The replicas of `object`, in the order of their placement.
    #[inline]
    pub(super) fn of(&self, object: &Object) -> impl Iterator<Item = (u32, &Replica)> {
        let step = |number: u32| self.pool.get(number).map(|replica| (number, replica));
        iter::successors(step(object.replicas), move |(_, replica)| step(replica.next))
    }

    /// One more than the highest number ever used.
    pub(super) const fn numbers(&self) -> u32 {
        self.pool.slots()
    }

    /// All that are not vacant, by number.
    pub(super) fn iter(&self) -> impl Iterator<Item = (u32, &Replica)> {
        let all = (0..self.pool.slots()).map(|number| (number, &self.pool[number]));
        all.filter(|(_, replica)| !replica.is(ReplicaState::Vacant))
    }
}

impl Index<u32> for Replicas {
    type Output = Replica;

    #[inline]
    fn index(&self, number: u32) -> &Replica {
        &self.pool[number]
    }
}

impl IndexMut<u32> for Replicas {
    #[inline]
    fn index_mut(&mut self, number: u32) -> &mut Replica {
        &mut self.pool[number]
    }
}

impl Shard {
    /// Makes `grant` the last replica of the object in `slot`. `None` if its segment is gone or the table is full.
    pub(super) fn attach(&mut self, slot: u32, grant: &Grant) -> Option<u32> {
        let seat = self.seats.of(grant.segment)?;
        let number = self.replicas.add(Replica::new(grant.extent, seat, grant.handle, slot))?;
        self.set_state(number, ReplicaState::Reserved);
        let last = self.objects.at(slot).and_then(|(_, object)| self.replicas.of(object).last());
        match last.map(|(last, _)| last) {
            Some(last) => self.replicas[last].next = number,
            None => self.objects.at_mut(slot)?.replicas = number,
        }
        self.find_home(slot);
        Some(number)
    }

    /// Notes where the first replica of the object in `slot` is, if that is finished.
    pub(super) fn find_home(&mut self, slot: u32) {
        if let Some(object) = self.objects.at_mut(slot)
            && let Phase::Complete { home, .. } = &mut object.phase
        {
            *home = self.replicas.get(object.replicas).map_or(Home::UNKNOWN, Home::new);
        }
    }

    /// Takes replica `number` out of the list of its object.
    pub(super) fn detach(&mut self, number: u32) {
        let Replica { object: slot, next, .. } = self.replicas[number];
        let Some((_, object)) = self.objects.at(slot) else { return };
        let before = self.replicas.of(object).find(|(_, replica)| replica.next == number);
        match before.map(|(before, _)| before) {
            Some(before) => self.replicas[before].next = next,
            None => {
                if let Some(object) = self.objects.at_mut(slot) {
                    object.replicas = next;
                }
            }
        }
        self.replicas[number].next = NONE;
        self.find_home(slot);
    }

    /// Changes a replica's state, and the figures with it.
    pub(super) fn set_state(&mut self, number: u32, state: ReplicaState) {
        let replica = &mut self.replicas[number];
        let (was, bytes) = (replica.set_state(state), replica.extent().len());
        let seat = self.seats.at_mut(replica.seat);
        if seat.state == SeatState::Gone {
            return;
        }
        for pending in [&mut self.tally.pending, &mut seat.pending] {
            if let Some(figure) = pending.of(was) {
                *figure -= bytes;
            }
            if let Some(figure) = pending.of(state) {
                *figure += bytes;
            }
        }
    }

    /// Lets go of replica `number`, which no object lists any more. Its bytes are free once `until` has passed, no copy
    /// reads them, and no write can land in them: `fence` says since when somebody may have been writing.
    pub(super) fn release(&mut self, now: Instant, number: u32, until: Instant, fence: Option<Instant>) {
        let replica = self.replicas[number];
        if self.seats.at(replica.seat).state == SeatState::Gone {
            self.forget(number);
        } else if until.reached(now) && fence.is_none() && !replica.is_copied() {
            self.give_back(number);
        } else {
            self.drain(now, number, until, fence);
        }
    }

    /// Nobody touches the bytes of replica `number` any more.
    pub(super) fn give_back(&mut self, number: u32) {
        let replica = &self.replicas[number];
        let segment = self.seats.at(replica.seat).segment;
        let grant = Grant { segment, extent: replica.extent(), handle: replica.handle };
        self.out.push(ToControl::Released(grant));
        self.forget(number);
    }

    /// Vacates replica `number`.
    pub(super) fn forget(&mut self, number: u32) {
        let replica = &self.replicas[number];
        let may_be_copied = replica.is_copied() || replica.is(ReplicaState::Reserved);
        self.set_state(number, ReplicaState::Vacant);
        if may_be_copied {
            self.forget_copies(number);
        }
        self.replicas.vacate(number);
    }

    /// A segment left the pool: what it holds is gone from now on, and swept later (S0A-075).
    pub(super) fn close(&mut self, segment: SegmentId) {
        let pending = self.seats.close(segment);
        self.tally.pending.reserved -= pending.reserved;
        self.tally.pending.draining -= pending.draining;
    }

    /// Whether segments that are gone still have replicas.
    pub(in crate::master) fn has_to_sweep(&self) -> bool {
        self.seats.has_gone()
    }

    /// Forgets up to `budget` replicas of segments that are gone, and objects that have no others; looks at [`LOOKS`]
    /// times as many.
    ///
    /// A pass goes through all numbers once, for all segments that were gone when it began: what is put meanwhile is
    /// elsewhere. That takes longer than lists by segment would, but keeps two neighbours less for every replica, which
    /// would have to be found and changed whenever one comes or goes.
    pub(in crate::master) fn sweep(&mut self, now: Instant, budget: u32) {
        let Some(from) = self.seats.pass() else { return };
        let (mut next, mut left) = (from, budget);
        let end = self.replicas.numbers();
        while next < end.min(from.saturating_add(budget.saturating_mul(LOOKS))) && left > 0 {
            let replica = &self.replicas[next];
            if !replica.is(ReplicaState::Vacant) && self.seats.at(replica.seat).state == SeatState::Gone {
                self.sweep_one(now, next);
                left -= 1;
            }
            next += 1;
        }
        self.seats.passed((next < end).then_some(next));
    }

    fn sweep_one(&mut self, now: Instant, number: u32) {
        let slot = self.replicas[number].object;
        if self.replicas[number].is(ReplicaState::Draining) {
            self.drains.forget(slot);
            self.forget(number);
            return;
        }
        self.detach(number);
        self.forget(number);
        if self.objects.at(slot).is_some_and(|(_, object)| object.replicas == NONE) {
            self.lose(now, slot);
        }
    }
}
