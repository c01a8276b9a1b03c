//! Reference patterns that tell eviction policies apart, as requests of one block each.

use springtide_core::rng::{Rng, mix};

use super::Record;

/// Blocks in use at any time of [`scan`] and [`shifting`].
const HOT: u64 = 2_000;
/// References between two scans, and how long a scan is.
const BETWEEN_SCANS: usize = 4_000;
const SCAN: usize = 1_000;
/// References after which [`shifting`] makes other blocks popular.
const SHIFT: usize = 2_000;

/// Popular blocks by Zipf, interrupted by scans of blocks that never come again.
pub fn scan(seed: u64, requests: usize) -> Vec<Record> {
    let (mut rng, zipf) = (Rng::new(seed), Zipf::new(HOT));
    let scanning = |n: usize| n % (BETWEEN_SCANS + SCAN) >= BETWEEN_SCANS;
    of_ids(requests, |n| if scanning(n) { HOT + n as u64 } else { zipf.rank(&mut rng) })
}

/// The same `blocks` blocks over and over, in an order that the seed decides.
///
/// # Panics
/// When there are no blocks.
pub fn cycle(seed: u64, blocks: usize, requests: usize) -> Vec<Record> {
    let mut order: Vec<_> = (0..blocks as u64).collect();
    Rng::new(seed).shuffle(&mut order);
    of_ids(requests, |n| order[n % blocks])
}

/// Popular blocks by Zipf; which ones are popular shifts a little every while.
pub fn shifting(seed: u64, requests: usize) -> Vec<Record> {
    let (mut rng, zipf) = (Rng::new(seed), Zipf::new(HOT));
    of_ids(requests, |n| (n / SHIFT) as u64 * (HOT / 20) + zipf.rank(&mut rng))
}

fn of_ids(requests: usize, mut id: impl FnMut(usize) -> u64) -> Vec<Record> {
    let one = |n| Record {
        timestamp: n as u64,
        input_length: 512,
        output_length: 1,
        // Ranks are small and dense; ids are not.
        hash_ids: vec![mix(id(n))],
    };
    (0..requests).map(one).collect()
}

/// Ranks from zero, the n-th in proportion to 1/(n + 1). In integers.
pub(super) struct Zipf {
    /// The sums of the weights up to each rank.
    sums: Vec<u64>,
}

impl Zipf {
    /// `ranks` ranks, one at least.
    pub(super) fn new(ranks: u64) -> Self {
        let mut sum = 0;
        let sums = (1..=ranks.max(1)).map(|n| {
            sum += (1 << 40) / n;
            sum
        });
        Self { sums: sums.collect() }
    }

    /// A rank.
    pub(super) fn rank(&self, rng: &mut Rng) -> u64 {
        let all = self.sums[self.sums.len() - 1];
        let at = rng.below(all);
        self.sums.partition_point(|&sum| sum <= at) as u64
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    fn distinct(records: &[Record]) -> HashSet<u64> {
        records.iter().flat_map(|record| record.hash_ids.clone()).collect()
    }

    #[test]
    fn a_seed_decides_everything() {
        assert_eq!(scan(1, 9_000), scan(1, 9_000));
        assert_ne!(scan(1, 9_000), scan(2, 9_000));
        assert_eq!(shifting(1, 9_000), shifting(1, 9_000));
        assert_ne!(cycle(1, 50, 100), cycle(2, 50, 100));
    }

    #[test]
    fn zipf_halves_from_the_first_to_the_second() {
        let (mut rng, zipf, mut seen) = (Rng::new(1), Zipf::new(100), [0u32; 100]);
        for _ in 0..100_000 {
            seen[zipf.rank(&mut rng) as usize] += 1;
        }
        assert!(seen.iter().all(|&n| n > 0));
        assert!(seen[0].abs_diff(2 * seen[1]) < seen[0] / 20, "{seen:?}");
        assert!(seen[0].abs_diff(10 * seen[9]) < seen[0] / 10, "{seen:?}");
        assert_eq!(Zipf::new(0).rank(&mut rng), 0);
    }

    #[test]
    fn a_scan_is_seen_once() {
        let records = scan(1, 10_000);
        let scanned = distinct(&records[4_000..5_000]);
        assert_eq!(scanned.len(), 1_000);
        assert!(scanned.is_disjoint(&distinct(&records[..4_000])));
        assert!(scanned.is_disjoint(&distinct(&records[5_000..])));
    }

    #[test]
    fn a_cycle_repeats() {
        let records = cycle(1, 50, 120);
        assert_eq!(distinct(&records).len(), 50);
        assert!((50..120).all(|n| records[n].hash_ids == records[n - 50].hash_ids));
    }

    #[test]
    fn what_is_popular_shifts() {
        let most = |records: &[Record]| {
            let count = |id: &u64| records.iter().filter(|record| record.hash_ids[0] == *id).count();
            distinct(records).into_iter().max_by_key(count)
        };
        let records = shifting(1, 10_000);
        assert_eq!(most(&records[..2_000]), Some(mix(0)));
        assert_eq!(most(&records[2_000..4_000]), Some(mix(HOT / 20)));
    }
}
