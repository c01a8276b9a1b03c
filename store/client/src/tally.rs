//! What the calls of a client came to (S0A-067).

use core::sync::atomic::{AtomicU64, Ordering};
use core::time::Duration;

use springtide_core::time::Instant;

/// A kind of call.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum CallKind {
    /// Values written, from any memory.
    Put,
    /// Values and pieces of them read, to any memory.
    Get,
    /// Whether keys are there.
    Exists,
    /// What is known of a key, or where it is.
    Stat,
    /// Removals, by key or by pattern.
    Remove,
    /// Replicas cleared.
    Clear,
    /// Pages of a listing.
    List,
    /// Copies to another segment.
    Copy,
    /// Figures, segments and members of the pool.
    Look,
}

impl CallKind {
    /// All of them.
    pub const ALL: [Self; 9] = [
        Self::Put,
        Self::Get,
        Self::Exists,
        Self::Stat,
        Self::Remove,
        Self::Clear,
        Self::List,
        Self::Copy,
        Self::Look,
    ];

    /// Its name, in lower case.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Put => "put",
            Self::Get => "get",
            Self::Exists => "exists",
            Self::Stat => "stat",
            Self::Remove => "remove",
            Self::Clear => "clear",
            Self::List => "list",
            Self::Copy => "copy",
            Self::Look => "look",
        }
    }
}

/// What the calls of one kind came to since the client connected. A call that was dropped before its end is not in it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct CallTally {
    /// Which kind.
    pub kind: CallKind,
    /// How many calls have ended; a batch is one.
    pub calls: u64,
    /// How many items they had.
    pub items: u64,
    /// How many of these items failed.
    pub failed: u64,
    /// How many bytes of values they moved, for items that did not fail.
    pub bytes: u64,
    /// Half of the calls of which an item succeeded took at most this long; up to an eighth more than they really did.
    pub p50: Duration,
    /// 99 % of them took at most this long.
    pub p99: Duration,
    /// 99.9 % of them took at most this long.
    pub p999: Duration,
    /// The longest took this long.
    pub longest: Duration,
}

/// Counts calls. Counting allocates nothing and locks nothing.
pub(crate) struct Tallies([Counters; CallKind::ALL.len()]);

struct Counters {
    calls: AtomicU64,
    items: AtomicU64,
    failed: AtomicU64,
    bytes: AtomicU64,
    longest: AtomicU64,
    /// Calls by how long they took, see [`bucket`].
    latencies: [AtomicU64; BUCKETS],
}

/// Latencies fall into classes: eight to each power of two of nanoseconds, up to 2⁴⁰ ns, 18 minutes.
const BUCKETS: usize = (LAST as usize - 2) * 8 + 8;
const LAST: u32 = 40;

fn bucket(nanos: u64) -> usize {
    let nanos = nanos.min((1 << (LAST + 1)) - 1);
    let Some(exponent) = nanos.checked_ilog2().filter(|exponent| *exponent >= 3) else {
        return nanos as usize;
    };
    let eighth = (nanos >> (exponent - 3)) & 7;
    (exponent as usize - 2) * 8 + eighth as usize
}

/// The longest latency of a class, in nanoseconds.
const fn bound(bucket: usize) -> u64 {
    if bucket < 8 {
        return bucket as u64;
    }
    let (exponent, eighth) = (bucket / 8 + 2, bucket as u64 % 8);
    ((8 + eighth + 1) << (exponent - 3)) - 1
}

impl Default for Tallies {
    fn default() -> Self {
        let zero = || AtomicU64::new(0);
        Self(core::array::from_fn(|_| Counters {
            calls: zero(),
            items: zero(),
            failed: zero(),
            bytes: zero(),
            longest: zero(),
            latencies: core::array::from_fn(|_| zero()),
        }))
    }
}

impl Tallies {
    /// Counts a call with as many `items`, of which `failed` did, that began and ended so and moved `bytes`.
    pub(crate) fn count(&self, kind: CallKind, time: (Instant, Instant), items: [usize; 2], bytes: u64) {
        let counters = &self.0[kind as usize];
        let ([items, failed], (begun, ended)) = (items, time);
        let add = |counter: &AtomicU64, more: u64| counter.fetch_add(more, Ordering::Relaxed);
        add(&counters.calls, 1);
        add(&counters.items, items as u64);
        add(&counters.failed, failed as u64);
        add(&counters.bytes, bytes);
        if failed < items {
            let nanos = u64::try_from(ended.since(begun).as_nanos()).unwrap_or(u64::MAX);
            add(&counters.latencies[bucket(nanos)], 1);
            counters.longest.fetch_max(nanos, Ordering::Relaxed);
        }
    }

    /// What the calls of `kind` came to.
    pub(crate) fn of(&self, kind: CallKind) -> CallTally {
        let counters = &self.0[kind as usize];
        let of = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        let timed: u64 = counters.latencies.iter().map(of).sum();
        let longest = of(&counters.longest);
        let quantile = |share: u64| {
            // Parts per thousand, rounded up, and at least the first.
            let rank = timed.saturating_mul(share).div_ceil(1_000).max(1);
            let mut below = 0;
            let mut classes = counters.latencies.iter().enumerate();
            let class = classes.find(|(_, count)| {
                below += of(count);
                below >= rank
            });
            Duration::from_nanos(class.map_or(0, |(class, _)| bound(class).min(longest)))
        };
        CallTally {
            kind,
            calls: of(&counters.calls),
            items: of(&counters.items),
            failed: of(&counters.failed),
            bytes: of(&counters.bytes),
            p50: quantile(500),
            p99: quantile(990),
            p999: quantile(999),
            longest: Duration::from_nanos(longest),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(nanos: u64) -> Instant {
        Instant::ORIGIN + Duration::from_nanos(nanos)
    }

    #[test]
    fn classes_follow_one_another_and_are_an_eighth_wide_at_most() {
        let mut last = 0;
        for nanos in
            (0..5_000).chain((12..41).flat_map(|power| [(1 << power) - 1, 1 << power, (9 << power) / 8]))
        {
            let class = bucket(nanos);
            assert!(class < BUCKETS && nanos <= bound(class), "{nanos}");
            assert!(bound(class) - nanos <= nanos / 8, "{nanos}");
            assert!(class == 0 || bound(class - 1) < nanos, "{nanos}");
            last = last.max(class);
        }
        assert_eq!((last, bucket(u64::MAX)), (bucket(9 << 37), BUCKETS - 1));
    }

    #[test]
    fn calls_are_counted_by_kind() {
        let tallies = Tallies::default();
        let none = tallies.of(CallKind::Get);
        assert_eq!((none.calls, none.p50, none.longest), (0, Duration::ZERO, Duration::ZERO));
        for n in 1..=1_000 {
            tallies.count(CallKind::Get, (at(5), at(5 + n * 1_000)), [3, 1], 10);
        }
        // Of a call that failed altogether it does not matter how long it took.
        tallies.count(CallKind::Get, (at(0), at(u64::MAX)), [1, 1], 0);
        let got = tallies.of(CallKind::Get);
        assert_eq!((got.calls, got.items, got.failed, got.bytes), (1_001, 3_001, 1_001, 10_000));
        let near = |found: Duration, micros: u64| {
            let exact = Duration::from_micros(micros);
            assert!(exact <= found && found <= exact * 9 / 8, "{found:?} for {exact:?}");
        };
        near(got.p50, 500);
        near(got.p99, 990);
        near(got.p999, 999);
        assert_eq!(got.longest, Duration::from_micros(1_000));
        assert_eq!(tallies.of(CallKind::Put).calls, 0);
        assert_eq!(CallKind::ALL.map(|kind| kind as usize), [0, 1, 2, 3, 4, 5, 6, 7, 8]);
    }
}
