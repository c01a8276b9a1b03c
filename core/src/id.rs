//! Ids. Generational ones name a slot and its generation, so that a stale id never finds the slot's next tenant.

use core::fmt;
use core::num::NonZeroU32;

use serde::{Deserialize, Serialize};

/// What every generational id is made of; [`crate::slab::Slab`] gives them out.
pub trait Id: Copy + Eq + fmt::Debug {
    /// The id of slot `index` in its generation `generation`.
    fn new(index: u32, generation: NonZeroU32) -> Self;
    /// The slot.
    fn index(self) -> usize;
    /// The slot's generation.
    fn generation(self) -> NonZeroU32;
}

macro_rules! ids {
    ($($(#[$doc:meta])* $name:ident)*) => {$(
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        pub struct $name { index: u32, generation: NonZeroU32 }

        impl Id for $name {
            #[inline]
            fn new(index: u32, generation: NonZeroU32) -> Self { Self { index, generation } }
            #[inline]
            fn index(self) -> usize { self.index as usize }
            #[inline]
            fn generation(self) -> NonZeroU32 { self.generation }
        }

        impl $name {
            /// The id as one number, for the wire: generation above, index below.
            pub const fn to_bits(self) -> u64 { (self.generation.get() as u64) << 32 | self.index as u64 }

            /// The id of [`to_bits`](Self::to_bits); `None` if the generation is zero.
            pub const fn from_bits(bits: u64) -> Option<Self> {
                match NonZeroU32::new((bits >> 32) as u32) {
                    Some(generation) => Some(Self { index: bits as u32, generation }),
                    None => None,
                }
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, "{}({}.{})", stringify!($name), self.index, self.generation)
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, "{}.{}", self.index, self.generation)
            }
        }
    )*};
}

ids! {
    /// A registered process, as the master numbers it.
    MemberId
    /// A contiguous piece of memory that a member lends to the pool.
    SegmentId
    /// A stored value, finished or still being written.
    ObjectId
    /// Memory of this process that a lane's transports may touch.
    RegionId
    /// Memory of another process, as a lane knows it.
    RemoteId
    /// A way from this lane to one peer over one transport.
    PathId
    /// One operation in flight on a path.
    OpId
    /// Transfers submitted together.
    BatchId
    /// A write permission that a lane's transports know.
    TicketId
    /// A peer's segment, reachable over one or more paths.
    TargetId
}

/// One life of one process: random at start, so that a restarted process at the same address is somebody else.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize)]
pub struct Incarnation(pub u128);

impl fmt::Debug for Incarnation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:032x}", self.0)
    }
}

impl fmt::Display for Incarnation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:032x}", self.0)
    }
}

/// A tenant, as the master numbers it. Names are told apart at the edge; the core compares numbers.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default, Serialize, Deserialize)]
pub struct TenantId(pub u32);

/// A leader's term: grows with every election; embedded coordination persists it as its epoch.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default, Serialize, Deserialize)]
pub struct Term(pub u64);

/// Who asks: the process, on whose behalf, and which of its requests this is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Caller {
    /// The asking process.
    pub incarnation: Incarnation,
    /// The tenant whose keys are meant.
    pub tenant: TenantId,
    /// The request's number on its connection.
    pub request: u64,
}
