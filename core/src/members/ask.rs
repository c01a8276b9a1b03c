//! What a member says of itself, and what it is told.

use core::time::Duration;

use super::{ClientStatus, Fences, Mode};
use crate::id::{Incarnation, MemberId, SegmentId};
use crate::range::Extent;
use crate::ticket::TicketKey;

/// Who registers (S0A-034).
#[derive(Clone, Copy, Debug)]
pub struct Member<'a> {
    /// What people call it; names need not be unique.
    pub name: &'a str,
    /// Where its RPC is served; empty if it serves none. No two live members have the same.
    pub address: &'a str,
    /// How it wants to run; the master refuses another mode than its own.
    pub mode: Mode,
    /// The secret for its tickets, from outside randomness; fresh for every registration, so that it ends the tickets
    /// of earlier ones.
    pub key: TicketKey,
    /// Whether it can end writes to its memory.
    pub fences: Fences,
}

/// What a member is told when it registers.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Registered {
    /// Its number.
    pub id: MemberId,
    /// With this key its owner side checks tickets.
    pub ticket_key: TicketKey,
    /// How often it should send heartbeats.
    pub heartbeat: Duration,
    /// Silence after which its replicas are hidden.
    pub ttl: Duration,
}

/// The answer to a heartbeat (S0A-035).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Beat {
    /// The member's state from now on; `Undefined` means: register again.
    pub status: ClientStatus,
}

/// What a member has to do for the master, until it reports it done in a heartbeat.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Duty {
    /// Let no store under a ticket with a serial below `below` land in `extent` any more.
    Fence {
        /// What to report when it is done.
        number: u64,
        /// Which segment.
        segment: SegmentId,
        /// Which bytes.
        extent: Extent,
        /// Tickets with lower serials end.
        below: u64,
    },
}

/// One member, as people see it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct MemberInfo<'a> {
    /// Its number.
    pub id: MemberId,
    /// Which life of which process.
    pub incarnation: Incarnation,
    /// Its name.
    pub name: &'a str,
    /// Where its RPC is served.
    pub address: &'a str,
    /// Its state as of the last evaluation.
    pub status: ClientStatus,
    /// How many fences it has not answered yet.
    pub duties: usize,
}
