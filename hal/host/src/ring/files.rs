//! Boards as memory files: how they come about, and their bulk bytes.

use std::os::fd::{AsFd, BorrowedFd};

use springtide_hal::{OutOfBounds, Span};

use super::words::{Own, Theirs};
use super::{Board, PeerBoard, Shape};
use crate::map::{MapError, View};
use crate::memory::{MemoryError, Options, Sharing, allocate};

impl Board {
    /// A board with nothing published and all flags zero.
    ///
    /// # Panics
    /// When `shape.slots` is no power of two.
    pub fn create(shape: Shape) -> Result<Self, MemoryError> {
        assert!(shape.slots.is_power_of_two(), "ring of {} slots", shape.slots);
        let options = Options { sharing: Sharing::Shared, ..Options::default() };
        Ok(Self { words: Own(allocate(shape.total(), options)?.block), shape, pushed: 0 })
    }

    /// The file that the peer maps.
    pub fn file(&self) -> BorrowedFd<'_> {
        let (file, _) = self.words.0.file().expect("a shared block has a file");
        file
    }

    /// The bulk bytes `at .. at + len`.
    pub fn bulk(&self, at: u64, len: u64) -> Result<Span<'_>, OutOfBounds> {
        if at.checked_add(len).is_none_or(|end| end > self.shape.bytes) {
            return Err(OutOfBounds);
        }
        self.words.0.span(self.shape.bulk() + at, len)
    }
}

impl PeerBoard {
    /// Maps the board behind `file`.
    pub fn map(file: impl AsFd, shape: Shape) -> Result<Self, MapError> {
        Ok(Self { words: Theirs(View::map(file, shape.total())?), shape })
    }

    /// Copies the bulk bytes from `at` on over all of `to`.
    pub fn copy_bulk(&self, at: u64, to: Span<'_>) -> Result<(), OutOfBounds> {
        if at.checked_add(to.len()).is_none_or(|end| end > self.shape.bytes) {
            return Err(OutOfBounds);
        }
        self.words.0.copy_to(self.shape.bulk() + at, to)
    }
}
