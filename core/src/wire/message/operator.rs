//! What operators ask.

use serde::{Deserialize, Serialize};

use super::Pattern;
use crate::checksum::Checksum;

/// One object, looked at without touching it.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Stat {
    /// Its length in bytes.
    pub len: u64,
    /// What its bytes sum to.
    pub checksum: Checksum,
    /// How many replicas are complete.
    pub replicas: u8,
    /// Whether it is still being written.
    pub writing: bool,
    /// How long its lease still runs, in milliseconds.
    pub lease_ms: u64,
    /// How long its soft pin still runs, in milliseconds.
    pub soft_pin_ms: u64,
    /// Whether it is never evicted.
    pub hard_pin: bool,
}

/// One page of a listing.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Scan<'a> {
    /// Where the last page ended; 0 to begin.
    pub cursor: u64,
    /// Most keys on this page.
    pub limit: u32,
    /// Which keys.
    #[serde(borrow)]
    pub pattern: Pattern<'a>,
}

/// Head of a page; the tail holds [`Listed`].
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct ScanPage {
    /// Where the next page begins; 0 when this was the last.
    pub next: u64,
}

/// One line of a listing.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Listed<'a> {
    /// The key.
    pub key: &'a [u8],
    /// What is known of it.
    pub stat: Stat,
}

/// The master's figures. Gauges are derived from what is there now; counters grow while the process lives.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct Figures {
    /// Bytes that open and hidden segments have.
    pub capacity: u64,
    /// Bytes in use, of [`capacity`](Self::capacity).
    pub used: u64,
    /// Objects that can be read.
    pub objects: u64,
    /// Puts that were started and not ended, and extents granted ahead.
    pub writing: u64,
    /// Bytes that wait for a lease, a copy or a fence before they are used again.
    pub draining: u64,
    /// Healthy members.
    pub members: u64,
    /// Mounted segments.
    pub segments: u64,
    /// Gets that found their object.
    pub hits: u64,
    /// Gets that did not.
    pub misses: u64,
    /// Puts that ended well.
    pub puts: u64,
    /// Puts that were refused for want of space.
    pub refused_for_space: u64,
    /// Objects evicted.
    pub evicted: u64,
    /// Bytes evicted.
    pub evicted_bytes: u64,
    /// Times that eviction found nothing because of leases.
    pub blocked_by_leases: u64,
    /// Objects removed by callers.
    pub removed: u64,
    /// Objects lost with their last segment.
    pub lost: u64,
    /// Puts discarded because their writer did not end them.
    pub discarded: u64,
    /// How often time went backwards.
    pub clock_went_back: u64,
}
