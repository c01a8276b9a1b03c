//! What both ends of a simulated network share.

use core::time::Duration;
use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard};

use springtide_core::id::{Incarnation, PathId, RegionId};
use springtide_core::ticket::{Gate, Ticket};
use springtide_core::time::Instant;
use springtide_hal::Block;
use springtide_transport::{Capabilities, DownReason, Event, Op, Status};

use crate::transport::SimTransport;

/// How fast a simulated network is, and what its ops look like.
#[derive(Clone, Copy, Debug)]
pub struct Shape {
    /// One way, for the first byte. Default 10 µs.
    pub latency: Duration,
    /// Bytes per second on one path. Default 1 GiB/s; zero counts as one.
    pub bandwidth: u64,
    /// Most ops in flight on one path. Default 64.
    pub depth: u32,
    /// Longest op. Default 1 MiB.
    pub max_op: u32,
    /// Ops must not cross a multiple of this on either side; 0 for none. Default 0.
    pub chunk: u64,
}

impl Default for Shape {
    fn default() -> Self {
        Self { latency: Duration::from_micros(10), bandwidth: 1 << 30, depth: 64, max_op: 1 << 20, chunk: 0 }
    }
}

impl Shape {
    /// What transports of such a network say about themselves.
    pub fn capabilities(&self) -> Capabilities {
        let mut capabilities = Capabilities::new("sim");
        capabilities.max_op = self.max_op;
        capabilities.chunk = self.chunk;
        capabilities.depth = self.depth;
        capabilities.latency = self.latency * 2;
        capabilities.bandwidth = self.bandwidth;
        capabilities
    }
}

/// A network in one process: its time is what its transports are told, and the same calls give the same result.
///
/// Cloning gives another handle to the same network.
#[derive(Clone, Debug)]
pub struct SimNet(pub(crate) Arc<Mutex<Net>>);

impl SimNet {
    /// A network of this shape, without ends.
    pub fn new(shape: Shape) -> Self {
        let net = Net { shape, ends: Vec::new(), ports: Vec::new(), links: Vec::new() };
        Self(Arc::new(Mutex::new(net)))
    }

    /// A new end at a port of its own.
    pub fn endpoint(&self) -> SimTransport {
        let port = self.lock().ports.len();
        self.endpoint_at(port as u32)
    }

    /// A new end at `port`, in place of an earlier one there: what a restarted process is.
    pub fn endpoint_at(&self, port: u32) -> SimTransport {
        let mut net = self.lock();
        let (end, port) = (net.ends.len(), port as usize);
        net.ends.push(End::default());
        if net.ports.len() <= port {
            net.ports.resize(port + 1, None);
        }
        net.ports[port] = Some(end);
        let capabilities = net.shape.capabilities();
        drop(net);
        SimTransport::new(self.clone(), end, port as u32, capabilities)
    }

    /// Changes how fast the network is from now on; ops under way keep their times.
    pub fn set_speed(&self, latency: Duration, bandwidth: u64) {
        let mut net = self.lock();
        net.shape.latency = latency;
        net.shape.bandwidth = bandwidth;
    }

    pub(crate) fn lock(&self) -> MutexGuard<'_, Net> {
        self.0.lock().expect("no holder of the network panics")
    }
}

#[derive(Debug)]
pub(crate) struct Net {
    pub(crate) shape: Shape,
    pub(crate) ends: Vec<End>,
    /// Which end listens at each port.
    pub(crate) ports: Vec<Option<usize>>,
    pub(crate) links: Vec<Link>,
}

/// One process's share of the network.
#[derive(Debug, Default)]
pub(crate) struct End {
    pub(crate) gone: bool,
    pub(crate) regions: HashMap<RegionId, Region>,
    /// Links that this end opened, and links that lead to it.
    pub(crate) paths: HashMap<PathId, usize>,
    pub(crate) outgoing: Vec<usize>,
    pub(crate) incoming: Vec<usize>,
    pub(crate) events: VecDeque<Event>,
    /// Where serving and reaping went on last, so that no link waits for ever.
    pub(crate) turn: usize,
    /// The latest time this end was told.
    pub(crate) now: Instant,
}

#[derive(Debug)]
pub(crate) struct Region {
    pub(crate) block: Block,
    /// `None` if peers may not reach it.
    pub(crate) gate: Option<(Incarnation, Gate)>,
}

/// A path: opened by one end, leading to another.
#[derive(Debug)]
pub(crate) struct Link {
    pub(crate) path: PathId,
    pub(crate) from: usize,
    pub(crate) to: usize,
    pub(crate) state: LinkState,
    /// When the wire is free again.
    pub(crate) free: Instant,
    pub(crate) flights: VecDeque<Flight>,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum LinkState {
    /// Up or down at this moment; `None` until the opener is told the time.
    Opening(Option<Instant>),
    Up,
    /// Its ops end, then it is gone.
    Closing(DownReason),
    Gone,
}

/// One op under way. It holds its local memory, so that withdrawing the region takes nothing from it.
#[derive(Debug)]
pub(crate) struct Flight {
    pub(crate) op: Op,
    pub(crate) local: Block,
    pub(crate) region: RegionId,
    pub(crate) ticket: Option<Ticket>,
    pub(crate) moved: u32,
    pub(crate) stage: Stage,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Stage {
    /// Not on the wire yet.
    Posted,
    /// At the target from this moment on.
    Travelling(Instant),
    /// Over; its initiator hears of it from this moment on.
    Ended(Status, Instant),
}
