//! The segments as a shard knows them (S0A-073).

use alloc::collections::VecDeque;
use alloc::vec::Vec;

use super::super::events::Reach;
use crate::id::{Id, MemberId, SegmentId};
use crate::object::{NONE, ReplicaState};

/// One segment that holds, or held, replicas of this shard.
#[derive(Clone, Copy, Debug)]
pub(super) struct Seat {
    pub(super) segment: SegmentId,
    pub(super) owner: MemberId,
    pub(super) state: SeatState,
    /// Bytes of its reserved and draining replicas.
    pub(super) pending: Pending,
}

/// Bytes that hold no readable object.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(in crate::master) struct Pending {
    /// Somebody may be writing them.
    pub(in crate::master) reserved: u64,
    /// They wait to be used again.
    pub(in crate::master) draining: u64,
}

impl Pending {
    /// The figure that a replica in `state` counts for.
    pub(super) const fn of(&mut self, state: ReplicaState) -> Option<&mut u64> {
        match state {
            ReplicaState::Reserved => Some(&mut self.reserved),
            ReplicaState::Draining => Some(&mut self.draining),
            ReplicaState::Complete | ReplicaState::Vacant => None,
        }
    }
}

/// Whether what a segment holds can be read.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum SeatState {
    /// It can.
    Answers,
    /// Its owner is silent.
    Silent,
    /// It is out of the pool; what is still listed is as good as gone.
    Gone,
}

/// A pass through all replicas.
#[derive(Clone, Copy, Debug, Default)]
struct Pass {
    /// The next number to look at.
    next: u32,
    /// How many seats it sweeps, from the front; zero if none runs.
    seats: usize,
}

/// All seats. A seat outlives its segment until its replicas are swept, so seats have numbers of their own.
#[derive(Debug, Default)]
pub(super) struct Seats {
    seats: Vec<Seat>,
    vacant: Vec<u32>,
    /// By segment slot: the seat of the segment that has the slot now.
    by_segment: Vec<u32>,
    /// Seats whose segment is gone, to be swept.
    gone: VecDeque<u32>,
    pass: Pass,
}

impl Seats {
    pub(super) fn open(&mut self, segment: SegmentId, owner: MemberId) {
        let seat = Seat { segment, owner, state: SeatState::Answers, pending: Pending::default() };
        let number = match self.vacant.pop() {
            Some(number) => {
                self.seats[number as usize] = seat;
                number
            }
            None => {
                self.seats.push(seat);
                self.seats.len() as u32 - 1
            }
        };
        if self.by_segment.len() <= segment.index() {
            self.by_segment.resize(segment.index() + 1, NONE);
        }
        self.by_segment[segment.index()] = number;
    }

    /// The seat of `segment`, while it is in the pool.
    pub(super) fn of(&self, segment: SegmentId) -> Option<u32> {
        let number = *self.by_segment.get(segment.index())?;
        let seat = self.seats.get(number as usize)?;
        (seat.segment == segment && seat.state != SeatState::Gone).then_some(number)
    }

    pub(super) fn reach(&mut self, segment: SegmentId, reach: Reach) {
        if let Some(number) = self.of(segment) {
            self.seats[number as usize].state = match reach {
                Reach::Answers => SeatState::Answers,
                Reach::Silent => SeatState::Silent,
            };
        }
    }

    /// Its segment left the pool; gives back what it counted as pending.
    pub(super) fn close(&mut self, segment: SegmentId) -> Pending {
        let Some(number) = self.of(segment) else { return Pending::default() };
        self.by_segment[segment.index()] = NONE;
        self.gone.push_back(number);
        let seat = &mut self.seats[number as usize];
        seat.state = SeatState::Gone;
        core::mem::take(&mut seat.pending)
    }

    /// Whether there are seats to sweep.
    pub(super) fn has_gone(&self) -> bool {
        !self.gone.is_empty()
    }

    /// The number with which the pass goes on that sweeps all seats gone so far, or since it began; `None` if there is
    /// nothing to sweep.
    pub(super) fn pass(&mut self) -> Option<u32> {
        if self.pass.seats == 0 {
            self.pass = Pass { next: 0, seats: self.gone.len() };
        }
        (self.pass.seats > 0).then_some(self.pass.next)
    }

    /// The pass goes on with `next`; `None`: it has seen all, and its seats hold nothing any more.
    pub(super) fn passed(&mut self, next: Option<u32>) {
        match next {
            Some(next) => self.pass.next = next,
            None => {
                let swept = core::mem::take(&mut self.pass).seats;
                self.vacant.extend(self.gone.drain(..swept));
            }
        }
    }

    #[inline]
    pub(super) fn at(&self, number: u32) -> &Seat {
        &self.seats[number as usize]
    }

    pub(super) fn at_mut(&mut self, number: u32) -> &mut Seat {
        &mut self.seats[number as usize]
    }
}
