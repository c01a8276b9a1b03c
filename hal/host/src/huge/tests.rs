use super::*;
use core::sync::atomic::{AtomicBool, Ordering};
use std::sync::Barrier;

const CHUNK: Layout = match Layout::from_size_align(256 << 10, 128) {
    Ok(layout) => layout,
    Err(_) => unreachable!(),
};

/// Allocated, and freed when dropped.
struct Chunk<'a>(&'a HugePages, *mut u8, Layout);

// SAFETY: it is bytes that nobody else uses.
unsafe impl Send for Chunk<'_> {}

impl<'a> Chunk<'a> {
    fn new(pages: &'a HugePages, layout: Layout) -> Self {
        // SAFETY: the layout is not empty.
        Self(pages, unsafe { pages.alloc(layout) }, layout)
    }

    fn bytes(&mut self) -> &mut [u8] {
        // SAFETY: the bytes are allocated, and were written before they are looked at.
        unsafe { core::slice::from_raw_parts_mut(self.1, self.2.size()) }
    }

    fn fill(&mut self, byte: u8) {
        // SAFETY: the bytes are allocated.
        unsafe { self.1.write_bytes(byte, self.2.size()) };
    }

    fn is_ours(&self) -> bool {
        let state = self.0.lock();
        state.carver.as_ref().is_some_and(|carver| carver.owns(NonNull::new(self.1).unwrap()))
    }
}

impl Drop for Chunk<'_> {
    fn drop(&mut self) {
        // SAFETY: it was allocated with this layout.
        unsafe { self.0.dealloc(self.1, self.2) };
    }
}

/// An allocator that has huge pages, and the chunks that it took to get there.
fn begun(pages: &HugePages) -> Vec<Chunk<'_>> {
    let first: Vec<_> = (0..START / CHUNK.size()).map(|_| Chunk::new(pages, CHUNK)).collect();
    assert!(pages.fault_ahead() >= LEAST_AHEAD);
    first
}

#[test]
fn small_processes_get_nothing() {
    let pages = HugePages::new();
    let chunks: Vec<_> = (1..START / CHUNK.size()).map(|_| Chunk::new(&pages, CHUNK)).collect();
    assert_eq!(pages.fault_ahead(), 0);
    assert_eq!(pages.figures(), Figures { elsewhere: START - CHUNK.size(), ..Figures::default() });
    drop(chunks);
    assert_eq!(pages.figures(), Figures::default());
}

#[test]
fn chunks_come_from_what_is_present() {
    let pages = HugePages::new();
    let first = begun(&pages);
    assert!(first.iter().all(|chunk| !chunk.is_ours()));
    let mut ours: Vec<_> = (0..LEAST_AHEAD / CHUNK.size()).map(|_| Chunk::new(&pages, CHUNK)).collect();
    assert!(ours.iter().all(|chunk| chunk.is_ours() && chunk.1.addr().is_multiple_of(128)));
    for (mark, chunk) in ours.iter_mut().enumerate() {
        chunk.fill(mark as u8);
    }
    assert!(ours.iter_mut().zip(0..).all(|(chunk, mark)| chunk.bytes().iter().all(|&byte| byte == mark)));
    // Nothing waits for a page: what is not there comes from the system.
    assert!(!Chunk::new(&pages, CHUNK).is_ours());
    assert!(pages.fault_ahead() > 0);
    assert!(Chunk::new(&pages, CHUNK).is_ours());
    let before = pages.figures();
    drop((first, ours));
    let again: Vec<_> = (0..LEAST_AHEAD / CHUNK.size()).map(|_| Chunk::new(&pages, CHUNK)).collect();
    assert!(again.iter().all(Chunk::is_ours));
    assert_eq!(pages.figures(), Figures { elsewhere: 0, ..before });
}

#[test]
fn a_chunk_that_should_be_zero_is() {
    let pages = HugePages::new();
    let _first = begun(&pages);
    Chunk::new(&pages, CHUNK).fill(7);
    for _ in 0..2 {
        // SAFETY: the layout is not empty.
        let mut chunk = Chunk(&pages, unsafe { pages.alloc_zeroed(CHUNK) }, CHUNK);
        assert!(chunk.is_ours() && chunk.bytes().iter().all(|&byte| byte == 0));
        chunk.fill(7);
    }
}

#[test]
fn growing_keeps_what_is_there() {
    let pages = HugePages::new();
    let _first = begun(&pages);
    let mut chunk = Chunk::new(&pages, Layout::array::<u8>(10).unwrap());
    chunk.fill(1);
    for size in [20, 64 << 10, 65 << 10, 512 << 10, 4 << 20, 8 << 20, 100 << 10, 30] {
        let kept = size.min(chunk.2.size());
        // SAFETY: it was allocated with this layout, and the size is not zero.
        chunk.1 = unsafe { pages.realloc(chunk.1, chunk.2, size) };
        chunk.2 = Layout::array::<u8>(size).unwrap();
        assert_eq!(chunk.is_ours(), Class::of(chunk.2).is_some());
        // SAFETY: so much was there before.
        let old = unsafe { core::slice::from_raw_parts(chunk.1, kept) };
        assert!(old.iter().all(|&byte| byte == 1));
        chunk.fill(1);
    }
}

#[test]
fn threads_get_chunks_of_their_own() {
    let (pages, done, start) = (HugePages::new(), AtomicBool::new(false), Barrier::new(4));
    std::thread::scope(|scope| {
        let workers: Vec<_> = (0..3_u8)
            .map(|mark| {
                let (pages, start) = (&pages, &start);
                scope.spawn(move || {
                    start.wait();
                    let mut held = Vec::new();
                    for round in 0..400_usize {
                        let size = (64 << 10) + (round * 37 % 100) * 1_024;
                        let mut chunk = Chunk::new(pages, Layout::array::<u8>(size).unwrap());
                        chunk.fill(mark);
                        held.push(chunk);
                        if held.len() > 60 {
                            let mut chunk = held.swap_remove(round * 13 % 60);
                            assert!(chunk.bytes().iter().all(|&byte| byte == mark));
                        }
                    }
                    assert!(held.iter_mut().all(|chunk| chunk.bytes().iter().all(|&byte| byte == mark)));
                })
            })
            .collect();
        let (pages, done) = (&pages, &done);
        let tender = scope.spawn(move || {
            while !done.load(Ordering::Acquire) {
                pages.fault_ahead();
                std::thread::yield_now();
            }
        });
        start.wait();
        workers.into_iter().for_each(|worker| worker.join().unwrap());
        done.store(true, Ordering::Release);
        tender.join().unwrap();
    });
    let figures = pages.figures();
    assert!(figures.carved > 0 && figures.elsewhere == 0, "{figures:?}");
}

#[test]
fn a_thread_keeps_ahead_by_itself() {
    static PAGES: HugePages = HugePages::new();
    // It waits for more to do when the process ends.
    std::thread::spawn(|| PAGES.keep_ahead());
    let mut chunks = Vec::new();
    while PAGES.figures().carved < 2 * LEAST_AHEAD {
        assert!(chunks.len() < 100_000, "nothing was made present");
        if PAGES.figures().present > PAGES.figures().carved || PAGES.figures().elsewhere < START {
            chunks.push(Chunk::new(&PAGES, CHUNK));
        } else {
            std::thread::yield_now();
        }
    }
    assert!(chunks.iter().filter(|chunk| chunk.is_ours()).count() >= 2 * LEAST_AHEAD / CHUNK.size());
}
