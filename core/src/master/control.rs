//! The control machine: members, space, tenants, tickets, duties. It knows nothing of keys.

use alloc::collections::VecDeque;
use alloc::vec::Vec;
use core::num::NonZeroU32;

use super::events::{Reach, ToControl, ToShard};
use super::tenants::Tenants;
use super::{Config, Next, Past, PutError, SegmentSpec};
use crate::id::{MemberId, SegmentId, Term};
use crate::members::{Change, ClientStatus, Duty, Fences, Members};
use crate::place::Grants;
use crate::rng::Rng;
use crate::space::{self, Grant, NoSpace, Space, Visibility};
use crate::ticket::Ticket;
use crate::time::Instant;

/// Events that wait for `poll` at most; older ones are dropped and counted.
const MAX_EVENTS: usize = 4_096;

/// Who takes part, and who owns which bytes.
#[derive(Debug)]
pub(super) struct Control {
    pub(super) members: Members,
    pub(super) tenants: Tenants,
    pub(super) space: Space,
    pub(super) term: Term,
    rng: Rng,
    strategy: crate::place::Strategy,
    /// The serial of the next ticket.
    pub(super) serial: u64,
    /// Segments that may be used from a moment on, by that moment.
    opening: VecDeque<(Instant, SegmentId)>,
    /// For the shard.
    pub(super) out: Vec<ToShard>,
    /// For `poll`.
    pub(super) events: VecDeque<Next>,
    pub(super) events_lost: u64,
    changes: Vec<Change>,
}

impl Control {
    pub(super) fn new(config: &Config, rng: Rng, term: Term, generation: NonZeroU32) -> Self {
        Self {
            members: Members::new(config.client_ttl, config.crashed_ttl),
            tenants: Tenants::new(config.max_tenants),
            space: Space::starting(generation),
            term,
            rng,
            strategy: config.strategy,
            serial: 1,
            opening: VecDeque::new(),
            out: Vec::new(),
            events: VecDeque::new(),
            events_lost: 0,
            changes: Vec::new(),
        }
    }

    /// Grants `count` extents for one object, best effort; in the segments of `avoid` only if there is no room elsewhere.
    pub(super) fn place(
        &mut self,
        len: u64,
        (count, preferred): (u32, &[SegmentId]),
        avoid: &[SegmentId],
        out: &mut Grants,
    ) -> Result<(), NoSpace> {
        let Self { space, rng, strategy, .. } = self;
        let mut place = |avoid| space.place(rng, *strategy, len, count as usize, preferred, avoid, out);
        if !avoid.is_empty() && place(avoid).is_ok() {
            return Ok(());
        }
        place(&[])
    }

    /// Notes that `writer` could not write to these segments; until then its puts go elsewhere if they can.
    pub(super) fn shun(
        &mut self,
        writer: MemberId,
        segments: impl Iterator<Item = SegmentId>,
        until: Instant,
    ) {
        if let Some(record) = self.members.get_mut(writer) {
            segments.for_each(|segment| record.shunned.note(segment, until));
        }
    }

    /// A ticket for `grant`, with the key of its owner.
    pub(super) fn ticket(&mut self, grant: &Grant) -> Option<Ticket> {
        let owner = self.members.get(self.space.segment(grant.segment)?.owner())?;
        let serial = self.serial;
        self.serial += 1;
        let ticket = Ticket {
            owner: owner.incarnation,
            segment: grant.segment,
            extent: grant.extent,
            serial,
            term: self.term,
            tag: 0,
        };
        Some(owner.key.sign(ticket))
    }

    /// Takes a segment in. `until` holds it back from being used.
    pub(super) fn mount(
        &mut self,
        owner: MemberId,
        spec: &SegmentSpec<'_>,
        until: Instant,
    ) -> Result<SegmentId, super::MountError> {
        let SegmentSpec { name, len, allocator, past } = *spec;
        let id = match self.space.mount(&space::SegmentSpec { name, owner, len, allocator }) {
            Ok(id) => id,
            Err(space::MountError::Exists(id)) => {
                let same = self.space.segment(id).is_some_and(|segment| segment.len() == len);
                return if same { Ok(id) } else { Err(super::MountError::Exists) };
            }
            Err(space::MountError::Invalid) => return Err(super::MountError::Len),
        };
        if past == Past::Served {
            self.space.set_visible(id, Visibility::Hidden);
            let at = self.opening.partition_point(|&(other, _)| other <= until);
            self.opening.insert(at, (until, id));
        }
        if let Some(member) = self.members.get_mut(owner) {
            member.segments.push(id);
        }
        self.out.push(ToShard::Opened { segment: id, owner });
        Ok(id)
    }

    /// Takes a segment out of the pool, with all that is known of it.
    pub(super) fn unmount(&mut self, segment: SegmentId) {
        let Some(removed) = self.space.unmount(segment) else { return };
        self.opening.retain(|&(_, id)| id != segment);
        if let Some(member) = self.members.get_mut(removed.owner) {
            member.segments.retain(|&id| id != segment);
            member.duties.retain(|_, Duty::Fence { segment: id, .. }| *id != segment);
        }
        self.out.push(ToShard::Gone { segment });
        self.tell(Next::SegmentGone { segment, owner: removed.owner });
    }

    /// Drops a member with its segments (S0B-129).
    pub(super) fn drop_member(&mut self, member: MemberId, status: ClientStatus) {
        while let Some(&segment) = self.members.get(member).and_then(|record| record.segments.last()) {
            self.unmount(segment);
        }
        if let Some(record) = self.members.remove(member) {
            self.tell(Next::Status { member, incarnation: record.incarnation, status });
        }
    }

    /// Applies a change of health that is not the end: hides or shows what the member lends (S0A-038, S0A-048).
    pub(super) fn apply(&mut self, now: Instant, Change { member, to }: Change) {
        let Some(record) = self.members.get(member) else { return };
        let (incarnation, count) = (record.incarnation, record.segments.len());
        let reach = if to == ClientStatus::Healthy { Reach::Answers } else { Reach::Silent };
        for n in 0..count {
            let Some(&segment) = self.members.get(member).and_then(|record| record.segments.get(n)) else {
                break;
            };
            let held = self.opening.iter().any(|&(until, id)| id == segment && !until.reached(now));
            let open = reach == Reach::Answers && !held;
            self.space.set_visible(segment, if open { Visibility::Open } else { Visibility::Hidden });
            self.out.push(ToShard::Reach { segment, reach });
        }
        self.tell(Next::Status { member, incarnation, status: to });
    }

    /// Looks at everybody's silence, and opens segments whose time has come.
    pub(super) fn handle_timeout(&mut self, now: Instant) {
        let mut changes = core::mem::take(&mut self.changes);
        self.members.evaluate(now, &mut changes);
        for change in changes.drain(..) {
            match change.to {
                ClientStatus::Crashed => self.drop_member(change.member, ClientStatus::Crashed),
                _ => self.apply(now, change),
            }
        }
        self.changes = changes;
        while let Some(&(until, segment)) = self.opening.front()
            && until.reached(now)
        {
            self.opening.pop_front();
            let owner = self.space.segment(segment).map(|segment| segment.owner());
            let owner = owner.and_then(|owner| self.members.get(owner));
            if owner.is_some_and(|owner| owner.status == ClientStatus::Healthy) {
                self.space.set_visible(segment, Visibility::Open);
            }
        }
    }

    /// When [`handle_timeout`](Self::handle_timeout) may have something to do.
    pub(super) fn due(&self) -> Instant {
        self.opening.front().map_or(Instant::NEVER, |&(until, _)| until).min(self.members.due())
    }

    /// Hears what a shard says.
    pub(super) fn handle(&mut self, event: ToControl) {
        match event {
            ToControl::Released(grant) => {
                let freed = self.space.free(grant);
                debug_assert!(freed != Err(space::FreeError::Misuse), "{grant:?} was released twice");
            }
            ToControl::Fence { number, segment, extent } => {
                let below = self.serial;
                if let Some(owner) = self.owner_of(segment)
                    && owner.fences == Fences::Answers
                {
                    owner.duties.insert(number, Duty::Fence { number, segment, extent, below });
                }
            }
            ToControl::FenceOver { number, segment } => {
                if let Some(owner) = self.owner_of(segment) {
                    owner.duties.remove(&number);
                }
            }
        }
    }

    /// A member reports a fence done.
    pub(super) fn fenced(&mut self, member: MemberId, number: u64) {
        if let Some(record) = self.members.get_mut(member)
            && record.duties.remove(&number).is_some()
        {
            self.out.push(ToShard::Fenced { number });
        }
    }

    fn owner_of(&mut self, segment: SegmentId) -> Option<&mut crate::members::Record> {
        let owner = self.space.segment(segment)?.owner();
        self.members.get_mut(owner)
    }

    pub(super) fn tell(&mut self, event: Next) {
        if self.events.len() >= MAX_EVENTS {
            self.events.pop_front();
            self.events_lost += 1;
        }
        self.events.push_back(event);
    }
}

impl From<NoSpace> for PutError {
    fn from(error: NoSpace) -> Self {
        match error {
            NoSpace::NoSegments => Self::NoSegments,
            NoSpace::NeverFits { largest_segment } => Self::NeverFits { largest_segment },
            NoSpace::NoHole { largest_hole } => Self::NoHole { largest_hole },
        }
    }
}
