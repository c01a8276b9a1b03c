//! Frames and messages, bytes in, bytes out. Every decoder takes untrusted bytes.

pub mod frame;
