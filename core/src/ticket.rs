//! Write permissions: who may store into which bytes, and how that permission ends.
//!
//! A master grants an extent together with a [`Ticket`]; the owner of the memory checks the ticket before a byte
//! lands ([`Gate`]) and, when the master wants the extent back, refuses what was granted before ([`Gate::fence`]).

use alloc::collections::VecDeque;
use core::fmt;
use core::hash::Hasher;

use serde::{Deserialize, Serialize};
use siphasher::sip::SipHasher24;

use crate::id::{Incarnation, SegmentId, Term};
use crate::range::Extent;

/// The secret that a master and one owner share to make and check tickets. Given at registration; never logged.
#[derive(Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct TicketKey(pub [u8; 16]);

impl fmt::Debug for TicketKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("TicketKey(…)")
    }
}

/// Permission to store into `extent` of one segment of one owner, until it is fenced.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Ticket {
    /// Whose memory: a later life of the same process refuses it.
    pub owner: Incarnation,
    /// Which segment.
    pub segment: SegmentId,
    /// Which bytes.
    pub extent: Extent,
    /// Grows with every grant of one master; a fence names the serials that it ends.
    pub serial: u64,
    /// The master's term when it granted.
    pub term: Term,
    /// Proof that the master made it ([`TicketKey::tag`]).
    pub tag: u64,
}

impl TicketKey {
    /// The tag of a ticket with these fields (SipHash-2-4, 64 bits).
    pub fn tag(&self, ticket: &Ticket) -> u64 {
        let mut hasher = SipHasher24::new_with_key(&self.0);
        hasher.write(&ticket.owner.0.to_le_bytes());
        for word in [
            ticket.segment.to_bits(),
            ticket.extent.offset(),
            ticket.extent.len(),
            ticket.serial,
            ticket.term.0,
        ] {
            hasher.write(&word.to_le_bytes());
        }
        hasher.finish()
    }

    /// The ticket with its tag.
    pub fn sign(&self, ticket: Ticket) -> Ticket {
        Ticket { tag: self.tag(&ticket), ..ticket }
    }
}

/// Why a store was refused.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Denied {
    /// The ticket is for another process, or for an earlier life of this one.
    Owner,
    /// The ticket is for another segment, or the store reaches outside its extent.
    Range,
    /// The tag is wrong.
    Forged,
    /// The ticket was fenced.
    Fenced,
}

impl fmt::Display for Denied {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Owner => "the ticket is for another life of this process; look the object up again",
            Self::Range => "the store reaches outside what the ticket grants",
            Self::Forged => "the ticket was not made by this cluster's master",
            Self::Fenced => "the ticket is no longer valid; start the put again",
        })
    }
}

impl core::error::Error for Denied {}

/// What the owner of one segment needs in order to admit or refuse stores into it.
///
/// It remembers [`Gate::FENCES`] fences at most. When one more comes, the oldest two are joined into one that covers
/// both and ends every serial below the higher: that may refuse a store that was still allowed (the writer starts
/// again), never admit one that was not.
#[derive(Clone, Debug)]
pub struct Gate {
    owner: Incarnation,
    segment: SegmentId,
    key: TicketKey,
    fences: VecDeque<(Extent, u64)>,
}

impl Gate {
    /// How many fences one gate remembers apart from each other.
    pub const FENCES: usize = 4_096;

    /// A gate with no fences yet.
    pub const fn new(owner: Incarnation, segment: SegmentId, key: TicketKey) -> Self {
        Self { owner, segment, key, fences: VecDeque::new() }
    }

    /// Whether a store into `store` under `ticket` may land. O(number of fences).
    pub fn admit(&self, ticket: &Ticket, store: Extent) -> Result<(), Denied> {
        if ticket.owner != self.owner {
            return Err(Denied::Owner);
        }
        if ticket.segment != self.segment || !ticket.extent.contains(store) {
            return Err(Denied::Range);
        }
        if self.key.tag(ticket) != ticket.tag {
            return Err(Denied::Forged);
        }
        let fenced = |&(extent, below): &(Extent, u64)| ticket.serial < below && extent.overlaps(store);
        if self.fences.iter().any(fenced) { Err(Denied::Fenced) } else { Ok(()) }
    }

    /// From now on refuses tickets for `extent` whose serial is below `below`.
    pub fn fence(&mut self, extent: Extent, below: u64) {
        self.fences.retain(|&(older, serial)| !(extent.contains(older) && serial <= below));
        if self.fences.len() >= Self::FENCES {
            self.join_oldest();
        }
        self.fences.push_back((extent, below));
    }

    fn join_oldest(&mut self) {
        let (Some((a, x)), Some((b, y))) = (self.fences.pop_front(), self.fences.pop_front()) else { return };
        let start = a.offset().min(b.offset());
        let cover = Extent::new(start, a.end().max(b.end()) - start);
        self.fences.push_front((cover.unwrap_or(a), x.max(y)));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const KEY: TicketKey = TicketKey([7; 16]);
    const OWNER: Incarnation = Incarnation(1);

    fn extent(offset: u64, len: u64) -> Extent {
        Extent::new(offset, len).unwrap()
    }

    fn segment() -> SegmentId {
        SegmentId::from_bits(1 << 32).unwrap()
    }

    fn ticket(serial: u64) -> Ticket {
        let (segment, extent) = (segment(), extent(0, 128));
        KEY.sign(Ticket { owner: OWNER, segment, extent, serial, term: Term(1), tag: 0 })
    }

    #[test]
    fn every_field_is_checked() {
        let gate = Gate::new(OWNER, segment(), KEY);
        let good = ticket(5);
        assert_eq!(gate.admit(&good, extent(64, 64)), Ok(()));
        assert_eq!(gate.admit(&good, extent(64, 65)), Err(Denied::Range));
        assert_eq!(gate.admit(&Ticket { owner: Incarnation(2), ..good }, extent(0, 1)), Err(Denied::Owner));
        assert_eq!(gate.admit(&Ticket { serial: 6, ..good }, extent(0, 1)), Err(Denied::Forged));
        assert_eq!(gate.admit(&Ticket { extent: extent(0, 256), ..good }, extent(0, 1)), Err(Denied::Forged));
        assert_eq!(gate.admit(&Ticket { term: Term(2), ..good }, extent(0, 1)), Err(Denied::Forged));
    }

    #[test]
    fn a_fence_ends_older_tickets_and_no_newer() {
        let mut gate = Gate::new(OWNER, segment(), KEY);
        gate.fence(extent(0, 64), 6);
        assert_eq!(gate.admit(&ticket(5), extent(0, 1)), Err(Denied::Fenced));
        assert_eq!(gate.admit(&ticket(5), extent(64, 1)), Ok(()));
        assert_eq!(gate.admit(&ticket(6), extent(0, 1)), Ok(()));
    }

    #[test]
    fn too_many_fences_refuse_more_and_admit_nothing_new() {
        let mut gate = Gate::new(OWNER, segment(), KEY);
        for n in 0..10 * Gate::FENCES as u64 {
            gate.fence(extent(n * 64 % 640, 1), n);
        }
        assert!(gate.fences.len() <= Gate::FENCES);
        assert_eq!(gate.admit(&ticket(5), extent(0, 1)), Err(Denied::Fenced));
    }
}
