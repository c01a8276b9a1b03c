//! Two or more transports in one process, driven by hand over loopback, under a clock that only the test moves.
#![allow(dead_code, reason = "each test file uses its part")]

use core::num::NonZeroU32;
use core::time::Duration;

use springtide_core::id::{Id, Incarnation, OpId, PathId, RegionId, RemoteId, SegmentId, TicketId};
use springtide_core::range::Extent;
use springtide_core::ticket::{Ticket, TicketKey};
use springtide_core::time::Instant;
use springtide_hal::Block;
use springtide_transport::{Budget, Completion, Event, Exposure, Op, Status, Transport, Verb};
use springtide_transport_tcp::{Config, TcpTransport};

pub(crate) const KEY: TicketKey = TicketKey([9; 16]);
pub(crate) const WIDE: Budget = Budget { ops: 1 << 20, bytes: 1 << 40 };

pub(crate) fn id<I: Id>(index: u32) -> I {
    I::new(index, NonZeroU32::MIN)
}

pub(crate) fn owner(n: u128) -> Incarnation {
    Incarnation(n)
}

/// Bytes that differ everywhere.
pub(crate) fn pattern(len: usize, seed: u64) -> Vec<u8> {
    let mut rng = springtide_core::rng::Rng::new(seed);
    let mut bytes = vec![0; len];
    bytes.chunks_mut(8).for_each(|chunk| chunk.copy_from_slice(&rng.next_u64().to_le_bytes()[..chunk.len()]));
    bytes
}

/// One transport with one region of memory, region 0, which is segment 0.
pub(crate) struct Node {
    pub(crate) transport: TcpTransport,
    pub(crate) memory: Block,
    pub(crate) now: Instant,
    pub(crate) done: Vec<Completion>,
    pub(crate) events: Vec<Event>,
    pub(crate) owner: Incarnation,
    next: u32,
}

pub(crate) fn config(who: u128) -> Config {
    let mut config = Config::new(owner(who));
    config.listen = Some("127.0.0.1:0".parse().unwrap());
    config
}

impl Node {
    pub(crate) fn new(who: u128, len: usize) -> Self {
        Self::with(config(who), len)
    }

    pub(crate) fn with(config: Config, len: usize) -> Self {
        let memory = Block::from(pattern(len, config.owner.0 as u64));
        let mut transport = TcpTransport::new(config).unwrap();
        let exposure = Exposure::Segment { owner: config.owner, segment: id::<SegmentId>(0), key: KEY };
        transport.expose(id(0), &memory, exposure).unwrap();
        let (done, events, now) = (Vec::new(), Vec::new(), Instant::ORIGIN);
        Self { transport, memory, now, done, events, owner: config.owner, next: 0 }
    }

    /// One `progress` within `budget`: how many completions came.
    pub(crate) fn turn(&mut self, budget: Budget) -> usize {
        let nothing = Completion { id: id(0), bytes: 0, status: Status::Lost, code: 0 };
        let mut done = [nothing; 16];
        let count = self.transport.progress(self.now, budget, &mut done);
        self.done.extend_from_slice(&done[..count]);
        while let Some(event) = self.transport.event() {
            self.events.push(event);
        }
        count
    }

    pub(crate) fn step(&mut self) {
        self.turn(WIDE);
    }

    pub(crate) fn pass(&mut self, time: Duration) {
        self.now += time;
    }

    pub(crate) fn address(&self) -> Vec<u8> {
        let mut out = Vec::new();
        self.transport.address(&mut out);
        out
    }

    pub(crate) fn description(&self) -> Vec<u8> {
        let mut out = Vec::new();
        self.transport.describe(id::<RegionId>(0), &mut out).unwrap();
        out
    }

    /// A ticket for all of this node's segment.
    pub(crate) fn ticket(&self, serial: u64) -> Ticket {
        let extent = Extent::new(0, self.memory.len()).unwrap();
        let (owner, segment, term) = (self.owner, id::<SegmentId>(0), Default::default());
        KEY.sign(Ticket { owner, segment, extent, serial, term, tag: 0 })
    }

    pub(crate) fn op(&mut self, verb: Verb, peer: u32, at: u64, to: u64, len: u32) -> Op {
        self.next += 1;
        let ticket = (verb == Verb::Write).then(|| id::<TicketId>(peer));
        Op {
            id: id::<OpId>(self.next),
            local: id(0),
            at,
            remote: id::<RemoteId>(peer),
            to,
            ticket,
            len,
            verb,
        }
    }

    /// How `op` ended, if it has.
    pub(crate) fn status(&self, op: &Op) -> Option<Status> {
        let mut ends = self.done.iter().filter(|done| done.id == op.id);
        let end = ends.next().map(|done| done.status);
        assert_eq!(ends.next(), None, "an op ended twice");
        end
    }

    pub(crate) fn bytes(&self, at: u64, len: usize) -> Vec<u8> {
        let mut bytes = vec![0; len];
        self.memory.read(at, &mut bytes).unwrap();
        bytes
    }

    pub(crate) fn saw(&self, event: Event) -> bool {
        self.events.contains(&event)
    }
}

/// Drives all of `nodes` until `done`.
pub(crate) fn until(nodes: &mut [&mut Node], done: impl Fn(&[&mut Node]) -> bool) {
    for _ in 0..2_000_000 {
        if done(nodes) {
            return;
        }
        nodes.iter_mut().for_each(|node| node.step());
        std::thread::yield_now();
    }
    panic!("waited in vain: {:?}", nodes.iter().map(|node| &node.events).collect::<Vec<_>>());
}

/// Opens path `n` from `a` to `b`, imports its segment as remote `n` and admits a ticket for it as ticket `n`.
pub(crate) fn connect(a: &mut Node, b: &mut Node, n: u32) -> PathId {
    let path = id::<PathId>(n);
    a.transport.open(a.now, path, &b.address()).unwrap();
    until(&mut [a, b], |nodes| nodes[0].saw(Event::Up(path)));
    a.transport.import(path, id::<RemoteId>(n), &b.description()).unwrap();
    a.transport.admit(id::<TicketId>(n), &b.ticket(1)).unwrap();
    path
}

/// Submits `ops` and drives both until all have ended: their statuses.
pub(crate) fn run(a: &mut Node, b: &mut Node, path: PathId, ops: &[Op]) -> Vec<Status> {
    a.transport.submit(path, ops).unwrap();
    until(&mut [a, b], |nodes| ops.iter().all(|op| nodes[0].status(op).is_some()));
    ops.iter().filter_map(|op| a.status(op)).collect()
}
