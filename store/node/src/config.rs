//! What a node needs in order to start.

use core::fmt;
use core::net::SocketAddr;
use std::io;

use springtide_core::range::GRANULE;
use springtide_hal::Block;
use springtide_hal_host::memory::{MemoryError, Pages, Prefault};

/// What a node needs in order to start.
#[derive(Clone, Debug)]
pub struct Config {
    /// The master's addresses, tried in order.
    pub master: Vec<SocketAddr>,
    /// The cluster that is wanted; 0 takes any. Default 0.
    pub cluster: u64,
    /// Where its RPC listens; port 0 takes a free one. Default 127.0.0.1:0.
    pub listen: SocketAddr,
    /// The host that peers are told, where it is not the one listened on. Default `None`.
    pub advertise: Option<String>,
    /// The node's name, for people; its segments are called `NAME/0`, `NAME/1` … Default: its RPC address.
    pub name: Option<String>,
    /// How much memory it lends, in bytes; rounded down to whole granules of 64.
    pub memory: u64,
    /// Memory of the caller's own to lend instead of fresh memory: its first [`memory`](Self::memory) bytes. Peers read
    /// and write it; over shared memory only if it is a file. Default `None`.
    pub block: Option<Block>,
    /// 0 for objects of any sizes; else the page, in bytes, of a slab allocator for small uniform ones. Default 0.
    pub uniform: u64,
    /// What pages are wished for. Default transparent huge pages.
    pub pages: Pages,
    /// Whether all memory is touched before it is lent. Default no.
    pub prefault: Prefault,
    /// The NUMA node that is preferred. Default any.
    pub numa: Option<u32>,
}

impl Config {
    /// A node that lends `block`, memory of the caller's own (S0A-062), to the master at `master`, with defaults.
    pub fn of(master: impl IntoIterator<Item = SocketAddr>, block: Block) -> Self {
        Self { block: Some(block.clone()), ..Self::new(master, block.len()) }
    }

    /// A node that lends `memory` bytes to the master at `master`, with defaults.
    pub fn new(master: impl IntoIterator<Item = SocketAddr>, memory: u64) -> Self {
        Self {
            master: master.into_iter().collect(),
            cluster: 0,
            listen: SocketAddr::from(([127, 0, 0, 1], 0)),
            advertise: None,
            name: None,
            memory,
            block: None,
            uniform: 0,
            pages: Pages::Transparent,
            prefault: Prefault::No,
            numa: None,
        }
    }
}

/// Why a node did not start.
#[derive(Debug)]
pub enum StartError {
    /// Less than one granule of memory to lend.
    TooLittle(u64),
    /// So many bytes are to be lent of a block that has only so many.
    TooShort(u64, u64),
    /// The memory cannot be had.
    Memory(u64, MemoryError),
    /// The port cannot be had.
    Listen(io::Error),
    /// It listens on all addresses of the host, so peers must be told one.
    Advertise(SocketAddr),
    /// The system has no descriptors or threads left.
    System(io::Error),
    /// No transport can serve the memory.
    Transport(springtide_transport::ControlError),
}

impl fmt::Display for StartError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::TooLittle(len) => {
                write!(f, "{len} bytes are too little to lend; a node lends {GRANULE} or more")
            }
            Self::TooShort(len, block) => write!(f, "cannot lend {len} bytes of a block of {block}"),
            Self::Memory(len, error) => write!(f, "cannot allocate {len} bytes to lend: {error}"),
            Self::Listen(error) | Self::System(error) => error.fmt(f),
            Self::Advertise(address) => {
                write!(f, "listening on {address} tells peers no address; give --advertise HOST")
            }
            Self::Transport(error) => write!(f, "no transport can serve the memory: {error}"),
        }
    }
}

impl core::error::Error for StartError {}
