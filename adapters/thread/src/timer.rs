//! Timers: an ordered map of moments, and one timer of the kernel that is set to the first.

use core::future::Future;
use core::pin::Pin;
use core::task::{Context, Poll, Waker};
use std::collections::BTreeMap;
use std::io;
use std::os::fd::OwnedFd;
use std::sync::{Arc, Mutex};

use rustix::event::Timespec;
use rustix::time::{
    Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, timerfd_create, timerfd_settime,
};
use springtide_core::time::Instant;
use springtide_driver::{Wakes, now};

use crate::lock;
use crate::reactor::Reactor;

#[derive(Debug)]
pub(crate) struct Timers {
    clock: OwnedFd,
    queue: Mutex<Queue>,
}

#[derive(Debug)]
struct Queue {
    /// By moment; the number tells those of one moment apart.
    waiting: BTreeMap<(Instant, u64), Waker>,
    next: u64,
    /// When the kernel's timer ends: never after the first moment.
    armed: Instant,
}

impl Timers {
    pub(crate) fn new() -> io::Result<Self> {
        let flags = TimerfdFlags::CLOEXEC | TimerfdFlags::NONBLOCK;
        let clock = timerfd_create(TimerfdClockId::Monotonic, flags)?;
        let queue = Queue { waiting: BTreeMap::new(), next: 0, armed: Instant::NEVER };
        Ok(Self { clock, queue: Mutex::new(queue) })
    }

    /// Readable when the first moment has come.
    pub(crate) const fn clock(&self) -> &OwnedFd {
        &self.clock
    }

    /// Hands out the wakers of all whose moment has come.
    pub(crate) fn fire(&self, now: Instant, wakes: &mut Wakes) {
        let mut queue = lock(&self.queue);
        // Nobody is due before the kernel's timer is.
        if !queue.armed.reached(now) {
            return;
        }
        while let Some(first) = queue.waiting.first_entry().filter(|first| first.key().0.reached(now)) {
            wakes.push(first.remove());
        }
        queue.armed = Instant::NEVER;
        if let Some((&(first, _), _)) = queue.waiting.first_key_value() {
            self.arm(&mut queue, first, now);
        }
    }

    fn set(&self, at: Instant, number: Option<u64>, waker: &Waker, now: Instant) -> u64 {
        let mut queue = lock(&self.queue);
        let number = number.unwrap_or(queue.next);
        queue.next = queue.next.max(number + 1);
        queue.waiting.insert((at, number), waker.clone());
        if at < queue.armed {
            self.arm(&mut queue, at, now);
        }
        number
    }

    fn arm(&self, queue: &mut Queue, at: Instant, now: Instant) {
        queue.armed = at;
        let left = at.since(now);
        // All zeroes would stop it.
        let tv_nsec = i64::from(left.subsec_nanos()).max(i64::from(left.is_zero()));
        let it_value = Timespec { tv_sec: left.as_secs() as i64, tv_nsec };
        let once = Itimerspec { it_interval: Timespec::default(), it_value };
        timerfd_settime(&self.clock, TimerfdTimerFlags::empty(), &once)
            .expect("it is a timer, and the time is one");
    }
}

/// Ends at its moment.
#[derive(Debug)]
pub struct Timer {
    at: Instant,
    number: Option<u64>,
    reactor: Arc<Reactor>,
}

impl Timer {
    pub(crate) const fn new(reactor: Arc<Reactor>, at: Instant) -> Self {
        Self { at, number: None, reactor }
    }
}

impl Future for Timer {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        let (at, now) = (self.at, now());
        if at.reached(now) {
            return Poll::Ready(());
        }
        if at != Instant::NEVER {
            self.number = Some(self.reactor.timers.set(at, self.number, cx.waker(), now));
        }
        Poll::Pending
    }
}

impl Drop for Timer {
    fn drop(&mut self) {
        // The kernel's timer stays as it is: ending for nobody is cheaper than being set once more.
        let waker = self
            .number
            .and_then(|number| lock(&self.reactor.timers.queue).waiting.remove(&(self.at, number)));
        drop(waker);
    }
}
