//! How a thread sleeps until a waker or a descriptor wakes it.

use core::cell::Cell;
use core::sync::atomic::{AtomicU8, Ordering};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;
use std::task::Wake;

use rustix::event::{EventfdFlags, PollFd, PollFlags, Timespec, eventfd, poll};
use springtide_core::time::Instant;

/// Nobody sleeps, nobody called.
const AWAKE: u8 = 0;
/// Somebody called since the last look.
const CALLED: u8 = 1;
/// The owner is about to sleep or sleeps: whoever calls must write to the eventfd.
const ASLEEP: u8 = 2;

/// A thread's way to be woken while it sleeps on descriptors, for loops that block on a future. As a waker it may be
/// called from anywhere; a call costs a system call only while the thread sleeps.
#[derive(Debug)]
pub struct Parker {
    state: AtomicU8,
    /// `None` when the process had no descriptor left; the owner then sleeps a millisecond at a time.
    event: Option<OwnedFd>,
}

/// How long to sleep at most without an eventfd.
const BLIND: i64 = 1_000_000;

thread_local! {
    static SPARE: Cell<Option<Arc<Parker>>> = const { Cell::new(None) };
}

impl Parker {
    /// This thread's parker, or a new one if it is in use further up the stack.
    pub fn take() -> Arc<Self> {
        SPARE.take().unwrap_or_else(|| {
            let event = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK).ok();
            Arc::new(Self { state: AtomicU8::new(AWAKE), event })
        })
    }

    /// Keeps `parker` for this thread's next [`take`](Self::take).
    pub fn give_back(parker: Arc<Self>) {
        if parker.event.is_some() {
            SPARE.set(Some(parker));
        }
    }

    /// Whether somebody called since the last time this was asked.
    pub fn called(&self) -> bool {
        self.state.swap(AWAKE, Ordering::AcqRel) == CALLED
    }

    /// Sleeps until somebody calls, one of `fds` is readable, or `until` has come. A call that came since the last
    /// [`called`](Self::called) keeps it from sleeping.
    pub fn sleep(&self, fds: &[BorrowedFd<'_>], now: Instant, until: Instant) {
        if self.state.compare_exchange(AWAKE, ASLEEP, Ordering::AcqRel, Ordering::Acquire).is_err() {
            return;
        }
        let own = self.event.as_ref().map(AsFd::as_fd);
        let all = own.iter().chain(fds);
        let mut polled: Vec<_> = all.map(|fd| PollFd::from_borrowed_fd(*fd, PollFlags::IN)).collect();
        // An error here (a signal) is a wake-up without a reason, which every caller bears.
        let _ = poll(&mut polled, timeout(now, until, own.is_none()).as_ref());
        // A call that came in the meantime stays noted.
        let _ = self.state.compare_exchange(ASLEEP, AWAKE, Ordering::AcqRel, Ordering::Acquire);
        if let Some(event) = own.filter(|_| !polled[0].revents().is_empty()) {
            let _ = rustix::io::read(event, &mut [0; 8]);
        }
    }
}

fn timeout(now: Instant, until: Instant, blind: bool) -> Option<Timespec> {
    let left = until.since(now);
    let (tv_sec, tv_nsec) = (left.as_secs() as i64, i64::from(left.subsec_nanos()));
    match (blind, until == Instant::NEVER) {
        (true, _) => {
            Some(Timespec { tv_sec: 0, tv_nsec: if tv_sec > 0 { BLIND } else { tv_nsec.min(BLIND) } })
        }
        (false, true) => None,
        (false, false) => Some(Timespec { tv_sec, tv_nsec }),
    }
}

impl Wake for Parker {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        if self.state.swap(CALLED, Ordering::AcqRel) == ASLEEP
            && let Some(event) = &self.event
        {
            // Fails only when the counter is full, and then the sleeper is awake.
            let _ = rustix::io::write(event, &1u64.to_ne_bytes());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_call_before_the_sleep_is_not_lost() {
        let parker = Parker::take();
        parker.wake_by_ref();
        parker.sleep(&[], Instant::ORIGIN, Instant::NEVER);
        assert!(parker.called());
        assert!(!parker.called());
    }

    #[test]
    fn a_call_from_another_thread_ends_the_sleep() {
        let parker = Parker::take();
        for _ in 0..1_000 {
            let other = Arc::clone(&parker);
            std::thread::scope(|scope| {
                scope.spawn(move || other.wake());
                while !parker.called() {
                    parker.sleep(&[], Instant::ORIGIN, Instant::NEVER);
                }
            });
        }
    }

    #[test]
    fn sleeps_no_longer_than_told() {
        let parker = Parker::take();
        parker.sleep(&[], Instant::from_nanos(5), Instant::from_nanos(6));
        assert!(!parker.called());
    }

    #[test]
    fn nested_use_gets_a_parker_of_its_own() {
        let outer = Parker::take();
        let inner = Parker::take();
        assert!(!Arc::ptr_eq(&outer, &inner));
        Parker::give_back(outer);
    }
}
