//! The ids of this crate's slabs.

use core::num::NonZeroU32;

use springtide_core::id::Id;

/// Names a task, or a descriptor that is watched.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Token {
    index: u32,
    generation: NonZeroU32,
}

impl Id for Token {
    fn new(index: u32, generation: NonZeroU32) -> Self {
        Self { index, generation }
    }

    fn index(self) -> usize {
        self.index as usize
    }

    fn generation(self) -> NonZeroU32 {
        self.generation
    }
}

impl Token {
    /// As one number, which is at least 2³².
    pub(crate) const fn to_bits(self) -> u64 {
        (self.generation.get() as u64) << 32 | self.index as u64
    }

    /// The token of [`to_bits`](Self::to_bits).
    pub(crate) const fn from_bits(bits: u64) -> Option<Self> {
        match NonZeroU32::new((bits >> 32) as u32) {
            Some(generation) => Some(Self { index: bits as u32, generation }),
            None => None,
        }
    }
}
