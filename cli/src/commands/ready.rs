//! What a service says when it is ready, and what is said about where it listens.

use core::fmt;

use springtide_core::address::{HostPort, Reach};

use crate::address::Address;

/// Which service.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Role {
    /// `springtide master`.
    Master,
    /// `springtide node`.
    Node,
}

/// The line on standard output by which a service says that it serves, and where. Scripts may read it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Ready {
    /// Which service.
    pub role: Role,
    /// Where it serves, with the port that it was given.
    pub address: Address,
}

impl Ready {
    /// Reads the line; `None` if `line` is another one.
    pub fn parse(line: &str) -> Option<Self> {
        let (role, rest) = [Role::Master, Role::Node].into_iter().find_map(|role| {
            line.trim_end().strip_prefix(&format!("springtide {role}")).map(|rest| (role, rest))
        })?;
        let address = Address::rpc(rest.strip_prefix(" ready at ")?).ok()?;
        (address.port != 0).then_some(Self { role, address })
    }
}

impl fmt::Display for Role {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Master => "master",
            Self::Node => "node",
        })
    }
}

impl fmt::Display for Ready {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "springtide {} ready at {}", self.role, self.address)
    }
}

/// What to say at start about serving at `listen`: bytes and keys go in plain text, so everybody who reaches the
/// address reads them and may connect. `None` if only this machine does.
pub fn plain_text(listen: HostPort<'_>) -> Option<String> {
    let who = match listen.reach() {
        Reach::Loopback => return None,
        Reach::Any => "every network of this machine",
        Reach::Network => "a network",
    };
    Some(format!(
        "serving in plain text on {listen}, which {who} reaches; use it only where everybody is trusted"
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_line_reads_back() {
        for role in [Role::Master, Role::Node] {
            let ready = Ready { role, address: Address { host: "2001:db8::1".to_owned(), port: 7 } };
            assert_eq!(Ready::parse(&format!("{ready}\n")), Some(ready));
        }
        let everywhere = Ready::parse("springtide master ready at 0.0.0.0:7").unwrap();
        assert_eq!(everywhere.address.to_string(), "0.0.0.0:7");
        for line in
            ["", "springtide master", "springtide node ready at nowhere:0", "springtide cli ready at a:1"]
        {
            assert_eq!(Ready::parse(line), None, "{line}");
        }
    }

    #[test]
    fn plain_text_is_said_where_others_can_listen() {
        let said = |text| plain_text(HostPort::parse(text, 1).unwrap());
        assert_eq!((said("127.0.0.1"), said("localhost"), said("::1")), (None, None, None));
        assert!(said("0.0.0.0").unwrap().contains("0.0.0.0:1, which every network"));
        assert!(said("192.0.2.7").unwrap().contains("plain text on 192.0.2.7:1"));
    }
}
