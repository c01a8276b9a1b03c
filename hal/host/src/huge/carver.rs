//! Cuts chunks from the front of a range; chunks that come back are used again by their size.

use core::alloc::Layout;
use core::ptr::NonNull;

/// The shortest request that is a chunk.
const LEAST: usize = 64 << 10;
/// The longest.
const MOST: usize = 512 << 10;
/// All chunks begin at a multiple of this from the base, and all lengths are multiples.
const STEP: usize = LEAST / 4;
/// The lengths: powers of two, and three more between each and the next.
const LENGTHS: [usize; 13] = {
    let mut lengths = [LEAST; 13];
    let mut class = 1;
    while class < lengths.len() {
        lengths[class] = lengths[class - 1] + (STEP << ((class - 1) / 4));
        class += 1;
    }
    lengths
};
const _: () = assert!(LENGTHS[LENGTHS.len() - 1] == MOST);

/// A length of chunks, by number.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Class(u8);

impl Class {
    /// The class that a request belongs to; `None` for what is no chunk.
    #[inline]
    pub(super) fn of(layout: Layout) -> Option<Self> {
        if !(LEAST..=MOST).contains(&layout.size()) || layout.align() > STEP {
            return None;
        }
        LENGTHS.iter().position(|&len| layout.size() <= len).map(|class| Self(class as u8))
    }

    /// Its length in bytes.
    pub(super) const fn len(self) -> usize {
        LENGTHS[self.0 as usize]
    }
}

/// What a chunk holds.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Contents {
    /// It was never used.
    Zeros,
    Any,
}

/// What a chunk holds while it is free: the next free one of its class.
type Link = Option<NonNull<u8>>;

/// Chunks of one range, of which the front is present.
#[derive(Debug)]
pub(super) struct Carver {
    base: NonNull<u8>,
    present: usize,
    carved: usize,
    free: [Link; LENGTHS.len()],
}

// SAFETY: it owns its range, and is changed only through `&mut`.
unsafe impl Send for Carver {}

impl Carver {
    /// A carver of the range that begins at `base` and is present for `present` bytes.
    ///
    /// # Safety
    /// `base` is a multiple of [`STEP`]. The range stays mapped, readable and writable, and belongs to the carver, as far
    /// as it is present; so does what [`extend`](Self::extend) adds. It holds zeros.
    pub(super) const unsafe fn new(base: NonNull<u8>, present: usize) -> Self {
        Self { base, present, carved: 0, free: [None; LENGTHS.len()] }
    }

    /// So many more bytes are present.
    pub(super) const fn extend(&mut self, bytes: usize) {
        self.present += bytes;
    }

    /// Bytes that are present.
    pub(super) const fn present(&self) -> usize {
        self.present
    }

    /// Of these, bytes that were handed out at least once.
    pub(super) const fn carved(&self) -> usize {
        self.carved
    }

    /// Where the range ends that is present.
    pub(super) const fn end(&self) -> NonNull<u8> {
        // SAFETY: the range is mapped so far.
        unsafe { self.base.add(self.present) }
    }

    /// Whether `start` is that of a chunk from here.
    pub(super) fn owns(&self, start: NonNull<u8>) -> bool {
        start.addr().get().checked_sub(self.base.addr().get()).is_some_and(|at| at < self.carved)
    }

    /// A chunk of `class`, if one is free or present.
    pub(super) fn take(&mut self, class: Class) -> Option<(NonNull<u8>, Contents)> {
        let free = &mut self.free[class.0 as usize];
        if let Some(start) = *free {
            // SAFETY: a free chunk is nobody's, and begins with the link that `give` wrote.
            *free = unsafe { start.cast::<Link>().read() };
            return Some((start, Contents::Any));
        }
        let end = self.carved.checked_add(class.len()).filter(|&end| end <= self.present)?;
        // SAFETY: the range is present beyond this point.
        let start = unsafe { self.base.add(self.carved) };
        self.carved = end;
        Some((start, Contents::Zeros))
    }

    /// Takes a chunk back.
    ///
    /// # Safety
    /// `start` came from [`take`](Self::take) with this class, was not given back since, and is in use by nobody.
    pub(super) const unsafe fn give(&mut self, start: NonNull<u8>, class: Class) {
        // SAFETY: the chunk is nobody's, longer than a link, and begins at a multiple of `STEP`.
        unsafe { start.cast::<Link>().write(self.free[class.0 as usize]) };
        self.free[class.0 as usize] = Some(start);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::alloc::{alloc_zeroed, dealloc};
    use std::collections::BTreeMap;

    use proptest::prelude::*;

    const RANGE: usize = 4 << 20;

    /// A carver of ordinary memory.
    struct Range(NonNull<u8>, Carver);

    impl Range {
        const LAYOUT: Layout = match Layout::from_size_align(RANGE, STEP) {
            Ok(layout) => layout,
            Err(_) => unreachable!(),
        };

        fn new(present: usize) -> Self {
            // SAFETY: the layout is not empty.
            let base = NonNull::new(unsafe { alloc_zeroed(Self::LAYOUT) }).unwrap();
            // SAFETY: the range is fresh, zero, and lives as long as the carver.
            Self(base, unsafe { Carver::new(base, present) })
        }
    }

    impl Drop for Range {
        fn drop(&mut self) {
            // SAFETY: it was allocated with this layout.
            unsafe { dealloc(self.0.as_ptr(), Self::LAYOUT) };
        }
    }

    /// A chunk that is out.
    #[derive(Clone, Copy)]
    struct Chunk(NonNull<u8>, Class);

    impl Chunk {
        fn last(self) -> NonNull<u8> {
            // SAFETY: the chunk is so long.
            unsafe { self.0.add(self.1.len() - 1) }
        }

        /// Its first and its last byte.
        fn ends(self) -> [u8; 2] {
            // SAFETY: the chunk is out, so its bytes are there and initialised.
            [self.0, self.last()].map(|at| unsafe { at.read() })
        }

        fn mark(self, byte: u8) {
            for at in [self.0, self.last()] {
                // SAFETY: the chunk is out, and used by nobody else.
                unsafe { at.write(byte) };
            }
        }
    }

    fn class(size: usize) -> Option<Class> {
        Class::of(Layout::from_size_align(size, 64).unwrap())
    }

    #[test]
    fn lengths_hold_their_requests() {
        for size in [LEAST, LEAST + 1, 96 << 10, 100_000, 256 << 10, MOST - 1, MOST] {
            let len = class(size).unwrap().len();
            assert!(len >= size && len <= size + size / 4 && len.is_multiple_of(STEP), "{size}: {len}");
        }
        assert_eq!((class(LEAST - 1), class(MOST + 1)), (None, None));
        assert_eq!(Class::of(Layout::from_size_align(LEAST, 2 * STEP).unwrap()), None);
    }

    #[test]
    fn hands_out_what_is_present_and_no_more() {
        let mut range = Range::new(LEAST);
        let least = class(LEAST).unwrap();
        let (first, contents) = range.1.take(least).unwrap();
        assert_eq!((contents, range.1.take(least)), (Contents::Zeros, None));
        assert!(range.1.owns(first) && !range.1.owns(range.1.end()));
        range.1.extend(LEAST);
        assert!(range.1.take(least).is_some());
        assert_eq!((range.1.carved(), range.1.present()), (2 * LEAST, 2 * LEAST));
        // SAFETY: the chunk was taken above, and is not used.
        unsafe { range.1.give(first, least) };
        assert_eq!(range.1.take(class(MOST).unwrap()), None);
        assert_eq!(range.1.take(least), Some((first, Contents::Any)));
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(if cfg!(miri) { 2 } else { 64 }))]

        /// Against a list of what is out: chunks are aligned, disjoint, inside, and zero as long as they say so.
        #[test]
        fn chunks_never_overlap(steps in prop::collection::vec((0..12_u32, LEAST..=MOST), 1..100)) {
            let mut range = Range::new(RANGE);
            let mut out: BTreeMap<usize, (Chunk, u8)> = BTreeMap::new();
            for (mark, (step, size)) in steps.into_iter().enumerate() {
                let class = class(size).unwrap();
                if let (0..5, Some((_, (chunk, mark)))) = (step, out.pop_first()) {
                    prop_assert_eq!(chunk.ends(), [mark; 2]);
                    // SAFETY: the chunk is out; it is given back once.
                    unsafe { range.1.give(chunk.0, chunk.1) };
                    continue;
                }
                let Some((start, contents)) = range.1.take(class) else { continue };
                let (at, chunk) = (start.addr().get() - range.0.addr().get(), Chunk(start, class));
                prop_assert!(at.is_multiple_of(STEP) && at + class.len() <= RANGE && range.1.owns(start));
                let before = out.range(..at).next_back();
                prop_assert!(before.is_none_or(|(&other, (chunk, _))| other + chunk.1.len() <= at));
                prop_assert!(out.range(at..).next().is_none_or(|(&other, _)| at + class.len() <= other));
                prop_assert!(contents == Contents::Any || chunk.ends() == [0; 2]);
                chunk.mark(mark as u8);
                out.insert(at, (chunk, mark as u8));
            }
        }
    }
}
