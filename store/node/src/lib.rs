//! The storage node: memory lent to the pool, and the lane that serves it.
//!
//! A node registers with the master, mounts its segments, tells peers how to reach them, and fences writers when the
//! master asks. It holds no metadata: after a restart, its own or the master's, it registers anew with fresh segments.
#![forbid(unsafe_code)]

mod config;
mod desk;
mod node;
mod segments;
mod service;

pub use config::{Config, StartError};
pub use desk::{Desk, Greeted, Served, Way};
pub use node::{Node, Standing};
