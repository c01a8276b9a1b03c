//! One value over several pieces of memory.

use std::sync::Arc;

use springtide_driver::{Lane, Seat};
use springtide_hal::Span;

use crate::memory::Slice;

/// Why memory of another client is refused.
pub(crate) const FOREIGN: &str = "the memory is registered with another client";

/// The pieces of registered memory that one value is read to or written from, in the order of its bytes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Parts<'a> {
    pieces: Pieces<'a>,
    len: u64,
}

#[derive(Clone, Copy, Debug)]
enum Pieces<'a> {
    One(Slice<'a>),
    Many(&'a [Slice<'a>]),
}

impl<'a> Parts<'a> {
    /// No bytes.
    pub(crate) const NONE: Self = Self { pieces: Pieces::Many(&[]), len: 0 };

    pub(crate) const fn one(slice: Slice<'a>) -> Self {
        Self { pieces: Pieces::One(slice), len: slice.len() }
    }

    /// `None` if there are more bytes than a `u64` counts.
    pub(crate) fn many(slices: &'a [Slice<'a>]) -> Option<Self> {
        let len = slices.iter().try_fold(0u64, |sum, slice| sum.checked_add(slice.len()))?;
        Some(Self { pieces: Pieces::Many(slices), len })
    }

    pub(crate) const fn len(&self) -> u64 {
        self.len
    }

    pub(crate) const fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Whether they were given as a list.
    pub(crate) const fn is_list(&self) -> bool {
        matches!(self.pieces, Pieces::Many(_))
    }

    /// The first `len` bytes of them, or all if there are fewer.
    pub(crate) fn first(self, len: u64) -> Self {
        Self { len: self.len.min(len), ..self }
    }

    /// The pieces that hold its bytes; none is empty.
    pub(crate) fn slices(&self) -> impl Iterator<Item = Slice<'a>> {
        let pieces = match &self.pieces {
            Pieces::One(slice) => core::slice::from_ref(slice),
            Pieces::Many(slices) => slices,
        };
        let mut left = self.len;
        let cut = pieces.iter().map(move |&slice| {
            let len = slice.len.min(left);
            left -= len;
            Slice { len, ..slice }
        });
        cut.filter(|slice| !slice.is_empty())
    }

    pub(crate) fn spans(&self) -> impl Iterator<Item = Span<'a>> {
        self.slices().map(Slice::span)
    }

    /// Whether all of them are registered with `lane`.
    pub(crate) fn belong_to(&self, lane: &Arc<Seat<Lane>>) -> bool {
        self.slices().all(|slice| slice.memory.is_registered_with(lane))
    }
}
