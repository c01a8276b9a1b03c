//! Bytes between processes of one host over shared memory.
//!
//! Anyone loads, only the owner stores. A **read** is a copy that the initiator makes itself, out of the owner's sealed
//! memory file; the owner does nothing. For a **write** the owner is asked, over a ring in shared memory, to pull: it
//! checks the ticket, then copies from the initiator's mapped memory, or reads its private memory, or takes the bytes
//! piece by piece from the initiator's board. So nobody ever stores into memory that is not its own, and a process
//! that dies, freezes or goes mad in the midst of a write can neither corrupt a segment nor store late.
//!
//! - [`Shm`] is the transport; one listening socket in the abstract name space, one epoll
//! - `path`: our end of a connection that we opened, with `load` (reads) and `ask` (writes)
//! - `guest`: our end of a connection that a peer opened
//! - `link`: what both have: a socket for descriptors, two boards, two bells; `message`, `entry`: what is said there
//! - `drive`: one turn for everybody, and sleep without a lost wake-up
//!
//! A completion's `code` says why an owner refused: 1 to 4 are the reasons of `Denied` (other owner, out of range,
//! forged, fenced), 5 is "no such memory".
#![forbid(unsafe_code)]

mod address;
mod ask;
mod entry;
mod flight;
mod guest;
mod link;
mod load;
mod message;
mod path;
mod region;
mod socket;
mod table;
