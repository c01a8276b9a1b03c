//! What a batch's calls to the master say, and what their answers mean.
//!
//! The driver makes the call: a [`Round`] writes its body, and takes in the body of its answer. An answer that is
//! malformed or too short ends the items that it leaves without one.

use alloc::vec::Vec;
use core::time::Duration;

use super::{Ending, Gets, Granted as By, Puts};
use crate::checksum::Checksum;
use crate::error::Code;
use crate::time::Instant;
use crate::wire::codec;
use crate::wire::frame::Method;
use crate::wire::message::{
    Finished, Found, Grant, Granted, Leased, Location, Options, PUBLISH, PUT_END, Publish, Refusal, Wanted,
};

/// An answer that cannot be read.
const UNREADABLE: Refusal = Refusal::new(Code::INVALID_VERSION);

/// What one item of a batch of puts stores.
#[derive(Clone, Copy, Debug)]
pub struct Value<'a> {
    /// Its key.
    pub key: &'a [u8],
    /// Its length in bytes, without block sums.
    pub len: u64,
    /// What its bytes sum to.
    pub checksum: Checksum,
}

/// One call for some items of a batch, from its body to its answer. Reusing one saves its table.
#[derive(Clone, Debug, Default)]
pub struct Round {
    /// From before the call.
    asked: Instant,
    items: Vec<usize>,
}

impl Round {
    fn begin(&mut self, now: Instant, items: impl Iterator<Item = usize>) {
        self.asked = now;
        self.items.clear();
        self.items.extend(items);
    }

    /// Whether it is about no item: then no call is to be made.
    pub const fn is_empty(&self) -> bool {
        self.items.is_empty()
    }

    /// Appends the body of a GET for the items that are to be asked for.
    pub fn get<'k>(
        &mut self,
        now: Instant,
        gets: &Gets,
        key: impl Fn(usize) -> &'k [u8],
        body: &mut Vec<u8>,
    ) {
        self.begin(now, gets.asking());
        codec::put(body, &());
        self.items.iter().for_each(|&item| codec::put(body, &key(item)));
    }

    /// Takes in the answer to [`get`](Self::get). `rank` orders replicas, lowest first.
    pub fn found(&self, gets: &mut Gets, body: &[u8], rank: impl Fn(&Location) -> u32) {
        let Ok((head, tail)) = codec::split::<Leased, Result<Found, Refusal>>(body) else {
            return gets.handle_no_answer(UNREADABLE.code);
        };
        let (lease, mut answered) = (Duration::from_millis(head.lease_ms.into()), 0);
        for (&item, answer) in self.items.iter().zip(tail) {
            gets.handle_found(item, self.asked, lease, answer.unwrap_or(Err(UNREADABLE)), &rank);
            answered += 1;
        }
        if answered < self.items.len() {
            // A reply with too few answers leaves nobody asking for ever.
            gets.handle_no_answer(UNREADABLE.code);
        }
    }

    /// Appends the body of a PUT_START for the items that are to be started.
    pub fn start<'k>(
        &mut self,
        now: Instant,
        puts: &Puts,
        options: &Options<'_>,
        value: impl Fn(usize) -> Value<'k>,
        body: &mut Vec<u8>,
    ) {
        self.begin(now, puts.starting());
        codec::put(body, options);
        for &item in &self.items {
            let Value { key, len, .. } = value(item);
            codec::put(body, &Wanted { key, len });
        }
    }

    /// Takes in the answer to [`start`](Self::start).
    pub fn started(&self, puts: &mut Puts, body: &[u8]) {
        let Ok((head, tail)) = codec::split::<Granted, Result<Grant, Refusal>>(body) else {
            return self.give_up(puts, UNREADABLE.code);
        };
        let (write, mut answered) = (Duration::from_millis(head.write_ms.into()), 0);
        for (&item, answer) in self.items.iter().zip(tail) {
            puts.handle_grant(item, self.asked, head.term, write, answer.unwrap_or(Err(UNREADABLE)));
            answered += 1;
        }
        Self::give_up_all(puts, &self.items[answered..], UNREADABLE.code);
    }

    /// Appends the body of the call that ends the items whose extents were granted as `by`; gives back which call.
    pub fn end<'k>(
        &mut self,
        now: Instant,
        puts: &Puts,
        by: By,
        value: impl Fn(usize) -> Value<'k>,
        body: &mut Vec<u8>,
    ) -> Method {
        self.begin(now, core::iter::empty());
        codec::put(body, &());
        for Ending { item, object, failed, granted } in puts.ending() {
            if granted != by {
                continue;
            }
            self.items.push(item);
            let Value { key, len, checksum } = value(item);
            match by {
                By::ByStart => codec::put(body, &Finished { object, checksum, failed }),
                By::Ahead => codec::put(body, &Publish { object, key, len, checksum, failed }),
            }
        }
        match by {
            By::ByStart => PUT_END,
            By::Ahead => PUBLISH,
        }
    }

    /// Takes in the answer to [`end`](Self::end).
    pub fn ended(&self, puts: &mut Puts, body: &[u8]) {
        let Ok(((), tail)) = codec::split::<(), Result<(), Refusal>>(body) else {
            return self.give_up(puts, UNREADABLE.code);
        };
        let mut answered = 0;
        for (&item, answer) in self.items.iter().zip(tail) {
            puts.handle_ended(item, answer.unwrap_or(Err(UNREADABLE)));
            answered += 1;
        }
        Self::give_up_all(puts, &self.items[answered..], UNREADABLE.code);
    }

    /// Appends the body of a PUT_ABORT for the items that are to be aborted.
    pub fn abort(&mut self, now: Instant, puts: &Puts, body: &mut Vec<u8>) {
        self.begin(now, core::iter::empty());
        codec::put(body, &());
        for (item, abandoned) in puts.aborting() {
            self.items.push(item);
            codec::put(body, &abandoned);
        }
    }

    /// The call of [`abort`](Self::abort) has ended, heard or not: what is lost here, the discard time-out makes good.
    pub fn aborted(&self, puts: &mut Puts) {
        self.items.iter().for_each(|&item| puts.handle_aborted(item));
    }

    /// The call of [`start`](Self::start) or [`end`](Self::end) failed: its items end with `code`. The master may have
    /// heard it, or not.
    pub fn give_up(&self, puts: &mut Puts, code: Code) {
        Self::give_up_all(puts, &self.items, code);
    }

    fn give_up_all(puts: &mut Puts, items: &[usize], code: Code) {
        for &item in items {
            puts.give_up(item, Refusal::new(code));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::client::{NextGet, NextPut};
    use crate::id::{Id, ObjectId, SegmentId};
    use crate::range::Extent;
    use crate::wire::message::Placement;
    use core::num::NonZeroU32;

    const NOW: Instant = Instant::ORIGIN;

    fn value(_: usize) -> Value<'static> {
        Value { key: b"k", len: 10, checksum: Checksum::Crc32c(7) }
    }

    fn grant() -> Grant {
        let segment = SegmentId::new(0, NonZeroU32::MIN);
        let extent = Extent::new(0, 64).unwrap();
        let replicas = [Placement { segment, extent, serial: 1, tag: 2 }].into_iter().collect();
        Grant { object: ObjectId::new(3, NonZeroU32::MIN), replicas }
    }

    #[test]
    fn a_get_asks_for_what_is_to_be_asked_and_hears_each() {
        let (mut gets, mut round, mut body) = (Gets::new(2), Round::default(), Vec::new());
        round.get(NOW, &gets, |item| if item == 0 { b"a" } else { b"b" }, &mut body);
        let ((), keys) = codec::split::<(), &[u8]>(&body).unwrap();
        assert_eq!(keys.map(Result::unwrap).collect::<Vec<_>>(), [b"a", b"b"]);
        let mut answer = Vec::new();
        codec::put(&mut answer, &Leased { lease_ms: 10 });
        codec::put(&mut answer, &Err::<Found, _>(Refusal::new(Code::OBJECT_NOT_FOUND)));
        round.found(&mut gets, &answer, |_| 0);
        // The second was not answered.
        assert_eq!(gets.next(), NextGet::Done);
        assert_eq!(gets.result(0), Some(Err(Code::OBJECT_NOT_FOUND)));
        assert_eq!(gets.result(1), Some(Err(Code::INVALID_VERSION)));
    }

    #[test]
    fn a_put_goes_through_its_calls() {
        let (mut puts, mut round, mut body) = (Puts::new(1), Round::default(), Vec::new());
        round.start(NOW, &puts, &Options::default(), value, &mut body);
        let (_, wanted) = codec::split::<Options<'_>, Wanted<'_>>(&body).unwrap();
        assert_eq!(wanted.map(Result::unwrap).collect::<Vec<_>>(), [Wanted { key: b"k", len: 10 }]);
        let mut answer = Vec::new();
        codec::put(&mut answer, &Granted { term: Default::default(), write_ms: 1_000 });
        codec::put(&mut answer, &Ok::<_, Refusal>(grant()));
        round.started(&mut puts, &answer);
        assert_eq!(puts.next(), NextPut::Write);
        puts.handle_write(NOW, 0, 0, crate::client::WriteEnd::Good);
        body.clear();
        assert_eq!(round.end(NOW, &puts, By::ByStart, value, &mut body), PUT_END);
        let ((), mut tail) = codec::split::<(), Finished>(&body).unwrap();
        assert_eq!(tail.next().unwrap().unwrap().object, grant().object);
        answer.clear();
        codec::put(&mut answer, &());
        codec::put(&mut answer, &Ok::<(), Refusal>(()));
        round.ended(&mut puts, &answer);
        assert_eq!(puts.result(0), Some(Ok(())));
    }

    #[test]
    fn an_unreadable_answer_ends_the_items() {
        let (mut puts, mut round, mut body) = (Puts::new(1), Round::default(), Vec::new());
        round.start(NOW, &puts, &Options::default(), value, &mut body);
        round.started(&mut puts, &[]);
        assert_eq!(puts.result(0), Some(Err(UNREADABLE)));
        assert!(round.end(NOW, &puts, By::Ahead, value, &mut body) == PUBLISH && round.is_empty());
    }
}
