//! What goes in through the master's doors, and what comes out.

use core::time::Duration;

use crate::checksum::Checksum;
use crate::id::{Incarnation, MemberId, ObjectId, SegmentId};
use crate::members::ClientStatus;
use crate::range::Extent;
use crate::space::{AllocatorKind, Visibility};
use crate::ticket::Ticket;
use crate::time::Instant;

pub use crate::members::{Beat, Duty, Member, MemberInfo, Registered};
pub use crate::space::MAX_REPLICAS;

/// Memory that a member lends (S0A-049).
#[derive(Clone, Copy, Debug, Default)]
pub struct SegmentSpec<'a> {
    /// What its owner and people call it: unique among the owner's segments.
    pub name: &'a str,
    /// How many bytes.
    pub len: u64,
    /// How its bytes are given out.
    pub allocator: AllocatorKind,
    /// Whether anybody may still be reading it.
    pub past: Past,
}

/// Whether a segment's bytes were served before it was mounted.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Past {
    /// Fresh memory: it is used at once.
    #[default]
    Fresh,
    /// An earlier master may have granted leases on it: nothing is granted in it for one longest lease; if its owner
    /// knows no fences, for the release time-out.
    Served,
}

/// What a writer wants of its object (S3A-102, S3A-103).
#[derive(Clone, Copy, Debug)]
pub struct PutOptions<'a> {
    /// How many replicas, on distinct segments, best effort. Default 1; at most [`MAX_REPLICAS`].
    pub replicas: u32,
    /// Segments to try first, in this order. Those that are unknown or hidden are passed over.
    pub preferred: &'a [SegmentId],
    /// Whether it may be evicted.
    pub pin: Pin,
    /// Objects of one group of a tenant are evicted together, best effort.
    pub group: Option<&'a str>,
    /// Whether room for block sums is needed behind the value.
    pub sums: Sums,
}

/// Whether an object may be evicted.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Pin {
    /// Like all others.
    #[default]
    None,
    /// Only when nothing else is left, for so long after the put or the last read; the master's default if open
    /// (S0A-078).
    Soft(Option<Duration>),
    /// Never (S3A-102).
    Hard,
}

/// Whether a value longer than a block has block sums behind it ([`crate::checksum::trailer_len`]).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Sums {
    /// There is room for them.
    #[default]
    Blocks,
    /// There is none: the object ends with [`Checksum::None`] if it is longer than a block.
    None,
}

impl Default for PutOptions<'_> {
    fn default() -> Self {
        Self { replicas: 1, preferred: &[], pin: Pin::None, group: None, sums: Sums::Blocks }
    }
}

/// A put that may now write, or an extent granted ahead.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Started {
    /// What the end, abort or publication names.
    pub object: ObjectId,
    /// Where to write: at least one, at most as many as were asked for.
    pub replicas: heapless::Vec<Placement, MAX_REPLICAS>,
    /// The put is given up this long after it began; the writer counts from before it asked, less drift.
    pub ttl: Duration,
}

/// Bytes to write, and the permission to do so.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Placement {
    /// Which segment.
    pub segment: SegmentId,
    /// Which bytes: the value, with block sums behind it; never empty, also for an empty value.
    pub extent: Extent,
    /// The permission; it names the owner.
    pub ticket: Ticket,
}

/// What a writer wrote.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Written<'a> {
    /// What its bytes sum to.
    pub checksum: Checksum,
    /// Segments whose replica it failed to write: those replicas are dropped.
    pub failed: &'a [SegmentId],
}

impl Written<'_> {
    /// All replicas are written, and sum to `checksum`.
    pub const fn all(checksum: Checksum) -> Self {
        Self { checksum, failed: &[] }
    }
}

/// Whether all of a writer's operations have completed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Quiet {
    /// They have: nothing of it can still land.
    Yes,
    /// Not known: the owner is asked before the bytes are used again.
    Unknown,
}

/// Where a replica is (S0A-180, S0B-003, S0B-096).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Location {
    /// Which segment.
    pub segment: SegmentId,
    /// Which bytes: the value, and what stands behind it.
    pub extent: Extent,
    /// Whose memory.
    pub owner: MemberId,
    /// Whether it can be read now.
    pub ready: Ready,
}

/// Whether a replica can be read.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Ready {
    /// Yes.
    Yes,
    /// It is still being written.
    Writing,
    /// Its owner misses its heartbeats.
    Silent,
}

/// Replicas of one object.
pub type Locations = heapless::Vec<Location, MAX_REPLICAS>;

/// An object that may be read for the length of its lease (S0A-084).
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Found {
    /// Its number, until it is removed.
    pub object: ObjectId,
    /// The value's length.
    pub len: u64,
    /// The checksum of the value.
    pub checksum: Checksum,
    /// How long it stays; the reader counts from before it asked, less drift.
    pub lease: Duration,
    /// Its readable replicas: at least one, all of them [`Ready::Yes`]. Not those whose memory is gone (S0B-006).
    pub replicas: Locations,
}

/// What commands are announced to [`Master::warm`](super::Master::warm), by what they read; each reads what those above
/// it do.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Ahead {
    /// Probes that change nothing; starts of puts.
    Look,
    /// Gets, and probes that renew the lease.
    Read,
    /// Removals.
    Remove,
}

/// Whether asking counts as using.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Probe {
    /// It changes nothing.
    #[default]
    Plain,
    /// It renews the lease, as Mooncake does.
    RenewLease,
}

/// Whether a key is there.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Existence {
    /// It can be read.
    Present,
    /// It is not there.
    Absent,
    /// Somebody is writing it.
    Writing,
    /// It is there, but the owners of all its replicas miss their heartbeats.
    Silent,
}

/// What is known of an object.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Stat {
    /// Its number.
    pub object: ObjectId,
    /// The value's length.
    pub len: u64,
    /// The checksum of the value; none while it is written.
    pub checksum: Checksum,
    /// Who wrote it.
    pub writer: MemberId,
    /// When the last lease on it ends; in the past if nobody has one.
    pub leased_until: Instant,
    /// When its soft pin ends; [`Instant::NEVER`] for a hard pin, in the past for none.
    pub pinned_until: Instant,
    /// All its replicas, also those that cannot be read.
    pub replicas: Locations,
}

/// Whether to respect leases and copies.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Force {
    /// Refuse while somebody may be reading.
    #[default]
    No,
    /// The key goes at once; its bytes are used again only after the leases.
    Yes,
}

/// Where a scan stands. It stays good whatever happens between two steps.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Default)]
pub struct Cursor(pub u64);

impl Cursor {
    /// Nothing seen yet.
    pub const START: Self = Self(0);
    /// Everything seen.
    pub const END: Self = Self(u64::MAX);

    /// Whether everything was seen.
    pub const fn is_end(self) -> bool {
        self.0 == u64::MAX
    }
}

/// What one step of a removal did.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Step {
    /// Where the next step begins; [`Cursor::END`] after the last.
    pub next: Cursor,
    /// How many objects were removed.
    pub removed: u64,
    /// How many matched but were leased, being copied or still being written.
    pub skipped: u64,
}

/// A copy that may now run.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct CopyTask {
    /// Which object; the end or abort names it.
    pub object: ObjectId,
    /// Where to read; kept until the copy ends.
    pub from: Location,
    /// Where to write.
    pub to: Placement,
    /// How many bytes of the extents hold something.
    pub len: u64,
}

/// What the master has to say.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Next {
    /// A member's health changed, or it left.
    Status {
        /// Which member.
        member: MemberId,
        /// Which life of which process.
        incarnation: Incarnation,
        /// What it is now; `Undefined` when it left.
        status: ClientStatus,
    },
    /// A segment left the pool, and with it its replicas.
    SegmentGone {
        /// Which segment.
        segment: SegmentId,
        /// Whose it was.
        owner: MemberId,
    },
    /// Nothing more; call [`handle_timeout`](super::Master::handle_timeout) at this moment, or after the next command.
    Wait(Option<Instant>),
}

/// One segment, as people see it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct SegmentInfo<'a> {
    /// Its number.
    pub id: SegmentId,
    /// Its name.
    pub name: &'a str,
    /// Whose it is.
    pub owner: MemberId,
    /// How many bytes it has.
    pub len: u64,
    /// How many of them are granted.
    pub used: u64,
    /// The longest extent it could grant now.
    pub largest_hole: u64,
    /// Whether new replicas are placed on it.
    pub visible: Visibility,
}

/// One granted extent.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Held {
    /// Which segment.
    pub segment: SegmentId,
    /// Which bytes.
    pub extent: Extent,
    /// What for.
    pub by: Holder,
}

/// What holds an extent.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Holder {
    /// A replica of this object that can be read.
    Complete(ObjectId),
    /// A replica of this object that is being written, or an extent granted ahead.
    Reserved(ObjectId),
    /// Nobody any more: it waits for leases, copies or a fence.
    Draining,
}

/// Figures, derived from what is there (case 22): never negative, never above what they are part of.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Stats {
    /// Bytes of all segments.
    pub capacity: u64,
    /// Bytes granted, draining ones included.
    pub used: u64,
    /// Bytes of puts and copies that have not ended, and of extents granted ahead.
    pub reserved: u64,
    /// Bytes that wait for a lease, a copy or a fence before they are used again.
    pub draining: u64,
    /// Finished objects.
    pub objects: u64,
    /// Puts that have not ended, and extents granted ahead.
    pub writing: u64,
    /// Members whose heartbeats arrive.
    pub active_members: u64,
    /// All members.
    pub members: u64,
    /// Segments in the pool.
    pub segments: u64,
    /// What happened since the start.
    pub totals: Totals,
}

/// Counters since the master's start.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Totals {
    /// Objects evicted.
    pub evicted: u64,
    /// Bytes of values evicted.
    pub evicted_bytes: u64,
    /// Rounds and requests for room that ended short while every entry looked at was leased (case 13).
    pub blocked_by_leases: u64,
    /// Puts given up after the discard time-out.
    pub discarded: u64,
    /// Objects lost with their last replica's segment.
    pub lost: u64,
    /// Puts refused for want of room.
    pub no_room: u64,
    /// How often time went backwards (case 25).
    pub clock_went_back: u64,
    /// Events dropped because nobody polled.
    pub events_lost: u64,
}
