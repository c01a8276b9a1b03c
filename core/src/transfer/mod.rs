//! The transfer engine without I/O: batches, slices, paths, health, retry, fail-over and selection.
//!
//! One engine serves one lane. The lane tells it which *paths* there are (a connection to one peer over one
//! transport) and which *targets* (a peer's segment, reachable over one or more paths), submits batches of
//! [`Transfer`]s, and then obeys [`Next`]: it takes ops for a path and posts them, reports completions, and opens or
//! closes paths when asked. Nothing is posted before the transport has room, so moving work to another path is free.
//!
//! The lane's loop, in words: until [`Engine::poll`] answers [`Next::Wait`], do what it says; on [`Next::Take`] call
//! [`Engine::take_ops`] with the transport's room, submit what it wrote, and hand what was not accepted to
//! [`Engine::handle_refused`]; give every completion to [`Engine::handle_completions`] and every path event to
//! [`Engine::handle_path`]; call [`Engine::handle_timeout`] when the moment of the last `Wait` has come.

mod batch;
mod config;
mod due;
mod end;
mod engine;
mod estimate;
mod op;
mod outcome;
mod path;
mod take;
#[cfg(test)]
mod tests;
mod timers;
mod topology;
mod types;

pub use config::{Config, PathShape};
pub use engine::Engine;
pub use op::{Completion, Op, Status, Verb};
pub use outcome::{Failure, Outcome, Quiet, SubmitError, TransferStatus};
pub use types::{Next, PathHealth, PathState, PathStats, Reject, Transfer};
