//! Springtide on smol: an implementation of [`Runtime`] over its executor and its reactor, and nothing else.
#![forbid(unsafe_code)]

use core::future::{Future, poll_fn};
use core::panic::AssertUnwindSafe;
use core::pin::{Pin, pin};
use core::task::{Context, Poll, ready};
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::panic::catch_unwind;
use std::sync::Arc;

use async_executor::{Executor, FallibleTask};
use async_io::Async;
use springtide_core::time::Instant;
use springtide_driver::{Interest, Ready, Runtime, Shutdown};

/// Smol's executor, one of one's own or one that somebody else runs, over smol's one reactor.
#[derive(Clone, Debug)]
pub struct Smol {
    executor: Arc<Executor<'static>>,
    /// End with the last clone; `None` where whoever is in [`block_on`](Runtime::block_on) runs the tasks.
    threads: Option<Arc<Threads>>,
}

impl Smol {
    /// An executor that the application runs (`smol::Executor` is the same type). [`block_on`](Runtime::block_on) runs
    /// its tasks too.
    pub const fn on(executor: Arc<Executor<'static>>) -> Self {
        Self { executor, threads: None }
    }

    /// An executor whose tasks all run on the thread that is in [`block_on`](Runtime::block_on). They stand still while
    /// nobody is.
    pub fn new_single() -> Self {
        Self::on(Arc::new(Executor::new()))
    }

    /// An executor with `threads` threads of its own (at least one).
    ///
    /// # Errors
    /// The system's, when it has no threads left.
    pub fn new_multi(threads: usize) -> io::Result<Self> {
        let (executor, owned) = (Arc::new(Executor::new()), Threads(Shutdown::new()));
        for n in 0..threads.max(1) {
            let (tasks, stop) = (Arc::clone(&executor), owned.0.begun());
            let thread = std::thread::Builder::new().name(format!("smol-{n}"));
            thread.spawn(move || async_io::block_on(tasks.run(stop)))?;
        }
        Ok(Self { executor, threads: Some(Arc::new(owned)) })
    }
}

/// Ends threads without waiting for them, as a task of theirs may be the one to drop it.
#[derive(Debug)]
struct Threads(Shutdown);

impl Drop for Threads {
    fn drop(&mut self) {
        self.0.begin();
    }
}

impl Runtime for Smol {
    type Timer = Timer;
    type Ready = Descriptor;
    type Task = Task;

    fn now(&self) -> Instant {
        springtide_driver::now()
    }

    fn timer(&self, at: Instant) -> Timer {
        Timer(async_io::Timer::after(at.since(self.now())))
    }

    fn ready(&self, fd: OwnedFd) -> io::Result<Descriptor> {
        Ok(Descriptor { fd: Async::new_nonblocking(fd)?, blocked: [false; 2] })
    }

    fn spawn<F: Future<Output = ()> + Send + 'static>(&self, task: F) -> Task {
        // A panic is the task's own affair: it would end the thread that runs the executor.
        let caught = async {
            let mut task = pin!(task);
            poll_fn(|cx| {
                let polled = catch_unwind(AssertUnwindSafe(|| task.as_mut().poll(cx)));
                polled.unwrap_or(Poll::Ready(()))
            })
            .await;
        };
        Task(Some(self.executor.spawn(caught).fallible()))
    }

    fn block_on<F: Future>(&self, future: F) -> F::Output {
        match self.threads {
            Some(_) => async_io::block_on(future),
            None => async_io::block_on(self.executor.run(future)),
        }
    }
}

/// Ends at its moment.
#[derive(Debug)]
pub struct Timer(async_io::Timer);

impl Future for Timer {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        Pin::new(&mut self.0).poll(cx).map(drop)
    }
}

/// Readiness of one descriptor.
#[derive(Debug)]
pub struct Descriptor {
    fd: Async<OwnedFd>,
    /// Which directions would block when they were last tried: to read, to write.
    blocked: [bool; 2],
}

impl AsFd for Descriptor {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

impl Ready for Descriptor {
    fn poll_io<T>(
        &mut self,
        cx: &mut Context<'_>,
        want: Interest,
        mut io: impl FnMut(BorrowedFd<'_>) -> io::Result<T>,
    ) -> Poll<io::Result<T>> {
        let Self { fd, blocked: [read, write] } = self;
        let blocked = if want == Interest::Read { read } else { write };
        loop {
            // The reactor keeps no readiness of its own: it looks for the descriptor's, from this moment on.
            if *blocked {
                ready!(match want {
                    Interest::Read => fd.poll_readable(cx),
                    Interest::Write => fd.poll_writable(cx),
                })?;
            }
            match io(fd.as_fd()) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => *blocked = true,
                done => {
                    *blocked = false;
                    return Poll::Ready(done);
                }
            }
        }
    }
}

/// A spawned task; runs on when this is dropped.
#[derive(Debug)]
pub struct Task(Option<FallibleTask<()>>);

impl Future for Task {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        // `None` where the executor went first.
        self.0.as_mut().map_or(Poll::Ready(()), |task| Pin::new(task).poll(cx).map(drop))
    }
}

impl Drop for Task {
    fn drop(&mut self) {
        if let Some(task) = self.0.take() {
            task.detach();
        }
    }
}
