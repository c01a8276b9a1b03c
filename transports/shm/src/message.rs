//! What two transports say over their socket: whom they are, and which files hold which memory.
//!
//! Every message is [`LEN`] bytes: kind, then numbers, little endian; files go along as descriptors.

/// Length of every message, in bytes.
pub(crate) const LEN: usize = 40;
/// The version of messages, boards and ring entries together. Another one is refused with [`Message::Refuse`].
pub(crate) const VERSION: u32 = 1;

/// One message.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Message {
    /// First from the initiator, with its board and bell: which life it wants to talk to.
    Hello { version: u32, to: u128 },
    /// The owner's answer, with its board and bell.
    Welcome,
    /// The owner's answer when it will not: the version it speaks.
    Refuse { version: u32 },
    /// Initiator: where is the memory of this region of yours?
    Want { region: u64 },
    /// Owner: it is `len` bytes from `offset` on in the file that comes along.
    Mapped { region: u64, offset: u64, len: u64 },
    /// Owner: it is `len` bytes of my private memory from `address` on.
    Private { region: u64, address: u64, len: u64 },
    /// Owner: there is no such region, or not any more.
    Missing { region: u64 },
    /// Initiator: my writes may come from this region: `len` bytes from `offset` on in the file that comes along.
    Source { region: u64, offset: u64, len: u64 },
    /// Initiator: not from this region any more.
    Drop { region: u64 },
}

impl Message {
    pub(crate) fn encode(&self) -> [u8; LEN] {
        let (kind, version, [a, b, c]) = match *self {
            Self::Hello { version, to } => (1, version, [to as u64, (to >> 64) as u64, 0]),
            Self::Welcome => (2, 0, [0; 3]),
            Self::Refuse { version } => (3, version, [0; 3]),
            Self::Want { region } => (4, 0, [region, 0, 0]),
            Self::Mapped { region, offset, len } => (5, 0, [region, offset, len]),
            Self::Private { region, address, len } => (6, 0, [region, address, len]),
            Self::Missing { region } => (7, 0, [region, 0, 0]),
            Self::Source { region, offset, len } => (8, 0, [region, offset, len]),
            Self::Drop { region } => (9, 0, [region, 0, 0]),
        };
        let mut out = [0; LEN];
        out[0] = kind;
        out[4..8].copy_from_slice(&version.to_le_bytes());
        for (at, word) in [a, b, c].into_iter().enumerate() {
            out[8 + at * 8..16 + at * 8].copy_from_slice(&word.to_le_bytes());
        }
        out
    }

    /// The message in `bytes`; `None` if it is none that this version knows.
    pub(crate) fn decode(bytes: &[u8]) -> Option<Self> {
        let bytes: &[u8; LEN] = bytes.try_into().ok()?;
        let long = |at: usize| u64::from_le_bytes(core::array::from_fn(|i| bytes[at + i]));
        let version = u32::from_le_bytes([bytes[4], bytes[5], bytes[6], bytes[7]]);
        let (region, b, len) = (long(8), long(16), long(24));
        Some(match bytes[0] {
            1 => Self::Hello { version, to: u128::from(region) | u128::from(b) << 64 },
            2 => Self::Welcome,
            3 => Self::Refuse { version },
            4 => Self::Want { region },
            5 => Self::Mapped { region, offset: b, len },
            6 => Self::Private { region, address: b, len },
            7 => Self::Missing { region },
            8 => Self::Source { region, offset: b, len },
            9 => Self::Drop { region },
            _ => return None,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_message_comes_back() {
        let (region, offset, len, address) = (1 << 33, 2 << 40, 3 << 50, u64::MAX);
        let all = [
            Message::Hello { version: 7, to: u128::MAX - 5 },
            Message::Welcome,
            Message::Refuse { version: 9 },
            Message::Want { region },
            Message::Mapped { region, offset, len },
            Message::Private { region, address, len },
            Message::Missing { region },
            Message::Source { region, offset, len },
            Message::Drop { region },
        ];
        for message in all {
            assert_eq!(Message::decode(&message.encode()), Some(message));
            assert_eq!(Message::decode(&message.encode()[1..]), None);
        }
        for kind in (10..=255).chain([0]) {
            assert_eq!(Message::decode(&[kind; LEN]), None);
        }
    }
}
