//! Peers that die, keep still, were never there, or are somebody else.

mod support;

use core::time::Duration;
use std::collections::HashMap;
use std::io::Write;
use std::net::{TcpListener, TcpStream};

use springtide_core::id::{PathId, RegionId};
use springtide_transport::{
    Armed, Budget, ControlError, DownReason, Event, Op, Reason, Status, SubmitError, Transport, Verb,
};
use springtide_transport_tcp::{ListenError, MAX_OP, TcpTransport};
use support::{Node, config, connect, id, owner, pattern, run, until};

const MIB: usize = 1 << 20;

fn reads(node: &mut Node, peer: u32, count: u64, len: u32) -> Vec<Op> {
    (0..count).map(|n| node.op(Verb::Read, peer, n * u64::from(len), n * u64::from(len), len)).collect()
}

fn writes(node: &mut Node, peer: u32, count: u64, len: u32) -> Vec<Op> {
    (0..count).map(|n| node.op(Verb::Write, peer, n * u64::from(len), n * u64::from(len), len)).collect()
}

#[test]
fn a_killed_peer_flushes_every_op_once_and_then_is_told() {
    let (mut a, mut b) = (Node::new(1, 8 * MIB), Node::new(2, 8 * MIB));
    let path = connect(&mut a, &mut b, 0);
    let mut ops = reads(&mut a, 0, 40, 65_536);
    ops.extend(writes(&mut a, 0, 40, 65_536));
    a.transport.submit(path, &ops).unwrap();
    // Some of it is under way when the peer dies.
    for _ in 0..3 {
        a.turn(Budget { ops: 100, bytes: 300_000 });
        b.turn(Budget { ops: 100, bytes: 300_000 });
    }
    drop(b.transport);
    for _ in 0..100_000 {
        let told = a.events.len();
        a.turn(Budget { ops: 100, bytes: 1 << 20 });
        if a.events.len() > told {
            assert!(ops.iter().all(|op| a.status(op).is_some()), "the ops end before the path");
        }
        if a.saw(Event::Down(path, DownReason::PeerGone)) {
            break;
        }
    }
    assert!(a.saw(Event::Down(path, DownReason::PeerGone)), "{:?}", a.events);
    let statuses: Vec<_> = ops.iter().filter_map(|op| a.status(op)).collect();
    assert!(statuses.iter().all(|status| matches!(status, Status::Done | Status::Flushed)));
    assert!(statuses.contains(&Status::Flushed));
    let late = a.op(Verb::Read, 0, 0, 0, 1);
    let refused = SubmitError { accepted: 0, reason: Reason::PathDown };
    assert_eq!((a.transport.submit(path, &[late]), a.transport.room(path)), (Err(refused), 0));
}

#[test]
fn a_stalled_peer_holds_up_nobody_and_is_given_up() {
    let (mut a, mut b, mut c) = (Node::new(1, 16 * MIB), Node::new(2, 16 * MIB), Node::new(3, MIB));
    let (stalled, lively) = (connect(&mut a, &mut b, 0), connect(&mut a, &mut c, 1));
    let mut stuck = writes(&mut a, 0, 16, 1 << 20);
    stuck.extend(reads(&mut a, 0, 16, 1 << 20));
    a.transport.submit(stalled, &stuck).unwrap();
    for round in 0..50 {
        let op = a.op(Verb::Read, 1, 0, round, 5_000);
        assert_eq!(run(&mut a, &mut c, lively, &[op]), [Status::Done]);
    }
    assert!(stuck.iter().all(|op| a.status(op).is_none()));
    assert!(matches!(a.transport.arm(), Armed::Poll(_)), "it sleeps, and looks again for the deadline");
    let stall = config(1).stall;
    a.pass(stall / 2);
    a.step();
    assert!(!a.saw(Event::Down(stalled, DownReason::Silent)), "not before its time");
    a.pass(stall);
    until(&mut [&mut a], |nodes| nodes[0].saw(Event::Down(stalled, DownReason::Silent)));
    assert!(stuck.iter().all(|op| a.status(op) == Some(Status::Flushed)));
    let op = a.op(Verb::Write, 1, 0, 0, 5_000);
    assert_eq!(run(&mut a, &mut c, lively, &[op]), [Status::Done]);
}

#[test]
fn an_idle_path_lives_for_ever() {
    let (mut a, mut b) = (Node::new(1, MIB), Node::new(2, MIB));
    let path = connect(&mut a, &mut b, 0);
    for _ in 0..10 {
        a.pass(Duration::from_secs(3_600));
        b.pass(Duration::from_secs(3_600));
        let op = a.op(Verb::Read, 0, 0, 0, 100);
        assert_eq!(run(&mut a, &mut b, path, &[op]), [Status::Done]);
    }
    assert_eq!(a.transport.arm(), Armed::Asleep);
    assert_eq!(b.transport.arm(), Armed::Asleep);
}

#[test]
fn nobody_listens() {
    let mut a = Node::new(1, 64);
    let (mut gone, path) = (Vec::new(), id::<PathId>(0));
    Node::new(2, 64).transport.address(&mut gone);
    a.transport.open(a.now, path, &gone).unwrap();
    until(&mut [&mut a], |nodes| nodes[0].saw(Event::Down(path, DownReason::Unreachable)));
}

#[test]
fn a_listener_that_never_says_hello_is_given_up() {
    let mute = TcpListener::bind("127.0.0.1:0").unwrap();
    let (mut a, path) = (Node::new(1, 64), id::<PathId>(0));
    let mut address = a.address();
    address[6..8].copy_from_slice(&mute.local_addr().unwrap().port().to_le_bytes());
    a.transport.open(a.now, path, &address).unwrap();
    let _held = mute.accept().unwrap();
    (0..10).for_each(|_| a.step());
    assert!(matches!(a.transport.arm(), Armed::Poll(_)));
    a.pass(config(1).hello + Duration::from_millis(1));
    until(&mut [&mut a], |nodes| nodes[0].saw(Event::Down(path, DownReason::Silent)));
}

#[test]
fn a_client_that_never_says_hello_is_given_up() {
    let mut b = Node::new(2, 64);
    let client = TcpStream::connect(b.transport.local_address().unwrap()).unwrap();
    client.set_nonblocking(true).unwrap();
    (0..10).for_each(|_| b.step());
    assert!(matches!(b.transport.arm(), Armed::Poll(_)));
    // Bytes that are no whole hello buy no time.
    for byte in [0xF5, b'T', b'C', b'P'] {
        (&client).write_all(&[byte]).unwrap();
        b.pass(config(2).hello / 5);
        (0..3).for_each(|_| b.step());
        assert!(client.peek(&mut [0]).is_err());
    }
    b.pass(config(2).hello / 5 + Duration::from_millis(1));
    b.step();
    assert_eq!(b.transport.arm(), Armed::Asleep);
    assert_eq!(client.peek(&mut [0]).unwrap(), 0);
}

#[test]
fn another_life_of_the_peer_is_not_served() {
    let (mut a, mut b) = (Node::new(1, MIB), Node::new(2, MIB));
    let path = id::<PathId>(0);
    let mut address = b.address();
    let end = address.len();
    address[end - 16..].copy_from_slice(&owner(77).0.to_le_bytes());
    a.transport.open(a.now, path, &address).unwrap();
    until(&mut [&mut a, &mut b], |nodes| nodes[0].saw(Event::Down(path, DownReason::Protocol)));
    let path = connect(&mut a, &mut b, 1);
    let mut stale = b.description();
    stale[1..17].copy_from_slice(&owner(77).0.to_le_bytes());
    assert_eq!(a.transport.import(path, id(5), &stale), Err(ControlError::Stale));
    assert_eq!(a.transport.import(path, id(5), &stale[1..]), Err(ControlError::Malformed));
    assert_eq!(a.transport.open(a.now, id(9), &address[1..]), Err(ControlError::Malformed));
    assert_eq!(a.transport.open(a.now, path, &address), Err(ControlError::Unknown));
}

#[test]
fn several_lanes_share_the_ops_of_a_path() {
    let mut wide = config(1);
    wide.lanes = 4;
    let (mut a, mut b) = (Node::with(wide, 32 * MIB), Node::new(2, 32 * MIB));
    let path = connect(&mut a, &mut b, 0);
    let theirs = b.bytes(0, 32 * MIB);
    let ops = reads(&mut a, 0, 64, 512 << 10);
    assert_eq!(run(&mut a, &mut b, path, &ops), [Status::Done; 64]);
    assert!(a.bytes(0, 32 * MIB) == theirs);
    a.memory.write(0, &pattern(32 * MIB, 5)).unwrap();
    let ops = writes(&mut a, 0, 64, 512 << 10);
    assert_eq!(run(&mut a, &mut b, path, &ops), [Status::Done; 64]);
    assert!(b.bytes(0, 32 * MIB) == pattern(32 * MIB, 5));
}

#[test]
fn the_longest_op_moves_and_a_longer_one_is_refused() {
    let (mut a, mut b) = (Node::new(1, MAX_OP as usize + 1), Node::new(2, MAX_OP as usize + 1));
    let path = connect(&mut a, &mut b, 0);
    let ops = [a.op(Verb::Read, 0, 0, 0, MAX_OP + 1), a.op(Verb::Read, 0, 0, 1, MAX_OP)];
    assert_eq!(run(&mut a, &mut b, path, &ops), [Status::Refused, Status::Done]);
    assert!(a.bytes(0, MAX_OP as usize) == b.bytes(1, MAX_OP as usize));
}

#[test]
fn addresses_that_cannot_be_listened_on() {
    let mut any = config(1);
    any.listen = Some("0.0.0.0:0".parse().unwrap());
    assert_eq!(TcpTransport::new(any).unwrap_err(), ListenError::Unadvertised(any.listen.unwrap()));
    any.advertise = Some("127.0.0.1".parse().unwrap());
    let open = TcpTransport::new(any).unwrap();
    let taken = open.local_address().unwrap();
    assert!(taken.ip().is_loopback() && taken.port() != 0);
    let mut same = config(2);
    same.listen = Some(taken);
    let error = TcpTransport::new(same).unwrap_err();
    assert!(matches!(error, ListenError::Bind(address, _) if address == taken), "{error}");
    let mut none = config(3);
    none.listen = None;
    let (mute, mut address) = (TcpTransport::new(none).unwrap(), Vec::new());
    mute.address(&mut address);
    assert_eq!((address.len(), mute.local_address()), (0, None));
}

#[test]
fn both_sides_ask_and_serve_at_once() {
    let (mut a, mut b) = (Node::new(1, 4 * MIB), Node::new(2, 4 * MIB));
    let (there, back) = (connect(&mut a, &mut b, 0), connect(&mut b, &mut a, 0));
    let (ours, theirs) = (a.bytes(0, 2 * MIB), b.bytes(0, 2 * MIB));
    let quarter = 2 * MIB as u64;
    let mut ops = HashMap::new();
    for n in 0..64 {
        let at = n * 32_768;
        ops.insert(
            n,
            (a.op(Verb::Read, 0, quarter + at, at, 32_768), b.op(Verb::Read, 0, quarter + at, at, 32_768)),
        );
    }
    for (x, y) in ops.values() {
        a.transport.submit(there, &[*x]).unwrap();
        b.transport.submit(back, &[*y]).unwrap();
    }
    until(&mut [&mut a, &mut b], |nodes| nodes.iter().all(|node| node.done.len() == 64));
    assert!(a.bytes(quarter, 2 * MIB) == theirs && b.bytes(quarter, 2 * MIB) == ours);
}

#[test]
fn a_region_of_another_process_is_not_a_segment_of_ours() {
    use springtide_core::ticket::TicketKey;
    use springtide_transport::Exposure;
    let mut a = Node::new(1, 64);
    let (block, key) = (a.memory.clone(), TicketKey([0; 16]));
    let foreign = Exposure::Segment { owner: owner(5), segment: id(1), key };
    assert_eq!(a.transport.expose(id(1), &block, foreign), Err(ControlError::Unsuitable));
    let twice = Exposure::Segment { owner: owner(1), segment: id(0), key };
    assert_eq!(a.transport.expose(id(1), &block, twice), Err(ControlError::Unknown));
    a.transport.expose(id(1), &block, Exposure::Local).unwrap();
    let mut out = Vec::new();
    assert_eq!(a.transport.describe(id::<RegionId>(1), &mut out), Err(ControlError::Unsuitable));
}

#[test]
fn a_transport_can_be_its_own_peer() {
    let mut a = Node::new(1, MIB);
    let (address, path) = (a.address(), id::<PathId>(0));
    a.transport.open(a.now, path, &address).unwrap();
    until(&mut [&mut a], |nodes| nodes[0].saw(Event::Up(path)));
    a.transport.import(path, id(0), &a.description()).unwrap();
    let (want, op) = (a.bytes(0, 300_000), a.op(Verb::Read, 0, 500_000, 0, 300_000));
    a.transport.submit(path, &[op]).unwrap();
    until(&mut [&mut a], |nodes| nodes[0].status(&op) == Some(Status::Done));
    assert!(a.bytes(500_000, 300_000) == want);
}

#[test]
fn a_waiting_op_can_be_given_up_at_once() {
    let (mut a, mut b) = (Node::new(1, 32 * MIB), Node::new(2, 32 * MIB));
    let path = connect(&mut a, &mut b, 0);
    let ops = writes(&mut a, 0, 30, 1 << 20);
    a.transport.submit(path, &ops).unwrap();
    a.step();
    // The last ones have not been put on the wire; a peer that keeps still cannot hold them.
    a.transport.cancel(ops[29].id);
    a.transport.cancel(ops[28].id);
    a.step();
    assert_eq!((a.status(&ops[29]), a.status(&ops[28])), (Some(Status::Flushed), Some(Status::Flushed)));
    let before = b.bytes(28 << 20, 2 << 20);
    until(&mut [&mut a, &mut b], |nodes| nodes[0].done.len() == 30);
    assert!(ops[..28].iter().all(|op| a.status(op) == Some(Status::Done)));
    assert!(b.bytes(28 << 20, 2 << 20) == before);
}
