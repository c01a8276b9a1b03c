//! Batches, their transfers, the flows that transfers to one target form, and the slices that are cut from them.

use alloc::collections::VecDeque;
use alloc::vec::Vec;
use core::num::NonZeroU32;

use super::{Failure, Outcome, Quiet, Transfer, TransferStatus};
use crate::id::{BatchId, Id, OpId, PathId, RemoteId, TargetId};
use crate::time::Instant;

pub(super) const NONE: u32 = u32::MAX;

/// Transfers submitted together.
#[derive(Debug)]
pub(super) struct Batch {
    pub(super) work: Vec<Work>,
    pub(super) phase: Phase,
    pub(super) keep: Keep,
    /// Transfers that have not ended.
    pub(super) pending: u32,
    /// Ops that a transport has.
    pub(super) flying: u32,
    /// Lost reads, whose memory is held until their path is closed.
    pub(super) parked: u32,
    /// Lost writes.
    pub(super) lost: u32,
    pub(super) first: Option<Failure>,
    /// The first of its flows.
    pub(super) flows: Option<FlowId>,
    pub(super) deadline: Instant,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Phase {
    /// At work.
    Open,
    /// Given up at this moment; its ops are being cancelled, then their paths closed.
    Cancelling(Instant),
    /// As `Cancelling`, and paths that did not move since were closed.
    Closing,
    /// Reported, or about to be.
    Ended,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Keep {
    /// Until the caller releases it.
    Caller,
    /// It was released before it ended.
    Nobody,
}

impl Batch {
    pub(super) const fn quiet(&self) -> Quiet {
        if self.flying == 0 && self.parked == 0 && self.lost == 0 { Quiet::Yes } else { Quiet::No }
    }

    pub(super) const fn outcome(&self) -> Outcome {
        match self.first {
            None => Outcome::Done,
            Some(first) => Outcome::Failed { first, quiet: self.quiet() },
        }
    }

    /// Whether nothing is left to wait for.
    pub(super) const fn is_over(&self) -> bool {
        self.pending == 0 && self.flying == 0 && self.parked == 0
    }
}

/// One transfer, and how far it is.
#[derive(Clone, Copy, Debug)]
pub(super) struct Work {
    pub(super) transfer: Transfer,
    /// Bytes that slices were cut for.
    pub(super) cut: u64,
    /// Bytes that are not done.
    pub(super) left: u64,
    pub(super) status: TransferStatus,
    /// The next transfer of the same flow.
    pub(super) next: u32,
}

impl Work {
    pub(super) const fn is_pending(&self) -> bool {
        matches!(self.status, TransferStatus::Pending)
    }
}

/// Names a flow; a stale one finds nothing.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct FlowId(u32, NonZeroU32);

impl Id for FlowId {
    fn new(index: u32, generation: NonZeroU32) -> Self {
        Self(index, generation)
    }
    fn index(self) -> usize {
        self.0 as usize
    }
    fn generation(self) -> NonZeroU32 {
        self.1
    }
}

/// What one batch wants of one target: the unit that is treated fairly.
#[derive(Debug)]
pub(super) struct Flow {
    pub(super) batch: BatchId,
    pub(super) target: TargetId,
    /// The transfers that slices are still to be cut from.
    pub(super) head: u32,
    pub(super) tail: u32,
    /// The first slice that waits to be tried again.
    pub(super) retry: Option<OpId>,
    /// Bytes to cut or to try again.
    pub(super) left: u64,
    /// Bytes taken since its turn began.
    pub(super) taken: u32,
    /// Whether it stands in its target's ring.
    pub(super) queued: bool,
    /// The next flow of the same batch.
    pub(super) sibling: Option<FlowId>,
}

/// A piece of a transfer that fits one op.
#[derive(Clone, Copy, Debug)]
pub(super) struct Slice {
    pub(super) batch: BatchId,
    pub(super) flow: FlowId,
    pub(super) work: u32,
    pub(super) len: u32,
    pub(super) offset: u64,
    /// How often it was tried.
    pub(super) tries: u8,
    pub(super) stage: Stage,
    /// The path that it is on, or was on last.
    pub(super) path: PathId,
    /// When it was handed out, and how many bytes were before it then, its own among them.
    pub(super) posted: Instant,
    pub(super) ahead: u64,
    /// The next slice that waits.
    pub(super) next: Option<OpId>,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Stage {
    /// Handed out.
    Flying,
    /// Handed out, and to be cancelled.
    Recalled,
    /// To be tried again, on another path if there is one.
    Waiting,
    /// Not taken by its path, which is not to blame.
    Returned,
    /// A lost read: its memory is not safe before its path is closed.
    Parked,
}

impl Stage {
    pub(super) const fn is_out(self) -> bool {
        matches!(self, Self::Flying | Self::Recalled)
    }
}

/// A peer's segment.
#[derive(Debug, Default)]
pub(super) struct Target {
    pub(super) links: Vec<Link>,
    /// Flows with something to cut, in turn. Stale ones are dropped when met.
    pub(super) ring: VecDeque<FlowId>,
    /// How many in the ring are known to be stale.
    pub(super) stale: usize,
    /// How many flows there are to it.
    pub(super) flows: u32,
    /// The flow that was made last: the next transfer of the same batch joins it.
    pub(super) last: Option<FlowId>,
}

/// One way to a target.
#[derive(Clone, Copy, Debug)]
pub(super) struct Link {
    pub(super) path: PathId,
    pub(super) remote: RemoteId,
    /// Whether the target stands in the path's ring.
    pub(super) queued: bool,
}

impl Target {
    pub(super) fn link(&self, path: PathId) -> Option<usize> {
        self.links.iter().position(|link| link.path == path)
    }
}
