//! Tasks: a slab of all that live, and a queue of those that have something to do.

use core::cell::Cell;
use core::future::Future;
use core::panic::AssertUnwindSafe;
use core::pin::Pin;
use core::sync::atomic::{AtomicU8, Ordering};
use core::task::{Context, Poll, Waker};
use std::collections::VecDeque;
use std::panic::catch_unwind;
use std::sync::{Arc, Mutex, Weak};
use std::task::Wake;

use springtide_core::slab::Slab;
use springtide_driver::Drove;

use crate::lock;
use crate::reactor::Reactor;
use crate::token::Token;

/// How many tasks run before descriptors and timers are looked at again.
const TURNS: usize = 64;

thread_local! {
    /// The address of the [`Tasks`] that this thread runs; zero for none.
    static HERE: Cell<usize> = const { Cell::new(0) };
}

/// All tasks of a runtime.
#[derive(Debug)]
pub(crate) struct Tasks {
    state: Mutex<State>,
    pub(crate) reactor: Arc<Reactor>,
}

#[derive(Debug, Default)]
struct State {
    all: Slab<Token, Arc<Task>>,
    queue: VecDeque<Arc<Task>>,
    /// How many threads that run tasks sleep on the reactor.
    asleep: usize,
}

impl Tasks {
    pub(crate) fn new(reactor: Reactor) -> Arc<Self> {
        Arc::new(Self { state: Mutex::default(), reactor: Arc::new(reactor) })
    }

    pub(crate) fn spawn<F: Future<Output = ()> + Send + 'static>(self: &Arc<Self>, future: F) -> Handle {
        let mut state = lock(&self.state);
        let task = Arc::new(Task {
            phase: AtomicU8::new(QUEUED),
            future: Mutex::new(Some(Box::pin(future))),
            end: Mutex::new(End::NotYet(None)),
            token: state.all.next_id(),
            home: Arc::downgrade(self),
        });
        state.all.insert(Arc::clone(&task));
        drop(state);
        self.push(Arc::clone(&task));
        Handle(task)
    }

    /// Runs some of what is in the queue.
    pub(crate) fn run(&self) -> Drove {
        for turn in 0..TURNS {
            let mut state = lock(&self.state);
            let Some(task) = state.queue.pop_front() else {
                return if turn == 0 { Drove::Idle } else { Drove::Busy };
            };
            // Who takes one and leaves others calls for help.
            let calls = !state.queue.is_empty() && state.asleep > 0;
            drop(state);
            if calls {
                self.reactor.ring();
            }
            task.run(self);
        }
        Drove::Busy
    }

    /// Says that this thread falls asleep; not if there is something to run.
    pub(crate) fn rest(&self) -> Option<Rest<'_>> {
        let mut state = lock(&self.state);
        if !state.queue.is_empty() {
            return None;
        }
        state.asleep += 1;
        Some(Rest(self))
    }

    /// Says that this thread runs tasks until the answer is dropped.
    pub(crate) fn enter(&self) -> Here<'_> {
        Here { tasks: self, before: HERE.replace(core::ptr::from_ref(self).addr()) }
    }

    fn push(&self, task: Arc<Task>) {
        let mut state = lock(&self.state);
        // A thread that runs tasks comes to a single one by itself, sooner than another would wake up.
        let soon = state.queue.is_empty() && HERE.get() == core::ptr::from_ref(self).addr();
        state.queue.push_back(task);
        let calls = !soon && state.asleep > 0;
        drop(state);
        if calls {
            self.reactor.ring();
        }
    }
}

impl Drop for Tasks {
    fn drop(&mut self) {
        let state = self.state.get_mut().unwrap_or_else(std::sync::PoisonError::into_inner);
        state.queue.clear();
        let all = core::mem::take(&mut state.all);
        all.iter().for_each(|(_, task)| task.end());
    }
}

/// A thread that sleeps.
#[derive(Debug)]
pub(crate) struct Rest<'a>(&'a Tasks);

impl Drop for Rest<'_> {
    fn drop(&mut self) {
        lock(&self.0.state).asleep -= 1;
    }
}

/// A thread that runs tasks.
#[derive(Debug)]
pub(crate) struct Here<'a> {
    tasks: &'a Tasks,
    before: usize,
}

impl Drop for Here<'_> {
    fn drop(&mut self) {
        HERE.set(self.before);
        let state = lock(&self.tasks.state);
        // It was counted on to come to what it leaves.
        let calls = !state.queue.is_empty() && state.asleep > 0;
        drop(state);
        if calls {
            self.tasks.reactor.ring();
        }
    }
}

/// Waits for something.
const IDLE: u8 = 0;
/// Is in the queue.
const QUEUED: u8 = 1;
/// Runs.
const RUNNING: u8 = 2;
/// Runs, and was called meanwhile.
const CALLED: u8 = 3;

/// One task.
pub(crate) struct Task {
    phase: AtomicU8,
    /// `None` once it has ended.
    future: Mutex<Option<Pin<Box<dyn Future<Output = ()> + Send>>>>,
    end: Mutex<End>,
    token: Token,
    home: Weak<Tasks>,
}

#[derive(Debug)]
enum End {
    /// Somebody may wait for it.
    NotYet(Option<Waker>),
    Came,
}

impl Task {
    fn run(self: Arc<Self>, home: &Tasks) {
        self.phase.store(RUNNING, Ordering::Release);
        let waker = Waker::from(Arc::clone(&self));
        let polled = lock(&self.future).as_mut().map(|future| {
            let poll = || future.as_mut().poll(&mut Context::from_waker(&waker));
            // How it ended (also by a panic) is the task's own affair.
            catch_unwind(AssertUnwindSafe(poll)).unwrap_or(Poll::Ready(()))
        });
        if polled == Some(Poll::Pending) {
            if self.phase.compare_exchange(RUNNING, IDLE, Ordering::AcqRel, Ordering::Acquire).is_err() {
                self.phase.store(QUEUED, Ordering::Release);
                home.push(self);
            }
            return;
        }
        lock(&home.state).all.remove(self.token);
        self.end();
    }

    /// Drops what the task holds, and tells whoever waits for it.
    fn end(&self) {
        let future = lock(&self.future).take();
        let _ = catch_unwind(AssertUnwindSafe(|| drop(future)));
        let end = core::mem::replace(&mut *lock(&self.end), End::Came);
        if let End::NotYet(Some(waker)) = end {
            waker.wake();
        }
    }
}

impl core::fmt::Debug for Task {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("Task").field("token", &self.token).finish_non_exhaustive()
    }
}

impl Wake for Task {
    fn wake(self: Arc<Self>) {
        let next = |phase| match phase {
            IDLE => Some(QUEUED),
            RUNNING => Some(CALLED),
            _ => None,
        };
        let before = self.phase.fetch_update(Ordering::AcqRel, Ordering::Acquire, next);
        if before == Ok(IDLE)
            && let Some(home) = self.home.upgrade()
        {
            home.push(self);
        }
    }
}

/// A spawned task; runs on when this is dropped.
#[derive(Debug)]
pub struct Handle(Arc<Task>);

impl Future for Handle {
    type Output = ();

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        match &mut *lock(&self.0.end) {
            End::Came => Poll::Ready(()),
            End::NotYet(waker) => {
                *waker = Some(cx.waker().clone());
                Poll::Pending
            }
        }
    }
}
