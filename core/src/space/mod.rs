//! Who owns which bytes of which segment: the allocators.
//!
//! [`Space`] is the table of segments. Members lend them ([`Space::mount`]), callers take extents out of them
//! ([`Space::allocate_in`], [`Space::place`]) and give them back ([`Space::free`]). Every grant carries the id of its
//! segment (S0A-011, S0B-100); ids are generational, so a grant whose segment went away finds nothing, and giving it
//! back changes nothing and says so (S0A-013).
//!
//! Values of zero bytes need no extent: callers keep them in the index alone and do not come here.
//!
//! **Shards.** A shard that allocates by itself does it inside a *span*, a large extent that the one shared `Space`
//! granted it. Such a span is mounted as a segment of the shard's own `Space`, and the shard adds the span's offset to
//! what it grants; with one shard, the default, the shared `Space` is used directly and the span is the segment.

use core::fmt;

use crate::error::Code;
use crate::id::SegmentId;
use crate::range::{Extent, GRANULE, granules};

mod bins;
mod nodes;
mod offset;
mod segment;
mod table;
mod uniform;

pub use offset::{LOOKS, OffsetAllocator};
pub use segment::{Allocator, AllocatorKind, Segment, SegmentSpec, Visibility};
pub use table::{Removed, Space, Usage};
pub use uniform::{UniformAllocator, Waste};

/// No entry, in the tables of the allocators.
const NONE: u32 = u32::MAX;

/// The longest segment: 1 PiB.
pub const MAX_SEGMENT_LEN: u64 = 1 << 50;

/// How many replicas one value may have.
pub const MAX_REPLICAS: usize = 8;

/// `len` in granules, rounded up, at least one.
#[inline]
const fn granules_of(len: u64) -> Option<u64> {
    match granules(len) {
        Some(0) => Some(1),
        Some(bytes) => Some(bytes / GRANULE),
        None => None,
    }
}

/// What an allocator needs, beside the extent, to find it again.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Handle(u32);

impl Handle {
    /// The handle as a number, to store.
    pub const fn to_bits(self) -> u32 {
        self.0
    }

    /// The handle of [`to_bits`](Self::to_bits). A wrong one is found out when it is used.
    pub const fn from_bits(bits: u32) -> Self {
        Self(bits)
    }
}

/// Bytes that were granted: where, and what to give back.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Grant {
    /// The segment.
    pub segment: SegmentId,
    /// The bytes inside the segment, their length rounded up to the granule.
    pub extent: Extent,
    /// What the segment's allocator calls it.
    pub handle: Handle,
}

const _: () = assert!(size_of::<Grant>() <= 32);

/// The handle does not hold that extent: a double free, or a grant that was never given. Nothing changed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Misuse;

impl fmt::Display for Misuse {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("this extent is not live: it was given back already or never granted")
    }
}

impl core::error::Error for Misuse {}

/// Why a segment was not mounted.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum MountError {
    /// The length is zero, no multiple of the granule (or of the page), or over [`MAX_SEGMENT_LEN`]: mount another
    /// length.
    Invalid,
    /// The owner has a segment of this name, this one: use it or unmount it first.
    Exists(SegmentId),
}

impl MountError {
    /// The public number.
    pub const fn code(self) -> Code {
        match self {
            Self::Invalid => Code::INVALID_PARAMS,
            Self::Exists(_) => Code::SEGMENT_ALREADY_EXISTS,
        }
    }
}

impl fmt::Display for MountError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Invalid => {
                write!(f, "a segment's length is a multiple of {GRANULE} bytes (or of its pages), not zero")?;
                write!(f, " and at most {MAX_SEGMENT_LEN}")
            }
            Self::Exists(id) => write!(f, "the owner has a segment of this name already: {id}"),
        }
    }
}

impl core::error::Error for MountError {}

/// Why nothing was granted.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum NoSpace {
    /// No segment accepts allocations, or all that do were to be avoided: wait for a node.
    NoSegments,
    /// The value is longer than every segment: store less; eviction cannot help.
    NeverFits {
        /// The longest value that any segment could hold when empty, in bytes.
        largest_segment: u64,
    },
    /// No hole was found: evict, then try again.
    NoHole {
        /// The largest hole among the segments that were allowed, in bytes; up to a thirty-second less if very many
        /// are about as long. It can be as long as the value: the search is bounded (see [`LOOKS`]).
        largest_hole: u64,
    },
}

impl NoSpace {
    /// The public number.
    pub const fn code(self) -> Code {
        match self {
            Self::NeverFits { .. } => Code::NEVER_FITS,
            Self::NoSegments | Self::NoHole { .. } => Code::NO_AVAILABLE_HANDLE,
        }
    }
}

impl fmt::Display for NoSpace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoSegments => f.write_str("no segment accepts allocations"),
            Self::NeverFits { largest_segment } => {
                write!(f, "the value never fits: the largest segment holds {largest_segment} bytes")
            }
            Self::NoHole { largest_hole } => write!(f, "no hole: the largest has {largest_hole} bytes"),
        }
    }
}

impl core::error::Error for NoSpace {}

/// Why a grant was not taken back. Nothing changed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum FreeError {
    /// Its segment is gone, and the bytes with it: nothing is left to do.
    Gone,
    /// It is not live: the caller counts wrongly.
    Misuse,
}

impl FreeError {
    /// The public number.
    pub const fn code(self) -> Code {
        match self {
            Self::Gone => Code::SEGMENT_NOT_FOUND,
            Self::Misuse => Code::INTERNAL_ERROR,
        }
    }
}

impl From<Misuse> for FreeError {
    fn from(_: Misuse) -> Self {
        Self::Misuse
    }
}

impl fmt::Display for FreeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Gone => f.write_str("the segment is gone, and its extents with it"),
            Self::Misuse => Misuse.fmt(f),
        }
    }
}

impl core::error::Error for FreeError {}

#[cfg(test)]
mod tests;
