//! Who owns which bytes of which segment: the allocators.
//!
//! Values of zero bytes need no extent: callers keep them in the index alone and do not come here.

use core::fmt;

use crate::range::{GRANULE, granules};

mod bins;
mod nodes;
mod offset;
mod uniform;

pub use offset::{LOOKS, OffsetAllocator};
pub use uniform::{UniformAllocator, Waste};
/// No entry, in the tables of the allocators.
const NONE: u32 = u32::MAX;

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

/// The handle does not hold that extent: a double free, or a grant that was never given. Nothing changed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Misuse;

impl fmt::Display for Misuse {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("this extent is not live: it was given back already or never granted")
    }
}

impl core::error::Error for Misuse {}
