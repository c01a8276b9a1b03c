//! How a thread sleeps until a waker or a descriptor wakes it.

mod bell;
#[cfg(all(test, loom))]
mod orders;

use core::cell::Cell;
use std::os::fd::BorrowedFd;
use std::sync::Arc;
use std::task::Wake;

use springtide_core::time::Instant;

use crate::sync::{AtomicU8, Ordering};
use bell::Bell;

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
    bell: Bell,
}

thread_local! {
    static SPARE: Cell<Option<Arc<Parker>>> = const { Cell::new(None) };
}

impl Parker {
    /// This thread's parker, or a new one if it is in use further up the stack.
    pub fn take() -> Arc<Self> {
        SPARE.take().unwrap_or_else(|| Arc::new(Self { state: AtomicU8::new(AWAKE), bell: Bell::new() }))
    }

    /// Keeps `parker` for this thread's next [`take`](Self::take).
    pub fn give_back(parker: Arc<Self>) {
        if parker.bell.works() {
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
        self.bell.sleep(fds, now, until, || {
            // A call that came in the meantime stays noted.
            let _ = self.state.compare_exchange(ASLEEP, AWAKE, Ordering::AcqRel, Ordering::Acquire);
        });
    }
}

impl Wake for Parker {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        if self.state.swap(CALLED, Ordering::AcqRel) == ASLEEP {
            self.bell.ring();
        }
    }
}

#[cfg(all(test, not(loom)))]
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
