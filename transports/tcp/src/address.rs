//! Addresses as bytes: `1, family (4 or 6), IP, port u16, incarnation u128`, little endian.

use core::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use springtide_core::id::Incarnation;

/// First byte of an address.
const VERSION: u8 = 1;

/// Appends the address of `owner` at `socket`.
pub(crate) fn encode(socket: SocketAddr, owner: Incarnation, out: &mut Vec<u8>) {
    out.push(VERSION);
    match socket.ip() {
        IpAddr::V4(ip) => {
            out.push(4);
            out.extend_from_slice(&ip.octets());
        }
        IpAddr::V6(ip) => {
            out.push(6);
            out.extend_from_slice(&ip.octets());
        }
    }
    out.extend_from_slice(&socket.port().to_le_bytes());
    out.extend_from_slice(&owner.0.to_le_bytes());
}

/// Who is at which socket address; `None` if `bytes` is no address of ours.
pub(crate) fn decode(bytes: &[u8]) -> Option<(SocketAddr, Incarnation)> {
    let (ip, rest) = match bytes {
        [VERSION, 4, rest @ ..] => {
            let (ip, rest) = rest.split_first_chunk::<4>()?;
            (IpAddr::V4(Ipv4Addr::from(*ip)), rest)
        }
        [VERSION, 6, rest @ ..] => {
            let (ip, rest) = rest.split_first_chunk::<16>()?;
            (IpAddr::V6(Ipv6Addr::from(*ip)), rest)
        }
        _ => return None,
    };
    let (port, owner) = rest.split_first_chunk::<2>()?;
    let owner: &[u8; 16] = owner.try_into().ok()?;
    Some((SocketAddr::new(ip, u16::from_le_bytes(*port)), Incarnation(u128::from_le_bytes(*owner))))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_families_come_back_and_nothing_else_does() {
        for text in ["127.0.0.1:50051", "[::1]:65535", "10.0.0.1:0"] {
            let (socket, owner) = (text.parse().unwrap(), Incarnation(7 << 100));
            let mut bytes = Vec::new();
            encode(socket, owner, &mut bytes);
            assert_eq!(decode(&bytes), Some((socket, owner)));
            for cut in 0..bytes.len() {
                assert_eq!(decode(&bytes[..cut]), None);
            }
            bytes.push(0);
            assert_eq!(decode(&bytes), None);
        }
    }
}
