//! The `springtide` command as a library: what its `main` calls, and what its tests look at.
//!
//! - [`size`], [`duration`], [`fraction`], [`address`]: values as people write them
#![forbid(unsafe_code)]

pub mod address;
pub mod duration;
pub mod exit;
pub mod fraction;
pub mod size;
