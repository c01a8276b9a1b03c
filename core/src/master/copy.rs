//! The doors for copies between segments.

use super::shard::Copying;
use super::{CopyEndError, CopyError, CopyTask, Master, Placement, Quiet, Ready};
use crate::checksum::stored_len;
use crate::id::{Caller, ObjectId, SegmentId};
use crate::key::Key;
use crate::space::MAX_REPLICAS;
use crate::space::NoSpace;
use crate::time::Instant;

impl Master {
    /// Begins a copy of an object to another segment; the source is kept until it ends (S0A-086). One copy an object at
    /// a time; it is given up after the discard time-out, like a put.
    pub fn copy_start(
        &mut self,
        now: Instant,
        caller: Caller,
        key: Key<'_>,
        to: SegmentId,
    ) -> Result<CopyTask, CopyError> {
        let now = self.clock.observe(now);
        let copier = self.member_id(caller).ok_or(CopyError::Unregistered)?;
        let slot = self.shard.peek(caller.tenant, key, self.hash(caller, key)).ok_or(CopyError::NotFound)?;
        let (id, object) = self.shard.object(slot).ok_or(CopyError::NotFound)?;
        if !object.is_complete() {
            return Err(CopyError::NotReady);
        }
        if self.shard.copying(id) == Copying::Yes {
            return Err(CopyError::Copying);
        }
        let replicas = self.shard.locations(object);
        if replicas.iter().any(|location| location.segment == to) {
            return Err(CopyError::Exists);
        }
        if replicas.len() >= MAX_REPLICAS {
            return Err(CopyError::Replicas);
        }
        let from = *replicas.iter().find(|location| location.ready == Ready::Yes).ok_or(CopyError::Silent)?;
        let len = stored_len(object.len).unwrap_or(object.len).min(from.extent.len());
        let grant = self.control.space.allocate_in(to, from.extent.len()).map_err(|error| match error {
            NoSpace::NoHole { largest_hole } => CopyError::NoHole { largest_hole },
            NoSpace::NeverFits { largest_segment } => CopyError::NoHole { largest_hole: largest_segment },
            NoSpace::NoSegments => CopyError::Segment,
        })?;
        let ticket = self.control.ticket(&grant);
        let started = ticket.and_then(|_| self.shard.copy_start(now, slot, copier, from.segment, &grant));
        let (Some(object), Some(ticket)) = (started, ticket) else {
            let _ = self.control.space.free(grant);
            return Err(CopyError::Segment);
        };
        self.watch();
        let to = Placement { segment: to, extent: grant.extent, ticket };
        Ok(CopyTask { object, from, to, len })
    }

    /// Ends a copy whose writes have all completed: the object has one more replica.
    pub fn copy_end(&mut self, now: Instant, caller: Caller, object: ObjectId) -> Result<(), CopyEndError> {
        let now = self.clock.observe(now);
        let copier = self.member_id(caller).ok_or(CopyEndError::Owner)?;
        let ended = self.shard.copy_end(now, object, copier);
        self.settle(now);
        ended
    }

    /// Gives a copy up.
    pub fn copy_abort(
        &mut self,
        now: Instant,
        caller: Caller,
        object: ObjectId,
        quiet: Quiet,
    ) -> Result<(), CopyEndError> {
        let now = self.clock.observe(now);
        let copier = self.member_id(caller).ok_or(CopyEndError::Owner)?;
        let aborted = self.shard.copy_abort(now, object, copier, quiet);
        self.settle(now);
        aborted
    }
}
