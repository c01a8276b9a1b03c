//! Names to addresses.

use core::net::SocketAddr;
use std::io;
use std::net::ToSocketAddrs;

/// The addresses of `host:port`; IPv6 in brackets. Asks the system's resolver and so may block for seconds: call it
/// where that does no harm, never in a task.
///
/// # Errors
/// When there is no port, the port is above 65535, or the name does not resolve. The message names the address.
pub fn resolve(address: &str) -> io::Result<Vec<SocketAddr>> {
    let found = address
        .to_socket_addrs()
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

    #[test]
    fn what_is_no_address_is_named_in_the_error() {
        for bad in ["", "127.0.0.1", "127.0.0.1:65536", "::1:", "[::1]", "127.0.0.1:x"] {
            let error = resolve(bad).expect_err(bad);
            assert!(error.to_string().contains(&format!("{bad:?}")), "{error}");
        }
    }
}
