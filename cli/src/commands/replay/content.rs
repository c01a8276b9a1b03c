//! What a block holds: derived from its id and the place in it, so that a swapped, shifted or torn block is seen.

use springtide::core::rng::mix;

/// The key of block `id`.
pub(super) fn key(id: u64) -> [u8; 20] {
    let mut key = *b"blk/0000000000000000";
    for (at, digit) in key[4..].iter_mut().enumerate() {
        *digit = b"0123456789abcdef"[(id >> (60 - 4 * at) & 15) as usize];
    }
    key
}

/// The 8 bytes at word `word` of block `id`.
fn word(id: u64, word: u64) -> u64 {
    mix(id.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ word)
}

/// Fills `bytes` with block `id`.
pub(super) fn fill(id: u64, bytes: &mut [u8]) {
    for (at, chunk) in bytes.chunks_mut(8).enumerate() {
        chunk.copy_from_slice(&word(id, at as u64).to_le_bytes()[..chunk.len()]);
    }
}

/// Whether `bytes` are block `id`, all of them.
pub(super) fn is(id: u64, bytes: &[u8]) -> bool {
    bytes.chunks(8).enumerate().all(|(at, chunk)| *chunk == word(id, at as u64).to_le_bytes()[..chunk.len()])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn any_other_block_or_place_is_seen() {
        for len in [1, 8, 63, 4_096] {
            let mut bytes = vec![0; len];
            fill(7, &mut bytes);
            assert!(is(7, &bytes));
            assert!(!is(8, &bytes));
            for at in [0, len / 2, len - 1] {
                bytes[at] ^= 1;
                assert!(!is(7, &bytes), "a flipped bit at {at} of {len}");
                bytes[at] ^= 1;
            }
        }
        let mut bytes = vec![0; 64];
        fill(7, &mut bytes);
        bytes.rotate_left(8);
        assert!(!is(7, &bytes));
    }

    #[test]
    fn keys_are_unique_and_readable() {
        assert_eq!(&key(0x1f), b"blk/000000000000001f");
        assert_eq!(&key(u64::MAX), b"blk/ffffffffffffffff");
    }
}
