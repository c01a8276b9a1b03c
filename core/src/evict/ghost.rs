//! Fingerprints of what was given up: a ring in order of time, with a hash index that grows one bucket at a time.

use super::chunks::Chunks;

/// No ghost.
const NONE: u32 = u32::MAX;
/// Ring positions that one call looks at to forget ghosts, holes included.
const TRIM: u32 = 4;

/// An entry's name among the ghosts: 32 bits of its fingerprint, never zero. Of `n` ghosts, one in 2³² ÷ `n` unknown
/// entries is taken for known: a wrong guess, not an error.
pub(super) const fn tag(fingerprint: u64) -> u32 {
    let tag = (fingerprint ^ (fingerprint >> 32)) as u32;
    if tag == 0 { 1 } else { tag }
}

/// The last so many entries that were given up and did not come back.
///
/// The index is a linear hash table: buckets are chains through the ring, and the next bucket is split whenever the
/// ring gets longer, so no call moves more than one chain.
#[derive(Clone, Debug, Default)]
pub(super) struct Ghosts {
    ring: Chunks<Ghost>,
    heads: Chunks<Head>,
    /// Ring positions in use, and as many buckets.
    size: u32,
    /// Where the next ghost goes.
    next: u32,
    /// The oldest that may still be known.
    oldest: u32,
    live: u32,
}

#[derive(Clone, Copy, Debug, Default)]
struct Ghost {
    /// Zero: nobody.
    tag: u32,
    /// The next of the same bucket.
    chain: u32,
}

#[derive(Clone, Copy, Debug)]
struct Head(u32);

impl Default for Head {
    fn default() -> Self {
        Self(NONE)
    }
}

impl Ghosts {
    /// What is kept for each ring position.
    pub(super) const BYTES_PER_GHOST: usize = size_of::<Ghost>() + size_of::<Head>();

    /// Remembers `tag` as the newest of at most `limit`, and forgets the oldest beyond. The ring gets a quarter longer
    /// than `limit`, as those that came back leave holes.
    pub(super) fn add(&mut self, tag: u32, limit: u32) {
        self.take(tag);
        if self.next == self.size {
            if self.size < limit.saturating_add(limit / 4).max(1) {
                self.split();
            } else {
                self.next = 0;
            }
        }
        let place = self.next;
        self.next += 1;
        self.forget(place);
        if place == self.oldest {
            self.oldest = self.next;
        }
        let bucket = self.bucket_of(tag);
        self.ring[place] = Ghost { tag, chain: self.heads[bucket].0 };
        self.heads[bucket].0 = place;
        self.live += 1;
        self.trim(limit);
    }

    /// Forgets `tag`; says whether it was known.
    pub(super) fn take(&mut self, tag: u32) -> bool {
        if self.size == 0 {
            return false;
        }
        let mut slot = self.heads[self.bucket_of(tag)].0;
        while slot != NONE {
            let ghost = self.ring[slot];
            if ghost.tag == tag {
                self.forget(slot);
                return true;
            }
            slot = ghost.chain;
        }
        false
    }

    /// Forgets the oldest while there are more than `limit`: a few of them, as one call adds only one.
    fn trim(&mut self, limit: u32) {
        for _ in 0..TRIM {
            if self.live <= limit.max(1) {
                break;
            }
            if self.oldest >= self.size {
                self.oldest = 0;
            }
            self.forget(self.oldest);
            self.oldest += 1;
        }
    }

    /// Empties ring position `slot`.
    fn forget(&mut self, slot: u32) {
        let Ghost { tag, chain } = self.ring[slot];
        if tag == 0 {
            return;
        }
        self.ring[slot].tag = 0;
        self.live -= 1;
        let bucket = self.bucket_of(tag);
        let mut at = self.heads[bucket].0;
        if at == slot {
            self.heads[bucket].0 = chain;
            return;
        }
        while self.ring[at].chain != slot {
            at = self.ring[at].chain;
        }
        self.ring[at].chain = chain;
    }

    /// The bucket of `tag` while `size` buckets are in use: its low bits, one fewer for the buckets not split yet.
    fn bucket_of(&self, tag: u32) -> u32 {
        let mask = self.size.next_power_of_two() - 1;
        let bucket = tag & mask;
        if bucket < self.size { bucket } else { tag & (mask >> 1) }
    }

    /// Adds one ring position and one bucket, and moves to it what is its own from the bucket that stood in for it.
    fn split(&mut self) {
        let new = self.size;
        self.ring.reach(new);
        self.heads.reach(new);
        self.size += 1;
        if new == 0 {
            return;
        }
        let old = new & (self.size.next_power_of_two() / 2 - 1);
        let mut at = core::mem::replace(&mut self.heads[old].0, NONE);
        while at != NONE {
            let Ghost { tag, chain } = self.ring[at];
            let bucket = self.bucket_of(tag);
            self.ring[at].chain = core::mem::replace(&mut self.heads[bucket].0, at);
            at = chain;
        }
    }
}

#[cfg(test)]
mod tests {
    use alloc::collections::VecDeque;

    use super::*;
    use crate::rng::{Rng, mix};

    /// The same by search.
    fn add(model: &mut VecDeque<u32>, tag: u32, limit: usize) {
        model.retain(|&t| t != tag);
        model.push_back(tag);
        while model.len() > limit {
            model.pop_front();
        }
    }

    #[test]
    fn the_last_so_many_are_known() {
        let (mut ghosts, mut model, mut rng) = (Ghosts::default(), VecDeque::new(), Rng::new(3));
        for step in 0..20_000 {
            let limit = 50;
            let name = tag(mix(rng.below(600)));
            if rng.below(8) == 0 {
                let known = model.contains(&name);
                model.retain(|&t| t != name);
                assert_eq!(ghosts.take(name), known, "step {step}");
            } else {
                ghosts.add(name, limit as u32);
                add(&mut model, name, limit);
            }
            assert_eq!(ghosts.live as usize, model.len(), "step {step}");
        }
        assert!(model.iter().all(|&t| ghosts.take(t)));
    }

    #[test]
    fn a_limit_that_falls_is_reached_in_steps() {
        let mut ghosts = Ghosts::default();
        for n in 0..1_000 {
            ghosts.add(tag(mix(n)), 1_000);
        }
        for n in 1_000..2_000 {
            ghosts.add(tag(mix(n)), 10);
        }
        assert_eq!(ghosts.live, 10);
        assert!((1_990..2_000).all(|n| ghosts.take(tag(mix(n)))));
    }

    #[test]
    fn holes_do_not_make_the_newest_the_oldest() {
        let mut ghosts = Ghosts::default();
        for n in 0..1_008 {
            ghosts.add(tag(mix(n)), 8);
            if n % 16 < 12 {
                assert!(ghosts.take(tag(mix(n))));
            } else {
                ghosts.add(tag(mix(n)), 8);
            }
        }
        assert!(ghosts.take(tag(mix(1_007))));
    }
}
