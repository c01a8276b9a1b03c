//! Ops between submission and completion.

use springtide_core::ticket::Ticket;
use springtide_hal::Block;
use springtide_transport::{Budget, Op, Status};

/// Most ops of one path that were accepted and not yet reaped.
pub(crate) const DEPTH: usize = 256;

/// How an owner gets at the bytes of a write.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Route {
    /// It has mapped the region's file.
    Mapped,
    /// It reads our private memory.
    Private,
    /// We copy piece by piece into our board.
    Pieces,
}

/// One op under way.
#[derive(Debug)]
pub(crate) struct Flight {
    pub(crate) op: Op,
    /// Our memory, held until the op has ended.
    pub(crate) block: Block,
    /// The peer's region, as bits.
    pub(crate) region: u64,
    /// Where the path keeps that region's place.
    pub(crate) sight: usize,
    pub(crate) ticket: Option<Ticket>,
    pub(crate) route: Route,
    /// Bytes that are in place.
    pub(crate) moved: u32,
    /// Bytes that the owner was asked to store.
    pub(crate) asked: u32,
    /// Requests under way.
    pub(crate) pieces: u32,
    /// How it will end once no request is under way.
    pub(crate) failed: Option<(Status, i32)>,
}

impl Flight {
    /// Bytes that are not in place yet.
    pub(crate) const fn left(&self) -> u64 {
        (self.op.len - self.moved) as u64
    }
}

/// The flights of one path, in slots.
#[derive(Debug)]
pub(crate) struct Flights {
    slots: Vec<Option<Flight>>,
    free: Vec<u16>,
}

impl Default for Flights {
    fn default() -> Self {
        Self {
            slots: core::iter::repeat_with(|| None).take(DEPTH).collect(),
            free: (0..DEPTH as u16).rev().collect(),
        }
    }
}

impl Flights {
    pub(crate) fn len(&self) -> usize {
        DEPTH - self.free.len()
    }

    /// Puts `flight` into a slot; the caller knows that there is one.
    pub(crate) fn insert(&mut self, flight: Flight) -> u16 {
        let slot = self.free.pop().expect("submit checked the room");
        self.slots[usize::from(slot)] = Some(flight);
        slot
    }

    /// The flight in `slot`, which a queue of the path names.
    pub(crate) fn at(&mut self, slot: u16) -> &mut Flight {
        self.slots[usize::from(slot)].as_mut().expect("queues name live flights")
    }

    pub(crate) fn remove(&mut self, slot: u16) -> Option<Flight> {
        let flight = self.slots[usize::from(slot)].take()?;
        self.free.push(slot);
        Some(flight)
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = (u16, &Flight)> {
        (0..).zip(&self.slots).filter_map(|(slot, flight)| Some((slot, flight.as_ref()?)))
    }
}

/// What is left of a budget.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Meter {
    ops: u32,
    bytes: u64,
}

/// Bytes that one path or guest moves before the next one has its turn.
pub(crate) const STEP: u64 = 256 * 1024;

impl Meter {
    pub(crate) const fn new(budget: Budget) -> Self {
        Self { ops: budget.ops, bytes: budget.bytes }
    }

    pub(crate) const fn is_spent(&self) -> bool {
        self.ops == 0 || self.bytes == 0
    }

    /// How much of `bytes` fits.
    pub(crate) fn fit(&self, bytes: u64) -> u64 {
        self.bytes.min(bytes)
    }

    /// Takes one turn's worth out.
    pub(crate) fn turn(&mut self) -> Self {
        let turn = Self { ops: self.ops, bytes: self.bytes.min(STEP) };
        self.bytes -= turn.bytes;
        turn
    }

    /// Puts what is left of a turn back.
    pub(crate) const fn give_back(&mut self, turn: Self) {
        self.ops = turn.ops;
        self.bytes += turn.bytes;
    }

    pub(crate) const fn moved(&mut self, bytes: u64) {
        self.bytes = self.bytes.saturating_sub(bytes);
    }

    pub(crate) const fn ended(&mut self) {
        self.ops = self.ops.saturating_sub(1);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_turn_takes_one_step_and_gives_the_rest_back() {
        let mut meter = Meter::new(Budget { ops: 3, bytes: STEP + 10 });
        let mut turn = meter.turn();
        assert_eq!(turn.fit(u64::MAX), STEP);
        turn.moved(STEP - 5);
        turn.ended();
        meter.give_back(turn);
        assert_eq!((meter.ops, meter.bytes), (2, 15));
        meter.moved(100);
        assert!(meter.is_spent());
    }
}
