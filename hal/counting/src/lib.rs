//! An allocator that counts, for tests of what must not allocate.
//!
//! A test program names it as its allocator; [`allocations`] then says how often the calling thread has asked for memory.
//! It stands beside the crates of `hal/` because an allocator is unsafe code. Nothing but tests depends on it.
//!
//! ```
//! use springtide_counting::{Counting, allocations, during};
//!
//! #[global_allocator]
//! static COUNTING: Counting = Counting;
//!
//! let mut numbers = Vec::with_capacity(2);
//! assert_eq!(during(|| numbers.extend([1, 2])), 0);
//! assert_eq!(during(|| numbers.push(3)), 1);
//! assert!(allocations() >= 2);
//! ```

use core::alloc::{GlobalAlloc, Layout};
use core::cell::Cell;
use std::alloc::System;

thread_local! {
    static ALLOCATIONS: Cell<u64> = const { Cell::new(0) };
}

/// The system's allocator; counts how often each thread asks it for memory, new or longer.
#[derive(Clone, Copy, Debug, Default)]
pub struct Counting;

/// A thread that is ending has no count any more; nobody asks for it either.
fn count() {
    let _ = ALLOCATIONS.try_with(|count| count.set(count.get() + 1));
}

// SAFETY: every call goes to the system's allocator unchanged; counting touches a constant-initialised cell only.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        count();
        // SAFETY: the caller keeps the contract of `GlobalAlloc`.
        unsafe { System.alloc(layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        count();
        // SAFETY: the caller keeps the contract of `GlobalAlloc`.
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn realloc(&self, at: *mut u8, layout: Layout, len: usize) -> *mut u8 {
        count();
        // SAFETY: the caller keeps the contract of `GlobalAlloc`.
        unsafe { System.realloc(at, layout, len) }
    }

    unsafe fn dealloc(&self, at: *mut u8, layout: Layout) {
        // SAFETY: the caller keeps the contract of `GlobalAlloc`.
        unsafe { System.dealloc(at, layout) }
    }
}

/// How often this thread has asked for memory since it began. Always 0 unless [`Counting`] is the program's allocator.
pub fn allocations() -> u64 {
    ALLOCATIONS.with(Cell::get)
}

/// How often this thread asks for memory while `work` runs.
pub fn during(work: impl FnOnce()) -> u64 {
    let before = allocations();
    work();
    allocations() - before
}
