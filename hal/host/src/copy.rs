//! Copies between blocks, with or without CRC32C, and CRC32C alone.
//!
//! Nobody holds a slice over bytes that others may be storing. What is summed is loaded word by word from raw memory,
//! once, so that the sum is that of the bytes that were copied; where the processor has no instruction for it, it is
//! taken through a small buffer that stays in the nearest cache.

#[cfg(target_arch = "x86_64")]
mod lanes;

use springtide_core::checksum::BLOCK;
use springtide_hal::Span;

/// How many bytes go through the small buffer at a time.
const STEP: usize = 8 * 1024;

/// Copies the first bytes of `from` to the first of `to`, as many as fit in both, and says how many. They may overlap.
pub fn copy(from: Span<'_>, to: Span<'_>) -> u64 {
    let len = from.len().min(to.len());
    // SAFETY: both spans lie inside blocks that outlive this call, and `copy` allows overlap.
    unsafe { core::ptr::copy(from.address().as_ptr(), to.address().as_ptr(), len as usize) };
    len
}

/// CRC32C of `bytes`.
pub fn crc32c(bytes: &[u8]) -> u32 {
    ::crc32c::crc32c(bytes)
}

/// CRC32C of bytes whose sum is `sum`, followed by `bytes`.
pub fn crc32c_append(sum: u32, bytes: &[u8]) -> u32 {
    ::crc32c::crc32c_append(sum, bytes)
}

/// CRC32C of two pieces one after the other, from the sums of both and the length of the second. O(log length).
pub fn crc32c_combine(first: u32, second: u32, second_len: u64) -> u32 {
    times(first, zeros(second_len)) ^ second
}

/// CRC32C of `span`.
pub fn crc32c_span(span: Span<'_>) -> u32 {
    crc32c_span_append(0, span)
}

/// CRC32C of bytes whose sum is `sum`, followed by `span`.
pub fn crc32c_span_append(sum: u32, span: Span<'_>) -> u32 {
    #[cfg(target_arch = "x86_64")]
    if lanes::are_here() {
        // SAFETY: the instruction is here, and the span lies inside a block that outlives this call.
        return unsafe { lanes::sum(sum, span.address().as_ptr(), span.len() as usize, &lanes::Leave) };
    }
    through(span, sum, |sum, piece, _| crc32c_append(sum, piece))
}

/// [`copy`] and CRC32C of the bytes that were copied, in one pass over memory. For spans that do not overlap: of others,
/// neither the bytes nor their sum are of any use.
pub fn copy_crc32c(from: Span<'_>, to: Span<'_>) -> u32 {
    let from = from.take(to.len());
    #[cfg(target_arch = "x86_64")]
    if lanes::are_here() {
        let then = lanes::Store(to.address().as_ptr());
        // SAFETY: the instruction is here; both spans lie inside blocks that outlive this call; `to` is as long.
        return unsafe { lanes::sum(0, from.address().as_ptr(), from.len() as usize, &then) };
    }
    copy_through(from, to)
}

/// [`copy_crc32c`] for processors without the instruction.
fn copy_through(from: Span<'_>, to: Span<'_>) -> u32 {
    through(from, 0, |sum, piece, at| {
        put(to.skip(at), piece);
        crc32c_append(sum, piece)
    })
}

/// CRC32C of `span`'s blocks of [`BLOCK`] bytes, the last one possibly shorter, in order.
pub fn block_sums(span: Span<'_>) -> impl Iterator<Item = u32> {
    let blocks = span.len().div_ceil(BLOCK);
    (0..blocks).map(move |block| crc32c_span(span.skip(block * BLOCK).take(BLOCK)))
}

/// CRC32C of `len` bytes from the sums of their blocks ([`block_sums`]). About 50 ns a block.
pub fn whole_sum(sums: impl IntoIterator<Item = u32>, len: u64) -> u32 {
    let full = zeros(BLOCK);
    let mut left = len;
    sums.into_iter().fold(0, |sum, block| {
        let here = left.min(BLOCK);
        left -= here;
        times(sum, if here == BLOCK { full } else { zeros(here) }) ^ block
    })
}

/// Takes `span` piece by piece through a small buffer; `each` gets the sum so far, the piece and where it starts.
fn through(span: Span<'_>, start: u32, mut each: impl FnMut(u32, &[u8], u64) -> u32) -> u32 {
    let mut buffer = [0; STEP];
    let (mut sum, mut at) = (start, 0);
    while at < span.len() {
        let here = span.skip(at).take(STEP as u64);
        let piece = &mut buffer[..here.len() as usize];
        // SAFETY: `here` lies inside a block that outlives this call; `piece` is as long, and ours alone.
        unsafe { core::ptr::copy_nonoverlapping(here.address().as_ptr(), piece.as_mut_ptr(), piece.len()) };
        sum = each(sum, piece, at);
        at += here.len();
    }
    sum
}

/// Stores as much of `bytes` as fits at the front of `to`.
fn put(to: Span<'_>, bytes: &[u8]) {
    let len = bytes.len().min(to.len() as usize);
    // SAFETY: the span lies inside a block that outlives this call; `bytes` is a slice, so it is in no block.
    unsafe { core::ptr::copy_nonoverlapping(bytes.as_ptr(), to.address().as_ptr(), len) };
}

/// CRC32C's polynomial, lowest power in the highest bit.
const POLYNOMIAL: u32 = 0x82f6_3b78;
/// The polynomial 1 in that order of bits.
const ONE: u32 = 1 << 31;

/// Product of two polynomials modulo CRC32C's.
const fn times(a: u32, mut b: u32) -> u32 {
    let mut product = 0;
    let mut bit = ONE;
    while bit != 0 {
        if a & bit != 0 {
            product ^= b;
        }
        b = (b >> 1) ^ (if b & 1 != 0 { POLYNOMIAL } else { 0 });
        bit >>= 1;
    }
    product
}

/// x to the power of the number of bits in `bytes` bytes: what a sum is multiplied by when so many bytes follow.
const fn zeros(mut bytes: u64) -> u32 {
    // x⁸, then its squares.
    let mut power = ONE >> 8;
    let mut result = ONE;
    while bytes != 0 {
        if bytes & 1 != 0 {
            result = times(result, power);
        }
        power = times(power, power);
        bytes >>= 1;
    }
    result
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use springtide_hal::Block;

    fn pattern(len: usize) -> Vec<u8> {
        (0..len).map(|i| (i * 31 + i / 251) as u8).collect()
    }

    #[test]
    fn the_published_check_value() {
        assert_eq!(crc32c(b"123456789"), 0xe306_9283);
        let block = Block::from(b"123456789".to_vec());
        assert_eq!(crc32c_span(block.span(0, 9).unwrap()), 0xe306_9283);
        assert_eq!(crc32c_append(crc32c(b"1234"), b"56789"), 0xe306_9283);
        assert_eq!(crc32c_combine(crc32c(b"1234"), crc32c(b"56789"), 5), 0xe306_9283);
        assert_eq!(crc32c_span(block.span(0, 0).unwrap()), 0);
    }

    #[test]
    fn block_sums_and_whole_agree() {
        let lengths = [0, 1, BLOCK, BLOCK + 1, 3 * BLOCK, 3 * BLOCK + 777];
        for len in lengths.into_iter().filter(|&len| !cfg!(miri) || len < BLOCK) {
            let bytes = pattern(len as usize);
            let block = Block::from(bytes.clone());
            let span = block.span(0, len).unwrap();
            let sums: Vec<u32> = block_sums(span).collect();
            assert_eq!(sums, bytes.chunks(BLOCK as usize).map(crc32c).collect::<Vec<_>>());
            assert_eq!(whole_sum(sums, len), crc32c(&bytes));
        }
    }

    #[test]
    fn overlapping_spans_copy_like_memmove() {
        let block = Block::from(pattern(100));
        assert_eq!(copy(block.span(0, 90).unwrap(), block.span(10, 90).unwrap()), 90);
        assert_eq!(block.to_vec()[10..], pattern(100)[..90]);
    }

    /// The longest copy that is tried.
    const LONGEST: u64 = if cfg!(miri) { STEP as u64 + 100 } else { 5 * STEP as u64 };

    proptest! {
        #[test]
        fn copies_touch_their_bytes_and_no_others(
            len in 0u64..LONGEST, from_at in 0u64..70, to_at in 1u64..70, how in 0..3,
        ) {
            let source = pattern((from_at + len) as usize);
            let from = Block::from(source.clone());
            let to = Block::from(vec![0xee; (to_at + len + 64) as usize]);
            let (from, target) = (from.span(from_at, len).unwrap(), to.span(to_at, len).unwrap());
            let expected = &source[from_at as usize..];
            match how {
                0 => prop_assert_eq!(copy_crc32c(from, target), crc32c(expected)),
                1 => prop_assert_eq!(copy_through(from, target), crc32c(expected)),
                _ => prop_assert_eq!(copy(from, target), len),
            }
            let seed = crc32c(&[1, 2, 3]);
            prop_assert_eq!(crc32c_span_append(seed, from), crc32c_append(seed, expected));
            prop_assert_eq!(through(from, seed, |sum, piece, _| crc32c_append(sum, piece)), crc32c_append(seed, expected));
            let got = to.to_vec();
            let (before, rest) = got.split_at(to_at as usize);
            let (middle, after) = rest.split_at(len as usize);
            prop_assert!(before.iter().chain(after).all(|&guard| guard == 0xee));
            prop_assert_eq!(middle, expected);
        }

        #[test]
        fn combining_is_appending(a in proptest::collection::vec(any::<u8>(), 0..300),
                                  b in proptest::collection::vec(any::<u8>(), 0..300)) {
            let both = [&a[..], &b[..]].concat();
            prop_assert_eq!(crc32c_combine(crc32c(&a), crc32c(&b), b.len() as u64), crc32c(&both));
        }

        #[test]
        fn the_shorter_span_decides(from_len in 0u64..50, to_len in 0u64..50) {
            let (from, to) = (Block::from(pattern(50)), Block::from(vec![0; 50]));
            let moved = copy(from.span(0, from_len).unwrap(), to.span(0, to_len).unwrap());
            prop_assert_eq!(moved, from_len.min(to_len));
            copy_crc32c(from.span(0, from_len).unwrap(), to.span(0, to_len).unwrap());
            prop_assert!(to.to_vec()[moved as usize..].iter().all(|&byte| byte == 0));
        }
    }
}
