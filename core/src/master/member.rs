//! The doors for members: register, heartbeat, duties, segments.

use core::time::Duration;

use super::{
    Beat, Duty, Master, Member, MountError, Next, RegisterError, Registered, SegmentSpec, UnmountError,
};
use crate::id::{Incarnation, MemberId, SegmentId};
use crate::key::MAX_NAME;
use crate::members::{ClientStatus, Fences, Mode};
use crate::ticket::TicketKey;
use crate::time::Instant;

/// How many heartbeats a member has missed when a newcomer may have its address.
const MISSED: u32 = 3;

impl Master {
    /// Takes a member in (S0A-034, S0B-121). An incarnation that is known is refused, also while it is silent; but one
    /// that repeats itself word for word and lends nothing yet did not hear the answer, and gets it again.
    ///
    /// No two live members serve at one address. A newcomer at the address of one that missed three heartbeats takes its
    /// place: a port is bound by one process, so that one's is gone. Were it alive, it would lose its objects and no
    /// byte would be wrong: its segments leave the pool, so that nothing of them is granted again.
    pub fn register(
        &mut self,
        now: Instant,
        incarnation: Incarnation,
        member: &Member<'_>,
    ) -> Result<Registered, RegisterError> {
        let now = self.clock.observe(now);
        if member.mode != Mode::Pool {
            return Err(RegisterError::Mode);
        }
        if let Some(id) = self.control.members.id_of(incarnation) {
            return self.registered_again(now, id, member).ok_or(RegisterError::Known);
        }
        if !(1..=MAX_NAME).contains(&member.name.len()) || member.address.len() > MAX_NAME {
            return Err(RegisterError::Name);
        }
        if !member.address.is_empty()
            && let Some(other) = self.control.members.at_address(member.address)
        {
            let silence = self.control.members.silence(now, other);
            if self.status_of(other) == ClientStatus::Healthy && silence < self.config.heartbeat * MISSED {
                return Err(RegisterError::AddressTaken);
            }
            self.control.drop_member(other, ClientStatus::Crashed);
        }
        if self.control.members.len() >= self.config.max_members as usize {
            return Err(RegisterError::Full);
        }
        let id = self.control.members.add(now, incarnation, member);
        self.control.tell(Next::Status { member: id, incarnation, status: ClientStatus::Healthy });
        self.settle(now);
        Ok(self.registered(id, member.key))
    }

    fn registered(&self, id: MemberId, ticket_key: TicketKey) -> Registered {
        Registered { id, ticket_key, heartbeat: self.config.heartbeat, ttl: self.config.client_ttl }
    }

    /// The answer to a registration whose first answer was lost: otherwise its member, who never heard its key, could
    /// not come in before it was dropped.
    fn registered_again(&mut self, now: Instant, id: MemberId, member: &Member<'_>) -> Option<Registered> {
        let record = self.control.members.get(id)?;
        let said = (&*record.name, &*record.address, record.fences);
        if said != (member.name, member.address, member.fences) || !record.segments.is_empty() {
            return None;
        }
        let key = record.key;
        self.seen(now, id);
        self.settle(now);
        Some(self.registered(id, key))
    }

    /// Notes a sign of life of a member.
    fn seen(&mut self, now: Instant, member: MemberId) {
        if let Some(change) = self.control.members.beat(now, member) {
            self.control.apply(now, change);
        }
    }

    /// Notes that a member is alive, and the duties that it reports done (S0A-035, S0B-122). Numbers that are not
    /// among its duties change nothing.
    pub fn heartbeat(
        &mut self,
        now: Instant,
        incarnation: Incarnation,
        fenced: impl Iterator<Item = u64>,
    ) -> Beat {
        let now = self.clock.observe(now);
        let Some(member) = self.control.members.id_of(incarnation) else {
            return Beat { status: ClientStatus::Undefined };
        };
        self.seen(now, member);
        for number in fenced {
            self.control.fenced(member, number);
        }
        self.settle(now);
        Beat { status: self.status_of(member) }
    }

    /// A member's state as of the last evaluation; `Undefined` if unknown (S0A-039, S0B-123).
    pub fn status(&self, incarnation: Incarnation) -> ClientStatus {
        let member = self.control.members.id_of(incarnation);
        member.map_or(ClientStatus::Undefined, |member| self.status_of(member))
    }

    fn status_of(&self, member: MemberId) -> ClientStatus {
        self.control.members.get(member).map_or(ClientStatus::Undefined, |record| record.status)
    }

    /// What the member has to do until it reports it done, by number.
    pub fn duties(&self, incarnation: Incarnation) -> impl Iterator<Item = Duty> + use<'_> {
        let member = self.control.members.id_of(incarnation).and_then(|id| self.control.members.get(id));
        member.into_iter().flat_map(|record| record.duties.values().copied())
    }

    /// A member says good-bye: its segments leave the pool at once, what it was writing is given up after the discard
    /// time-out (S0A-062). Harmless when unknown.
    pub fn leave(&mut self, now: Instant, incarnation: Incarnation) {
        let now = self.clock.observe(now);
        if let Some(member) = self.control.members.id_of(incarnation) {
            self.control.drop_member(member, ClientStatus::Undefined);
            self.settle(now);
        }
    }

    /// Takes a segment into the pool (S0A-049, S0B-036). The same name and length again gives the same id (S0A-043,
    /// S0B-128). It is a sign of life: an owner of many segments need not stop to send heartbeats. O(segments).
    pub fn mount(
        &mut self,
        now: Instant,
        incarnation: Incarnation,
        segment: &SegmentSpec<'_>,
    ) -> Result<SegmentId, MountError> {
        let now = self.clock.observe(now);
        let member = self.control.members.id_of(incarnation).ok_or(MountError::Unregistered)?;
        if self.status_of(member) != ClientStatus::Healthy {
            return Err(MountError::Unhealthy);
        }
        if !(1..=MAX_NAME).contains(&segment.name.len()) {
            return Err(MountError::Name);
        }
        if self.control.space.len() >= self.config.max_segments as usize {
            return Err(MountError::Full);
        }
        // Without fences, writers of an earlier life of the memory may be as late as the release time-out.
        let fences = self.control.members.get(member).map_or(Fences::Time, |record| record.fences);
        let held = if fences == Fences::Time { self.config.put_release } else { Duration::ZERO };
        let id = self.control.mount(member, segment, now + held.max(self.config.lease))?;
        self.seen(now, member);
        self.settle(now);
        Ok(id)
    }

    /// Takes a segment out of the pool: its replicas are gone at once, and swept in bounded steps. An unknown segment
    /// is gone already (S0A-043). Readers may still hold leases: the owner keeps the bytes for one lease more.
    pub fn unmount(
        &mut self,
        now: Instant,
        incarnation: Incarnation,
        segment: SegmentId,
    ) -> Result<(), UnmountError> {
        let now = self.clock.observe(now);
        let member = self.control.members.id_of(incarnation).ok_or(UnmountError::Unregistered)?;
        if self.status_of(member) != ClientStatus::Healthy {
            return Err(UnmountError::Unhealthy);
        }
        if let Some(known) = self.control.space.segment(segment) {
            if known.owner() != member {
                return Err(UnmountError::Owner);
            }
            self.control.unmount(segment);
            self.settle(now);
        }
        Ok(())
    }
}
