//! What goes in and out of the engine.

use core::time::Duration;

use super::{Outcome, Verb};
use crate::id::{BatchId, OpId, PathId, RegionId, TargetId, TicketId};
use crate::time::Instant;

/// One movement of bytes between our memory and a target's, of any length.
#[derive(Clone, Copy, Debug)]
pub struct Transfer {
    /// Which way.
    pub verb: Verb,
    /// Our memory.
    pub local: RegionId,
    /// The first byte in our memory.
    pub at: u64,
    /// The peer's segment.
    pub target: TargetId,
    /// The first byte in the peer's segment.
    pub to: u64,
    /// The write permission; `None` for reads. A write without one is not tried twice.
    pub ticket: Option<TicketId>,
    /// How many bytes.
    pub len: u64,
}

/// What the lane must do now.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum Next {
    /// This batch has ended. Look at its transfers, then [`Engine::release`](super::Engine::release) it.
    Batch(BatchId, Outcome),
    /// This path has work: call [`Engine::take_ops`](super::Engine::take_ops) with the transport's room. Said once for each change, so a lane
    /// may as well call it for all its paths and ignore this.
    Take(PathId),
    /// Ask this path's transport to cancel this op.
    Cancel(PathId, OpId),
    /// Open this path again under the same id, and import the memory of its targets again under the same remote ids.
    /// Answer with [`Engine::handle_path`](super::Engine::handle_path).
    Reopen(PathId),
    /// Close this path; report its completions and then [`PathState::Down`].
    Close(PathId),
    /// Nothing to do before this moment, or before something happens.
    Wait(Option<Instant>),
}

/// What a transport said about a path.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum PathState {
    /// It can be used.
    Up,
    /// It is gone; the transport completes its ops.
    Down,
}

/// Why ops were not posted.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Reject {
    /// No room.
    Full,
    /// The path is not up.
    PathDown,
    /// This path cannot reach the first op's memory; another one may.
    BadRegion,
}

/// How a path is doing.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum PathHealth {
    /// Being opened.
    Opening,
    /// In use.
    Up,
    /// Up, but it failed too often: on trial with one op at a time.
    Suspect,
    /// Being closed.
    Closing,
    /// Waiting to be opened again.
    Down,
}

/// Figures of one path, since it was added.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct PathStats {
    /// How it is doing.
    pub health: PathHealth,
    /// Bytes that moved.
    pub bytes: u64,
    /// Ops that were done.
    pub ops: u64,
    /// Ops that ended otherwise.
    pub errors: u64,
    /// Ops in flight.
    pub flying: u32,
    /// Bytes in flight.
    pub outstanding: u64,
    /// Measured latency of one op.
    pub latency: Duration,
    /// Measured throughput, in bytes per second.
    pub bandwidth: u64,
}
