//! Monotonic time as a plain number.

use core::ops::{Add, AddAssign, Sub};
use core::time::Duration;

/// A moment, in nanoseconds since an origin that only its giver knows. Never wall time.
///
/// Arithmetic saturates: a deadline of "for ever" stays for ever.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Instant(u64);

impl Instant {
    /// The moment zero.
    pub const ORIGIN: Self = Self(0);
    /// Later than every moment that is reached.
    pub const NEVER: Self = Self(u64::MAX);

    /// The moment `nanos` after the origin.
    pub const fn from_nanos(nanos: u64) -> Self {
        Self(nanos)
    }

    /// Nanoseconds since the origin.
    pub const fn nanos(self) -> u64 {
        self.0
    }

    /// Time from `earlier` to here; zero if `earlier` is later.
    pub const fn since(self, earlier: Self) -> Duration {
        Duration::from_nanos(self.0.saturating_sub(earlier.0))
    }

    /// Whether this deadline has come at `now`.
    pub const fn reached(self, now: Self) -> bool {
        self.0 <= now.0
    }
}

/// `duration` in nanoseconds, saturating at `u64::MAX` (584 years).
pub const fn nanos(duration: Duration) -> u64 {
    let nanos = duration.as_nanos();
    if nanos > u64::MAX as u128 { u64::MAX } else { nanos as u64 }
}

/// `duration` less one per cent: how long a holder of a promise may count on it when the giver's clock may drift.
pub const fn less_drift(duration: Duration) -> Duration {
    let nanos = nanos(duration);
    Duration::from_nanos(nanos - nanos / 100)
}

impl Add<Duration> for Instant {
    type Output = Self;
    fn add(self, after: Duration) -> Self {
        Self(self.0.saturating_add(nanos(after)))
    }
}

impl AddAssign<Duration> for Instant {
    fn add_assign(&mut self, after: Duration) {
        *self = *self + after;
    }
}

impl Sub<Duration> for Instant {
    type Output = Self;
    fn sub(self, before: Duration) -> Self {
        Self(self.0.saturating_sub(nanos(before)))
    }
}

/// A clock that never goes back: earlier moments are clamped to the latest seen, and counted.
#[derive(Clone, Copy, Debug, Default)]
pub struct Monotone {
    latest: Instant,
    went_back: u64,
}

impl Monotone {
    /// Takes `now` in; gives back the later of it and the latest moment seen.
    pub fn observe(&mut self, now: Instant) -> Instant {
        if now < self.latest {
            self.went_back += 1;
        } else {
            self.latest = now;
        }
        self.latest
    }

    /// How often time went backwards.
    pub const fn went_back(&self) -> u64 {
        self.went_back
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn saturates_at_both_ends() {
        assert_eq!(Instant::NEVER + Duration::from_secs(1), Instant::NEVER);
        assert_eq!(Instant::ORIGIN - Duration::from_secs(1), Instant::ORIGIN);
        assert_eq!(Instant::ORIGIN.since(Instant::from_nanos(5)), Duration::ZERO);
        assert_eq!(nanos(Duration::MAX), u64::MAX);
    }

    #[test]
    fn clamps_and_counts_backward_steps() {
        let mut clock = Monotone::default();
        assert_eq!(clock.observe(Instant::from_nanos(10)).nanos(), 10);
        assert_eq!(clock.observe(Instant::from_nanos(3)).nanos(), 10);
        assert_eq!(clock.went_back(), 1);
    }

    #[test]
    fn drift_takes_one_per_cent() {
        assert_eq!(less_drift(Duration::from_secs(10)), Duration::from_millis(9_900));
    }
}
