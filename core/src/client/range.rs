//! Which bytes must be read in order to give out, and check, a range of a value.

use crate::checksum::{BLOCK, Checksum, trailer_len};
use crate::range::Extent;

/// What to read for a range: whole blocks, so that each can be checked.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Cover {
    /// The bytes of the value to read.
    pub data: Extent,
    /// The bytes behind the value that hold the sums of these blocks, counted from the replica's first byte; empty
    /// when the value has one sum for the whole, or none.
    pub sums: Extent,
    /// Where the wanted bytes begin in `data`.
    pub skip: u64,
}

/// The cover of `at .. at + len` of a value of `value` bytes; `None` if the range reaches outside (S3A-111).
pub fn cover(value: u64, checksum: Checksum, at: u64, len: u64) -> Option<Cover> {
    let whole = Extent::new(0, value)?;
    let wanted = whole.slice(at, len)?;
    let none = Extent::default();
    if checksum == Checksum::None || len == 0 {
        return Some(Cover { data: wanted, sums: none, skip: 0 });
    }
    if trailer_len(value) == 0 {
        return Some(Cover { data: whole, sums: none, skip: at });
    }
    let first = at / BLOCK;
    let last = (wanted.end() - 1) / BLOCK;
    let start = first * BLOCK;
    let end = (last + 1).saturating_mul(BLOCK).min(value);
    let sums = Extent::new(value.checked_add(first * 4)?, (last - first + 1) * 4)?;
    Some(Cover { data: Extent::new(start, end - start)?, sums, skip: at - start })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn extent(offset: u64, len: u64) -> Extent {
        Extent::new(offset, len).unwrap()
    }

    const SUM: Checksum = Checksum::Crc32c(0);

    #[test]
    fn small_values_are_read_whole() {
        let got = cover(100, SUM, 10, 5).unwrap();
        assert_eq!((got.data, got.sums.len(), got.skip), (extent(0, 100), 0, 10));
    }

    #[test]
    fn large_values_by_block() {
        let value = 3 * BLOCK + 7;
        let got = cover(value, SUM, BLOCK + 1, BLOCK).unwrap();
        assert_eq!((got.data, got.sums, got.skip), (extent(BLOCK, 2 * BLOCK), extent(value + 4, 8), 1));
        let tail = cover(value, SUM, value - 1, 1).unwrap();
        assert_eq!((tail.data, tail.sums, tail.skip), (extent(3 * BLOCK, 7), extent(value + 12, 4), 6));
    }

    /// Lengths come from the master, which may be mad.
    #[test]
    fn absurd_lengths_do_not_wrap() {
        let value = u64::MAX - 7;
        assert_eq!(cover(value, SUM, value - 1, 1), None, "its sums would stand behind the last byte");
        let first = cover(value, SUM, 0, 1).unwrap();
        assert_eq!((first.data, first.sums), (extent(0, BLOCK), extent(value, 4)));
    }

    #[test]
    fn outside_is_refused_and_unchecked_values_are_read_as_asked() {
        assert_eq!(cover(10, SUM, 5, 6), None);
        assert_eq!(cover(10, SUM, u64::MAX, 2), None);
        assert_eq!(cover(10, Checksum::None, 5, 5).unwrap().data, extent(5, 5));
        assert!(cover(10, SUM, 10, 0).unwrap().data.is_empty());
        assert!(cover(0, SUM, 0, 0).unwrap().data.is_empty());
    }
}
