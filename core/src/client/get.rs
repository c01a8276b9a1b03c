//! A batch of reads on its way.

use alloc::vec::Vec;
use core::time::Duration;

use super::ATTEMPTS;
use crate::error::Code;
use crate::time::{Instant, less_drift};
use crate::wire::message::{Found, Location, Refusal};

/// A batch of reads on its way: one item a key (S0A-057, S0A-058).
#[derive(Clone, Debug)]
pub struct Gets {
    items: Vec<Item>,
    asking: usize,
    reading: usize,
}

#[derive(Clone, Debug)]
struct Item {
    state: State,
    /// The first item for the same object; itself if there is none.
    first: u32,
    /// One more item for the same object; itself if there is none.
    another: u32,
    found: Option<Found>,
    /// Bit `i`: replica `i` failed since the last answer.
    failed: u8,
    attempts: u8,
    /// The last moment at which a read that ends is good.
    until: Instant,
    /// What to say if nothing works.
    last: Code,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum State {
    Ask,
    Read { replica: u8 },
    Done(Result<u64, Code>),
}

/// What the driver does next.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum NextGet {
    /// Ask the master for [`Gets::asking`], then report each with [`Gets::handle_found`].
    Ask,
    /// Read [`Gets::reading`], then report each with [`Gets::handle_read`].
    Read,
    /// All items have their result.
    Done,
}

/// One replica to read.
#[derive(Clone, Copy, Debug)]
pub struct Read<'a> {
    /// Which item.
    pub item: usize,
    /// The object.
    pub found: &'a Found,
    /// The replica.
    pub from: Location,
    /// When the object's lease ends, by our clock.
    pub until: Instant,
    /// How many other replicas were not tried since the master was asked.
    pub others: u32,
}

/// How a read ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ReadEnd {
    /// The bytes are in place and sum to what they must.
    Good(u64),
    /// They are in place and do not.
    Corrupt,
    /// The transfer failed, or the segment cannot be reached.
    Failed,
    /// The caller's own fault, or its deadline: no other replica helps.
    Refused(Code),
}

impl Gets {
    /// A batch of `items` reads, all still to be asked for.
    pub fn new(items: usize) -> Self {
        let item = |at| Item {
            state: State::Ask,
            first: at,
            another: at,
            found: None,
            failed: 0,
            attempts: 0,
            until: Instant::ORIGIN,
            last: Code::INTERNAL_ERROR,
        };
        Self { items: (0..items as u32).map(item).collect(), asking: items, reading: 0 }
    }

    /// `item` is about the same object as `first`, which comes before it and is no such item itself: the master is
    /// asked once for both (S3A-112). To be said before anybody is asked, and once of an item.
    pub fn same(&mut self, item: usize, first: usize) {
        debug_assert!(first < item && self.items[first].first as usize == first, "{item} follows {first}");
        let next = self.items[first].another;
        self.items[item].first = first as u32;
        self.items[item].another = if next as usize == first { item as u32 } else { next };
        self.items[first].another = item as u32;
    }

    /// Ends `item` with `code` before anybody was asked for it.
    pub fn give_up(&mut self, item: usize, code: Code) {
        if let Some(it) = self.items.get_mut(item).filter(|it| it.state == State::Ask) {
            it.state = State::Done(Err(code));
            self.asking -= 1;
        }
    }

    /// What the driver does next. Asking comes first, so that items that must be asked for anew travel together.
    pub const fn next(&self) -> NextGet {
        match (self.asking, self.reading) {
            (0, 0) => NextGet::Done,
            (0, _) => NextGet::Read,
            _ => NextGet::Ask,
        }
    }

    /// The items to ask the master for, in order; of items for the same object the first.
    pub fn asking(&self) -> impl Iterator<Item = usize> {
        let asks = |at: usize| self.items[at].state == State::Ask;
        let first = |at: usize| self.items[at].first as usize;
        (0..self.items.len()).filter(move |&at| asks(at) && (first(at) == at || !asks(first(at))))
    }

    /// The master's answer for `item` and those that wait for it. `asked` is from before the call went out, `lease` what the answer grants;
    /// `rank` orders replicas, lowest first (near before far, healthy before ailing). A known answer whose lease
    /// still runs may be given without asking again.
    pub fn handle_found(
        &mut self,
        item: usize,
        asked: Instant,
        lease: Duration,
        answer: Result<Found, Refusal>,
        rank: impl Fn(&Location) -> u32,
    ) {
        if self.items.get(item).is_none_or(|it| it.state != State::Ask) {
            return;
        }
        let mut at = item;
        while let Some(next) = self.another(at) {
            at = next;
            self.answer(at, asked, lease, answer.clone(), &rank);
        }
        self.answer(item, asked, lease, answer, &rank);
    }

    /// The item behind `item` that waits for the same answer.
    fn another(&self, item: usize) -> Option<usize> {
        let it = &self.items[item];
        let next = it.another as usize;
        (next != item).then_some(next)
    }

    fn answer(
        &mut self,
        item: usize,
        asked: Instant,
        lease: Duration,
        answer: Result<Found, Refusal>,
        rank: impl Fn(&Location) -> u32,
    ) {
        let it = &mut self.items[item];
        if it.state != State::Ask {
            return;
        }
        self.asking -= 1;
        let found = match answer {
            Ok(found) => found,
            Err(refusal) => {
                it.state = State::Done(Err(refusal.code));
                return;
            }
        };
        it.attempts += 1;
        it.until = asked + less_drift(lease);
        it.failed = 0;
        it.found = Some(found);
        self.choose(item, rank);
    }

    /// The call to the master failed: every item that was to be asked for ends with `code`.
    pub fn handle_no_answer(&mut self, code: Code) {
        for it in self.items.iter_mut().filter(|it| it.state == State::Ask) {
            it.state = State::Done(Err(code));
        }
        self.asking = 0;
    }

    /// The replicas to read, one an item.
    pub fn reading(&self) -> impl Iterator<Item = Read<'_>> {
        self.items.iter().enumerate().filter_map(|(item, it)| {
            let (State::Read { replica }, Some(found)) = (it.state, &it.found) else { return None };
            let from = found.replicas[usize::from(replica)];
            let others = (found.replicas.len() as u32).saturating_sub(it.failed.count_ones() + 1);
            Some(Read { item, found, from, until: it.until, others })
        })
    }

    /// How reading `item` ended, at `now`. A read that ends after its lease is no success (S0A-055).
    pub fn handle_read(&mut self, now: Instant, item: usize, end: ReadEnd, rank: impl Fn(&Location) -> u32) {
        let Some(it) = self.items.get_mut(item) else { return };
        let State::Read { replica } = it.state else { return };
        self.reading -= 1;
        let expired = it.until.reached(now);
        match end {
            ReadEnd::Refused(code) => it.state = State::Done(Err(code)),
            _ if expired => {
                it.last = Code::LEASE_EXPIRED;
                self.ask_again(item);
            }
            ReadEnd::Good(bytes) => it.state = State::Done(Ok(bytes)),
            ReadEnd::Corrupt | ReadEnd::Failed => {
                let code =
                    if end == ReadEnd::Corrupt { Code::CHECKSUM_MISMATCH } else { Code::TRANSFER_FAIL };
                it.last = code;
                it.failed |= 1 << replica;
                self.choose(item, rank);
            }
        }
    }

    /// The result of `item`, once it has one: the bytes read, or why not.
    pub fn result(&self, item: usize) -> Option<Result<u64, Code>> {
        match self.items.get(item)?.state {
            State::Done(result) => Some(result),
            _ => None,
        }
    }

    /// What the master last said of `item`.
    pub fn found(&self, item: usize) -> Option<&Found> {
        self.items.get(item)?.found.as_ref()
    }

    fn choose(&mut self, item: usize, rank: impl Fn(&Location) -> u32) {
        let it = &mut self.items[item];
        let Some(found) = &it.found else { return };
        if found.len == 0 {
            it.state = State::Done(Ok(0));
            return;
        }
        let usable = found.replicas.iter().enumerate().filter(|(i, _)| it.failed & (1 << i) == 0);
        match usable.min_by_key(|(_, location)| rank(location)) {
            Some((replica, _)) => {
                it.state = State::Read { replica: replica as u8 };
                self.reading += 1;
            }
            None => {
                if found.replicas.is_empty() {
                    it.last = Code::REPLICA_NOT_FOUND;
                }
                self.ask_again(item);
            }
        }
    }

    fn ask_again(&mut self, item: usize) {
        let it = &mut self.items[item];
        if it.attempts >= ATTEMPTS {
            it.state = State::Done(Err(it.last));
        } else {
            it.state = State::Ask;
            self.asking += 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::checksum::Checksum;
    use crate::id::{Id, ObjectId, SegmentId};
    use core::num::NonZeroU32;

    const LEASE: Duration = Duration::from_secs(10);

    fn at(segment: u32) -> Location {
        Location { segment: SegmentId::new(segment, NonZeroU32::MIN), offset: 0 }
    }

    fn found(segments: &[u32]) -> Found {
        let replicas = segments.iter().map(|&s| at(s)).collect();
        Found { object: ObjectId::new(0, NonZeroU32::MIN), len: 10, checksum: Checksum::None, replicas }
    }

    fn by_number(location: &Location) -> u32 {
        location.segment.index() as u32
    }

    fn answer(gets: &mut Gets, item: usize, answer: Result<Found, Refusal>) {
        gets.handle_found(item, Instant::ORIGIN, LEASE, answer, by_number);
    }

    #[test]
    fn a_missing_key_does_not_stop_the_others() {
        let mut gets = Gets::new(2);
        assert_eq!((gets.next(), gets.asking().count()), (NextGet::Ask, 2));
        answer(&mut gets, 0, Err(Refusal::new(Code::OBJECT_NOT_FOUND)));
        answer(&mut gets, 1, Ok(found(&[4])));
        assert_eq!(gets.next(), NextGet::Read);
        gets.handle_read(Instant::ORIGIN, 1, ReadEnd::Good(10), by_number);
        assert_eq!(gets.next(), NextGet::Done);
        assert_eq!(gets.result(0), Some(Err(Code::OBJECT_NOT_FOUND)));
        assert_eq!(gets.result(1), Some(Ok(10)));
    }

    #[test]
    fn reads_the_nearest_replica_then_the_next() {
        let mut gets = Gets::new(1);
        answer(&mut gets, 0, Ok(found(&[7, 2])));
        assert_eq!(gets.reading().next().unwrap().from, at(2));
        gets.handle_read(Instant::ORIGIN, 0, ReadEnd::Corrupt, by_number);
        assert_eq!(gets.reading().next().unwrap().from, at(7));
        gets.handle_read(Instant::ORIGIN, 0, ReadEnd::Good(10), by_number);
        assert_eq!(gets.result(0), Some(Ok(10)));
    }

    #[test]
    fn a_read_that_ends_after_its_lease_is_no_success() {
        let mut gets = Gets::new(1);
        for _ in 0..ATTEMPTS {
            answer(&mut gets, 0, Ok(found(&[1])));
            // One per cent before the lease ends by our clock.
            gets.handle_read(Instant::ORIGIN + Duration::from_millis(9_900), 0, ReadEnd::Good(10), by_number);
        }
        assert_eq!(gets.result(0), Some(Err(Code::LEASE_EXPIRED)));
    }

    #[test]
    fn gives_up_with_the_last_reason() {
        let mut gets = Gets::new(1);
        for _ in 0..ATTEMPTS {
            assert_eq!(gets.next(), NextGet::Ask);
            answer(&mut gets, 0, Ok(found(&[1])));
            gets.handle_read(Instant::ORIGIN, 0, ReadEnd::Failed, by_number);
        }
        assert_eq!(gets.result(0), Some(Err(Code::TRANSFER_FAIL)));
        assert_eq!(gets.next(), NextGet::Done);
    }

    #[test]
    fn empty_values_need_no_replica_and_reports_out_of_turn_change_nothing() {
        let mut gets = Gets::new(1);
        gets.handle_read(Instant::ORIGIN, 0, ReadEnd::Good(1), by_number);
        answer(&mut gets, 0, Ok(Found { len: 0, ..found(&[]) }));
        answer(&mut gets, 0, Err(Refusal::new(Code::INTERNAL_ERROR)));
        gets.handle_read(Instant::ORIGIN, 9, ReadEnd::Failed, by_number);
        assert_eq!((gets.result(0), gets.next()), (Some(Ok(0)), NextGet::Done));
    }

    #[test]
    fn a_key_that_stands_twice_is_asked_for_once() {
        let mut gets = Gets::new(5);
        gets.same(2, 0);
        gets.same(4, 0);
        assert_eq!(gets.asking().collect::<Vec<_>>(), [0, 1, 3]);
        answer(&mut gets, 0, Ok(found(&[4, 5])));
        assert_eq!(gets.asking().collect::<Vec<_>>(), [1, 3]);
        assert_eq!(gets.reading().map(|read| read.item).collect::<Vec<_>>(), [0, 2, 4]);
        gets.give_up(1, Code::INVALID_PARAMS);
        answer(&mut gets, 3, Err(Refusal::new(Code::OBJECT_NOT_FOUND)));
        // Each goes its own way from there on.
        gets.handle_read(Instant::ORIGIN, 0, ReadEnd::Good(10), by_number);
        for _ in 0..2 {
            gets.handle_read(Instant::ORIGIN, 2, ReadEnd::Failed, by_number);
            gets.handle_read(Instant::ORIGIN, 4, ReadEnd::Failed, by_number);
        }
        assert_eq!(gets.asking().collect::<Vec<_>>(), [2, 4]);
        answer(&mut gets, 4, Ok(found(&[4])));
        answer(&mut gets, 2, Ok(found(&[4])));
        assert_eq!((gets.next(), gets.reading().count()), (NextGet::Read, 2));
        gets.handle_read(Instant::ORIGIN, 2, ReadEnd::Good(10), by_number);
        gets.handle_read(Instant::ORIGIN, 4, ReadEnd::Refused(Code::RPC_TIMEOUT), by_number);
        let results: Vec<_> = (0..5).filter_map(|item| gets.result(item)).collect();
        let (missing, late) = (Err(Code::OBJECT_NOT_FOUND), Err(Code::RPC_TIMEOUT));
        assert_eq!(results, [Ok(10), Err(Code::INVALID_PARAMS), Ok(10), missing, late]);
        assert_eq!(gets.next(), NextGet::Done);
    }

    #[test]
    fn a_batch_of_nothing_asks_nobody() {
        assert_eq!((Gets::new(0).next(), Gets::new(0).asking().count()), (NextGet::Done, 0));
    }

    #[test]
    fn no_answer_ends_what_was_asked() {
        let mut gets = Gets::new(3);
        answer(&mut gets, 1, Ok(found(&[1])));
        gets.handle_no_answer(Code::RPC_TIMEOUT);
        assert_eq!(gets.next(), NextGet::Read);
        assert_eq!(
            (gets.result(0), gets.result(2)),
            (Some(Err(Code::RPC_TIMEOUT)), Some(Err(Code::RPC_TIMEOUT)))
        );
    }
}
