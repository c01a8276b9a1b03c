//! Size bins: which lengths share a list, and a two-level bitmap that finds the next list that is not empty.
//!
//! A length of up to 63 granules has a bin of its own; above that, every power of two is cut into 32 bins, so that
//! the lengths of one bin differ by less than a thirty-second.

use alloc::boxed::Box;
use alloc::vec;

use super::NONE;

/// log₂ of the bins that one power of two is cut into.
const FINE_BITS: u32 = 5;
const FINE: usize = 1 << FINE_BITS;
const COARSE: usize = 64;
const BINS: usize = COARSE * FINE;

/// A bin, by its number: larger numbers hold longer lengths.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) struct Bin(usize);

impl Bin {
    /// The bin of lengths like `len` (granules, at least one).
    #[inline]
    pub(super) const fn of(len: u64) -> Self {
        if len < FINE as u64 {
            return Self(len as usize);
        }
        let shift = len.ilog2() - FINE_BITS;
        Self(((shift as usize) << FINE_BITS) + (len >> shift) as usize)
    }

    /// The first bin that holds no length below `len`.
    pub(super) const fn at_least(len: u64) -> Self {
        let bin = Self::of(len);
        if bin.floor() < len { bin.above() } else { bin }
    }

    /// The bin of the next longer lengths.
    #[inline]
    pub(super) const fn above(self) -> Self {
        Self(self.0 + 1)
    }

    /// The shortest length of this bin.
    pub(super) const fn floor(self) -> u64 {
        if self.0 < 2 * FINE {
            return self.0 as u64;
        }
        let shift = (self.0 >> FINE_BITS) - 1;
        ((self.0 & (FINE - 1)) as u64 + FINE as u64) << shift
    }
}

/// The first entry of a bin's list.
///
/// Its length is kept here, as whether it fits is then known without a look at the entry, which is often out of the
/// cache.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Head {
    /// The entry, or [`NONE`].
    pub(super) id: u32,
    /// Its length in granules; zero for `NONE`.
    pub(super) len: u64,
}

impl Head {
    /// No entry.
    pub(super) const NONE: Self = Self { id: NONE, len: 0 };
}

/// The first entry of every bin's list.
#[derive(Clone, Debug)]
pub(super) struct Bins {
    coarse: u64,
    fine: [u32; COARSE],
    heads: Box<[Head]>,
}

impl Bins {
    /// Empty lists.
    pub(super) fn new() -> Self {
        Self { coarse: 0, fine: [0; COARSE], heads: vec![Head::NONE; BINS].into_boxed_slice() }
    }

    /// The first entry of `bin`.
    #[inline]
    pub(super) fn head(&self, bin: Bin) -> Head {
        self.heads[bin.0]
    }

    /// Makes `head` the first of `bin`.
    #[inline]
    pub(super) fn set_head(&mut self, bin: Bin, head: Head) {
        let place = &mut self.heads[bin.0];
        let (was, is) = (place.id != NONE, head.id != NONE);
        *place = head;
        if was != is {
            self.mark(bin);
        }
    }

    /// Turns the mark of `bin` over: it has become empty, or is no longer.
    fn mark(&mut self, bin: Bin) {
        let (coarse, fine) = (bin.0 >> FINE_BITS, bin.0 & (FINE - 1));
        self.fine[coarse] ^= 1 << fine;
        self.coarse &= !(1 << coarse);
        self.coarse |= u64::from(self.fine[coarse] != 0) << coarse;
    }

    /// The lowest bin from `bin` up that is not empty.
    #[inline]
    pub(super) fn first_from(&self, bin: Bin) -> Option<Bin> {
        let (coarse, fine) = (bin.0 >> FINE_BITS, bin.0 & (FINE - 1));
        let here = self.fine.get(coarse)? & (u32::MAX << fine);
        if here != 0 {
            return Some(Bin(coarse << FINE_BITS | here.trailing_zeros() as usize));
        }
        // Two shifts, as one by 64 would not be a shift.
        let above = self.coarse & (u64::MAX << coarse << 1);
        if above == 0 {
            return None;
        }
        let coarse = above.trailing_zeros() as usize;
        Some(Bin(coarse << FINE_BITS | self.fine[coarse].trailing_zeros() as usize))
    }

    /// The highest bin that is not empty.
    pub(super) fn last(&self) -> Option<Bin> {
        let coarse = self.coarse.checked_ilog2()? as usize;
        let fine = self.fine[coarse].checked_ilog2()? as usize;
        Some(Bin(coarse << FINE_BITS | fine))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bins_are_in_order_and_floors_are_tight() {
        let mut last = Bin::of(1);
        for len in 2..200_000u64 {
            let bin = Bin::of(len);
            assert!(bin == last || bin == last.above(), "{len}");
            assert!(bin.floor() <= len && len < bin.above().floor(), "{len}");
            assert!(Bin::at_least(len).floor() >= len);
            last = bin;
        }
    }

    #[test]
    fn the_longest_length_has_a_bin() {
        for len in [1 << 34, (1 << 58) - 1, u64::MAX] {
            let bin = Bin::of(len);
            assert!(bin.0 < BINS && bin.floor() <= len);
            assert!(len - bin.floor() < len / 32);
        }
    }

    #[test]
    fn finds_the_next_and_the_last() {
        let mut bins = Bins::new();
        assert_eq!((bins.first_from(Bin(0)), bins.last()), (None, None));
        for at in [3, 40, 2_047] {
            bins.set_head(Bin(at), Head { id: 9, len: 1 });
        }
        assert_eq!(bins.first_from(Bin(0)), Some(Bin(3)));
        assert_eq!(bins.first_from(Bin(4)), Some(Bin(40)));
        assert_eq!(bins.first_from(Bin(41)), Some(Bin(2_047)));
        assert_eq!(bins.first_from(Bin(2_048)), None);
        bins.set_head(Bin(2_047), Head::NONE);
        assert_eq!(bins.first_from(Bin(41)), None);
        assert_eq!(bins.last(), Some(Bin(40)));
    }
}
