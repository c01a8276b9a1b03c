//! The doors for looking: tenants, segments, members, figures.

use super::{Held, Master, MemberInfo, SegmentInfo, Stat, Stats, TenantError, Totals};
use crate::id::{Incarnation, MemberId, ObjectId, SegmentId, TenantId};
use crate::members::Record;
use crate::space::Segment;

impl Master {
    /// The number of the tenant called `name`, new or known. Number 0 is [`crate::key::DEFAULT_TENANT`].
    pub fn tenant(&mut self, name: &str) -> Result<TenantId, TenantError> {
        self.control.tenants.number(name)
    }

    /// A tenant's name.
    pub fn tenant_name(&self, tenant: TenantId) -> Option<&str> {
        self.control.tenants.name(tenant)
    }

    /// The segments, by slot (S0A-042, S0B-125).
    pub fn segments(&self) -> impl Iterator<Item = SegmentInfo<'_>> {
        self.control.space.iter().map(|(id, segment)| segment_info(id, segment))
    }

    /// One segment.
    pub fn segment(&self, id: SegmentId) -> Option<SegmentInfo<'_>> {
        self.control.space.segment(id).map(|segment| segment_info(id, segment))
    }

    /// The segments called `name`, by slot; several owners may use one name (S0A-042, S0A-054, S0B-042).
    /// O(segments).
    pub fn segments_named(&self, name: &str) -> impl Iterator<Item = SegmentInfo<'_>> {
        let named = self.control.space.iter().filter(move |(_, segment)| segment.name() == name);
        named.map(|(id, segment)| segment_info(id, segment))
    }

    /// The members, by slot (S0A-041, S0B-124).
    pub fn members(&self) -> impl Iterator<Item = MemberInfo<'_>> {
        self.control.members.iter().map(|(id, record)| member_info(id, record))
    }

    /// One member (S0A-045).
    pub fn member(&self, id: MemberId) -> Option<MemberInfo<'_>> {
        self.control.members.get(id).map(|record| member_info(id, record))
    }

    /// The member that this process is.
    pub fn member_of(&self, incarnation: Incarnation) -> Option<MemberInfo<'_>> {
        self.control.members.id_of(incarnation).and_then(|id| self.member(id))
    }

    /// The object with this number, finished or not.
    pub fn object(&self, id: ObjectId) -> Option<Stat> {
        let (id, object) = self.shard.object(self.shard.objects.slot(id)?)?;
        Some(self.stat_of(id, object))
    }

    /// Shows every extent that is granted on a segment of the pool to `visit`, in no order that means anything. For
    /// audits: O(replicas).
    pub fn extents(&self, visit: &mut dyn FnMut(Held)) {
        self.shard.extents(visit);
    }

    /// Figures. O(members).
    pub fn stats(&self) -> Stats {
        let (usage, tally) = (self.control.space.usage(), self.shard.tally);
        Stats {
            capacity: usage.capacity + usage.hidden_capacity,
            used: usage.used + usage.hidden_used,
            reserved: tally.pending.reserved,
            draining: tally.pending.draining,
            objects: tally.complete,
            writing: tally.writing,
            active_members: self.control.members.active() as u64,
            members: self.control.members.len() as u64,
            segments: self.control.space.len() as u64,
            totals: Totals {
                evicted: tally.evicted,
                evicted_bytes: tally.evicted_bytes,
                blocked_by_leases: self.blocked_by_leases,
                discarded: tally.discarded,
                lost: tally.lost,
                no_room: self.no_room,
                clock_went_back: self.clock.went_back(),
                events_lost: self.control.events_lost,
            },
        }
    }
}

fn segment_info(id: SegmentId, segment: &Segment) -> SegmentInfo<'_> {
    SegmentInfo {
        id,
        name: segment.name(),
        owner: segment.owner(),
        len: segment.len(),
        used: segment.used(),
        largest_hole: segment.largest_hole(),
        visible: segment.visibility(),
    }
}

fn member_info(id: MemberId, record: &Record) -> MemberInfo<'_> {
    MemberInfo {
        id,
        incarnation: record.incarnation,
        name: &record.name,
        address: &record.address,
        status: record.status,
        duties: record.duties.len(),
    }
}
