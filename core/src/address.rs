//! Addresses as people write them: a host, and a port that may be left out.
//!
//! | written | host | port |
//! | --- | --- | --- |
//! | `node-a`, `node-a:7000` | `node-a` | the default, 7000 |
//! | `192.0.2.7:7000` | `192.0.2.7` | 7000 |
//! | `2001:db8::1`, `[2001:db8::1]` | `2001:db8::1` | the default |
//! | `[fe80::1%eth0]:9000` | `fe80::1%eth0` | 9000 |
//!
//! More than one colon outside brackets means IPv6 without a port; there is no guessing at its last group.

use core::fmt;
use core::net::{IpAddr, Ipv6Addr, SocketAddr};

use crate::error::Code;

/// A host name or IP address, and a port (S0A-053, S0B-041). Displays so that [`HostPort::parse`] reads it back.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct HostPort<'a> {
    /// A name, an IPv4 address or an IPv6 address (without brackets, with its zone if it has one).
    pub host: &'a str,
    /// The port; 0 asks the system for a free one.
    pub port: u16,
}

/// Whom an address can be seen by, as far as its text tells.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Reach {
    /// This machine alone: `127.0.0.0/8`, `::1`, `localhost`.
    Loopback,
    /// Every interface: good to listen on, of no use to a peer (`0.0.0.0`, `::`).
    Any,
    /// One address or name that others may reach.
    Network,
}

/// Text that is no address, and what is wrong with it. Code [`Code::INVALID_PARAMS`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct AddressError<'a> {
    /// What was to be read.
    pub input: &'a str,
    /// What is wrong with it.
    pub fault: Fault,
}

/// What is wrong with an address.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Fault {
    /// No text at all.
    Empty,
    /// A port without a host in front.
    NoHost,
    /// A character that stands in no host name and no IP address; holds it.
    Character(char),
    /// A colon with nothing behind it.
    NoPort,
    /// What stands behind the colon is no number of 0 to 65535.
    Port,
    /// One bracket without the other, or text between `]` and the port.
    Brackets,
    /// What stands in brackets, or has several colons, is no IPv6 address.
    Ipv6,
}

impl<'a> HostPort<'a> {
    /// Reads `input`; where it names no port, the port is `default_port`.
    pub fn parse(input: &'a str, default_port: u16) -> Result<Self, AddressError<'a>> {
        split(input, default_port).map_err(|fault| AddressError { input, fault })
    }

    /// The IP address, unless the host is a name or has a zone.
    pub fn ip(&self) -> Option<IpAddr> {
        self.host.parse().ok()
    }

    /// Whom this address can be seen by. A name counts as [`Reach::Network`], except `localhost`.
    pub fn reach(&self) -> Reach {
        match self.ip().map(|ip| ip.to_canonical()) {
            Some(ip) if ip.is_unspecified() => Reach::Any,
            Some(ip) if ip.is_loopback() => Reach::Loopback,
            None if self.host.eq_ignore_ascii_case("localhost") => Reach::Loopback,
            _ => Reach::Network,
        }
    }
}

/// Whether peers can use an address that this machine listens on as it is. Not if it stands for every address of a
/// machine, nor if it has a zone: that is a number which only this machine gave to one of its interfaces.
pub fn usable_by_peers(listening: SocketAddr) -> bool {
    let zone = matches!(listening, SocketAddr::V6(listening) if listening.scope_id() != 0);
    !zone && !listening.ip().to_canonical().is_unspecified()
}

fn split(input: &str, default_port: u16) -> Result<HostPort<'_>, Fault> {
    if input.is_empty() {
        return Err(Fault::Empty);
    }
    if let Some(bad) = input.chars().find(|&c| !allowed(c)) {
        return Err(Fault::Character(bad));
    }
    if let Some(rest) = input.strip_prefix('[') {
        let (host, behind) = rest.split_once(']').ok_or(Fault::Brackets)?;
        check_ipv6(host)?;
        return match behind.strip_prefix(':') {
            _ if behind.is_empty() => Ok(HostPort { host, port: default_port }),
            Some(port) => Ok(HostPort { host, port: read_port(port)? }),
            None => Err(Fault::Brackets),
        };
    }
    if input.contains(['[', ']']) {
        return Err(Fault::Brackets);
    }
    match input.split_once(':') {
        Some((_, more)) if more.contains(':') => {
            check_ipv6(input)?;
            Ok(HostPort { host: input, port: default_port })
        }
        Some((host, port)) => Ok(HostPort { host: name(host)?, port: read_port(port)? }),
        None => Ok(HostPort { host: name(input)?, port: default_port }),
    }
}

/// Whether `c` may stand in an address at all. Names may hold more than ASCII; blanks, quotes and the signs that end
/// a host in a URL are typing errors.
fn allowed(c: char) -> bool {
    c.is_alphanumeric() || matches!(c, '.' | '-' | '_' | ':' | '%' | '[' | ']' | '+')
}

fn name(host: &str) -> Result<&str, Fault> {
    match host.chars().find(|c| matches!(c, '%' | '+')) {
        _ if host.is_empty() => Err(Fault::NoHost),
        Some(bad) => Err(Fault::Character(bad)),
        None => Ok(host),
    }
}

fn check_ipv6(host: &str) -> Result<(), Fault> {
    let (ip, zone) = host.split_once('%').map_or((host, None), |(ip, zone)| (ip, Some(zone)));
    let zone_is_name = zone.is_none_or(|zone| !zone.is_empty() && !zone.contains(['%', ':', '[', ']']));
    if zone_is_name && ip.parse::<Ipv6Addr>().is_ok() { Ok(()) } else { Err(Fault::Ipv6) }
}

fn read_port(text: &str) -> Result<u16, Fault> {
    if text.is_empty() {
        return Err(Fault::NoPort);
    }
    if !text.bytes().all(|byte| byte.is_ascii_digit()) {
        return Err(Fault::Port);
    }
    text.parse().map_err(|_| Fault::Port)
}

impl fmt::Display for HostPort<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.host.contains(':') {
            write!(f, "[{}]:{}", self.host, self.port)
        } else {
            write!(f, "{}:{}", self.host, self.port)
        }
    }
}

impl AddressError<'_> {
    /// The public number: always [`Code::INVALID_PARAMS`].
    pub const fn code(&self) -> Code {
        Code::INVALID_PARAMS
    }
}

impl fmt::Display for AddressError<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{:?} is no address: {}; expected HOST, HOST:PORT, IPV6 or [IPV6]:PORT",
            self.input, self.fault
        )
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Empty => f.write_str("it is empty"),
            Self::NoHost => f.write_str("there is no host in front of the port"),
            Self::Character(c) => write!(f, "{c:?} cannot stand in an address"),
            Self::NoPort => f.write_str("there is no port behind the colon"),
            Self::Port => f.write_str("a port is a number from 0 to 65535"),
            Self::Brackets => f.write_str("brackets must enclose the whole IPv6 address, before the port"),
            Self::Ipv6 => f.write_str("this is no IPv6 address"),
        }
    }
}

impl core::error::Error for AddressError<'_> {}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::string::{String, ToString};
    use core::net::Ipv4Addr;
    use proptest::prelude::*;

    const DEFAULT: u16 = 12_001;

    #[test]
    fn reads_what_people_write() {
        let table = [
            ("node-a", "node-a", DEFAULT),
            ("node-a:7000", "node-a", 7000),
            ("192.0.2.7", "192.0.2.7", DEFAULT),
            ("192.0.2.7:7000", "192.0.2.7", 7000),
            ("2001:db8::1", "2001:db8::1", DEFAULT),
            ("[2001:db8::1]", "2001:db8::1", DEFAULT),
            ("[2001:db8::1]:9000", "2001:db8::1", 9000),
            ("fe80::1%eth0", "fe80::1%eth0", DEFAULT),
            ("[fe80::1%eth0]:9000", "fe80::1%eth0", 9000),
            ("::ffff:192.0.2.7", "::ffff:192.0.2.7", DEFAULT),
            ("::1", "::1", DEFAULT),
            ("[::]:0", "::", 0),
            ("node-a:0", "node-a", 0),
            ("node-a:65535", "node-a", 65_535),
            ("knoten-ä_1.example:80", "knoten-ä_1.example", 80),
        ];
        for (input, host, port) in table {
            assert_eq!(HostPort::parse(input, DEFAULT), Ok(HostPort { host, port }), "{input}");
        }
    }

    #[test]
    fn refuses_what_is_no_address_and_names_it() {
        let table = [
            ("node-a:", Fault::NoPort),
            (":7000", Fault::NoHost),
            ("node-a:70000", Fault::Port),
            ("node-a:65536", Fault::Port),
            ("node-a:-1", Fault::Port),
            ("node-a:+1", Fault::Port),
            ("node-a:7x", Fault::Port),
            ("[2001:db8::1", Fault::Brackets),
            ("2001:db8::1]:9", Fault::Brackets),
            ("[::1]9", Fault::Brackets),
            ("[::1]]:9", Fault::Brackets),
            ("[::1]:", Fault::NoPort),
            ("[node-a]:1", Fault::Ipv6),
            ("[192.0.2.7]:1", Fault::Ipv6),
            ("[]:1", Fault::Ipv6),
            ("node:a:b", Fault::Ipv6),
            ("fe80::1%", Fault::Ipv6),
            ("::1%a%b", Fault::Ipv6),
            ("[::1%a[b]:1", Fault::Ipv6),
            ("node%a", Fault::Character('%')),
            ("", Fault::Empty),
            (" node-a", Fault::Character(' ')),
            ("node-a\n", Fault::Character('\n')),
            ("tcp://node-a:1", Fault::Character('/')),
        ];
        for (input, fault) in table {
            let error = HostPort::parse(input, DEFAULT).unwrap_err();
            assert_eq!(error, AddressError { input, fault }, "{input}");
            let text = error.to_string();
            assert!(
                text.contains(&input.escape_debug().to_string()) && text.contains("[IPV6]:PORT"),
                "{text}"
            );
            assert_eq!(error.code().number(), -600);
        }
    }

    #[test]
    fn ipv6_is_written_in_brackets() {
        assert_eq!(HostPort { host: "2001:db8::1", port: 9000 }.to_string(), "[2001:db8::1]:9000");
        assert_eq!(HostPort { host: "node-a", port: 0 }.to_string(), "node-a:0");
    }

    #[test]
    fn knows_whom_an_address_reaches() {
        let table = [
            ("0.0.0.0", Reach::Any),
            ("[::]:1", Reach::Any),
            ("::ffff:0.0.0.0", Reach::Any),
            ("127.1.2.3", Reach::Loopback),
            ("::1", Reach::Loopback),
            ("::ffff:127.0.0.1", Reach::Loopback),
            ("LocalHost", Reach::Loopback),
            ("192.0.2.7", Reach::Network),
            ("node-a", Reach::Network),
            ("fe80::1%eth0", Reach::Network),
        ];
        for (input, reach) in table {
            assert_eq!(HostPort::parse(input, 0).unwrap().reach(), reach, "{input}");
        }
    }

    #[test]
    fn peers_cannot_use_every_address() {
        let usable = |text: &str| usable_by_peers(text.parse().unwrap());
        assert!(["192.0.2.7:1", "127.0.0.1:0", "[::1]:7", "[2001:db8::1]:7"].into_iter().all(usable));
        assert!(!["0.0.0.0:7", "[::]:7", "[::ffff:0.0.0.0]:7", "[fe80::1%2]:7"].into_iter().any(usable));
    }

    fn host() -> impl Strategy<Value = String> {
        prop_oneof![
            "[a-z0-9][a-z0-9._-]{0,20}",
            any::<Ipv4Addr>().prop_map(|ip| ip.to_string()),
            any::<Ipv6Addr>().prop_map(|ip| ip.to_string()),
            (any::<Ipv6Addr>(), "[a-z0-9]{1,8}").prop_map(|(ip, zone)| alloc::format!("{ip}%{zone}")),
        ]
    }

    proptest! {
        #[test]
        fn what_is_written_reads_back(host in host(), port: u16, default: u16) {
            let address = HostPort { host: &host, port };
            let written = address.to_string();
            prop_assert_eq!(HostPort::parse(&written, default), Ok(address));
        }

        #[test]
        fn any_text_is_read_or_refused(input in "[a1:.%\\[\\]+ -]{0,12}|\\PC*", port: u16) {
            if let Ok(address) = HostPort::parse(&input, port) {
                let written = address.to_string();
                prop_assert_eq!(HostPort::parse(&written, 0), Ok(address));
            }
        }
    }
}
