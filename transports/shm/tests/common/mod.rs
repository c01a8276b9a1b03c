//! What the suites over this transport share: ids, tickets, and one transport driven by hand.
#![allow(dead_code, reason = "each suite uses its own part")]

use springtide_core::id::{Incarnation, OpId, PathId, RegionId, RemoteId, SegmentId, Term, TicketId};
use springtide_core::range::Extent;
use springtide_core::ticket::{Ticket, TicketKey};
use springtide_core::time::Instant;
use springtide_hal::Block;
use springtide_hal_host::memory::{Options, Sharing, allocate};
use springtide_transport::{Budget, Completion, Event, Exposure, Op, Status, Transport, Verb};
use springtide_transport_shm::Shm;

pub(crate) const KEY: TicketKey = TicketKey([9; 16]);
pub(crate) const OWNER: Incarnation = Incarnation(77);
pub(crate) const PLENTY: Budget = Budget { ops: 1_000, bytes: 64 << 20 };

macro_rules! id {
    ($name:ident, $kind:ty) => {
        pub(crate) fn $name(index: u64) -> $kind {
            <$kind>::from_bits(1 << 32 | index).unwrap()
        }
    };
}
id!(region, RegionId);
id!(remote, RemoteId);
id!(path, PathId);
id!(op_id, OpId);
id!(ticket_id, TicketId);
id!(segment, SegmentId);

pub(crate) fn shared(len: u64) -> Block {
    allocate(len, Options { sharing: Sharing::Shared, ..Options::default() }).unwrap().block
}

pub(crate) fn private(len: u64) -> Block {
    allocate(len, Options::default()).unwrap().block
}

pub(crate) fn pattern(len: u64, seed: u64) -> Vec<u8> {
    (0..len).map(|i| ((i + seed) * 31 + i / 253) as u8).collect()
}

pub(crate) fn as_segment() -> Exposure {
    Exposure::Segment { owner: OWNER, segment: segment(0), key: KEY }
}

pub(crate) fn ticket(offset: u64, len: u64, serial: u64) -> Ticket {
    let extent = Extent::new(offset, len).unwrap();
    KEY.sign(Ticket { owner: OWNER, segment: segment(0), extent, serial, term: Term(1), tag: 0 })
}

/// One transport, and what it said so far.
pub(crate) struct Node {
    pub(crate) shm: Shm,
    pub(crate) done: Vec<Completion>,
    pub(crate) events: Vec<Event>,
    pub(crate) now: Instant,
}

impl Node {
    pub(crate) fn new() -> Self {
        Self { shm: Shm::new().unwrap(), done: Vec::new(), events: Vec::new(), now: Instant::from_nanos(1) }
    }

    pub(crate) fn address(&self) -> Vec<u8> {
        let mut out = Vec::new();
        self.shm.address(&mut out);
        out
    }

    pub(crate) fn describe(&self, id: RegionId) -> Vec<u8> {
        let mut out = Vec::new();
        self.shm.describe(id, &mut out).unwrap();
        out
    }

    pub(crate) fn turn(&mut self) {
        self.turn_with(PLENTY);
    }

    pub(crate) fn turn_with(&mut self, budget: Budget) {
        let nothing = Completion { id: op_id(u32::MAX.into()), bytes: 0, status: Status::Lost, code: 0 };
        let mut done = [nothing; 16];
        let count = self.shm.progress(self.now, budget, &mut done);
        self.done.extend_from_slice(&done[..count]);
        while let Some(event) = self.shm.event() {
            self.events.push(event);
        }
    }

    pub(crate) fn take_done(&mut self) -> Vec<Completion> {
        core::mem::take(&mut self.done)
    }
}

/// Drives both until `until` holds.
///
/// # Panics
/// When it does not within very many turns.
pub(crate) fn drive(a: &mut Node, b: &mut Node, mut until: impl FnMut(&Node, &Node) -> bool) {
    for _ in 0..200_000 {
        if until(a, b) {
            return;
        }
        a.turn();
        b.turn();
    }
    panic!("nothing more happens: {:?} {:?} {:?} {:?}", a.events, a.done, b.events, b.done);
}

/// `a` opens path 0 to `b` and imports `b`'s region 0 as remote 0.
pub(crate) fn connect(a: &mut Node, b: &mut Node) {
    a.shm.open(a.now, path(0), &b.address()).unwrap();
    drive(a, b, |a, _| a.events.contains(&Event::Up(path(0))));
    a.shm.import(path(0), remote(0), &b.describe(region(0))).unwrap();
}

/// Read or write between region `local` and remote 0 on path 0, under ticket 0.
pub(crate) fn op(n: u64, verb: Verb, local: u64, at: u64, to: u64, len: u32) -> Op {
    let ticket = (verb == Verb::Write).then(|| ticket_id(0));
    Op { id: op_id(n), local: region(local), at, remote: remote(0), to, ticket, len, verb }
}

pub(crate) fn completion(n: u64, bytes: u32, status: Status, code: i32) -> Completion {
    Completion { id: op_id(n), bytes, status, code }
}
