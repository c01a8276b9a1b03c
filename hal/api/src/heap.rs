//! Memory of the process's own allocator as a [`Block`], for callers that hold their bytes in a `Vec`.

use core::ptr::NonNull;
use std::sync::Arc;

use crate::block::{Backing, Block, MemoryKind};

/// Bytes of the allocator, held as a raw pointer so that no reference to them lives while others store.
struct Heap(NonNull<[u8]>);

// SAFETY: the box was turned into a raw pointer and is only freed by `drop`.
unsafe impl Backing for Heap {
    fn base(&self) -> NonNull<u8> {
        self.0.cast()
    }
    fn len(&self) -> u64 {
        self.0.len() as u64
    }
    fn kind(&self) -> MemoryKind {
        MemoryKind::Host
    }
}

// SAFETY: it owns its bytes, as `Box<[u8]>` does, and hands out no references to them.
unsafe impl Send for Heap {}
// SAFETY: as for `Send`; all access goes through copies of raw memory.
unsafe impl Sync for Heap {}

impl Drop for Heap {
    fn drop(&mut self) {
        // SAFETY: the pointer came from `Box::into_raw`, and nothing else frees it.
        drop(unsafe { Box::from_raw(self.0.as_ptr()) });
    }
}

impl From<Box<[u8]>> for Block {
    /// Takes the bytes over without copying them.
    fn from(bytes: Box<[u8]>) -> Self {
        let raw = Box::into_raw(bytes);
        Self::new(Arc::new(Heap(NonNull::new(raw).expect("a box is never null"))))
    }
}

impl From<Vec<u8>> for Block {
    /// Takes the bytes over; copies only if the vector has spare capacity.
    fn from(bytes: Vec<u8>) -> Self {
        Self::from(bytes.into_boxed_slice())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_vector_becomes_a_block_and_comes_back() {
        let block = Block::from(vec![1, 2, 3, 4]);
        assert_eq!((block.len(), block.kind()), (4, MemoryKind::Host));
        block.write(1, &[9, 8]).unwrap();
        assert_eq!(block.to_vec(), [1, 9, 8, 4]);
        assert!(block.write(3, &[0, 0]).is_err());
    }

    #[test]
    fn no_bytes_are_a_block_too() {
        let block = Block::from(Vec::new());
        assert!(block.is_empty());
        assert!(block.span(0, 0).is_ok());
        assert_eq!(block.to_vec(), []);
    }

    #[test]
    fn the_last_clone_frees_it() {
        let block = Block::from(vec![7; 100]);
        let other = block.clone();
        drop(block);
        assert_eq!(other.to_vec(), [7; 100]);
    }
}
