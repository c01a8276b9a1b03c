//! Bytes over TCP.
//!
//! A [`TcpTransport`] is both sides: it opens paths to other transports and serves those that open paths to it. Each
//! path has connections of its own (its lanes), on which it asks and the peer answers; requests are pipelined, many
//! operations share one system call, and payloads go straight between the socket and the memory.
//!
//! # What an op's end means here
//! The owner of a segment makes every store itself, after it has checked the write's ticket. When a connection breaks,
//! every op of its path is `Flushed`: from then on nothing touches the op's *local* memory. Of a flushed write some
//! bytes may have landed at the owner, and the rest of those that were sent already may land later; the bytes are the
//! writer's again only after a fence. No op ends as `Lost`, since no device touches memory behind our back.
//!
//! A fence stands at once: the owner turns the rest of a store that is under way into the bin and answers `Short` with
//! what had landed. Withdrawing a segment does the same.
//!
//! A cancelled read is `Flushed` at once and what still comes of it is thrown away; of a write only what has not been
//! put on the wire can be given up.
//!
//! # Limits
//! [`MAX_OP`] bytes an op; [`MAX_CONNECTIONS`] accepted at a time; [`QUEUED_BYTES`] and [`QUEUED_PIECES`] of answers
//! for a peer that reads slowly, after which its requests wait in the socket. A peer that breaks the protocol loses
//! its connection and nobody else notices.
#![forbid(unsafe_code)]

mod address;
mod config;
mod connection;
#[cfg(feature = "fuzz")]
pub mod fuzz;
mod inbox;
mod initiator;
mod listen;
mod memory;
mod outbox;
mod run;
mod stream;
mod table;
mod target;
#[cfg(test)]
mod tests;
mod transport;
mod wire;

pub use config::{Config, ListenError};
pub use transport::TcpTransport;

/// Longest op, in bytes.
pub const MAX_OP: u32 = 16 << 20;
/// Most connections of peers at a time; more wait to be accepted.
pub const MAX_CONNECTIONS: usize = 4_096;
/// Bytes that may wait on one connection before nothing more is queued on it, give or take one request.
pub const QUEUED_BYTES: u64 = 4 << 20;
/// Pieces (headers and payloads) that may wait on one connection, give or take one request.
pub const QUEUED_PIECES: usize = 1_024;
/// Bytes of ops in flight on one lane, give or take one request; more ops wait for their turn.
const WINDOW: u64 = 8 << 20;
/// Bytes that ops sharing one request have together, at most.
const FRAME_BYTES: u64 = 1 << 20;
