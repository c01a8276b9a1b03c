//! Blocking on a future while driving the seats that it depends on.

use core::fmt;
use core::future::Future;
use core::pin::pin;
use core::task::{Context, Poll, Waker};
use std::os::fd::BorrowedFd;
use std::sync::Arc;

use springtide_core::time::Instant;

use super::{Driven, Drove, Sat, User};
use crate::now;
use crate::park::Parker;
use crate::pause::{Pause, Step};
use crate::wakes::Wakes;

/// The deadline came first. The future was dropped, which gives up what it had begun.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct TimedOut;

impl fmt::Display for TimedOut {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("no answer in time")
    }
}

impl core::error::Error for TimedOut {}

/// Runs `future` on this thread and drives `seats` meanwhile: no other thread is needed. `seats` are all that `future`
/// may wait for and that nobody attends; more do no harm.
///
/// Spins for at most [`Pause::BOUND`] after something happened, then sleeps.
///
/// # Errors
/// [`TimedOut`] when `deadline` comes first.
///
/// # Panics
/// With more than 64 seats.
pub fn block_on<F: Future>(
    seats: &[&dyn Driven],
    deadline: Instant,
    future: F,
) -> Result<F::Output, TimedOut> {
    block_on_with(Pause::default(), seats, deadline, future)
}

/// [`block_on`] with a spinning bound of one's own.
///
/// # Errors
/// [`TimedOut`] when `deadline` comes first.
///
/// # Panics
/// With more than 64 seats.
pub fn block_on_with<F: Future>(
    pause: Pause,
    seats: &[&dyn Driven],
    deadline: Instant,
    future: F,
) -> Result<F::Output, TimedOut> {
    assert!(seats.len() <= 64, "a blocked caller drives at most 64 seats");
    let parker = Parker::take();
    let waker = Waker::from(Arc::clone(&parker));
    let mut stay = Stay { seats, user: User::new(), touched: 0, wakes: Wakes::new() };
    let result = run(&mut stay, &parker, &waker, pause, deadline, future);
    drop(stay);
    Parker::give_back(parker);
    result
}

fn run<F: Future>(
    stay: &mut Stay<'_>,
    parker: &Parker,
    waker: &Waker,
    mut pause: Pause,
    deadline: Instant,
    future: F,
) -> Result<F::Output, TimedOut> {
    let mut future = pin!(future);
    let mut cx = Context::from_waker(waker);
    let mut called = true;
    loop {
        if called && let Poll::Ready(output) = future.as_mut().poll(&mut cx) {
            return Ok(output);
        }
        let moment = now();
        if deadline.reached(moment) {
            return Err(TimedOut);
        }
        let drove = stay.drive(moment);
        called = parker.called();
        if called || drove == Drove::Busy {
            pause.reset();
            continue;
        }
        if pause.step(moment) == Step::Sleep {
            stay.sleep(parker, waker, moment, deadline);
            pause.reset();
        }
        called = parker.called();
    }
}

/// A blocked caller at its seats; leaves them when dropped, also when its future panics.
struct Stay<'a> {
    seats: &'a [&'a dyn Driven],
    user: User,
    /// One bit for each seat that was driven, or sat at.
    touched: u64,
    wakes: Wakes,
}

impl Stay<'_> {
    fn drive(&mut self, now: Instant) -> Drove {
        let mut all = Drove::Idle;
        for (index, seat) in self.seats.iter().enumerate() {
            match seat.try_drive(self.user, now, &mut self.wakes) {
                Some(Drove::Busy) => all = Drove::Busy,
                Some(Drove::Idle) => {}
                None => continue,
            }
            self.touched |= 1 << index;
        }
        self.wakes.fire();
        all
    }

    /// Sits down at every seat and sleeps, unless one of them has something to do.
    fn sleep(&mut self, parker: &Parker, waker: &Waker, now: Instant, deadline: Instant) {
        let mut until = deadline;
        let mut fds: Vec<BorrowedFd<'_>> = Vec::new();
        for (index, seat) in self.seats.iter().enumerate() {
            self.touched |= 1 << index;
            let sat = seat.sit(self.user, waker, now, &mut self.wakes);
            self.wakes.fire();
            match sat {
                Sat::Busy => return,
                Sat::Queued => {}
                Sat::Watching(at) => {
                    until = until.min(at);
                    fds.push(seat.watched_fd());
                }
            }
        }
        parker.sleep(&fds, now, until);
    }
}

impl Drop for Stay<'_> {
    fn drop(&mut self) {
        let moment = now();
        for (index, seat) in self.seats.iter().enumerate() {
            if self.touched & 1 << index != 0 {
                seat.leave(self.user, moment, &mut self.wakes);
            }
        }
        self.wakes.fire();
    }
}
