//! The default policy on mixes that are hard for one policy or the other: never much worse than the better of the two.

use std::collections::HashMap;

use springtide_core::evict::{Evictor, Keep, Kind, Policy, Removed};
use springtide_core::rng::{Rng, mix};

const CAPACITY: usize = 1_000;

/// Hits in ten thousand, of single keys in a pool of [`CAPACITY`].
fn hits(kind: Kind, keys: &[u64]) -> u64 {
    let mut policy = Evictor::new(kind);
    let (mut slots, mut keys_of, mut free, mut hits) = (HashMap::new(), Vec::new(), Vec::new(), 0);
    for &key in keys {
        if let Some(&slot) = slots.get(&key) {
            policy.touch(slot);
            hits += 1;
            continue;
        }
        if slots.len() == CAPACITY {
            let slot = core::iter::repeat_with(|| policy.victim(64, &mut |_| Keep::Take)).flatten().next();
            let slot = slot.expect("a full pool without pins has a victim");
            policy.remove(slot, Removed::Evicted);
            slots.remove(&keys_of[slot as usize]);
            free.push(slot);
        }
        let slot = free.pop().unwrap_or_else(|| {
            keys_of.push(0);
            keys_of.len() as u32 - 1
        });
        keys_of[slot as usize] = key;
        slots.insert(key, slot);
        policy.insert(slot, mix(key + 1));
    }
    hits * 10_000 / keys.len() as u64
}

fn compare(name: &str, keys: &[u64]) {
    let [lru, s3fifo, density] = [Kind::Lru, Kind::S3Fifo, Kind::Density].map(|kind| hits(kind, keys));
    println!("{name}: lru {lru} s3fifo {s3fifo} density {density}");
    assert!(density + 100 >= lru.max(s3fifo), "{name}: lru {lru} s3fifo {s3fifo} density {density}");
}

/// A key below `keys`, the small ones more often: a sum of octaves, which falls off like 1 ÷ rank.
fn zipf(rng: &mut Rng, keys: u64) -> u64 {
    let octaves = u64::from(keys.ilog2());
    let octave = rng.below(octaves + 1);
    ((1 << octave) - 1 + rng.below(1 << octave)) % keys
}

#[test]
fn scan() {
    let mut rng = Rng::new(1);
    let mut next = 1 << 32;
    let keys: Vec<u64> = (0..200_000)
        .map(|step: u64| {
            if step % 5_000 < 2_500 && step.is_multiple_of(2) {
                next += 1;
                return next;
            }
            zipf(&mut rng, 4_000)
        })
        .collect();
    compare("scan", &keys);
}

#[test]
fn loops() {
    for length in [900, 1_100, 2_000, 5_000] {
        let keys: Vec<u64> = (0..200_000).map(|step| step % length).collect();
        compare("loop", &keys);
    }
}

#[test]
fn loop_beside_zipf() {
    let mut rng = Rng::new(2);
    let keys: Vec<u64> = (0..200_000)
        .map(
            |step: u64| {
                if step.is_multiple_of(3) { (1 << 32) + (step / 3) % 1_500 } else { zipf(&mut rng, 4_000) }
            },
        )
        .collect();
    compare("loop beside zipf", &keys);
}

#[test]
fn shifting_zipf() {
    let mut rng = Rng::new(3);
    let keys: Vec<u64> = (0..300_000)
        .map(|step: u64| {
            // Every 20,000 reads, an eighth of the popularity order moves on.
            (zipf(&mut rng, 8_000) + step / 20_000 * 1_000) % 40_000
        })
        .collect();
    compare("shifting zipf", &keys);
}
