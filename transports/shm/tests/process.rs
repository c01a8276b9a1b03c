//! Two processes: this binary starts itself again as the peer, and kills it at bad moments.

mod common;

use std::io::{BufRead, BufReader, Write};
use std::os::fd::AsFd;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use common::*;
use rustix::event::{PollFd, PollFlags, Timespec};
use rustix::process::{Pid, Signal, kill_process};
use springtide_core::id::Id;
use springtide_hal::Block;
use springtide_hal_host::copy::crc32c;
use springtide_transport::{Armed, Budget, DownReason, Event, Exposure, Op, Status, Transport, Verb};

const MIB: u64 = 1 << 20;
const LEN: u64 = 16 * MIB;
/// Nothing here takes so long; a wait that does is a hang.
const HANG: Timespec = Timespec { tv_sec: 20, tv_nsec: 0 };

fn main() {
    let mut words = std::env::args().skip(1);
    match (words.next().as_deref(), words.next()) {
        (Some("peer-owner"), _) => owner(),
        (Some("peer-writer"), Some(kind)) => writer(&kind),
        _ => suite(),
    }
}

fn suite() {
    let tests: [(&str, fn()); 5] = [
        ("bytes_cross_and_both_sides_sleep", bytes_cross_and_both_sides_sleep),
        ("an_owner_that_is_killed_ends_every_op_once", an_owner_that_is_killed_ends_every_op_once),
        ("a_writer_that_is_killed_stores_nothing_more", a_writer_that_is_killed_stores_nothing_more),
        ("a_frozen_owner_does_not_hold_a_closed_path", a_frozen_owner_does_not_hold_a_closed_path),
        ("a_killed_owner_leaves_its_memory_readable", a_killed_owner_leaves_its_memory_readable),
    ];
    let words: Vec<String> = std::env::args().skip(1).collect();
    let has = |word: &str| words.iter().any(|have| have == word);
    // The words that test runners say to a test program: list, or run the one with this name.
    let names: Vec<_> = words.iter().filter(|word| tests.iter().any(|(name, _)| name == word)).collect();
    let chosen = tests.iter().filter(|(name, _)| names.is_empty() || names.iter().any(|have| have == name));
    if has("--list") {
        chosen.filter(|_| !has("--ignored")).for_each(|(name, _)| println!("{name}: test"));
        return;
    }
    let mut passed = 0;
    for (name, test) in chosen {
        test();
        println!("test {name} ... ok");
        passed += 1;
    }
    println!("test result: ok. {passed} passed; 0 failed; 0 ignored");
}

// The peers.

fn say(word: &[u8]) {
    let hex: String = word.iter().map(|byte| format!("{byte:02x}")).collect();
    println!("{hex}");
}

fn from_hex(line: &str) -> Vec<u8> {
    let line = line.trim();
    (0..line.len() / 2).map(|i| u8::from_str_radix(&line[2 * i..2 * i + 2], 16).unwrap()).collect()
}

/// Serves a segment for ever; a line on its input makes it say the segment's checksum, the end of it ends the peer.
fn owner() {
    let theirs = shared(LEN);
    theirs.write(0, &pattern(LEN, 1)).unwrap();
    let mut node = Node::new();
    node.shm.expose(region(0), &theirs, as_segment()).unwrap();
    say(&node.address());
    say(&node.describe(region(0)));
    let stdin = std::io::stdin();
    loop {
        node.turn();
        if asleep_until_ready(&mut node, Some(stdin.as_fd())) == Woken::Other {
            let mut line = String::new();
            if stdin.lock().read_line(&mut line).unwrap() == 0 {
                return;
            }
            say(&crc32c(&theirs.to_vec()).to_le_bytes());
        }
    }
}

/// Writes into a segment over and over until it is killed. Its input names the segment.
fn writer(kind: &str) {
    let (ours, exposure) = match kind {
        "mapped" => (shared(LEN), Exposure::Source),
        "private" => (private(LEN), Exposure::Source),
        _ => (private(LEN), Exposure::Local),
    };
    ours.write(0, &vec![0xaa; LEN as usize]).unwrap();
    let mut lines = std::io::stdin().lines().map(|line| from_hex(&line.unwrap()));
    let (address, description) = (lines.next().unwrap(), lines.next().unwrap());
    let mut node = Node::new();
    node.shm.expose(region(0), &ours, exposure).unwrap();
    node.shm.open(node.now, path(0), &address).unwrap();
    node.shm.import(path(0), remote(0), &description).unwrap();
    node.shm.admit(ticket_id(0), &ticket(MIB, LEN - 2 * MIB, 5)).unwrap();
    for n in 0.. {
        let to = MIB + n % 10 * MIB;
        // No room yet, or no more: the next round.
        let _ = node.shm.submit(path(0), &[op(n, Verb::Write, 0, to, to, 4 * MIB as u32)]);
        node.turn();
        node.take_done();
        let _ = asleep_until_ready(&mut node, None);
    }
}

// This side.

struct Peer {
    process: Child,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
}

impl Peer {
    fn start(words: &[&str]) -> Self {
        let mut process = Command::new(std::env::current_exe().unwrap())
            .args(words)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let input = process.stdin.take().unwrap();
        let output = BufReader::new(process.stdout.take().unwrap());
        Self { process, input, output }
    }

    fn hear(&mut self) -> Vec<u8> {
        let mut line = String::new();
        self.output.read_line(&mut line).unwrap();
        from_hex(&line)
    }

    fn signal(&self, signal: Signal) {
        kill_process(Pid::from_child(&self.process), signal).unwrap();
    }

    fn kill(&mut self) {
        self.process.kill().unwrap();
        self.process.wait().unwrap();
    }
}

impl Drop for Peer {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Woken {
    Ready,
    Other,
}

/// Sleeps, if there is nothing to do, until there is or `other` has input.
fn asleep_until_ready(node: &mut Node, other: Option<std::os::fd::BorrowedFd<'_>>) -> Woken {
    let wait = match node.shm.arm() {
        Armed::Again => return Woken::Ready,
        // A clock for whoever has none: time passes with every look.
        Armed::Poll(after) => Timespec { tv_sec: 0, tv_nsec: after.subsec_nanos().into() },
        Armed::Asleep => HANG,
    };
    let fd = node.shm.wake_fd().unwrap();
    let mut fds = vec![PollFd::new(&fd, PollFlags::IN)];
    fds.extend(other.iter().map(|fd| PollFd::new(fd, PollFlags::IN)));
    let ready = rustix::event::poll(&mut fds, Some(&wait)).unwrap();
    assert!(ready > 0 || wait.tv_sec == 0, "nobody wakes {:?}", node.events);
    if fds.get(1).is_some_and(|fd| !fd.revents().is_empty()) { Woken::Other } else { Woken::Ready }
}

/// Drives `node`, asleep whenever it has nothing to do, until `until` holds.
fn wait(node: &mut Node, until: impl Fn(&Node) -> bool) {
    loop {
        node.turn();
        if until(node) {
            return;
        }
        let _ = asleep_until_ready(node, None);
    }
}

/// An initiator with region 0, and a path to a fresh owner.
fn with_owner(ours: &Block, exposure: Exposure) -> (Node, Peer) {
    let mut peer = Peer::start(&["peer-owner"]);
    let (address, description) = (peer.hear(), peer.hear());
    let mut node = Node::new();
    node.shm.expose(region(0), ours, exposure).unwrap();
    node.shm.open(node.now, path(0), &address).unwrap();
    node.shm.import(path(0), remote(0), &description).unwrap();
    wait(&mut node, |node| node.events.contains(&Event::Up(path(0))));
    node.shm.admit(ticket_id(0), &ticket(0, LEN, 5)).unwrap();
    (node, peer)
}

fn bytes_cross_and_both_sides_sleep() {
    for (ours, exposure) in
        [(shared(LEN), Exposure::Source), (private(LEN), Exposure::Source), (private(LEN), Exposure::Local)]
    {
        let (mut node, mut peer) = with_owner(&ours, exposure);
        let read: Vec<Op> =
            (0..4).map(|n| op(n, Verb::Read, 0, n * 4 * MIB, n * 4 * MIB, 4 * MIB as u32)).collect();
        node.shm.submit(path(0), &read).unwrap();
        wait(&mut node, |node| node.done.len() == 4);
        assert!(ours.to_vec() == pattern(LEN, 1), "{exposure:?}");
        node.take_done();

        ours.write(0, &pattern(LEN, 9)).unwrap();
        let write: Vec<Op> =
            read.iter().map(|op| Op { verb: Verb::Write, ticket: Some(ticket_id(0)), ..*op }).collect();
        node.shm.submit(path(0), &write).unwrap();
        wait(&mut node, |node| node.done.len() == 4);
        assert!(node.take_done().iter().all(|done| done.status == Status::Done), "{exposure:?}");
        writeln!(peer.input).unwrap();
        assert_eq!(peer.hear(), crc32c(&pattern(LEN, 9)).to_le_bytes(), "{exposure:?}");

        for n in 10..2_000 {
            node.shm.submit(path(0), &[op(n, Verb::Write, 0, 0, n * 8, 8)]).unwrap();
            wait(&mut node, |node| node.done.len() == 1);
            assert_eq!(node.take_done(), [completion(n, 8, Status::Done, 0)]);
        }
    }
}

fn an_owner_that_is_killed_ends_every_op_once() {
    for round in 0..12 {
        let exposure = if round % 2 == 0 { Exposure::Source } else { Exposure::Local };
        let ours = shared(LEN);
        let (mut node, mut peer) = with_owner(&ours, exposure);
        let verb = |n| if n % 3 == 0 { Verb::Read } else { Verb::Write };
        let ops: Vec<Op> =
            (0..60).map(|n| op(n, verb(n), 0, n % 4 * 4 * MIB, n % 4 * 4 * MIB, 4 * MIB as u32)).collect();
        node.shm.submit(path(0), &ops).unwrap();
        for _ in 0..round {
            node.turn_with(Budget { ops: 4, bytes: MIB });
        }
        peer.kill();
        wait(&mut node, |node| {
            node.events.contains(&Event::Down(path(0), DownReason::PeerGone)) && node.done.len() >= 60
        });
        node.turn();
        let mut ids: Vec<usize> = node.done.iter().map(|done| done.id.index()).collect();
        ids.sort_unstable();
        assert_eq!(ids, (0..60).collect::<Vec<_>>());
        assert!(node.done.iter().all(|done| matches!(done.status, Status::Done | Status::Flushed)));
        assert_eq!(node.shm.room(path(0)), 0);
    }
}

fn a_writer_that_is_killed_stores_nothing_more() {
    for round in 0..12 {
        let theirs = shared(LEN);
        let mut node = Node::new();
        node.shm.expose(region(0), &theirs, as_segment()).unwrap();
        let mut peer = Peer::start(&["peer-writer", ["mapped", "private", "pieces"][round % 3]]);
        for line in [node.address(), node.describe(region(0))] {
            let hex: String = line.iter().map(|byte| format!("{byte:02x}")).collect();
            writeln!(peer.input, "{hex}").unwrap();
        }
        let stored = |theirs: &Block| theirs.to_vec().iter().filter(|&&byte| byte != 0).count();
        while stored(&theirs) == 0 {
            node.turn_with(Budget { ops: 4, bytes: 300_000 });
            let _ = asleep_until_ready(&mut node, None);
        }
        for _ in 0..round {
            node.turn_with(Budget { ops: 4, bytes: 300_000 });
        }
        // In the midst of a write, whose source we may hold mapped.
        peer.kill();
        for _ in 0..200 {
            node.turn();
        }
        let after = theirs.to_vec();
        for _ in 0..200 {
            node.turn();
        }
        assert!(theirs.to_vec() == after, "something was stored after the writer's path was gone");
        let (before, rest) = after.split_at(MIB as usize);
        assert!(before.iter().chain(&rest[rest.len() - MIB as usize..]).all(|&byte| byte == 0));
        assert!(after.iter().all(|&byte| byte == 0 || byte == 0xaa), "bytes of somebody else");
        // The owner is none the worse for it.
        let (ours, mut other) = (shared(MIB), Node::new());
        other.shm.expose(region(0), &ours, Exposure::Source).unwrap();
        connect(&mut other, &mut node);
        other.shm.submit(path(0), &[op(1, Verb::Read, 0, 0, MIB, MIB as u32)]).unwrap();
        drive(&mut other, &mut node, |other, _| !other.done.is_empty());
        assert!(ours.to_vec() == after[MIB as usize..2 * MIB as usize]);
    }
}

fn a_frozen_owner_does_not_hold_a_closed_path() {
    let ours = shared(LEN);
    let (mut node, peer) = with_owner(&ours, Exposure::Source);
    let ops: Vec<Op> = (0..40).map(|n| op(n, Verb::Write, 0, 0, 0, 4 * MIB as u32)).collect();
    node.shm.submit(path(0), &ops).unwrap();
    peer.signal(Signal::STOP);
    node.shm.close(path(0));
    for _ in 0..1_000 {
        // Time passes, so that an owner frozen in the midst of a step is waited for no longer.
        node.now += core::time::Duration::from_millis(1);
        node.turn();
    }
    let mut ids: Vec<usize> = node.done.iter().map(|done| done.id.index()).collect();
    ids.sort_unstable();
    assert_eq!(ids, (0..40).collect::<Vec<_>>());
    let down = |node: &Node| node.events.contains(&Event::Down(path(0), DownReason::Closed));
    let lost = node.done.iter().any(|done| done.status == Status::Lost);
    node.shm.withdraw(region(0));
    assert_eq!((down(&node), ours.shares() == 1), (!lost, !lost), "only lost ops hold memory and path");
    peer.signal(Signal::CONT);
    drop(peer);
    for _ in 0..1_000 {
        node.turn();
    }
    assert_eq!(ours.shares(), 1, "with the peer dead nobody holds memory");
    assert!(down(&node));
}

fn a_killed_owner_leaves_its_memory_readable() {
    let ours = shared(LEN);
    let (mut node, mut peer) = with_owner(&ours, Exposure::Local);
    node.shm.submit(path(0), &[op(0, Verb::Read, 0, 0, 0, 4 * MIB as u32)]).unwrap();
    wait(&mut node, |node| node.done.len() == 1);
    node.take_done();
    let reads: Vec<Op> = (1..9).map(|n| op(n, Verb::Read, 0, 4 * MIB, 4 * MIB, 4 * MIB as u32)).collect();
    node.shm.submit(path(0), &reads).unwrap();
    node.turn_with(Budget { ops: 1, bytes: MIB });
    peer.kill();
    // No bus error in the midst of a copy: the file lives as long as somebody maps it.
    wait(&mut node, |node| node.events.contains(&Event::Down(path(0), DownReason::PeerGone)));
    node.turn();
    assert_eq!(node.done.len(), 8);
    if node.done.iter().any(|done| done.status == Status::Done) {
        assert!(
            ours.to_vec()[4 * MIB as usize..8 * MIB as usize]
                == pattern(LEN, 1)[4 * MIB as usize..8 * MIB as usize]
        );
    }
}
