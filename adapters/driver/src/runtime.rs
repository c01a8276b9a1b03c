//! What an executor must offer.

use core::future::Future;
use core::task::{Context, Poll};
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use springtide_core::time::Instant;

/// A direction of a descriptor.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Interest {
    /// There is something to read, or the peer closed.
    Read,
    /// There is room to write.
    Write,
}

/// Readiness of one descriptor, by direction.
pub trait Ready: AsFd + Send + Unpin + 'static {
    /// Calls `io` while `want` is thought possible. When `io` says [`io::ErrorKind::WouldBlock`] that direction counts
    /// as not ready and the task's waker is registered for it; everything else is the answer.
    ///
    /// Readiness is cleared here and nowhere else, and only as far as it was known before `io` ran: what becomes ready
    /// in the meantime is not lost, and a direction that never blocked is never waited for.
    fn poll_io<T>(
        &mut self,
        cx: &mut Context<'_>,
        want: Interest,
        io: impl FnMut(BorrowedFd<'_>) -> io::Result<T>,
    ) -> Poll<io::Result<T>>;
}

/// An executor with timers and descriptor readiness. A handle: cloning is cheap.
///
/// It is not on the data path: lanes and connections work on their descriptors themselves and ask the runtime only
/// to be woken.
pub trait Runtime: Clone + Send + Sync + 'static {
    /// Ends at a given moment.
    type Timer: Future<Output = ()> + Send + 'static;
    /// Readiness of one descriptor.
    type Ready: Ready;
    /// A spawned task. It ends when the task has ended, also by a panic; dropping it lets the task run on.
    type Task: Future<Output = ()> + Send + Unpin + 'static;

    /// Now, by the clock that every deadline is measured with ([`crate::now`]).
    fn now(&self) -> Instant;
    /// A future that ends at `at`; at once if that is past.
    fn timer(&self, at: Instant) -> Self::Timer;
    /// Watches `fd`, which must be non-blocking.
    ///
    /// # Errors
    /// The system's, when it watches as many descriptors as it can.
    fn ready(&self, fd: OwnedFd) -> io::Result<Self::Ready>;
    /// Runs `task` beside everything else.
    fn spawn<F: Future<Output = ()> + Send + 'static>(&self, task: F) -> Self::Task;
    /// Runs `future` on this thread. Not from inside a task.
    fn block_on<F: Future>(&self, future: F) -> F::Output;
}
