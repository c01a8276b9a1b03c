use alloc::vec::Vec;
use core::num::NonZeroU32;

use super::*;
use crate::id::{Id, MemberId};
use crate::rng::Rng;

const MIB: u64 = 1 << 20;

fn member(index: u32) -> MemberId {
    MemberId::new(index, NonZeroU32::MIN)
}

fn mount(space: &mut Space, name: &str, owner: u32, len: u64) -> Result<SegmentId, MountError> {
    space.mount(&SegmentSpec { name, owner: member(owner), len, allocator: AllocatorKind::Offset })
}

/// The figures, counted anew.
fn check(space: &Space) {
    let mut usage = Usage::default();
    for (_, segment) in space.iter() {
        assert!(segment.used() <= segment.len());
        match segment.visibility() {
            Visibility::Open => {
                usage.used += segment.used();
                usage.capacity += segment.len();
            }
            Visibility::Hidden => {
                usage.hidden_used += segment.used();
                usage.hidden_capacity += segment.len();
            }
        }
    }
    assert_eq!(space.usage(), usage);
    let open = space.iter().filter(|(_, segment)| segment.visibility() == Visibility::Open);
    assert!(open.map(|(id, _)| id).eq(space.open().iter().copied()));
    assert_eq!(space.largest_segment(), space.iter().map(|(_, s)| s.longest()).max().unwrap_or(0));
}

#[test]
fn mount_refuses_bad_lengths_and_second_names() {
    let mut space = Space::default();
    for len in [0, 1, 63, 100, MAX_SEGMENT_LEN + 64, u64::MAX] {
        assert_eq!(mount(&mut space, "a", 1, len), Err(MountError::Invalid));
    }
    let a = mount(&mut space, "a", 1, MIB).unwrap();
    assert_eq!(mount(&mut space, "a", 1, 2 * MIB), Err(MountError::Exists(a)));
    let b = mount(&mut space, "a", 2, MIB).unwrap();
    assert_eq!((space.find("a"), space.find("b")), (Some(a), None));
    space.set_visible(a, Visibility::Hidden);
    assert_eq!(space.find("a"), Some(a), "also while it is hidden");
    assert!(space.unmount(a).is_some());
    assert_eq!(space.find("a"), Some(b));
    assert_eq!(mount(&mut space, "a", 1, MIB).map(|id| id == a), Ok(false), "a new id");
    check(&space);
}

#[test]
fn uniform_pages_must_divide_the_segment() {
    let mut space = Space::default();
    for page in [0, 100, 3 * MIB, 8 * MIB] {
        let allocator = AllocatorKind::Uniform { page };
        let spec = SegmentSpec { name: "a", owner: member(1), len: 4 * MIB, allocator };
        assert_eq!(space.mount(&spec), Err(MountError::Invalid), "{page}");
    }
    let allocator = AllocatorKind::Uniform { page: MIB };
    let id = space.mount(&SegmentSpec { name: "a", owner: member(1), len: 4 * MIB, allocator }).unwrap();
    assert_eq!(space.largest_segment(), MIB);
    let grant = space.allocate_in(id, 1_000).unwrap();
    assert_eq!((grant.extent.len(), space.usage().used), (1_024, 1_024));
    assert_eq!(space.allocate_in(id, MIB + 1), Err(NoSpace::NeverFits { largest_segment: MIB }));
    assert_eq!(space.free(grant), Ok(()));
    assert_eq!(space.free(grant), Err(FreeError::Misuse));
    check(&space);
}

#[test]
fn frees_after_an_unmount_change_nothing_and_say_so() {
    let mut space = Space::default();
    let a = mount(&mut space, "a", 1, MIB).unwrap();
    let grant = space.allocate_in(a, 1_000).unwrap();
    let removed = space.unmount(a).unwrap();
    assert_eq!((removed.owner, removed.len, removed.used), (member(1), MIB, 1_024));
    assert_eq!(space.free(grant), Err(FreeError::Gone));
    assert!(space.unmount(a).is_none());
    let again = mount(&mut space, "a", 1, MIB).unwrap();
    assert_eq!(again.index(), a.index());
    let same_place = space.allocate_in(again, 1_000).unwrap();
    assert_eq!((same_place.extent, same_place.handle), (grant.extent, grant.handle));
    assert_eq!(space.free(grant), Err(FreeError::Gone));
    assert_eq!(space.usage().used, 1_024);
    check(&space);
}

#[test]
fn hidden_segments_keep_what_they_hold_and_are_counted_apart() {
    let mut space = Space::default();
    let a = mount(&mut space, "a", 1, MIB).unwrap();
    let b = mount(&mut space, "b", 2, 2 * MIB).unwrap();
    let kept = space.allocate_in(a, 4_096).unwrap();
    let gone = space.allocate_in(a, 4_096).unwrap();
    for _ in 0..2 {
        space.set_visible(a, Visibility::Hidden);
        check(&space);
    }
    assert_eq!(space.allocate_in(a, 64), Err(NoSpace::NoSegments));
    let usage = Usage { used: 0, capacity: 2 * MIB, hidden_used: 8_192, hidden_capacity: MIB };
    assert_eq!((space.usage(), space.open()), (usage, &[b][..]));
    assert_eq!(space.free(gone), Ok(()));
    check(&space);
    for _ in 0..2 {
        space.set_visible(a, Visibility::Open);
        check(&space);
    }
    let usage = Usage { used: 4_096, capacity: 3 * MIB, ..Usage::default() };
    assert_eq!((space.usage(), space.open()), (usage, &[a, b][..]));
    assert_eq!(space.free(kept), Ok(()));
    assert!(space.allocate_in(a, MIB).is_ok());
    space.set_visible(a, Visibility::Hidden);
    assert!(space.unmount(a).is_some());
    check(&space);
}

#[test]
fn figures_hold_through_random_work() {
    let (mut space, mut rng) = (Space::default(), Rng::new(5));
    let mut live: Vec<Grant> = Vec::new();
    for step in 0..4_000u32 {
        let ids: Vec<SegmentId> = space.iter().map(|(id, _)| id).collect();
        let any = ids.get(rng.below(ids.len() as u64) as usize).copied();
        match (rng.below(100), any) {
            (0..3, _) if ids.len() < 6 => {
                let len = (1 + rng.below(64)) * 4_096;
                let page = [0, 4_096][rng.below(2) as usize];
                let allocator =
                    if page == 0 { AllocatorKind::Offset } else { AllocatorKind::Uniform { page } };
                let name = alloc::format!("{step}");
                space.mount(&SegmentSpec { name: &name, owner: member(1), len, allocator }).unwrap();
            }
            (3..5, Some(id)) => drop(space.unmount(id).unwrap()),
            (5..8, Some(id)) => space.set_visible(id, Visibility::Hidden),
            (8..14, Some(id)) => space.set_visible(id, Visibility::Open),
            (14..60, Some(id)) => live.extend(space.allocate_in(id, 1 + rng.below(5_000))),
            (_, _) if live.is_empty() => {}
            _ => {
                let grant = live.swap_remove(rng.below(live.len() as u64) as usize);
                let expected = match space.segment(grant.segment) {
                    Some(_) => Ok(()),
                    None => Err(FreeError::Gone),
                };
                assert_eq!(space.free(grant), expected);
            }
        }
        check(&space);
    }
}
