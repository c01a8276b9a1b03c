//! Names to addresses.

use core::net::SocketAddr;
use std::io;
use std::net::ToSocketAddrs;

use springtide_core::address::HostPort;

/// The addresses of `host:port`; IPv6 in brackets. Asks the system's resolver and so may block for seconds: call it
/// where that does no harm, never in a task.
///
/// # Errors
/// When there is no port, the port is above 65535, or the name does not resolve. The message names the address.
pub fn resolve(address: &str) -> io::Result<Vec<SocketAddr>> {
    let found = match HostPort::parse(address, 0) {
        // The system's parser takes no zone by name behind a bracket.
        Ok(parsed) if parsed.to_string() == address => (parsed.host, parsed.port).to_socket_addrs(),
        _ => address.to_socket_addrs(),
    };
    let found = found
        .map_err(|error| io::Error::new(error.kind(), format!("cannot resolve {address:?}: {error}")))?;
    let found: Vec<_> = found.collect();
    if found.is_empty() {
        return Err(io::Error::new(io::ErrorKind::NotFound, format!("{address:?} has no address")));
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn literals_need_no_resolver() {
        assert_eq!(resolve("127.0.0.1:0").unwrap(), ["127.0.0.1:0".parse().unwrap()]);
        assert_eq!(resolve("[::1]:65535").unwrap(), ["[::1]:65535".parse().unwrap()]);
    }

    /// Case 32: what a peer may be told, an IPv6 address with the name of an interface among it.
    #[test]
    fn a_zone_may_be_a_name() {
        let Ok(found) = resolve("[fe80::1%lo]:7000") else {
            springtide_house::skip!("needs IPv6 and an interface called lo");
        };
        let [SocketAddr::V6(found)] = found[..] else { panic!("{found:?}") };
        assert_eq!((found.ip().to_string().as_str(), found.port()), ("fe80::1", 7000));
        assert!(found.scope_id() > 0);
    }

    #[test]
    fn what_is_no_address_is_named_in_the_error() {
        for bad in ["", "127.0.0.1", "127.0.0.1:65536", "::1:", "[::1]", "127.0.0.1:x"] {
            let error = resolve(bad).expect_err(bad);
            assert!(error.to_string().contains(&format!("{bad:?}")), "{error}");
        }
    }
}
