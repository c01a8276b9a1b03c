//! Accepting connections.

use core::future::{Future, poll_fn};
use core::net::SocketAddr;
use core::pin::Pin;
use core::task::Poll;
use core::time::Duration;
use std::io;
use std::net::TcpListener;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;

use rustix::io::Errno;
use rustix::net::{SendFlags, SocketFlags, accept_with, send};
use springtide_core::error::Code;
use springtide_driver::{Alarm, Begun, Interest, Pause, Ready, Runtime, Shutdown};

use super::Service;
use super::guests::Guests;
use super::session::{Session, farewell};
use crate::stream;

/// What bounds a server and each of its connections.
#[derive(Clone, Copy, Debug)]
pub struct ServerConfig {
    /// Most connections; one more is told so and closed. Default 4,096.
    pub connections: usize,
    /// Most bytes of requests that are read, and handed to the service, at once. Default 256 KiB.
    pub read: usize,
    /// While more bytes of replies than this wait for their peer, nothing is read from it. Default 1 MiB.
    pub waiting: usize,
    /// Most parked requests of one connection. Default 1,024.
    pub parked: usize,
    /// A peer that takes none of its replies, or sends no more of a half-sent frame, for this long is cut off.
    /// Default 30 s. A peer that does not answer the network at all is found as fast.
    pub stall: Duration,
    /// How long a connection that is being closed may take to hand over its last replies. Default 1 s.
    pub grace: Duration,
    /// How long a connection looks for the next request before it sleeps. Default [`Pause::BOUND`].
    pub pause: Pause,
}

impl Default for ServerConfig {
    fn default() -> Self {
        Self {
            connections: 4_096,
            read: 256 << 10,
            waiting: 1 << 20,
            parked: 1_024,
            stall: Duration::from_secs(30),
            grace: Duration::from_secs(1),
            pause: Pause::default(),
        }
    }
}

/// A bound socket that will be served.
#[derive(Debug)]
pub struct Listener {
    socket: TcpListener,
    config: ServerConfig,
}

impl Listener {
    /// Listens on `address`; port 0 takes a free one.
    ///
    /// # Errors
    /// The system's, with the address in the message: taken, not of this host, or not permitted.
    pub fn bind(address: SocketAddr) -> io::Result<Self> {
        Self::bind_with(address, ServerConfig::default())
    }

    /// [`bind`](Self::bind) with bounds of one's own.
    ///
    /// # Errors
    /// As [`bind`](Self::bind).
    pub fn bind_with(address: SocketAddr, config: ServerConfig) -> io::Result<Self> {
        let bound = TcpListener::bind(address).and_then(|socket| {
            socket.set_nonblocking(true)?;
            Ok(Self { socket, config })
        });
        bound.map_err(|error| io::Error::new(error.kind(), format!("cannot listen on {address}: {error}")))
    }

    /// The address that peers connect to.
    ///
    /// # Errors
    /// The system's.
    pub fn local_addr(&self) -> io::Result<SocketAddr> {
        self.socket.local_addr()
    }
}

/// Serves every connection to `listener` with `service`, a task each, until `shutdown` begins and all connections
/// have ended, which takes at most [`ServerConfig::grace`].
///
/// # Errors
/// When the runtime cannot watch the listening socket.
pub async fn serve<R: Runtime, S: Service>(
    runtime: R,
    listener: Listener,
    service: Arc<S>,
    shutdown: Shutdown,
) -> io::Result<()> {
    let Listener { socket, config } = listener;
    let mut ready = runtime.ready(socket.into())?;
    let guests = Arc::new(Guests::default());
    let mut begun = shutdown.begun();
    let mut pause = FIRST_PAUSE;
    while let Some(accepted) = accept(&mut ready, &mut begun).await {
        match accepted {
            Ok(socket) => {
                pause = FIRST_PAUSE;
                if let Err(error) = welcome(&runtime, socket, &service, config, &shutdown, &guests) {
                    tracing::warn!(%error, "a connection cannot be served");
                }
            }
            Err(error) => match Trouble::of(&error) {
                Trouble::Theirs => {}
                Trouble::Ours => {
                    tracing::warn!(%error, ?pause, "no connection can be accepted for a while");
                    wait(&runtime, pause, &mut begun).await;
                    pause = (pause * 2).min(LONGEST_PAUSE);
                }
                Trouble::Fatal => return Err(error),
            },
        }
    }
    drop(ready);
    guests.gone().await;
    Ok(())
}

/// How long to wait for descriptors or memory before accepting is tried again.
const FIRST_PAUSE: Duration = Duration::from_millis(10);
const LONGEST_PAUSE: Duration = Duration::from_secs(1);

/// The next connection; `None` at shutdown.
async fn accept<Rd: Ready>(ready: &mut Rd, begun: &mut Begun) -> Option<io::Result<OwnedFd>> {
    poll_fn(|cx| {
        if Pin::new(&mut *begun).poll(cx).is_ready() {
            return Poll::Ready(None);
        }
        let flags = SocketFlags::NONBLOCK | SocketFlags::CLOEXEC;
        ready.poll_io(cx, Interest::Read, |fd| Ok(accept_with(fd, flags)?)).map(Some)
    })
    .await
}

fn welcome<R: Runtime, S: Service>(
    runtime: &R,
    socket: OwnedFd,
    service: &Arc<S>,
    config: ServerConfig,
    shutdown: &Shutdown,
    guests: &Arc<Guests>,
) -> io::Result<()> {
    let Some(guest) = guests.admit(config.connections) else {
        let mut last = Vec::new();
        farewell(&mut last, Code::BUSY, "this server has as many connections as it may; try again later");
        // A new socket has room for one line; if not, closing says enough.
        let _ = send(&socket, &last, SendFlags::NOSIGNAL);
        return Ok(());
    };
    stream::tune(socket.as_fd(), config.stall)?;
    let ready = runtime.ready(socket)?;
    let session = Session::new(runtime.clone(), ready, Arc::clone(service), config, shutdown.begun(), guest);
    drop(runtime.spawn(session));
    Ok(())
}

/// Waits for `pause`, or for the shutdown.
async fn wait<R: Runtime>(runtime: &R, pause: Duration, begun: &mut Begun) {
    let mut alarm = Alarm::new(runtime.clone());
    let until = runtime.now() + pause;
    poll_fn(|cx| {
        let shutdown = Pin::new(&mut *begun).poll(cx);
        if shutdown.is_ready() { shutdown } else { alarm.poll(cx, until) }
    })
    .await;
}

/// Who is to blame when a connection cannot be accepted.
enum Trouble {
    /// The peer went away in the meantime, or its network did.
    Theirs,
    /// This process or host has too little of something.
    Ours,
    /// The listening socket is of no use.
    Fatal,
}

impl Trouble {
    fn of(error: &io::Error) -> Self {
        match Errno::from_io_error(error) {
            Some(Errno::MFILE | Errno::NFILE | Errno::NOBUFS | Errno::NOMEM) => Self::Ours,
            Some(Errno::BADF | Errno::INVAL | Errno::NOTSOCK | Errno::OPNOTSUPP) | None => Self::Fatal,
            Some(_) => Self::Theirs,
        }
    }
}
