//! Wakers that are called after a lock is left.

use core::task::Waker;

/// Wakers to call once no lock is held.
///
/// A waker runs foreign code and may drop a task, whose end may want the same lock again; so a machine hands its
/// wakers out and whoever holds the lock calls them after leaving it. Keeps its memory between uses.
#[derive(Debug, Default)]
pub struct Wakes(Vec<Waker>);

impl Wakes {
    /// No wakers yet; allocates with the first.
    pub const fn new() -> Self {
        Self(Vec::new())
    }

    /// Adds a waker.
    pub fn push(&mut self, waker: Waker) {
        self.0.push(waker);
    }

    /// Whether there is nobody to wake.
    pub const fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Wakes all. Call it without a lock.
    pub fn fire(&mut self) {
        for waker in self.0.drain(..) {
            waker.wake();
        }
    }
}
