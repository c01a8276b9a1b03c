//! Bytes between transports over loopback.

mod support;

use springtide_transport::{Status, Transport, Verb};
use support::{Node, connect, run};

#[test]
fn reads_and_writes_of_every_size_move_their_bytes() {
    let (mut a, mut b) = (Node::new(1, 1 << 20), Node::new(2, 1 << 20));
    let path = connect(&mut a, &mut b, 0);
    let (ours, theirs) = (a.bytes(0, 1 << 20), b.bytes(0, 1 << 20));
    let mut at = 0;
    for len in [0, 1, 24, 63, 64, 4_095, 4_096, 9_000, 65_536, 300_001] {
        let half = 1 << 19;
        let ops = [a.op(Verb::Read, 0, at, at, len), a.op(Verb::Write, 0, half + at, half + at, len)];
        assert_eq!(run(&mut a, &mut b, path, &ops), [Status::Done; 2], "{len}");
        let (low, high) = (at as usize, (half + at) as usize);
        assert!(a.bytes(at, len as usize) == theirs[low..low + len as usize], "read of {len}");
        assert!(b.bytes(half + at, len as usize) == ours[high..high + len as usize], "write of {len}");
        at += u64::from(len);
    }
    let (low, end) = (at as usize, 1 << 19);
    assert!(a.bytes(at, end - low) == ours[low..end], "nothing behind the reads was touched");
    assert_eq!(a.transport.room(path), 256);
}
