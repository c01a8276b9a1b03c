//! A lane by hand: one engine over simulated rails to simulated peers, in virtual time.
#![allow(dead_code, unreachable_pub, reason = "each test binary uses its part")]

use core::num::NonZeroU32;
use core::time::Duration;
use std::collections::HashMap;

use springtide_core::id::{BatchId, Id, Incarnation, PathId, RegionId, SegmentId, TargetId, TicketId};
use springtide_core::range::Extent;
use springtide_core::ticket::{Ticket, TicketKey};
use springtide_core::time::Instant;
use springtide_core::transfer::{
    Completion, Config, Engine, Next, Op, Outcome, PathShape, PathState, Reject, Status, Transfer, Verb,
};
use springtide_hal::Block;
use springtide_transport::{Budget, Capabilities, Event, Exposure, Reason, Transport};
use springtide_transport_sim::{Fault, Faults, Shape, SimNet, SimTransport};

const KEY: TicketKey = TicketKey([9; 16]);
const WIDE: Budget = Budget { ops: 1_000, bytes: 1 << 30 };

pub fn id<I: Id>(index: u32) -> I {
    I::new(index, NonZeroU32::MIN)
}

pub struct Peer {
    /// Its end on each rail; `None` when that is dead.
    pub ends: Vec<Option<SimTransport>>,
    pub block: Block,
    pub target: TargetId,
    /// Nobody calls its ends before this moment.
    pub frozen: Instant,
    addresses: Vec<Vec<u8>>,
    descriptions: Vec<Vec<u8>>,
}

pub struct Lane {
    pub engine: Engine,
    pub nets: Vec<SimNet>,
    pub rails: Vec<Fault<SimTransport>>,
    pub peers: Vec<Peer>,
    pub local: Block,
    pub now: Instant,
    pub step: Duration,
    pub ended: Vec<(BatchId, Outcome, Instant)>,
    ways: HashMap<PathId, (usize, usize)>,
}

impl Lane {
    /// A lane over rails of these shapes, with `bytes` of local memory.
    pub fn new(config: Config, shapes: &[Shape], seed: u64, bytes: usize) -> Self {
        let nets: Vec<SimNet> = shapes.iter().map(|shape| SimNet::new(*shape)).collect();
        let local = Block::from(vec![0; bytes]);
        let mut rails = Vec::new();
        for (rail, net) in nets.iter().enumerate() {
            let mut end = Fault::new(net.endpoint(), seed ^ rail as u64, Faults::default());
            end.expose(id::<RegionId>(0), &local, Exposure::Source).unwrap();
            rails.push(end);
        }
        Self {
            engine: Engine::new(config, seed),
            nets,
            rails,
            peers: Vec::new(),
            local,
            now: Instant::from_nanos(1_000),
            step: Duration::from_micros(20),
            ended: Vec::new(),
            ways: HashMap::new(),
        }
    }

    /// A peer with `bytes` of memory, reachable over every rail, with ticket number `self.peers.len()`.
    pub fn peer(&mut self, bytes: Vec<u8>) -> usize {
        let number = self.peers.len();
        let owner = Incarnation(number as u128 + 1);
        let segment = id::<SegmentId>(number as u32);
        let mut peer = Peer {
            ends: Vec::new(),
            block: Block::from(bytes),
            target: self.engine.add_target(self.now),
            frozen: self.now,
            addresses: Vec::new(),
            descriptions: Vec::new(),
        };
        let extent = Extent::new(0, peer.block.len()).unwrap();
        let ticket = Ticket { owner, segment, extent, serial: 1, term: Default::default(), tag: 0 };
        let ticket = KEY.sign(ticket);
        for rail in 0..self.rails.len() {
            let mut end = self.nets[rail].endpoint();
            end.expose(id(1), &peer.block, Exposure::Segment { owner, segment, key: KEY }).unwrap();
            let (mut address, mut description) = (Vec::new(), Vec::new());
            end.address(&mut address);
            end.describe(id(1), &mut description).unwrap();
            self.rails[rail].admit(id::<TicketId>(number as u32), &ticket).unwrap();
            let path = self.engine.add_path(self.now, shape(self.rails[rail].capabilities()));
            self.engine.attach(peer.target, path).unwrap();
            self.rails[rail].open(self.now, path, &address).unwrap();
            self.ways.insert(path, (rail, number));
            peer.ends.push(Some(end));
            peer.addresses.push(address);
            peer.descriptions.push(description);
        }
        self.peers.push(peer);
        number
    }

    /// The path to a peer over a rail.
    pub fn path(&self, rail: usize, peer: usize) -> PathId {
        *self.ways.iter().find(|(_, way)| **way == (rail, peer)).unwrap().0
    }

    pub fn bytes_on(&self, rail: usize, peer: usize) -> u64 {
        self.engine.path_stats(self.path(rail, peer)).unwrap().bytes
    }

    pub fn read(&self, peer: usize, at: u64, to: u64, len: u64) -> Transfer {
        let target = self.peers[peer].target;
        Transfer { verb: Verb::Read, local: id(0), at, target, to, ticket: None, len }
    }

    pub fn write(&self, peer: usize, at: u64, to: u64, len: u64) -> Transfer {
        Transfer { verb: Verb::Write, ticket: Some(id(peer as u32)), ..self.read(peer, at, to, len) }
    }

    pub fn submit(&mut self, batch: &[Transfer], within: Duration) -> BatchId {
        self.engine.submit(self.now, batch, self.now + within).unwrap()
    }

    /// One turn of everybody, and a little time.
    pub fn turn(&mut self) {
        let now = self.now;
        for peer in self.peers.iter_mut().filter(|peer| peer.frozen.reached(now)) {
            for end in peer.ends.iter_mut().flatten() {
                end.progress(self.now, WIDE, &mut []);
                while end.event().is_some() {}
            }
        }
        for rail in 0..self.rails.len() {
            self.reap(rail);
        }
        self.engine.handle_timeout(self.now);
        for n in 0.. {
            assert!(n < 10_000, "the engine never waits");
            match self.engine.poll(self.now) {
                Next::Wait(_) => break,
                Next::Batch(batch, outcome) => self.ended.push((batch, outcome, self.now)),
                Next::Take(path) => self.post(path),
                Next::Cancel(path, op) => self.rails[self.ways[&path].0].cancel(op),
                Next::Close(path) => self.rails[self.ways[&path].0].close(path),
                Next::Reopen(path) => {
                    let (rail, peer) = self.ways[&path];
                    let address = &self.peers[peer].addresses[rail];
                    if self.rails[rail].open(self.now, path, address).is_err() {
                        self.engine.handle_path(self.now, path, PathState::Down);
                    }
                }
                other => panic!("{other:?}"),
            }
        }
        self.now += self.step;
    }

    fn reap(&mut self, rail: usize) {
        let nothing = Completion { id: id(0), bytes: 0, status: Status::Lost, code: 0 };
        let mut done = [nothing; 64];
        loop {
            let count = self.rails[rail].progress(self.now, WIDE, &mut done);
            for completion in &done[..count] {
                let path = self.engine.path_of(completion.id).expect("only ops in flight complete");
                self.engine.handle_completions(self.now, path, core::slice::from_ref(completion));
            }
            if count < done.len() {
                break;
            }
        }
        while let Some(event) = self.rails[rail].event() {
            match event {
                Event::Up(path) => {
                    let peer = self.ways[&path].1;
                    let imports: Vec<_> = self.engine.imports(path).collect();
                    for (_, remote) in imports {
                        // A peer that died meanwhile refuses; its path goes down next.
                        let _ = self.rails[rail].import(path, remote, &self.peers[peer].descriptions[rail]);
                    }
                    self.engine.handle_path(self.now, path, PathState::Up);
                }
                Event::Down(path, _) => self.engine.handle_path(self.now, path, PathState::Down),
                _ => {}
            }
        }
    }

    fn post(&mut self, path: PathId) {
        let rail = self.ways[&path].0;
        let nothing = Op {
            id: id(0),
            local: id(0),
            at: 0,
            remote: id(0),
            to: 0,
            ticket: None,
            len: 0,
            verb: Verb::Read,
        };
        let mut ops = [nothing; 32];
        let room = self.rails[rail].room(path);
        let count = self.engine.take_ops(self.now, path, room, &mut ops);
        if let Err(error) = self.rails[rail].submit(path, &ops[..count]) {
            let why = match error.reason {
                Reason::PathDown => Reject::PathDown,
                Reason::BadRegion => Reject::BadRegion,
                _ => Reject::Full,
            };
            self.engine.handle_refused(self.now, path, &ops[error.accepted..count], why);
        }
    }

    /// Turns for this long.
    pub fn run(&mut self, time: Duration) {
        let until = self.now + time;
        while !until.reached(self.now) {
            self.turn();
        }
    }

    /// Turns until a batch has ended, for at most this long; how it ended.
    pub fn finish(&mut self, batch: BatchId, within: Duration) -> Option<Outcome> {
        let until = self.now + within;
        loop {
            if let Some((_, outcome, _)) = self.ended.iter().find(|(id, ..)| *id == batch) {
                return Some(*outcome);
            }
            if until.reached(self.now) {
                return None;
            }
            self.turn();
        }
    }
}

pub fn shape(capabilities: &Capabilities) -> PathShape {
    PathShape {
        max_op: capabilities.max_op,
        chunk: capabilities.chunk,
        depth: capabilities.depth,
        latency: capabilities.latency,
        bandwidth: capabilities.bandwidth,
    }
}

/// Bytes that tell where they belong.
pub fn pattern(seed: u64, len: usize) -> Vec<u8> {
    let words = (0..len.div_ceil(8) as u64).map(|i| springtide_core::rng::mix(seed << 32 ^ i).to_le_bytes());
    let mut bytes: Vec<u8> = words.flatten().collect();
    bytes.truncate(len);
    bytes
}
