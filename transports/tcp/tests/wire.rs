//! What stands on the wire, byte by byte, from a client that is not ours; and what happens to one that lies.

mod support;

use std::io::{ErrorKind, Read, Write};
use std::net::TcpStream;

use springtide_core::range::Extent;
use springtide_transport::{Event, Status, Transport, Verb};
use support::{Node, connect, id, owner, run};

/// A client that writes its bytes by hand.
struct Raw(TcpStream);

const FENCED: u8 = 13;

impl Raw {
    fn new(node: &Node) -> Self {
        let stream = TcpStream::connect(node.transport.local_address().unwrap()).unwrap();
        stream.set_nonblocking(true).unwrap();
        Self(stream)
    }

    /// A client that has said hello and heard the answer.
    fn greeted(node: &mut Node) -> Self {
        let mut raw = Self::new(node);
        raw.send(node, &hello(7, node.owner.0));
        assert_eq!(raw.read(node, 40), hello(node.owner.0, 7));
        raw
    }

    fn send(&mut self, node: &mut Node, mut bytes: &[u8]) {
        while !bytes.is_empty() {
            match self.0.write(bytes) {
                Ok(sent) => bytes = &bytes[sent..],
                Err(error) => assert_eq!(error.kind(), ErrorKind::WouldBlock, "{error}"),
            }
            node.step();
        }
    }

    /// The next `len` bytes, or fewer if the connection ends.
    fn read(&mut self, node: &mut Node, len: usize) -> Vec<u8> {
        let (mut bytes, mut got) = (vec![0; len], 0);
        for _ in 0..1_000_000 {
            if got == len {
                return bytes;
            }
            node.step();
            match self.0.read(&mut bytes[got..]) {
                Ok(0) => break,
                Ok(n) => got += n,
                Err(error) if error.kind() == ErrorKind::WouldBlock => std::thread::yield_now(),
                Err(_) => break,
            }
        }
        bytes.truncate(got);
        bytes
    }

    fn is_closed(&mut self, node: &mut Node) -> bool {
        self.read(node, 1).is_empty()
    }
}

fn hello(from: u128, to: u128) -> Vec<u8> {
    let mut out = vec![0xF5, b'T', b'C', b'P', 1, 0, 0, 0];
    out.extend(from.to_le_bytes());
    out.extend(to.to_le_bytes());
    out
}

fn head(kind: u8, count: u16, first: u64) -> Vec<u8> {
    let mut out = vec![kind, 0];
    out.extend(count.to_le_bytes());
    out.extend([0; 4]);
    out.extend(first.to_le_bytes());
    out
}

/// Region 0 in its first life.
fn item(at: u64, len: u32) -> Vec<u8> {
    let mut out = (1u64 << 32).to_le_bytes().to_vec();
    out.extend(at.to_le_bytes());
    out.extend(len.to_le_bytes());
    out.extend([0; 4]);
    out
}

/// A write of `len` bytes at `at` under the node's ticket with `serial`.
fn write(node: &Node, first: u64, at: u64, len: u32, serial: u64) -> Vec<u8> {
    let ticket = node.ticket(serial);
    let mut out = head(2, 1, first);
    out.extend(item(at, len));
    let words = [ticket.extent.offset(), ticket.extent.len(), ticket.serial, ticket.term.0, ticket.tag];
    words.iter().for_each(|word| out.extend(word.to_le_bytes()));
    out
}

fn reply(status: u8, count: u8, code: u8, first: u8, bytes: u16) -> Vec<u8> {
    let mut out = vec![3, status, count, 0, code, 0, 0, 0, first, 0, 0, 0, 0, 0, 0, 0];
    out.extend(u64::from(bytes).to_le_bytes());
    out
}

#[test]
fn golden_bytes_of_reads_and_writes() {
    let mut node = Node::new(2, 4_096);
    let (mut raw, before) = (Raw::greeted(&mut node), node.bytes(0, 4_096));
    let mut bytes = head(1, 3, 0);
    bytes.extend([item(0, 10), item(4_090, 6), item(4_090, 7)].concat());
    raw.send(&mut node, &bytes);
    assert_eq!(raw.read(&mut node, 24), reply(0, 2, 0, 0, 16));
    assert_eq!(raw.read(&mut node, 16), [&before[..10], &before[4_090..]].concat());
    assert_eq!(raw.read(&mut node, 24), reply(1, 1, 1, 2, 0));
    let mut bytes = write(&node, 3, 100, 5, 1);
    bytes.extend(b"hello");
    raw.send(&mut node, &bytes);
    assert_eq!(raw.read(&mut node, 24), reply(0, 1, 0, 3, 0));
    assert_eq!(node.bytes(99, 7), [&before[99..100], b"hello", &before[105..106]].concat());
}

#[test]
fn a_write_without_a_good_ticket_moves_no_byte_and_the_next_one_does() {
    let mut node = Node::new(2, 4_096);
    let (mut raw, before) = (Raw::greeted(&mut node), node.bytes(0, 4_096));
    let mut bad = write(&node, 0, 100, 5, 1);
    bad[16 + 56] ^= 1;
    bad.extend(b"wrong");
    bad.extend(write(&node, 1, 4_094, 5, 1));
    bad.extend(b"wrong");
    raw.send(&mut node, &bad);
    assert_eq!(raw.read(&mut node, 48), [reply(1, 1, 12, 0, 0), reply(1, 1, 1, 1, 0)].concat());
    assert_eq!(node.bytes(0, 4_096), before);
    let mut good = write(&node, 2, 100, 5, 1);
    good.extend(b"right");
    raw.send(&mut node, &good);
    assert_eq!(raw.read(&mut node, 24), reply(0, 1, 0, 2, 0));
    assert_eq!(node.bytes(100, 5), b"right");
}

#[test]
fn a_fence_stands_at_once_though_a_writer_stalls_in_mid_payload() {
    let mut node = Node::new(2, 8_192);
    let (mut raw, before) = (Raw::greeted(&mut node), node.bytes(0, 8_192));
    let mut half = write(&node, 0, 1_000, 4_000, 1);
    half.extend([1; 1_500]);
    raw.send(&mut node, &half);
    support::until(&mut [&mut node], |nodes| nodes[0].bytes(2_499, 1) == [1]);
    node.transport.fence(id(0), Extent::new(0, 8_192).unwrap(), 2, 55).unwrap();
    assert_eq!(node.transport.event(), Some(Event::Fenced(55)));
    raw.send(&mut node, &[1; 2_500]);
    assert_eq!(raw.read(&mut node, 24), reply(2, 1, FENCED, 0, 1_500));
    assert_eq!(node.bytes(1_000, 1_500), [1; 1_500]);
    assert_eq!(node.bytes(2_500, 5_692), before[2_500..]);
    let mut old = write(&node, 1, 0, 3, 1);
    old.extend(b"old");
    let mut new = write(&node, 2, 0, 3, 2);
    new.extend(b"new");
    raw.send(&mut node, &[old, new].concat());
    assert_eq!(raw.read(&mut node, 48), [reply(1, 1, FENCED, 1, 0), reply(0, 1, 0, 2, 0)].concat());
    assert_eq!(node.bytes(0, 3), b"new");
}

#[test]
fn a_withdrawn_segment_takes_no_further_byte() {
    let mut node = Node::new(2, 8_192);
    let mut raw = Raw::greeted(&mut node);
    let mut half = write(&node, 0, 1_000, 4_000, 1);
    half.extend([1; 1_500]);
    raw.send(&mut node, &half);
    support::until(&mut [&mut node], |nodes| nodes[0].bytes(2_499, 1) == [1]);
    node.transport.withdraw(id(0));
    assert_eq!(node.memory.shares(), 1, "the stalled writer holds nothing");
    let after = node.bytes(0, 8_192);
    raw.send(&mut node, &[1; 2_500]);
    assert_eq!(raw.read(&mut node, 24), reply(2, 1, FENCED, 0, 1_500));
    assert_eq!(node.bytes(0, 8_192), after);
}

#[test]
fn who_breaks_the_protocol_is_cut_off_and_nobody_else_notices() {
    let (mut a, mut b) = (Node::new(1, 4_096), Node::new(2, 4_096));
    let path = connect(&mut a, &mut b, 0);
    let mut kind = head(9, 1, 0);
    kind.extend(item(0, 1));
    let mut long = head(1, 1, 0);
    long.extend(item(0, u32::MAX));
    let mut wrong_number = head(1, 1, 5);
    wrong_number.extend(item(0, 1));
    let lies = [kind, long, wrong_number, head(1, 0, 0), head(1, 33, 0), vec![0xFF; 100]];
    for lie in &lies {
        let mut raw = Raw::greeted(&mut b);
        raw.send(&mut b, lie);
        assert!(raw.is_closed(&mut b), "{lie:?}");
    }
    for greeting in [&b"GET / HTTP/1.1"[..], &[0xF5, b'T', b'C', b'P', 2, 0, 0, 0], &[0x16, 3, 1]] {
        let mut raw = Raw::new(&b);
        let mut greeting = greeting.to_vec();
        greeting.resize(40, 0);
        raw.send(&mut b, &greeting);
        assert!(raw.is_closed(&mut b), "{greeting:?}");
    }
    let op = a.op(Verb::Read, 0, 0, 0, 4_096);
    assert_eq!(run(&mut a, &mut b, path, &[op]), [Status::Done]);
}

#[test]
fn somebody_who_means_another_life_hears_who_we_are_and_no_more() {
    let mut node = Node::new(2, 4_096);
    let mut raw = Raw::new(&node);
    raw.send(&mut node, &hello(7, owner(3).0));
    assert_eq!(raw.read(&mut node, 40), hello(2, 7));
    assert!(raw.is_closed(&mut node));
}

#[test]
fn a_greedy_peer_that_does_not_read_costs_bounded_memory_and_others_go_on() {
    let (mut a, mut b) = (Node::new(1, 1 << 20), Node::new(2, 1 << 20));
    let path = connect(&mut a, &mut b, 0);
    let mut raw = Raw::greeted(&mut b);
    let mut sent = 0u64;
    // Requests pile up in the sockets until the client cannot send any more.
    for _ in 0..100_000 {
        let mut bytes = head(1, 32, sent * 32);
        (0..32).for_each(|_| bytes.extend(item(0, 1 << 20)));
        match raw.0.write(&bytes) {
            Ok(n) if n == bytes.len() => sent += 1,
            _ => break,
        }
        b.step();
    }
    assert!(sent > 10);
    for n in 0..20 {
        let op = a.op(Verb::Read, 0, 0, n, 4_096);
        assert_eq!(run(&mut a, &mut b, path, &[op]), [Status::Done]);
    }
    (0..10).for_each(|_| b.step());
    assert!(!matches!(b.transport.arm(), springtide_transport::Armed::Again), "it does not spin");
}
