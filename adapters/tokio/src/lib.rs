//! Springtide on tokio.
#![forbid(unsafe_code)]
