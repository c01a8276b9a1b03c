//! Copying an object to one more segment.

use springtide_core::checksum::{Checksum, stored_len};
use springtide_core::error::Code;
use springtide_core::ticket::Ticket;
use springtide_core::time::Instant;
use springtide_core::transfer::{Quiet, Transfer, Verb};
use springtide_core::wire::codec;
use springtide_core::wire::message::{self, CopyEnd, CopyPlan, CopyStart};
use springtide_driver::Runtime;

use crate::memory::Lease;
use crate::parts::Parts;
use crate::{CallKind, Client, Error, verify};

impl<R: Runtime> Client<R> {
    /// Gives `key` one more replica, on the segment called `to`. The bytes pass through this process, and are checked
    /// before they are written.
    ///
    /// # Errors
    /// [`Code::OBJECT_NOT_FOUND`], [`Code::SEGMENT_NOT_FOUND`], [`Code::REPLICA_ALREADY_EXISTS`] when the segment holds
    /// one, [`Code::OBJECT_HAS_REPLICATION_TASK`] while it is being copied, [`Code::NO_AVAILABLE_HANDLE`],
    /// [`Code::CHECKSUM_MISMATCH`], [`Code::TRANSFER_FAIL`].
    pub async fn copy(&self, key: &[u8], to: &str) -> Result<(), Error> {
        self.counted(CallKind::Copy, self.copy_one(key, to)).await
    }

    async fn copy_one(&self, key: &[u8], to: &str) -> Result<(), Error> {
        let deadline = self.deadline();
        let start = CopyStart { key, to };
        let reply =
            self.0.master.call(message::COPY_START, deadline, |body| codec::put(body, &start)).await?;
        let plan: CopyPlan = codec::whole(&reply.body)?;
        let (moved, quiet) = self.move_copy(&plan, deadline).await;
        let CopyPlan { object, .. } = plan;
        let end = CopyEnd { object, to: plan.to.segment, good: moved.is_ok(), quiet: quiet == Quiet::Yes };
        let ended = self.0.master.call(message::COPY_END, deadline, |body| codec::put(body, &end)).await;
        moved?;
        ended?;
        Ok(())
    }

    /// Reads, checks, writes. Says also whether a write may still land.
    async fn move_copy(&self, plan: &CopyPlan, deadline: Instant) -> (Result<(), Error>, Quiet) {
        let stored = match plan.checksum {
            Checksum::None => Some(plan.len),
            Checksum::Crc32c(_) => stored_len(plan.len),
        };
        let fits = stored.filter(|stored| *stored <= plan.to.extent.len());
        let Some(stored) = fits else { return (Err(Code::INVALID_REPLICA.into()), Quiet::Yes) };
        if stored == 0 {
            return (Ok(()), Quiet::Yes);
        }
        let mut lease = match self.read_copy(plan, stored, deadline).await {
            Ok(lease) => lease,
            Err(error) => return (Err(error), Quiet::Yes),
        };
        let (written, quiet) = self.write_copy(plan, &lease, stored, deadline).await;
        if quiet == Quiet::No {
            lease.spoil();
        }
        (written, quiet)
    }

    async fn read_copy(&self, plan: &CopyPlan, stored: u64, deadline: Instant) -> Result<Lease, Error> {
        let mut lease = self.0.scratch.take(stored)?;
        let route = self.0.routes.find(&self.0.master, plan.from.segment, deadline).await?;
        let into = lease.slice(0, stored);
        let read = Transfer {
            verb: Verb::Read,
            local: into.region(),
            at: into.at,
            target: route.target,
            to: plan.from.offset,
            ticket: None,
            len: stored,
        };
        lease.take_off();
        let ended = self.0.lane.transfer(&[read], deadline).await?;
        lease.land();
        if let Some((_, failure)) = ended.failed.first() {
            if ended.outcome.quiet() == Quiet::No {
                lease.spoil();
            }
            self.0.routes.forget(plan.from.segment, route);
            return Err(Error::new(failure.code(), failure));
        }
        if verify::is_whole(&Parts::one(lease.slice(0, plan.len)), plan.checksum) {
            Ok(lease)
        } else {
            Err(Code::CHECKSUM_MISMATCH.into())
        }
    }

    async fn write_copy(
        &self,
        plan: &CopyPlan,
        lease: &Lease,
        stored: u64,
        deadline: Instant,
    ) -> (Result<(), Error>, Quiet) {
        let message::Placement { segment, extent, serial, tag } = plan.to;
        let route = match self.0.routes.find(&self.0.master, segment, deadline).await {
            Ok(route) => route,
            Err(error) => return (Err(error), Quiet::Yes),
        };
        let ticket = Ticket { owner: route.owner, segment, extent, serial, term: plan.term, tag };
        let admitted = self.0.lane.with(self.0.runtime.now(), |lane, _| lane.admit(&ticket));
        let ticket = match admitted {
            Ok(ticket) => ticket,
            Err(error) => return (Err(Error::new(Code::TRANSFER_FAIL, error)), Quiet::Yes),
        };
        let from = lease.slice(0, stored);
        let write = Transfer {
            verb: Verb::Write,
            local: from.region(),
            at: from.at,
            target: route.target,
            to: extent.offset(),
            ticket: Some(ticket),
            len: stored,
        };
        let ended = self.0.lane.transfer(&[write], deadline).await;
        self.0.lane.with(self.0.runtime.now(), |lane, _| lane.retire(ticket));
        match ended {
            Err(error) => (Err(error.into()), Quiet::Yes),
            Ok(ended) => match ended.failed.first() {
                None => (Ok(()), Quiet::Yes),
                Some((_, failure)) => {
                    self.0.routes.forget(segment, route);
                    (Err(Error::new(failure.code(), failure)), Quiet::No)
                }
            },
        }
    }
}
