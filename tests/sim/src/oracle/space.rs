//! Whose every granule is, and when it may be somebody else's.

use springtide_core::id::{ObjectId, SegmentId};
use springtide_core::master::Master;
use springtide_core::range::{Extent, GRANULE};
use springtide_core::ticket::Ticket;
use springtide_core::time::Instant;

use super::objects::View;
use super::{Oracle, Rule};
use crate::fabric::{Fabric, Region};
use crate::queue::Pid;

/// One extent as it was granted.
#[derive(Clone, Copy, Debug)]
pub(super) struct Grant {
    pub(super) object: ObjectId,
    /// The last ticket for it.
    pub(super) ticket: Ticket,
    /// The serial of the first.
    first: u64,
    /// When it was granted, by the master's clock.
    since: Instant,
    /// Until when readers of it may count on it, by the master's clock; set when its object is gone.
    pub(super) until: Instant,
    pub(super) writer: Writer,
    /// Granules that are still marked as its, and one while its object holds it.
    marks: u32,
}

/// What is known of who may write an extent.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Writer {
    /// It may be writing.
    Writing,
    /// It has ended: nothing may land.
    Ended,
    /// It said that all its writes have ended, without an object coming of it.
    Quiet,
    /// It is gone, or does not know.
    Unsure,
}

/// A segment as a master grants it.
#[derive(Debug)]
pub(super) struct Segment {
    pub(super) id: SegmentId,
    /// By granule: the number of the grant, plus one.
    pub(super) marks: Vec<u32>,
    /// Granules in which a bit flipped since they were granted.
    pub(super) damaged: Vec<bool>,
    /// For the recount: when each granule was counted last.
    pub(super) counted: Vec<u32>,
}

/// The granules of an extent.
pub(super) fn granules(extent: Extent) -> core::ops::Range<usize> {
    (extent.offset() / GRANULE) as usize..extent.end().div_ceil(GRANULE) as usize
}

/// What a grant is checked against.
#[derive(Clone, Copy)]
pub(super) struct Seen<'a> {
    /// True time.
    pub(super) at: Instant,
    pub(super) master: &'a Master,
    pub(super) fabric: &'a Fabric,
}

impl View {
    pub(super) fn segment(&mut self, id: SegmentId) -> Option<&mut Segment> {
        self.segments.iter_mut().find(|segment| segment.id == id)
    }

    fn segment_of(&mut self, seen: Seen<'_>, id: SegmentId) -> usize {
        if let Some(at) = self.segments.iter().position(|segment| segment.id == id) {
            return at;
        }
        // What left the pool is forgotten; it does not come back under its number.
        let grants = &mut self.grants;
        self.segments.retain(|segment| {
            let stays = seen.master.segment(segment.id).is_some();
            if !stays {
                segment.marks.iter().filter(|mark| **mark > 0).for_each(|mark| grants.unmark(*mark - 1));
            }
            stays
        });
        let len = seen.master.segment(id).map_or(0, |segment| segment.len / GRANULE) as usize;
        let (marks, damaged, counted) = (vec![0; len], vec![false; len], vec![0; len]);
        self.segments.push(Segment { id, marks, damaged, counted });
        self.segments.len() - 1
    }
}

/// The grants, by number; those without a mark make room for others.
#[derive(Debug, Default)]
pub(super) struct Grants {
    all: Vec<Grant>,
    vacant: Vec<u32>,
}

impl Grants {
    pub(super) fn get(&self, number: u32) -> &Grant {
        &self.all[number as usize]
    }

    pub(super) fn get_mut(&mut self, number: u32) -> &mut Grant {
        &mut self.all[number as usize]
    }

    fn add(&mut self, grant: Grant) -> u32 {
        match self.vacant.pop() {
            Some(number) => {
                self.all[number as usize] = grant;
                number
            }
            None => {
                self.all.push(grant);
                self.all.len() as u32 - 1
            }
        }
    }

    /// One granule, or its object, is no more the grant's.
    pub(super) fn unmark(&mut self, number: u32) {
        let grant = &mut self.all[number as usize];
        grant.marks -= 1;
        if grant.marks == 0 {
            self.vacant.push(number);
        }
    }
}

impl Oracle {
    /// `object` was granted the extent of `ticket`; gives back the grant's number.
    pub(super) fn granted(&mut self, pid: Pid, seen: Seen<'_>, object: ObjectId, ticket: Ticket) -> u32 {
        let view = &mut self.views[pid.index()];
        let (extent, now) = (ticket.extent, view.now);
        let place = view.segment_of(seen, ticket.segment);
        let range = granules(extent);
        if range.end > view.segments[place].marks.len() {
            let what = format_args!("{extent:?} reaches out of its segment");
            self.violate(seen.at, Rule::Shared, what);
            return 0;
        }
        let mut last = 0;
        for granule in range.clone() {
            let mark = self.views[pid.index()].segments[place].marks[granule];
            if mark > 0 && mark != last {
                self.reused(pid, seen, mark - 1, object);
            }
            last = mark;
        }
        let view = &mut self.views[pid.index()];
        let View { grants, segments, .. } = view;
        let marks = range.len() as u32 + 1;
        let (first, since, until) = (ticket.serial, now, Instant::ORIGIN);
        let number =
            grants.add(Grant { object, ticket, first, since, until, writer: Writer::Writing, marks });
        for granule in range {
            let mark = core::mem::replace(&mut segments[place].marks[granule], number + 1);
            segments[place].damaged[granule] = false;
            if mark > 0 {
                grants.unmark(mark - 1);
            }
        }
        number
    }

    /// The same bytes were granted to the same object again, with another ticket.
    pub(super) fn granted_again(&mut self, pid: Pid, number: u32, ticket: Ticket) {
        self.views[pid.index()].grants.get_mut(number).ticket = ticket;
    }

    /// Bytes of grant `number` are granted to `next`: whoever had them must be through with them.
    fn reused(&mut self, pid: Pid, seen: Seen<'_>, number: u32, next: ObjectId) {
        let old = *self.views[pid.index()].grants.get(number);
        let Ticket { segment, extent, .. } = old.ticket;
        let holds = seen.master.object(old.object).is_some_and(|stat| {
            stat.replicas.iter().any(|at| at.segment == segment && at.extent.overlaps(extent))
        });
        if holds {
            let what = format_args!("{extent:?} of {segment} belongs to {} and {next}", old.object);
            return self.violate(seen.at, Rule::Shared, what);
        }
        self.lose_sight(pid, seen, old.object);
        let view = &self.views[pid.index()];
        let (old, now) = (*view.grants.get(number), view.now);
        if old.until > now {
            let left = old.until.since(now);
            let what =
                format_args!("{extent:?} of {segment} is granted while {} is leased ({left:?})", old.object);
            return self.violate(seen.at, Rule::ReusedLeased, what);
        }
        let may_write = matches!(old.writer, Writer::Writing | Writer::Unsure);
        if may_write && now < old.since + view.release {
            let region = seen.fabric.region_of(pid, segment);
            if region.is_some_and(|(_, region)| region.gate.admit(&old.ticket, extent).is_ok()) {
                let what =
                    format_args!("{extent:?} of {segment} is granted before {} was fenced", old.object);
                self.violate(seen.at, Rule::ReusedUnfenced, what);
            }
        }
    }

    /// A store under `ticket` landed at `to` of a region.
    pub fn stored(&mut self, at: Instant, region: &Region, ticket: &Ticket, to: u64) {
        let view = &mut self.views[region.master.index()];
        let View { segments, grants, .. } = view;
        let segment = segments.iter().find(|segment| segment.id == region.segment);
        let mark = segment.and_then(|segment| segment.marks.get((to / GRANULE) as usize)).copied();
        // A segment that its master has forgotten since belongs to nobody.
        let Some(number) = mark.and_then(|mark| mark.checked_sub(1)) else { return };
        let grant = grants.get(number);
        let theirs = (grant.first..=grant.ticket.serial).contains(&ticket.serial);
        let (object, writer, serial) = (grant.object, grant.writer, ticket.serial);
        if !theirs {
            let what = format_args!("a store of ticket {serial} landed in {object}, granted since");
            self.violate(at, Rule::LateStore, what);
        } else if writer == Writer::Ended {
            let what = format_args!("a store of ticket {serial} landed in {object}, which is finished");
            self.violate(at, Rule::LateStore, what);
        }
    }

    /// A bit flipped at `to` of a region.
    pub fn flipped(&mut self, region: &Region, to: u64) {
        if let Some(segment) = self.views[region.master.index()].segment(region.segment)
            && let Some(damaged) = segment.damaged.get_mut((to / GRANULE) as usize)
        {
            *damaged = true;
        }
    }
}
