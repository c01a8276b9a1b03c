//! Objects: put, get, remove.

use core::time::Duration;

use serde::{Deserialize, Serialize};

use crate::checksum::Checksum;
use crate::id::{ObjectId, SegmentId, Term};
use crate::range::Extent;

/// Most replicas of one object.
pub const MAX_REPLICAS: usize = 8;
/// Most preferred segments that one put names.
pub const MAX_PREFERRED: usize = 8;

/// Where one replica is (S0A-179, S0A-180, S0B-001).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Location {
    /// In which segment.
    pub segment: SegmentId,
    /// From which byte on.
    pub offset: u64,
}

/// Head of the answer to a get.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Leased {
    /// How long the replicas stay, from the master's answer on, in milliseconds (S0A-055, S0B-022). The reader counts
    /// from before it asked, less one per cent.
    pub lease_ms: u32,
}

/// An object to read.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Found {
    /// Its id.
    pub object: ObjectId,
    /// Its length in bytes, without block sums.
    pub len: u64,
    /// What its bytes must sum to.
    pub checksum: Checksum,
    /// Where it is; complete replicas only, never empty unless `len` is 0.
    pub replicas: heapless::Vec<Location, MAX_REPLICAS>,
}

/// Whether asking for an object keeps it alive.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub enum ProbeKind {
    /// It does not.
    #[default]
    Plain,
    /// It renews the lease, as a get does.
    RenewLease,
}

/// Whether an object is there.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub enum Presence {
    /// No.
    Absent,
    /// Yes, and it can be read.
    Present,
    /// Somebody is writing it.
    Writing,
    /// The key is no key.
    BadKey,
}

/// How to place and keep what is put (S3A-103).
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Options<'a> {
    /// How many replicas are wanted, 1 to [`MAX_REPLICAS`]; best effort.
    pub replicas: u8,
    /// Keep it as long as anything else can go: `None` not at all; `Some(0)` for the master's default.
    pub soft_pin_ms: Option<u64>,
    /// Never evict it (S3A-102).
    pub hard_pin: bool,
    /// Names of segments to use first, in order.
    #[serde(borrow)]
    pub preferred: heapless::Vec<&'a str, MAX_PREFERRED>,
    /// Objects of one group go together, best effort; empty for none.
    pub group: &'a str,
    /// Whether values longer than a block get room for their block sums.
    pub sums: bool,
    /// Once the first put of the call has its place, prefer that segment for the others (S0A-090, S0B-029). A first put
    /// that is refused prefers none.
    pub together: bool,
}

impl Default for Options<'_> {
    fn default() -> Self {
        Self {
            replicas: 1,
            soft_pin_ms: None,
            hard_pin: false,
            preferred: heapless::Vec::new(),
            group: "",
            sums: true,
            together: false,
        }
    }
}

impl Options<'_> {
    /// The soft pin as a duration: `None` not at all, zero for the master's default.
    pub fn soft_pin(&self) -> Option<Duration> {
        self.soft_pin_ms.map(Duration::from_millis)
    }
}

/// One put that starts.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Wanted<'a> {
    /// Its key.
    pub key: &'a [u8],
    /// Its length in bytes, without block sums.
    pub len: u64,
}

/// Head of the answer to a put that starts.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Granted {
    /// The term in which the tickets were made.
    pub term: Term,
    /// How long the writer may write, from the master's answer on, in milliseconds.
    pub write_ms: u32,
}

/// Where to write one replica, with the rest of its ticket (owner and term stand elsewhere).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Placement {
    /// In which segment.
    pub segment: SegmentId,
    /// Which bytes are granted.
    pub extent: Extent,
    /// The ticket's serial.
    pub serial: u64,
    /// The ticket's tag.
    pub tag: u64,
}

/// A put may write.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Grant {
    /// To name in the end of the put.
    pub object: ObjectId,
    /// Where to write; empty for an empty value.
    pub replicas: heapless::Vec<Placement, MAX_REPLICAS>,
}

/// Segments whose replica of a put was not written.
pub type Failed = heapless::Vec<SegmentId, MAX_REPLICAS>;

/// One put is written.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Finished {
    /// Which put.
    pub object: ObjectId,
    /// What its bytes sum to.
    pub checksum: Checksum,
    /// Where it was not written: those replicas are dropped. Not all of them.
    pub failed: Failed,
}

/// One put is given up.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Abandoned {
    /// Which put.
    pub object: ObjectId,
    /// Whether every write of it has ended, so that nothing can land later.
    pub quiet: bool,
}

/// Asks ahead for extents of one size class.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Reserve<'a> {
    /// The longest value that each must hold, in bytes without block sums.
    pub len: u64,
    /// How many.
    pub count: u32,
    /// How to place them.
    #[serde(borrow)]
    pub options: Options<'a>,
}

/// Ends a put on an extent that was reserved.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Publish<'a> {
    /// Which reserved extent.
    pub object: ObjectId,
    /// The key.
    pub key: &'a [u8],
    /// The value's length in bytes, without block sums.
    pub len: u64,
    /// What its bytes sum to.
    pub checksum: Checksum,
    /// Where it was not written: those replicas are dropped. Not all of them.
    pub failed: Failed,
}

/// Whether leases hinder a removal.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub enum Forcing {
    /// They do.
    #[default]
    No,
    /// They do not; readers find out.
    Yes,
}

/// Which keys are meant.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub enum Pattern<'a> {
    /// All of the tenant's.
    All,
    /// Those that begin with these bytes.
    Prefix(&'a [u8]),
    /// Those in which this regular expression matches.
    Regex(&'a str),
}

/// One step of removing by pattern.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct RemoveMatching<'a> {
    /// Where the last step ended; 0 to begin.
    pub cursor: u64,
    /// Which keys.
    #[serde(borrow)]
    pub pattern: Pattern<'a>,
    /// Whether leases hinder.
    pub force: Forcing,
}

/// What a step removed.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct RemoveStep {
    /// Where the next step begins; 0 when this was the last.
    pub next: u64,
    /// How many objects went.
    pub removed: u64,
    /// How many matched and stayed: leased, or being written.
    pub skipped: u64,
}

/// A copy of an object to one more segment.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct CopyStart<'a> {
    /// Which object.
    pub key: &'a [u8],
    /// The name of the segment that shall hold the copy.
    pub to: &'a str,
}

/// What to copy where.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct CopyPlan {
    /// To name in the end of the copy.
    pub object: ObjectId,
    /// The value's length in bytes, without block sums.
    pub len: u64,
    /// What its bytes must sum to.
    pub checksum: Checksum,
    /// A replica to read.
    pub from: Location,
    /// Where to write.
    pub to: Placement,
    /// The term of the ticket.
    pub term: Term,
}

/// The end of a copy.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct CopyEnd {
    /// Which object.
    pub object: ObjectId,
    /// Where it was copied to.
    pub to: SegmentId,
    /// Whether the copy is good.
    pub good: bool,
    /// If not: whether every write of it has ended.
    pub quiet: bool,
}

/// Drops replicas of objects that the caller wrote (S0A-085). What is leased, being copied or still being written
/// stays, and so does what somebody else wrote: each item says why.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Clear<'a> {
    /// The name of the segment whose replicas go; empty for all segments.
    pub segment: &'a str,
}
