//! Taking and checking sums.

use springtide_core::checksum::{BLOCK, Checksum};
use springtide_core::client::Cover;
use springtide_hal::Span;
use springtide_hal_host::copy::{block_sums, crc32c_span, whole_sum};

/// The checksum of `value`; the sums of its blocks, if it has more than one, are appended to `trailer`.
pub(crate) fn sum(value: Span<'_>, trailer: &mut Vec<u8>) -> Checksum {
    if value.len() <= BLOCK {
        return Checksum::Crc32c(crc32c_span(value));
    }
    let start = trailer.len();
    block_sums(value).for_each(|sum| trailer.extend_from_slice(&sum.to_le_bytes()));
    let sums =
        trailer[start..].chunks_exact(4).map(|sum| u32::from_le_bytes([sum[0], sum[1], sum[2], sum[3]]));
    Checksum::Crc32c(whole_sum(sums, value.len()))
}

/// Whether the whole `value` sums to `checksum`.
pub(crate) fn is_whole(value: Span<'_>, checksum: Checksum) -> bool {
    match checksum {
        Checksum::None => true,
        Checksum::Crc32c(expected) => crc32c_span(value) == expected,
    }
}

/// Whether the blocks in `data` sum to what `sums` holds: 4 bytes a block, little endian.
pub(crate) fn are_blocks(data: Span<'_>, sums: &[u8]) -> bool {
    let expected = sums.chunks_exact(4).map(|sum| u32::from_le_bytes([sum[0], sum[1], sum[2], sum[3]]));
    block_sums(data).eq(expected)
}

/// Whether reading `cover` of a value of `len` bytes reads exactly the value.
pub(crate) fn is_all(cover: &Cover, len: u64) -> bool {
    cover.data.offset() == 0 && cover.data.len() == len
}
