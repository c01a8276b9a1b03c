//! Addresses of services: read from the command line, resolved with a deadline.

use core::fmt;
use core::net::SocketAddr;
use core::time::Duration;
use std::net::ToSocketAddrs;
use std::sync::mpsc;
use std::thread;

use serde::{Serialize, Serializer};
use springtide_core::address::{HostPort, Reach};

use crate::exit::Failure;

/// Where the master listens unless told otherwise.
pub const RPC_PORT: u16 = 50_051;
/// Where metrics and health are served unless told otherwise.
pub const HTTP_PORT: u16 = 9_003;
/// How long a name may take to resolve.
pub const RESOLVE: Duration = Duration::from_secs(4);

/// A host and a port, as [`HostPort`] but owning its text.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Address {
    /// A name or an IP address, IPv6 without brackets.
    pub host: String,
    /// The port; 0 to listen on a free one.
    pub port: u16,
}

impl Address {
    /// Reads an address of an RPC service; without a port it is [`RPC_PORT`].
    pub fn rpc(text: &str) -> Result<Self, String> {
        Self::parse(text, RPC_PORT)
    }

    /// Reads an address to listen on; without a port the system chooses one.
    pub fn listen(text: &str) -> Result<Self, String> {
        Self::parse(text, 0)
    }

    /// Reads an address of an RPC service to connect to: port 0 is refused.
    pub fn peer(text: &str) -> Result<Self, String> {
        let address = Self::rpc(text)?;
        match (address.port, address.borrowed().reach()) {
            (0, _) => Err(format!(
                "{text:?} has port 0, which nobody can connect to; name the port that the service printed"
            )),
            (_, Reach::Any) => {
                Err(format!("{text:?} stands for every address of a machine; name one of them"))
            }
            _ => Ok(address),
        }
    }

    fn parse(text: &str, default_port: u16) -> Result<Self, String> {
        let HostPort { host, port } =
            HostPort::parse(text, default_port).map_err(|error| error.to_string())?;
        Ok(Self { host: host.to_owned(), port })
    }

    /// The same, borrowed.
    pub fn borrowed(&self) -> HostPort<'_> {
        HostPort { host: &self.host, port: self.port }
    }

    /// The socket addresses that the host stands for, at least one. Fails after [`RESOLVE`] at the latest, even if
    /// the system's resolver still waits.
    pub fn resolve(&self) -> Result<Vec<SocketAddr>, Failure> {
        let unknown = |why: &dyn fmt::Display| {
            Failure::new(format_args!("cannot resolve {:?}: {why}", self.host))
                .advise("check the name, or write an IP address")
        };
        if let Some(ip) = self.borrowed().ip() {
            return Ok(vec![SocketAddr::new(ip, self.port)]);
        }
        let (tell, hear) = mpsc::channel();
        let (host, port) = (self.host.clone(), self.port);
        // The system's resolver cannot be cancelled; a thread that waits for it in vain ends with the process.
        thread::spawn(move || tell.send((host.as_str(), port).to_socket_addrs().map(Vec::from_iter)));
        match hear.recv_timeout(RESOLVE) {
            Ok(Ok(found)) if !found.is_empty() => Ok(found),
            Ok(Ok(_)) => Err(unknown(&"it has no address")),
            Ok(Err(error)) => Err(unknown(&error)),
            Err(_) => Err(unknown(&"no answer in time")),
        }
    }
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.borrowed().to_string())
    }
}

impl Serialize for Address {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

/// Where to serve HTTP, or that it is not served.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Http {
    /// Not at all.
    Off,
    /// There.
    At(Address),
}

impl Http {
    /// Reads `off` or an address; without a port it is [`HTTP_PORT`].
    pub fn parse(text: &str) -> Result<Self, String> {
        if text == "off" { Ok(Self::Off) } else { Address::parse(text, HTTP_PORT).map(Self::At) }
    }
}

/// Reads the host that peers are told: a name or an IP address of one machine, without a port and without a zone.
pub fn advertised(text: &str) -> Result<String, String> {
    let host = HostPort::parse(text, 0).map_err(|error| error.to_string())?;
    if host.port != 0 {
        return Err(format!(
            "{text:?} has a port; write the host alone, the port is the one that is listened on"
        ));
    }
    if host.reach() == Reach::Any {
        return Err(format!(
            "{text:?} stands for every address of a machine; advertise one that peers can reach"
        ));
    }
    if host.host.contains('%') {
        return Err(format!(
            "{text:?} has a zone, which names an interface of this machine and none of its peers; advertise \
             an address without one"
        ));
    }
    Ok(host.host.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_kind_has_its_default_port() {
        assert_eq!(Address::rpc("node-a").unwrap().port, RPC_PORT);
        assert_eq!(Address::listen("::1").unwrap().to_string(), "[::1]:0");
        assert_eq!(
            Http::parse("node-a"),
            Ok(Http::At(Address { host: "node-a".to_owned(), port: HTTP_PORT }))
        );
        assert_eq!(Http::parse("off"), Ok(Http::Off));
    }

    #[test]
    fn nobody_connects_to_port_zero_or_to_every_address() {
        for text in ["node-a:0", "0.0.0.0", "[::]:7000", "node-a:65536"] {
            assert!(Address::peer(text).unwrap_err().contains(text), "{text}");
        }
    }

    #[test]
    fn only_reachable_hosts_are_advertised() {
        assert_eq!(advertised("2001:db8::1"), Ok("2001:db8::1".to_owned()));
        for text in ["0.0.0.0", "::", "::ffff:0.0.0.0", "fe80::1%eth0", "[fe80::1%eth0]", "node-a:7000", ""] {
            assert!(advertised(text).unwrap_err().contains(&format!("{text:?}")), "{text}");
        }
    }

    #[test]
    fn ip_addresses_resolve_to_themselves() {
        let found = Address::peer("[2001:db8::1]:9000").unwrap().resolve();
        assert_eq!(found, Ok(vec!["[2001:db8::1]:9000".parse().unwrap()]));
    }

    #[test]
    fn a_name_that_does_not_exist_fails_in_time_and_says_so() {
        let error = Address::peer("node-a.invalid").unwrap().resolve().unwrap_err().to_string();
        assert!(error.contains("node-a.invalid") && error.contains("IP address"), "{error}");
    }
}
