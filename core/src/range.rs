//! Checked ranges of bytes.

use core::fmt;

use serde::{Deserialize, Serialize};

/// Allocations are multiples of this many bytes, and start at one.
pub const GRANULE: u64 = 64;

/// Bytes `offset .. offset + len` of something that is named elsewhere. Never wraps: construction checks.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
pub struct Extent {
    offset: u64,
    len: u64,
}

impl Extent {
    /// The bytes `offset .. offset + len`; `None` if the end does not fit in a `u64`.
    pub const fn new(offset: u64, len: u64) -> Option<Self> {
        match offset.checked_add(len) {
            Some(_) => Some(Self { offset, len }),
            None => None,
        }
    }

    /// The first byte.
    pub const fn offset(self) -> u64 {
        self.offset
    }

    /// How many bytes.
    pub const fn len(self) -> u64 {
        self.len
    }

    /// Whether there are no bytes.
    pub const fn is_empty(self) -> bool {
        self.len == 0
    }

    /// One past the last byte.
    pub const fn end(self) -> u64 {
        // The sum was checked by `new`; extents that came off the wire are checked by `is_sound`.
        self.offset.saturating_add(self.len)
    }

    /// Whether the end fits in a `u64`. Only an extent that came off the wire can be unsound.
    pub const fn is_sound(self) -> bool {
        self.offset.checked_add(self.len).is_some()
    }

    /// Whether all of `other` lies inside.
    pub const fn contains(self, other: Self) -> bool {
        other.is_sound() && self.offset <= other.offset && other.end() <= self.end()
    }

    /// Whether the two share a byte.
    pub const fn overlaps(self, other: Self) -> bool {
        self.offset < other.end() && other.offset < self.end()
    }

    /// The bytes `at .. at + len` counted from this extent's start; `None` if they do not all lie inside.
    pub const fn slice(self, at: u64, len: u64) -> Option<Self> {
        match at.checked_add(len) {
            Some(end) if end <= self.len => Some(Self { offset: self.offset + at, len }),
            _ => None,
        }
    }
}

impl fmt::Debug for Extent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}+{}", self.offset, self.len)
    }
}

/// `len` rounded up to the [`GRANULE`]; `None` if that does not fit in a `u64`.
pub const fn granules(len: u64) -> Option<u64> {
    match len.checked_add(GRANULE - 1) {
        Some(sum) => Some(sum / GRANULE * GRANULE),
        None => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_wraps() {
        assert!(Extent::new(u64::MAX, 1).is_none());
        let all = Extent::new(0, u64::MAX).unwrap();
        assert!(all.slice(u64::MAX, 1).is_none());
        assert_eq!(granules(u64::MAX), None);
        assert_eq!(granules(65), Some(128));
        assert_eq!(granules(0), Some(0));
    }

    #[test]
    fn unsound_extents_are_inside_nothing() {
        let unsound = Extent { offset: u64::MAX, len: 2 };
        assert!(!Extent::new(0, u64::MAX).unwrap().contains(unsound));
    }

    #[test]
    fn contains_and_overlaps_at_the_edges() {
        let a = Extent::new(10, 10).unwrap();
        assert!(a.contains(Extent::new(10, 10).unwrap()));
        assert!(!a.contains(Extent::new(10, 11).unwrap()));
        assert!(!a.overlaps(Extent::new(20, 1).unwrap()));
        assert!(a.overlaps(Extent::new(19, 1).unwrap()));
        assert_eq!(a.slice(2, 8), Extent::new(12, 8));
        assert_eq!(a.slice(2, 9), None);
    }
}
