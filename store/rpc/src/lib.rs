//! Remote procedure calls over frames ([`springtide_core::wire::frame`]): connections, deadlines, servers.
//!
//! - [`server`]: [`serve`] answers the frames of many connections with one [`Service`]
//! - [`client`]: [`Remote`] calls one peer, and comes back to it when the connection breaks
//! - [`resolve`]: names to addresses, the one thing here that blocks
#![forbid(unsafe_code)]

pub mod client;
mod resolve;
pub mod server;
mod stream;

pub use client::{
    Answer, Ask, Call, CallError, ClientConfig, Connection, Hello, Reason, Remote, Reply, RequestId,
    Standing, Table, WhileDown,
};
pub use resolve::resolve;
pub use server::{Frames, Full, Listener, Parked, Replies, ServerConfig, Service, serve};
