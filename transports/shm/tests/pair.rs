//! Two transports in one process, driven by hand.

mod common;

use std::sync::mpsc::{TryRecvError, channel};

use common::*;
use springtide_core::range::Extent;
use springtide_hal::Block;
use springtide_transport::{
    Armed, Budget, ControlError, DownReason, Event, Exposure, Reason, Status, SubmitError, Transport, Verb,
};

/// An initiator with region 0 (`ours`), and an owner whose region 0 is the segment `theirs`.
fn pair(ours: &Block, exposure: Exposure, theirs: &Block) -> (Node, Node) {
    let (mut a, mut b) = (Node::new(), Node::new());
    a.shm.expose(region(0), ours, exposure).unwrap();
    b.shm.expose(region(0), theirs, as_segment()).unwrap();
    connect(&mut a, &mut b);
    a.shm.admit(ticket_id(0), &ticket(0, theirs.len(), 5)).unwrap();
    (a, b)
}

fn run(a: &mut Node, b: &mut Node, count: usize) {
    drive(a, b, |a, _| a.done.len() >= count);
}

#[test]
fn bytes_go_both_ways_by_every_route() {
    const LEN: u64 = 1_000_000;
    let kinds = [shared, private];
    let routes = [Exposure::Source, Exposure::Local].into_iter().flat_map(|e| kinds.map(|kind| (kind, e)));
    for (ours, exposure) in routes {
        for segment in kinds {
            let (ours, theirs) = (ours(LEN + 10), segment(LEN + 20));
            let (mut a, mut b) = pair(&ours, exposure, &theirs);
            let bytes = pattern(LEN, 3);
            ours.write(5, &bytes).unwrap();
            a.shm.submit(path(0), &[op(1, Verb::Write, 0, 5, 11, LEN as u32)]).unwrap();
            run(&mut a, &mut b, 1);
            assert_eq!(a.take_done(), [completion(1, LEN as u32, Status::Done, 0)]);
            let stored = theirs.to_vec();
            assert_eq!(stored[..11], [0; 11]);
            assert!(stored[11..][..LEN as usize] == bytes);
            assert_eq!(stored[11 + LEN as usize..], [0; 9]);

            ours.write(0, &vec![0xee; LEN as usize + 10]).unwrap();
            a.shm.submit(path(0), &[op(2, Verb::Read, 0, 2, 11, LEN as u32)]).unwrap();
            run(&mut a, &mut b, 1);
            assert_eq!(a.take_done(), [completion(2, LEN as u32, Status::Done, 0)]);
            let got = ours.to_vec();
            assert!(got[2..][..LEN as usize] == bytes);
            assert!(got[..2].iter().chain(&got[2 + LEN as usize..]).all(|&guard| guard == 0xee));
        }
    }
}

#[test]
fn a_read_asks_nothing_of_the_owner() {
    let (ours, theirs) = (shared(4096), shared(4096));
    theirs.write(0, &pattern(4096, 1)).unwrap();
    let (mut a, mut b) = pair(&ours, Exposure::Local, &theirs);
    a.shm.submit(path(0), &[op(0, Verb::Read, 0, 0, 0, 4096)]).unwrap();
    run(&mut a, &mut b, 1);
    a.take_done();
    // The owner is not driven any more.
    for n in 1..1_000 {
        a.shm.submit(path(0), &[op(n, Verb::Read, 0, 0, 0, 4096)]).unwrap();
        a.turn();
        assert_eq!(a.take_done(), [completion(n, 4096, Status::Done, 0)]);
    }
    assert!(ours.to_vec() == pattern(4096, 1));
}

#[test]
fn the_owner_refuses_bad_tickets() {
    let (ours, theirs) = (shared(4096), shared(4096));
    ours.write(0, &[0xaa; 4096]).unwrap();
    let (mut a, mut b) = pair(&ours, Exposure::Source, &theirs);
    let good = ticket(64, 128, 5);
    let bad = [
        (1, springtide_core::ticket::Ticket { owner: springtide_core::id::Incarnation(1), ..good }, 1),
        (2, ticket(64, 127, 5), 2),
        (3, springtide_core::ticket::Ticket { serial: 6, ..good }, 3),
    ];
    for (n, ticket, code) in bad {
        a.shm.retire(ticket_id(0));
        a.shm.admit(ticket_id(0), &ticket).unwrap();
        a.shm.submit(path(0), &[op(n, Verb::Write, 0, 0, 64, 128)]).unwrap();
        run(&mut a, &mut b, 1);
        assert_eq!(a.take_done(), [completion(n, 0, Status::Refused, code)]);
    }
    a.shm.retire(ticket_id(0));
    a.shm.submit(path(0), &[op(9, Verb::Write, 0, 0, 64, 128)]).unwrap();
    run(&mut a, &mut b, 1);
    assert_eq!(a.take_done(), [completion(9, 0, Status::Refused, 0)]);
    assert_eq!(theirs.to_vec(), [0; 4096]);
}

#[test]
fn after_a_fence_nothing_posted_before_lands() {
    let (ours, theirs) = (shared(4096), shared(4096));
    ours.write(0, &[0xaa; 4096]).unwrap();
    let (mut a, mut b) = pair(&ours, Exposure::Source, &theirs);
    a.shm.submit(path(0), &[op(1, Verb::Write, 0, 0, 0, 100)]).unwrap();
    b.shm.fence(region(0), Extent::new(0, 4096).unwrap(), 6, 42).unwrap();
    assert_eq!(b.shm.event(), Some(Event::Fenced(42)));
    run(&mut a, &mut b, 1);
    assert_eq!(a.take_done(), [completion(1, 0, Status::Refused, 4)]);
    assert_eq!(theirs.to_vec(), [0; 4096]);
}

#[test]
fn a_fence_in_the_midst_of_a_write_ends_it() {
    const LEN: u64 = 2 << 20;
    for exposure in [Exposure::Source, Exposure::Local] {
        let (ours, theirs) = (shared(LEN), shared(LEN));
        ours.write(0, &vec![0xaa; LEN as usize]).unwrap();
        let (mut a, mut b) = pair(&ours, exposure, &theirs);
        a.shm.submit(path(0), &[op(1, Verb::Write, 0, 0, 0, LEN as u32)]).unwrap();
        a.turn();
        b.turn_with(Budget { ops: 2, bytes: 100_000 });
        let stored = |theirs: &Block| theirs.to_vec().iter().filter(|&&byte| byte == 0xaa).count();
        let before = stored(&theirs);
        assert!(before > 0 && before < LEN as usize);
        b.shm.fence(region(0), Extent::new(0, LEN).unwrap(), 6, 1).unwrap();
        run(&mut a, &mut b, 1);
        assert_eq!(a.take_done(), [completion(1, before as u32, Status::Short, 4)]);
        assert_eq!(stored(&theirs), before);
    }
}

#[test]
fn bounds_are_checked_before_anything_moves() {
    let (ours, theirs) = (shared(4096), shared(4096));
    let (mut a, _b) = pair(&ours, Exposure::Source, &theirs);
    let bad = [
        op(1, Verb::Write, 0, 4000, 0, 97),
        op(1, Verb::Read, 0, 0, 4000, 97),
        op(1, Verb::Read, 0, u64::MAX, 0, 2),
        op(1, Verb::Read, 0, 0, u64::MAX, 2),
        op(1, Verb::Read, 7, 0, 0, 1),
    ];
    for bad in bad {
        let good = op(0, Verb::Read, 0, 0, 0, 1);
        let error = SubmitError { accepted: 1, reason: Reason::BadRegion };
        assert_eq!(a.shm.submit(path(0), &[good, bad, good]), Err(error));
    }
    a.shm.forget(remote(0));
    let error = SubmitError { accepted: 0, reason: Reason::BadRegion };
    assert_eq!(a.shm.submit(path(0), &[op(2, Verb::Read, 0, 0, 0, 1)]), Err(error));
    let error = SubmitError { accepted: 0, reason: Reason::PathDown };
    assert_eq!(a.shm.submit(path(3), &[op(2, Verb::Read, 0, 0, 0, 1)]), Err(error));
}

#[test]
fn a_withdrawn_segment_is_neither_read_nor_written() {
    for segment in [shared, private] {
        let (ours, theirs) = (shared(4096), segment(4096));
        let (mut a, mut b) = pair(&ours, Exposure::Source, &theirs);
        a.shm.submit(path(0), &[op(0, Verb::Read, 0, 0, 0, 64)]).unwrap();
        run(&mut a, &mut b, 1);
        a.take_done();
        b.shm.withdraw(region(0));
        a.shm.submit(path(0), &[op(1, Verb::Read, 0, 0, 0, 64), op(2, Verb::Write, 0, 0, 0, 64)]).unwrap();
        run(&mut a, &mut b, 2);
        let mut done = a.take_done();
        done.sort_by_key(|completion| completion.id);
        assert_eq!(done, [completion(1, 0, Status::Refused, 5), completion(2, 0, Status::Refused, 5)]);
    }
}

#[test]
fn a_withdrawn_source_still_serves_what_was_submitted() {
    const LEN: u64 = 1 << 20;
    for turns in 0..5 {
        let (ours, theirs) = (shared(LEN), shared(LEN));
        ours.write(0, &pattern(LEN, 7)).unwrap();
        let (mut a, mut b) = pair(&ours, Exposure::Source, &theirs);
        a.shm.submit(path(0), &[op(1, Verb::Write, 0, 0, 0, LEN as u32)]).unwrap();
        for _ in 0..turns {
            b.turn_with(Budget { ops: 1, bytes: 100_000 });
        }
        a.shm.withdraw(region(0));
        run(&mut a, &mut b, 1);
        assert_eq!(a.take_done(), [completion(1, LEN as u32, Status::Done, 0)]);
        assert!(theirs.to_vec() == pattern(LEN, 7));
        assert_eq!(ours.shares(), 1);
        // The same id may mean other memory from now on.
        let other = shared(64);
        other.write(0, &[9; 64]).unwrap();
        a.shm.expose(region(0), &other, Exposure::Source).unwrap();
        a.shm.submit(path(0), &[op(2, Verb::Write, 0, 0, 0, 64)]).unwrap();
        run(&mut a, &mut b, 1);
        assert_eq!(a.take_done(), [completion(2, 64, Status::Done, 0)]);
        assert_eq!(theirs.to_vec()[..64], [9; 64]);
    }
}

#[test]
fn a_region_that_is_exposed_again_in_the_midst_of_a_write_is_another_one() {
    const LEN: u64 = 1 << 20;
    let (ours, theirs, other) = (shared(LEN), shared(LEN), shared(LEN));
    ours.write(0, &[1; LEN as usize]).unwrap();
    other.write(0, &[2; LEN as usize]).unwrap();
    let (mut a, mut b) = pair(&ours, Exposure::Source, &theirs);
    a.shm.submit(path(0), &[op(1, Verb::Write, 0, 0, 0, 1 << 19)]).unwrap();
    b.turn_with(Budget { ops: 1, bytes: 1_000 });
    a.shm.withdraw(region(0));
    a.shm.expose(region(0), &other, Exposure::Source).unwrap();
    a.shm.submit(path(0), &[op(2, Verb::Write, 0, 0, 1 << 19, 1 << 19)]).unwrap();
    run(&mut a, &mut b, 2);
    assert!(a.take_done().iter().all(|done| done.status == Status::Done));
    let (first, second) = (theirs.to_vec(), 1 << 19);
    assert!(first[..second].iter().all(|&byte| byte == 1) && first[second..].iter().all(|&byte| byte == 2));
}

#[test]
fn room_is_what_is_accepted_and_comes_back() {
    let (ours, theirs) = (shared(4096), shared(4096));
    let (mut a, mut b) = pair(&ours, Exposure::Source, &theirs);
    let room = a.shm.room(path(0));
    assert_eq!(room, a.shm.capabilities().depth as usize);
    let ops: Vec<_> = (0..room as u64 + 5).map(|n| op(n, Verb::Write, 0, 0, n, 8)).collect();
    let error = SubmitError { accepted: room, reason: Reason::Full };
    assert_eq!(a.shm.submit(path(0), &ops), Err(error));
    assert_eq!(a.shm.room(path(0)), 0);
    run(&mut a, &mut b, room);
    let mut ids: Vec<_> = a.take_done().iter().map(|completion| completion.id).collect();
    ids.sort();
    assert_eq!(ids, (0..room as u64).map(op_id).collect::<Vec<_>>());
    assert_eq!(a.shm.room(path(0)), room);
    assert_eq!(a.shm.room(path(1)), 0);
}

#[test]
fn closing_ends_every_op_at_once_and_nothing_lands_later() {
    for exposure in [Exposure::Source, Exposure::Local] {
        let (ours, theirs) = (shared(1 << 20), shared(1 << 20));
        ours.write(0, &[0xaa; 1 << 20]).unwrap();
        let (mut a, mut b) = pair(&ours, exposure, &theirs);
        let ops = [op(1, Verb::Write, 0, 0, 0, 1 << 20), op(2, Verb::Read, 0, 0, 0, 64)];
        a.shm.submit(path(0), &ops).unwrap();
        a.shm.close(path(0));
        a.turn();
        let mut done = a.take_done();
        done.sort_by_key(|completion| completion.id);
        assert_eq!(done, [completion(1, 0, Status::Flushed, 0), completion(2, 0, Status::Flushed, 0)]);
        assert!(a.events.contains(&Event::Down(path(0), DownReason::Closed)));
        for _ in 0..100 {
            b.turn();
        }
        assert!(theirs.to_vec().iter().all(|&byte| byte == 0));
        assert_eq!(a.shm.room(path(0)), 0);
    }
}

#[test]
fn cancelled_ops_end_once() {
    let (ours, theirs) = (shared(1 << 20), shared(1 << 20));
    let (mut a, mut b) = pair(&ours, Exposure::Local, &theirs);
    let ops = [op(1, Verb::Read, 0, 0, 0, 64), op(2, Verb::Write, 0, 0, 0, 1 << 20)];
    a.shm.submit(path(0), &ops).unwrap();
    a.shm.cancel(op_id(1));
    a.shm.cancel(op_id(77));
    a.turn();
    // Its first pieces are with the owner: it ends when they do.
    a.shm.cancel(op_id(2));
    run(&mut a, &mut b, 2);
    let mut done = a.take_done();
    done.sort_by_key(|completion| completion.id);
    assert_eq!(done[0], completion(1, 0, Status::Flushed, 0));
    assert_eq!((done[1].id, done[1].status), (op_id(2), Status::Flushed));
    assert!(done[1].bytes > 0 && done[1].bytes < 1 << 20);
    for _ in 0..100 {
        a.turn();
        b.turn();
    }
    assert_eq!(a.take_done(), []);
}

#[test]
fn a_dropped_owner_takes_its_paths_down() {
    let (ours, theirs) = (shared(1 << 20), shared(1 << 20));
    let (mut a, b) = pair(&ours, Exposure::Source, &theirs);
    a.shm.submit(path(0), &[op(1, Verb::Write, 0, 0, 0, 1 << 20)]).unwrap();
    let (address, description) = (b.address(), b.describe(region(0)));
    drop(b);
    let mut c = Node::new();
    c.shm.expose(region(0), &theirs, as_segment()).unwrap();
    drive(&mut a, &mut c, |a, _| a.events.contains(&Event::Down(path(0), DownReason::PeerGone)));
    run(&mut a, &mut c, 1);
    assert_eq!(a.take_done(), [completion(1, 0, Status::Flushed, 0)]);

    a.shm.open(a.now, path(1), &address).unwrap();
    drive(&mut a, &mut c, |a, _| a.events.contains(&Event::Down(path(1), DownReason::Unreachable)));
    // The next life of the same process: what was said about the last one does not hold.
    a.shm.open(a.now, path(2), &c.address()).unwrap();
    drive(&mut a, &mut c, |a, _| a.events.contains(&Event::Up(path(2))));
    assert_eq!(a.shm.import(path(2), remote(0), &description), Err(ControlError::Stale));
}

#[test]
fn strange_addresses_are_told_apart() {
    let mut a = Node::new();
    assert_eq!(a.shm.open(a.now, path(0), b"10.0.0.1:80"), Err(ControlError::Malformed));
    assert_eq!(a.shm.open(a.now, path(0), b""), Err(ControlError::Malformed));
    let mut elsewhere = Node::new().address();
    elsewhere[5] ^= 1;
    assert_eq!(a.shm.open(a.now, path(0), &elsewhere), Err(ControlError::Unreachable));
    assert_eq!(a.shm.import(path(0), remote(0), b"shmd"), Err(ControlError::Malformed));
}

#[test]
fn a_path_to_oneself_is_a_copy() {
    let (ours, theirs) = (private(1 << 20), private(1 << 20));
    ours.write(0, &pattern(1 << 20, 1)).unwrap();
    let mut a = Node::new();
    a.shm.expose(region(0), &theirs, as_segment()).unwrap();
    a.shm.expose(region(1), &ours, Exposure::Local).unwrap();
    a.shm.open(a.now, path(0), &a.address()).unwrap();
    a.turn();
    assert_eq!(a.events, [Event::Up(path(0))]);
    a.shm.import(path(0), remote(0), &a.describe(region(0))).unwrap();
    a.shm.admit(ticket_id(0), &ticket(0, 1 << 19, 5)).unwrap();
    let ops = [
        op(1, Verb::Write, 1, 0, 0, 1 << 19),
        op(2, Verb::Write, 1, 0, 1, 1 << 19),
        op(3, Verb::Read, 1, 1 << 19, 0, 1 << 19),
    ];
    a.shm.submit(path(0), &ops).unwrap();
    while a.done.len() < 3 {
        a.turn();
    }
    let half = 1 << 19;
    assert_eq!(
        a.take_done(),
        [
            completion(1, half, Status::Done, 0),
            completion(2, 0, Status::Refused, 2),
            completion(3, half, Status::Done, 0)
        ]
    );
    let expected = &pattern(1 << 20, 1)[..half as usize];
    assert!(theirs.to_vec()[..half as usize] == *expected);
    assert!(ours.to_vec()[half as usize..] == *expected);
    a.shm.withdraw(region(0));
    a.shm.submit(path(0), &[op(4, Verb::Read, 1, 0, 0, 8)]).unwrap();
    a.turn();
    assert_eq!(a.take_done(), [completion(4, 0, Status::Refused, 5)]);
}

#[test]
fn a_budget_is_kept() {
    const LEN: u64 = 4 << 20;
    let (ours, theirs) = (shared(LEN), shared(LEN));
    ours.write(0, &vec![0xaa; LEN as usize]).unwrap();
    let (mut a, mut b) = pair(&ours, Exposure::Source, &theirs);
    a.shm.submit(path(0), &[op(1, Verb::Write, 0, 0, 0, LEN as u32)]).unwrap();
    let mut turns = 0;
    while a.done.is_empty() {
        b.turn_with(Budget { ops: 10, bytes: 100_000 });
        a.turn();
        turns += 1;
    }
    assert!(turns >= LEN / 100_000, "{turns}");
}

#[test]
fn one_remote_more_shares_the_mapping() {
    let (ours, theirs) = (shared(4096), shared(4096));
    theirs.write(0, b"hello").unwrap();
    let (mut a, mut b) = pair(&ours, Exposure::Local, &theirs);
    a.shm.import(path(0), remote(1), &b.describe(region(0))).unwrap();
    a.shm.forget(remote(0));
    let read = springtide_transport::Op { remote: remote(1), ..op(1, Verb::Read, 0, 0, 0, 5) };
    a.shm.submit(path(0), &[read]).unwrap();
    run(&mut a, &mut b, 1);
    assert_eq!(a.take_done(), [completion(1, 5, Status::Done, 0)]);
    assert_eq!(ours.to_vec()[..5], *b"hello");
}

#[test]
fn whoever_sleeps_is_woken() {
    let (ours, theirs) = (shared(4096), shared(4096));
    let (mut a, mut b) = pair(&ours, Exposure::Source, &theirs);
    let readable = |node: &Node| {
        let fd = node.shm.wake_fd().unwrap();
        let mut fds = [rustix::event::PollFd::new(&fd, rustix::event::PollFlags::IN)];
        let at_once = rustix::event::Timespec { tv_sec: 0, tv_nsec: 0 };
        rustix::event::poll(&mut fds, Some(&at_once)).unwrap() == 1
    };
    let sleep = |node: &mut Node| {
        for _ in 0..100 {
            node.turn();
            if node.shm.arm() == Armed::Asleep && !readable(node) {
                return;
            }
        }
        panic!("it never comes to rest");
    };
    for n in 0..100 {
        sleep(&mut a);
        sleep(&mut b);
        sleep(&mut a);
        a.shm.submit(path(0), &[op(n, Verb::Write, 0, 0, 0, 8)]).unwrap();
        assert!(readable(&b), "the request rings");
        assert!(!readable(&a));
        b.turn();
        assert!(readable(&a), "the reply rings");
        a.turn();
        assert_eq!(a.take_done(), [completion(n, 8, Status::Done, 0)]);
    }
    a.shm.submit(path(0), &[op(200, Verb::Write, 0, 0, 0, 8)]).unwrap();
    assert_eq!(b.shm.arm(), Armed::Again, "a request that is there already is seen");
}

/// The owner withdraws a segment and uses its memory for something else while it is being read: what is done is whole.
#[test]
fn a_read_that_races_a_withdrawal_is_never_wrong() {
    const LEN: u64 = 64 << 10;
    const ROUNDS: u32 = 50;
    const TRASH: u8 = 0xff;
    for segment in [shared, private] {
        let (described, descriptions) = channel();
        let (reading, is_reading) = channel();
        let owner = move || {
            let mut node = Node::new();
            described.send(node.address()).unwrap();
            for round in 0..ROUNDS {
                let id = generation(round);
                let block = segment(LEN);
                block.write(0, &[round as u8 % 100; LEN as usize]).unwrap();
                node.shm.expose(id, &block, as_segment()).unwrap();
                described.send(node.describe(id)).unwrap();
                loop {
                    match is_reading.try_recv() {
                        Ok(()) => break,
                        Err(TryRecvError::Empty) => node.turn(),
                        Err(TryRecvError::Disconnected) => return,
                    }
                }
                node.shm.withdraw(id);
                block.write(0, &[TRASH; LEN as usize]).unwrap();
            }
            drop(described);
            // Stays until the reader has gone.
            while is_reading.try_recv() != Err(TryRecvError::Disconnected) {
                node.turn();
            }
        };
        let reader = move || {
            let (mut node, ours) = (Node::new(), shared(LEN));
            node.shm.expose(region(0), &ours, Exposure::Local).unwrap();
            node.shm.open(node.now, path(0), &descriptions.recv().unwrap()).unwrap();
            while !node.events.contains(&Event::Up(path(0))) {
                node.turn();
            }
            let mut whole = 0;
            for (round, description) in (0..).zip(descriptions) {
                node.shm.import(path(0), remote(0), &description).unwrap();
                for n in 0.. {
                    node.shm.submit(path(0), &[op(n, Verb::Read, 0, 0, 0, LEN as u32)]).unwrap();
                    while node.done.is_empty() {
                        node.turn();
                    }
                    if node.take_done()[0].status != Status::Done {
                        break;
                    }
                    let byte = round as u8 % 100;
                    assert!(ours.to_vec().iter().all(|&got| got == byte), "round {round}, read {n}");
                    whole += 1;
                    if n == 3 {
                        reading.send(()).unwrap();
                    }
                }
                node.shm.forget(remote(0));
            }
            assert!(whole >= 4 * ROUNDS);
        };
        std::thread::scope(|scope| {
            scope.spawn(owner);
            scope.spawn(reader);
        });
    }
}

/// Region 0 in its life number `round`.
fn generation(round: u32) -> springtide_core::id::RegionId {
    springtide_core::id::RegionId::from_bits(u64::from(round + 1) << 32).unwrap()
}
