//! The segments of a master of the benchmark's own (S0A-008, S0A-009).

use core::net::SocketAddr;

use springtide::{ClientConfig, Member, NodeConfig, Runtime, Tokio};

use crate::commands::pool::failed;
use crate::exit::Failure;

/// Members of this process that lend memory. Nothing is written into it, so that it takes none. They register again by
/// themselves when the master forgot them.
pub(super) struct Lenders {
    runtime: Tokio,
    member: Member<Tokio>,
}

impl Lenders {
    /// As many segments of `len` bytes each, one a member, at the master at `master`.
    pub(super) fn new(runtime: &Tokio, master: SocketAddr, segments: u16, len: u64) -> Result<Self, Failure> {
        let runtime = runtime.clone();
        let lent = async {
            let mut member = Member::join(ClientConfig::new([master]), runtime.clone()).await?;
            for number in 0..segments {
                let name = Some(format!("segment-{number}"));
                member.mount_as(&NodeConfig { name, ..NodeConfig::new([master], len) }).await?;
            }
            Ok(member)
        };
        let member = runtime.block_on(lent).map_err(|error| failed("cannot lend segments", &error))?;
        Ok(Self { runtime, member })
    }

    /// Takes them all back.
    pub(super) fn close(self) {
        self.runtime.block_on(self.member.close());
    }
}
