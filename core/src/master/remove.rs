//! The doors that list and remove.

use super::shard::Copying;
use super::{Cursor, Force, Master, Quiet, RemoveError, Stat, Step};
use crate::evict::Removed;
use crate::id::{Caller, SegmentId, TenantId};
use crate::key::Key;
use crate::time::Instant;

impl Master {
    /// Removes an object. With [`Force::Yes`] leases and copies do not keep the key; its bytes still wait for them. An
    /// object that is still being written is not removed either way: its writer aborts it, or its time ends.
    pub fn remove(
        &mut self,
        now: Instant,
        caller: Caller,
        key: Key<'_>,
        force: Force,
    ) -> Result<(), RemoveError> {
        let now = self.clock.observe(now);
        let slot =
            self.shard.peek(caller.tenant, key, self.hash(caller, key)).ok_or(RemoveError::NotFound)?;
        self.may_remove(now, slot, force)?;
        // Its reads overlap with those of the policy, which come first.
        if let Some(grant) = self.shard.first_grant(slot) {
            core::hint::black_box(self.control.space.warm(&grant));
        }
        self.shard.take_out(now, slot, Removed::Dropped, Quiet::Unknown);
        self.settle(now);
        Ok(())
    }

    fn may_remove(&self, now: Instant, slot: u32, force: Force) -> Result<(), RemoveError> {
        let (id, object) = self.shard.object(slot).ok_or(RemoveError::NotFound)?;
        if !object.is_complete() {
            return Err(RemoveError::NotReady);
        }
        if force == Force::Yes {
            return Ok(());
        }
        if object.lease() > now {
            return Err(RemoveError::Leased);
        }
        match self.shard.copying(id) {
            Copying::Yes => Err(RemoveError::Copying),
            Copying::No => Ok(()),
        }
    }

    /// Drops the replica that an object of this caller has on `segment`, or all of them (S0A-085).
    pub fn clear(
        &mut self,
        now: Instant,
        caller: Caller,
        key: Key<'_>,
        segment: Option<SegmentId>,
    ) -> Result<(), RemoveError> {
        let now = self.clock.observe(now);
        let slot =
            self.shard.peek(caller.tenant, key, self.hash(caller, key)).ok_or(RemoveError::NotFound)?;
        let (_, object) = self.shard.object(slot).ok_or(RemoveError::NotFound)?;
        if Some(object.writer) != self.member_id(caller) {
            return Err(RemoveError::Owner);
        }
        self.may_remove(now, slot, Force::No)?;
        match segment {
            None => self.shard.take_out(now, slot, Removed::Dropped, Quiet::Unknown),
            Some(segment) => {
                if !self.shard.drop_replica(now, slot, segment) {
                    return Err(RemoveError::NoReplica);
                }
            }
        }
        self.settle(now);
        Ok(())
    }

    /// Shows the finished objects of `tenant` to `visit`, looking at `budget` slots at most (at least one), and says
    /// where to go on. An object that lives during the whole scan is seen exactly once; one that comes or goes meanwhile
    /// at most once, unless it was removed and put again.
    pub fn scan(
        &self,
        tenant: TenantId,
        cursor: Cursor,
        budget: u32,
        visit: &mut dyn FnMut(&[u8], &Stat),
    ) -> Cursor {
        self.walk(cursor, budget, |slot| {
            if let Some((id, object)) = self.shard.finished(slot, tenant) {
                visit(&object.key, &self.stat_of(id, object));
            }
        })
    }

    /// One step of a removal of all keys of the caller's tenant that match, looking at `budget` slots at most (at least
    /// one). Never removes by halves: what is skipped is counted (case 12).
    pub fn remove_step(
        &mut self,
        now: Instant,
        caller: Caller,
        cursor: Cursor,
        budget: u32,
        force: Force,
        matches: &mut dyn FnMut(&[u8]) -> bool,
    ) -> Step {
        let now = self.clock.observe(now);
        let (end, next) = self.window(cursor, budget);
        let (mut removed, mut skipped) = (0, 0);
        for slot in cursor.0.min(end)..end {
            let slot = slot as u32;
            let found = self.shard.listed(slot, caller.tenant);
            if !found.is_some_and(|(_, object)| matches(&object.key)) {
                continue;
            }
            if self.may_remove(now, slot, force).is_ok() {
                self.shard.take_out(now, slot, Removed::Dropped, Quiet::Unknown);
                removed += 1;
            } else {
                skipped += 1;
            }
        }
        self.settle(now);
        Step { next, removed, skipped }
    }

    fn walk(&self, cursor: Cursor, budget: u32, mut see: impl FnMut(u32)) -> Cursor {
        let (end, next) = self.window(cursor, budget);
        (cursor.0.min(end)..end).for_each(|slot| see(slot as u32));
        next
    }

    /// Which slots a step looks at: up to where, and where the next begins.
    fn window(&self, cursor: Cursor, budget: u32) -> (u64, Cursor) {
        let all = u64::from(self.shard.objects.slots());
        let end = cursor.0.saturating_add(u64::from(budget.max(1))).min(all);
        (end, if end == all { Cursor::END } else { Cursor(end) })
    }
}
