//! The offset allocator: any length, constant time, neighbours join as soon as they are free.
//!
//! A segment is a row of pieces, live or hole. Holes of like length share a list (see `bins`). A request takes, in
//! this order: the first hole of its own bin if it is long enough, so that sizes which come again find the places
//! that their like left; the first hole of the next longer bin, of which every hole is long enough; and, before it
//! gives up, one of the first [`LOOKS`] holes of its own bin. The last freed is the first used.

use super::bins::{Bin, Bins, Head};
use super::nodes::{AFTER, BEFORE, Kind, Nodes};
use super::{Handle, Misuse, NONE, granules_of};
use crate::range::{Extent, GRANULE};

/// How many holes of a request's own bin are looked at before it is refused.
pub const LOOKS: usize = 32;

/// Gives out extents of one segment.
///
/// Memory: 32 bytes for each extent and each hole, taken in steps of half a MiB and kept for reuse. Every call is
/// O(1) but [`largest_hole`](Self::largest_hole), which says what it costs.
#[derive(Clone, Debug)]
pub struct OffsetAllocator {
    nodes: Nodes,
    bins: Bins,
    len: u64,
    used: u64,
    holes: u64,
    largest: Largest,
}

impl OffsetAllocator {
    /// An allocator for `len` bytes, of which a part below one granule at the end stays unused.
    pub fn new(len: u64) -> Self {
        let len = len / GRANULE;
        let mut new = Self {
            nodes: Nodes::new(),
            bins: Bins::new(),
            len,
            used: 0,
            holes: 0,
            largest: Largest { len: 0, count: 0 },
        };
        if len > 0 {
            let all = new.nodes.add().expect("the table is empty");
            new.link(all, len);
        }
        new
    }

    /// `len` bytes, rounded up to the granule; zero counts as one. `None` if no hole was found.
    #[inline]
    pub fn allocate(&mut self, len: u64) -> Option<(Extent, Handle)> {
        let want = granules_of(len)?;
        let hole = self.find(want)?;
        let (id, offset) = if hole.len == want { self.take_all(hole) } else { self.take_front(hole, want)? };
        self.used += want;
        Some((Extent::new(offset * GRANULE, want * GRANULE)?, Handle(id)))
    }

    /// Gives back what [`allocate`](Self::allocate) gave: both values, as they were.
    ///
    /// # Errors
    /// [`Misuse`] if this handle does not hold this extent now; nothing changes.
    #[inline]
    pub fn free(&mut self, extent: Extent, handle: Handle) -> Result<(), Misuse> {
        let id = handle.0;
        let node = self.nodes.get(id).ok_or(Misuse)?;
        let (offset, len) = (node.offset, node.len());
        if !node.is(Kind::Live) || offset * GRANULE != extent.offset() || len * GRANULE != extent.len() {
            return Err(Misuse);
        }
        self.used -= len;
        let (prev, next) = (node.prev, node.next);
        match (node.has_hole(BEFORE), node.has_hole(AFTER)) {
            (false, false) => {
                self.note_hole(prev, next);
                self.link(id, len);
            }
            (true, false) => {
                self.nodes.remove(id);
                self.note_hole(NONE, next);
                self.extend(prev, next, len);
            }
            (false, true) => {
                self.nodes.remove(id);
                self.extend_down(prev, next, len);
            }
            (true, true) => {
                let hole = self.nodes.at(next);
                let (hole_len, beyond) = (hole.len(), hole.next);
                self.unlink(next, hole_len);
                self.nodes.remove(next);
                self.nodes.remove(id);
                self.extend(prev, beyond, len + hole_len);
            }
        }
        Ok(())
    }

    /// Reads what [`free`](Self::free) will read for `handle`. The result has no meaning; it depends on all that was read.
    #[inline]
    pub(super) fn warm(&self, handle: Handle) -> u64 {
        let offset = |id| self.nodes.get(id).map_or(0, |node| node.offset);
        self.nodes.get(handle.0).map_or(0, |node| offset(node.prev) ^ offset(node.next))
    }

    /// Bytes that can be granted.
    pub const fn capacity(&self) -> u64 {
        self.len * GRANULE
    }

    /// Bytes in live extents.
    pub const fn used(&self) -> u64 {
        self.used * GRANULE
    }

    /// How many holes there are. One in an empty segment, none in a full one.
    pub const fn holes(&self) -> u64 {
        self.holes
    }

    /// Bytes in the largest hole, exactly.
    ///
    /// O(1), unless the last hole of the largest length was just used: then one step for each hole in the highest
    /// bin.
    pub fn largest_hole(&self) -> u64 {
        self.largest_now(usize::MAX).0.len * GRANULE
    }

    /// As [`largest_hole`](Self::largest_hole), but remembers what it found, and looks at [`LOOKS`] holes at most: if
    /// there are more in the highest bin, what it says may be a thirty-second short.
    pub(super) fn find_largest_hole(&mut self) -> u64 {
        let (largest, seen) = self.largest_now(LOOKS);
        if seen == Seen::All {
            self.largest = largest;
        }
        largest.len * GRANULE
    }

    /// The largest of up to `looks` holes of the highest bin, and whether that were all.
    fn largest_now(&self, looks: usize) -> (Largest, Seen) {
        if self.largest.count > 0 {
            return (self.largest, Seen::All);
        }
        let mut largest = Largest { len: 0, count: 0 };
        let mut id = self.bins.last().map_or(NONE, |bin| self.bins.head(bin).id);
        for _ in 0..looks {
            if id == NONE {
                break;
            }
            let node = self.nodes.at(id);
            largest.enter(node.len());
            id = node.bin_next;
        }
        (largest, if id == NONE { Seen::All } else { Seen::Some })
    }

    #[inline]
    fn find(&self, want: u64) -> Option<Head> {
        let own = Bin::of(want);
        let head = self.bins.head(own);
        if head.len >= want {
            return Some(head);
        }
        match self.bins.first_from(own.above()) {
            Some(bin) => Some(self.bins.head(bin)),
            None => self.look(head.id, want),
        }
    }

    /// The first of the [`LOOKS`] holes from `id` on that is long enough.
    #[cold]
    fn look(&self, mut id: u32, want: u64) -> Option<Head> {
        for _ in 0..LOOKS {
            if id == NONE {
                return None;
            }
            let node = self.nodes.at(id);
            if node.len() >= want {
                return Some(Head { id, len: node.len() });
            }
            id = node.bin_next;
        }
        None
    }

    /// Makes all of `hole` live: its node and first granule.
    #[inline]
    fn take_all(&mut self, hole: Head) -> (u32, u64) {
        self.unlink(hole.id, hole.len);
        let node = self.nodes.at_mut(hole.id);
        node.set(Kind::Live, hole.len);
        let (offset, prev, next) = (node.offset, node.prev, node.next);
        if prev != NONE {
            self.nodes.at_mut(prev).note_live(AFTER);
        }
        if next != NONE {
            self.nodes.at_mut(next).note_live(BEFORE);
        }
        (hole.id, offset)
    }

    /// Makes the first `want` granules of `hole`, which is longer, live: their node and first granule. `None` if the
    /// node table is full.
    #[inline]
    fn take_front(&mut self, hole: Head, want: u64) -> Option<(u32, u64)> {
        let id = self.nodes.add()?;
        let rest = hole.len - want;
        let node = self.nodes.at_mut(hole.id);
        let (offset, prev) = (node.offset, node.prev);
        node.offset = offset + want;
        node.prev = id;
        node.set(Kind::Hole, rest);
        let live = self.nodes.at_mut(id);
        live.set(Kind::Live, want);
        live.note_hole(AFTER);
        live.offset = offset;
        live.prev = prev;
        live.next = hole.id;
        if prev != NONE {
            let before = self.nodes.at_mut(prev);
            before.next = id;
            before.note_live(AFTER);
        }
        self.rebin(hole.id, hole.len, rest);
        Some((id, offset))
    }

    /// Adds the `by` granules after hole `id` to it; `next` follows them.
    #[inline]
    fn extend(&mut self, id: u32, next: u32, by: u64) {
        let hole = self.nodes.at_mut(id);
        let old = hole.len();
        hole.next = next;
        hole.set(Kind::Hole, old + by);
        if next != NONE {
            self.nodes.at_mut(next).prev = id;
        }
        self.rebin(id, old, old + by);
    }

    /// Adds the `by` granules before hole `id` to it; the live piece `prev` precedes them.
    #[inline]
    fn extend_down(&mut self, prev: u32, id: u32, by: u64) {
        if prev != NONE {
            let before = self.nodes.at_mut(prev);
            before.next = id;
            before.note_hole(AFTER);
        }
        let hole = self.nodes.at_mut(id);
        let old = hole.len();
        hole.offset -= by;
        hole.prev = prev;
        hole.set(Kind::Hole, old + by);
        self.rebin(id, old, old + by);
    }

    /// Tells the live pieces `prev` and `next` that what is between them is a hole now.
    #[inline]
    fn note_hole(&mut self, prev: u32, next: u32) {
        if prev != NONE {
            self.nodes.at_mut(prev).note_hole(AFTER);
        }
        if next != NONE {
            self.nodes.at_mut(next).note_hole(BEFORE);
        }
    }

    /// Moves hole `id`, whose length has changed, to its new bin.
    #[inline]
    fn rebin(&mut self, id: u32, old: u64, new: u64) {
        let bin = Bin::of(old);
        if bin != Bin::of(new) {
            self.unlink(id, old);
            self.link(id, new);
            return;
        }
        self.largest.leave(old);
        self.largest.enter(new);
        if self.bins.head(bin).id == id {
            self.bins.set_head(bin, Head { id, len: new });
        }
    }

    /// Makes piece `id` a hole of `len`, first in its bin.
    #[inline]
    fn link(&mut self, id: u32, len: u64) {
        let bin = Bin::of(len);
        let head = self.bins.head(bin).id;
        let node = self.nodes.at_mut(id);
        node.set(Kind::Hole, len);
        node.bin_prev = NONE;
        node.bin_next = head;
        if head != NONE {
            self.nodes.at_mut(head).bin_prev = id;
        }
        self.bins.set_head(bin, Head { id, len });
        self.holes += 1;
        self.largest.enter(len);
    }

    /// Takes hole `id` of `len` out of its bin.
    #[inline]
    fn unlink(&mut self, id: u32, len: u64) {
        self.holes -= 1;
        self.largest.leave(len);
        let node = self.nodes.at(id);
        let (prev, next) = (node.bin_prev, node.bin_next);
        let bin = Bin::of(len);
        let is_first = self.bins.head(bin).id == id;
        if !is_first {
            self.nodes.at_mut(prev).bin_next = next;
        }
        if next == NONE {
            if is_first {
                self.bins.set_head(bin, Head::NONE);
            }
            return;
        }
        let after = self.nodes.at_mut(next);
        after.bin_prev = prev;
        if is_first {
            let len = after.len();
            self.bins.set_head(bin, Head { id: next, len });
        }
    }
}

/// How many of the holes that could be the largest were looked at.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Seen {
    All,
    Some,
}

/// The largest length among the holes, and how many have it. While the count is zero, every hole is shorter.
#[derive(Clone, Copy, Debug)]
struct Largest {
    len: u64,
    count: u64,
}

impl Largest {
    #[inline]
    const fn enter(&mut self, len: u64) {
        if len > self.len {
            *self = Self { len, count: 1 };
        } else if len == self.len {
            self.count += 1;
        }
    }

    #[inline]
    const fn leave(&mut self, len: u64) {
        if len == self.len {
            self.count -= 1;
        }
    }
}

#[cfg(test)]
mod tests;
