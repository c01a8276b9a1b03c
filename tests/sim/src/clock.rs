//! What a process takes for the time: true time with a rate and an offset of its own.

use core::time::Duration;

use springtide_core::time::Instant;

const MILLION: i64 = 1_000_000;

/// The clock of one process.
#[derive(Clone, Copy, Debug)]
pub struct Clock {
    /// Parts per million by which it is fast; within what leases allow for.
    rate: i64,
    /// True and local time of the last change.
    since: (Instant, Instant),
    /// When it jumped last; promises from before cannot be held to their time.
    jumped: Instant,
}

impl Clock {
    /// A clock that is `rate` parts per million fast and shows `start` at the origin of true time.
    pub fn new(rate: i64, start: Duration) -> Self {
        Self { rate, since: (Instant::ORIGIN, Instant::ORIGIN + start), jumped: Instant::ORIGIN }
    }

    /// What it shows at the true time `now`.
    pub fn local(&self, now: Instant) -> Instant {
        let passed = now.since(self.since.0).as_nanos() as i64;
        let shown = passed + passed / MILLION * self.rate + passed % MILLION * self.rate / MILLION;
        self.since.1 + Duration::from_nanos(shown.max(0) as u64)
    }

    /// A true time at which it shows `local` or a little more; never before `now`.
    pub fn global(&self, now: Instant, local: Instant) -> Instant {
        if local == Instant::NEVER {
            return local;
        }
        let ahead = local.since(self.local(now)).as_nanos();
        if ahead == 0 {
            return now;
        }
        let slow = ahead * MILLION as u128 / (MILLION + self.rate) as u128;
        now + Duration::from_nanos(u64::try_from(slow).unwrap_or(u64::MAX).saturating_add(2))
    }

    /// Jumps to `by` later than it shows now.
    pub fn jump(&mut self, now: Instant, by: Duration) {
        self.since = (now, self.local(now) + by);
        self.jumped = now;
    }

    /// Jumps to `by` earlier than it shows now.
    pub fn jump_back(&mut self, now: Instant, by: Duration) {
        self.since = (now, self.local(now) - by);
        self.jumped = now;
    }

    /// When it jumped last.
    pub const fn jumped(&self) -> Instant {
        self.jumped
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(millis: u64) -> Instant {
        Instant::ORIGIN + Duration::from_millis(millis)
    }

    #[test]
    fn there_and_back() {
        for rate in [-5_000, 0, 3_000] {
            let clock = Clock::new(rate, Duration::from_secs(7));
            for millis in [0, 1, 999, 123_456] {
                let local = clock.local(at(millis));
                let back = clock.global(at(0), local);
                assert!(back >= at(millis) && back.since(at(millis)) < Duration::from_micros(1), "{rate}");
                assert!(clock.local(back) >= local);
            }
        }
    }

    #[test]
    fn jumps_either_way() {
        let mut clock = Clock::new(0, Duration::from_secs(1));
        clock.jump(at(10), Duration::from_secs(5));
        assert_eq!(clock.local(at(20)), at(6_020));
        clock.jump_back(at(20), Duration::from_secs(2));
        assert_eq!((clock.local(at(20)), clock.jumped()), (at(4_020), at(20)));
    }
}
