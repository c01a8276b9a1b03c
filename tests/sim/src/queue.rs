//! What happens next.

use core::cmp::Ordering;
use std::collections::BinaryHeap;

use springtide_core::id::PathId;
use springtide_core::time::Instant;

/// A process of the cluster, by number.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Pid(pub u16);

impl Pid {
    /// Its place in tables of processes.
    pub const fn index(self) -> usize {
        self.0 as usize
    }
}

/// Something that happens at one moment.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Event {
    /// A frame arrives.
    Frame(u32),
    /// A connection's caller learns that it is gone.
    Closed(u32),
    /// A process looks at its clock.
    Wake(Pid),
    /// A one-sided operation arrives at the owner of the memory, or goes on there.
    Land(u32),
    /// An operation's end arrives at who began it.
    Reap(u32),
    /// A path comes up or goes down, if it is still the one with this number.
    Path(Pid, PathId, u32, Turn),
    /// Something goes wrong, or is mended.
    Fault(u32),
}

/// What becomes of a path.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Turn {
    /// It can be used.
    Up,
    /// Its other end is gone.
    Down,
}

#[derive(Clone, Copy, Debug)]
struct Entry {
    at: Instant,
    number: u64,
    event: Event,
}

impl PartialEq for Entry {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for Entry {}

impl PartialOrd for Entry {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Entry {
    /// The heap gives out the greatest first: the earliest is that.
    fn cmp(&self, other: &Self) -> Ordering {
        (other.at, other.number).cmp(&(self.at, self.number))
    }
}

/// Events by their time; those of one moment in the order in which they were put in.
#[derive(Debug, Default)]
pub struct Queue {
    heap: BinaryHeap<Entry>,
    numbers: u64,
}

impl Queue {
    /// Has `event` happen at `at`.
    pub fn push(&mut self, at: Instant, event: Event) {
        self.numbers += 1;
        self.heap.push(Entry { at, number: self.numbers, event });
    }

    /// What happens next, and when.
    pub fn pop(&mut self) -> Option<(Instant, Event)> {
        self.heap.pop().map(|entry| (entry.at, entry.event))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn earliest_first_and_in_order() {
        let mut queue = Queue::default();
        for (at, number) in [(5, 0), (3, 1), (5, 2), (3, 3)] {
            queue.push(Instant::from_nanos(at), Event::Frame(number));
        }
        let all: Vec<_> = core::iter::from_fn(|| queue.pop()).map(|(_, event)| event).collect();
        assert_eq!(all, [1, 3, 0, 2].map(Event::Frame));
    }
}
