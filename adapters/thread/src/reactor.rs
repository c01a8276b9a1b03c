//! What threads sleep on: one epoll over all descriptors, a timer and a bell.
//!
//! Any number of threads may sleep on it at once; whatever happens wakes one of them, so that somebody listens while
//! others run tasks, and nobody has to hand anything over. Everything in it is edge-triggered: an event is delivered
//! once, and then kept as readiness until something would block.

use core::mem::MaybeUninit;
use core::sync::atomic::{AtomicBool, Ordering};
use core::task::{Context, Poll, Waker};
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::{Arc, Mutex};

use rustix::event::{EventfdFlags, Timespec, epoll, eventfd};
use springtide_core::slab::Slab;
use springtide_driver::{Drove, Interest, Ready, Wakes, now};

use crate::lock;
use crate::timer::Timers;
use crate::token::Token;

/// Events that are no descriptor's: all numbers below those of tokens.
const BELL: u64 = 0;
const CLOCK: u64 = 1;
/// How many events are taken at a time.
const BATCH: usize = 64;

#[derive(Debug)]
pub(crate) struct Reactor {
    epoll: OwnedFd,
    bell: OwnedFd,
    /// Whether it was rung and nobody heard it yet. Who hears it looks at the tasks afterwards.
    rung: AtomicBool,
    pub(crate) timers: Timers,
    watched: Mutex<Slab<Token, Arc<Sides>>>,
}

impl Reactor {
    pub(crate) fn new() -> io::Result<Self> {
        let (epoll, timers) = (epoll::create(epoll::CreateFlags::CLOEXEC)?, Timers::new()?);
        let bell = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?;
        let edge = epoll::EventFlags::IN | epoll::EventFlags::ET;
        epoll::add(&epoll, &bell, epoll::EventData::new_u64(BELL), edge)?;
        epoll::add(&epoll, timers.clock(), epoll::EventData::new_u64(CLOCK), edge)?;
        Ok(Self { epoll, bell, rung: AtomicBool::new(false), timers, watched: Mutex::default() })
    }

    /// Readable when something happened that nobody took yet.
    pub(crate) fn fd(&self) -> BorrowedFd<'_> {
        self.epoll.as_fd()
    }

    /// Wakes one of those who sleep, or keeps the next one from it.
    pub(crate) fn ring(&self) {
        if !self.rung.swap(true, Ordering::AcqRel) {
            // Fails only once it was rung 2⁶⁴ times. It need not be read: each write is an edge.
            let _ = rustix::io::write(&self.bell, &1_u64.to_ne_bytes());
        }
    }

    /// Takes what has happened, and wakes whom it concerns. Sleeps before, until something happens, if `asleep` is
    /// given, which is dropped on waking up.
    pub(crate) fn turn<T>(&self, asleep: Option<T>, wakes: &mut Wakes) -> Drove {
        let mut events = [const { MaybeUninit::uninit() }; BATCH];
        let at_once = Timespec::default();
        let timeout = if asleep.is_some() { None } else { Some(&at_once) };
        // An error here (a signal) is a wake-up without a reason, which every caller bears.
        let came = epoll::wait(&self.epoll, &mut events[..], timeout);
        drop(asleep);
        let came: &[epoll::Event] = came.as_ref().map_or(&[], |(came, _)| came);
        for event in came {
            let (data, flags) = (event.data, event.flags);
            if data.u64() == BELL {
                self.rung.store(false, Ordering::Release);
            } else if let Some(sides) =
                Token::from_bits(data.u64()).and_then(|of| lock(&self.watched).get(of).cloned())
            {
                sides.note(flags, wakes);
            }
        }
        self.timers.fire(now(), wakes);
        let idle = came.is_empty() && wakes.is_empty();
        wakes.fire();
        if idle { Drove::Idle } else { Drove::Busy }
    }
}

/// What is known of a descriptor's two directions.
#[derive(Debug, Default)]
struct Sides {
    read: Mutex<Side>,
    write: Mutex<Side>,
}

#[derive(Debug)]
struct Side {
    ready: bool,
    /// How many events came, so that one that comes while something would block is not forgotten with it.
    events: u64,
    waker: Option<Waker>,
}

impl Default for Side {
    /// Ready until something would block.
    fn default() -> Self {
        Self { ready: true, events: 0, waker: None }
    }
}

impl Sides {
    fn note(&self, flags: epoll::EventFlags, wakes: &mut Wakes) {
        use epoll::EventFlags as On;
        let over = On::HUP | On::ERR;
        for (side, on) in [(&self.read, On::IN | On::RDHUP | over), (&self.write, On::OUT | over)] {
            if flags.intersects(on) {
                let mut side = lock(side);
                side.ready = true;
                side.events += 1;
                side.waker.take().into_iter().for_each(|waker| wakes.push(waker));
            }
        }
    }
}

/// Readiness of one descriptor.
#[derive(Debug)]
pub struct Descriptor {
    fd: OwnedFd,
    sides: Arc<Sides>,
    token: Token,
    reactor: Arc<Reactor>,
}

impl Descriptor {
    pub(crate) fn new(reactor: Arc<Reactor>, fd: OwnedFd) -> io::Result<Self> {
        use epoll::EventFlags as On;
        let sides = Arc::<Sides>::default();
        let token = lock(&reactor.watched).insert(Arc::clone(&sides));
        let descriptor = Self { fd, sides, token, reactor };
        let data = epoll::EventData::new_u64(token.to_bits());
        epoll::add(&descriptor.reactor.epoll, &descriptor.fd, data, On::IN | On::OUT | On::RDHUP | On::ET)?;
        Ok(descriptor)
    }
}

impl Drop for Descriptor {
    fn drop(&mut self) {
        // Fails only where it was never added.
        let _ = epoll::delete(&self.reactor.epoll, &self.fd);
        lock(&self.reactor.watched).remove(self.token);
    }
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
        let side = match want {
            Interest::Read => &self.sides.read,
            Interest::Write => &self.sides.write,
        };
        loop {
            let mut known = lock(side);
            if !known.ready {
                known.waker = Some(cx.waker().clone());
                return Poll::Pending;
            }
            let events = known.events;
            drop(known);
            match io(self.fd.as_fd()) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    let mut known = lock(side);
                    known.ready = known.events != events;
                }
                done => return Poll::Ready(done),
            }
        }
    }
}
