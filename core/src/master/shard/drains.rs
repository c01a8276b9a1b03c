//! Bytes on their way out: they wait for leases, copies and fences.

use alloc::collections::BinaryHeap;
use core::cmp::Reverse;
use core::num::NonZeroU32;

use super::super::events::ToControl;
use super::Shard;
use crate::id::Id;
use crate::object::ReplicaState;
use crate::slab::Slab;
use crate::time::Instant;

/// One replica that drains. The fence that it asks for has its number too, under a salt: what an owner still reports
/// to the next master means nothing there.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) struct DrainId(NonZeroU32, u32);

impl Id for DrainId {
    fn new(index: u32, generation: NonZeroU32) -> Self {
        Self(generation, index)
    }

    fn index(self) -> usize {
        self.1 as usize
    }

    fn generation(self) -> NonZeroU32 {
        self.0
    }
}

impl DrainId {
    const fn bits(self) -> u64 {
        (self.0.get() as u64) << 32 | self.1 as u64
    }

    fn from_bits(bits: u64) -> Option<Self> {
        NonZeroU32::new((bits >> 32) as u32).map(|generation| Self(generation, bits as u32))
    }
}

#[derive(Clone, Copy, Debug)]
pub(super) struct Drain {
    replica: u32,
    /// When the last lease ends.
    until: Instant,
    /// A fence was asked for; without an answer it is taken for done at this moment.
    fence: Option<Instant>,
}

/// What drains, and when to look at it again.
#[derive(Debug)]
pub(super) struct Drains {
    salt: u64,
    drains: Slab<DrainId, Drain>,
    timers: BinaryHeap<Reverse<(Instant, DrainId)>>,
}

impl Drains {
    pub(super) fn new(salt: u64) -> Self {
        Self { salt, drains: Slab::default(), timers: BinaryHeap::new() }
    }

    fn number(&self, id: DrainId) -> u64 {
        id.bits() ^ self.salt
    }

    /// The replica of the drain in slot `index` is gone with its segment.
    pub(super) fn forget(&mut self, index: u32) {
        if let Some(id) = self.drains.id_at(index as usize) {
            self.drains.remove(id);
        }
    }

    /// When to look next.
    pub(super) fn due(&self) -> Instant {
        self.timers.peek().map_or(Instant::NEVER, |Reverse((due, _))| *due)
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = (DrainId, &Drain)> {
        self.drains.iter()
    }
}

impl Drain {
    /// What it waits for, as numbers.
    pub(super) fn words(&self) -> [u64; 3] {
        [u64::from(self.replica), self.until.nanos(), self.fence.map_or(0, Instant::nanos)]
    }
}

impl Shard {
    pub(super) fn drain(&mut self, now: Instant, number: u32, until: Instant, fence: Option<Instant>) {
        self.set_state(number, ReplicaState::Draining);
        let fence = fence.map(|since| since + self.times.release);
        let id = self.drains.drains.insert(Drain { replica: number, until, fence });
        let replica = &mut self.replicas[number];
        replica.object = id.index() as u32;
        if let Some(over) = fence {
            let segment = self.seats.at(replica.seat).segment;
            let number = self.drains.number(id);
            self.out.push(ToControl::Fence { number, segment, extent: replica.extent() });
            self.drains.timers.push(Reverse((over, id)));
        }
        if !until.reached(now) {
            self.drains.timers.push(Reverse((until, id)));
        }
    }

    /// The owner has fenced what drain `number` asked for.
    pub(super) fn fenced(&mut self, now: Instant, number: u64) {
        let Some(id) = DrainId::from_bits(number ^ self.drains.salt) else { return };
        if let Some(drain) = self.drains.drains.get_mut(id) {
            drain.fence = None;
            self.settle_drain(now, id);
        }
    }

    /// Gives the bytes of drain number `index` back if nothing holds them any more.
    pub(super) fn settle_drain_at(&mut self, now: Instant, index: u32) {
        if let Some(id) = self.drains.drains.id_at(index as usize) {
            self.settle_drain(now, id);
        }
    }

    fn settle_drain(&mut self, now: Instant, id: DrainId) {
        let Some(&Drain { replica, until, fence }) = self.drains.drains.get(id) else { return };
        let fenced = fence.is_none_or(|over| over.reached(now));
        if !until.reached(now) || !fenced || self.replicas[replica].is_copied() {
            return;
        }
        self.drains.drains.remove(id);
        if fence.is_some() {
            let segment = self.seats.at(self.replicas[replica].seat).segment;
            self.out.push(ToControl::FenceOver { number: self.drains.number(id), segment });
        }
        self.give_back(replica);
    }

    /// Looks at up to `budget` drains whose time has come.
    pub(in crate::master) fn settle_drains(&mut self, now: Instant, budget: u32) {
        for _ in 0..budget {
            match self.drains.timers.peek() {
                Some(&Reverse((due, id))) if due.reached(now) => {
                    self.drains.timers.pop();
                    self.settle_drain(now, id);
                }
                _ => return,
            }
        }
    }
}
