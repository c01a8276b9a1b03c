//! The bytes of values: derived from the number of their put, so that whoever sees them knows whose they are.

use springtide_core::rng::mix;

/// What the first word of every value has above the put's number.
const MARK: u64 = 0x5eed_0000_0000_0000;
const STEP: u64 = 0x9e37_79b9_7f4a_7c15;

/// The shortest value: the word that names its put.
pub const SHORTEST: u32 = 8;

/// Writes the value of put `put` into `out`.
pub fn fill(put: u32, out: &mut [u8]) {
    let seed = mix(u64::from(put));
    let mut word = seed;
    let mut words = out.chunks_exact_mut(8);
    for bytes in &mut words {
        word = word.wrapping_add(STEP);
        bytes.copy_from_slice(&word.to_le_bytes());
    }
    let rest = words.into_remainder();
    let len = rest.len();
    rest.copy_from_slice(&seed.to_le_bytes()[..len]);
    if let Some(first) = out.first_chunk_mut::<8>() {
        *first = (MARK | u64::from(put)).to_le_bytes();
    }
}

/// Which put wrote `value`, if all of it is that put's.
pub fn author(value: &[u8]) -> Option<u32> {
    let put = claimed(value)?;
    let seed = mix(u64::from(put));
    let mut word = seed.wrapping_add(STEP);
    let words = value[8..].chunks_exact(8);
    let rest = words.remainder();
    let mut wrong = 0;
    for bytes in words {
        word = word.wrapping_add(STEP);
        wrong |= word
            ^ u64::from_le_bytes([
                bytes[0], bytes[1], bytes[2], bytes[3], bytes[4], bytes[5], bytes[6], bytes[7],
            ]);
    }
    (wrong == 0 && *rest == seed.to_le_bytes()[..rest.len()]).then_some(put)
}

/// Which put the first word names.
pub fn claimed(value: &[u8]) -> Option<u32> {
    let first = u64::from_le_bytes(*value.first_chunk::<8>()?);
    (first & !u64::from(u32::MAX) == MARK).then_some(first as u32)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_wrong_bit_is_seen() {
        for len in [8, 9, 64, 100, 4_096] {
            let mut value = vec![0; len];
            fill(77, &mut value);
            assert_eq!(author(&value), Some(77));
            for bit in [0, 33, len * 8 - 1] {
                value[bit / 8] ^= 1 << (bit % 8);
                assert_ne!(author(&value), Some(77), "{len} bytes, bit {bit}");
                value[bit / 8] ^= 1 << (bit % 8);
            }
        }
        assert_eq!((author(&[0; 64]), claimed(&[1; 3])), (None, None));
    }

    #[test]
    fn two_puts_share_no_tail() {
        let (mut a, mut b) = ([0; 64], [0; 64]);
        fill(1, &mut a);
        fill(2, &mut b);
        a[32..].copy_from_slice(&b[32..]);
        assert_eq!(author(&a), None);
    }
}
