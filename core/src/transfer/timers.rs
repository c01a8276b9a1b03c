//! One moment for each slot of a table, and which comes first.

use alloc::vec::Vec;

use crate::time::Instant;

const NONE: u32 = u32::MAX;

/// A binary heap of (moment, slot) that knows where each slot stands. Everything is O(log n).
#[derive(Debug, Default)]
pub(super) struct Timers {
    heap: Vec<(Instant, u32)>,
    /// Where each slot's entry is in the heap.
    place: Vec<u32>,
}

impl Timers {
    pub(super) fn with_capacity(slots: usize) -> Self {
        Self { heap: Vec::with_capacity(slots), place: Vec::with_capacity(slots) }
    }

    /// The earliest moment.
    pub(super) fn first(&self) -> Option<Instant> {
        self.heap.first().map(|(at, _)| *at)
    }

    /// Sets the moment of `slot`, in place of an earlier one.
    pub(super) fn set(&mut self, slot: usize, at: Instant) {
        if self.place.len() <= slot {
            self.place.resize(slot + 1, NONE);
        }
        let mut place = self.place[slot] as usize;
        if self.place[slot] == NONE {
            place = self.heap.len();
            self.heap.push((at, slot as u32));
            self.place[slot] = place as u32;
        } else {
            self.heap[place].0 = at;
        }
        let place = self.rise(place);
        self.sink(place);
    }

    /// As [`set`](Self::set), unless the slot's moment is earlier already.
    pub(super) fn set_earlier(&mut self, slot: usize, at: Instant) {
        match self.place.get(slot) {
            Some(&place) if place != NONE && self.heap[place as usize].0 <= at => {}
            _ => self.set(slot, at),
        }
    }

    pub(super) fn remove(&mut self, slot: usize) {
        let Some(&place) = self.place.get(slot) else { return };
        if place == NONE {
            return;
        }
        self.place[slot] = NONE;
        self.heap.swap_remove(place as usize);
        if let Some(&(_, moved)) = self.heap.get(place as usize) {
            self.place[moved as usize] = place;
            let place = self.rise(place as usize);
            self.sink(place);
        }
    }

    /// Takes out one slot whose moment has come.
    pub(super) fn pop_due(&mut self, now: Instant) -> Option<usize> {
        let &(at, slot) = self.heap.first()?;
        at.reached(now).then(|| {
            self.remove(slot as usize);
            slot as usize
        })
    }

    fn swap(&mut self, a: usize, b: usize) {
        self.heap.swap(a, b);
        self.place[self.heap[a].1 as usize] = a as u32;
        self.place[self.heap[b].1 as usize] = b as u32;
    }

    fn rise(&mut self, mut place: usize) -> usize {
        while place > 0 && self.heap[place] < self.heap[(place - 1) / 2] {
            self.swap(place, (place - 1) / 2);
            place = (place - 1) / 2;
        }
        place
    }

    fn sink(&mut self, mut place: usize) {
        loop {
            let children = [2 * place + 1, 2 * place + 2];
            let Some(&least) =
                children.iter().filter(|c| **c < self.heap.len()).min_by_key(|c| self.heap[**c])
            else {
                return;
            };
            if self.heap[place] <= self.heap[least] {
                return;
            }
            self.swap(place, least);
            place = least;
        }
    }
}

#[cfg(test)]
mod tests {
    use alloc::collections::BTreeMap;

    use super::*;
    use crate::rng::Rng;

    #[test]
    fn agrees_with_a_sorted_map() {
        let (mut rng, mut timers, mut model) = (Rng::new(5), Timers::default(), BTreeMap::new());
        for step in 0..20_000 {
            let (slot, at) = (rng.below(40) as usize, Instant::from_nanos(rng.below(1_000)));
            match rng.below(5) {
                0 => {
                    timers.remove(slot);
                    model.remove(&slot);
                }
                1 => {
                    timers.set_earlier(slot, at);
                    model.entry(slot).and_modify(|old: &mut Instant| *old = at.min(*old)).or_insert(at);
                }
                2 => {
                    let due = timers.pop_due(at);
                    assert_eq!(due.is_some(), model.values().any(|when| *when <= at), "step {step}");
                    if let Some(slot) = due {
                        let when = model.remove(&slot).unwrap();
                        assert!(model.values().all(|other| *other >= when));
                    }
                }
                _ => {
                    timers.set(slot, at);
                    model.insert(slot, at);
                }
            }
            assert_eq!(timers.first(), model.values().min().copied(), "step {step}");
        }
    }
}
