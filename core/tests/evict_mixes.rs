//! The default policy on mixes that are hard for one policy or the other: never more than 0.01 below the better of the two,
//! with several seeds and pool sizes.

use std::collections::HashMap;

use springtide_core::evict::{Evictor, Keep, Kind, Policy, Removed};
use springtide_core::rng::{Rng, mix};

/// Hits in ten thousand, of single keys in a pool of `capacity`.
fn hits(kind: Kind, capacity: usize, keys: &[u64]) -> u64 {
    let mut policy = Evictor::new(kind);
    let (mut slots, mut keys_of, mut free, mut hits) = (HashMap::new(), Vec::new(), Vec::new(), 0);
    for &key in keys {
        if let Some(&slot) = slots.get(&key) {
            policy.touch(slot);
            hits += 1;
            continue;
        }
        if slots.len() == capacity {
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

fn compare(name: &str, capacities: &[usize], keys: impl IntoIterator<Item = u64>) {
    let keys: Vec<_> = keys.into_iter().collect();
    for &capacity in capacities {
        let [lru, s3fifo, density] =
            [Kind::Lru, Kind::S3Fifo, Kind::Density].map(|kind| hits(kind, capacity, &keys));
        let found = format!("{name} in {capacity}: lru {lru} s3fifo {s3fifo} density {density}");
        println!("{found}");
        assert!(density + 100 >= lru.max(s3fifo), "{found}");
    }
}

/// Ranks from zero, the n-th in proportion to 1/(n + 1).
struct Zipf {
    rng: Rng,
    sums: Vec<u64>,
}

impl Zipf {
    fn new(seed: u64, ranks: u64) -> Self {
        let mut sum = 0;
        let sums = (1..=ranks).map(|n| {
            sum += (1 << 40) / n;
            sum
        });
        Self { rng: Rng::new(seed), sums: sums.collect() }
    }

    fn rank(&mut self) -> u64 {
        let at = self.rng.below(self.sums[self.sums.len() - 1]);
        self.sums.partition_point(|&sum| sum <= at) as u64
    }
}

/// Keys of a scan: none comes twice.
const SCANNED: u64 = 1 << 32;

#[test]
fn scans_that_interrupt_what_is_popular() {
    for seed in 1..=3 {
        let mut zipf = Zipf::new(seed, 2_000);
        let key = |step| if step % 5_000 >= 4_000 { SCANNED + step } else { zipf.rank() };
        compare(&format!("scan {seed}"), &[100, 200, 500, 1_000, 1_500], (0..60_000).map(key));
    }
}

#[test]
fn short_scans() {
    for seed in 4..=5 {
        let mut zipf = Zipf::new(seed, 5_000);
        let key = |step| if step % 1_000 >= 800 { SCANNED + step } else { zipf.rank() };
        compare(&format!("short scan {seed}"), &[100, 500, 2_000], (0..60_000).map(key));
    }
}

#[test]
fn scans_in_between_what_is_popular() {
    let mut zipf = Zipf::new(6, 4_000);
    let key = |step: u64| {
        if step % 5_000 < 2_500 && step.is_multiple_of(2) { SCANNED + step } else { zipf.rank() }
    };
    compare("scan in between", &[200, 1_000], (0..100_000).map(key));
}

#[test]
fn loops() {
    for length in [180, 220, 400, 900, 1_100, 2_000, 5_000] {
        compare(&format!("loop of {length}"), &[200, 1_000], (0..60_000).map(|step| step % length));
    }
}

#[test]
fn loops_beside_what_is_popular() {
    for (seed, length) in [(1, 900), (2, 1_500), (3, 5_000)] {
        let mut zipf = Zipf::new(seed, 4_000);
        let key = |step: u64| if step.is_multiple_of(3) { SCANNED + step / 3 % length } else { zipf.rank() };
        compare(&format!("loop of {length} beside zipf"), &[300, 1_000], (0..100_000).map(key));
    }
}

#[test]
fn what_is_popular_shifts() {
    for (seed, steps) in [(1, 500), (2, 2_000), (3, 2_000), (4, 10_000)] {
        let mut zipf = Zipf::new(seed, 2_000);
        // Every so many reads, a twentieth of the order of popularity moves on.
        let key = |step: u64| step / steps * 100 + zipf.rank();
        compare(&format!("shift in {steps}"), &[200, 500, 1_000], (0..60_000).map(key));
    }
}

#[test]
fn what_is_popular_changes_at_once() {
    for seed in 1..=2 {
        let mut zipf = Zipf::new(seed, 5_000);
        let key = |step: u64| step / 25_000 * 100_000 + zipf.rank();
        compare(&format!("change {seed}"), &[200, 1_000], (0..100_000).map(key));
    }
}
