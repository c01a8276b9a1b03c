//! Opens the transports that the features name.

use core::fmt;
use core::net::{IpAddr, SocketAddr};

use springtide_client::{Client, Error};
use springtide_core::error::Code;
use springtide_core::id::Incarnation;
use springtide_driver::Runtime;
use springtide_hal_host::clock;
use springtide_node::{Node, StartError};
use springtide_transport::Transport;

/// Which transports to open. The default opens all that the features name, for a process that only calls.
#[derive(Clone, Debug)]
pub struct Transports {
    /// Where to serve bytes over TCP; port 0 takes a free one. `None` for a process that only calls.
    pub listen: Option<SocketAddr>,
    /// The host that peers are told, where it is not the one listened on.
    pub advertise: Option<IpAddr>,
    /// Whether bytes may go over TCP.
    pub tcp: Use,
    /// Whether bytes may go over shared memory between processes of one host.
    pub shm: Use,
}

impl Default for Transports {
    fn default() -> Self {
        Self { listen: None, advertise: None, tcp: Use::Yes, shm: Use::Yes }
    }
}

/// Whether a transport is opened.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Use {
    /// It is, if its feature is on.
    Yes,
    /// It is not.
    No,
}

/// Why a transport cannot be opened.
#[derive(Debug)]
pub struct OpenError {
    transport: &'static str,
    why: Box<str>,
}

impl fmt::Display for OpenError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "cannot open transport {}: {}", self.transport, self.why)
    }
}

impl core::error::Error for OpenError {}

/// Opens transports for a fresh life of this process: the life, and the transports that name it.
///
/// # Errors
/// When a port is taken or the system has no descriptors left.
#[cfg_attr(
    not(any(feature = "tcp", feature = "shm")),
    allow(unused_mut, unused_variables, reason = "there is nothing to open")
)]
pub fn transports(which: &Transports) -> Result<(Incarnation, Vec<Box<dyn Transport>>), OpenError> {
    let life = clock::incarnation();
    let mut opened: Vec<Box<dyn Transport>> = Vec::new();
    #[cfg(feature = "shm")]
    if which.shm == Use::Yes {
        let shm = springtide_transport_shm::Shm::new();
        opened.push(Box::new(shm.map_err(|error| refused("shm", &error))?));
    }
    #[cfg(feature = "tcp")]
    if which.tcp == Use::Yes {
        use springtide_transport_tcp::{Config, TcpTransport};
        let config = Config { listen: which.listen, advertise: which.advertise, ..Config::new(life) };
        opened.push(Box::new(TcpTransport::new(config).map_err(|error| refused("tcp", &error))?));
    }
    Ok((life, opened))
}

#[cfg(any(feature = "tcp", feature = "shm"))]
fn refused(transport: &'static str, why: &dyn fmt::Display) -> OpenError {
    OpenError { transport, why: why.to_string().into() }
}

/// Connects a client over all transports that the features name. See [`Client::connect`](crate::Client::connect).
///
/// # Errors
/// When a transport cannot be opened, the master cannot be reached in time, or it refuses.
pub async fn connect<R: Runtime>(config: crate::ClientConfig, runtime: R) -> Result<Client<R>, Error> {
    let (life, opened) =
        transports(&Transports::default()).map_err(|error| Error::new(Code::INTERNAL_ERROR, error))?;
    Client::connect_as(life, config, runtime, opened).await
}

/// Makes a node that serves its memory over all transports that the features name, bytes beside its RPC on a free port
/// of the same address. Blocks while a name that is advertised resolves. See [`Node::bind`](crate::Node::bind).
///
/// # Errors
/// When a transport cannot be opened, or memory, port or descriptors cannot be had.
pub fn lend<R: Runtime>(config: &crate::NodeConfig, runtime: R) -> Result<Node<R>, LendError> {
    let advertise = config.advertise.as_deref().map(host_ip).transpose().map_err(LendError::Open)?;
    let listen = Some(SocketAddr::new(config.listen.ip(), 0));
    let which = Transports { listen, advertise, ..Transports::default() };
    let (life, opened) = transports(&which).map_err(LendError::Open)?;
    Node::bind(life, config, runtime, opened).map_err(LendError::Start)
}

/// The address of the host that peers are told.
fn host_ip(host: &str) -> Result<IpAddr, OpenError> {
    let bare = host.trim_start_matches('[').trim_end_matches(']');
    if let Ok(ip) = bare.parse() {
        return Ok(ip);
    }
    let unknown = |why: &dyn fmt::Display| OpenError { transport: "tcp", why: why.to_string().into() };
    let found = springtide_rpc::resolve(&format!("{host}:0")).map_err(|error| unknown(&error))?;
    found.first().map(SocketAddr::ip).ok_or_else(|| unknown(&"the advertised host has no address"))
}

/// Why a node cannot lend its memory.
#[derive(Debug)]
pub enum LendError {
    /// A transport cannot be opened.
    Open(OpenError),
    /// Memory, port or descriptors cannot be had.
    Start(StartError),
}

impl fmt::Display for LendError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Open(error) => error.fmt(f),
            Self::Start(error) => error.fmt(f),
        }
    }
}

impl core::error::Error for LendError {}
