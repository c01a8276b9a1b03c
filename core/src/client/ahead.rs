//! Extents granted ahead of puts, so that a put costs one call to the master instead of two.
//!
//! A client that puts one length again and again (to the granule) asks ahead for a few extents of it. While one put
//! writes, the next extents are on their way. Extents that are not used are given back before the master takes them.

use alloc::collections::VecDeque;
use alloc::vec::Vec;
use core::time::Duration;

use crate::checksum::stored_len;
use crate::id::{ObjectId, Term};
use crate::range::granules;
use crate::time::{Instant, less_drift};
use crate::wire::codec;
use crate::wire::message::{Abandoned, Grant, Granted, Options, Refusal, Reserve};

/// Longest value that extents are asked ahead for: above, a round trip is small beside the transfer.
pub const LONGEST: u64 = 256 << 10;
/// How many bytes are asked ahead for at once, at least one extent and at most [`MOST`].
const BYTES: u64 = 512 << 10;
const MOST: u64 = 32;
/// How often a length must come in a row before anything is asked ahead for it.
const PROVEN: u32 = 4;
/// How long an extent must still be good for when a put begins, at most: a sixth of what it was granted for.
const SPARE: Duration = Duration::from_secs(5);

/// An extent to write, and until when.
#[derive(Clone, Debug)]
pub struct Reserved {
    /// Where.
    pub grant: Grant,
    /// The term of its tickets.
    pub term: Term,
    /// When writing must have ended, by our clock.
    pub until: Instant,
    /// How long before that a put may no longer begin.
    spare: Duration,
}

/// The extents that wait for a put.
#[derive(Clone, Debug, Default)]
pub struct Ahead {
    /// The length, as it is stored, that came last, and how often in a row.
    len: u64,
    streak: u32,
    free: VecDeque<Reserved>,
    /// Extents of another length, or too old, that go back with the next call.
    stale: Vec<ObjectId>,
    /// From before the reservation that is under way.
    asked: Option<Instant>,
}

impl Ahead {
    /// An extent for a value of `len` bytes, if one is there.
    pub fn take(&mut self, now: Instant, len: u64) -> Option<Reserved> {
        let stored = stored_len(len).and_then(granules)?;
        self.lay_aside(now);
        self.note(stored);
        self.free.pop_front()
    }

    /// What to reserve now, after [`take`](Self::take) for a value of `len` bytes: the driver makes the call, one at a
    /// time, and reports with [`handle_reserved`](Self::handle_reserved).
    pub fn ask(&mut self, now: Instant, len: u64) -> Option<Reserve<'static>> {
        let wanted = (BYTES / self.len.max(1)).clamp(1, MOST);
        let few = (self.free.len() as u64) < wanted.div_ceil(2);
        if self.streak < PROVEN || !few || self.asked.is_some() {
            return None;
        }
        self.asked = Some(now);
        Some(Reserve { len, count: wanted as u32, options: Options::default() })
    }

    /// How the reservation went: the body of its answer, or `None` if there was none. What cannot be had ahead is asked
    /// for by the put itself, which also says why not.
    pub fn handle_reserved(&mut self, body: Option<&[u8]>) {
        let Some(asked) = self.asked.take() else { return };
        let Some(Ok((head, tail))) = body.map(codec::split::<Granted, Result<Grant, Refusal>>) else {
            return;
        };
        let write = Duration::from_millis(head.write_ms.into());
        let (until, spare) = (asked + less_drift(write), SPARE.min(write / 6));
        for grant in tail.flatten().flatten() {
            if grant.replicas.iter().all(|replica| replica.extent.len() == self.len) {
                self.free.push_back(Reserved { grant, term: head.term, until, spare });
            } else {
                self.stale.push(grant.object);
            }
        }
    }

    /// Puts an extent back whose key was there already: it may be written again.
    pub fn put_back(&mut self, extent: Reserved) {
        self.free.push_front(extent);
    }

    /// Forgets everything: another life of the master knows nothing of it.
    pub fn forget(&mut self) {
        self.free.clear();
        self.stale.clear();
        self.asked = None;
    }

    /// The extents to give back now, as the master is told of them: nothing was written there, or all writes ended.
    pub fn stale(&mut self, now: Instant) -> impl Iterator<Item = Abandoned> {
        self.lay_aside(now);
        self.stale.drain(..).map(|object| Abandoned { object, quiet: true })
    }

    /// All extents, to give back at the end.
    pub fn all(&mut self, now: Instant) -> impl Iterator<Item = Abandoned> {
        self.stale.extend(self.free.drain(..).map(|extent| extent.grant.object));
        self.stale(now)
    }

    /// Counts lengths; extents of another length than the last go back.
    fn note(&mut self, stored: u64) {
        if stored == self.len {
            self.streak = self.streak.saturating_add(1);
            return;
        }
        (self.len, self.streak) = (stored, 1);
        self.stale.extend(self.free.drain(..).map(|extent| extent.grant.object));
    }

    /// Lays aside what lay too long.
    fn lay_aside(&mut self, now: Instant) {
        let Self { free, stale, .. } = self;
        free.retain(|extent| {
            let good = !extent.until.reached(now + extent.spare);
            if !good {
                stale.push(extent.grant.object);
            }
            good
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::id::{Id, SegmentId};
    use crate::range::Extent;
    use crate::wire::message::Placement;
    use core::num::NonZeroU32;

    const NOW: Instant = Instant::from_nanos(1_000_000_000);

    fn answer(lens: &[u64]) -> Vec<u8> {
        let mut body = Vec::new();
        codec::put(&mut body, &Granted { term: Term(1), write_ms: 30_000 });
        for (n, &len) in lens.iter().enumerate() {
            let segment = SegmentId::new(0, NonZeroU32::MIN);
            let extent = Extent::new(n as u64 * 4_096, len).unwrap();
            let replicas = [Placement { segment, extent, serial: 1, tag: 0 }].into_iter().collect();
            let object = ObjectId::new(n as u32, NonZeroU32::MIN);
            codec::put(&mut body, &Ok::<_, Refusal>(Grant { object, replicas }));
        }
        body
    }

    fn asked(ahead: &mut Ahead) {
        for n in 0..PROVEN {
            assert!(ahead.take(NOW, 100).is_none());
            assert_eq!(ahead.ask(NOW, 100).is_some(), n + 1 == PROVEN);
        }
    }

    #[test]
    fn a_length_that_comes_again_is_asked_for_once() {
        let mut ahead = Ahead::default();
        asked(&mut ahead);
        assert_eq!(ahead.ask(NOW, 100), None);
        ahead.handle_reserved(Some(&answer(&[128, 128, 192])));
        assert!(ahead.take(NOW, 100).is_some() && ahead.take(NOW, 128).is_some());
        // The third does not fit, and goes back.
        assert_eq!((ahead.take(NOW, 100).is_none(), ahead.stale(NOW).count()), (true, 1));
    }

    #[test]
    fn what_is_too_old_or_of_another_length_goes_back() {
        let mut ahead = Ahead::default();
        asked(&mut ahead);
        ahead.handle_reserved(Some(&answer(&[128, 128])));
        let extent = ahead.take(NOW, 100).expect("granted ahead");
        ahead.put_back(extent);
        let late = NOW + Duration::from_secs(25);
        assert!(ahead.take(late, 100).is_none());
        assert_eq!(ahead.stale(late).count(), 2);
        assert!(ahead.ask(late, 100).is_some());
        ahead.handle_reserved(Some(&answer(&[128])));
        assert!(ahead.take(NOW, 1_000).is_none());
        assert_eq!(ahead.all(NOW).count(), 1);
    }

    #[test]
    fn a_reservation_that_fails_may_be_made_again() {
        let mut ahead = Ahead::default();
        asked(&mut ahead);
        ahead.handle_reserved(None);
        assert!(ahead.ask(NOW, 100).is_some());
        ahead.forget();
        ahead.handle_reserved(Some(&answer(&[128])));
        assert_eq!(ahead.all(NOW).count(), 0);
    }
}
