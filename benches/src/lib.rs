//! What benchmarks share.

#![forbid(unsafe_code)]

use core::hint::black_box;
use core::time::Duration;

use rustix::time::{ClockId, clock_gettime};
use springtide_core::rng::Rng;

/// The processor time that this thread has used. What other threads and processes do meanwhile does not count, but for
/// what they push out of the caches. A call takes a few tenths of a microsecond.
pub fn thread_time() -> Duration {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
}

/// Nanoseconds of one read whose address the last one gave, in a table of `count` entries of `WORDS` times four bytes:
/// the median of 101 batches.
pub fn random_read<const WORDS: usize>(count: usize) -> f64 {
    const BATCH: u32 = 1_024;
    let mut order: Vec<u32> = (0..count as u32).collect();
    let mut rng = Rng::new(3);
    // One cycle through all (Sattolo's shuffle).
    (1..count).rev().for_each(|n| order.swap(n, rng.below(n as u64) as usize));
    let mut table = vec![[0_u32; WORDS]; count];
    for (entry, next) in table.iter_mut().zip(order) {
        entry[0] = next;
    }
    let mut at = 0;
    let batch = |_| {
        let start = thread_time();
        (0..BATCH).for_each(|_| at = table[at as usize][0]);
        (thread_time() - start).as_nanos() as f64 / f64::from(BATCH)
    };
    let row = (0..101).map(batch).collect();
    black_box(at);
    median(row)
}

/// The middle one of some figures.
pub fn median(mut row: Vec<f64>) -> f64 {
    row.sort_by(f64::total_cmp);
    row[row.len() / 2]
}
