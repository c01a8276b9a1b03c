//! A task that drives a seat whenever there is something to do.

use core::future::Future;
use core::pin::Pin;
use core::task::{Context, Poll, Waker};
use std::io;
use std::sync::{Arc, Weak};

use springtide_core::time::Instant;

use super::{Drive, Driven, Drove, Sat, Seat, User};
use crate::alarm::Alarm;
use crate::now;
use crate::pause::{Pause, Step};
use crate::runtime::{Interest, Ready, Runtime};
use crate::wakes::Wakes;

/// How often a task drives before it lets others run.
const ROUNDS: usize = 16;

/// Drives `seat` whenever its descriptor is readable or its deadline comes, for callers that do not block and for
/// peers that are to be served. Ends when nobody else owns the seat any more.
///
/// After something happened it looks again, between other tasks, for `pause`'s bound before it sleeps; a bound of zero
/// sleeps at once.
///
/// # Errors
/// The runtime's, when it cannot watch another descriptor.
pub fn attend<R: Runtime, D: Drive + 'static>(
    runtime: &R,
    seat: &Arc<Seat<D>>,
    pause: Pause,
) -> io::Result<impl Future<Output = ()> + Send + use<R, D>> {
    let ready = runtime.ready(seat.fd.try_clone()?)?;
    let stay =
        Stay { seat: Arc::downgrade(seat), user: User::new(), runtime: runtime.clone(), wakes: Wakes::new() };
    Ok(Attend { stay, ready, alarm: Alarm::new(runtime.clone()), pause })
}

struct Attend<R: Runtime, D: Drive> {
    stay: Stay<R, D>,
    ready: R::Ready,
    alarm: Alarm<R>,
    pause: Pause,
}

// Nothing in it is pinned.
impl<R: Runtime, D: Drive> Unpin for Attend<R, D> {}

/// What to do after a few rounds.
#[derive(Clone, Copy)]
enum Turn {
    /// Let others run, then go on.
    Yield,
    /// Sleep until the descriptor is readable or this moment has come.
    Sleep(Instant),
    /// Somebody else watches: sleep until the waker is called.
    Wait,
    /// Nobody else owns the seat.
    End,
}

impl<R: Runtime, D: Drive> Future for Attend<R, D> {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        let Self { stay, ready, alarm, pause } = &mut *self;
        let waker = cx.waker().clone();
        // Readiness is looked at first and cleared only if the rounds after that look ended in sleep; what happens in
        // between makes the descriptor ready again.
        let mut last = None;
        let polled = ready.poll_io(cx, Interest::Read, |_| match stay.rounds(&waker, pause) {
            turn @ Turn::Sleep(_) => {
                last = Some(turn);
                Err(io::ErrorKind::WouldBlock.into())
            }
            turn => Ok(turn),
        });
        let turn = match polled {
            Poll::Ready(Ok(turn)) => turn,
            Poll::Ready(Err(error)) => {
                tracing::warn!(%error, "the runtime does not watch a seat's descriptor any more");
                Turn::End
            }
            Poll::Pending => last.unwrap_or_else(|| stay.rounds(&waker, pause)),
        };
        match turn {
            Turn::Yield => cx.waker().wake_by_ref(),
            Turn::Sleep(until) if alarm.poll(cx, until).is_ready() => {
                cx.waker().wake_by_ref();
            }
            Turn::Sleep(_) | Turn::Wait => {}
            Turn::End => return Poll::Ready(()),
        }
        Poll::Pending
    }
}

/// The task at its seat; leaves it when dropped.
struct Stay<R, D: Drive> {
    seat: Weak<Seat<D>>,
    user: User,
    runtime: R,
    wakes: Wakes,
}

impl<R: Runtime, D: Drive> Stay<R, D> {
    fn rounds(&mut self, waker: &Waker, pause: &mut Pause) -> Turn {
        let Some(seat) = self.seat.upgrade() else { return Turn::End };
        for _ in 0..ROUNDS {
            let now = self.runtime.now();
            let drove = seat.try_drive(self.user, now, &mut self.wakes);
            self.wakes.fire();
            if drove == Some(Drove::Busy) {
                pause.found(now);
                continue;
            }
            if pause.check(now) == Step::Again {
                return Turn::Yield;
            }
            let sat = seat.sit(self.user, waker, now, &mut self.wakes);
            self.wakes.fire();
            match sat {
                Sat::Busy => pause.found(now),
                Sat::Watching(until) => return Turn::Sleep(until),
                Sat::Queued => return Turn::Wait,
            }
        }
        Turn::Yield
    }
}

impl<R, D: Drive> Drop for Stay<R, D> {
    fn drop(&mut self) {
        if let Some(seat) = self.seat.upgrade() {
            seat.leave(self.user, now(), &mut self.wakes);
            self.wakes.fire();
        }
    }
}
