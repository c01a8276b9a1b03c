//! A transport without a network, and a fault decorator for any transport.
//!
//! - [`SimNet`]: a network in one process and in virtual time; several of them are rails of different speed
//! - [`SimTransport`]: one end of it, a [`Transport`](springtide_transport::Transport) like any other
//! - [`Fault`]: makes another transport misbehave, within the contract, by a seed
#![forbid(unsafe_code)]

mod fault;
mod net;
mod serve;
mod transport;

pub use fault::{Fault, Faults, Order};
pub use net::{Shape, SimNet};
pub use transport::SimTransport;
