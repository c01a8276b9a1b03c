//! Both sides on threads of their own, each asleep whenever `arm` lets it: nobody sleeps through anything.

mod support;

use core::sync::atomic::{AtomicBool, Ordering};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use springtide_core::rng::Rng;
use springtide_transport::{Armed, Budget, Op, Status, Transport, Verb};
use support::{Node, connect, until};

const LEN: usize = 8 << 20;
const BUDGET: Budget = Budget { ops: 64, bytes: 1 << 20 };

/// One turn, then, unless it ended ops, sleep until there is something to do. Nobody sleeps longer than the watchdog allows.
fn turn_and_sleep(node: &mut Node) {
    if node.turn(BUDGET) == 0 && node.transport.arm() != Armed::Again {
        let fd = node.transport.wake_fd().unwrap();
        let watchdog = Timespec { tv_sec: 20, tv_nsec: 0 };
        let woken = poll(&mut [PollFd::new(&fd, PollFlags::IN)], Some(&watchdog)).unwrap();
        assert_eq!(woken, 1, "{:?} slept through something", node.owner);
    }
}

/// Reads into the upper half, writes from the lower half; sizes from nothing to a megabyte.
fn random(node: &mut Node, rng: &mut Rng) -> Op {
    let len = match rng.below(3) {
        0 => rng.below(100),
        1 => rng.below(9_000),
        _ => rng.below(1 << 20),
    };
    let (at, half) = (rng.below((LEN / 2) as u64 - len), (LEN / 2) as u64);
    let (verb, base) = if rng.below(2) == 0 { (Verb::Read, half) } else { (Verb::Write, 0) };
    node.op(verb, 0, base + at, base + at, len as u32)
}

fn work(node: &mut Node, seed: u64) {
    let (mut rng, path) = (Rng::new(seed), support::id(0));
    let (mut posted, mut flying) = (0, 0);
    while posted < 2_000 || flying > 0 {
        // Mostly one at a time, sometimes many, so that both sides keep falling asleep.
        let burst = if rng.below(20) == 0 { 60 } else { 1 };
        while posted < 2_000 && flying < burst {
            let op = random(node, &mut rng);
            node.transport.submit(path, &[op]).unwrap();
            (posted, flying) = (posted + 1, flying + 1);
        }
        let before = node.done.len();
        turn_and_sleep(node);
        flying -= node.done.len() - before;
    }
    assert!(node.done.iter().all(|done| done.status == Status::Done));
}

fn serve_and_work(lanes: usize) {
    let with = |who| {
        let mut config = support::config(who);
        config.lanes = lanes;
        Node::with(config, LEN)
    };
    let (mut a, mut b) = (with(1), with(2));
    connect(&mut a, &mut b, 0);
    let stop = AtomicBool::new(false);
    let (mut b, mut a) = std::thread::scope(|scope| {
        let server = scope.spawn(|| {
            while !stop.load(Ordering::Acquire) {
                turn_and_sleep(&mut b);
            }
            b
        });
        work(&mut a, 5);
        stop.store(true, Ordering::Release);
        // One more op, to wake the server.
        let (last, path) = (a.op(Verb::Read, 0, 0, 0, 1), support::id(0));
        a.transport.submit(path, &[last]).unwrap();
        a.step();
        (server.join().unwrap(), a)
    });
    until(&mut [&mut a, &mut b], |nodes| nodes[0].done.len() == 2_001);
}

#[test]
fn over_one_connection() {
    serve_and_work(1);
}

#[test]
fn over_three_connections() {
    serve_and_work(3);
}
