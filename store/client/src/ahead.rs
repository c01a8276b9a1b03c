//! Extents granted ahead of puts, so that a put costs one call to the master instead of two.
//!
//! A client that puts one length again and again (to the granule) asks ahead for a few extents of it. While one put
//! writes, the next extents are on their way. Extents that are not used are given back before the master takes them.

use core::future::Future;
use core::pin::Pin;
use core::task::{Context, Poll, Waker};
use core::time::Duration;
use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard, PoisonError};

use springtide_core::checksum::{BLOCK, stored_len};
use springtide_core::id::{ObjectId, Term};
use springtide_core::range::granules;
use springtide_core::time::{Instant, less_drift};
use springtide_core::wire::codec;
use springtide_core::wire::message::{self, Abandoned, Grant, Granted, Options, Refusal, Reserve};
use springtide_rpc::{Call, CallError, Remote, Reply};

/// Longest value that extents are asked ahead for: above, a round trip is small beside the transfer.
pub(crate) const LONGEST: u64 = 256 << 10;
/// How many bytes are asked ahead for at once, at least one extent and at most [`MOST`].
const BYTES: u64 = 512 << 10;
const MOST: u64 = 32;
/// How often a length must come in a row before anything is asked ahead for it.
const PROVEN: u32 = 4;
/// How long an extent must still be good for when a put begins.
const SPARE: Duration = Duration::from_secs(5);

/// An extent to write, and until when.
#[derive(Clone, Debug)]
pub(crate) struct Extent {
    pub(crate) grant: Grant,
    pub(crate) term: Term,
    pub(crate) until: Instant,
}

/// The longest value that `stored` bytes, whole granules, hold with its block sums: an extent is granted for it, so that
/// it takes every length that is rounded up to the same.
const fn longest(stored: u64) -> u64 {
    if stored <= BLOCK { stored } else { stored - 4 * stored.div_ceil(BLOCK + 4) }
}

/// The extents that wait for a put.
#[derive(Default)]
pub(crate) struct Ahead(Mutex<State>);

#[derive(Default)]
struct State {
    /// The length, as it is stored, that came last, and how often in a row.
    len: u64,
    streak: u32,
    free: VecDeque<Extent>,
    /// Extents of another length, or too old, that go back with the next call.
    stale: Vec<ObjectId>,
    asked: Option<(Instant, Call)>,
}

impl Ahead {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// An extent for a value of `len` bytes, if one is there; asks for more when few are left.
    pub(crate) fn take(&self, now: Instant, len: u64, master: &Remote, deadline: Instant) -> Option<Extent> {
        let stored = stored_len(len).and_then(granules)?;
        let mut state = self.lock();
        state.collect(now);
        state.note(stored);
        let taken = state.free.pop_front();
        let wanted = (BYTES / stored.max(1)).clamp(1, MOST);
        let few = (state.free.len() as u64) < wanted.div_ceil(2);
        if state.streak >= PROVEN && few && state.asked.is_none() {
            let longest = longest(stored);
            let request = Reserve { len: longest, count: wanted as u32, options: Options::default() };
            state.asked =
                Some((now, master.call(message::RESERVE, deadline, |body| codec::put(body, &request))));
        }
        taken
    }

    /// Puts an extent back whose key was there already: it may be written again.
    pub(crate) fn put_back(&self, extent: Extent) {
        self.lock().free.push_front(extent);
    }

    /// The extents to give back now, as the master is told of them: nothing was written there, or all writes ended.
    pub(crate) fn stale(&self, now: Instant) -> Vec<Abandoned> {
        let mut state = self.lock();
        state.collect(now);
        let stale = core::mem::take(&mut state.stale);
        stale.into_iter().map(|object| Abandoned { object, quiet: true }).collect()
    }

    /// All extents, to give back at the end.
    pub(crate) fn all(&self, now: Instant) -> Vec<Abandoned> {
        let mut state = self.lock();
        state.collect(now);
        let State { free, stale, .. } = &mut *state;
        stale.extend(free.drain(..).map(|extent| extent.grant.object));
        drop(state);
        self.stale(now)
    }
}

impl State {
    /// Counts lengths; extents of another length than the last go back.
    fn note(&mut self, stored: u64) {
        if stored == self.len {
            self.streak = self.streak.saturating_add(1);
            return;
        }
        (self.len, self.streak) = (stored, 1);
        self.stale.extend(self.free.drain(..).map(|extent| extent.grant.object));
    }

    /// Takes in what was asked for, and lays aside what lay too long.
    fn collect(&mut self, now: Instant) {
        if let Some((asked, call)) = &mut self.asked {
            let mut cx = Context::from_waker(Waker::noop());
            if let Poll::Ready(answer) = Pin::new(call).poll(&mut cx) {
                let asked = *asked;
                self.asked = None;
                self.receive(asked, answer);
            }
        }
        let Self { free, stale, .. } = self;
        free.retain(|extent| {
            let good = !extent.until.reached(now + SPARE);
            if !good {
                stale.push(extent.grant.object);
            }
            good
        });
    }

    fn receive(&mut self, asked: Instant, answer: Result<Reply, CallError>) {
        // What cannot be had ahead is asked for by the put itself, which also says why not.
        let Ok(reply) = answer else { return };
        let Ok((head, tail)) = codec::split::<Granted, Result<Grant, Refusal>>(&reply.body) else { return };
        let write = Duration::from_millis(head.write_ms.into());
        let until = asked + less_drift(write);
        for grant in tail.flatten().flatten() {
            let fits = grant.replicas.iter().all(|replica| replica.extent.len() == self.len);
            if fits {
                self.free.push_back(Extent { grant, term: head.term, until });
            } else {
                self.stale.push(grant.object);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_extent_granted_ahead_takes_every_length_that_is_rounded_up_to_its_own() {
        let stored = |len| stored_len(len).and_then(granules).unwrap();
        for len in 1..=LONGEST {
            let longest = longest(stored(len));
            assert!(longest >= len, "{len} bytes do not fit where {longest} do");
            assert_eq!(stored(longest), stored(len));
        }
    }
}
