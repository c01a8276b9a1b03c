//! Frames and messages, bytes in, bytes out. Every decoder takes untrusted bytes.
//!
//! - [`frame`]: the header around every message
//! - [`codec`]: how a message is laid out: a head, then a *tail* of items up to the end of the body
//! - [`message`]: the calls, by method number

pub mod codec;
pub mod frame;
pub mod message;
