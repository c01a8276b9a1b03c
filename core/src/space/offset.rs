//! The offset allocator: any length, constant time, neighbours join as soon as they are free.
//!
//! A segment is a row of pieces, live or hole. Holes of like length share a list (see `bins`). A request takes, in
//! this order: the first hole of its own bin if it is long enough, so that sizes which come again find the places
//! that their like left; the first hole of the next longer bin, of which every hole is long enough; and, before it
//! gives up, one of the first [`LOOKS`] holes of its own bin. The last freed is the first used.

use super::bins::{Bin, Bins};
use super::nodes::{Kind, Node, Nodes};
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
            let all = new.nodes.add(Node::new(Kind::Hole, 0, len, NONE, NONE)).expect("the table is empty");
            new.link(all, len);
        }
        new
    }

    /// `len` bytes, rounded up to the granule; zero counts as one. `None` if no hole was found.
    #[inline]
    pub fn allocate(&mut self, len: u64) -> Option<(Extent, Handle)> {
        let want = granules_of(len)?;
        let hole = self.find(want)?;
        let id = self.take(hole, want)?;
        self.used += want;
        let offset = self.nodes.at(id).offset * GRANULE;
        Some((Extent::new(offset, want * GRANULE)?, Handle(id)))
    }

    /// Gives back what [`allocate`](Self::allocate) gave: both values, as they were.
    ///
    /// # Errors
    /// [`Misuse`] if this handle does not hold this extent now; nothing changes.
    #[inline]
    pub fn free(&mut self, extent: Extent, handle: Handle) -> Result<(), Misuse> {
        let id = handle.0;
        let node = *self.nodes.get(id).ok_or(Misuse)?;
        let held = (node.offset * GRANULE, node.len() * GRANULE);
        if !node.is(Kind::Live) || held != (extent.offset(), extent.len()) {
            return Err(Misuse);
        }
        self.used -= node.len();
        let before = self.hole_at(node.prev);
        let after = self.hole_at(node.next);
        match (before, after) {
            (None, None) => self.link(id, node.len()),
            (Some(len), None) => {
                self.skip(id, &node);
                self.resize(node.prev, len, len + node.len());
            }
            (None, Some(len)) => {
                self.skip(id, &node);
                self.nodes.at_mut(node.next).offset = node.offset;
                self.resize(node.next, len, len + node.len());
            }
            (Some(low), Some(high)) => {
                self.skip(id, &node);
                let hole = *self.nodes.at(node.next);
                self.unlink(node.next, high);
                self.skip(node.next, &hole);
                self.resize(node.prev, low, low + node.len() + high);
            }
        }
        Ok(())
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
        self.largest_now().len * GRANULE
    }

    /// As [`largest_hole`](Self::largest_hole), but remembers what it found.
    pub(super) fn find_largest_hole(&mut self) -> u64 {
        self.largest = self.largest_now();
        self.largest.len * GRANULE
    }

    fn largest_now(&self) -> Largest {
        if self.largest.count > 0 {
            return self.largest;
        }
        let mut largest = Largest { len: 0, count: 0 };
        let mut id = self.bins.last().map_or(NONE, |bin| self.bins.head(bin));
        while id != NONE {
            let node = self.nodes.at(id);
            largest.enter(node.len());
            id = node.bin_next;
        }
        largest
    }

    #[inline]
    fn find(&self, want: u64) -> Option<u32> {
        let own = Bin::of(want);
        let head = self.bins.head(own);
        if head != NONE && self.nodes.at(head).len() >= want {
            return Some(head);
        }
        match self.bins.first_from(own.above()) {
            Some(bin) => Some(self.bins.head(bin)),
            None => self.look(head, want),
        }
    }

    /// The first of the [`LOOKS`] holes from `id` on that is long enough.
    #[cold]
    fn look(&self, mut id: u32, want: u64) -> Option<u32> {
        for _ in 0..LOOKS {
            if id == NONE {
                return None;
            }
            let node = self.nodes.at(id);
            if node.len() >= want {
                return Some(id);
            }
            id = node.bin_next;
        }
        None
    }

    /// Makes the first `want` granules of `hole` live. `None` if the node table is full.
    #[inline]
    fn take(&mut self, hole: u32, want: u64) -> Option<u32> {
        let node = *self.nodes.at(hole);
        let rest = node.len() - want;
        if rest == 0 {
            self.unlink(hole, want);
            self.nodes.at_mut(hole).set(Kind::Live, want);
            return Some(hole);
        }
        let live = self.nodes.add(Node::new(Kind::Live, node.offset, want, node.prev, hole))?;
        if node.prev != NONE {
            self.nodes.at_mut(node.prev).next = live;
        }
        let hole_node = self.nodes.at_mut(hole);
        hole_node.prev = live;
        hole_node.offset += want;
        self.resize(hole, node.len(), rest);
        Some(live)
    }

    /// The length of piece `id` if it is a hole.
    #[inline]
    fn hole_at(&self, id: u32) -> Option<u64> {
        if id == NONE {
            return None;
        }
        let node = self.nodes.at(id);
        node.is(Kind::Hole).then(|| node.len())
    }

    /// Takes piece `id`, which reads `node`, out of the row.
    #[inline]
    fn skip(&mut self, id: u32, node: &Node) {
        if node.prev != NONE {
            self.nodes.at_mut(node.prev).next = node.next;
        }
        if node.next != NONE {
            self.nodes.at_mut(node.next).prev = node.prev;
        }
        self.nodes.remove(id);
    }

    /// Changes the length of hole `id`; its bin only if that changes too.
    #[inline]
    fn resize(&mut self, id: u32, old: u64, new: u64) {
        if Bin::of(old) == Bin::of(new) {
            self.largest.leave(old);
            self.largest.enter(new);
            self.nodes.at_mut(id).set(Kind::Hole, new);
            return;
        }
        self.unlink(id, old);
        self.link(id, new);
    }

    /// Makes piece `id` a hole of `len`, first in its bin.
    #[inline]
    fn link(&mut self, id: u32, len: u64) {
        let bin = Bin::of(len);
        let head = self.bins.head(bin);
        let node = self.nodes.at_mut(id);
        node.set(Kind::Hole, len);
        node.bin_prev = NONE;
        node.bin_next = head;
        if head != NONE {
            self.nodes.at_mut(head).bin_prev = id;
        }
        self.bins.set_head(bin, id);
        self.holes += 1;
        self.largest.enter(len);
    }

    /// Takes hole `id` of `len` out of its bin.
    #[inline]
    fn unlink(&mut self, id: u32, len: u64) {
        let Node { bin_prev, bin_next, .. } = *self.nodes.at(id);
        if bin_next != NONE {
            self.nodes.at_mut(bin_next).bin_prev = bin_prev;
        }
        if bin_prev != NONE {
            self.nodes.at_mut(bin_prev).bin_next = bin_next;
        } else {
            self.bins.set_head(Bin::of(len), bin_next);
        }
        self.holes -= 1;
        self.largest.leave(len);
    }
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
