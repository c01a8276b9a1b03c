//! Bounded spinning, the only place where it happens.

use core::hint::spin_loop;
use core::time::Duration;

use springtide_core::time::Instant;

/// What a [`Pause`] advises.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Step {
    /// A little time has passed: look again.
    Again,
    /// The bound is used up: sleep.
    Sleep,
}

/// Waits a little between two looks at something that will probably be there soon, and says when to give that up.
///
/// Waking a sleeping thread costs 30–50 µs, so an answer that comes within that time is cheaper to spin for. It spins
/// for the first fifth of its bound and then yields the processor between looks, as the one who is to answer may need
/// this very core.
#[derive(Clone, Copy, Debug)]
pub struct Pause {
    bound: Duration,
    since: Option<Instant>,
}

impl Pause {
    /// The usual bound, about the cost of a wake-up.
    pub const BOUND: Duration = Duration::from_micros(50);

    /// Spins for at most `bound` at a time; zero sleeps at once.
    pub const fn new(bound: Duration) -> Self {
        Self { bound, since: None }
    }

    /// Something happened: the bound counts anew.
    pub const fn reset(&mut self) {
        self.since = None;
    }

    /// Lets a little time pass, unless the bound is used up.
    pub fn step(&mut self, now: Instant) -> Step {
        let step = self.advise(now);
        match step {
            Advice::Spin => (0..SPINS).for_each(|_| spin_loop()),
            Advice::Yield => std::thread::yield_now(),
            Advice::Sleep => return Step::Sleep,
        }
        Step::Again
    }

    /// Says whether the bound is used up without letting time pass, for tasks: they yield to their executor.
    pub fn check(&mut self, now: Instant) -> Step {
        if self.advise(now) == Advice::Sleep { Step::Sleep } else { Step::Again }
    }

    fn advise(&mut self, now: Instant) -> Advice {
        let spent = now.since(*self.since.get_or_insert(now));
        if spent >= self.bound {
            Advice::Sleep
        } else if spent < self.bound / 5 {
            Advice::Spin
        } else {
            Advice::Yield
        }
    }
}

impl Default for Pause {
    fn default() -> Self {
        Self::new(Self::BOUND)
    }
}

/// How many processor pauses make one spin: about a third of a microsecond.
const SPINS: u32 = 16;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Advice {
    Spin,
    Yield,
    Sleep,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(micros: u64) -> Instant {
        Instant::from_nanos(micros * 1_000)
    }

    #[test]
    fn spins_then_yields_then_sleeps() {
        let mut pause = Pause::new(Duration::from_micros(50));
        assert_eq!(pause.advise(at(100)), Advice::Spin);
        assert_eq!(pause.advise(at(109)), Advice::Spin);
        assert_eq!(pause.advise(at(110)), Advice::Yield);
        assert_eq!(pause.advise(at(149)), Advice::Yield);
        assert_eq!(pause.advise(at(150)), Advice::Sleep);
        assert_eq!(pause.step(at(151)), Step::Sleep);
        pause.reset();
        assert_eq!(pause.step(at(152)), Step::Again);
    }

    #[test]
    fn a_bound_of_zero_sleeps_at_once() {
        assert_eq!(Pause::new(Duration::ZERO).step(at(1)), Step::Sleep);
    }
}
