//! One suite over all policies, against a model that only knows who is resident.

use alloc::collections::BTreeMap;
use alloc::string::ToString;

use proptest::prelude::*;

use super::*;
use crate::rng::mix;

#[derive(Clone, Debug)]
enum Op {
    Insert(u32),
    Touch(u32),
    Remove(u32, Removed),
    Pin(u32),
    Evict { effort: u32 },
}

fn op() -> impl Strategy<Value = Op> {
    let slot = 0..40u32;
    prop_oneof![
        6 => slot.clone().prop_map(Op::Insert),
        4 => slot.clone().prop_map(Op::Touch),
        1 => slot.clone().prop_map(|s| Op::Remove(s, Removed::Dropped)),
        1 => slot.clone().prop_map(|s| Op::Remove(s, Removed::Evicted)),
        1 => slot.prop_map(Op::Pin),
        4 => (0..20u32).prop_map(|effort| Op::Evict { effort }),
    ]
}

/// A key's fingerprint: each slot holds one of eight keys in turn, so that keys come back, also in other slots.
fn fingerprint(slot: u32, turn: usize) -> u64 {
    mix(u64::from(slot % 5) * 8 + turn as u64 % 8 + 1)
}

fn check(kind: Kind, ops: &[Op]) -> Result<(), TestCaseError> {
    let mut policy = Evictor::new(kind);
    // Slot to pinned.
    let mut model = BTreeMap::<u32, bool>::new();
    for (turn, op) in ops.iter().enumerate() {
        match *op {
            Op::Insert(slot) => {
                policy.insert(slot, fingerprint(slot, turn));
                model.entry(slot).or_insert(false);
            }
            Op::Touch(slot) => policy.touch(slot),
            Op::Remove(slot, why) => {
                policy.remove(slot, why);
                model.remove(&slot);
            }
            Op::Pin(slot) => {
                if let Some(pinned) = model.get_mut(&slot) {
                    *pinned = !*pinned;
                }
            }
            Op::Evict { effort } => {
                let mut looks = 0;
                let found = policy.victim(effort, &mut |slot| {
                    looks += 1;
                    if model[&slot] { Keep::Spare } else { Keep::Take }
                });
                prop_assert!(looks <= effort);
                if let Some(slot) = found {
                    prop_assert_eq!(model.remove(&slot), Some(false), "{} took {}", kind, slot);
                    policy.remove(slot, Removed::Evicted);
                }
            }
        }
        prop_assert_eq!(policy.len(), model.len());
        prop_assert_eq!(policy.is_empty(), model.is_empty());
    }
    drain(kind, &mut policy, model)
}

/// All that is not pinned can be had, each once, in a number of looks that grows with the entries only.
fn drain(kind: Kind, policy: &mut Evictor, mut model: BTreeMap<u32, bool>) -> Result<(), TestCaseError> {
    let mut calls = 16 * (model.len() + 1);
    while model.values().any(|pinned| !pinned) {
        prop_assert!(calls > 0, "{} finds none of {:?}", kind, model);
        calls -= 1;
        let found = policy.victim(4, &mut |slot| if model[&slot] { Keep::Spare } else { Keep::Take });
        if let Some(slot) = found {
            prop_assert_eq!(model.remove(&slot), Some(false));
            policy.remove(slot, Removed::Evicted);
        }
    }
    prop_assert_eq!(policy.victim(1_000, &mut |_| Keep::Spare), None);
    prop_assert_eq!(policy.len(), model.len());
    Ok(())
}

proptest! {
    #[test]
    fn every_policy_keeps_the_books(ops in prop::collection::vec(op(), 1..300)) {
        for kind in Kind::ALL {
            check(kind, &ops)?;
        }
    }
}

#[test]
fn an_empty_policy_has_no_victim() {
    for kind in Kind::ALL {
        let mut policy = Evictor::new(kind);
        policy.touch(3);
        policy.remove(3, Removed::Dropped);
        assert_eq!(policy.victim(10, &mut |_| Keep::Take), None);
        assert_eq!(policy.victim(0, &mut |_| Keep::Take), None);
    }
}

#[test]
fn a_victim_that_is_not_removed_is_named_again() {
    for kind in Kind::ALL {
        let mut policy = Evictor::new(kind);
        (0..10).for_each(|slot| policy.insert(slot, mix(u64::from(slot))));
        let first = policy.victim(10, &mut |_| Keep::Take);
        assert!(first.is_some());
        assert_eq!(policy.victim(10, &mut |_| Keep::Take), first, "{kind}");
    }
}

#[test]
fn spared_entries_do_not_hide_the_others() {
    for kind in Kind::ALL {
        let mut policy = Evictor::new(kind);
        (0..1_000).for_each(|slot| policy.insert(slot, mix(u64::from(slot))));
        let mut looks = 0;
        let mut keep = |slot| {
            looks += 1;
            if slot < 900 { Keep::Spare } else { Keep::Take }
        };
        for _ in 0..100 {
            let slot = core::iter::repeat_with(|| policy.victim(8, &mut keep)).take(1_000).flatten().next();
            policy.remove(slot.expect("one of the hundred"), Removed::Evicted);
        }
        assert_eq!(policy.len(), 900);
        assert!(looks < 20_000, "{kind} looked {looks} times");
    }
}

#[test]
fn names_are_read_as_they_are_written() {
    for kind in Kind::ALL {
        assert_eq!(kind.to_string().parse(), Ok(kind));
        assert_eq!(Evictor::new(kind).kind(), kind);
    }
    assert_eq!("LRU".parse::<Kind>(), Err(UnknownPolicy));
    assert!(UnknownPolicy.to_string().contains("there are lru, s3fifo, density"));
}

#[test]
fn lru_gives_up_in_order_of_use() {
    let mut lru = Lru::default();
    (0..4).for_each(|slot| lru.insert(slot, 0));
    lru.touch(0);
    let order: [_; 4] = core::array::from_fn(|_| {
        let slot = lru.victim(1, &mut |_| Keep::Take).unwrap();
        lru.remove(slot, Removed::Evicted);
        slot
    });
    assert_eq!(order, [1, 2, 3, 0]);
}

#[test]
fn s3fifo_lets_a_scan_pass_and_knows_who_comes_back() {
    let mut s3 = S3Fifo::default();
    let evict = |s3: &mut S3Fifo| {
        let slot = (0..100).find_map(|_| s3.victim(8, &mut |_| Keep::Take)).unwrap();
        s3.remove(slot, Removed::Evicted);
        slot
    };
    (0..10).for_each(|slot| s3.insert(slot, mix(u64::from(slot) + 1)));
    s3.touch(0);
    let gone = evict(&mut s3);
    assert_eq!(gone, 1, "the oldest that was not read");
    // It comes back, and a scan does not drive it out again.
    s3.insert(gone, mix(2));
    for key in 100..200 {
        let slot = evict(&mut s3);
        assert!(slot > 1, "{slot} was read, the scan was not");
        s3.insert(slot, mix(key));
    }
}
