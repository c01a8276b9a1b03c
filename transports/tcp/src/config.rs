//! What a transport is told at the start.

use core::fmt;
use core::net::{IpAddr, SocketAddr};
use core::time::Duration;

use springtide_core::id::Incarnation;

/// What a [`TcpTransport`](crate::TcpTransport) is told at the start.
#[derive(Clone, Copy, Debug)]
pub struct Config {
    /// This life of this process.
    pub owner: Incarnation,
    /// Where to listen; port 0 takes any. `None` serves nobody. Default `None`.
    pub listen: Option<SocketAddr>,
    /// The host that peers are told instead of the one in `listen`. Default `None`.
    pub advertise: Option<IpAddr>,
    /// Connections a path, at least 1. Default 1.
    pub lanes: usize,
    /// Most ops in flight on a path, at least 1. Default 256.
    pub depth: u32,
    /// How long connecting and saying hello may take. Default 5 s.
    pub hello: Duration,
    /// How long a peer that owes bytes, or room for ours, may keep still before it counts as gone. Default 30 s.
    pub stall: Duration,
    /// After how long without traffic the kernel asks whether the peer's host still lives; one that does not answer
    /// for `stall` is gone. Whole seconds. Default 10 s.
    pub keepalive: Duration,
}

impl Config {
    /// The defaults for `owner`.
    pub const fn new(owner: Incarnation) -> Self {
        Self {
            owner,
            listen: None,
            advertise: None,
            lanes: 1,
            depth: 256,
            hello: Duration::from_secs(5),
            stall: Duration::from_secs(30),
            keepalive: Duration::from_secs(10),
        }
    }
}

/// Why a transport cannot listen.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ListenError {
    /// The listen address is "any"; say which host peers should use.
    Unadvertised(SocketAddr),
    /// The system refused this address; holds its error number. Choose another port, or an address of this host.
    Bind(SocketAddr, i32),
    /// The system refused (out of descriptors or memory); holds its error number.
    System(i32),
}

impl fmt::Display for ListenError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = |errno: i32| std::io::Error::from_raw_os_error(errno);
        match self {
            Self::Unadvertised(address) => {
                write!(f, "cannot tell peers to connect to {address}; say which host they should use")
            }
            Self::Bind(address, errno) => write!(f, "cannot listen on {address}: {}", text(*errno)),
            Self::System(errno) => write!(f, "the system refused: {}", text(*errno)),
        }
    }
}

impl core::error::Error for ListenError {}
