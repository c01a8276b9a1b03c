//! How long a path takes, measured from how long its ops took.

use core::time::Duration;

use crate::time::nanos;

const MIB: u64 = 1 << 20;
/// Neither latency nor the time of a MiB is believed to be longer than this (17 s).
const MOST: u64 = 1 << 34;

/// A path's latency and cost a byte. Both follow what is measured, each by its share in what was predicted.
#[derive(Clone, Copy, Debug)]
pub(super) struct Estimate {
    /// Nanoseconds of an op without bytes.
    latency: u64,
    /// Nanoseconds of a MiB.
    cost: u64,
}

impl Estimate {
    pub(super) fn new(latency: Duration, bandwidth: u64) -> Self {
        let cost = MIB.saturating_mul(1_000_000_000) / bandwidth.max(1);
        Self { latency: nanos(latency).clamp(1, MOST), cost: cost.clamp(1, MOST) }
    }

    /// Nanoseconds until an op is done that has `ahead` bytes before it, its own among them.
    pub(super) const fn time(self, ahead: u64) -> u64 {
        self.latency.saturating_add(self.transit(ahead))
    }

    const fn transit(self, ahead: u64) -> u64 {
        let nanos = (ahead as u128 * self.cost as u128) >> 20;
        if nanos > MOST as u128 * 64 { MOST * 64 } else { nanos as u64 }
    }

    /// Takes in that an op with `ahead` bytes before it took `elapsed` nanoseconds.
    ///
    /// A sample that is off by more than a factor of two counts half, any other an eighth: a path that changed is
    /// known after a few ops, and noise is smoothed.
    pub(super) fn observe(&mut self, ahead: u64, elapsed: u64) {
        let predicted = self.time(ahead).max(1);
        // All in 1/1024; at most 64-fold up in one step.
        let ratio = (elapsed.min(MOST * 64) << 10).checked_div(predicted).unwrap_or(0).min(64 << 10);
        let weight = if (512..=2_048).contains(&ratio) { 3 } else { 1 };
        let share = (self.latency << 10) / predicted;
        self.latency = follow(self.latency, ratio, share, weight);
        self.cost = follow(self.cost, ratio, 1_024 - share.min(1_024), weight);
    }

    pub(super) const fn latency(self) -> Duration {
        Duration::from_nanos(self.latency)
    }

    /// Bytes per second.
    pub(super) const fn bandwidth(self) -> u64 {
        MIB * 1_000_000_000 / self.cost
    }

    /// How many bytes pass in `time` nanoseconds.
    pub(super) const fn bytes_in(self, time: u64) -> u64 {
        let bytes = ((time as u128) << 20) / self.cost as u128;
        if bytes > u64::MAX as u128 { u64::MAX } else { bytes as u64 }
    }
}

/// `value` moved towards `value · ratio` by its share and by 1/2^weight.
fn follow(value: u64, ratio: u64, share: u64, weight: u32) -> u64 {
    let step = if ratio >= 1_024 {
        i128::from(value) * i128::from((ratio - 1_024) * share)
    } else {
        -i128::from(value) * i128::from((1_024 - ratio) * share)
    };
    let next = i128::from(value) + (step >> (20 + weight));
    u64::try_from(next).unwrap_or(1).clamp(1, MOST)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn settled(guess: Estimate, latency: u64, cost: u64, sizes: &[u64]) -> Estimate {
        let mut estimate = guess;
        for i in 0..400 {
            let ahead = sizes[i % sizes.len()];
            estimate.observe(ahead, latency + ahead * cost / MIB);
        }
        estimate
    }

    #[test]
    fn finds_latency_and_bandwidth_from_a_wrong_guess() {
        let guess = Estimate::new(Duration::from_micros(1), 100 << 30);
        let found = settled(guess, 200_000, 10_000_000, &[4 << 10, 16 * MIB]);
        assert!((180_000..220_000).contains(&found.latency), "{found:?}");
        assert!((9_000_000..11_000_000).contains(&found.cost), "{found:?}");
    }

    #[test]
    fn a_hundredfold_change_is_known_after_a_few_ops() {
        let fast = settled(Estimate::new(Duration::from_micros(50), 1 << 30), 50_000, 1_000_000, &[MIB]);
        let mut slow = fast;
        for _ in 0..4 {
            slow.observe(MIB, 100_000_000);
        }
        assert!(slow.time(MIB) > 50_000_000, "{slow:?}");
        for _ in 0..8 {
            slow.observe(MIB, 1_050_000);
        }
        assert!(slow.time(MIB) < 2_500_000, "{slow:?}");
    }

    #[test]
    fn extremes_stay_within_bounds() {
        let mut estimate = Estimate::new(Duration::MAX, 0);
        for elapsed in [0, 1, u64::MAX, u64::MAX, 0, u64::MAX] {
            for ahead in [0, 1, u64::MAX] {
                estimate.observe(ahead, elapsed);
                assert!((1..=MOST).contains(&estimate.latency) && (1..=MOST).contains(&estimate.cost));
                assert!(estimate.time(u64::MAX) >= estimate.time(0));
            }
        }
        assert!(estimate.bandwidth() > 0);
    }
}
