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

/// Waits a little between two looks at something that will probably be there soon, and says when to give that up
/// (S0A-149).
///
/// Waking a sleeping thread costs 30–50 µs when its core is idle, so what comes within that time is cheaper to spin
/// for. When cores are busy or shared it is the other way round: a sleeper runs within a few microseconds, and spinning
/// takes the core from whoever is to bring what is waited for. So each wait that ended in sleep decides about the next:
///
/// - it slept for less than a third of the bound: sleeping is cheap here, do not spin;
/// - for less than twice the bound: spinning would have paid; after eight of these (a cheap one takes two away) use all
///   of the bound again;
/// - for longer: what comes is not near, spin half as long.
///
/// And a spinner that lost its core between two looks competes for it: it sleeps from then on, as sleepers are let in
/// first, until a wait shows that sleeping is dear again.
#[derive(Clone, Copy, Debug)]
pub struct Pause {
    bound: Duration,
    /// How much of it may be used at the moment.
    allowed: Duration,
    since: Option<Instant>,
    /// How many sleeps were dear, of late.
    dear: u8,
    /// When it last looked without sleeping after.
    looked: Option<Instant>,
}

impl Pause {
    /// The usual bound, about the cost of a wake-up.
    pub const BOUND: Duration = Duration::from_micros(50);

    /// Spins for at most `bound` at a time; zero sleeps at once.
    pub const fn new(bound: Duration) -> Self {
        Self { bound, allowed: bound, since: None, dear: 0, looked: None }
    }

    /// What was waited for is there: the next wait is another one.
    pub fn found(&mut self, now: Instant) {
        let Some(since) = self.since.take() else { return };
        if self.looked.is_some() {
            self.notice(now);
            return;
        }
        let waited = now.since(since);
        let slept = waited.saturating_sub(self.allowed);
        if slept < self.bound / 3 {
            self.dear = self.dear.saturating_sub(2);
            self.allowed = Duration::ZERO;
        } else if slept >= self.bound * 2 {
            self.allowed /= 2;
        } else if self.dear + 1 < DEAR {
            self.dear += 1;
        } else {
            self.dear = 0;
            self.allowed = self.bound;
        }
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
        self.notice(now);
        let spent = now.since(*self.since.get_or_insert(now));
        if spent >= self.allowed {
            return Step::Sleep;
        }
        self.looked = Some(now);
        Step::Again
    }

    /// Notices a core lost since the last look.
    fn notice(&mut self, now: Instant) {
        if self.looked.take().is_some_and(|looked| now.since(looked) > self.bound * 4) {
            self.allowed = Duration::ZERO;
            self.dear = 0;
        }
    }
}

impl Default for Pause {
    fn default() -> Self {
        Self::new(Self::BOUND)
    }
}

/// How many dear sleeps bring spinning back.
const DEAR: u8 = 8;

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
        let spins = pause.check(at(0)) == Step::Again;
        if spins && u128::from(waited) > pause.allowed.as_micros() {
            assert_eq!(pause.check(at(0) + pause.allowed), Step::Sleep);
        }
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
        for _ in 1..8 {
            assert_eq!(allowed(10 + 60), 10);
        }
        assert_eq!(allowed(10 + 60), 40, "near, and sleeping was dear eight times");
        assert_eq!(allowed(40 + 10), 0, "sleeping was cheap");
        for _ in 0..100 {
            assert_eq!((allowed(50), allowed(12)), (0, 0), "as often cheap as dear");
        }
    }

    #[test]
    fn a_spinner_that_lost_its_core_sleeps_from_then_on() {
        let mut pause = Pause::new(Duration::from_micros(40));
        assert_eq!(pause.check(at(0)), Step::Again);
        assert_eq!(pause.check(at(3_000)), Step::Sleep);
        pause.found(at(3_010));
        for wait in 0..8 {
            assert_eq!(pause.check(at(4_000 + wait * 100)), Step::Sleep);
            pause.found(at(4_050 + wait * 100));
        }
        assert_eq!(pause.check(at(5_000)), Step::Again);
        pause.found(at(9_000));
        assert_eq!(pause.check(at(9_001)), Step::Sleep, "lost while it found something");
    }

    #[test]
    fn a_bound_of_zero_sleeps_at_once() {
        let mut pause = Pause::new(Duration::ZERO);
        assert_eq!(pause.step(at(1)), Step::Sleep);
        pause.found(at(1));
        assert_eq!(pause.step(at(2)), Step::Sleep);
    }
}
