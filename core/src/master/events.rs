//! What the control machine and a shard tell each other. A shard in another thread would hear the same.

use crate::id::{MemberId, SegmentId};
use crate::range::Extent;
use crate::space::Grant;
use crate::time::Instant;

/// From the control machine to a shard.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum ToShard {
    /// A segment is in the pool.
    Opened { segment: SegmentId, owner: MemberId },
    /// Its owner is silent, or answers again.
    Reach { segment: SegmentId, reach: Reach },
    /// It is out of the pool: its replicas are gone (S0A-044, S0B-039).
    Gone { segment: SegmentId },
    /// The owner has fenced what this drain asked for.
    Fenced { number: u64 },
}

/// From a shard to the control machine.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum ToControl {
    /// Nobody reads or writes these bytes any more.
    Released(Grant),
    /// Somebody may still write these: ask the owner to fence them.
    Fence { number: u64, segment: SegmentId, extent: Extent },
    /// The answer no longer matters: the release time-out passed, or the bytes are gone.
    FenceOver { number: u64, segment: SegmentId },
}

/// Whether a segment's owner answers.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Reach {
    Answers,
    Silent,
}

/// A moment at which something is due, earliest first; none is later than all.
pub(super) fn earliest(due: impl IntoIterator<Item = Instant>) -> Option<Instant> {
    due.into_iter().min().filter(|&due| due != Instant::NEVER)
}
