//! The one monotonic clock, and randomness for incarnations: what the core must be given from outside.
#![allow(clippy::disallowed_methods, reason = "this is the place where the clock is read")]

use std::sync::OnceLock;

use springtide_core::id::Incarnation;
use springtide_core::time::{Instant, nanos};

/// Now, since this process first asked. Never wall time.
pub fn now() -> Instant {
    static ORIGIN: OnceLock<std::time::Instant> = OnceLock::new();
    Instant::from_nanos(nanos(ORIGIN.get_or_init(std::time::Instant::now).elapsed()) + 1)
}

/// A fresh incarnation from the system's randomness.
///
/// # Panics
/// When the system has no randomness to give, which no supported kernel does after boot.
pub fn incarnation() -> Incarnation {
    let mut bytes = [0; 16];
    getrandom::fill(&mut bytes).expect("the kernel gives randomness");
    Incarnation(u128::from_le_bytes(bytes))
}
