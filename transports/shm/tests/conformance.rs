//! The contract's rules, held against two transports in this process: over shared memory, over private memory, and
//! with writes that go piece by piece.

use core::time::Duration;
use std::os::fd::{AsFd, BorrowedFd};

use rustix::event::{PollFd, PollFlags, Timespec};
use springtide_core::id::{OpId, PathId, RegionId, RemoteId, TicketId};
use springtide_core::range::Extent;
use springtide_core::ticket::Ticket;
use springtide_core::time::Instant;
use springtide_counting::{Counting, allocations};
use springtide_hal::Block;
use springtide_hal_host::memory::{Options, Sharing, allocate};
use springtide_transport::conformance::{Side, World};
use springtide_transport::{
    Armed, Budget, Capabilities, Completion, ControlError, Event, Exposure, Op, SubmitError, Transport,
};
use springtide_transport_shm::Shm;

#[global_allocator]
static COUNTING: Counting = Counting;

/// Shared memory whose owners may not load from their writers' memory: all writes go piece by piece.
struct Pieces(Shm);

impl Transport for Pieces {
    fn capabilities(&self) -> &Capabilities {
        self.0.capabilities()
    }
    fn expose(&mut self, region: RegionId, block: &Block, exposure: Exposure) -> Result<(), ControlError> {
        let exposure = if matches!(exposure, Exposure::Source) { Exposure::Local } else { exposure };
        self.0.expose(region, block, exposure)
    }
    fn withdraw(&mut self, region: RegionId) {
        self.0.withdraw(region);
    }
    fn describe(&self, region: RegionId, out: &mut Vec<u8>) -> Result<(), ControlError> {
        self.0.describe(region, out)
    }
    fn address(&self, out: &mut Vec<u8>) {
        self.0.address(out);
    }
    fn open(&mut self, now: Instant, path: PathId, address: &[u8]) -> Result<(), ControlError> {
        self.0.open(now, path, address)
    }
    fn import(&mut self, path: PathId, remote: RemoteId, description: &[u8]) -> Result<(), ControlError> {
        self.0.import(path, remote, description)
    }
    fn forget(&mut self, remote: RemoteId) {
        self.0.forget(remote);
    }
    fn admit(&mut self, id: TicketId, ticket: &Ticket) -> Result<(), ControlError> {
        self.0.admit(id, ticket)
    }
    fn retire(&mut self, id: TicketId) {
        self.0.retire(id);
    }
    fn fence(
        &mut self,
        region: RegionId,
        extent: Extent,
        below: u64,
        fence: u64,
    ) -> Result<(), ControlError> {
        self.0.fence(region, extent, below, fence)
    }
    fn close(&mut self, path: PathId) {
        self.0.close(path);
    }
    fn room(&self, path: PathId) -> usize {
        self.0.room(path)
    }
    fn submit(&mut self, path: PathId, ops: &[Op]) -> Result<(), SubmitError> {
        self.0.submit(path, ops)
    }
    fn cancel(&mut self, op: OpId) {
        self.0.cancel(op);
    }
    fn progress(&mut self, now: Instant, budget: Budget, done: &mut [Completion]) -> usize {
        self.0.progress(now, budget, done)
    }
    fn event(&mut self) -> Option<Event> {
        self.0.event()
    }
    fn wake_fd(&self) -> Option<BorrowedFd<'_>> {
        self.0.wake_fd()
    }
    fn arm(&mut self) -> Armed {
        self.0.arm()
    }
}

/// Two ends in this process, and a clock that goes when it is told.
struct Pair<T> {
    ends: [Option<T>; 2],
    make: fn() -> T,
    sharing: Sharing,
    now: Instant,
}

impl<T: Transport> Pair<T> {
    fn new(sharing: Sharing, make: fn() -> T) -> Self {
        Self { ends: [Some(make()), Some(make())], make, sharing, now: Instant::from_nanos(1) }
    }
}

fn shm() -> Shm {
    Shm::new().unwrap()
}

impl<T: Transport> World for Pair<T> {
    fn transport(&mut self, side: Side) -> Option<&mut dyn Transport> {
        self.ends[side as usize].as_mut().map(|end| end as &mut dyn Transport)
    }
    fn block(&mut self, len: u64) -> Block {
        allocate(len, Options { sharing: self.sharing, ..Options::default() }).unwrap().block
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
        self.ends[1] = Some((self.make)());
    }
    fn readable(&mut self, side: Side) -> bool {
        let Some(fd) = self.ends[side as usize].as_ref().and_then(Transport::wake_fd) else { return false };
        let at_once = Timespec { tv_sec: 0, tv_nsec: 0 };
        rustix::event::poll(&mut [PollFd::new(&fd.as_fd(), PollFlags::IN)], Some(&at_once)).unwrap() == 1
    }
    fn allocations(&self) -> Option<u64> {
        Some(allocations())
    }
}

mod shared {
    use super::*;
    springtide_transport::conformance_tests!(|| Pair::new(Sharing::Shared, shm));
}

mod private {
    use super::*;
    springtide_transport::conformance_tests!(|| Pair::new(Sharing::Private, shm));
}

mod pieces {
    use super::*;
    springtide_transport::conformance_tests!(|| Pair::new(Sharing::Shared, || Pieces(shm())));
}
