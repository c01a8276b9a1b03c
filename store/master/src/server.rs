//! Starting and running a master.

use core::fmt;
use core::net::SocketAddr;
use core::pin::pin;
use core::task::Poll;
use std::io;
use std::path::PathBuf;
use std::sync::Arc;

use springtide_coord::{CoordError, Embedded};
use springtide_core::id::{Incarnation, Term};
use springtide_core::master::{Config, ConfigError, Master};
use springtide_core::ticket::TicketKey;
use springtide_core::wire::message::Figures;
use springtide_driver::{Runtime, Shutdown};
use springtide_hal_host::clock;
use springtide_rpc::{Listener, serve};

use crate::calls::CallFigures;
use crate::service::MasterService;
use crate::state::{Counts, Secrets, State};

/// What a master needs in order to start.
#[derive(Clone, Debug)]
pub struct ServerConfig {
    /// Where to listen; port 0 takes a free one. Default 127.0.0.1:50051.
    pub listen: SocketAddr,
    /// The directory that makes this the only master of its cluster and keeps its epoch. `None`: nothing is kept and
    /// nobody is refused, for tests and throw-away clusters.
    pub state: Option<PathBuf>,
    /// Leases, pins, time-outs, watermarks.
    pub rules: Config,
}

impl Default for ServerConfig {
    fn default() -> Self {
        Self { listen: SocketAddr::from(([127, 0, 0, 1], 50_051)), state: None, rules: Config::default() }
    }
}

/// Why a master did not start.
#[derive(Debug)]
pub enum StartError {
    /// The rules contradict each other.
    Rules(ConfigError),
    /// Another master is running, or the state directory cannot be used.
    Coordination(CoordError),
    /// The port cannot be had.
    Listen(io::Error),
}

impl fmt::Display for StartError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Rules(error) => error.fmt(f),
            Self::Coordination(error) => error.fmt(f),
            Self::Listen(error) => error.fmt(f),
        }
    }
}

impl core::error::Error for StartError {}

/// A master that has its lock and its port, and serves once it is [`run`](Self::run).
#[derive(Debug)]
pub struct Server {
    listener: Listener,
    address: SocketAddr,
    service: MasterService,
    _leadership: Option<Embedded>,
}

impl Server {
    /// Becomes master and binds the port.
    ///
    /// # Errors
    /// When the rules contradict each other, another master holds the state directory, or the port is taken.
    pub fn bind(config: ServerConfig) -> Result<Self, StartError> {
        config.rules.validate().map_err(StartError::Rules)?;
        let leadership =
            config.state.as_deref().map(Embedded::open).transpose().map_err(StartError::Coordination)?;
        let listener = Listener::bind(config.listen).map_err(StartError::Listen)?;
        let address = listener.local_addr().map_err(StartError::Listen)?;
        let Incarnation(random) = clock::incarnation();
        let term = leadership.as_ref().map_or(Term(1), Embedded::term);
        let cluster = leadership.as_ref().map_or((random >> 64) as u64 | 1, Embedded::cluster);
        let master = Master::new(config.rules, random as u64, term, clock::now());
        let state = State {
            master,
            cluster,
            incarnation: clock::incarnation(),
            greeted: 0,
            counts: Counts::default(),
            secrets: Secrets(Box::new(|| TicketKey(clock::incarnation().0.to_le_bytes()))),
        };
        Ok(Self { listener, address, service: MasterService::new(state), _leadership: leadership })
    }

    /// Where it listens.
    pub const fn local_addr(&self) -> SocketAddr {
        self.address
    }

    /// A handle to its figures, which outlives [`run`](Self::run).
    pub fn figures(&self) -> impl Fn() -> Figures + Clone + Send + Sync + 'static {
        let service = self.service.clone();
        move || service.figures()
    }

    /// A handle to what its calls came to, which outlives [`run`](Self::run): one entry a method, known or not.
    pub fn calls(&self) -> impl Fn() -> Vec<CallFigures> + Clone + Send + Sync + 'static {
        let service = self.service.clone();
        move || service.calls()
    }

    /// Serves until `shutdown` begins, then lets replies under way go out.
    ///
    /// # Errors
    /// When the runtime cannot watch the socket.
    pub async fn run<R: Runtime>(self, runtime: R, shutdown: Shutdown) -> io::Result<()> {
        let mut time = pin!(self.service.clone().keep_time(runtime.clone()));
        let mut served = pin!(serve(runtime, self.listener, Arc::new(self.service), shutdown));
        core::future::poll_fn(|cx| {
            if let Poll::Ready(result) = served.as_mut().poll(cx) {
                return Poll::Ready(result);
            }
            let _never = time.as_mut().poll(cx);
            Poll::Pending
        })
        .await
    }
}
