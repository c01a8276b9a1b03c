//! What the engine asks of a transport, and what it hears back.

use crate::id::{OpId, RegionId, RemoteId, TicketId};

/// Which way the bytes go.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Verb {
    /// From the remote memory to ours.
    Read,
    /// From our memory to the remote one; needs a ticket where the owner asks for one.
    Write,
}

/// One movement of bytes on one path. Names memory by id and offset, so that submitting it is safe: the transport
/// checks bounds and generations.
#[derive(Clone, Copy, Debug)]
pub struct Op {
    /// Names the op in its completion.
    pub id: OpId,
    /// Our memory.
    pub local: RegionId,
    /// The first byte in our memory.
    pub at: u64,
    /// The peer's memory.
    pub remote: RemoteId,
    /// The first byte in the peer's memory.
    pub to: u64,
    /// The write permission; `None` for reads.
    pub ticket: Option<TicketId>,
    /// How many bytes.
    pub len: u32,
    /// Which way.
    pub verb: Verb,
}

const _: () = assert!(size_of::<Op>() <= 64);

/// How an op ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Status {
    /// All bytes are in place, and a later read by anybody sees them.
    Done,
    /// The owner, or this side's check, refused it; no byte moved. Trying again does not help.
    Refused,
    /// The peer ended it early; `Completion::bytes` were moved.
    Short,
    /// It was given up: cancelled, or its path went down. Nothing touches its memory any more.
    Flushed,
    /// Nobody knows, and it may still touch its memory, which is held until the path is down.
    Lost,
}

/// The end of one op.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Completion {
    /// Which op.
    pub id: OpId,
    /// How many bytes moved.
    pub bytes: u32,
    /// How it ended.
    pub status: Status,
    /// The device's own code, for people; 0 if there is none.
    pub code: i32,
}

const _: () = assert!(size_of::<Completion>() <= 24);
