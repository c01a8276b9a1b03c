//! One engine with its transports: what moves bytes between this process and its peers.

mod by_id;
mod card;
mod error;
mod memory;
mod targets;
mod transfer;
mod work;

use core::task::Waker;
use std::collections::HashMap;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::event::epoll;
use springtide_core::id::{BatchId, PathId, RegionId, RemoteId, TargetId, TicketId};
use springtide_core::slab::Slab;
use springtide_core::time::Instant;
use springtide_core::transfer::{Completion, Config, Engine, Op, PathStats};
use springtide_transport::{Armed, Transport};

use crate::seat::{Drive, Drove};
use crate::wakes::Wakes;
use by_id::ById;
use memory::{Fence, Rails};
use targets::{Path, Remote};
use transfer::Waiting;
use work::Look;

pub use card::Card;
pub use error::TargetError;
pub use transfer::{Ended, Fencing, Moving};

/// One engine and its transports, driven from a [`Seat`](crate::Seat).
///
/// Commands lock the seat for a moment ([`Seat::with`](crate::Seat::with)); what takes time is a future of the seat:
/// [`Seat::transfer`](crate::Seat::transfer), [`Seat::fence`](crate::Seat::fence). Driving it also serves peers, so
/// whoever exposes memory has the lane attended ([`attend`](crate::attend)).
pub struct Lane {
    engine: Engine,
    transports: Vec<Box<dyn Transport>>,
    /// What is known of each of them.
    rails: Vec<Rail>,
    /// Readable when one of the transports is.
    epoll: OwnedFd,
    memory: Memory,
    ways: Ways,
    batches: ById<BatchId, Waiting>,
    /// On which path each op is, by the op's slot.
    flying: Vec<Option<PathId>>,
    scratch: Scratch,
    /// When the engine wants to be asked again.
    wait: Option<Instant>,
    /// Whether a command came since the engine was last asked.
    told: bool,
    /// Whether peers may reach memory of ours.
    serves: bool,
}

/// When a transport is worth asking.
#[derive(Clone, Copy, Debug, Default)]
struct Rail {
    /// Ops that it took and has not ended.
    in_flight: usize,
    /// When it was last asked.
    asked: Instant,
}

/// What this process lets be used.
#[derive(Default)]
struct Memory {
    regions: Slab<RegionId, Rails>,
    tickets: Slab<TicketId, Rails>,
    fences: HashMap<u64, Fence>,
    last_fence: u64,
}

/// How peers are reached.
#[derive(Default)]
struct Ways {
    paths: ById<PathId, Path>,
    remotes: ById<RemoteId, Remote>,
    targets: ById<TargetId, Vec<RemoteId>>,
}

/// Memory for one step's ops and completions.
struct Scratch {
    ops: Box<[Op]>,
    done: Box<[Completion]>,
}

impl Lane {
    /// A lane over `transports`, in order of preference while nothing is measured. `seed` decides how the engine's
    /// pauses are jittered.
    ///
    /// # Errors
    /// The system's, when it has no descriptors left.
    pub fn new(config: Config, transports: Vec<Box<dyn Transport>>, seed: u64) -> io::Result<Self> {
        let epoll = epoll::create(epoll::CreateFlags::CLOEXEC)?;
        for (index, transport) in transports.iter().enumerate() {
            if let Some(fd) = transport.wake_fd() {
                epoll::add(&epoll, fd, epoll::EventData::new_u64(index as u64), epoll::EventFlags::IN)?;
            }
        }
        Ok(Self {
            engine: Engine::new(config, seed),
            rails: vec![Rail::default(); transports.len()],
            transports,
            epoll,
            memory: Memory::default(),
            ways: Ways::default(),
            batches: ById::default(),
            flying: Vec::new(),
            scratch: Scratch::default(),
            wait: None,
            told: false,
            serves: false,
        })
    }

    /// Figures of every path, with the name of its transport.
    pub fn paths(&self) -> impl Iterator<Item = (&'static str, PathStats)> {
        self.ways.paths.iter().filter_map(|(id, path)| {
            let name = self.transports[path.rail].capabilities().name;
            self.engine.path_stats(id).map(|stats| (name, stats))
        })
    }
}

impl Drive for Lane {
    fn drive(&mut self, now: Instant, wakes: &mut Wakes) -> Drove {
        self.work(now, Look::Everywhere, wakes)
    }

    fn glance(&mut self, now: Instant, wakes: &mut Wakes) -> Drove {
        self.work(now, Look::WhereAwaited, wakes)
    }

    fn arm(&mut self) -> Armed {
        if self.told {
            return Armed::Again;
        }
        let mut armed = Armed::Asleep;
        for transport in &mut self.transports {
            // A transport without a descriptor has to be asked now and then.
            let asleep = if transport.wake_fd().is_some() { Armed::Asleep } else { Armed::Poll(BLIND) };
            armed = match (armed, transport.arm()) {
                (_, Armed::Again) => return Armed::Again,
                (armed, Armed::Asleep) => sooner(armed, asleep),
                (armed, poll) => sooner(armed, poll),
            };
        }
        armed
    }

    fn fd(&self) -> BorrowedFd<'_> {
        self.epoll.as_fd()
    }

    fn deadline(&self) -> Option<Instant> {
        self.wait
    }
}

/// How long to sleep at most when a transport has no descriptor and does not say.
const BLIND: core::time::Duration = core::time::Duration::from_millis(1);

fn sooner(a: Armed, b: Armed) -> Armed {
    match (a, b) {
        (Armed::Again, _) | (_, Armed::Again) => Armed::Again,
        (Armed::Poll(a), Armed::Poll(b)) => Armed::Poll(a.min(b)),
        (Armed::Poll(after), Armed::Asleep) | (Armed::Asleep, Armed::Poll(after)) => Armed::Poll(after),
        (Armed::Asleep, Armed::Asleep) => Armed::Asleep,
    }
}

/// Registers `waker` in `slot`.
fn register(slot: &mut Option<Waker>, waker: &Waker) {
    match slot {
        Some(old) => old.clone_from(waker),
        empty => *empty = Some(waker.clone()),
    }
}
