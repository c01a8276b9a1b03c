//! The metadata server: [`springtide_core::master::Master`] behind a socket (S0A-089, S0B-028).
//!
//! One process holds one cluster's metadata. [`Server::bind`] takes the lock of its state directory, which refuses a
//! second master, and the port; [`Server::run`] serves until told to stop. Every call is a batch and one command in
//! the machine; all frames that one read finds are handled under one lock and answered with one write.
#![forbid(unsafe_code)]

mod ahead;
mod answer;
mod calls;
mod convert;
mod dispatch;
mod listing;
mod machine;
mod members;
mod objects;
mod server;
mod service;
mod state;

pub use calls::CallFigures;
pub use machine::Machine;
pub use server::{Server, ServerConfig, StartError};
pub use springtide_core::master::{Config, ConfigError};
pub use state::Peer;
