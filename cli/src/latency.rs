//! Latencies: recorded in nanoseconds, reported as percentiles in microseconds.

use core::fmt;
use core::time::Duration;

use hdrhistogram::Histogram;
use serde::Serialize;

/// Anything slower counts as this slow.
const SLOWEST: u64 = 3_600_000_000_000;

/// How long operations took. About 200 KiB; recording allocates nothing. One a thread, merged at the end.
#[derive(Clone, Debug)]
pub struct Latencies {
    nanos: Histogram<u64>,
}

/// Percentiles in microseconds; zeros if nothing was recorded.
#[derive(Clone, Copy, PartialEq, Debug, Default, Serialize)]
pub struct Micros {
    /// The median.
    pub p50: f64,
    /// 99 of 100 were no slower.
    pub p99: f64,
    /// 999 of 1000 were no slower.
    pub p999: f64,
}

impl Default for Latencies {
    fn default() -> Self {
        Self::new()
    }
}

impl Latencies {
    /// Nothing recorded yet. Resolution: three significant digits.
    pub fn new() -> Self {
        let nanos =
            Histogram::new_with_bounds(1, SLOWEST, 3).expect("the bounds and three digits go together");
        Self { nanos }
    }

    /// Records one operation.
    pub fn record(&mut self, took: Duration) {
        let nanos = u64::try_from(took.as_nanos()).unwrap_or(u64::MAX);
        self.nanos.saturating_record(nanos.clamp(1, SLOWEST));
    }

    /// Takes over what another thread recorded.
    pub fn merge(&mut self, other: &Self) {
        self.nanos.add(&other.nanos).expect("all histograms have the same bounds");
    }

    /// How many operations were recorded.
    pub fn count(&self) -> u64 {
        self.nanos.len()
    }

    /// The percentiles so far.
    pub fn micros(&self) -> Micros {
        if self.nanos.is_empty() {
            return Micros::default();
        }
        // To a tenth of a microsecond: more would pretend to a precision that a clock call does not have.
        let at = |quantile| (self.nanos.value_at_quantile(quantile) as f64 / 100.0).round() / 10.0;
        Micros { p50: at(0.5), p99: at(0.99), p999: at(0.999) }
    }
}

impl Micros {
    /// The three as cells of a table.
    pub fn cells(&self) -> [String; 3] {
        [self.p50, self.p99, self.p999].map(|micros| format!("{micros:.1}"))
    }
}

impl fmt::Display for Micros {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "p50 {:.1} µs, p99 {:.1} µs, p999 {:.1} µs", self.p50, self.p99, self.p999)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_are_those_of_all_threads() {
        let (mut fast, mut slow) = (Latencies::new(), Latencies::new());
        (0..990).for_each(|_| fast.record(Duration::from_micros(10)));
        (0..10).for_each(|_| slow.record(Duration::from_millis(2)));
        fast.merge(&slow);
        let micros = fast.micros();
        assert_eq!(fast.count(), 1_000);
        assert_eq!(micros.p50, 10.0);
        assert_eq!(micros.p99, 10.0);
        assert!((micros.p999 - 2_000.0).abs() <= 2.0, "{micros}");
    }

    #[test]
    fn nothing_and_far_too_much_are_counted() {
        let mut latencies = Latencies::new();
        assert_eq!(latencies.micros(), Micros::default());
        latencies.record(Duration::ZERO);
        latencies.record(Duration::MAX);
        assert_eq!(latencies.count(), 2);
    }
}
