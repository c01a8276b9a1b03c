use alloc::format;
use alloc::vec::Vec;
use core::num::NonZeroU32;

use super::*;
use crate::id::Id;
use crate::space::{AllocatorKind, SegmentSpec, Visibility};

const MIB: u64 = 1 << 20;

/// A space with one segment for each `(owner, length)`.
fn space(segments: &[(u32, u64)]) -> (Space, Vec<SegmentId>) {
    let mut space = Space::default();
    let mut mount = |(at, &(owner, len)): (usize, &(u32, u64))| {
        let owner = MemberId::new(owner, NonZeroU32::MIN);
        let name = format!("segment-{at}");
        let spec = SegmentSpec { name: &name, owner, len, allocator: AllocatorKind::Offset };
        space.mount(&spec).unwrap()
    };
    let ids = segments.iter().enumerate().map(&mut mount).collect();
    (space, ids)
}

fn place(space: &mut Space, rng: &mut Rng, len: u64, count: usize) -> Result<Grants, NoSpace> {
    let mut out = Grants::new();
    space.place(rng, Strategy::Random, len, count, &[], &[], &mut out).map(|()| out)
}

fn distinct<T: PartialEq>(items: impl Iterator<Item = T>) -> bool {
    let items: Vec<T> = items.collect();
    items.iter().enumerate().all(|(at, item)| !items[..at].contains(item))
}

#[test]
fn replicas_lie_in_different_segments_and_with_different_owners() {
    let (mut space, _) = space(&[(1, MIB), (1, MIB), (1, MIB), (2, MIB), (2, MIB), (3, MIB)]);
    let mut rng = Rng::new(1);
    for strategy in [Strategy::Random, Strategy::Freest] {
        for (count, granted) in [(1, 1), (2, 2), (3, 3), (5, 5), (6, 6), (8, 6), (99, 6)] {
            for _ in 0..50 {
                let mut out = Grants::new();
                space.place(&mut rng, strategy, 1_000, count, &[], &[], &mut out).unwrap();
                assert_eq!(out.len(), granted, "best effort");
                assert!(distinct(out.iter().map(|grant| grant.segment)));
                assert!(distinct(out.iter().take(3).map(|grant| space.owner_of(grant.segment))));
                for &grant in &out {
                    space.free(grant).unwrap();
                }
            }
        }
    }
    assert_eq!(space.usage().used, 0);
}

#[test]
fn preferred_segments_come_first_in_their_order() {
    let (mut space, ids) = space(&[(1, MIB), (1, MIB), (2, MIB), (3, MIB)]);
    let (mut rng, mut out) = (Rng::new(2), Grants::new());
    let preferred = [ids[1], ids[0], ids[1]];
    space.place(&mut rng, Strategy::Random, 64, 3, &preferred, &[], &mut out).unwrap();
    assert_eq!((out[0].segment, out[1].segment), (ids[1], ids[0]));
    assert!(out[2].segment == ids[2] || out[2].segment == ids[3]);
    space.set_visible(ids[1], Visibility::Hidden);
    let removed = ids[0];
    space.unmount(removed).unwrap();
    space.place(&mut rng, Strategy::Freest, 64, 2, &preferred, &[ids[2]], &mut out).unwrap();
    assert_eq!(out.iter().map(|grant| grant.segment).collect::<Vec<_>>(), [ids[3]]);
}

#[test]
fn avoided_and_hidden_segments_are_never_used() {
    let (mut space, ids) = space(&[(1, MIB), (2, MIB), (3, MIB)]);
    let (mut rng, mut out) = (Rng::new(3), Grants::new());
    space.set_visible(ids[2], Visibility::Hidden);
    for _ in 0..100 {
        space.place(&mut rng, Strategy::Freest, 64, 3, &[ids[2]], &[ids[0]], &mut out).unwrap();
        assert!(out.len() == 1 && out[0].segment == ids[1]);
    }
    let all_avoided = space.place(&mut rng, Strategy::Random, 64, 1, &[], &ids, &mut out);
    assert_eq!(all_avoided, Err(NoSpace::NoSegments), "eviction would not help");
    assert!(out.is_empty());
    assert_eq!(place(&mut space, &mut rng, 64, 0), Ok(Grants::new()));
}

#[test]
fn no_segments_is_not_the_same_as_no_room() {
    let (mut space, ids) = space(&[(1, MIB)]);
    let mut rng = Rng::new(4);
    let all = place(&mut space, &mut rng, MIB, 1).unwrap();
    assert_eq!(place(&mut space, &mut rng, 64, 1), Err(NoSpace::NoHole { largest_hole: 0 }));
    assert_eq!(place(&mut space, &mut rng, MIB + 1, 1), Err(NoSpace::NeverFits { largest_segment: MIB }));
    space.set_visible(ids[0], Visibility::Hidden);
    assert_eq!(place(&mut space, &mut rng, 64, 1), Err(NoSpace::NoSegments));
    space.unmount(ids[0]).unwrap();
    assert_eq!(place(&mut space, &mut rng, u64::MAX, 1), Err(NoSpace::NoSegments));
    assert!(space.free(all[0]).is_err());
}

/// Case 7 (a): longer than every segment is refused as such, although the free space is enough.
#[test]
fn a_value_longer_than_every_segment_never_fits() {
    let (mut space, _) = space(&[(1, 16 * MIB); 8]);
    let refused = place(&mut space, &mut Rng::new(7), 17 * MIB, 1);
    assert_eq!(refused, Err(NoSpace::NeverFits { largest_segment: 16 * MIB }));
    assert_eq!(
        format!("{}", refused.unwrap_err()),
        "the value never fits: the largest segment holds 16777216 bytes"
    );
}

/// Case 7 (b): half is free but no hole is long enough; the refusal names the largest.
#[test]
fn a_refusal_names_the_largest_hole() {
    let (mut space, ids) = space(&[(1, 16 * MIB); 8]);
    for &id in &ids {
        let grants: Vec<Grant> = core::iter::from_fn(|| space.allocate_in(id, 4 * MIB).ok()).collect();
        assert_eq!(grants.len(), 4);
        for &grant in grants.iter().step_by(2) {
            space.free(grant).unwrap();
        }
    }
    assert_eq!(space.usage().used, 64 * MIB);
    let refused = place(&mut space, &mut Rng::new(7), 6 * MIB, 1).unwrap_err();
    assert_eq!(refused, NoSpace::NoHole { largest_hole: 4 * MIB });
    assert_eq!(format!("{refused}"), "no hole: the largest has 4194304 bytes");
    assert!(place(&mut space, &mut Rng::new(7), 4 * MIB, 1).is_ok());
}

/// Case 7 (c): many small values and a few large ones come and go; none is refused while under 60 % is used.
#[test]
fn a_mix_of_small_and_large_values_always_fits() {
    for strategy in [Strategy::Random, Strategy::Freest] {
        let (mut space, _) = space(&[(1, 16 * MIB); 8]);
        let mut rng = Rng::new(7);
        let mut live: Vec<(u64, Grant)> = Vec::new();
        for step in 0..200u64 {
            let mut expired = Vec::new();
            live.retain(|&(end, grant)| {
                end > step || {
                    expired.push(grant);
                    false
                }
            });
            for grant in expired {
                space.free(grant).unwrap();
            }
            let lens = (0..39).map(|at| if at < 36 { 256 + rng.below(9_985) } else { 3 * MIB / 2 });
            for len in lens.collect::<Vec<_>>() {
                assert!(space.usage().used * 10 < space.usage().capacity * 6);
                let mut out = Grants::new();
                space.place(&mut rng, strategy, len, 1, &[], &[], &mut out).unwrap();
                live.push((step + 1 + rng.below(3), out[0]));
            }
        }
    }
}

/// Case 29, the allocator's part: a node that comes back empty gets less than 60 % of the new values.
#[test]
fn an_empty_node_does_not_attract_everything() {
    for strategy in [Strategy::Random, Strategy::Freest] {
        for seed in 0..20 {
            let (mut space, ids) = space(&[(1, 64 * MIB), (2, 64 * MIB), (3, 64 * MIB)]);
            for &id in &ids[1..] {
                space.allocate_in(id, 64 * MIB / 100 * 85).unwrap();
            }
            let (mut rng, mut to_empty) = (Rng::new(seed), 0);
            for _ in 0..100 {
                let mut out = Grants::new();
                space.place(&mut rng, strategy, 4_096, 1, &[], &[], &mut out).unwrap();
                to_empty += u32::from(out[0].segment == ids[0]);
            }
            assert!(to_empty < 60, "{strategy:?} {seed}: {to_empty}");
            assert!(to_empty > 15, "{strategy:?} {seed}: {to_empty}");
        }
    }
}

#[test]
fn at_most_a_hundred_segments_are_tried() {
    let (mut space, ids) = space(&[(1, 64); 300]);
    let mut rng = Rng::new(9);
    for &id in &ids[..150] {
        space.allocate_in(id, 64).unwrap();
    }
    let mut refused = 0;
    for _ in 0..200 {
        match place(&mut space, &mut rng, 64, 1) {
            Ok(out) => space.free(out[0]).unwrap(),
            Err(reason) => {
                assert_eq!(reason, NoSpace::NoHole { largest_hole: 64 });
                refused += 1;
            }
        }
    }
    // One start in six has a hundred full segments before it.
    assert!((10..70).contains(&refused), "{refused}");
}
