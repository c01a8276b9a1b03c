//! A process that runs out of descriptors. Alone in its file, since the limit is the whole process's.

mod support;

use core::time::Duration;
use std::fs::File;
use std::net::TcpStream;
use std::os::fd::AsRawFd;

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use springtide_transport::{Armed, Transport};
use support::Node;

#[test]
fn out_of_descriptors_waits_and_does_not_spin() {
    let mut node = Node::new(2, 64);
    (0..3).for_each(|_| node.step());
    let client = TcpStream::connect(node.transport.local_address().unwrap()).unwrap();
    client.set_nonblocking(true).unwrap();
    let next = File::open("/dev/null").unwrap().as_raw_fd();
    let limit = getrlimit(Resource::Nofile);
    setrlimit(Resource::Nofile, Rlimit { current: Some(next as u64), ..limit }).unwrap();
    for _ in 0..10 {
        node.step();
    }
    assert!(matches!(node.transport.arm(), Armed::Poll(after) if after <= Duration::from_secs(1)));
    setrlimit(Resource::Nofile, limit).unwrap();
    node.pass(Duration::from_secs(1));
    (0..3).for_each(|_| node.step());
    // Accepted now, and so under the deadline for a hello, after which the client sees the end.
    node.pass(Duration::from_secs(6));
    node.step();
    assert_eq!(client.peek(&mut [0]).unwrap(), 0);
    assert_eq!(node.transport.arm(), Armed::Asleep);
}
