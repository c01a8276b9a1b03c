//! The pieces of a segment.

use super::NONE;
use crate::chunks::Chunks;

const CHUNK: usize = 1 << 14;

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
///
/// A live piece knows whether its neighbours are holes: to free it, only neighbours that it joins are read.
#[derive(Clone, Copy, Debug)]
#[repr(align(32))]
pub(super) struct Node {
    /// First granule.
    pub(super) offset: u64,
    /// Length in granules above; below it [`BEFORE`] and [`AFTER`], and the kind.
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

/// The piece before a live one is a hole.
pub(super) const BEFORE: u64 = 1 << 2;
/// The piece after a live one is a hole.
pub(super) const AFTER: u64 = 1 << 3;
const LEN_SHIFT: u32 = 4;

impl Node {
    const VACANT: Self =
        Self { offset: 0, tag: Kind::Vacant as u64, prev: NONE, next: NONE, bin_prev: NONE, bin_next: NONE };

    /// Length in granules.
    #[inline]
    pub(super) const fn len(&self) -> u64 {
        self.tag >> LEN_SHIFT
    }

    /// Whether the piece is of `kind`.
    #[inline]
    pub(super) const fn is(&self, kind: Kind) -> bool {
        self.tag & 3 == kind as u64
    }

    /// Whether the neighbour at `side` ([`BEFORE`] or [`AFTER`]) is a hole, for a live piece.
    #[inline]
    pub(super) const fn has_hole(&self, side: u64) -> bool {
        self.tag & side != 0
    }

    /// Notes that the neighbour at `side` is a hole now.
    #[inline]
    pub(super) const fn note_hole(&mut self, side: u64) {
        self.tag |= side;
    }

    /// Notes that the neighbour at `side` is live now.
    #[inline]
    pub(super) const fn note_live(&mut self, side: u64) {
        self.tag &= !side;
    }

    /// Makes it `len` granules of `kind`, beside no hole.
    #[inline]
    pub(super) const fn set(&mut self, kind: Kind, len: u64) {
        self.tag = len << LEN_SHIFT | kind as u64;
    }
}

/// All nodes of one segment. A growth step fills one chunk of half a MiB.
#[derive(Clone, Debug)]
pub(super) struct Nodes {
    nodes: Chunks<Node, CHUNK>,
    /// Nodes ever used.
    fresh: u32,
    /// The vacant node used last.
    vacant: u32,
}

impl Nodes {
    /// No nodes.
    pub(super) const fn new() -> Self {
        Self { nodes: Chunks::new(), fresh: 0, vacant: NONE }
    }

    /// Node `id`, if there ever was one.
    #[inline]
    pub(super) fn get(&self, id: u32) -> Option<&Node> {
        self.nodes.get(id)
    }

    /// Node `id`, which exists.
    #[inline]
    pub(super) fn at(&self, id: u32) -> &Node {
        &self.nodes[id]
    }

    /// Node `id`, which exists, to change.
    #[inline]
    pub(super) fn at_mut(&mut self, id: u32) -> &mut Node {
        &mut self.nodes[id]
    }

    /// A node to fill in; `None` when 2³² − 1 are in use.
    #[inline]
    pub(super) fn add(&mut self) -> Option<u32> {
        let id = self.vacant;
        if id == NONE {
            return self.add_fresh();
        }
        self.vacant = self.at(id).bin_next;
        Some(id)
    }

    #[cold]
    fn add_fresh(&mut self) -> Option<u32> {
        let id = self.fresh;
        if id == NONE {
            return None;
        }
        self.nodes.reach(id, || Node::VACANT);
        self.fresh += 1;
        Some(id)
    }

    /// Takes node `id` out; it is used again first.
    #[inline]
    pub(super) fn remove(&mut self, id: u32) {
        let vacant = self.vacant;
        let node = self.at_mut(id);
        node.set(Kind::Vacant, 0);
        node.bin_next = vacant;
        self.vacant = id;
    }
}

const _: () = assert!(size_of::<Node>() == 32);
