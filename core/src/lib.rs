//! The logic of Springtide as state machines without I/O.
//!
//! Every machine is driven through four doors: *commands* (what somebody asked for, `now` first, a typed answer at
//! once), *facts* (`handle_*`: what happened elsewhere), *one way out* (`poll`, whose last answer is always "wait"),
//! and *looking* (`&self`). Time and randomness come in as arguments; nothing here reads a clock, opens a socket,
//! starts a thread or prints. See `ARCHITECTURE.md` for the map.
//!
//! - vocabulary: [`time`], [`id`], [`range`], [`rng`], [`slab`], [`key`], [`error`], [`ticket`], [`checksum`]
//! - [`space`]: who owns which bytes of which segment; [`place`]: where to put; [`evict`]: what to give up
//! - [`object`]: what is stored where; [`members`]: clients and their segments; [`master`]: both together
//! - [`node`], [`client`]: the other two roles; [`transfer`]: the engine that moves bytes
//! - [`wire`]: frames and messages, bytes in, bytes out
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

pub mod address;
pub mod checksum;
pub mod client;
pub mod error;
pub mod evict;
pub mod id;
pub mod key;
pub mod master;
pub mod members;
pub mod node;
pub mod object;
pub mod place;
pub mod range;
pub mod rng;
pub mod slab;
pub mod space;
pub mod ticket;
pub mod time;
pub mod transfer;
pub mod wire;

mod chunks;
