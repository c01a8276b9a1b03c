//! One control machine and its shards: the metadata server without its sockets.
//!
//! Pool mode: members lend segments, writers put in two phases (start, write, end) or on extents granted ahead
//! (reserve, write, publish), readers get a lease. `now` comes first in every command; going backwards is clamped
//! and counted.

mod config;
mod error;
mod types;

use alloc::vec::Vec;

use crate::checksum::Checksum;
use crate::id::{Caller, Incarnation, MemberId, ObjectId, SegmentId, TenantId, Term};
use crate::key::Key;
use crate::members::ClientStatus;
use crate::time::{Instant, Monotone};

pub use config::{Config, ConfigError, MILLION, SoftPinned};
pub use error::{
    CopyEndError, CopyError, EndError, GetError, MountError, PublishError, PutError, RegisterError,
    RemoveError, TenantError, UnmountError,
};
pub use types::*;

/// The metadata server as a machine.
#[derive(Debug)]
pub struct Master {
    config: Config,
    clock: Monotone,
    term: Term,
}

impl Master {
    /// A master without members, in `term`. `seed` comes from outside randomness; equal seeds and commands give equal
    /// histories.
    pub fn new(config: Config, seed: u64, term: Term, now: Instant) -> Self {
        let mut clock = Monotone::default();
        clock.observe(now);
        let _ = seed;
        Self { config, clock, term }
    }

    /// The settings.
    pub const fn config(&self) -> &Config {
        &self.config
    }

    /// The term that tickets carry.
    pub const fn term(&self) -> Term {
        self.term
    }

    /// Takes a member in (S0A-034). An incarnation that is known is refused.
    pub fn register(
        &mut self,
        now: Instant,
        incarnation: Incarnation,
        member: &Member<'_>,
    ) -> Result<Registered, RegisterError> {
        self.clock.observe(now);
        let _ = (incarnation, member);
        Err(RegisterError::Full)
    }

    /// Notes that a member is alive, and the duties that it reports done (S0A-035, S0B-122).
    pub fn heartbeat(
        &mut self,
        now: Instant,
        incarnation: Incarnation,
        fenced: impl Iterator<Item = u64>,
    ) -> Beat {
        self.clock.observe(now);
        let _ = (incarnation, fenced);
        Beat { status: ClientStatus::Undefined }
    }

    /// A member's state as of the last evaluation; `Undefined` if unknown (S0A-039).
    pub fn status(&self, incarnation: Incarnation) -> ClientStatus {
        let _ = incarnation;
        ClientStatus::Undefined
    }

    /// What the member has to do until it reports it done, oldest first.
    pub fn duties(&self, incarnation: Incarnation) -> impl Iterator<Item = Duty> + use<'_> {
        let _ = incarnation;
        core::iter::empty()
    }

    /// A member says good-bye: its segments leave the pool at once. Harmless when unknown.
    pub fn leave(&mut self, now: Instant, incarnation: Incarnation) {
        self.clock.observe(now);
        let _ = incarnation;
    }

    /// Takes a segment into the pool (S0A-049). The same name and length again gives the same id.
    pub fn mount(
        &mut self,
        now: Instant,
        incarnation: Incarnation,
        segment: &SegmentSpec<'_>,
    ) -> Result<SegmentId, MountError> {
        self.clock.observe(now);
        let _ = (incarnation, segment);
        Err(MountError::Unregistered)
    }

    /// Takes a segment out of the pool: its replicas are gone at once, and swept in bounded steps. An unknown segment
    /// is gone already (S0A-043).
    pub fn unmount(
        &mut self,
        now: Instant,
        incarnation: Incarnation,
        segment: SegmentId,
    ) -> Result<(), UnmountError> {
        self.clock.observe(now);
        let _ = (incarnation, segment);
        Err(UnmountError::Unregistered)
    }

    /// Begins a put of `len` bytes (S0A-079). The same request again gets the same answer.
    pub fn put_start(
        &mut self,
        now: Instant,
        caller: Caller,
        key: Key<'_>,
        len: u64,
        options: &PutOptions<'_>,
    ) -> Result<Started, PutError> {
        self.clock.observe(now);
        let _ = (caller, key, len, options);
        Err(PutError::Unregistered)
    }

    /// Ends a put whose writes have all completed: the object can be read (S0A-080). The same end again is accepted.
    pub fn put_end(
        &mut self,
        now: Instant,
        caller: Caller,
        object: ObjectId,
        checksum: Checksum,
    ) -> Result<(), EndError> {
        self.clock.observe(now);
        let _ = (caller, object, checksum);
        Err(EndError::Gone)
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
        self.clock.observe(now);
        let _ = (caller, object, quiet);
        Err(EndError::Gone)
    }

    /// The put of `key` that this caller has begun and not ended, for callers that name puts by key.
    pub fn find_put(&self, caller: Caller, key: Key<'_>) -> Option<ObjectId> {
        let _ = (caller, key);
        None
    }

    /// Grants up to `count` extents of `len` bytes ahead, without keys; appends them to `out`. Fails only if not even
    /// one could be granted.
    pub fn reserve(
        &mut self,
        now: Instant,
        caller: Caller,
        len: u64,
        count: u32,
        options: &PutOptions<'_>,
        out: &mut Vec<Started>,
    ) -> Result<(), PutError> {
        self.clock.observe(now);
        let _ = (caller, len, count, options, out);
        Err(PutError::Unregistered)
    }

    /// Ends a put on an extent granted ahead: its first `len` bytes become the object `key`. When the key is there
    /// already the extent stays reserved. The same publication again is accepted.
    pub fn publish(
        &mut self,
        now: Instant,
        caller: Caller,
        object: ObjectId,
        key: Key<'_>,
        len: u64,
        checksum: Checksum,
    ) -> Result<(), PublishError> {
        self.clock.observe(now);
        let _ = (caller, object, key, len, checksum);
        Err(PublishError::Gone)
    }

    /// Looks an object up to read it, and grants a lease (S0A-084).
    pub fn get(&mut self, now: Instant, caller: Caller, key: Key<'_>) -> Result<Found, GetError> {
        self.clock.observe(now);
        let _ = (caller, key);
        Err(GetError::NotFound)
    }

    /// Whether a key is there. Probes change nothing unless they ask to.
    pub fn exists(&mut self, now: Instant, caller: Caller, key: Key<'_>, probe: Probe) -> Existence {
        self.clock.observe(now);
        let _ = (caller, key, probe);
        Existence::Absent
    }

    /// What is known of an object. Changes nothing.
    pub fn stat(&self, now: Instant, caller: Caller, key: Key<'_>) -> Option<Stat> {
        let _ = (now, caller, key);
        None
    }

    /// Removes an object.
    pub fn remove(
        &mut self,
        now: Instant,
        caller: Caller,
        key: Key<'_>,
        force: Force,
    ) -> Result<(), RemoveError> {
        self.clock.observe(now);
        let _ = (caller, key, force);
        Err(RemoveError::NotFound)
    }

    /// Drops the replica that an object of this caller has on `segment`, or all of them (S0A-085).
    pub fn clear(
        &mut self,
        now: Instant,
        caller: Caller,
        key: Key<'_>,
        segment: Option<SegmentId>,
    ) -> Result<(), RemoveError> {
        self.clock.observe(now);
        let _ = (caller, key, segment);
        Err(RemoveError::NotFound)
    }

    /// Shows the finished objects of `tenant` to `visit`, looking at `budget` slots at most, and says where to go on.
    /// An object that lives during the whole scan is seen exactly once; one that comes or goes meanwhile at most once.
    pub fn scan(
        &self,
        tenant: TenantId,
        cursor: Cursor,
        budget: u32,
        visit: &mut dyn FnMut(&[u8], &Stat),
    ) -> Cursor {
        let _ = (tenant, cursor, budget, visit);
        Cursor::END
    }

    /// One step of a removal of all keys of the caller's tenant that match, looking at `budget` slots at most.
    pub fn remove_step(
        &mut self,
        now: Instant,
        caller: Caller,
        cursor: Cursor,
        budget: u32,
        force: Force,
        matches: &mut dyn FnMut(&[u8]) -> bool,
    ) -> Step {
        self.clock.observe(now);
        let _ = (caller, cursor, budget, force, matches);
        Step { next: Cursor::END, removed: 0, skipped: 0 }
    }

    /// Begins a copy of an object to another segment; the source is kept until it ends.
    pub fn copy_start(
        &mut self,
        now: Instant,
        caller: Caller,
        key: Key<'_>,
        to: SegmentId,
    ) -> Result<CopyTask, CopyError> {
        self.clock.observe(now);
        let _ = (caller, key, to);
        Err(CopyError::Unregistered)
    }

    /// Ends a copy: the object has one more replica.
    pub fn copy_end(&mut self, now: Instant, caller: Caller, object: ObjectId) -> Result<(), CopyEndError> {
        self.clock.observe(now);
        let _ = (caller, object);
        Err(CopyEndError::NoTask)
    }

    /// Gives a copy up.
    pub fn copy_abort(
        &mut self,
        now: Instant,
        caller: Caller,
        object: ObjectId,
        quiet: Quiet,
    ) -> Result<(), CopyEndError> {
        self.clock.observe(now);
        let _ = (caller, object, quiet);
        Err(CopyEndError::NoTask)
    }

    /// The number of the tenant called `name`, new or known. Number 0 is [`crate::key::DEFAULT_TENANT`].
    pub fn tenant(&mut self, name: &str) -> Result<TenantId, TenantError> {
        if name == crate::key::DEFAULT_TENANT { Ok(TenantId(0)) } else { Err(TenantError::Full) }
    }

    /// A tenant's name.
    pub fn tenant_name(&self, tenant: TenantId) -> Option<&str> {
        (tenant.0 == 0).then_some(crate::key::DEFAULT_TENANT)
    }

    /// The segments, by number.
    pub fn segments(&self) -> impl Iterator<Item = SegmentInfo<'_>> {
        core::iter::empty()
    }

    /// One segment.
    pub fn segment(&self, id: SegmentId) -> Option<SegmentInfo<'_>> {
        let _ = id;
        None
    }

    /// The segments called `name`, by number (S0A-042). O(number of segments).
    pub fn segments_named(&self, name: &str) -> impl Iterator<Item = SegmentInfo<'_>> {
        self.segments().filter(move |segment| segment.name == name)
    }

    /// The members, by number.
    pub fn members(&self) -> impl Iterator<Item = MemberInfo<'_>> {
        core::iter::empty()
    }

    /// One member.
    pub fn member(&self, id: MemberId) -> Option<MemberInfo<'_>> {
        let _ = id;
        None
    }

    /// The member that this process is.
    pub fn member_of(&self, incarnation: Incarnation) -> Option<MemberInfo<'_>> {
        let _ = incarnation;
        None
    }

    /// Does what is due, in a bounded step: health, puts to give up, bytes to release, segments to sweep, eviction.
    /// Early or late is harmless.
    pub fn handle_timeout(&mut self, now: Instant) {
        self.clock.observe(now);
    }

    /// What the master has to say; [`Next::Wait`] comes last.
    pub fn poll(&mut self, now: Instant) -> Next {
        self.clock.observe(now);
        Next::Wait(None)
    }

    /// Figures.
    pub fn stats(&self) -> Stats {
        Stats::default()
    }

    /// A number that is equal for equal histories. O(everything).
    pub fn digest(&self) -> u64 {
        self.term.0
    }
}
