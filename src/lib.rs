//! Springtide: a KV-cache pool and transfer engine for LLM inference.
//!
//! It pools the memory of a cluster into one store of immutable objects and moves bytes between any two pieces of it.
//!
//! - [`Client`] and [`Blocking`] put, get, remove and list; [`Memory`] is registered memory for copies without a copy
//! - [`Node`] lends memory to the pool and serves it; [`Master`] knows what is where
//! - [`Member`] is both in one handle: it connects, lends memory, takes it back, and closes
//! - [`connect`] and [`lend`] make a client and a node over what the crate's features name; [`transports`] opens it
//! - [`core`] is the logic alone, `no_std`, for a runtime of your own
//!
//! # Features
//! All are additive: `tokio` (a runtime adapter), `tcp` and `shm` (transports) are on by default; `smol` and `thread` are
//! other adapters, and `http` adds metrics and health over HTTP. Without `tokio` and `http` nothing of tokio is built.
#![forbid(unsafe_code)]

mod member;
mod open;

pub use member::Member;
pub use open::{LendError, OpenError, Transports, Use, connect, lend, transports};
pub use springtide_client::{Blocking, Driving};
pub use springtide_client::{
    CallKind, CallTally, Checksums, Client, ClientStatus, Config as ClientConfig, Error, Figures, Forcing,
    MemberInfo, Memory, Page, Pattern, Piece, Presence, PutOptions, SegmentInfo, Slice, Stat,
};
pub use springtide_coord::CoordError;
pub use springtide_core as core;
pub use springtide_core::error::Code;
pub use springtide_core::id::Incarnation;
pub use springtide_driver::{Runtime, Shutdown};
pub use springtide_hal::Block;
pub use springtide_master::{
    CallFigures, Config as MasterRules, Server as Master, ServerConfig as MasterConfig,
    StartError as MasterError,
};
pub use springtide_node::{Config as NodeConfig, Node, Standing, StartError as NodeError};
pub use springtide_rpc::resolve;
#[cfg(feature = "smol")]
pub use springtide_smol::Smol;
#[cfg(feature = "thread")]
pub use springtide_thread::Threads;
#[cfg(feature = "tokio")]
pub use springtide_tokio::Tokio;
pub use springtide_transport::Transport;

/// HTTP for operators.
#[cfg(feature = "http")]
pub mod admin {
    pub use springtide_admin::{Kind, Metric, Server, Source};
}

/// Host memory: pages, sharing, NUMA; an allocator for processes with large tables.
pub mod memory {
    pub use springtide_hal_host::huge::HugePages;
    pub use springtide_hal_host::memory::{
        Allocation, MemoryError, Obtained, Options, Pages, Prefault, Sharing, allocate,
    };
}
