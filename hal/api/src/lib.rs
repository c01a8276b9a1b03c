//! Memory and devices behind traits.
//!
//! A [`Block`] is memory that other threads, processes or devices may be reading or writing while we hold it. Its
//! bytes are therefore never handed out as `&[u8]`: they are copied in and out, or named by offset to a transport.

mod block;
mod heap;

pub use block::{Backing, Block, MemoryKind, OutOfBounds, Span};
