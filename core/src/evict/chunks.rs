//! An array that grows by chunks: no growth moves what is there.

use alloc::boxed::Box;
use alloc::vec;
use alloc::vec::Vec;
use core::ops::{Index, IndexMut};

/// Bytes of a chunk, at most; more than half of it, as a chunk has a power of two of elements.
const BYTES: usize = 128 << 10;

/// Elements by number; those never written are the default.
#[derive(Clone, Debug)]
pub(super) struct Chunks<T>(Vec<Box<[T]>>);

impl<T> Default for Chunks<T> {
    fn default() -> Self {
        Self(Vec::new())
    }
}

impl<T> Chunks<T> {
    const BITS: u32 = (BYTES / size_of::<T>()).ilog2();
    const CHUNK: usize = 1 << Self::BITS;
}

impl<T: Copy + Default> Chunks<T> {
    /// Makes `index` valid. Allocates one chunk whenever the numbers in use outgrow the last.
    #[inline]
    pub(super) fn reach(&mut self, index: u32) {
        while self.len() <= index as usize {
            self.0.push(vec![T::default(); Self::CHUNK].into_boxed_slice());
        }
    }
}

impl<T> Chunks<T> {
    /// How many elements are valid.
    pub(super) fn len(&self) -> usize {
        self.0.len() << Self::BITS
    }

    /// The element `index`, if it is valid.
    #[inline]
    pub(super) fn get(&self, index: u32) -> Option<&T> {
        self.0.get(index as usize >> Self::BITS).map(|chunk| &chunk[index as usize % Self::CHUNK])
    }
}

impl<T> Index<u32> for Chunks<T> {
    type Output = T;

    #[inline]
    fn index(&self, index: u32) -> &T {
        &self.0[index as usize >> Self::BITS][index as usize % Self::CHUNK]
    }
}

impl<T> IndexMut<u32> for Chunks<T> {
    #[inline]
    fn index_mut(&mut self, index: u32) -> &mut T {
        &mut self.0[index as usize >> Self::BITS][index as usize % Self::CHUNK]
    }
}
