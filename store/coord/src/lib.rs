//! Coordination: who is master, and since when.
//!
//! The embedded coordinator keeps one directory. A lock file refuses a second master on the same directory; the epoch
//! in it grows with every start and is on disk before the master serves, so that tickets of an earlier term are told
//! apart; the cluster's id is drawn once.
#![forbid(unsafe_code)]

mod embedded;

pub use embedded::{CoordError, Embedded};
