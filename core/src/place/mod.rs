//! Where to put: placement policies.
//!
//! A policy chooses segments; [`Space`] grants the bytes. Replicas of one value always lie in different segments, and
//! with different owners as long as there are enough (S0A-047, S0B-130).

use crate::id::{MemberId, SegmentId};
use crate::rng::Rng;
use crate::space::{Grant, MAX_REPLICAS, NoSpace, Space};

/// How many segments are tried for one value, beside the preferred ones.
pub const MAX_TRIES: usize = 100;

/// The grants of one value's replicas.
pub type Grants = heapless::Vec<Grant, MAX_REPLICAS>;

/// How segments are chosen (S0A-040, S0B-096).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Strategy {
    /// From a random segment on, in the order of slots, at most [`MAX_TRIES`].
    #[default]
    Random,
    /// First, for each replica, the freer of two random segments; then as `Random`. Every fourth choice takes the
    /// first of the two, free or not: even in the smallest pools, a node that comes back empty gets about half of
    /// the new values and not all.
    Freest,
}

/// What is asked for.
#[derive(Clone, Copy)]
struct Want<'a> {
    len: u64,
    count: usize,
    avoid: &'a [SegmentId],
}

/// Which owners may hold one more replica.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Owners {
    /// Those that hold none.
    New,
    /// All.
    Any,
}

impl Space {
    /// Grants up to `count` replicas of `len` bytes, each in another segment; `out` is emptied first.
    ///
    /// The `preferred` segments are tried first, in their order, each once, whoever owns them; then `strategy`
    /// chooses, first among owners that hold none of the replicas, then among all. Segments in `avoid`, hidden ones
    /// and unknown ones are never used. Fewer replicas than asked for is success. `count` over [`MAX_REPLICAS`] counts
    /// as that; of zero, nothing is granted and nothing is wrong. O(tries).
    ///
    /// # Errors
    /// [`NoSpace`] if not one replica found room: `NeverFits` at once, before anything is tried.
    #[expect(
        clippy::too_many_arguments,
        reason = "a policy needs all of it, and every caller has it at hand"
    )]
    pub fn place(
        &mut self,
        rng: &mut Rng,
        strategy: Strategy,
        len: u64,
        count: usize,
        preferred: &[SegmentId],
        avoid: &[SegmentId],
        out: &mut Grants,
    ) -> Result<(), NoSpace> {
        out.clear();
        if len > self.largest_segment() || self.open().is_empty() {
            return Err(self.why_not(len, |_| true));
        }
        let want = Want { len, count: count.min(MAX_REPLICAS), avoid };
        for &id in preferred {
            self.put_replica(want, id, Owners::Any, out);
        }
        if strategy == Strategy::Freest {
            self.put_where_free(rng, want, out);
        }
        let start = rng.below(self.open().len() as u64) as usize;
        for owners in [Owners::New, Owners::Any] {
            self.walk(start, want, owners, out);
        }
        if out.is_empty() && count > 0 {
            return Err(self.why_not(len, |id| !avoid.contains(&id)));
        }
        Ok(())
    }

    /// For each missing replica, tries the freer of two random segments, then the other.
    fn put_where_free(&mut self, rng: &mut Rng, want: Want<'_>, out: &mut Grants) {
        for _ in out.len()..want.count {
            let mut draw = || self.open()[rng.below(self.open().len() as u64) as usize];
            let (first, second) = (draw(), draw());
            let second_is_better = rng.below(4) > 0 && self.is_freer(second, first);
            let order = if second_is_better { [second, first] } else { [first, second] };
            let found = order.into_iter().find(|&id| self.put_replica(want, id, Owners::New, out));
            if found.is_none() {
                return;
            }
        }
    }

    /// Tries the open segments from number `start` on.
    fn walk(&mut self, start: usize, want: Want<'_>, owners: Owners, out: &mut Grants) {
        let count = self.open().len();
        for step in 0..count.min(MAX_TRIES) {
            if out.len() >= want.count {
                return;
            }
            let id = self.open()[(start + step) % count];
            self.put_replica(want, id, owners, out);
        }
    }

    /// Puts one more replica into `id` if it is wanted, allowed there and finds room.
    fn put_replica(&mut self, want: Want<'_>, id: SegmentId, owners: Owners, out: &mut Grants) -> bool {
        let taken = out.iter().any(|grant| grant.segment == id);
        if out.len() >= want.count || taken || want.avoid.contains(&id) {
            return false;
        }
        if owners == Owners::New && self.owner_of(id).is_some_and(|owner| self.holds_one(owner, out)) {
            return false;
        }
        self.try_in(id, want.len).is_some_and(|grant| out.push(grant).is_ok())
    }

    fn owner_of(&self, id: SegmentId) -> Option<MemberId> {
        self.segment(id).map(|segment| segment.owner())
    }

    fn holds_one(&self, owner: MemberId, out: &Grants) -> bool {
        out.iter().any(|grant| self.owner_of(grant.segment) == Some(owner))
    }

    /// Whether `a` has a larger free share than `b`.
    fn is_freer(&self, a: SegmentId, b: SegmentId) -> bool {
        let (Some(a), Some(b)) = (self.segment(a), self.segment(b)) else { return false };
        u128::from(a.free()) * u128::from(b.len()) > u128::from(b.free()) * u128::from(a.len())
    }
}

#[cfg(test)]
mod tests;
