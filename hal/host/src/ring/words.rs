//! Where a board's words are: in shared memory, or, so that loom can try all orders of what [`super`] does with them, in
//! a table of loom's own.

#[cfg(not(loom))]
pub(super) use core::sync::atomic::{AtomicU64, Ordering, fence};
#[cfg(loom)]
pub(super) use loom::sync::atomic::{AtomicU64, Ordering, fence};

#[cfg(loom)]
pub(super) use table::{Own, Theirs, pair};

#[cfg(not(loom))]
pub(super) use memory::{Own, Theirs};

#[cfg(not(loom))]
mod memory {
    use springtide_hal::Block;

    use super::AtomicU64;
    use crate::map::View;

    /// The words of our own board.
    #[derive(Debug)]
    pub(in super::super) struct Own(pub(in super::super) Block);

    impl Own {
        pub(in super::super) fn word(&self, index: usize) -> &AtomicU64 {
            let span = self.0.span(index as u64 * 8, 8).expect("words lie inside the shape");
            // SAFETY: the word lies in our block, which lives as long as `self`, is aligned (the block starts at a
            // page), and is only ever stored to atomically, by this process.
            unsafe { AtomicU64::from_ptr(span.address().as_ptr().cast()) }
        }
    }

    /// The words of a peer's board.
    #[derive(Debug)]
    pub(in super::super) struct Theirs(pub(in super::super) View);

    impl Theirs {
        pub(in super::super) fn word(&self, index: usize) -> &AtomicU64 {
            self.0.word(index).expect("the view was checked to hold the shape")
        }
    }
}

#[cfg(loom)]
mod table {
    use std::sync::Arc;

    use super::AtomicU64;

    /// The words of our own board.
    #[derive(Debug)]
    pub(in super::super) struct Own(Arc<[AtomicU64]>);

    impl Own {
        pub(in super::super) fn word(&self, index: usize) -> &AtomicU64 {
            &self.0[index]
        }
    }

    /// The words of a peer's board.
    #[derive(Debug)]
    pub(in super::super) struct Theirs(Arc<[AtomicU64]>);

    impl Theirs {
        pub(in super::super) fn word(&self, index: usize) -> &AtomicU64 {
            &self.0[index]
        }
    }

    /// Both sides' view of `words` fresh words.
    pub(in super::super) fn pair(words: usize) -> (Own, Theirs) {
        let words: Arc<[AtomicU64]> = (0..words).map(|_| AtomicU64::new(0)).collect();
        (Own(Arc::clone(&words)), Theirs(words))
    }
}
