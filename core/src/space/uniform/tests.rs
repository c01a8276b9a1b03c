use alloc::collections::BTreeMap;
use alloc::vec::Vec;

use proptest::prelude::*;

use super::*;
use crate::rng::Rng;

const PAGE: u64 = 8_192;

/// Counts every page anew and compares with the figures and with what is live.
fn check(uniform: &UniformAllocator, live: &BTreeMap<u64, u64>) {
    let (mut used, mut padding, mut carved, mut slots_live) = (0, 0, 0, 0);
    for page in &uniform.pages {
        let Some(class) = page.class else {
            assert_eq!((page.used, page.padding), (0, 0));
            continue;
        };
        let ones: u32 = page.bits.iter().map(|word| word.count_ones()).sum();
        assert_eq!(ones, page.used);
        assert!(page.used > 0 && page.used <= page.slots, "an empty page has no class");
        assert!(page.bits[..page.hint as usize].iter().all(|&word| word == u64::MAX));
        used += u64::from(page.used) * uniform.slot_len(class);
        padding += page.padding;
        carved += uniform.page;
        slots_live += page.used as usize;
    }
    assert_eq!((uniform.used, uniform.padding, uniform.carved), (used, padding, carved));
    assert_eq!(slots_live, live.len());
    let bytes: u64 = live.values().sum();
    assert_eq!(bytes + uniform.waste().padding, uniform.used());
    assert!(uniform.used() + uniform.waste().partial <= uniform.capacity());
}

proptest! {
    #![proptest_config(ProptestConfig { cases: if cfg!(miri) { 3 } else { 128 }, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn agrees_with_an_interval_map(
        steps in proptest::collection::vec((any::<bool>(), prop_oneof![1..9_000u64, Just(64), Just(5_000)], any::<usize>()), 1..if cfg!(miri) { 30 } else { 300 }),
        pages in 1..12u64,
    ) {
        let mut uniform = UniformAllocator::new(pages * PAGE, PAGE).unwrap();
        let mut live: Vec<(Extent, Handle)> = Vec::new();
        let mut model = BTreeMap::new();
        for (grow, len, at) in steps {
            if grow || live.is_empty() {
                let hole = uniform.largest_hole();
                match uniform.allocate(len) {
                    Some((extent, handle)) => {
                        prop_assert!(extent.len() == len.next_multiple_of(GRANULE) && len <= hole);
                        prop_assert_eq!(extent.offset() / PAGE, (extent.end() - 1) / PAGE, "inside one page");
                        let before = model.range(..extent.end()).next_back();
                        prop_assert!(before.is_none_or(|(start, len)| start + len <= extent.offset()));
                        model.insert(extent.offset(), extent.len());
                        live.push((extent, handle));
                    }
                    None => prop_assert!(hole < PAGE || len > PAGE),
                }
            } else {
                let (extent, handle) = live.swap_remove(at % live.len());
                prop_assert_eq!(uniform.free(extent, handle), Ok(()));
                prop_assert_eq!(uniform.free(extent, handle), Err(Misuse));
                model.remove(&extent.offset());
            }
            check(&uniform, &model);
        }
        for (extent, handle) in live {
            prop_assert_eq!(uniform.free(extent, handle), Ok(()));
        }
        prop_assert_eq!((uniform.used(), uniform.waste()), (0, Waste::default()));
        prop_assert_eq!(uniform.largest_hole(), PAGE);
    }
}

#[test]
fn only_live_slots_are_freed() {
    let mut uniform = UniformAllocator::new(4 * PAGE, PAGE).unwrap();
    let (extent, handle) = uniform.allocate(100).unwrap();
    let (other, other_handle) = uniform.allocate(5_000).unwrap();
    let at = |offset, len| Extent::new(offset, len).unwrap();
    let wrong = [
        (at(64, 64), handle),
        (at(0, 64), handle),
        (at(0, 0), handle),
        (at(0, 256), handle),
        (at(128, 128), handle),
        (at(1 << 40, 128), handle),
        (extent, other_handle),
        (extent, Handle(9)),
        (other, handle),
    ];
    for (extent, handle) in wrong {
        assert_eq!(uniform.free(extent, handle), Err(Misuse), "{extent:?}");
    }
    assert_eq!(uniform.free(extent, handle), Ok(()));
    assert_eq!(uniform.free(extent, handle), Err(Misuse), "the page has no class now");
    assert_eq!(uniform.free(other, other_handle), Ok(()));
}

#[test]
fn waste_is_padding_and_partly_filled_pages() {
    let mut uniform = UniformAllocator::new(4 * PAGE, PAGE).unwrap();
    let (small, small_handle) = uniform.allocate(64).unwrap();
    assert_eq!(uniform.waste(), Waste { padding: 0, partial: PAGE - 64 });
    // 65 granules share the class of 66: 64 bytes of padding, and room for one slot only.
    let (large, large_handle) = uniform.allocate(4_160).unwrap();
    assert_eq!(uniform.waste(), Waste { padding: 64, partial: PAGE - 64 + PAGE - 4_224 });
    uniform.free(small, small_handle).unwrap();
    assert_eq!(uniform.waste(), Waste { padding: 64, partial: PAGE - 4_224 });
    uniform.free(large, large_handle).unwrap();
    assert_eq!(uniform.waste(), Waste::default());
}

#[test]
fn uniform_sizes_fill_every_slot_also_after_a_refill() {
    for len in [64, 128, 1_024, 4_096, 8_192] {
        let mut uniform = UniformAllocator::new(128 * PAGE, PAGE).unwrap();
        let mut rng = Rng::new(len);
        let mut live: Vec<_> = core::iter::from_fn(|| uniform.allocate(len)).collect();
        for _ in 0..4 {
            assert_eq!(live.len() as u64, 128 * PAGE / len);
            assert_eq!((uniform.waste(), uniform.largest_hole()), (Waste::default(), 0));
            rng.shuffle(&mut live);
            for (extent, handle) in live.drain(live.len() / 2..) {
                uniform.free(extent, handle).unwrap();
            }
            live.extend(core::iter::from_fn(|| uniform.allocate(len)));
        }
    }
}
