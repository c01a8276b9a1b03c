//! What a program without std brings itself.

use core::alloc::{GlobalAlloc, Layout};
use core::cell::UnsafeCell;
use core::ffi::c_int;
use core::panic::PanicInfo;
use core::ptr;
use core::sync::atomic::{AtomicUsize, Ordering};

const ARENA: usize = 4 << 20;

/// Hands out an arena from its start, and takes nothing back: enough for a program that ends.
#[repr(C, align(4096))]
struct Bump {
    bytes: UnsafeCell<[u8; ARENA]>,
    used: AtomicUsize,
}

// SAFETY: `bytes` is only reached through ranges that `alloc` gave out, each of them once.
unsafe impl Sync for Bump {}

#[global_allocator]
static HEAP: Bump = Bump { bytes: UnsafeCell::new([0; ARENA]), used: AtomicUsize::new(0) };

// SAFETY: the atomic update gives every caller a range of its own, inside the arena and aligned as asked; alignments
// above the arena's own are refused.
unsafe impl GlobalAlloc for Bump {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        let place = |used: usize| {
            let start = used.next_multiple_of(layout.align());
            start.checked_add(layout.size()).filter(|&end| end <= ARENA).map(|end| (start, end))
        };
        if layout.align() > align_of::<Self>() {
            return ptr::null_mut();
        }
        let taken = self.used.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |used| Some(place(used)?.1));
        match taken.ok().and_then(place) {
            Some((start, _)) => self.bytes.get().cast::<u8>().wrapping_add(start),
            None => ptr::null_mut(),
        }
    }

    unsafe fn dealloc(&self, _: *mut u8, _: Layout) {}
}

#[link(name = "c")]
unsafe extern "C" {
    safe fn abort() -> !;
}

#[panic_handler]
fn panic(_: &PanicInfo<'_>) -> ! {
    abort()
}

// The ready-made `alloc` names this in its unwind tables; with `panic = "abort"` nothing calls it.
// SAFETY: without std nobody else defines it.
#[unsafe(no_mangle)]
extern "C" fn rust_eh_personality() {}

// SAFETY: the C start-up code calls `main` once; nothing else here has this name.
#[unsafe(no_mangle)]
extern "C" fn main() -> c_int {
    crate::run()
}
