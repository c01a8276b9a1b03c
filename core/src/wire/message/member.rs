//! Members and their segments.

use serde::{Deserialize, Serialize};

use super::{ClientStatus, Mode};
use crate::id::{Incarnation, SegmentId};
use crate::range::Extent;
use crate::ticket::TicketKey;

/// A process joins with what it is (S0B-024).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Register<'a> {
    /// Its name, for people.
    pub name: &'a str,
    /// Where peers reach its RPC, as `host:port`, unique among the living; empty if they cannot.
    pub address: &'a str,
    /// How it is run.
    pub mode: Mode,
    /// Whether it answers fence duties. An owner that does not is waited for (release time-out).
    pub fences: bool,
}

/// A process has joined.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Registered {
    /// The secret that its segments' tickets are checked with.
    pub ticket_key: TicketKey,
    /// How often it must report, in milliseconds.
    pub heartbeat_ms: u32,
    /// After how long a silence its segments are hidden, in milliseconds.
    pub ttl_ms: u32,
}

/// A member reports (S0B-023); the tail holds the numbers of fences that stand.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Heartbeat {
    /// How many reports it has sent, for logs.
    pub count: u64,
}

/// What the master makes of a member (S0B-094); the tail holds its duties.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Beat {
    /// Its state; anything but `Healthy` wants attention.
    pub status: ClientStatus,
}

/// An owner must refuse older stores and report the number back.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct FenceDuty {
    /// To report when it stands.
    pub number: u64,
    /// Which segment.
    pub segment: SegmentId,
    /// Which bytes.
    pub extent: Extent,
    /// Tickets with a lower serial end.
    pub below: u64,
}

/// A member lends memory (S0A-043, S0B-037).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Mount<'a> {
    /// The segment's name, for people and preferences.
    pub name: &'a str,
    /// Its length in bytes.
    pub len: u64,
    /// 0 for any sizes; else the page, in bytes, of a slab allocator for small uniform objects.
    pub uniform: u64,
}

/// Where a segment is, and what describes it (S0B-043).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct SegmentInfo<'a> {
    /// Its id.
    pub id: SegmentId,
    /// Its name.
    pub name: &'a str,
    /// Its owner's name.
    pub owner: &'a str,
    /// Its owner's life.
    pub incarnation: Incarnation,
    /// Where its owner's RPC is, as `host:port`.
    pub address: &'a str,
    /// Its length in bytes.
    pub len: u64,
    /// Bytes in use.
    pub used: u64,
    /// Largest hole in bytes.
    pub largest_hole: u64,
    /// Whether it gets new objects: not while its owner is silent.
    pub open: bool,
}

/// A member as the master sees it (S0A-045, S0B-025, S0B-041).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct MemberInfo<'a> {
    /// Its name.
    pub name: &'a str,
    /// Where its RPC is; empty if it has none.
    pub address: &'a str,
    /// This life of it.
    pub incarnation: Incarnation,
    /// Its state.
    pub status: ClientStatus,
    /// How many segments it lends.
    pub segments: u32,
    /// How many fences it has not answered yet.
    pub duties: u32,
}

/// What a peer needs to reach a segment over one transport.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Card<'a> {
    /// The transport's name.
    pub transport: &'a str,
    /// Where to open a path.
    pub address: &'a [u8],
    /// The segment, as that transport describes it.
    pub description: &'a [u8],
}
