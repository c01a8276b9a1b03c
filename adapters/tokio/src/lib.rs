//! Springtide on tokio: an implementation of [`Runtime`], and nothing else.
#![forbid(unsafe_code)]

use core::future::Future;
use core::pin::Pin;
use core::task::{Context, Poll, ready};
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;

use springtide_core::time::Instant;
use springtide_driver::{Interest, Ready, Runtime};
use tokio::io::unix::AsyncFd;
use tokio::runtime::{Builder, Handle};
use tokio::task::JoinHandle;
use tokio::time::{Sleep, sleep};

/// A tokio runtime, of one's own or of somebody else.
#[derive(Clone, Debug)]
pub struct Tokio {
    handle: Handle,
    /// Ends with the last clone; `None` for a runtime of somebody else.
    owned: Option<Arc<Owned>>,
}

impl Tokio {
    /// The runtime that this thread runs in.
    ///
    /// # Panics
    /// Outside a tokio runtime.
    pub fn current() -> Self {
        Self { handle: Handle::current(), owned: None }
    }

    /// A runtime whose tasks all run on the thread that is in [`block_on`](Runtime::block_on): one thread owns its
    /// state, reads many frames and answers them with one write. Its tasks stand still while nobody is in `block_on`.
    ///
    /// # Errors
    /// The system's, when it has no descriptors left.
    pub fn new_single() -> io::Result<Self> {
        Self::own(Builder::new_current_thread().enable_all().build()?)
    }

    /// A runtime with `threads` threads of its own (at least one).
    ///
    /// # Errors
    /// The system's, when it has no descriptors or threads left.
    pub fn new_multi(threads: usize) -> io::Result<Self> {
        Self::own(Builder::new_multi_thread().worker_threads(threads.max(1)).enable_all().build()?)
    }

    fn own(runtime: tokio::runtime::Runtime) -> io::Result<Self> {
        let handle = runtime.handle().clone();
        Ok(Self { handle, owned: Some(Arc::new(Owned(Some(runtime)))) })
    }
}

/// A runtime that may be dropped by one of its own tasks, which tokio forbids for a plain one.
#[derive(Debug)]
struct Owned(Option<tokio::runtime::Runtime>);

impl Drop for Owned {
    fn drop(&mut self) {
        if let Some(runtime) = self.0.take() {
            runtime.shutdown_background();
        }
    }
}

impl Runtime for Tokio {
    type Timer = Sleep;
    type Ready = Descriptor;
    type Task = Task;

    fn now(&self) -> Instant {
        springtide_driver::now()
    }

    fn timer(&self, at: Instant) -> Sleep {
        let _context = self.handle.enter();
        sleep(at.since(self.now()))
    }

    fn ready(&self, fd: OwnedFd) -> io::Result<Descriptor> {
        let _context = self.handle.enter();
        #[allow(
            deprecated,
            reason = "its replacement is unsafe for types whose descriptor may change; ours owns it"
        )]
        AsyncFd::new(fd).map(Descriptor)
    }

    fn spawn<F: Future<Output = ()> + Send + 'static>(&self, task: F) -> Task {
        Task(self.handle.spawn(task))
    }

    fn block_on<F: Future>(&self, future: F) -> F::Output {
        match self.owned.as_deref() {
            Some(Owned(Some(runtime))) => runtime.block_on(future),
            _ => self.handle.block_on(future),
        }
    }
}

/// Readiness of one descriptor.
#[derive(Debug)]
pub struct Descriptor(AsyncFd<OwnedFd>);

impl AsFd for Descriptor {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.get_ref().as_fd()
    }
}

impl Ready for Descriptor {
    fn poll_io<T>(
        &mut self,
        cx: &mut Context<'_>,
        want: Interest,
        mut io: impl FnMut(BorrowedFd<'_>) -> io::Result<T>,
    ) -> Poll<io::Result<T>> {
        loop {
            let mut guard = match want {
                Interest::Read => ready!(self.0.poll_read_ready(cx))?,
                Interest::Write => ready!(self.0.poll_write_ready(cx))?,
            };
            if let Ok(done) = guard.try_io(|fd| io(fd.get_ref().as_fd())) {
                return Poll::Ready(done);
            }
        }
    }
}

/// A spawned task.
#[derive(Debug)]
pub struct Task(JoinHandle<()>);

impl Future for Task {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        // How it ended (also by a panic) is the task's own affair.
        Pin::new(&mut self.0).poll(cx).map(|_| ())
    }
}
