//! What is stored where: the index by (tenant, key), replica states, leases, pins, groups.
//!
//! These are the records; [`crate::master`] drives them. An object takes 128 bytes with a key of up to 46, a
//! replica 32, an index entry 11 to 22; all tables grow by chunks, so that no command waits for a growing table.

mod groups;
mod index;
mod name;
mod table;

use core::hash::Hasher;

use siphasher::sip::SipHasher13;

use crate::checksum::Checksum;
use crate::id::{MemberId, ObjectId, TenantId};
use crate::range::{Extent, GRANULE};
use crate::rng::{Rng, mix};
use crate::space::{Handle, MAX_SEGMENT_LEN};
use crate::time::Instant;

pub(crate) use groups::Groups;
pub(crate) use index::Index;
pub(crate) use name::Name;
pub(crate) use table::{NONE, Pool, Table};

/// Hashes tenant and key under a secret, so that peers cannot choose keys that collide.
#[derive(Clone, Copy, Debug)]
pub(crate) struct KeyHasher(u64, u64);

impl KeyHasher {
    pub(crate) fn new(rng: &mut Rng) -> Self {
        Self(rng.next_u64(), rng.next_u64())
    }

    /// The hash of `bytes` of `tenant` (SipHash-1-3).
    #[inline]
    pub(crate) fn hash(&self, tenant: TenantId, bytes: &[u8]) -> u64 {
        let mut hasher = SipHasher13::new_with_keys(self.0 ^ mix(u64::from(tenant.0)), self.1);
        hasher.write(bytes);
        hasher.finish()
    }
}

/// An object, or an extent granted ahead that has no key yet (S0A-072).
#[derive(Debug)]
pub(crate) struct Object {
    /// Empty for an extent granted ahead.
    pub(crate) key: Name,
    /// The upper half of its hash: all that the index uses, and enough for the policy to know it again.
    pub(crate) hash: u32,
    /// The value's length; for an extent granted ahead, the longest value it may hold.
    pub(crate) len: u64,
    pub(crate) phase: Phase,
    pub(crate) writer: MemberId,
    /// When the pin ends: [`Instant::ORIGIN`] for none, [`Instant::NEVER`] for a hard one. While the object is
    /// written, how long the pin will last.
    pub(crate) pin: Instant,
    pub(crate) tenant: TenantId,
    /// The first of its replicas.
    pub(crate) replicas: u32,
}

/// How far an object is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Phase {
    /// Its put has not ended.
    Writing {
        /// When it is given up.
        deadline: Instant,
        /// Which request began it; of an extent granted ahead, the last one to publish it that was refused.
        request: u64,
        /// The put begun before it, and the one after.
        links: Links,
    },
    /// It can be read.
    Complete {
        /// When the last lease ends.
        lease: Instant,
        checksum: Checksum,
        /// How long a read keeps its soft pin, in milliseconds, rounded up, at most 49 days; zero without one.
        pin_for: u32,
        home: Home,
    },
}

/// Where the first replica of a finished object is, if that is complete: most look-ups need not read the replica.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Home {
    /// In three words, as the record is aligned to no more: the first granule and, in the lowest [`SEAT_BITS`] bits, the
    /// seat; then the length in granules, or zero if there are other replicas.
    words: [u32; 3],
}

/// Seats with higher numbers are nobody's home; neither are extents of 256 GiB or more.
const SEAT_BITS: u32 = 20;
const NO_SEAT: u32 = (1 << SEAT_BITS) - 1;
const _: () = assert!(MAX_SEGMENT_LEN / GRANULE <= 1 << (64 - SEAT_BITS));

impl Home {
    /// The first replica has to be looked at.
    pub(crate) const UNKNOWN: Self = Self { words: [NO_SEAT, 0, 0] };

    /// The home of an object whose first replica is `first`.
    pub(crate) fn new(first: &Replica) -> Self {
        let (extent, alone) = (first.extent(), first.next == NONE);
        let Ok(granules) = u32::try_from(extent.len() / GRANULE) else { return Self::UNKNOWN };
        if !first.is(ReplicaState::Complete) || first.seat >= NO_SEAT {
            return Self::UNKNOWN;
        }
        let place = (extent.offset() / GRANULE) << SEAT_BITS | u64::from(first.seat);
        Self { words: [place as u32, (place >> 32) as u32, if alone { granules } else { 0 }] }
    }

    /// The seat of the first replica.
    #[inline]
    pub(crate) const fn seat(self) -> Option<u32> {
        let seat = self.words[0] & NO_SEAT;
        if seat == NO_SEAT { None } else { Some(seat) }
    }

    /// The seat and the extent of the one replica, if there are no others.
    #[inline]
    pub(crate) fn only(self) -> Option<(u32, Extent)> {
        let [low, high, granules] = self.words;
        let place = u64::from(high) << 32 | u64::from(low);
        let seat = self.seat().filter(|_| granules > 0)?;
        Some((seat, Extent::new((place >> SEAT_BITS) * GRANULE, u64::from(granules) * GRANULE)?))
    }
}

/// Neighbours in a list through slots; [`NONE`] at the ends.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Links {
    pub(crate) prev: u32,
    pub(crate) next: u32,
}

impl Links {
    pub(crate) const ALONE: Self = Self { prev: NONE, next: NONE };
}

impl Object {
    /// Whether it is pinned at `now`.
    pub(crate) fn pinned(&self, now: Instant) -> bool {
        self.pin > now
    }

    /// When the last lease ends; the origin while nobody could get one.
    pub(crate) const fn lease(&self) -> Instant {
        match self.phase {
            Phase::Complete { lease, .. } => lease,
            Phase::Writing { .. } => Instant::ORIGIN,
        }
    }

    /// What is known of its first replica.
    #[inline]
    pub(crate) const fn home(&self) -> Home {
        match self.phase {
            Phase::Complete { home, .. } => home,
            Phase::Writing { .. } => Home::UNKNOWN,
        }
    }

    pub(crate) const fn is_complete(&self) -> bool {
        matches!(self.phase, Phase::Complete { .. })
    }
}

/// One extent that holds, held, or will hold an object: half a cache line, so that none lies across two.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Replica {
    /// Its first byte, a multiple of the granule; below that its state and [`USED`].
    place: u64,
    /// How many bytes.
    len: u64,
    /// Where its segment is in the shard's table.
    pub(crate) seat: u32,
    pub(crate) handle: Handle,
    /// The object's slot; while draining, the drain's.
    pub(crate) object: u32,
    /// The object's next replica; the next vacant one of a vacant one.
    pub(crate) next: u32,
}

/// A copy reads from the replica.
const USED: u64 = 1 << 2;
const STATE: u64 = USED - 1;
const _: () = assert!(USED << 1 <= GRANULE);

/// A replica's life: `Reserved → Complete → Draining → Vacant`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum ReplicaState {
    /// No replica.
    Vacant,
    /// Somebody may be writing it.
    Reserved,
    /// It can be read.
    Complete,
    /// Its object is gone; it waits for leases, copies or a fence.
    Draining,
}

/// Whether a copy reads from a replica.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Use {
    Idle,
    Copied,
}

impl Replica {
    /// A vacant one.
    pub(crate) const VACANT: Self =
        Self { place: 0, len: 0, seat: NONE, handle: Handle::from_bits(0), object: NONE, next: NONE };

    /// The last replica of the object in slot `object`, still vacant.
    pub(crate) fn new(extent: Extent, seat: u32, handle: Handle, object: u32) -> Self {
        debug_assert!(extent.offset().is_multiple_of(GRANULE), "extents begin at granules");
        Self { place: extent.offset(), len: extent.len(), seat, handle, object, next: NONE }
    }

    #[inline]
    pub(crate) const fn extent(&self) -> Extent {
        Extent::new(self.place & !(USED | STATE), self.len).expect("it was an extent before")
    }

    #[inline]
    pub(crate) const fn state(&self) -> ReplicaState {
        match self.place & STATE {
            0 => ReplicaState::Vacant,
            1 => ReplicaState::Reserved,
            2 => ReplicaState::Complete,
            _ => ReplicaState::Draining,
        }
    }

    /// Changes its state, and gives back the one before.
    pub(crate) const fn set_state(&mut self, state: ReplicaState) -> ReplicaState {
        let was = self.state();
        self.place = self.place & !STATE | state as u64;
        was
    }

    #[inline]
    pub(crate) fn is(&self, state: ReplicaState) -> bool {
        self.state() == state
    }

    /// Whether a copy reads from it.
    #[inline]
    pub(crate) const fn is_copied(&self) -> bool {
        self.place & USED != 0
    }

    /// Notes whether a copy reads from it: at most one does, as an object is copied once at a time.
    pub(crate) const fn set_use(&mut self, now: Use) {
        match now {
            Use::Idle => self.place &= !USED,
            Use::Copied => self.place |= USED,
        }
    }
}

/// The table of objects.
pub(crate) type Objects = Table<ObjectId, Object>;

#[cfg(target_pointer_width = "64")]
const _: () = assert!(size_of::<Object>() <= 120 && size_of::<Replica>() == 32);

#[cfg(test)]
mod tests {
    use super::*;

    fn replica(offset: u64, len: u64, seat: u32) -> Replica {
        let mut replica = Replica::new(Extent::new(offset, len).unwrap(), seat, Handle::from_bits(3), 9);
        replica.set_state(ReplicaState::Complete);
        replica
    }

    #[test]
    fn a_replica_keeps_state_use_and_extent_apart() {
        let mut replica = replica(MAX_SEGMENT_LEN - GRANULE, GRANULE, 0);
        let extent = replica.extent();
        let states =
            [ReplicaState::Reserved, ReplicaState::Complete, ReplicaState::Draining, ReplicaState::Vacant];
        for state in states {
            let was = replica.state();
            assert_eq!((replica.set_state(state), replica.is(state)), (was, true));
            for (now, copied) in [(Use::Copied, true), (Use::Idle, false)] {
                replica.set_use(now);
                assert_eq!((replica.is_copied(), replica.state(), replica.extent()), (copied, state, extent));
            }
        }
    }

    #[test]
    fn a_home_is_all_of_the_only_replica() {
        for (offset, len, seat) in [
            (0, GRANULE, 0),
            (MAX_SEGMENT_LEN - GRANULE, GRANULE, NO_SEAT - 1),
            (7 * GRANULE, u64::from(u32::MAX) * GRANULE, 5),
        ] {
            let mut first = replica(offset, len, seat);
            assert_eq!(Home::new(&first).only(), Some((seat, first.extent())));
            first.next = 1;
            assert_eq!((Home::new(&first).only(), Home::new(&first).seat()), (None, Some(seat)));
            first.set_state(ReplicaState::Reserved);
            assert_eq!(Home::new(&first), Home::UNKNOWN);
        }
        assert_eq!((Home::UNKNOWN.seat(), Home::UNKNOWN.only()), (None, None));
        assert_eq!(Home::new(&replica(0, GRANULE, NO_SEAT)), Home::UNKNOWN);
        assert_eq!(Home::new(&replica(0, GRANULE << 32, 0)), Home::UNKNOWN);
    }
}
