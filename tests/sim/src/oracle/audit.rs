//! The full recount: all that a master holds against the oracle's account, and all that is left after a quiet time.

use springtide_core::id::SegmentId;
use springtide_core::master::{Held, Holder, Master};
use springtide_core::range::Extent;
use springtide_core::ticket::Ticket;
use springtide_core::time::Instant;

use super::objects::is_there;
use super::space::{Seen, granules};
use super::{Oracle, Rule};
use crate::fabric::Fabric;
use crate::pattern;
use crate::queue::Pid;

impl Oracle {
    /// Recounts everything that the master `pid` holds, whose clock it does not look at. `round` differs from recount to recount, and is not zero.
    pub fn audit(&mut self, at: Instant, (pid, master): (Pid, &Master), fabric: &Fabric, round: u32) {
        let seen = Seen { at, master, fabric };
        self.recount(pid, seen, round);
        self.recheck(pid, seen);
    }

    /// Used bytes are the sum of what is granted, and nothing is granted twice.
    fn recount(&mut self, pid: Pid, seen: Seen<'_>, round: u32) {
        let (mut reserved, mut draining, mut used) = (0, 0, 0);
        let mut by_segment: Vec<(SegmentId, u64)> = Vec::new();
        let mut wrong: Option<(Rule, String)> = None;
        let view = &mut self.views[pid.index()];
        seen.master.extents(&mut |held: Held| {
            let len = held.extent.len();
            used += len;
            match held.by {
                Holder::Reserved(_) => reserved += len,
                Holder::Draining => draining += len,
                Holder::Complete(_) => {}
            }
            match by_segment.iter_mut().find(|(segment, _)| *segment == held.segment) {
                Some((_, sum)) => *sum += len,
                None => by_segment.push((held.segment, len)),
            }
            let grants = &view.grants;
            let Some(segment) = view.segments.iter_mut().find(|segment| segment.id == held.segment) else {
                let what = format!("{held:?} was never granted");
                wrong.get_or_insert((Rule::Shared, what));
                return;
            };
            for granule in granules(held.extent) {
                let twice = core::mem::replace(&mut segment.counted[granule], round) == round;
                let whose = segment.marks[granule].checked_sub(1).map(|number| grants.get(number).object);
                let theirs = match held.by {
                    Holder::Complete(object) | Holder::Reserved(object) => whose == Some(object),
                    Holder::Draining => whose.is_some(),
                };
                if twice || !theirs {
                    let what = format!("{held:?} was granted to {whose:?} (twice: {twice})");
                    wrong.get_or_insert((Rule::Shared, what));
                    return;
                }
            }
        });
        if let Some((rule, what)) = wrong {
            return self.violate(seen.at, rule, format_args!("{what}"));
        }
        let stats = seen.master.stats();
        let (is, said) = ((used, reserved, draining), (stats.used, stats.reserved, stats.draining));
        self.compare(seen.at, is, said);
        for segment in seen.master.segments() {
            let sum = by_segment.iter().find(|(id, _)| *id == segment.id).map_or(0, |(_, sum)| *sum);
            if sum != segment.used {
                let what = format_args!("{} has {sum} bytes in use, but says {}", segment.id, segment.used);
                return self.violate(seen.at, Rule::Count, what);
            }
        }
    }

    /// Compares used, reserved and draining bytes, as they are and as they are said to be.
    pub(super) fn compare(&mut self, at: Instant, is: (u64, u64, u64), said: (u64, u64, u64)) {
        if is != said {
            let what = format_args!("used, reserved and draining bytes are {is:?}, but said to be {said:?}");
            self.violate(at, Rule::Count, what);
        }
    }

    /// Every object that was finished is there with its lease, its pin and its bytes, or has a reason to be gone.
    fn recheck(&mut self, pid: Pid, seen: Seen<'_>) {
        for place in 0..self.views[pid.index()].objects.len() {
            let Some(object) = self.views[pid.index()].objects[place].clone() else { continue };
            let id = object.id;
            let Some(stat) = seen.master.object(id).filter(|_| is_there(seen.master, id)) else {
                self.lose_sight(pid, seen, id);
                continue;
            };
            if !object.complete {
                continue;
            }
            if stat.leased_until != object.lease {
                let (is, should) = (stat.leased_until, object.lease);
                let what = format_args!("{id} is leased until {is:?}, but by its reads until {should:?}");
                self.violate(seen.at, Rule::Renewed, what);
            }
            if (stat.pinned_until == Instant::NEVER) != object.hard_pin {
                self.violate(seen.at, Rule::Pinned, format_args!("{id} is not pinned as its put said"));
            }
            for &number in &object.grants {
                let Ticket { segment, extent, .. } = self.views[pid.index()].grants.get(number).ticket;
                let listed = stat.replicas.iter().any(|at| (at.segment, at.extent) == (segment, extent));
                let Some(value) = Extent::new(extent.offset(), object.len).filter(|_| listed) else {
                    continue;
                };
                self.recheck_bytes(pid, seen, (segment, value), object.put);
            }
        }
    }

    fn recheck_bytes(
        &mut self,
        pid: Pid,
        seen: Seen<'_>,
        (segment, value): (SegmentId, Extent),
        put: Option<u32>,
    ) {
        let Some(bytes) = seen.fabric.bytes(pid, segment, value) else { return };
        let view = &mut self.views[pid.index()];
        let Some(known) = view.segment(segment) else { return };
        let damaged = known.damaged[granules(value)].iter().any(|damaged| *damaged);
        if !damaged && put.is_some() && pattern::author(bytes) != put {
            let claims = pattern::claimed(bytes);
            let what = format_args!("{value:?} of {segment} held put {put:?}, and holds {claims:?}");
            self.violate(seen.at, Rule::Damaged, what);
        }
    }

    /// After a quiet time in which everybody was well: nothing of a master waits any more.
    pub fn settled(&mut self, at: Instant, (pid, master): (Pid, &Master)) {
        let stats = master.stats();
        if (stats.writing, stats.reserved, stats.draining) != (0, 0, 0) {
            let what = format_args!("master {} still has {stats:?}", pid.0);
            self.violate(at, Rule::Leak, what);
        }
        let duties: usize = master.members().map(|member| member.duties).sum();
        if duties > 0 {
            let what = format_args!("master {} still has {duties} fences to be answered", pid.0);
            self.violate(at, Rule::Leak, what);
        }
    }

    /// After a quiet time every process is registered.
    pub fn is_inside(&mut self, at: Instant, pid: Pid, inside: bool) {
        if !inside {
            self.violate(at, Rule::Leak, format_args!("process {} is not registered", pid.0));
        }
    }

    /// After a quiet time a client has no operations, calls, batches and permissions left.
    pub fn left_over(&mut self, at: Instant, pid: Pid, left: [usize; 3]) {
        if left != [0; 3] {
            let what = format_args!("client {} still has {left:?} operations, calls, transfers", pid.0);
            self.violate(at, Rule::Leak, what);
        }
    }

    /// After a quiet time nobody waits for an answer.
    pub fn nobody_waits(&mut self, at: Instant, members: usize) {
        let open = self.open_calls().saturating_sub(members);
        if open > 0 {
            self.violate(at, Rule::Leak, format_args!("{open} calls have no answer and no end"));
        }
    }
}
