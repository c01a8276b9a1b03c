//! One timer that is set again and again.

use core::pin::Pin;
use core::task::{Context, Poll};

use springtide_core::time::Instant;

use crate::runtime::Runtime;

/// Wakes its task at a moment that moves.
///
/// Deadlines mostly move away: each answer in time makes the next one later. So an alarm keeps a timer that ends too
/// early, and its owner bears a look too many; that is cheaper than a timer for every move.
pub struct Alarm<R: Runtime> {
    runtime: R,
    timer: Option<(Instant, Pin<Box<R::Timer>>)>,
}

// The timer is boxed; nothing in an alarm is pinned.
impl<R: Runtime> Unpin for Alarm<R> {}

impl<R: Runtime> Alarm<R> {
    /// An alarm that is not set.
    pub const fn new(runtime: R) -> Self {
        Self { runtime, timer: None }
    }

    /// Registers the task to be woken at `until`, or earlier; [`Instant::NEVER`] stops the alarm. Ready means: look
    /// now, and ask again.
    pub fn poll(&mut self, cx: &mut Context<'_>, until: Instant) -> Poll<()> {
        if until == Instant::NEVER {
            self.timer = None;
            return Poll::Pending;
        }
        let fits = self.timer.take_if(|(at, _)| *at <= until);
        let set = fits.unwrap_or_else(|| (until, Box::pin(self.runtime.timer(until))));
        let (_, timer) = self.timer.insert(set);
        let ended = timer.as_mut().poll(cx);
        if ended.is_ready() {
            self.timer = None;
        }
        ended
    }
}
