//! The metadata server.
#![forbid(unsafe_code)]
