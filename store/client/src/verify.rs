//! Taking and checking sums.

use springtide_core::checksum::{BLOCK, Checksum};
use springtide_core::client::Cover;
use springtide_hal::Span;
use springtide_hal_host::copy::{block_sums, crc32c_span_append, whole_sum};

use crate::parts::Parts;

/// The checksum of `value`; the sums of its blocks, if it has more than one, are appended to `trailer`.
pub(crate) fn sum(value: &Parts<'_>, trailer: &mut Vec<u8>) -> Checksum {
    if value.len() <= BLOCK {
        return Checksum::Crc32c(whole(value));
    }
    let start = trailer.len();
    for_each_block(value, |sum| trailer.extend_from_slice(&sum.to_le_bytes()));
    let sums =
        trailer[start..].chunks_exact(4).map(|sum| u32::from_le_bytes([sum[0], sum[1], sum[2], sum[3]]));
    Checksum::Crc32c(whole_sum(sums, value.len()))
}

/// Whether the whole `value` sums to `checksum`.
pub(crate) fn is_whole(value: &Parts<'_>, checksum: Checksum) -> bool {
    checksum.fits(|| whole(value))
}

fn whole(value: &Parts<'_>) -> u32 {
    value.spans().fold(0, crc32c_span_append)
}

/// Tells `each` the sum of every block; blocks go on from one part to the next.
fn for_each_block(value: &Parts<'_>, mut each: impl FnMut(u32)) {
    let (mut sum, mut filled) = (0, 0);
    for mut span in value.spans() {
        while !span.is_empty() {
            let here = span.take(BLOCK - filled);
            sum = crc32c_span_append(sum, here);
            filled += here.len();
            span = span.skip(here.len());
            if filled == BLOCK {
                each(sum);
                (sum, filled) = (0, 0);
            }
        }
    }
    if filled > 0 {
        each(sum);
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

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use proptest::prelude::*;
    use springtide_driver::{Lane, Seat};
    use springtide_hal::Block;
    use springtide_hal_host::copy::crc32c;
    use springtide_transport::Transport;
    use springtide_transport_sim::{Shape, SimNet};

    use super::*;
    use crate::{Memory, Slice};

    fn registered(bytes: &[u8]) -> Memory {
        let transport: Box<dyn Transport> = Box::new(SimNet::new(Shape::default()).endpoint());
        let lane = Lane::new(springtide_core::transfer::Config::default(), vec![transport], 1).unwrap();
        Memory::register(&Arc::new(Seat::new(lane).unwrap()), Block::from(bytes.to_vec())).unwrap()
    }

    fn bytes(len: u64) -> Vec<u8> {
        (0..len).map(|at| (at * 31 + at / 251) as u8).collect()
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]

        /// However a value is cut, its sums are those of the whole.
        #[test]
        fn sums_do_not_depend_on_how_a_value_is_cut(
            len in prop_oneof![0..300u64, BLOCK - 2..BLOCK + 3, 0..4 * BLOCK],
            cuts in proptest::collection::vec(0..4 * BLOCK, 0..12),
            used in 0..4 * BLOCK,
        ) {
            let whole = bytes(len);
            let memory = registered(&whole);
            let mut cuts: Vec<u64> = cuts.into_iter().map(|cut| cut % (len + 1)).chain([0, len]).collect();
            cuts.sort_unstable();
            let slices: Vec<Slice<'_>> =
                cuts.windows(2).map(|cut| memory.slice(cut[0], cut[1] - cut[0]).unwrap()).collect();
            let parts = Parts::many(&slices).unwrap();
            prop_assert_eq!(parts.len(), len);
            let (mut sums, mut expected) = (Vec::new(), Vec::new());
            let checksum = sum(&parts, &mut sums);
            prop_assert_eq!(checksum, Checksum::Crc32c(crc32c(&whole)));
            prop_assert_eq!(checksum, sum(&Parts::one(memory.whole()), &mut expected));
            prop_assert_eq!(&sums, &expected);
            prop_assert!(is_whole(&parts, checksum));
            let first = parts.first(used);
            let moved: u64 = first.slices().map(Slice::len).sum();
            prop_assert_eq!((first.len(), moved), (len.min(used), len.min(used)));
            prop_assert!(first.slices().all(|slice| !slice.is_empty()));
            prop_assert!(is_whole(&first, Checksum::Crc32c(crc32c(&whole[..len.min(used) as usize]))));
        }
    }

    #[test]
    fn what_cannot_be_counted_or_belongs_to_another_is_seen() {
        let memory = registered(&bytes(8));
        let other = registered(&bytes(8));
        let slice = memory.whole();
        let huge = Slice { len: u64::MAX / 2, ..slice };
        assert!(Parts::many(&[huge, huge]).is_some() && Parts::many(&[huge, huge, huge]).is_none());
        let lane = memory.lane();
        assert!(Parts::many(&[slice, slice]).unwrap().belong_to(lane));
        assert!(!Parts::many(&[slice, other.whole()]).unwrap().belong_to(lane));
        // What holds no bytes is not touched.
        assert!(Parts::many(&[slice, other.slice(8, 0).unwrap()]).unwrap().belong_to(lane));
    }
}
