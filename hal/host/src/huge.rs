//! A global allocator that keeps large tables in huge pages, faulted in ahead of use.
//!
//! The core's tables grow by chunks of 64 to 512 KiB. In ordinary pages most of a random read of a large table is the
//! walk through the page tables; in huge ones it is not. But a huge page that is touched for the first time is cleared
//! then and there, and what the kernel does to find one can take milliseconds: too long for a command. So chunks come
//! from memory that was *made present before*, by a thread that does nothing else; a chunk that is asked for before that
//! thread got so far comes from the system like all other memory. No request ever waits for a huge page.
//!
//! ```no_run
//! use springtide_hal_host::huge::HugePages;
//!
//! #[global_allocator]
//! static MEMORY: HugePages = HugePages::new();
//!
//! fn main() -> std::io::Result<()> {
//!     std::thread::Builder::new().name("pages".into()).spawn(|| MEMORY.keep_ahead())?;
//!     // … drive the core …
//!     Ok(())
//! }
//! ```
//!
//! **Gain.** Look-ups of 10 M objects take two thirds of the time that they take in ordinary pages (`BENCHMARKS.md`).
//!
//! **Cost.** Requests of other sizes pay a comparison, chunks an uncontended lock. Nothing else happens before
//! [`START`] bytes of chunks are in use, or without the thread. From then on up to [`LEAST_AHEAD`], or a thirty-second of
//! what is in use if that is more, is present and not used yet; and what is freed is kept for the next chunk of its
//! size, not given back to the system. 64 GiB of address space are reserved, of which nothing counts before it is used,
//! except under `vm.overcommit_memory=2` or `ulimit -v`: where the system refuses, all stays as without. Do not combine
//! it with `mlockall(MCL_FUTURE)`, which would make all of it present.
//!
//! Where huge pages are off, chunks are made present in ordinary ones.

mod carver;

use core::alloc::{GlobalAlloc, Layout};
use core::fmt;
use core::ptr::{NonNull, null_mut};
use std::alloc::System;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

use rustix::io::Errno;
use rustix::mm::{Advice, MapFlags, ProtFlags};

use carver::{Carver, Class, Contents};

/// Bytes of chunks that a process has in use before it gets huge pages.
pub const START: usize = 8 << 20;
/// Bytes that are present ahead of use at least, once there are huge pages.
pub const LEAST_AHEAD: usize = 8 << 20;
/// The part of what is in use that is present ahead, if that is more.
const AHEAD: usize = 32;
/// Address space.
const RESERVED: usize = 64 << 30;
const HUGE_PAGE: usize = super::memory::HUGE_PAGE as usize;

/// The allocator; make it the `#[global_allocator]` of a program (see the [module](self)).
///
/// Memory that it got from the system is never given back, so it should be a static. Chunks lie on the NUMA node of the
/// thread that makes them present.
pub struct HugePages {
    state: Mutex<State>,
    /// More is wanted ahead.
    wanted: Condvar,
    /// Held by whoever makes pages present.
    tending: Mutex<()>,
}

#[derive(Debug)]
struct State {
    carver: Option<Carver>,
    /// Bytes of chunks that came from the system and are in use.
    elsewhere: usize,
    /// The system gave no address space.
    refused: bool,
    /// Somebody waits for `wanted`.
    waits: bool,
}

/// How much there is of what, in bytes.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Figures {
    /// Made present for chunks so far.
    pub present: usize,
    /// Of these, handed out at least once.
    pub carved: usize,
    /// Chunks in use that came from the system.
    pub elsewhere: usize,
}

impl HugePages {
    /// An allocator that has nothing yet.
    pub const fn new() -> Self {
        let state = State { carver: None, elsewhere: 0, refused: false, waits: false };
        Self { state: Mutex::new(state), wanted: Condvar::new(), tending: Mutex::new(()) }
    }

    /// Makes present what the next chunks will need, and gives back how many bytes that were. May take milliseconds a
    /// megabyte: call it where nobody waits, between commands or from a thread of its own.
    pub fn fault_ahead(&self) -> usize {
        let _tending = self.tending.lock().unwrap_or_else(PoisonError::into_inner);
        let mut made = 0;
        while let Some(page) = self.next_page() {
            if populate(page).is_err() {
                break;
            }
            if let Some(carver) = &mut self.lock().carver {
                carver.extend(HUGE_PAGE);
            }
            made += HUGE_PAGE;
        }
        made
    }

    /// [`fault_ahead`](Self::fault_ahead) whenever there is need, for ever: the work of a thread of its own, which sleeps
    /// otherwise.
    pub fn keep_ahead(&self) -> ! {
        loop {
            self.fault_ahead();
            let mut state = self.lock();
            state.waits = true;
            while state.waits {
                state = self.wanted.wait(state).unwrap_or_else(PoisonError::into_inner);
            }
        }
    }

    /// How much there is of what.
    pub fn figures(&self) -> Figures {
        let state = self.lock();
        let (present, carved) = state.carver.as_ref().map_or((0, 0), |it| (it.present(), it.carved()));
        Figures { present, carved, elsewhere: state.elsewhere }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The next page to make present, if more is wanted ahead. Reserves the address space when it is first needed.
    fn next_page(&self) -> Option<NonNull<u8>> {
        let mut state = self.lock();
        if state.carver.is_none() && state.is_hungry() {
            match reserve() {
                // SAFETY: the range is fresh, mapped for good and nobody else's; none of it counts as present yet.
                Ok(base) => state.carver = Some(unsafe { Carver::new(base, 0) }),
                Err(_) => state.refused = true,
            }
        }
        let carver = state.carver.as_ref()?;
        let wanted = carver.carved() + margin(carver.carved());
        let end = wanted.next_multiple_of(HUGE_PAGE).min(RESERVED);
        (carver.present() < end).then(|| carver.end())
    }

    /// A chunk for `layout`, if it is one and there is one.
    fn take(&self, layout: Layout) -> Option<(NonNull<u8>, Contents)> {
        let class = Class::of(layout)?;
        let mut state = self.lock();
        let taken = state.carver.as_mut().and_then(|carver| carver.take(class));
        if taken.is_none() {
            state.elsewhere += layout.size();
        }
        let wake = state.waits && state.is_hungry();
        state.waits &= !wake;
        drop(state);
        if wake {
            self.wanted.notify_one();
        }
        taken
    }

    /// Takes a chunk back; says whether it was one of ours.
    ///
    /// # Safety
    /// `start` was allocated by this allocator with this layout, and is in use by nobody.
    unsafe fn give(&self, start: NonNull<u8>, layout: Layout) -> bool {
        let Some(class) = Class::of(layout) else { return false };
        let mut state = self.lock();
        match &mut state.carver {
            Some(carver) if carver.owns(start) => {
                // SAFETY: what lies in the carver's range was taken there, in the class of its layout; nobody uses it.
                unsafe { carver.give(start, class) };
                true
            }
            _ => {
                state.elsewhere = state.elsewhere.saturating_sub(layout.size());
                false
            }
        }
    }
}

impl State {
    /// Whether too little is present ahead.
    const fn is_hungry(&self) -> bool {
        match &self.carver {
            Some(carver) => carver.present() - carver.carved() < margin(carver.carved()) / 2,
            None => self.elsewhere >= START && !self.refused,
        }
    }
}

/// What should be present ahead when so much is in use.
const fn margin(carved: usize) -> usize {
    let part = carved / AHEAD;
    if part > LEAST_AHEAD { part } else { LEAST_AHEAD }
}

impl Default for HugePages {
    fn default() -> Self {
        Self::new()
    }
}

impl fmt::Debug for HugePages {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HugePages").field("figures", &self.figures()).finish_non_exhaustive()
    }
}

// SAFETY: every request is answered by the system's allocator, or by the carver, which hands out disjoint ranges that
// fit the layout; and it is taken back by the one that gave it, which its address tells. No way through unwinds.
unsafe impl GlobalAlloc for HugePages {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        match self.take(layout) {
            Some((start, _)) => start.as_ptr(),
            // SAFETY: the caller keeps the system's rules, which are the same.
            None => unsafe { System.alloc(layout) },
        }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        match self.take(layout) {
            Some((start, Contents::Zeros)) => start.as_ptr(),
            Some((start, Contents::Any)) => {
                // SAFETY: the chunk is ours to hand out and at least as long as the layout.
                unsafe { start.write_bytes(0, layout.size()) };
                start.as_ptr()
            }
            // SAFETY: as in `alloc`.
            None => unsafe { System.alloc_zeroed(layout) },
        }
    }

    unsafe fn dealloc(&self, start: *mut u8, layout: Layout) {
        // SAFETY: the caller gives back what it got here, with its layout.
        let ours = NonNull::new(start).is_some_and(|start| unsafe { self.give(start, layout) });
        if !ours {
            // SAFETY: what is not ours came from the system, with this layout.
            unsafe { System.dealloc(start, layout) };
        }
    }

    unsafe fn realloc(&self, start: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        // SAFETY: the caller promised that the size, rounded up to the alignment, does not overflow.
        let new = unsafe { Layout::from_size_align_unchecked(size, layout.align()) };
        if Class::of(layout).is_none() && Class::of(new).is_none() {
            // SAFETY: neither is a chunk, so both are the system's.
            return unsafe { System.realloc(start, layout, size) };
        }
        // SAFETY: the caller promised that the size is not zero.
        let moved = unsafe { self.alloc(new) };
        if !moved.is_null() {
            // SAFETY: both are valid for the shorter of the two sizes, and the new one overlaps nothing.
            unsafe { start.copy_to_nonoverlapping(moved, size.min(layout.size())) };
            // SAFETY: the caller gives `start` up.
            unsafe { self.dealloc(start, layout) };
        }
        moved
    }
}

/// Address space for all chunks, that begins with a huge page.
fn reserve() -> Result<NonNull<u8>, Errno> {
    let (protection, flags) = (ProtFlags::READ | ProtFlags::WRITE, MapFlags::PRIVATE | MapFlags::NORESERVE);
    // SAFETY: a new anonymous mapping at an address that the kernel chooses disturbs nothing.
    let start = unsafe { rustix::mm::mmap_anonymous(null_mut(), RESERVED + HUGE_PAGE, protection, flags) }?;
    let start = start.cast::<u8>();
    // SAFETY: there is one huge page more than what is used from here on.
    let base = unsafe { start.add(start.align_offset(HUGE_PAGE)) };
    // SAFETY: the range lies in the mapping; the advice changes only what pages it will be made of. A system that has no
    // huge pages refuses it, and small ones do.
    let _ = unsafe { rustix::mm::madvise(base.cast(), RESERVED, Advice::LinuxHugepage) };
    NonNull::new(base).ok_or(Errno::NOMEM)
}

/// Makes one huge page at `start`, which nobody uses yet, present.
fn populate(start: NonNull<u8>) -> Result<(), Errno> {
    // SAFETY: the page lies in our mapping; nothing that it holds changes.
    match unsafe { rustix::mm::madvise(start.as_ptr().cast(), HUGE_PAGE, Advice::LinuxPopulateWrite) } {
        // Kernels before 5.14 do not know the advice.
        Err(Errno::INVAL) => {
            for at in (0..HUGE_PAGE).step_by(rustix::param::page_size()) {
                // SAFETY: `at` lies in the page.
                let small = unsafe { start.add(at) };
                // SAFETY: it is mapped for writing, holds zeros and is nobody's yet.
                unsafe { small.write_volatile(0) };
            }
            Ok(())
        }
        result => result,
    }
}

#[cfg(test)]
mod tests;
