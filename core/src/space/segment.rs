//! One segment: whose it is, and its allocator.

use alloc::boxed::Box;

use super::{Handle, MAX_SEGMENT_LEN, Misuse, OffsetAllocator, UniformAllocator, Waste};
use crate::id::MemberId;
use crate::range::{Extent, GRANULE};

/// How a segment's bytes are given out; chosen at mount.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum AllocatorKind {
    /// Any length, joined when free: [`OffsetAllocator`].
    #[default]
    Offset,
    /// Slots of a size class in pages: [`UniformAllocator`].
    Uniform {
        /// Bytes a page: a multiple of the granule that divides the segment, and the longest value it can hold.
        page: u64,
    },
}

/// A segment's allocator, of either kind.
#[derive(Clone, Debug)]
pub enum Allocator {
    /// See [`OffsetAllocator`].
    Offset(OffsetAllocator),
    /// See [`UniformAllocator`].
    Uniform(UniformAllocator),
}

impl Allocator {
    /// An allocator for `len` bytes; `None` if the length is zero, too long or no multiple of its parts.
    pub fn new(kind: AllocatorKind, len: u64) -> Option<Self> {
        if len == 0 || !len.is_multiple_of(GRANULE) || len > MAX_SEGMENT_LEN {
            return None;
        }
        match kind {
            AllocatorKind::Offset => Some(Self::Offset(OffsetAllocator::new(len))),
            AllocatorKind::Uniform { page } => UniformAllocator::new(len, page).map(Self::Uniform),
        }
    }

    /// Bytes granted, with their padding.
    pub const fn used(&self) -> u64 {
        match self {
            Self::Offset(offset) => offset.used(),
            Self::Uniform(uniform) => uniform.used(),
        }
    }

    /// The longest value that fits now, exactly.
    pub fn largest_hole(&self) -> u64 {
        match self {
            Self::Offset(offset) => offset.largest_hole(),
            Self::Uniform(uniform) => uniform.largest_hole(),
        }
    }

    /// What is lost to slots and pages; nothing with the offset allocator.
    pub fn waste(&self) -> Waste {
        match self {
            Self::Offset(_) => Waste::default(),
            Self::Uniform(uniform) => uniform.waste(),
        }
    }

    pub(super) fn find_largest_hole(&mut self) -> u64 {
        match self {
            Self::Offset(offset) => offset.find_largest_hole(),
            Self::Uniform(uniform) => uniform.largest_hole(),
        }
    }

    pub(super) const fn longest(&self) -> u64 {
        match self {
            Self::Offset(offset) => offset.capacity(),
            Self::Uniform(uniform) => uniform.longest(),
        }
    }

    #[inline]
    pub(super) fn allocate(&mut self, len: u64) -> Option<(Extent, Handle)> {
        match self {
            Self::Offset(offset) => offset.allocate(len),
            Self::Uniform(uniform) => uniform.allocate(len),
        }
    }

    #[inline]
    pub(super) fn warm(&self, handle: Handle) -> u64 {
        match self {
            Self::Offset(offset) => offset.warm(handle),
            Self::Uniform(_) => 0,
        }
    }

    #[inline]
    pub(super) fn free(&mut self, extent: Extent, handle: Handle) -> Result<(), Misuse> {
        match self {
            Self::Offset(offset) => offset.free(extent, handle),
            Self::Uniform(uniform) => uniform.free(extent, handle),
        }
    }
}

/// Whether a segment takes new allocations (S0A-048).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Visibility {
    /// It does.
    Open,
    /// It does not; what it holds stays.
    Hidden,
}

/// What a member lends.
#[derive(Clone, Copy, Debug)]
pub struct SegmentSpec<'a> {
    /// Its name; one owner uses a name once, two owners may use the same.
    pub name: &'a str,
    /// Who lends it.
    pub owner: MemberId,
    /// Its length in bytes: a multiple of the granule, at most [`MAX_SEGMENT_LEN`].
    pub len: u64,
    /// How its bytes are given out.
    pub allocator: AllocatorKind,
}

/// A mounted segment.
#[derive(Clone, Debug)]
pub struct Segment {
    pub(super) name: Box<str>,
    pub(super) owner: MemberId,
    pub(super) len: u64,
    pub(super) visibility: Visibility,
    pub(super) allocator: Allocator,
}

impl Segment {
    /// Its name.
    pub const fn name(&self) -> &str {
        &self.name
    }

    /// Who lends it.
    pub const fn owner(&self) -> MemberId {
        self.owner
    }

    /// Its length in bytes.
    #[expect(clippy::len_without_is_empty, reason = "no mounted segment has no bytes")]
    pub const fn len(&self) -> u64 {
        self.len
    }

    /// Bytes granted, with their padding: never more than [`len`](Self::len).
    pub const fn used(&self) -> u64 {
        self.allocator.used()
    }

    /// Bytes not granted.
    pub const fn free(&self) -> u64 {
        self.len - self.allocator.used()
    }

    /// The longest value that fits now, in bytes, exactly. See [`OffsetAllocator::largest_hole`] for the cost.
    pub fn largest_hole(&self) -> u64 {
        self.allocator.largest_hole()
    }

    /// The longest value that fits when it is empty, in bytes.
    pub const fn longest(&self) -> u64 {
        self.allocator.longest()
    }

    /// What is lost to slots and pages.
    pub fn waste(&self) -> Waste {
        self.allocator.waste()
    }

    /// Whether it takes new allocations.
    pub const fn visibility(&self) -> Visibility {
        self.visibility
    }
}
