//! The transfer engine without I/O: batches, slices, paths, health, selection.

mod op;

pub use op::{Completion, Op, Status, Verb};
