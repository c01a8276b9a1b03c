//! Memory that others may touch.

use core::fmt;
use core::ptr::NonNull;
use std::os::fd::BorrowedFd;
use std::sync::Arc;

/// What kind of memory it is (S0B-093).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum MemoryKind {
    /// Ordinary memory of this process.
    Host,
    /// Host memory behind a file descriptor that another process can map.
    Shared,
}

/// Where a [`Block`]'s bytes come from.
///
/// # Safety
/// `base()` points to `len()` bytes that stay mapped, readable and writable at that address until the value is
/// dropped, whoever else touches them.
pub unsafe trait Backing: Send + Sync {
    /// The first byte.
    fn base(&self) -> NonNull<u8>;
    /// How many bytes.
    fn len(&self) -> u64;
    /// Whether there are none.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }
    /// What kind of memory it is.
    fn kind(&self) -> MemoryKind;
    /// A descriptor that another process can map, and the offset of the first byte in it.
    fn file(&self) -> Option<(BorrowedFd<'_>, u64)> {
        None
    }
}

/// Shared ownership of memory. Cloning is cheap; the memory is given back when the last clone goes.
#[derive(Clone)]
pub struct Block(Arc<dyn Backing>);

/// A copy would have left the block.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct OutOfBounds;

impl fmt::Display for OutOfBounds {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the range reaches outside the memory block")
    }
}

impl core::error::Error for OutOfBounds {}

impl Block {
    /// A block over `backing`.
    pub fn new(backing: Arc<dyn Backing>) -> Self {
        Self(backing)
    }

    /// How many bytes.
    pub fn len(&self) -> u64 {
        self.0.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// What kind of memory it is.
    pub fn kind(&self) -> MemoryKind {
        self.0.kind()
    }

    /// A descriptor that another process can map, and the offset of the first byte in it.
    pub fn file(&self) -> Option<(BorrowedFd<'_>, u64)> {
        self.0.file()
    }

    /// The address of the first byte. For system calls and devices; reading through it is the caller's affair.
    pub fn base(&self) -> NonNull<u8> {
        self.0.base()
    }

    /// How many clones of this block there are, this one among them: one means that nobody else uses the memory.
    pub fn shares(&self) -> usize {
        Arc::strong_count(&self.0)
    }

    /// The bytes `at .. at + len`, checked.
    pub fn span(&self, at: u64, len: u64) -> Result<Span<'_>, OutOfBounds> {
        match at.checked_add(len) {
            Some(end) if end <= self.len() => Ok(Span { block: self, at, len }),
            _ => Err(OutOfBounds),
        }
    }

    /// Copies `bytes` to `at`. Bytes that somebody else stores at the same time may win, in any mixture.
    pub fn write(&self, at: u64, bytes: &[u8]) -> Result<(), OutOfBounds> {
        let span = self.span(at, bytes.len() as u64)?;
        // SAFETY: the span lies inside the block, which outlives this call; `bytes` is ours and does not overlap it,
        // since nobody can hold a `&[u8]` into a block.
        unsafe { core::ptr::copy_nonoverlapping(bytes.as_ptr(), span.address().as_ptr(), bytes.len()) };
        Ok(())
    }

    /// Copies the bytes from `at` on into `bytes`.
    pub fn read(&self, at: u64, bytes: &mut [u8]) -> Result<(), OutOfBounds> {
        let span = self.span(at, bytes.len() as u64)?;
        // SAFETY: as in `write`, with source and destination exchanged.
        unsafe { core::ptr::copy_nonoverlapping(span.address().as_ptr(), bytes.as_mut_ptr(), bytes.len()) };
        Ok(())
    }

    /// A copy of all bytes. Allocates.
    pub fn to_vec(&self) -> Vec<u8> {
        let mut bytes = vec![0; self.len() as usize];
        // SAFETY: `bytes` is as long as the block, ours alone, and the block outlives this call.
        unsafe { core::ptr::copy_nonoverlapping(self.base().as_ptr(), bytes.as_mut_ptr(), bytes.len()) };
        bytes
    }
}

impl fmt::Debug for Block {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Block({} bytes, {:?})", self.len(), self.kind())
    }
}

/// A checked piece of a block.
#[derive(Clone, Copy, Debug)]
pub struct Span<'a> {
    block: &'a Block,
    at: u64,
    len: u64,
}

impl<'a> Span<'a> {
    /// The block it is a piece of.
    pub const fn block(self) -> &'a Block {
        self.block
    }

    /// Where it starts in its block.
    pub const fn at(self) -> u64 {
        self.at
    }

    /// How many bytes.
    pub const fn len(self) -> u64 {
        self.len
    }

    /// Whether there are none.
    pub const fn is_empty(self) -> bool {
        self.len == 0
    }

    /// The address of the first byte.
    pub fn address(self) -> NonNull<u8> {
        // SAFETY: `at` is at most the block's length (checked by `Block::span`), so the result is inside or one past
        // the end of the same allocation.
        unsafe { self.block.base().add(self.at as usize) }
    }

    /// What is left after the first `bytes` bytes.
    pub const fn skip(self, bytes: u64) -> Self {
        let bytes = if bytes < self.len { bytes } else { self.len };
        Self { block: self.block, at: self.at + bytes, len: self.len - bytes }
    }

    /// At most the first `bytes` bytes.
    pub const fn take(self, bytes: u64) -> Self {
        Self { block: self.block, at: self.at, len: if bytes < self.len { bytes } else { self.len } }
    }
}
