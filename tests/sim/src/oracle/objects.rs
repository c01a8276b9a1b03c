//! What a master holds, as the oracle accounts for it.

use core::time::Duration;

use springtide_core::id::{Id, Incarnation, ObjectId, SegmentId, Term};
use springtide_core::master::{MAX_REPLICAS, Master};
use springtide_core::range::Extent;
use springtide_core::ticket::Ticket;
use springtide_core::time::Instant;
use springtide_core::wire::message::{Found, Grant as Granted, Placement};

use super::space::{Grants, Seen, Segment, Writer, granules};
use super::{Oracle, Rule};
use crate::pattern;
use crate::plan::Plan;
use crate::queue::Pid;

/// The oracle's account of one life of one master.
#[derive(Debug)]
pub(super) struct View {
    /// The master's clock, as it counts: never back.
    pub(super) now: Instant,
    pub(super) objects: Vec<Option<Object>>,
    /// By key: what can be read under it.
    pub(super) current: Vec<Option<ObjectId>>,
    pub(super) segments: Vec<Segment>,
    pub(super) grants: Grants,
    /// Objects that must have been evicted.
    pub(super) missed: u64,
    pub(super) lease: Duration,
    pub(super) release: Duration,
}

/// An object, finished or not.
#[derive(Clone, Debug)]
pub(super) struct Object {
    pub(super) id: ObjectId,
    pub(super) key: Option<u32>,
    pub(super) grants: heapless::Vec<u32, MAX_REPLICAS>,
    /// Until when readers count on it, by the master's clock.
    pub(super) lease: Instant,
    pub(super) hard_pin: bool,
    pub(super) complete: bool,
    pub(super) len: u64,
    /// Whose bytes it holds, where they could be looked at.
    pub(super) put: Option<u32>,
}

impl View {
    pub(super) fn new(plan: &Plan) -> Self {
        Self {
            now: Instant::ORIGIN,
            objects: Vec::new(),
            current: vec![None; plan.work.keys as usize],
            segments: Vec::new(),
            grants: Grants::default(),
            missed: 0,
            lease: plan.rules.lease,
            release: plan.rules.put_release,
        }
    }

    /// Another life: nothing is known.
    pub(super) fn begin(&mut self) {
        self.now = Instant::ORIGIN;
        self.objects.clear();
        self.current.fill(None);
        self.segments.clear();
        self.grants = Grants::default();
        self.missed = 0;
    }

    pub(super) fn object(&mut self, id: ObjectId) -> Option<&mut Object> {
        self.objects.get_mut(id.index())?.as_mut().filter(|object| object.id == id)
    }

    pub(super) fn current(&self, key: u32) -> Option<ObjectId> {
        self.current.get(key as usize).copied().flatten()
    }

    /// Takes an object out, whose writer is now `writer` if it was not finished.
    pub(super) fn take(&mut self, id: ObjectId, writer: Writer) -> Option<Object> {
        self.object(id)?;
        let object = self.objects[id.index()].take()?;
        for &number in &object.grants {
            let grant = self.grants.get_mut(number);
            grant.until = grant.until.max(object.lease);
            if !object.complete {
                grant.writer = writer;
            }
        }
        object.grants.iter().for_each(|&number| self.grants.unmark(number));
        if let Some(key) = object.key.filter(|_| object.complete)
            && self.current(key) == Some(id)
        {
            self.current[key as usize] = None;
        }
        Some(object)
    }
}

impl Oracle {
    /// An object was granted its extents, for the first time or again.
    pub(super) fn began(
        &mut self,
        pid: Pid,
        seen: Seen<'_>,
        (key, len, hard_pin): (Option<u32>, u64, bool),
        term: Term,
        granted: &Granted,
    ) {
        let id = granted.object;
        let ticket = |placement: &Placement| {
            let Placement { segment, extent, serial, tag } = *placement;
            Ticket { owner: owner(seen.master, segment), segment, extent, serial, term, tag }
        };
        if let Some(known) = self.views[pid.index()].object(id).cloned() {
            for (number, placement) in known.grants.iter().zip(&granted.replicas) {
                self.granted_again(pid, *number, ticket(placement));
            }
            return;
        }
        let old = self.views[pid.index()].objects.get(id.index()).and_then(Option::as_ref).map(|old| old.id);
        if let Some(old) = old {
            self.lose_sight(pid, seen, old);
        }
        let numbers = granted.replicas.iter().map(|placement| self.granted(pid, seen, id, ticket(placement)));
        let grants = numbers.collect();
        let objects = &mut self.views[pid.index()].objects;
        if objects.len() <= id.index() {
            objects.resize(id.index() + 1, None);
        }
        let (lease, complete, put) = (Instant::ORIGIN, false, None);
        objects[id.index()] = Some(Object { id, key, grants, lease, hard_pin, complete, len, put });
    }

    /// An object can be read from now on.
    pub(super) fn finished(
        &mut self,
        pid: Pid,
        seen: Seen<'_>,
        id: ObjectId,
        name: Option<(u32, u64)>,
        failed: &[SegmentId],
    ) {
        let view = &mut self.views[pid.index()];
        let Some(object) = view.object(id) else {
            let what = format_args!("{id} was ended, but never begun");
            return self.violate(seen.at, Rule::Early, what);
        };
        if object.complete {
            return;
        }
        if let Some((key, len)) = name {
            (object.key, object.len) = (Some(key), len);
        }
        object.complete = true;
        let mut object = object.clone();
        object.grants.retain(|&number| {
            let grant = view.grants.get_mut(number);
            let written = !failed.contains(&grant.ticket.segment);
            grant.writer = if written { Writer::Ended } else { Writer::Unsure };
            if !written {
                view.grants.unmark(number);
            }
            written
        });
        let Some(key) = object.key else { return };
        object.put = self.look(pid, seen, &object).or_else(|| self.put_ending_as(pid, id, key));
        let view = &mut self.views[pid.index()];
        let before = view.current(key);
        view.objects[id.index()] = Some(object.clone());
        if let Some(before) = before {
            if is_there(seen.master, before) {
                let what = format_args!("key {key} is {before} and {id}");
                self.violate(seen.at, Rule::Shared, what);
            }
            self.lose_sight(pid, seen, before);
        }
        self.views[pid.index()].current[key as usize] = Some(id);
        if let Some(put) = object.put {
            self.put_readable(seen.at, put, pid, (key, object.len));
        }
    }

    /// Looks at the bytes of a finished object's replicas: whose they are.
    fn look(&mut self, pid: Pid, seen: Seen<'_>, object: &Object) -> Option<u32> {
        let mut put = None;
        for &number in &object.grants {
            let Ticket { segment, extent, .. } = self.views[pid.index()].grants.get(number).ticket;
            let value = Extent::new(extent.offset(), object.len)?;
            let Some(bytes) = seen.fabric.bytes(pid, segment, value) else { continue };
            let view = &mut self.views[pid.index()];
            let damaged = view
                .segment(segment)
                .is_some_and(|known| known.damaged[granules(value)].iter().any(|damaged| *damaged));
            let author = pattern::author(bytes);
            if damaged {
                continue;
            }
            if author.is_none() || put.is_some_and(|put| Some(put) != author) {
                let (id, claims) = (object.id, pattern::claimed(bytes));
                let what = format_args!(
                    "{id} was ended with other bytes than a value's at {} of {segment} (first of {claims:?})",
                    value.offset()
                );
                self.violate(seen.at, Rule::Bytes, what);
                return None;
            }
            put = author;
        }
        put
    }

    /// What was given up or removed is no object any more, from that moment on.
    pub(super) fn must_be_gone(&mut self, seen: Seen<'_>, id: ObjectId) {
        if seen.master.object(id).is_some() {
            self.violate(seen.at, Rule::Leak, format_args!("{id} was given up, and is there all the same"));
        }
    }

    /// An object may be gone: if its master has it no more, there must be a reason.
    pub(super) fn lose_sight(&mut self, pid: Pid, seen: Seen<'_>, id: ObjectId) {
        if is_there(seen.master, id) {
            return;
        }
        let view = &mut self.views[pid.index()];
        let Some(object) = view.object(id).cloned() else { return };
        let in_pool = |number: &u32| seen.master.segment(view.grants.get(*number).ticket.segment).is_some();
        let kept = object.grants.iter().any(in_pool);
        view.take(id, Writer::Unsure);
        if !object.complete || !kept {
            return;
        }
        let (now, key) = (view.now, object.key);
        view.missed += 1;
        let (missed, evicted) = (view.missed, seen.master.stats().totals.evicted);
        if object.hard_pin {
            self.violate(seen.at, Rule::Pinned, format_args!("{id} (key {key:?}) is gone, and was pinned"));
        } else if object.lease > now {
            let left = object.lease.since(now);
            let what = format_args!("{id} (key {key:?}) is gone, and was leased for {left:?} more");
            self.violate(seen.at, Rule::Leased, what);
        } else if missed > evicted {
            let what = format_args!("{id} (key {key:?}) is gone, and was not evicted ({evicted} were)");
            self.violate(seen.at, Rule::Vanished, what);
        }
    }

    /// A client found that bytes do not sum to what they must.
    pub fn corrupt(&mut self, at: Instant, master: Pid, segment: SegmentId, found: &Found, asked: Instant) {
        // Later than this the bytes may be somebody else's; the reader finds out.
        if at > asked + self.lease / 2 {
            return;
        }
        let Some(location) = found.replicas.iter().find(|location| location.segment == segment) else {
            return;
        };
        let view = &mut self.views[master.index()];
        let value = Extent::new(location.offset, found.len).map(granules);
        let damaged = view.segment(segment).zip(value).is_none_or(|(segment, value)| {
            segment.damaged.get(value).is_none_or(|all| all.iter().any(|damaged| *damaged))
        });
        let same = view.object(found.object).is_some();
        if same && !damaged {
            let what = format_args!("the bytes of {} in {segment} are not what was written", found.object);
            self.violate(at, Rule::Damaged, what);
        }
    }
}

/// Whether a master has an object with a replica on a segment of the pool. What is only on segments that left is swept
/// later, and as good as gone.
pub(super) fn is_there(master: &Master, id: ObjectId) -> bool {
    master.object(id).is_some_and(|stat| !stat.replicas.is_empty())
}

fn owner(master: &Master, segment: SegmentId) -> Incarnation {
    let member = master.segment(segment).and_then(|segment| master.member(segment.owner));
    member.map_or_else(Incarnation::default, |member| member.incarnation)
}
