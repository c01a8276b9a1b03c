//! How a client behaves.

use core::net::SocketAddr;
use core::time::Duration;

use springtide_core::key::DEFAULT_TENANT;

/// How a client behaves.
#[derive(Clone, Debug)]
pub struct Config {
    /// The master's addresses, tried in order.
    pub master: Vec<SocketAddr>,
    /// Whose keys are meant. Default [`DEFAULT_TENANT`].
    pub tenant: String,
    /// The client's name, for people. Default `client`.
    pub name: String,
    /// The cluster that is wanted; 0 takes any. Default 0.
    pub cluster: u64,
    /// How long a call may take when it says nothing itself. Default 10 s.
    pub timeout: Duration,
    /// Whether values carry checksums. Default [`Checksums::Verify`].
    pub checksums: Checksums,
    /// Who drives sockets and transports. Default [`Driving::Attended`].
    pub driving: Driving,
}

impl Config {
    /// A client of the master at `master`, with defaults.
    pub fn new(master: impl IntoIterator<Item = SocketAddr>) -> Self {
        Self {
            master: master.into_iter().collect(),
            tenant: DEFAULT_TENANT.into(),
            name: "client".into(),
            cluster: 0,
            timeout: Duration::from_secs(10),
            checksums: Checksums::Verify,
            driving: Driving::Attended,
        }
    }
}

/// Whether values carry checksums.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Checksums {
    /// Taken at put, checked at get.
    Verify,
    /// Neither taken nor checked.
    Off,
}

/// Who drives sockets and transports.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Driving {
    /// Tasks on the runtime: for callers that are tasks themselves.
    Attended,
    /// The calling threads, through [`Blocking`](crate::Blocking): the lowest latency, and no thread beside them but the
    /// runtime's, which sends heartbeats.
    ByCaller,
}
