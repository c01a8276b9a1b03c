//! A simulated network as a conformance world, and an allocator that counts.
#![allow(dead_code, unreachable_pub, reason = "each test binary uses its part")]

use core::time::Duration;

use springtide_core::time::Instant;
use springtide_counting::{Counting, allocations};
use springtide_hal::Block;
use springtide_transport::Transport;
use springtide_transport::conformance::{Side, World};
use springtide_transport_sim::{Shape, SimNet, SimTransport};

#[global_allocator]
static COUNTING: Counting = Counting;

/// Turns an end into the transport that is tested.
pub type Wrap = Box<dyn Fn(SimTransport, Side) -> Box<dyn Transport>>;

/// Two ends of a simulated network, each seen through `wrap`.
pub struct SimWorld {
    net: SimNet,
    ends: [Option<Box<dyn Transport>>; 2],
    now: Instant,
    wrap: Wrap,
}

impl SimWorld {
    pub fn new(shape: Shape, wrap: Wrap) -> Self {
        let net = SimNet::new(shape);
        let ends =
            [Some(wrap(net.endpoint_at(0), Side::Initiator)), Some(wrap(net.endpoint_at(1), Side::Target))];
        Self { net, ends, now: Instant::from_nanos(1), wrap }
    }

    pub fn plain() -> Self {
        Self::new(Shape::default(), Box::new(|end, _| Box::new(end)))
    }
}

impl World for SimWorld {
    fn transport(&mut self, side: Side) -> Option<&mut dyn Transport> {
        match &mut self.ends[side as usize] {
            Some(end) => Some(end.as_mut()),
            None => None,
        }
    }
    fn block(&mut self, len: u64) -> Block {
        Block::from(vec![0; len as usize])
    }
    fn now(&self) -> Instant {
        self.now
    }
    fn pass(&mut self, time: Duration) {
        self.now += time;
    }
    fn kill(&mut self) {
        self.ends[1] = None;
    }
    fn restart(&mut self) {
        self.ends[1] = Some((self.wrap)(self.net.endpoint_at(1), Side::Target));
    }
    fn readable(&mut self, _side: Side) -> bool {
        false
    }
    fn allocations(&self) -> Option<u64> {
        Some(allocations())
    }
}
