//! TCP over loopback keeps the contract, with one connection a path and with several.

use core::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use springtide_core::id::Incarnation;
use springtide_core::time::Instant;
use springtide_counting::{Counting, allocations};
use springtide_hal::Block;
use springtide_transport::Transport;
use springtide_transport::conformance::{Side, World, run_all};
use springtide_transport_tcp::{Config, TcpTransport};

#[global_allocator]
static COUNTING: Counting = Counting;

/// The suite's names for its processes.
const TARGET: Incarnation = Incarnation(1);
const RESTARTED: Incarnation = Incarnation(2);
const INITIATOR: Incarnation = Incarnation(9);

/// Two transports that meet over loopback, and a clock that only the suite moves.
struct Loopback {
    ends: [Option<TcpTransport>; 2],
    lanes: usize,
    port: u16,
    now: Instant,
}

impl Loopback {
    fn new(lanes: usize) -> Self {
        let target = end(TARGET, 0, lanes);
        let port = target.local_address().unwrap().port();
        let ends = [Some(end(INITIATOR, 0, lanes)), Some(target)];
        Self { ends, lanes, port, now: Instant::from_nanos(1) }
    }

    fn plain() -> Self {
        Self::new(1)
    }
}

fn end(owner: Incarnation, port: u16, lanes: usize) -> TcpTransport {
    let mut config = Config::new(owner);
    config.listen = Some(([127, 0, 0, 1], port).into());
    config.lanes = lanes;
    TcpTransport::new(config).unwrap()
}

impl World for Loopback {
    fn transport(&mut self, side: Side) -> Option<&mut dyn Transport> {
        self.ends[side as usize].as_mut().map(|end| end as &mut dyn Transport)
    }
    fn block(&mut self, len: u64) -> Block {
        Block::from(vec![0; len as usize])
    }
    fn now(&self) -> Instant {
        self.now
    }
    fn pass(&mut self, time: Duration) {
        self.now += time;
        std::thread::yield_now();
    }
    fn kill(&mut self) {
        self.ends[1] = None;
    }
    fn restart(&mut self) {
        self.ends[1] = Some(end(RESTARTED, self.port, self.lanes));
    }
    fn readable(&mut self, side: Side) -> bool {
        let Some(fd) = self.ends[side as usize].as_ref().and_then(|end| end.wake_fd()) else { return false };
        let now = Timespec { tv_sec: 0, tv_nsec: 0 };
        poll(&mut [PollFd::new(&fd, PollFlags::IN)], Some(&now)).unwrap() > 0
    }
    fn allocations(&self) -> Option<u64> {
        Some(allocations())
    }
}

springtide_transport::conformance_tests!(Loopback::plain);

#[test]
fn several_connections_a_path_keep_them_too() {
    let mut factory = || -> Box<dyn World> { Box::new(Loopback::new(3)) };
    assert_eq!(run_all(&mut factory), []);
}
