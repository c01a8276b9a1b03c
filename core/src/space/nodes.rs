//! The pieces of a segment, in a table that grows by chunks: no growth moves what is there.

use alloc::boxed::Box;
use alloc::vec;
use alloc::vec::Vec;

use super::NONE;

const CHUNK_BITS: u32 = 14;
const CHUNK: usize = 1 << CHUNK_BITS;

/// What a piece is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Kind {
    /// No piece: the node waits to be used again.
    Vacant = 0,
    /// Granted bytes.
    Live = 1,
    /// Free bytes; neither neighbour is a hole.
    Hole = 2,
}

/// One piece: half a cache line, so that none lies across two.
#[derive(Clone, Copy, Debug)]
#[repr(align(32))]
pub(super) struct Node {
    /// First granule.
    pub(super) offset: u64,
    /// Length in granules, shifted by two, and the kind.
    tag: u64,
    /// The piece before this one in the segment.
    pub(super) prev: u32,
    /// The piece after this one in the segment.
    pub(super) next: u32,
    /// The hole before this one in its bin.
    pub(super) bin_prev: u32,
    /// The hole after this one in its bin; for a vacant node, the next vacant one.
    pub(super) bin_next: u32,
}

impl Node {
    const VACANT: Self =
        Self { offset: 0, tag: Kind::Vacant as u64, prev: NONE, next: NONE, bin_prev: NONE, bin_next: NONE };

    /// A piece of `len` granules from `offset`, between `prev` and `next`.
    #[inline]
    pub(super) const fn new(kind: Kind, offset: u64, len: u64, prev: u32, next: u32) -> Self {
        Self { offset, tag: len << 2 | kind as u64, prev, next, bin_prev: NONE, bin_next: NONE }
    }

    /// Length in granules.
    #[inline]
    pub(super) const fn len(&self) -> u64 {
        self.tag >> 2
    }

    /// Whether the piece is of `kind`.
    #[inline]
    pub(super) const fn is(&self, kind: Kind) -> bool {
        self.tag & 3 == kind as u64
    }

    /// Makes it `len` granules of `kind`.
    #[inline]
    pub(super) const fn set(&mut self, kind: Kind, len: u64) {
        self.tag = len << 2 | kind as u64;
    }
}

/// All nodes of one segment. A growth step fills one chunk of half a MiB.
#[derive(Clone, Debug)]
pub(super) struct Nodes {
    chunks: Vec<Box<[Node; CHUNK]>>,
    /// Nodes ever used.
    fresh: u32,
    /// The vacant node used last.
    vacant: u32,
}

impl Nodes {
    /// No nodes.
    pub(super) const fn new() -> Self {
        Self { chunks: Vec::new(), fresh: 0, vacant: NONE }
    }

    /// Node `id`, if there ever was one.
    #[inline]
    pub(super) fn get(&self, id: u32) -> Option<&Node> {
        let chunk = self.chunks.get((id >> CHUNK_BITS) as usize)?;
        Some(&chunk[id as usize & (CHUNK - 1)])
    }

    /// Node `id`, which exists.
    #[inline]
    pub(super) fn at(&self, id: u32) -> &Node {
        &self.chunks[(id >> CHUNK_BITS) as usize][id as usize & (CHUNK - 1)]
    }

    /// Node `id`, which exists, to change.
    #[inline]
    pub(super) fn at_mut(&mut self, id: u32) -> &mut Node {
        &mut self.chunks[(id >> CHUNK_BITS) as usize][id as usize & (CHUNK - 1)]
    }

    /// Puts `node` in; `None` when 2³² − 1 are in use.
    #[inline]
    pub(super) fn add(&mut self, node: Node) -> Option<u32> {
        let id = self.vacant;
        if id == NONE {
            return self.add_fresh(node);
        }
        let place = self.at_mut(id);
        let next = place.bin_next;
        *place = node;
        self.vacant = next;
        Some(id)
    }

    fn add_fresh(&mut self, node: Node) -> Option<u32> {
        let id = self.fresh;
        if id == NONE {
            return None;
        }
        if id as usize == self.chunks.len() << CHUNK_BITS {
            let chunk = vec![Node::VACANT; CHUNK].into_boxed_slice();
            self.chunks.push(chunk.try_into().expect("a chunk has its length"));
        }
        self.fresh += 1;
        *self.at_mut(id) = node;
        Some(id)
    }

    /// Takes node `id` out; it is used again first.
    #[inline]
    pub(super) fn remove(&mut self, id: u32) {
        *self.at_mut(id) = Node { bin_next: self.vacant, ..Node::VACANT };
        self.vacant = id;
    }
}

const _: () = assert!(size_of::<Node>() == 32);
