//! Serving: one task a connection, many frames a read, one write for their replies.

mod listen;
mod replies;
mod service;

pub use listen::{Listener, ServerConfig, serve};
pub use replies::{Full, Parked, Replies};
pub use service::{Frames, Service};
