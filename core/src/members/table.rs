//! The table of members and their health.

use alloc::boxed::Box;
use alloc::collections::BTreeMap;
use alloc::vec::Vec;
use core::time::Duration;

use super::shunned::Shunned;
use super::{ClientStatus, Duty, Fences, Member};
use crate::id::{Incarnation, MemberId, ObjectId, SegmentId};
use crate::slab::Slab;
use crate::ticket::TicketKey;
use crate::time::Instant;

/// Everybody who is registered (S0A-033, S0B-120).
#[derive(Debug)]
pub(crate) struct Members {
    records: Slab<MemberId, Record>,
    ids: BTreeMap<Incarnation, MemberId>,
    ttl: Duration,
    crashed: Duration,
    /// No member's health changes by silence before this.
    due: Instant,
}

/// One member (S0B-132).
#[derive(Debug)]
pub(crate) struct Record {
    pub(crate) incarnation: Incarnation,
    pub(crate) name: Box<str>,
    pub(crate) address: Box<str>,
    pub(crate) key: TicketKey,
    pub(crate) fences: Fences,
    pub(crate) status: ClientStatus,
    last_beat: Instant,
    /// Its segments, in the order of mounting.
    pub(crate) segments: Vec<SegmentId>,
    /// What it has to do, by number.
    pub(crate) duties: BTreeMap<u64, Duty>,
    /// Its last reservation: the request, and what was granted. A repeated request gets the same again.
    pub(crate) reserved: (u64, Vec<ObjectId>),
    /// Where its writes failed lately.
    pub(crate) shunned: Shunned,
}

/// A member's health changed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Change {
    pub(crate) member: MemberId,
    pub(crate) to: ClientStatus,
}

impl Members {
    /// Nobody yet. Silence of `ttl` disconnects, of `crashed` ends (S0A-036; per table, not per process).
    pub(crate) fn new(ttl: Duration, crashed: Duration) -> Self {
        Self { records: Slab::default(), ids: BTreeMap::new(), ttl, crashed, due: Instant::NEVER }
    }

    /// Takes a member in. The caller has checked that it is not known.
    pub(crate) fn add(&mut self, now: Instant, incarnation: Incarnation, member: &Member<'_>) -> MemberId {
        let id = self.records.insert(Record {
            incarnation,
            name: member.name.into(),
            address: member.address.into(),
            key: member.key,
            fences: member.fences,
            status: ClientStatus::Healthy,
            last_beat: now,
            segments: Vec::new(),
            duties: BTreeMap::new(),
            reserved: (0, Vec::new()),
            shunned: Shunned::default(),
        });
        self.ids.insert(incarnation, id);
        self.due = self.due.min(now + self.ttl);
        id
    }

    /// Forgets a member.
    pub(crate) fn remove(&mut self, id: MemberId) -> Option<Record> {
        let record = self.records.remove(id)?;
        self.ids.remove(&record.incarnation);
        Some(record)
    }

    /// The member that this process is.
    pub(crate) fn id_of(&self, incarnation: Incarnation) -> Option<MemberId> {
        self.ids.get(&incarnation).copied()
    }

    pub(crate) fn get(&self, id: MemberId) -> Option<&Record> {
        self.records.get(id)
    }

    pub(crate) fn get_mut(&mut self, id: MemberId) -> Option<&mut Record> {
        self.records.get_mut(id)
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = (MemberId, &Record)> {
        self.records.iter()
    }

    pub(crate) const fn len(&self) -> usize {
        self.records.len()
    }

    /// How many are healthy. Counted, not kept (S0B-127).
    pub(crate) fn active(&self) -> usize {
        self.records.iter().filter(|(_, record)| record.status == ClientStatus::Healthy).count()
    }

    /// Another member that serves at `address`.
    pub(crate) fn at_address(&self, address: &str) -> Option<MemberId> {
        self.records.iter().find(|(_, record)| *record.address == *address).map(|(id, _)| id)
    }

    /// How long a member has given no sign of life; nothing if it is unknown.
    pub(crate) fn silence(&self, now: Instant, id: MemberId) -> Duration {
        self.records.get(id).map_or(Duration::ZERO, |record| now.since(record.last_beat))
    }

    /// Notes a sign of life: refreshes first and evaluates second, so a late one that comes before the evaluation
    /// keeps the member (S0A-036). A crashed one stays crashed.
    pub(crate) fn beat(&mut self, now: Instant, id: MemberId) -> Option<Change> {
        let record = self.records.get_mut(id)?;
        if record.status == ClientStatus::Crashed {
            return None;
        }
        record.last_beat = now;
        self.due = self.due.min(now + self.ttl);
        (record.status != ClientStatus::Healthy).then(|| {
            record.status = ClientStatus::Healthy;
            Change { member: id, to: ClientStatus::Healthy }
        })
    }

    /// When [`evaluate`](Self::evaluate) may find something (S0A-037).
    pub(crate) const fn due(&self) -> Instant {
        self.due
    }

    /// Looks at everybody's silence; appends what changed to `changes` (S0A-037, S0B-126). O(members), only when
    /// something may be due.
    pub(crate) fn evaluate(&mut self, now: Instant, changes: &mut Vec<Change>) {
        if !self.due.reached(now) {
            return;
        }
        self.due = Instant::NEVER;
        for (member, record) in self.records.iter_mut() {
            let silence = now.since(record.last_beat);
            let to = match record.status {
                ClientStatus::Crashed => continue,
                _ if silence >= self.crashed => ClientStatus::Crashed,
                _ if silence >= self.ttl => ClientStatus::Disconnected,
                _ => ClientStatus::Healthy,
            };
            if core::mem::replace(&mut record.status, to) != to {
                changes.push(Change { member, to });
            }
            let next = if to == ClientStatus::Healthy { self.ttl } else { self.crashed };
            if to != ClientStatus::Crashed {
                self.due = self.due.min(record.last_beat + next);
            }
        }
    }
}

#[cfg(test)]
mod tests;
