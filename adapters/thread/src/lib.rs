//! Springtide on plain threads: an implementation of [`Runtime`] without an executor from outside.
//!
//! A thread runs the tasks that have something to do and takes what epoll has for it. When there is nothing it spins
//! for a bounded time ([`Pause`]), and then sleeps in epoll.
#![forbid(unsafe_code)]

mod reactor;
mod tasks;
mod timer;
mod token;

use core::cell::Cell;
use core::future::Future;
use core::pin::pin;
use core::sync::atomic::{AtomicBool, Ordering};
use core::task::{Context, Poll, Waker};
use std::io;
use std::os::fd::OwnedFd;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use rustix::thread::{CpuSet, sched_setaffinity};
use springtide_core::time::Instant;
use springtide_driver::{Drove, Parker, Pause, Runtime, Step, Wakes, now};

use reactor::Reactor;
use tasks::Tasks;

pub use reactor::Descriptor;
pub use tasks::Handle as Task;
pub use timer::Timer;

/// A runtime of plain threads: of its own, or whichever is in [`block_on`](Runtime::block_on).
#[derive(Clone, Debug)]
pub struct Threads {
    tasks: Arc<Tasks>,
    /// End with the last clone; `None` where whoever is in `block_on` runs the tasks.
    workers: Option<Arc<Workers>>,
}

impl Threads {
    /// A runtime whose tasks all run on the thread that is in [`block_on`](Runtime::block_on): nothing is handed from
    /// thread to thread. They stand still while nobody is.
    ///
    /// # Errors
    /// The system's, when it has no descriptors left.
    pub fn new_single() -> io::Result<Self> {
        Ok(Self { tasks: Tasks::new(Reactor::new()?), workers: None })
    }

    /// A runtime with `threads` threads of its own (at least one).
    ///
    /// # Errors
    /// The system's, when it has no descriptors or threads left.
    pub fn new_multi(threads: usize) -> io::Result<Self> {
        Self::start((0..threads.max(1)).map(|_| None), Pause::default())
    }

    /// A runtime with one thread of its own on each of the processors `cpus`, which spins within the bounds of `pause`.
    ///
    /// # Errors
    /// When there is no such processor (numbers above 1,023 name none), and as for [`new_multi`](Self::new_multi).
    pub fn new_pinned(cpus: &[usize], pause: Pause) -> io::Result<Self> {
        if cpus.is_empty() || cpus.iter().any(|&cpu| cpu >= CpuSet::MAX_CPU) {
            return Err(io::Error::new(io::ErrorKind::InvalidInput, "name processors that are there"));
        }
        Self::start(cpus.iter().copied().map(Some), pause)
    }

    fn start(cpus: impl Iterator<Item = Option<usize>>, pause: Pause) -> io::Result<Self> {
        let tasks = Tasks::new(Reactor::new()?);
        let stop = Arc::new(AtomicBool::new(false));
        let workers = Arc::new(Workers { stop: Arc::clone(&stop), reactor: Arc::clone(&tasks.reactor) });
        for (n, cpu) in cpus.enumerate() {
            let (tasks, stop) = (Arc::clone(&tasks), Arc::clone(&stop));
            let (tell, pinned) = std::sync::mpsc::channel();
            let thread = std::thread::Builder::new().name(format!("springtide-{n}"));
            thread.spawn(move || {
                // Nobody listens where an earlier thread failed; then it stops at once.
                let _ = tell.send(cpu.map_or(Ok(()), pin));
                work(&tasks, &stop, pause);
            })?;
            pinned.recv().unwrap_or(Ok(()))?;
        }
        Ok(Self { tasks, workers: Some(workers) })
    }
}

/// Keeps this thread on one processor.
fn pin(cpu: usize) -> io::Result<()> {
    let mut only = CpuSet::new();
    only.set(cpu);
    Ok(sched_setaffinity(None, &only)?)
}

/// Ends threads without waiting for them, as a task of theirs may be the one to drop it.
#[derive(Debug)]
struct Workers {
    stop: Arc<AtomicBool>,
    reactor: Arc<Reactor>,
}

impl Drop for Workers {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Release);
        self.reactor.ring();
    }
}

/// What a thread of the runtime's own does.
fn work(tasks: &Tasks, stop: &AtomicBool, mut pause: Pause) {
    let here = tasks.enter();
    let mut wakes = Wakes::new();
    while !stop.load(Ordering::Acquire) {
        let (ran, came) = (tasks.run(), tasks.reactor.turn(None::<()>, &mut wakes));
        let moment = now();
        if (ran, came) != (Drove::Idle, Drove::Idle) {
            pause.found(moment);
        } else if pause.step(moment) == Step::Sleep
            && let Some(rest) = tasks.rest()
        {
            let _ = tasks.reactor.turn(Some(rest), &mut wakes);
        }
    }
    drop(here);
    // One ring wakes one thread: each wakes the next.
    tasks.reactor.ring();
}

thread_local! {
    /// What this thread has learnt about spinning while it is in `block_on`.
    static PAUSE: Cell<Pause> = const { Cell::new(Pause::new(Pause::BOUND)) };
}

/// Runs `future`, and tasks beside it, on this thread.
fn run<F: Future>(tasks: &Tasks, pause: &mut Pause, future: F) -> F::Output {
    let (parker, mut future) = (Parker::take(), pin!(future));
    let waker = Waker::from(Arc::clone(&parker));
    let _here = tasks.enter();
    let (mut wakes, mut called) = (Wakes::new(), true);
    loop {
        if called && let Poll::Ready(output) = future.as_mut().poll(&mut Context::from_waker(&waker)) {
            Parker::give_back(parker);
            return output;
        }
        let (ran, came) = (tasks.run(), tasks.reactor.turn(None::<()>, &mut wakes));
        let moment = now();
        called = parker.called();
        if called || (ran, came) != (Drove::Idle, Drove::Idle) {
            pause.found(moment);
            continue;
        }
        if pause.step(moment) == Step::Sleep
            && let Some(rest) = tasks.rest()
        {
            parker.sleep(&[tasks.reactor.fd()], moment, Instant::NEVER);
            drop(rest);
        }
        called = parker.called();
    }
}

impl Runtime for Threads {
    type Timer = Timer;
    type Ready = Descriptor;
    type Task = Task;

    fn now(&self) -> Instant {
        now()
    }

    fn timer(&self, at: Instant) -> Timer {
        Timer::new(Arc::clone(&self.tasks.reactor), at)
    }

    fn ready(&self, fd: OwnedFd) -> io::Result<Descriptor> {
        Descriptor::new(Arc::clone(&self.tasks.reactor), fd)
    }

    fn spawn<F: Future<Output = ()> + Send + 'static>(&self, task: F) -> Task {
        self.tasks.spawn(task)
    }

    fn block_on<F: Future>(&self, future: F) -> F::Output {
        if self.workers.is_some() {
            return springtide_driver::block_on(&[], Instant::NEVER, future)
                .expect("the end of time does not come");
        }
        let mut pause = PAUSE.get();
        let output = run(&self.tasks, &mut pause, future);
        PAUSE.set(pause);
        output
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
