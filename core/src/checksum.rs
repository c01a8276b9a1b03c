//! What kind of checksum an object carries. The bytes are summed outside, by whoever copies them.

use serde::{Deserialize, Serialize};

/// Values longer than this carry one CRC32C per block of this many bytes behind their data, so that a range can be
/// checked without reading the rest.
pub const BLOCK: u64 = 64 * 1024;

/// The checksum of an object's bytes.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default, Serialize, Deserialize)]
pub enum Checksum {
    /// None: written by somebody who keeps none, or bytes that no CPU saw.
    #[default]
    None,
    /// CRC32C of the whole value. Values longer than [`BLOCK`] have a [`trailer_len`] of block sums behind them.
    Crc32c(u32),
}

impl Checksum {
    /// Whether bytes whose CRC32C is `sum` are the ones that were summed. Without a checksum nobody can tell, and the
    /// sum is not taken.
    pub fn fits(self, sum: impl FnOnce() -> u32) -> bool {
        match self {
            Self::None => true,
            Self::Crc32c(expected) => sum() == expected,
        }
    }
}

/// How many bytes of block sums (4 a block, little endian) stand behind a value of `len` bytes.
pub const fn trailer_len(len: u64) -> u64 {
    if len > BLOCK { len.div_ceil(BLOCK) * 4 } else { 0 }
}

/// How many bytes a value of `len` bytes takes with its block sums; `None` if that does not fit in a `u64` (S0A-093,
/// S0B-140).
pub const fn stored_len(len: u64) -> Option<u64> {
    len.checked_add(trailer_len(len))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn small_values_have_no_trailer() {
        assert_eq!(trailer_len(0), 0);
        assert_eq!(trailer_len(BLOCK), 0);
        assert_eq!(trailer_len(BLOCK + 1), 8);
        assert_eq!(trailer_len(1 << 30), 4 << 14);
        assert_eq!(stored_len(u64::MAX), None);
    }
}
