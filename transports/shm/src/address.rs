//! Where a transport listens, and what a peer must know about a piece of its memory.
//!
//! ```text
//! address       "shm1"  boot id 16  network namespace u64  life u128
//! description   "shmd"  life u128   region u64  length u64                      little endian
//! ```

use std::os::unix::fs::MetadataExt;

use springtide_transport::ControlError;

/// What two processes must share so that an abstract socket name means the same to both: the boot of one kernel, and
/// the network namespace that the name lives in.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Host {
    boot: [u8; 16],
    namespace: u64,
}

impl Host {
    /// Where this process runs.
    pub(crate) fn here() -> Result<Self, ControlError> {
        let system = |error: std::io::Error| ControlError::System(error.raw_os_error().unwrap_or(0));
        let text = std::fs::read_to_string("/proc/sys/kernel/random/boot_id").map_err(system)?;
        let namespace = std::fs::metadata("/proc/self/ns/net").map_err(system)?.ino();
        let mut boot = [0; 16];
        let digits = text.chars().filter_map(|c| c.to_digit(16));
        for (at, digit) in digits.take(32).enumerate() {
            boot[at / 2] = boot[at / 2] << 4 | digit as u8;
        }
        Ok(Self { boot, namespace })
    }
}

/// Where a transport listens. `life` is new with every transport, so nobody ever listens there again.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Address {
    pub(crate) host: Host,
    pub(crate) life: u128,
}

impl Address {
    const MARK: [u8; 4] = *b"shm1";

    pub(crate) fn encode(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(&Self::MARK);
        out.extend_from_slice(&self.host.boot);
        out.extend_from_slice(&self.host.namespace.to_le_bytes());
        out.extend_from_slice(&self.life.to_le_bytes());
    }

    pub(crate) fn decode(bytes: &[u8]) -> Option<Self> {
        let rest = bytes.strip_prefix(&Self::MARK)?;
        let (boot, rest) = rest.split_first_chunk()?;
        let (namespace, rest) = rest.split_first_chunk()?;
        let host = Host { boot: *boot, namespace: u64::from_le_bytes(*namespace) };
        Some(Self { host, life: u128::from_le_bytes(rest.try_into().ok()?) })
    }
}

/// A piece of a peer's memory.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Description {
    /// Whose: the life in its address.
    pub(crate) life: u128,
    /// The owner's region id, as bits.
    pub(crate) region: u64,
    pub(crate) len: u64,
}

impl Description {
    const MARK: [u8; 4] = *b"shmd";

    pub(crate) fn encode(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(&Self::MARK);
        out.extend_from_slice(&self.life.to_le_bytes());
        out.extend_from_slice(&self.region.to_le_bytes());
        out.extend_from_slice(&self.len.to_le_bytes());
    }

    pub(crate) fn decode(bytes: &[u8]) -> Option<Self> {
        let rest = bytes.strip_prefix(&Self::MARK)?;
        let (life, rest) = rest.split_first_chunk()?;
        let (region, rest) = rest.split_first_chunk()?;
        Some(Self {
            life: u128::from_le_bytes(*life),
            region: u64::from_le_bytes(*region),
            len: u64::from_le_bytes(rest.try_into().ok()?),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_come_back_whole_and_nothing_else_does() {
        let address = Address { host: Host::here().unwrap(), life: 7 << 100 };
        let description = Description { life: 9 << 90, region: 3 << 32, len: 77 };
        let (mut a, mut d) = (Vec::new(), Vec::new());
        address.encode(&mut a);
        description.encode(&mut d);
        assert_eq!((Address::decode(&a), Description::decode(&d)), (Some(address), Some(description)));
        assert_eq!((Address::decode(&d), Description::decode(&a)), (None, None));
        for cut in 0..a.len() {
            assert_eq!(Address::decode(&a[..cut]), None);
        }
        for cut in 0..d.len() {
            assert_eq!(Description::decode(&d[..cut]), None);
        }
        a.push(0);
        d.push(0);
        assert_eq!((Address::decode(&a), Description::decode(&d)), (None, None));
    }

    #[test]
    fn this_host_is_itself() {
        let here = Host::here().unwrap();
        assert_eq!(here, Host::here().unwrap());
        assert_ne!(here.boot, [0; 16]);
    }
}
