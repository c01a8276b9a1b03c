//! The doors for writers: start, end, abort.

use super::room::Evict;
use super::shard::Begin;
use super::{EndError, Master, Pin, Placement, PutError, PutOptions, Quiet, Started, Sums, Written};
use crate::checksum::stored_len;
use crate::evict::Removed;
use crate::id::{Caller, MemberId, ObjectId, SegmentId};
use crate::key::{Key, MAX_NAME};
use crate::object::Phase;
use crate::place::Grants;
use crate::space::{Grant, MAX_REPLICAS};
use crate::time::{Instant, nanos};

/// Options that were looked at.
pub(super) struct Terms {
    pub(super) writer: MemberId,
    pub(super) pin: Instant,
    pub(super) group: Option<u64>,
    /// Bytes of each extent.
    pub(super) stored: u64,
}

impl Master {
    /// Begins a put of `len` bytes (S0A-079). The same request of the same caller again gets the same answer. A put of
    /// somebody else that was given up makes room for the new one.
    ///
    /// # Errors
    /// [`PutError`]; nothing was evicted for a value that never fits.
    pub fn put_start(
        &mut self,
        now: Instant,
        caller: Caller,
        key: Key<'_>,
        len: u64,
        options: &PutOptions<'_>,
    ) -> Result<Started, PutError> {
        let now = self.clock.observe(now);
        let terms = self.terms(caller, len, options)?;
        let hash = self.hash(caller, key);
        if let Some(slot) = self.shard.occupied(now, caller.tenant, key, hash) {
            return self.repeat(slot, terms.writer, caller.request);
        }
        let grants = self.room(now, &terms, options, Evict::IfNeeded)?;
        let Terms { writer, pin, group, .. } = terms;
        let (tenant, request) = (caller.tenant, caller.request);
        let begin = Begin { key: Some(key), hash, tenant, len, writer, request, pin, group };
        let object = self.shard.begin(now, &begin, &grants);
        self.settle(now);
        self.started(object.ok_or(PutError::Full)?, &grants)
    }

    /// Ends a put whose writes have all completed: the object can be read (S0A-080, S0B-004). Replicas on the segments
    /// `failed` were not written: they are dropped, and their owners asked to end what may still be under way. The same
    /// end again is accepted.
    pub fn put_end(
        &mut self,
        now: Instant,
        caller: Caller,
        object: ObjectId,
        written: Written<'_>,
    ) -> Result<(), EndError> {
        let now = self.clock.observe(now);
        let Written { checksum, failed } = written;
        let writer = self.member_id(caller).ok_or(EndError::Owner)?;
        let slot = self.shard.own(object, writer)?;
        let Some((_, object)) = self.shard.object(slot) else { return Err(EndError::Gone) };
        match object.phase {
            Phase::Complete { checksum: known, .. } if known == checksum => Ok(()),
            Phase::Complete { .. } => Err(EndError::Ended),
            Phase::Writing { .. } if object.key.is_empty() => Err(EndError::NoKey),
            Phase::Writing { deadline, .. } if deadline.reached(now) => {
                // The fence begins here: from now on the writer has to start again.
                self.shard.discard(now, slot);
                self.settle(now);
                Err(EndError::Gone)
            }
            Phase::Writing { .. } if !self.shard.has_room(slot, object.len, checksum) => Err(EndError::Sums),
            Phase::Writing { .. } => {
                self.shun(now, writer, failed.iter().copied());
                if !self.shard.drop_failed(now, slot, failed) {
                    return Err(EndError::Nothing);
                }
                self.shard.finish(now, slot, checksum);
                self.settle(now);
                Ok(())
            }
        }
    }

    /// Gives a put, or an extent granted ahead, up (S0A-081). [`EndError::Gone`] means that there is nothing to give
    /// up any more; a repeated abort gets it.
    pub fn put_abort(
        &mut self,
        now: Instant,
        caller: Caller,
        object: ObjectId,
        quiet: Quiet,
    ) -> Result<(), EndError> {
        let now = self.clock.observe(now);
        let writer = self.member_id(caller).ok_or(EndError::Owner)?;
        let slot = self.shard.own(object, writer)?;
        let Some((_, begun)) = self.shard.object(slot) else { return Err(EndError::Gone) };
        if begun.is_complete() {
            return Err(EndError::Ended);
        }
        // What was granted ahead and is given back unused says nothing.
        if (!begun.key.is_empty() || quiet == Quiet::Unknown)
            && let Some(grants) = self.shard.grants(object)
        {
            self.shun(now, writer, grants.iter().map(|grant| grant.segment));
        }
        self.shard.take_out(now, slot, Removed::Dropped, quiet);
        self.settle(now);
        Ok(())
    }

    /// The put of `key` that this caller has begun, for callers that name puts by key (S0A-077).
    pub fn find_put(&self, caller: Caller, key: Key<'_>) -> Option<ObjectId> {
        let slot = self.shard.peek(caller.tenant, key, self.hash(caller, key))?;
        let (id, object) = self.shard.object(slot)?;
        (Some(object.writer) == self.member_id(caller)).then_some(id)
    }

    /// Looks at who asks for what.
    pub(super) fn terms(
        &self,
        caller: Caller,
        len: u64,
        options: &PutOptions<'_>,
    ) -> Result<Terms, PutError> {
        let writer = self.member_id(caller).ok_or(PutError::Unregistered)?;
        if self.control.tenants.name(caller.tenant).is_none() {
            return Err(PutError::Tenant);
        }
        if !(1..=MAX_REPLICAS).contains(&(options.replicas as usize)) {
            return Err(PutError::Replicas);
        }
        if options.group.is_some_and(|group| !(1..=MAX_NAME).contains(&group.len())) {
            return Err(PutError::Group);
        }
        let pin = match options.pin {
            Pin::None => Instant::ORIGIN,
            Pin::Hard => Instant::NEVER,
            Pin::Soft(ttl) => {
                let ttl = ttl.unwrap_or(self.config.soft_pin);
                if ttl > self.config.soft_pin_max {
                    return Err(PutError::Pin);
                }
                Instant::from_nanos(nanos(ttl))
            }
        };
        let stored = match options.sums {
            Sums::Blocks => stored_len(len),
            Sums::None => Some(len),
        };
        let never = PutError::NeverFits { largest_segment: self.control.space.largest_segment() };
        let group = options.group.map(|group| self.shard.hasher.hash(caller.tenant, group.as_bytes()));
        // An empty value has an extent too, and with it an owner and a life like all others.
        Ok(Terms { writer, pin, group, stored: stored.ok_or(never)?.max(1) })
    }

    /// The answer to a put of a key that is taken: the same as before, if the same request began it.
    fn repeat(&mut self, slot: u32, writer: MemberId, request: u64) -> Result<Started, PutError> {
        let Some((id, object)) = self.shard.object(slot) else { return Err(PutError::Full) };
        match object.phase {
            Phase::Complete { .. } => Err(PutError::Exists),
            Phase::Writing { request: begun, .. } if begun == request && object.writer == writer => {
                self.restarted(id)
            }
            Phase::Writing { .. } => Err(PutError::Writing),
        }
    }

    /// What a put that is still being written was answered, with fresh tickets for the same bytes.
    pub(super) fn restarted(&mut self, object: ObjectId) -> Result<Started, PutError> {
        let grants = self.shard.grants(object).ok_or(PutError::Full)?;
        self.started(object, &grants)
    }

    /// The answer to a put that has begun.
    pub(super) fn started(&mut self, object: ObjectId, grants: &[Grant]) -> Result<Started, PutError> {
        let mut replicas = heapless::Vec::new();
        for grant in grants {
            let ticket = self.control.ticket(grant).ok_or(PutError::NoSegments)?;
            let placement = Placement { segment: grant.segment, extent: grant.extent, ticket };
            // There are no more grants than fit.
            let _ = replicas.push(placement);
        }
        Ok(Started { object, replicas, ttl: self.config.put_discard })
    }

    /// Notes where a writer's writes failed: for as long as a dead owner may pass for a healthy one.
    pub(super) fn shun(&mut self, now: Instant, writer: MemberId, segments: impl Iterator<Item = SegmentId>) {
        self.control.shun(writer, segments, now + self.config.client_ttl);
    }

    /// Extents for one object, with evictions if need be.
    pub(super) fn room(
        &mut self,
        now: Instant,
        terms: &Terms,
        options: &PutOptions<'_>,
        evict: Evict,
    ) -> Result<Grants, PutError> {
        let (mut grants, stored) = (Grants::new(), terms.stored);
        let writer = self.control.members.get(terms.writer);
        let avoid = writer.map(|record| record.shunned.at(now)).unwrap_or_default();
        let wanted = (options.replicas, options.preferred);
        match evict {
            Evict::IfNeeded => self.place_or_evict(now, stored, wanted, &avoid, &mut grants)?,
            Evict::No => self.control.place(stored, wanted, &avoid, &mut grants)?,
        }
        self.watch();
        Ok(grants)
    }
}
