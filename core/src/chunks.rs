//! An array that grows by chunks: no growth moves what is there, so none takes long.

use alloc::boxed::Box;
use alloc::vec::Vec;
use core::ops::{Index, IndexMut};

/// Elements by number, in chunks of `N`, a power of two.
///
/// A growth step fills one chunk. The array of chunks moves when it grows: eight bytes for `N` elements.
#[derive(Clone, Debug)]
pub(crate) struct Chunks<T, const N: usize>(Vec<Box<[T; N]>>);

impl<T, const N: usize> Default for Chunks<T, N> {
    fn default() -> Self {
        Self::new()
    }
}

impl<T, const N: usize> Chunks<T, N> {
    const POWER: () = assert!(N.is_power_of_two());

    /// No elements.
    pub(crate) const fn new() -> Self {
        let () = Self::POWER;
        Self(Vec::new())
    }

    /// How many elements there are.
    #[inline]
    pub(crate) const fn len(&self) -> usize {
        self.0.len() * N
    }

    /// Makes `index` valid. `vacant` fills new chunks; there is at most one for numbers that come in order.
    #[inline]
    pub(crate) fn reach(&mut self, index: u32, vacant: fn() -> T) {
        while self.len() <= index as usize {
            self.grow(vacant);
        }
    }

    #[cold]
    fn grow(&mut self, vacant: fn() -> T) {
        let chunk: Box<[T]> = core::iter::repeat_with(vacant).take(N).collect();
        self.0.extend(chunk.try_into().ok());
    }

    /// Element `index`, if it is valid.
    #[inline]
    pub(crate) fn get(&self, index: u32) -> Option<&T> {
        self.0.get(index as usize / N).map(|chunk| &chunk[index as usize % N])
    }

    /// Element `index`, if it is valid, to change.
    #[inline]
    pub(crate) fn get_mut(&mut self, index: u32) -> Option<&mut T> {
        self.0.get_mut(index as usize / N).map(|chunk| &mut chunk[index as usize % N])
    }
}

impl<T, const N: usize> Index<u32> for Chunks<T, N> {
    type Output = T;

    #[inline]
    fn index(&self, index: u32) -> &T {
        &self.0[index as usize / N][index as usize % N]
    }
}

impl<T, const N: usize> IndexMut<u32> for Chunks<T, N> {
    #[inline]
    fn index_mut(&mut self, index: u32) -> &mut T {
        &mut self.0[index as usize / N][index as usize % N]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn growth_moves_nothing() {
        let mut chunks: Chunks<u64, 8> = Chunks::new();
        assert_eq!((chunks.len(), chunks.get(0)), (0, None));
        chunks.reach(0, || 7);
        let first: *const u64 = &raw const chunks[0];
        chunks[3] = 1;
        for index in 0..1_000 {
            chunks.reach(index, || 9);
        }
        assert_eq!((chunks.len(), &raw const chunks[0]), (1_000, first));
        assert_eq!((chunks[0], chunks[3], chunks[8], chunks[999]), (7, 1, 9, 9));
        assert!(chunks.get(1_000).is_none() && chunks.get_mut(u32::MAX).is_none());
    }

    #[test]
    fn reaches_far() {
        let mut chunks: Chunks<u8, 4> = Chunks::default();
        chunks.reach(9, u8::default);
        *chunks.get_mut(11).unwrap() = 3;
        assert_eq!((chunks.len(), chunks.get(11), chunks.get(12)), (12, Some(&3), None));
    }
}
