//! The doors for readers: get, exists, stat.

use super::{Ahead, Existence, Found, GetError, Master, Probe, Ready, Stat};
use crate::checksum::Checksum;
use crate::id::{Caller, ObjectId};
use crate::key::Key;
use crate::object::{Object, Phase};
use crate::space::Grant;
use crate::time::Instant;

impl Master {
    /// Looks an object up to read it, and grants a lease (S0A-084). Allocates nothing.
    pub fn get(&mut self, now: Instant, caller: Caller, key: Key<'_>) -> Result<Found, GetError> {
        let now = self.clock.observe(now);
        let slot = self.shard.peek(caller.tenant, key, self.hash(caller, key)).ok_or(GetError::NotFound)?;
        let (id, object) = self.shard.object(slot).ok_or(GetError::NotFound)?;
        let Phase::Complete { checksum, .. } = object.phase else { return Err(GetError::NotReady) };
        let mut replicas = self.shard.locations(object);
        replicas.retain(|location| location.ready == Ready::Yes);
        if replicas.is_empty() {
            return Err(GetError::Silent);
        }
        let found = Found { object: id, len: object.len, checksum, lease: self.config.lease, replicas };
        self.shard.read(now, slot);
        Ok(found)
    }

    /// Brings what commands on `keys` will read nearer. On a large pool a command waits for memory most of its time;
    /// commands that are announced here first wait once for many keys. Changes nothing, and may be left out. More than
    /// about a hundred keys at a time push each other out of the cache.
    pub fn warm(&self, caller: Caller, keys: &[Key<'_>], ahead: Ahead) {
        let space = |grant: &Grant| self.control.space.warm(grant);
        core::hint::black_box(self.shard.warm(caller.tenant, keys, ahead, space));
    }

    /// A batch of gets or ends of puts begins. The policy takes what is read or finished in a row for a chain of
    /// prefixes; batches of different callers are none. Calls that come alone need not be announced.
    pub fn begin_batch(&mut self) {
        self.shard.begin_batch();
    }

    /// Whether a key is there. Probes change nothing unless they ask to (case 13).
    pub fn exists(&mut self, now: Instant, caller: Caller, key: Key<'_>, probe: Probe) -> Existence {
        let now = self.clock.observe(now);
        let Some(slot) = self.shard.peek(caller.tenant, key, self.hash(caller, key)) else {
            return Existence::Absent;
        };
        let Some((_, object)) = self.shard.object(slot) else { return Existence::Absent };
        if !object.is_complete() {
            return Existence::Writing;
        }
        if !self.shard.is_readable(object) {
            return Existence::Silent;
        }
        if probe == Probe::RenewLease {
            self.shard.read(now, slot);
        }
        Existence::Present
    }

    /// What is known of an object, finished or not. Changes nothing.
    pub fn stat(&self, _now: Instant, caller: Caller, key: Key<'_>) -> Option<Stat> {
        let slot = self.shard.peek(caller.tenant, key, self.hash(caller, key))?;
        let (id, object) = self.shard.object(slot)?;
        Some(self.stat_of(id, object))
    }

    pub(super) fn stat_of(&self, id: ObjectId, object: &Object) -> Stat {
        let (leased_until, checksum, pinned_until) = match object.phase {
            Phase::Complete { lease, checksum, .. } => (lease, checksum, object.pin),
            Phase::Writing { .. } => (Instant::ORIGIN, Checksum::None, Instant::ORIGIN),
        };
        let replicas = self.shard.locations(object);
        Stat {
            object: id,
            len: object.len,
            checksum,
            writer: object.writer,
            leased_until,
            pinned_until,
            replicas,
        }
    }
}
