//! Serving: one task a connection, many frames a read, one write for their replies.

mod guests;
mod listen;
mod replies;
mod service;
mod session;

pub use listen::{Listener, ServerConfig, serve};
pub use replies::{Full, Parked, Replies};
pub use service::{Frames, Service};
