//! The API that an application embeds: put, get, remove, list, over any runtime.
//!
//! - [`Client`]: the asynchronous face; [`Blocking`]: the same for threads, which then drive all I/O themselves
//! - [`Memory`]: registered memory, for reads and writes without a copy
//! - [`member`]: staying registered with the master, which storage nodes use too
//!
//! One call is one batch: one request to the master for all keys, one batch of transfers for all values. Every item has
//! its own result. Values carry a checksum, taken at put and checked at get, unless [`Config::checksums`] says not.
#![forbid(unsafe_code)]

mod again;
mod ahead;
mod blocking;
mod calls;
mod client;
mod config;
mod copy;
mod error;
mod get;
mod hello;
mod locate;
pub mod member;
mod memory;
mod parts;
mod put;
mod read;
mod routes;
mod same;
mod tally;
mod trip;
mod verify;
mod write;

pub use blocking::Blocking;
pub use calls::Page;
pub use client::Client;
pub use config::{Checksums, Config, Driving};
pub use error::Error;
pub use get::Piece;
pub use hello::Greeting;
pub use locate::Located;
pub use memory::{Memory, Slice};
pub use put::PutOptions;
pub use springtide_core::wire::message::{
    ClientStatus, Figures, Forcing, Found, MemberInfo, Pattern, Presence, SegmentInfo, Stat,
};
pub use tally::{CallKind, CallTally};
