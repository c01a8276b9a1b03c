//! Sockets: listening, accepting, connecting, and the options that find dead peers.

use core::net::SocketAddr;
use core::time::Duration;
use std::os::fd::OwnedFd;

use rustix::io::Errno;
use rustix::net::{self, AddressFamily, SocketFlags, SocketType, sockopt};

use crate::Config;

const FLAGS: SocketFlags = SocketFlags::NONBLOCK.union(SocketFlags::CLOEXEC);
/// Connections that may wait to be accepted.
const BACKLOG: i32 = 1_024;
/// Probes without an answer after which an idle peer counts as dead.
const PROBES: u32 = 3;

const fn family(address: SocketAddr) -> AddressFamily {
    match address {
        SocketAddr::V4(_) => AddressFamily::INET,
        SocketAddr::V6(_) => AddressFamily::INET6,
    }
}

/// A listening socket and the address that it got.
pub(crate) fn listen(address: SocketAddr) -> Result<(OwnedFd, SocketAddr), Errno> {
    let socket = net::socket_with(family(address), SocketType::STREAM, FLAGS, None)?;
    sockopt::set_socket_reuseaddr(&socket, true)?;
    net::bind(&socket, &address)?;
    net::listen(&socket, BACKLOG)?;
    let bound = net::getsockname(&socket)?;
    Ok((socket, SocketAddr::try_from(bound).map_err(|_| Errno::AFNOSUPPORT)?))
}

/// The next connection that waits, if there is one.
pub(crate) fn accept(listener: &OwnedFd, config: &Config) -> Result<Option<OwnedFd>, Errno> {
    match net::accept_with(listener, FLAGS) {
        Ok(socket) => {
            set_options(&socket, config).map_err(|_| Errno::CONNABORTED)?;
            Ok(Some(socket))
        }
        Err(Errno::AGAIN) => Ok(None),
        Err(error) => Err(error),
    }
}

/// A socket on its way to `address`; writable once it is there.
pub(crate) fn connect(address: SocketAddr, config: &Config) -> Result<OwnedFd, Errno> {
    let socket = net::socket_with(family(address), SocketType::STREAM, FLAGS, None)?;
    set_options(&socket, config)?;
    match net::connect(&socket, &address) {
        Ok(()) | Err(Errno::INPROGRESS) => Ok(socket),
        Err(error) => Err(error),
    }
}

fn set_options(socket: &OwnedFd, config: &Config) -> Result<(), Errno> {
    let seconds = |time: Duration| Duration::from_secs(time.as_secs().max(1));
    sockopt::set_tcp_nodelay(socket, true)?;
    sockopt::set_socket_keepalive(socket, true)?;
    sockopt::set_tcp_keepidle(socket, seconds(config.keepalive))?;
    sockopt::set_tcp_keepintvl(socket, seconds(config.keepalive / PROBES))?;
    // Where the user time-out is known it decides, and this count does not.
    sockopt::set_tcp_keepcnt(socket, PROBES)?;
    let patience = u32::try_from(config.stall.as_millis()).unwrap_or(u32::MAX);
    sockopt::set_tcp_user_timeout(socket, patience)
}

#[cfg(test)]
mod tests {
    use super::*;
    use springtide_core::id::Incarnation;

    #[test]
    fn both_ends_find_a_dead_peer() {
        let config = Config::new(Incarnation(1));
        let (listener, address) = listen(([127, 0, 0, 1], 0).into()).unwrap();
        assert!(accept(&listener, &config).unwrap().is_none());
        let connected = connect(address, &config).unwrap();
        let accepted = accept(&listener, &config).unwrap().unwrap();
        for socket in [connected, accepted] {
            assert!(sockopt::tcp_nodelay(&socket).unwrap());
            assert!(sockopt::socket_keepalive(&socket).unwrap());
            assert_eq!(sockopt::tcp_keepidle(&socket).unwrap(), config.keepalive);
            assert_eq!(sockopt::tcp_keepintvl(&socket).unwrap(), Duration::from_secs(3));
            assert_eq!(sockopt::tcp_keepcnt(&socket).unwrap(), PROBES);
            assert_eq!(sockopt::tcp_user_timeout(&socket).unwrap(), 30_000);
        }
    }
}
