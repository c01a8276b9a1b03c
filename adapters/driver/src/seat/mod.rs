//! One machine, many users: blocked callers and tasks share its driving.
//!
//! A [`Seat`] holds a machine ([`Drive`]) under one mutex. Whoever has the mutex may give the machine commands and
//! drive it; so blocked callers run the machine themselves and need no thread beside them.
//!
//! # Who sleeps on the descriptor
//! At most one user at a time is the *watcher*: the one who, when it sleeps, sleeps on the machine's descriptor and
//! deadline. All others that sleep wait in a queue and are woken by their own futures' wakers, or by being made the
//! watcher. Everything about watching stands under the machine's mutex. Three rules make a lost wake-up impossible:
//!
//! 1. **Arm, look again, sleep.** The watcher drives and arms in one hold of the mutex. It sleeps only if the drive
//!    found nothing and `arm` said so; from then on whatever happens makes the descriptor readable.
//! 2. **Who touches, settles.** Whoever gives a command to the machine or drives it while the watcher sleeps arms it
//!    again before leaving, and wakes the watcher if there is more to do or a deadline came nearer. (A blocked caller
//!    that commands a seat it is blocked on settles when it sleeps or leaves, as it drives the seat until then.)
//! 3. **Who leaves, hands over.** A watcher that leaves makes the head of the queue the watcher and wakes it, in one
//!    hold of the mutex. So while anybody waits there is a watcher, and it is awake, or asleep under rule 1.
//!
//! A user's own future cannot be missed either: its waker marks the user as called, and a user that was called since
//! it last polled its future does not sleep.

mod attend;
mod block;
#[cfg(all(test, loom))]
mod orders;
mod watch;

use core::sync::atomic::{AtomicU64, Ordering};
use core::task::Waker;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::{PoisonError, TryLockError};

use springtide_core::time::Instant;
use springtide_transport::Armed;

use crate::sync::{Mutex, MutexGuard};
use crate::wakes::Wakes;
use watch::Watch;

pub use attend::attend;
pub use block::{TimedOut, block_on, block_on_with};

/// A machine that works on descriptors and is driven from outside. Never blocks.
pub trait Drive: Send {
    /// Does what can be done now, within a bound of its own, and hands out the wakers of what has ended.
    fn drive(&mut self, now: Instant, wakes: &mut Wakes) -> Drove;
    /// [`drive`](Self::drive) for a user who is awake: where nothing is awaited it need not look, so that [`Drove::Idle`]
    /// says less. Nobody sleeps on that.
    fn glance(&mut self, now: Instant, wakes: &mut Wakes) -> Drove {
        self.drive(now, wakes)
    }
    /// Asks for the descriptor to become readable at whatever happens next.
    fn arm(&mut self) -> Armed;
    /// Readable when there is something to do. The same descriptor for the machine's whole life.
    fn fd(&self) -> BorrowedFd<'_>;
    /// When to drive at the latest, even if nothing happens.
    fn deadline(&self) -> Option<Instant>;
}

/// Whether driving was of use.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[must_use]
pub enum Drove {
    /// Something was done: drive again at once.
    Busy,
    /// There is nothing to do now.
    Idle,
}

/// A machine and the order in which its users wait for it (S0A-150, S0A-151). The module's own text states the
/// protocol.
#[derive(Debug)]
pub struct Seat<D> {
    shared: Mutex<Shared<D>>,
    fd: OwnedFd,
}

#[derive(Debug)]
struct Shared<D> {
    machine: D,
    watch: Watch,
}

impl<D: Drive> Seat<D> {
    /// A seat over `machine`.
    ///
    /// # Errors
    /// When the machine's descriptor cannot be duplicated.
    pub fn new(machine: D) -> io::Result<Self> {
        let fd = machine.fd().try_clone_to_owned()?;
        Ok(Self { shared: Mutex::new(Shared { machine, watch: Watch::default() }), fd })
    }

    /// Gives a command to the machine. Waits while somebody drives it, for at most one bounded drive.
    ///
    /// What the command started is driven by whoever blocks on the seat or attends it, not by this call.
    pub fn with<T>(&self, now: Instant, command: impl FnOnce(&mut D, &mut Wakes) -> T) -> T {
        let mut wakes = Wakes::new();
        let mut shared = self.lock();
        let answer = command(&mut shared.machine, &mut wakes);
        if !block::driven_here(self.address()) {
            shared.settle(now, &mut wakes);
        }
        drop(shared);
        wakes.fire();
        answer
    }

    fn lock(&self) -> MutexGuard<'_, Shared<D>> {
        self.shared.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<D: Drive> Shared<D> {
    /// When the watcher has to look again by itself; `None` if there is something to do already.
    fn arm(&mut self, now: Instant) -> Option<Instant> {
        let again = match self.machine.arm() {
            Armed::Again => return None,
            Armed::Asleep => Instant::NEVER,
            Armed::Poll(after) => now + after,
        };
        Some(self.machine.deadline().map_or(again, |deadline| again.min(deadline)))
    }

    /// Rule 2.
    fn settle(&mut self, now: Instant, wakes: &mut Wakes) {
        let Some(asleep_until) = self.watch.asleep_until() else { return };
        if self.arm(now).is_none_or(|until| until < asleep_until) {
            self.watch.wake_watcher(wakes);
        }
    }
}

/// A [`Seat`] whose machine's type does not matter: what [`block_on`] needs of it.
pub trait Driven: Sync {
    /// Drives the machine, as far as something is awaited, if nobody else does.
    #[doc(hidden)]
    fn try_drive(&self, user: User, now: Instant, wakes: &mut Wakes) -> Option<Drove>;
    /// Prepares to sleep: as the watcher if there is none, else in the queue.
    #[doc(hidden)]
    fn sit(&self, user: User, waker: &Waker, now: Instant, wakes: &mut Wakes) -> Sat;
    /// Ends `user`'s stay.
    #[doc(hidden)]
    fn leave(&self, user: User, now: Instant, wakes: &mut Wakes);
    /// Tells this seat from all others while it lives.
    #[doc(hidden)]
    fn address(&self) -> usize;
    /// What the watcher sleeps on.
    #[doc(hidden)]
    fn watched_fd(&self) -> BorrowedFd<'_>;
}

/// Names one blocked caller or task, at all of its seats.
#[doc(hidden)]
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct User(u64);

impl User {
    fn new() -> Self {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        Self(NEXT.fetch_add(1, Ordering::Relaxed))
    }
}

/// How a user may sleep.
#[doc(hidden)]
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Sat {
    /// Not at all: there is something to do.
    Busy,
    /// On the descriptor, until this moment at the latest.
    Watching(Instant),
    /// Until its own waker is called.
    Queued,
}

impl<D: Drive> Driven for Seat<D> {
    fn try_drive(&self, user: User, now: Instant, wakes: &mut Wakes) -> Option<Drove> {
        let mut shared = match self.shared.try_lock() {
            Ok(shared) => shared,
            Err(TryLockError::Poisoned(poisoned)) => poisoned.into_inner(),
            Err(TryLockError::WouldBlock) => return None,
        };
        shared.watch.wake_up(user);
        Some(shared.machine.glance(now, wakes))
    }

    fn sit(&self, user: User, waker: &Waker, now: Instant, wakes: &mut Wakes) -> Sat {
        let mut shared = self.lock();
        if !shared.watch.take(user, waker) {
            shared.settle(now, wakes);
            return Sat::Queued;
        }
        if shared.machine.drive(now, wakes) == Drove::Busy {
            return Sat::Busy;
        }
        let Some(until) = shared.arm(now) else { return Sat::Busy };
        shared.watch.sleep(until);
        Sat::Watching(until)
    }

    fn leave(&self, user: User, now: Instant, wakes: &mut Wakes) {
        let mut shared = self.lock();
        shared.watch.leave(user, wakes);
        shared.settle(now, wakes);
    }

    fn address(&self) -> usize {
        core::ptr::from_ref(self).addr()
    }

    fn watched_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

impl<D> Drop for Seat<D> {
    fn drop(&mut self) {
        let mut wakes = Wakes::new();
        let shared = self.shared.get_mut().unwrap_or_else(PoisonError::into_inner);
        shared.watch.dismiss(&mut wakes);
        wakes.fire();
    }
}

#[cfg(all(test, not(loom)))]
mod tests;
