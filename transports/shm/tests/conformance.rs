//! The contract's rules, held against two transports in this process: over shared memory, over private memory, and
//! with writes that go piece by piece.

use core::alloc::{GlobalAlloc, Layout};
use core::cell::Cell;
use core::time::Duration;
use std::alloc::System;
use std::os::fd::AsFd;

use rustix::event::{PollFd, PollFlags, Timespec};
use springtide_core::time::Instant;
use springtide_hal::Block;
use springtide_hal_host::memory::{Options, Sharing, allocate};
use springtide_transport::Transport;
use springtide_transport::conformance::{Side, World};
use springtide_transport_shm::Shm;

thread_local! {
    static ALLOCATIONS: Cell<u64> = const { Cell::new(0) };
}

/// Counts the allocations of each thread.
struct Counting;

// SAFETY: every call goes to the system's allocator unchanged; counting touches a constant-initialised cell only.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        let _ = ALLOCATIONS.try_with(|count| count.set(count.get() + 1));
        // SAFETY: the caller keeps the contract of `GlobalAlloc`.
        unsafe { System.alloc(layout) }
    }
    unsafe fn dealloc(&self, at: *mut u8, layout: Layout) {
        // SAFETY: the caller keeps the contract of `GlobalAlloc`.
        unsafe { System.dealloc(at, layout) }
    }
}

#[global_allocator]
static COUNTING: Counting = Counting;

/// Two ends in this process, and a clock that goes when it is told.
struct Pair {
    ends: [Option<Shm>; 2],
    sharing: Sharing,
    now: Instant,
}

impl Pair {
    fn new(sharing: Sharing) -> Self {
        let ends = [Some(Shm::new().unwrap()), Some(Shm::new().unwrap())];
        Self { ends, sharing, now: Instant::from_nanos(1) }
    }
}

impl World for Pair {
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
        self.ends[1] = Some(Shm::new().unwrap());
    }
    fn readable(&mut self, side: Side) -> bool {
        let Some(fd) = self.ends[side as usize].as_ref().and_then(Transport::wake_fd) else { return false };
        let at_once = Timespec { tv_sec: 0, tv_nsec: 0 };
        rustix::event::poll(&mut [PollFd::new(&fd.as_fd(), PollFlags::IN)], Some(&at_once)).unwrap() == 1
    }
    fn allocations(&self) -> Option<u64> {
        Some(ALLOCATIONS.with(Cell::get))
    }
}

mod shared {
    use super::*;
    springtide_transport::conformance_tests!(|| Pair::new(Sharing::Shared));
}

mod private {
    use super::*;
    springtide_transport::conformance_tests!(|| Pair::new(Sharing::Private));
}
