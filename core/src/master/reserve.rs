//! Extents granted ahead: puts without a round trip.

use alloc::vec::Vec;

use super::shard::Begin;
use super::{Master, PublishError, PutError, PutOptions, Started, Written};
use crate::checksum::Checksum;
use crate::id::{Caller, ObjectId, TenantId};
use crate::key::Key;
use crate::object::Phase;
use crate::time::Instant;

use super::put::Terms;
use super::room::Evict;

/// How many extents one reservation grants at most.
pub const MAX_RESERVE: u32 = 1_024;

impl Master {
    /// Grants up to `count` extents (at most [`MAX_RESERVE`]) of `len` bytes ahead, without keys; appends them to
    /// `out`. The same request again gets those of its extents that are still reserved. They are given up like puts,
    /// [`Started::ttl`] after they were granted, and freed by [`put_abort`](Self::put_abort).
    ///
    /// # Errors
    /// [`PutError`], only if not even one could be granted.
    pub fn reserve(
        &mut self,
        now: Instant,
        caller: Caller,
        len: u64,
        count: u32,
        options: &PutOptions<'_>,
        out: &mut Vec<Started>,
    ) -> Result<(), PutError> {
        let now = self.clock.observe(now);
        let terms = self.terms(caller, len, options)?;
        if self.repeat_reservation(&terms, caller.request, out) {
            return Ok(());
        }
        let mut objects = Vec::new();
        for n in 0..count.min(MAX_RESERVE) {
            // One command makes room for one extent, not for all that it asks for.
            let evict = if n == 0 { Evict::IfNeeded } else { Evict::No };
            match self.reserve_one(now, caller, len, (&terms, evict), options) {
                Ok(started) => {
                    objects.push(started.object);
                    out.push(started);
                }
                Err(error) if objects.is_empty() => return Err(error),
                Err(_) => break,
            }
        }
        if let Some(member) = self.control.members.get_mut(terms.writer) {
            member.reserved = (caller.request, objects);
        }
        Ok(())
    }

    fn reserve_one(
        &mut self,
        now: Instant,
        caller: Caller,
        len: u64,
        (terms, evict): (&Terms, Evict),
        options: &PutOptions<'_>,
    ) -> Result<Started, PutError> {
        let grants = self.room(now, terms, options, evict)?;
        let &Terms { writer, pin, group, .. } = terms;
        let (tenant, request) = (caller.tenant, caller.request);
        let begin = Begin { key: None, hash: 0, tenant, len, writer, request, pin, group };
        let object = self.shard.begin(now, &begin, &grants);
        self.settle(now);
        self.started(object.ok_or(PutError::Full)?, &grants)
    }

    /// Whether this is the caller's last reservation again.
    fn repeat_reservation(&mut self, terms: &Terms, request: u64, out: &mut Vec<Started>) -> bool {
        let Some(member) = self.control.members.get_mut(terms.writer) else { return false };
        if member.reserved.0 != request || member.reserved.1.is_empty() {
            return false;
        }
        let objects = core::mem::take(&mut member.reserved.1);
        for &object in &objects {
            if self.shard.is_reserved(object) {
                out.extend(self.restarted(object));
            }
        }
        if let Some(member) = self.control.members.get_mut(terms.writer) {
            member.reserved.1 = objects;
        }
        true
    }

    /// Ends a put on an extent granted ahead: its first `len` bytes become the object `key`. When the key is there
    /// already the extent stays reserved and may be used for another. Replicas on the segments `failed` were not written
    /// and are dropped, as by [`put_end`](Self::put_end). The same publication again is accepted, or refused, as before.
    pub fn publish(
        &mut self,
        now: Instant,
        caller: Caller,
        object: ObjectId,
        key: Key<'_>,
        len: u64,
        written: Written<'_>,
    ) -> Result<(), PublishError> {
        let now = self.clock.observe(now);
        let Written { checksum, failed } = written;
        let writer = self.member_id(caller).ok_or(PublishError::Owner)?;
        let slot = self.shard.own(object, writer)?;
        let Some((_, reserved)) = self.shard.object(slot) else { return Err(PublishError::Gone) };
        let deadline = match reserved.phase {
            Phase::Complete { checksum: known, .. } => {
                let same = (reserved.tenant, &*reserved.key, reserved.len, known);
                let again = same == (caller.tenant, key.bytes(), len, checksum);
                return if again { Ok(()) } else { Err(PublishError::Published) };
            }
            Phase::Writing { .. } if !reserved.key.is_empty() => return Err(PublishError::Published),
            // The writer has been told that its extent is free again, and may be writing another value there.
            Phase::Writing { request, .. } if request == caller.request => return Err(PublishError::Exists),
            Phase::Writing { deadline, .. } => deadline,
        };
        if len > reserved.len {
            return Err(PublishError::Len);
        }
        if !self.shard.has_room(slot, len, checksum) {
            return Err(PublishError::Sums);
        }
        if deadline.reached(now) {
            self.shard.discard(now, slot);
            self.settle(now);
            return Err(PublishError::Gone);
        }
        self.shun(now, writer, failed.iter().copied());
        if !self.shard.drop_failed(now, slot, failed) {
            return Err(PublishError::Nothing);
        }
        let published =
            self.publish_at(now, slot, (caller.tenant, key, self.hash(caller, key)), len, checksum);
        if published == Err(PublishError::Exists) {
            self.shard.note_request(slot, caller.request);
        }
        published
    }

    fn publish_at(
        &mut self,
        now: Instant,
        slot: u32,
        name: (TenantId, Key<'_>, u64),
        len: u64,
        checksum: Checksum,
    ) -> Result<(), PublishError> {
        let (tenant, key, hash) = name;
        let taken = self.shard.occupied(now, tenant, key, hash);
        let published = match taken {
            Some(_) => Err(PublishError::Exists),
            None => self.shard.publish(now, slot, name, len, checksum),
        };
        self.settle(now);
        published
    }
}

impl From<super::EndError> for PublishError {
    fn from(error: super::EndError) -> Self {
        match error {
            super::EndError::Owner => Self::Owner,
            _ => Self::Gone,
        }
    }
}
