use alloc::collections::BTreeMap;
use alloc::vec::Vec;

use proptest::prelude::*;

use super::*;
use crate::rng::Rng;

const MIB: u64 = 1 << 20;

/// Walks the row of pieces and the bins, and compares both with what is live.
fn check(offset: &OffsetAllocator, live: &BTreeMap<u64, u64>) {
    let (mut at, mut holes, mut largest, mut seen) = (0, BTreeMap::new(), 0, BTreeMap::new());
    let mut id = first(offset);
    let (mut prev, mut after_hole) = (NONE, false);
    while id != NONE {
        let node = offset.nodes.at(id);
        assert_eq!((node.offset, node.prev), (at, prev), "pieces follow one another");
        assert!(node.len() > 0);
        let is_hole = node.is(Kind::Hole);
        assert_eq!(node.has_hole(BEFORE), after_hole && !is_hole);
        let next_is_hole = node.next != NONE && offset.nodes.at(node.next).is(Kind::Hole);
        assert_eq!(node.has_hole(AFTER), next_is_hole && !is_hole);
        assert!(is_hole || node.is(Kind::Live));
        assert!(!(is_hole && after_hole), "two holes side by side");
        if is_hole {
            holes.insert(id, node.len());
            largest = largest.max(node.len());
        } else {
            seen.insert(node.offset * GRANULE, node.len() * GRANULE);
        }
        at += node.len();
        (prev, after_hole, id) = (id, is_hole, node.next);
    }
    assert_eq!(at, offset.len, "the pieces fill the segment");
    assert_eq!(&seen, live);
    assert_eq!(offset.used(), live.values().sum::<u64>());
    assert_eq!(offset.used + holes.values().sum::<u64>(), offset.len);
    assert_eq!(offset.holes(), holes.len() as u64);
    assert_eq!(offset.largest_hole(), largest * GRANULE);
    check_bins(offset, holes);
}

fn check_bins(offset: &OffsetAllocator, mut holes: BTreeMap<u32, u64>) {
    let mut from = Bin::of(1);
    while let Some(bin) = offset.bins.first_from(from) {
        let head = offset.bins.head(bin);
        let (mut id, mut prev) = (head.id, NONE);
        assert_eq!(head.len, offset.nodes.at(id).len());
        assert_ne!(id, NONE, "a bin that is marked has a hole");
        while id != NONE {
            let node = offset.nodes.at(id);
            assert_eq!(holes.remove(&id), Some(node.len()));
            assert_eq!((Bin::of(node.len()), node.bin_prev), (bin, prev));
            (prev, id) = (id, node.bin_next);
        }
        from = bin.above();
    }
    assert!(holes.is_empty(), "holes in no bin: {holes:?}");
}

/// The piece at offset zero.
fn first(offset: &OffsetAllocator) -> u32 {
    let all = 0..u32::MAX;
    all.map_while(|id| offset.nodes.get(id).map(|node| (id, node)))
        .find(|(_, node)| !node.is(Kind::Vacant) && node.prev == NONE)
        .map_or(NONE, |(id, _)| id)
}

#[derive(Clone, Debug)]
enum Step {
    Allocate(u64),
    Free(usize),
    FreeTwice(usize),
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let len = prop_oneof![Just(64u64), 0..=640u64, 1..=20_000u64, Just(4_096u64), Just(100_000u64)];
    let step = prop_oneof![
        5 => len.prop_map(Step::Allocate),
        4 => any::<usize>().prop_map(Step::Free),
        1 => any::<usize>().prop_map(Step::FreeTwice),
    ];
    proptest::collection::vec(step, 1..if cfg!(miri) { 30 } else { 300 })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: if cfg!(miri) { 3 } else { 128 }, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn agrees_with_an_interval_map(steps in steps(), len in 1_000u64..400_000) {
        let mut offset = OffsetAllocator::new(len);
        let mut live: Vec<(Extent, Handle)> = Vec::new();
        let mut model = BTreeMap::new();
        for step in steps {
            match step {
                Step::Allocate(len) => match offset.allocate(len) {
                    Some((extent, handle)) => {
                        prop_assert_eq!(extent.len(), len.max(1).next_multiple_of(GRANULE));
                        let before = model.range(..extent.end()).next_back();
                        prop_assert!(before.is_none_or(|(start, len)| start + len <= extent.offset()));
                        model.insert(extent.offset(), extent.len());
                        live.push((extent, handle));
                    }
                    // Under `LOOKS` holes in the request's bin, the search misses none.
                    None => prop_assert!(
                        offset.find_largest_hole() < len.max(1) || offset.holes() > LOOKS as u64
                    ),
                },
                Step::Free(at) | Step::FreeTwice(at) if live.is_empty() => {
                    prop_assert_eq!(offset.free(Extent::default(), Handle(at as u32)), Err(Misuse));
                }
                Step::Free(at) => {
                    let (extent, handle) = live.swap_remove(at % live.len());
                    prop_assert_eq!(offset.free(extent, handle), Ok(()));
                    model.remove(&extent.offset());
                }
                Step::FreeTwice(at) => {
                    let (extent, handle) = live.swap_remove(at % live.len());
                    prop_assert_eq!(offset.free(extent, handle), Ok(()));
                    prop_assert_eq!(offset.free(extent, handle), Err(Misuse));
                    model.remove(&extent.offset());
                }
            }
            check(&offset, &model);
        }
        for (extent, handle) in live {
            prop_assert_eq!(offset.free(extent, handle), Ok(()));
        }
        check(&offset, &BTreeMap::new());
        prop_assert!(offset.holes() <= 1);
        prop_assert_eq!(offset.largest_hole(), offset.capacity());
    }
}

#[test]
fn a_wrong_handle_or_extent_is_refused() {
    let mut offset = OffsetAllocator::new(MIB);
    let (a, a_handle) = offset.allocate(100).unwrap();
    let (b, b_handle) = offset.allocate(200).unwrap();
    let shorter = a.slice(0, 64).unwrap();
    for (extent, handle) in [(a, b_handle), (b, a_handle), (shorter, a_handle), (a, Handle(77))] {
        assert_eq!(offset.free(extent, handle), Err(Misuse));
    }
    assert_eq!(offset.free(a, Handle(u32::MAX)), Err(Misuse));
    assert_eq!(offset.used(), 128 + 256);
    assert_eq!(offset.free(a, a_handle), Ok(()));
    assert_eq!(offset.free(a, a_handle), Err(Misuse));
    assert_eq!(offset.free(b, b_handle), Ok(()));
    assert_eq!((offset.used(), offset.holes(), offset.largest_hole()), (0, 1, MIB));
}

#[test]
fn impossible_lengths_find_no_hole() {
    let mut offset = OffsetAllocator::new(1 << 50);
    for len in [(1 << 50) + 1, u64::MAX - 63, u64::MAX] {
        assert_eq!(offset.allocate(len), None);
    }
    let (all, handle) = offset.allocate(1 << 50).unwrap();
    assert_eq!((all.offset(), all.len(), offset.holes()), (0, 1 << 50, 0));
    assert_eq!(offset.allocate(0), None);
    assert_eq!(offset.largest_hole(), 0);
    assert_eq!(offset.free(all, handle), Ok(()));
    assert_eq!(offset.largest_hole(), 1 << 50);
}

#[test]
fn the_pieces_of_a_pebibyte_join() {
    let len = 1 << 50;
    let mut offset = OffsetAllocator::new(len);
    let granted: Vec<_> = (0..4).map(|_| offset.allocate(len / 4).unwrap()).collect();
    let mut model: BTreeMap<u64, u64> = granted.iter().map(|(e, _)| (e.offset(), e.len())).collect();
    for at in [0, 2, 1, 3] {
        let (extent, handle) = granted[at];
        offset.free(extent, handle).unwrap();
        model.remove(&extent.offset());
        check(&offset, &model);
    }
    let (one, handle) = offset.allocate(64).unwrap();
    check(&offset, &BTreeMap::from([(0, 64)]));
    offset.free(one, handle).unwrap();
    check(&offset, &BTreeMap::new());
}

/// Fills with one size, frees half at random, refills: as many fit as the segment can hold, both times.
fn fill_twice(segment: u64, len: u64) {
    let mut offset = OffsetAllocator::new(segment);
    let fits = segment / len.next_multiple_of(GRANULE);
    let mut live: Vec<_> = core::iter::from_fn(|| offset.allocate(len)).collect();
    assert_eq!(live.len() as u64, fits, "{len} at first");
    let mut rng = Rng::new(len);
    for round in 0..4 {
        rng.shuffle(&mut live);
        for (extent, handle) in live.drain(live.len() / 2..) {
            offset.free(extent, handle).unwrap();
        }
        live.extend(core::iter::from_fn(|| offset.allocate(len)));
        assert_eq!(live.len() as u64, fits, "{len} after refill {round}");
    }
}

#[test]
fn uniform_sizes_fill_the_segment_also_after_a_refill() {
    for len in [64, 100, 4_096, 4_160, 51_168, 65_536, MIB - 64, MIB, MIB + 1, 3 * MIB + 7] {
        fill_twice(64 * MIB, len);
        fill_twice(64 * MIB + 51_200 - 64, len.max(4_096));
    }
}

/// Case 8: random sizes until full, all removed in random order, then one value of nearly the whole segment.
#[test]
fn an_emptied_segment_takes_one_large_value() {
    let mut offset = OffsetAllocator::new(64 * MIB);
    let mut rng = Rng::new(8);
    for _ in 0..50 {
        let mut live: Vec<_> =
            core::iter::from_fn(|| offset.allocate(1_024 + rng.below(MIB - 1_023))).collect();
        assert!(offset.used() > 60 * MIB);
        rng.shuffle(&mut live);
        for (extent, handle) in live {
            offset.free(extent, handle).unwrap();
        }
        assert_eq!((offset.used(), offset.holes(), offset.largest_hole()), (0, 1, 64 * MIB));
        let (large, handle) = offset.allocate(60 * MIB).unwrap();
        offset.free(large, handle).unwrap();
    }
    let filled = core::iter::from_fn(|| offset.allocate(51_168)).count() as u64;
    assert_eq!(filled, 64 * MIB / 51_200);
}

/// A refusal stays short however many holes are about as long as the largest.
#[test]
fn the_largest_hole_is_found_among_many() {
    let mut offset = OffsetAllocator::new(64 * MIB);
    let mut holes = Vec::new();
    for len in (200..204).cycle().take(400) {
        holes.push(offset.allocate(len * GRANULE).unwrap());
        offset.allocate(GRANULE).unwrap();
    }
    while offset.allocate(204 * GRANULE).is_some() {}
    while offset.allocate(GRANULE).is_some() {}
    for (extent, handle) in holes {
        offset.free(extent, handle).unwrap();
    }
    assert_eq!((offset.holes(), offset.find_largest_hole()), (400, 203 * GRANULE));
    // Each takes the front of the hole freed last that is long enough; one of the longest is left, deep in its bin.
    let longest: Vec<_> = core::iter::from_fn(|| offset.allocate(203 * GRANULE)).collect();
    let (exact, told) = (offset.largest_hole(), offset.find_largest_hole());
    assert!(told <= exact && exact - told < exact / 32, "{told} of {exact}");
    for (extent, handle) in longest {
        offset.free(extent, handle).unwrap();
    }
    assert_eq!((offset.holes(), offset.find_largest_hole()), (400, 203 * GRANULE));
}
