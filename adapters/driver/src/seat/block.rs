//! Blocking on a future while driving the seats that it depends on.

use core::cell::{Cell, RefCell};
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
/// Spins for at most [`Pause::BOUND`] after something happened, less where that proved of no use, then sleeps.
///
/// # Errors
/// [`TimedOut`] when `deadline` comes first.
pub fn block_on<F: Future>(
    seats: &[&dyn Driven],
    deadline: Instant,
    future: F,
) -> Result<F::Output, TimedOut> {
    let mut pause = PAUSE.get();
    let result = block_on_with(&mut pause, seats, deadline, future);
    PAUSE.set(pause);
    result
}

/// [`block_on`] with a spinning bound of one's own, which learns from call to call.
///
/// # Errors
/// [`TimedOut`] when `deadline` comes first.
pub fn block_on_with<F: Future>(
    pause: &mut Pause,
    seats: &[&dyn Driven],
    deadline: Instant,
    future: F,
) -> Result<F::Output, TimedOut> {
    let parker = Parker::take();
    let waker = Waker::from(Arc::clone(&parker));
    let mut stay = Stay::new(seats);
    let result = run(&mut stay, &parker, &waker, pause, deadline, future);
    drop(stay);
    Parker::give_back(parker);
    result
}

fn run<F: Future>(
    stay: &mut Stay<'_>,
    parker: &Parker,
    waker: &Waker,
    pause: &mut Pause,
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
            pause.found(moment);
            continue;
        }
        if pause.step(moment) == Step::Sleep {
            stay.sleep(parker, waker, moment, deadline);
        }
        called = parker.called();
    }
}

/// A blocked caller at its seats; leaves them when dropped, also when its future panics.
struct Stay<'a> {
    seats: &'a [&'a dyn Driven],
    user: User,
    wakes: Wakes,
    /// Where the seats of the block further up the stack begin in [`DRIVEN`].
    outer: usize,
}

thread_local! {
    /// What this thread has learnt about spinning.
    static PAUSE: Cell<Pause> = const { Cell::new(Pause::new(Pause::BOUND)) };
    /// The seats that this thread is blocked on, by address; those of the innermost block begin at [`BASE`].
    static DRIVEN: RefCell<Vec<usize>> = const { RefCell::new(Vec::new()) };
    static BASE: Cell<usize> = const { Cell::new(0) };
}

/// Whether this thread is blocked on the seat at `address` and will drive it before it sleeps: then whoever watches it
/// need not be woken for what this thread just commanded.
pub(super) fn driven_here(address: usize) -> bool {
    DRIVEN.with_borrow(|driven| driven[BASE.get()..].contains(&address))
}

impl<'a> Stay<'a> {
    fn new(seats: &'a [&'a dyn Driven]) -> Self {
        let outer = BASE.get();
        DRIVEN.with_borrow_mut(|driven| {
            BASE.set(driven.len());
            driven.extend(seats.iter().map(|seat| seat.address()));
        });
        Self { seats, user: User::new(), wakes: Wakes::new(), outer }
    }

    fn drive(&mut self, now: Instant) -> Drove {
        let mut all = Drove::Idle;
        for seat in self.seats {
            if seat.try_drive(self.user, now, &mut self.wakes) == Some(Drove::Busy) {
                all = Drove::Busy;
            }
        }
        self.wakes.fire();
        all
    }

    /// Sits down at every seat and sleeps, unless one of them has something to do.
    fn sleep(&mut self, parker: &Parker, waker: &Waker, now: Instant, deadline: Instant) {
        let mut until = deadline;
        let mut fds: Vec<BorrowedFd<'_>> = Vec::new();
        for seat in self.seats {
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
        DRIVEN.with_borrow_mut(|driven| driven.truncate(BASE.get()));
        BASE.set(self.outer);
        let moment = now();
        for seat in self.seats {
            seat.leave(self.user, moment, &mut self.wakes);
        }
        self.wakes.fire();
    }
}
