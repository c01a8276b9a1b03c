//! Bounded spinning, the only place where it happens.

use core::hint::spin_loop;
use core::time::Duration;

use springtide_core::time::Instant;

/// What a [`Pause`] advises.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Step {
    /// Look again.
    Again,
    /// The bound is used up: sleep.
    Sleep,
}

/// Waits a little between two looks at something that will probably be there soon, and says when to give that up.
///
/// Waking a sleeping thread costs 30–50 µs when its core is idle, so what comes within that time is cheaper to spin
/// for. When cores are busy or shared it is the other way round: a sleeper runs within a few microseconds, and spinning
/// takes the core from whoever is to bring what is waited for. So each wait that ended in sleep decides about the next:
///
/// - it slept for less than half the bound: sleeping is cheap here, do not spin;
/// - for less than twice the bound: spinning would have paid, use all of the bound;
/// - for longer: what comes is not near, spin half as long.
#[derive(Clone, Copy, Debug)]
pub struct Pause {
    bound: Duration,
    /// How much of it may be used at the moment.
    allowed: Duration,
    since: Option<Instant>,
}

impl Pause {
    /// The usual bound, about the cost of a wake-up.
    pub const BOUND: Duration = Duration::from_micros(50);

    /// Spins for at most `bound` at a time; zero sleeps at once.
    pub const fn new(bound: Duration) -> Self {
        Self { bound, allowed: bound, since: None }
    }

    /// What was waited for is there: the next wait is another one.
    pub fn found(&mut self, now: Instant) {
        let Some(since) = self.since.take() else { return };
        let waited = now.since(since);
        if waited <= self.allowed {
            return;
        }
        let slept = waited - self.allowed;
        self.allowed = if slept < self.bound / 2 {
            Duration::ZERO
        } else if slept < self.bound * 2 {
            self.bound
        } else {
            self.allowed / 2
        };
    }

    /// Lets a little time pass, unless the bound is used up.
    pub fn step(&mut self, now: Instant) -> Step {
        let step = self.check(now);
        if step == Step::Again {
            (0..SPINS).for_each(|_| spin_loop());
        }
        step
    }

    /// [`step`](Self::step) without letting time pass, for tasks: they yield to their executor instead.
    pub fn check(&mut self, now: Instant) -> Step {
        let spent = now.since(*self.since.get_or_insert(now));
        if spent >= self.allowed { Step::Sleep } else { Step::Again }
    }
}

impl Default for Pause {
    fn default() -> Self {
        Self::new(Self::BOUND)
    }
}

/// How many processor pauses make one spin: about a third of a microsecond.
const SPINS: u32 = 16;

#[cfg(test)]
mod tests {
    use super::*;

    fn at(micros: u64) -> Instant {
        Instant::from_nanos(micros * 1_000)
    }

    #[test]
    fn spins_for_its_bound_and_then_sleeps() {
        let mut pause = Pause::new(Duration::from_micros(40));
        assert_eq!(pause.check(at(100)), Step::Again);
        assert_eq!(pause.step(at(139)), Step::Again);
        assert_eq!(pause.step(at(140)), Step::Sleep);
        pause.found(at(170));
        assert_eq!(pause.check(at(171)), Step::Again);
    }

    /// Finds what it waits for after `waited`, asleep or not.
    fn wait(pause: &mut Pause, waited: u64) {
        let _ = pause.check(at(0));
        pause.found(at(waited));
    }

    #[test]
    fn each_sleep_decides_about_the_next_wait() {
        let mut pause = Pause::new(Duration::from_micros(40));
        let mut allowed = |waited| {
            wait(&mut pause, waited);
            pause.allowed.as_micros()
        };
        assert_eq!(allowed(39), 40, "found while spinning");
        assert_eq!(allowed(1_000), 20, "not near");
        assert_eq!(allowed(1_000), 10);
        assert_eq!(allowed(10 + 60), 40, "near, and sleeping was dear");
        assert_eq!(allowed(40 + 10), 0, "sleeping was cheap");
        assert_eq!(allowed(12), 0);
        assert_eq!(allowed(50), 40);
    }

    #[test]
    fn a_bound_of_zero_sleeps_at_once() {
        let mut pause = Pause::new(Duration::ZERO);
        assert_eq!(pause.step(at(1)), Step::Sleep);
        pause.found(at(1));
        assert_eq!(pause.step(at(2)), Step::Sleep);
    }
}
