//! Bytes over TCP.
#![forbid(unsafe_code)]
