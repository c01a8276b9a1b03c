//! Both sides of one connection without a transport around them: whatever way the bytes are cut, and whatever they
//! are, the outcome is that of the contract.

use std::collections::VecDeque;
use std::io::{ErrorKind, Read, Write};
use std::os::unix::net::UnixStream;

use proptest::prelude::*;
use rustix::event::epoll::EventFlags;
use springtide_core::id::{Id, Incarnation, OpId, PathId, RegionId, SegmentId};
use springtide_core::range::Extent;
use springtide_core::rng::Rng;
use springtide_core::ticket::{Ticket, TicketKey};
use springtide_core::time::Instant;
use springtide_core::transfer::{Status, Verb};
use springtide_hal::Block;
use springtide_transport::Exposure;

use crate::inbox::Inbox;
use crate::initiator::{Finished, Lane, Turn, Waiting};
use crate::memory::Memory;
use crate::outbox::Outbox;
use crate::stream::{Allowance, Broken, Stop, Stream};
use crate::target::Target;
use crate::wire::{self, Hello, MAX_REQUEST, REPLY, Reply};
use crate::{QUEUED_BYTES, QUEUED_PIECES};

const ME: Incarnation = Incarnation(1);
const PEER: Incarnation = Incarnation(2);
const KEY: TicketKey = TicketKey([3; 16]);
const LEN: u64 = 1 << 16;
/// Reads come from the lower half, writes go to the upper half.
const HALF: u64 = LEN / 2;

fn id<I: Id>(index: u32) -> I {
    I::new(index, core::num::NonZeroU32::MIN)
}

fn ample() -> Allowance {
    Allowance { bytes: 1 << 40, ops: 1 << 20 }
}

/// One end of a connection, and the end of the wire that the test holds.
struct End {
    stream: Stream,
    wire: UnixStream,
}

impl End {
    fn new(inbox: Inbox) -> Self {
        let (ours, wire) = UnixStream::pair().unwrap();
        wire.set_nonblocking(true).unwrap();
        Self { stream: Stream::new(ours.into(), inbox, Outbox::default(), Instant::ORIGIN), wire }
    }

    /// At most `most` bytes that the end has sent.
    fn sent(&mut self, most: usize) -> Vec<u8> {
        let mut bytes = vec![0; most];
        match self.wire.read(&mut bytes) {
            Ok(got) => bytes.truncate(got),
            Err(error) if error.kind() == ErrorKind::WouldBlock => bytes.clear(),
            Err(error) => panic!("{error}"),
        }
        self.stream.notice(EventFlags::OUT);
        bytes
    }

    fn give(&mut self, bytes: &[u8]) {
        self.wire.write_all(bytes).unwrap();
        self.stream.notice(EventFlags::IN);
    }
}

struct Server {
    end: End,
    target: Target,
    memory: Memory,
    block: Block,
    scratch: Vec<u8>,
}

impl Server {
    fn new() -> Self {
        let mut memory = Memory::default();
        let block = Block::from(noise(LEN, 2));
        let exposure = Exposure::Segment { owner: PEER, segment: id(0), key: KEY };
        memory.expose(PEER, id::<RegionId>(0), &block, exposure).unwrap();
        let end = End::new(Inbox::new(4_096, MAX_REQUEST));
        Self { end, target: Target::new(PEER), memory, block, scratch: vec![0; 512] }
    }

    fn pump(&mut self) -> Result<(), Broken> {
        let (stream, now) = (&mut self.end.stream, Instant::ORIGIN);
        self.target.pump(stream, &self.memory.regions, now, &mut self.scratch, &mut ample())
    }
}

struct Client {
    end: End,
    lane: Lane,
    waiting: VecDeque<Waiting>,
    finished: Finished,
    block: Block,
    scratch: Vec<u8>,
}

impl Client {
    fn new() -> Self {
        let mut end = End::new(Inbox::new(4_096, REPLY));
        let lane = Lane::new(id::<PathId>(0), ME, PEER, 64, &mut end.stream.outbox);
        let (waiting, finished) = (VecDeque::new(), VecDeque::new());
        Self { end, lane, waiting, finished, block: noise(LEN, 1).into(), scratch: vec![0; 512] }
    }

    fn pump(&mut self) -> Result<(), Broken> {
        let mut allowance = ample();
        let mut turn = Turn {
            now: Instant::ORIGIN,
            waiting: &mut self.waiting,
            finished: &mut self.finished,
            scratch: &mut self.scratch,
            allowance: &mut allowance,
        };
        self.lane.pump(&mut self.end.stream, &mut turn)
    }

    fn post(&mut self, number: usize, op: &Planned) {
        let extent = Extent::new(op.to, op.len.into()).unwrap();
        let (segment, term) = (id::<SegmentId>(0), Default::default());
        let mut ticket = KEY.sign(Ticket { owner: PEER, segment, extent, serial: 5, term, tag: 0 });
        ticket.tag ^= u64::from(op.forged);
        self.waiting.push_back(Waiting {
            id: id::<OpId>(number as u32),
            verb: op.verb,
            len: op.len,
            block: self.block.clone(),
            at: op.to % LEN,
            region: id(op.region),
            to: op.to,
            ticket: (op.verb == Verb::Write).then_some(ticket),
        });
    }
}

fn noise(len: u64, seed: u64) -> Vec<u8> {
    let mut rng = Rng::new(seed);
    (0..len).map(|_| rng.next_u64() as u8).collect()
}

#[derive(Clone, Debug)]
struct Planned {
    verb: Verb,
    to: u64,
    len: u32,
    region: u32,
    forged: bool,
}

impl Planned {
    fn is_good(&self) -> bool {
        let inside = self.to + u64::from(self.len) <= LEN;
        inside && self.region == 0 && !(self.forged && self.verb == Verb::Write)
    }
}

/// Ops of which one in four is to be refused, for one reason or another. Their local sides lie in their own block.
fn planned() -> impl Strategy<Value = Planned> {
    let len = prop_oneof![Just(0u32), 1..100u32, 1..6_000u32];
    (any::<bool>(), 0..HALF - 6_000, len, 0..12u8).prop_map(|(reads, to, len, fault)| {
        let (verb, base) = if reads { (Verb::Read, 0) } else { (Verb::Write, HALF) };
        let to = if fault == 0 { LEN * 3 + to } else { base + to };
        Planned { verb, to, len, region: u32::from(fault == 1), forged: fault == 2 }
    })
}

fn carry(client: &mut Client, server: &mut Server, cut: usize) {
    client.pump().unwrap();
    let bytes = client.end.sent(cut);
    server.end.give(&bytes);
    server.pump().unwrap();
    let bytes = server.end.sent(cut);
    client.end.give(&bytes);
    client.pump().unwrap();
}

/// What both blocks hold after `ops`.
fn model(ops: &[Planned]) -> (Vec<u8>, Vec<u8>) {
    let (mut ours, mut theirs) = (noise(LEN, 1), noise(LEN, 2));
    for op in ops.iter().filter(|op| op.is_good()) {
        let range = op.to as usize..op.to as usize + op.len as usize;
        match op.verb {
            Verb::Read => ours[range.clone()].copy_from_slice(&theirs[range]),
            Verb::Write => theirs[range.clone()].copy_from_slice(&ours[range]),
        }
    }
    (ours, theirs)
}

fn check(ops: &[Planned], cuts: &[usize]) {
    let (mut client, mut server) = (Client::new(), Server::new());
    let mut cuts = cuts.iter().cycle();
    for (number, op) in ops.iter().enumerate() {
        client.post(number, op);
        if number % 3 == 0 {
            carry(&mut client, &mut server, *cuts.next().unwrap());
        }
    }
    for _ in 0..1_000_000 {
        if client.finished.len() == ops.len() {
            break;
        }
        carry(&mut client, &mut server, *cuts.next().unwrap());
    }
    assert_eq!(client.finished.len(), ops.len());
    for (_, done) in &client.finished {
        let op = &ops[done.id.index()];
        let wanted = if op.is_good() { (Status::Done, op.len) } else { (Status::Refused, 0) };
        assert_eq!((done.status, done.bytes), wanted, "{op:?}");
    }
    let (ours, theirs) = model(ops);
    assert!(client.block.to_vec() == ours, "local memory");
    assert!(server.block.to_vec() == theirs, "the segment");
    assert!(!client.lane.waits() && !client.end.stream.waits() && !server.end.stream.waits());
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn any_cut_of_the_bytes_gives_the_same_outcome(
        ops in proptest::collection::vec(planned(), 1..60),
        cuts in proptest::collection::vec(prop_oneof![1..8usize, 1..200usize, 1..20_000usize], 1..40),
    ) {
        check(&ops, &cuts);
    }

    #[test]
    fn garbage_ends_a_served_connection_and_moves_nothing(
        garbage in proptest::collection::vec(any::<u8>(), 1..600),
        kind in 0..4u8,
        cut in 1..64usize,
    ) {
        let mut server = Server::new();
        server.end.give(&Hello { from: ME, to: PEER }.encode());
        server.end.give(&[kind]);
        for bytes in garbage.chunks(cut) {
            server.end.give(bytes);
            if let Err(broken) = server.pump() {
                prop_assert_eq!(broken, Broken::Protocol);
                break;
            }
        }
        prop_assert!(server.block.to_vec() == noise(LEN, 2));
    }

    #[test]
    fn a_changed_byte_in_a_request_harms_nobody_else(
        at in 0..wire::REQUEST + 2 * 64,
        flip in 1..=255u8,
    ) {
        let (mut client, mut server) = (Client::new(), Server::new());
        while !client.lane.greeted {
            carry(&mut client, &mut server, 100);
        }
        let write = Planned { verb: Verb::Write, to: HALF, len: 100, region: 0, forged: false };
        client.post(0, &write);
        client.post(1, &write);
        client.pump().unwrap();
        let mut bytes = client.end.sent(1_000);
        bytes[at] ^= flip;
        server.end.give(&bytes);
        let outcome = server.pump();
        prop_assert!(matches!(outcome, Ok(()) | Err(Broken::Protocol)), "{outcome:?}");
        let mut seen = server.block.to_vec();
        let extent = HALF as usize..HALF as usize + 100;
        seen[extent.clone()].copy_from_slice(&noise(LEN, 2)[extent]);
        prop_assert!(seen == noise(LEN, 2), "a byte outside what the client asked for");
    }

    #[test]
    fn garbage_ends_an_asking_connection_and_stays_inside_its_reads(
        garbage in proptest::collection::vec(any::<u8>(), 1..600),
        status in 0..4u8,
        count in 0..6u8,
        first in 0..2u8,
        bytes in prop_oneof![Just(0u16), Just(300), any::<u16>()],
    ) {
        let mut client = Client::new();
        for number in 0..3 {
            client.post(number, &Planned { verb: Verb::Read, to: 0, len: 100, region: 0, forged: false });
        }
        client.end.give(&Hello { from: PEER, to: ME }.encode());
        client.end.stream.notice(EventFlags::OUT);
        client.pump().unwrap();
        let mut reply = [3, status, count, 0, 0, 0, 0, 0, first, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0];
        reply[16..18].copy_from_slice(&bytes.to_le_bytes());
        client.end.give(&reply);
        client.end.give(&garbage);
        let outcome = client.pump();
        prop_assert!(matches!(outcome, Ok(()) | Err(Broken::Protocol)), "{outcome:?}");
        prop_assert!(client.block.to_vec()[100..] == noise(LEN, 1)[100..]);
        client.lane.flush(&mut client.finished);
        prop_assert_eq!(client.finished.len(), 3);
    }
}

#[test]
fn byte_by_byte() {
    let op = |verb, to, len| Planned { verb, to, len, region: 0, forged: false };
    let ops =
        [op(Verb::Read, 0, 300), op(Verb::Write, HALF, 300), op(Verb::Read, 5, 0), op(Verb::Write, HALF, 0)];
    check(&ops, &[1]);
}

#[test]
fn a_peer_that_does_not_read_is_not_served_beyond_the_bounds() {
    let mut server = Server::new();
    server.end.give(&Hello { from: ME, to: PEER }.encode());
    let mut first = 0;
    for _ in 0..200 {
        let mut bytes = wire::request(Verb::Read, wire::GROUP, first).to_vec();
        (0..wire::GROUP).for_each(|_| bytes.extend(wire::item(id(0), 0, LEN as u32)));
        first += wire::GROUP as u64;
        if server.end.wire.write_all(&bytes).is_err() {
            break;
        }
        server.end.stream.notice(EventFlags::IN | EventFlags::OUT);
        server.pump().unwrap();
    }
    let outbox = &server.end.stream.outbox;
    assert_eq!(server.end.stream.stop, Stop::Choked);
    assert!(outbox.bytes() < QUEUED_BYTES + (wire::GROUP as u64 + 1) * LEN, "{} bytes", outbox.bytes());
    assert!(outbox.pieces() < QUEUED_PIECES + 2 * wire::GROUP, "{} pieces", outbox.pieces());
    assert!(!server.end.stream.has_work(), "it waits for the peer, and does not spin");
}

#[test]
fn a_fence_in_mid_payload_lets_no_further_byte_land() {
    let (mut client, mut server) = (Client::new(), Server::new());
    while !client.lane.greeted {
        carry(&mut client, &mut server, 100);
    }
    for (number, at) in [0, 10_000].into_iter().enumerate() {
        let op = Planned { verb: Verb::Write, to: HALF + at, len: 8_000, region: 0, forged: false };
        client.post(number, &op);
    }
    client.pump().unwrap();
    let bytes = client.end.sent(wire::REQUEST + 2 * 64 + 3_000);
    server.end.give(&bytes);
    server.pump().unwrap();
    let before = server.block.to_vec();
    let all = Extent::new(0, LEN).unwrap();
    server.memory.fence(id(0), all, 6).unwrap();
    server.target.cut(server.end.stream.inbox.landings_mut(), id(0), all, 6, 13);
    for _ in 0..20 {
        carry(&mut client, &mut server, 1_000);
    }
    assert!(server.block.to_vec() == before, "a byte landed behind the fence");
    assert!(before[HALF as usize..][..3_000] == noise(LEN, 1)[HALF as usize..][..3_000]);
    let ends: Vec<_> = client.finished.iter().map(|(_, done)| (done.status, done.bytes, done.code)).collect();
    assert_eq!(ends, [(Status::Short, 3_000, 13), (Status::Refused, 0, 13)]);
}

#[test]
fn a_cancelled_read_touches_its_memory_no_more() {
    let (mut client, mut server) = (Client::new(), Server::new());
    while !client.lane.greeted {
        carry(&mut client, &mut server, 100);
    }
    for number in 0..2 {
        let to = number as u64 * 8_000;
        client.post(number, &Planned { verb: Verb::Read, to, len: 8_000, region: 0, forged: false });
    }
    carry(&mut client, &mut server, 1_000);
    let (before, landings) = (client.block.to_vec(), client.end.stream.inbox.landings_mut());
    assert!(client.lane.cancel(id(0), landings, &mut client.finished));
    for _ in 0..20 {
        carry(&mut client, &mut server, 1_000);
    }
    assert!(client.block.to_vec()[..8_000] == before[..8_000], "a byte came after the end");
    assert!(client.block.to_vec()[8_000..16_000] == noise(LEN, 2)[8_000..16_000]);
    let ends: Vec<_> = client.finished.iter().map(|(_, done)| (done.id.index(), done.status)).collect();
    assert_eq!(ends, [(0, Status::Flushed), (1, Status::Done)]);
}

#[test]
fn an_answer_to_a_write_that_is_not_all_sent_breaks_the_protocol() {
    let mut client = Client::new();
    client.block = vec![1; 8 << 20].into();
    client.end.give(&Hello { from: PEER, to: ME }.encode());
    client.end.stream.notice(EventFlags::OUT);
    client.pump().unwrap();
    client.post(0, &Planned { verb: Verb::Write, to: 0, len: 8 << 20, region: 0, forged: false });
    client.pump().unwrap();
    assert!(!client.end.stream.outbox.is_empty(), "the socket does not take it all");
    client.end.give(&Reply::done(0).encode());
    assert_eq!(client.pump(), Err(Broken::Protocol));
    client.lane.flush(&mut client.finished);
    assert_eq!(client.finished.len(), 1);
}
