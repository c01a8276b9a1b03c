//! A batch of writes on its way.

use alloc::vec::Vec;
use core::time::Duration;

use super::ATTEMPTS;
use crate::error::Code;
use crate::id::{ObjectId, Term};
use crate::time::{Instant, less_drift};
use crate::wire::message::{Abandoned, Failed, Grant, Placement, Refusal};

/// A batch of writes on its way: one item a key (S0A-059). Stages: start, write every replica, end or abort.
#[derive(Clone, Debug)]
pub struct Puts {
    items: Vec<Item>,
    counts: [usize; 5],
}

#[derive(Clone, Debug)]
struct Item {
    state: State,
    grant: Option<Grant>,
    term: Term,
    /// Bit `i`: replica `i` was written.
    written: u8,
    /// Bit `i`: replica `i` has ended, well or not.
    ended: u8,
    /// Whether no write of this put can land any more.
    quiet: bool,
    /// Whether the grant was made ahead of the put.
    ahead: bool,
    attempts: u8,
    until: Instant,
    last: Refusal,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum State {
    Start,
    Write,
    End,
    Abort,
    Done(Result<(), Refusal>),
}

impl State {
    const fn stage(self) -> usize {
        match self {
            Self::Start => 0,
            Self::Write => 1,
            Self::End => 2,
            Self::Abort => 3,
            Self::Done(_) => 4,
        }
    }
}

/// What the driver does next.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum NextPut {
    /// Start [`Puts::starting`] at the master, then report each with [`Puts::handle_grant`].
    Start,
    /// Write [`Puts::writing`], then report each replica with [`Puts::handle_write`].
    Write,
    /// End [`Puts::ending`] at the master, then report each with [`Puts::handle_ended`].
    End,
    /// Abort [`Puts::aborting`] at the master, then report each with [`Puts::handle_aborted`].
    Abort,
    /// All items have their result.
    Done,
}

/// One replica to write.
#[derive(Clone, Copy, Debug)]
pub struct Write {
    /// Which item.
    pub item: usize,
    /// Which of its replicas.
    pub replica: usize,
    /// Where to.
    pub to: Placement,
    /// The term of its ticket.
    pub term: Term,
    /// When writing must have ended, by our clock.
    pub until: Instant,
}

/// One put to end.
#[derive(Clone, Debug)]
pub struct Ending {
    /// Which item.
    pub item: usize,
    /// Its object.
    pub object: ObjectId,
    /// Where it was not written.
    pub failed: Failed,
    /// How its extents were granted, and so which call ends it.
    pub granted: Granted,
}

/// How a put came by its extents.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Granted {
    /// By its start: it ends with its object alone.
    ByStart,
    /// Ahead, without a key: it ends with its key.
    Ahead,
}

/// How writing one replica ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum WriteEnd {
    /// All bytes are there.
    Good,
    /// They are not, and no write can land any more.
    Failed,
    /// They may not be, and a write may still land.
    Unsure,
}

impl Puts {
    /// A batch of `items` writes, all still to be started.
    pub fn new(items: usize) -> Self {
        let item = Item {
            state: State::Start,
            grant: None,
            term: Term::default(),
            written: 0,
            ended: 0,
            quiet: true,
            ahead: false,
            attempts: 0,
            until: Instant::ORIGIN,
            last: Refusal::new(Code::INTERNAL_ERROR),
        };
        Self { items: alloc::vec![item; items], counts: [items, 0, 0, 0, 0] }
    }

    /// What the driver does next, earliest stage first, so that a batch moves together.
    pub const fn next(&self) -> NextPut {
        match self.counts {
            [0, 0, 0, 0, _] => NextPut::Done,
            [0, 0, 0, _, _] => NextPut::Abort,
            [0, 0, _, _, _] => NextPut::End,
            [0, _, _, _, _] => NextPut::Write,
            _ => NextPut::Start,
        }
    }

    fn set(&mut self, item: usize, state: State) {
        let it = &mut self.items[item];
        self.counts[it.state.stage()] -= 1;
        self.counts[state.stage()] += 1;
        it.state = state;
    }

    fn in_state(&self, state: State) -> impl Iterator<Item = (usize, &Item)> {
        self.items.iter().enumerate().filter(move |(_, it)| it.state == state)
    }

    fn is(&self, item: usize, state: State) -> bool {
        self.items.get(item).is_some_and(|it| it.state == state)
    }

    /// The items to start, in order.
    pub fn starting(&self) -> impl Iterator<Item = usize> {
        self.in_state(State::Start).map(|(i, _)| i)
    }

    /// Gives `item` an extent that was granted ahead and may be written until `until`: it needs no start, and ends
    /// with its key.
    pub fn use_reserved(&mut self, item: usize, grant: Grant, term: Term, until: Instant) {
        if self.is(item, State::Start) {
            self.items[item].ahead = true;
            self.begin(item, grant, term, until);
        }
    }

    /// The master's answer for `item`; `asked` is from before the call, `write` how long it may be written.
    pub fn handle_grant(
        &mut self,
        item: usize,
        asked: Instant,
        term: Term,
        write: Duration,
        answer: Result<Grant, Refusal>,
    ) {
        if !self.is(item, State::Start) {
            return;
        }
        match answer {
            Ok(grant) => {
                self.items[item].ahead = false;
                self.begin(item, grant, term, asked + less_drift(write));
            }
            Err(refusal) => self.set(item, State::Done(Err(refusal))),
        }
    }

    fn begin(&mut self, item: usize, grant: Grant, term: Term, until: Instant) {
        let it = &mut self.items[item];
        let empty = grant.replicas.is_empty();
        (it.term, it.until, it.written, it.ended, it.quiet) = (term, until, 0, 0, true);
        it.attempts += 1;
        it.grant = Some(grant);
        self.set(item, if empty { State::End } else { State::Write });
    }

    /// The replicas to write.
    pub fn writing(&self) -> impl Iterator<Item = Write> {
        self.in_state(State::Write).flat_map(|(item, it)| {
            let replicas = it.grant.iter().flat_map(|grant| grant.replicas.iter().enumerate());
            let left = replicas.filter(|(replica, _)| it.ended & (1 << replica) == 0);
            left.map(move |(replica, to)| Write { item, replica, to: *to, term: it.term, until: it.until })
        })
    }

    /// How writing a replica ended, at `now`. A write that ends after its time counts as not written.
    pub fn handle_write(&mut self, now: Instant, item: usize, replica: usize, end: WriteEnd) {
        if !self.is(item, State::Write) {
            return;
        }
        let it = &mut self.items[item];
        let Some(grant) = it.grant.as_ref().filter(|grant| replica < grant.replicas.len()) else { return };
        let all = (1u16 << grant.replicas.len()) - 1;
        let bit = 1 << replica;
        if it.ended & bit != 0 {
            return;
        }
        it.ended |= bit;
        it.quiet &= end != WriteEnd::Unsure;
        if end == WriteEnd::Good && !it.until.reached(now) {
            it.written |= bit;
        }
        if u16::from(it.ended) == all {
            let next = if it.written == 0 { State::Abort } else { State::End };
            it.last = Refusal::new(Code::TRANSFER_FAIL);
            self.set(item, next);
        }
    }

    /// The items to end.
    pub fn ending(&self) -> impl Iterator<Item = Ending> {
        self.in_state(State::End).filter_map(|(item, it)| {
            let grant = it.grant.as_ref()?;
            let unwritten = grant.replicas.iter().enumerate().filter(|(i, _)| it.written & (1 << i) == 0);
            let failed = unwritten.map(|(_, to)| to.segment).collect();
            let granted = if it.ahead { Granted::Ahead } else { Granted::ByStart };
            Some(Ending { item, object: grant.object, failed, granted })
        })
    }

    /// The master's answer to ending `item`. A reserved extent that is gone is replaced by an ordinary put.
    pub fn handle_ended(&mut self, item: usize, answer: Result<(), Refusal>) {
        if !self.is(item, State::End) {
            return;
        }
        let it = &self.items[item];
        let gone = |refusal: &Refusal| matches!(refusal.code, Code::ILLEGAL_CLIENT | Code::OBJECT_NOT_FOUND);
        match answer {
            Err(refusal) if it.ahead && gone(&refusal) && it.attempts < ATTEMPTS => self.start_again(item),
            answer => self.set(item, State::Done(answer)),
        }
    }

    /// The items to abort.
    pub fn aborting(&self) -> impl Iterator<Item = (usize, Abandoned)> {
        self.in_state(State::Abort).filter_map(|(item, it)| {
            it.grant.as_ref().map(|grant| (item, Abandoned { object: grant.object, quiet: it.quiet }))
        })
    }

    /// `item` was aborted, as far as the master can be reached: it starts again, elsewhere if possible, or ends with
    /// its last error.
    pub fn handle_aborted(&mut self, item: usize) {
        if !self.is(item, State::Abort) {
            return;
        }
        let it = &self.items[item];
        match it.attempts < ATTEMPTS {
            true => self.start_again(item),
            false => self.set(item, State::Done(Err(it.last))),
        }
    }

    /// What was granted is given back: nothing may be written there any more, now or by another put.
    fn start_again(&mut self, item: usize) {
        self.items[item].grant = None;
        self.set(item, State::Start);
    }

    /// Ends `item` with `refusal` whatever its state: the caller's own fault, its deadline, or no master. Gives back
    /// the put to abort, if one was started.
    pub fn give_up(&mut self, item: usize, refusal: Refusal) -> Option<Abandoned> {
        let it = self.items.get(item)?;
        if matches!(it.state, State::Done(_)) {
            return None;
        }
        let started = !matches!(it.state, State::Start);
        let all_ended =
            it.grant.as_ref().is_none_or(|grant| it.ended.count_ones() as usize == grant.replicas.len());
        let abandoned = it
            .grant
            .as_ref()
            .filter(|_| started)
            .map(|grant| Abandoned { object: grant.object, quiet: it.quiet && all_ended });
        self.set(item, State::Done(Err(refusal)));
        abandoned
    }

    /// The grant that `item` has, or ended with; not one that was given back.
    pub fn grant(&self, item: usize) -> Option<&Grant> {
        self.items.get(item)?.grant.as_ref()
    }

    /// The result of `item`, once it has one.
    pub fn result(&self, item: usize) -> Option<Result<(), Refusal>> {
        match self.items.get(item)?.state {
            State::Done(result) => Some(result),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::id::{Id, SegmentId};
    use crate::range::Extent;
    use core::num::NonZeroU32;

    const WRITE: Duration = Duration::from_secs(30);
    const NOW: Instant = Instant::ORIGIN;

    fn grant(replicas: u32) -> Grant {
        let segment = |i| SegmentId::new(i, NonZeroU32::MIN);
        let extent = Extent::new(0, 64).unwrap();
        let replicas =
            (0..replicas).map(|i| Placement { segment: segment(i), extent, serial: 1, tag: 1 }).collect();
        Grant { object: ObjectId::new(1, NonZeroU32::MIN), replicas }
    }

    fn granted(puts: &mut Puts, item: usize, replicas: u32) {
        puts.handle_grant(item, NOW, Term(1), WRITE, Ok(grant(replicas)));
    }

    #[test]
    fn a_batch_moves_together_and_items_fail_alone() {
        let mut puts = Puts::new(3);
        assert_eq!(puts.starting().count(), 3);
        granted(&mut puts, 0, 1);
        puts.handle_grant(1, NOW, Term(1), WRITE, Err(Refusal::new(Code::OBJECT_ALREADY_EXISTS)));
        assert_eq!(puts.next(), NextPut::Start);
        granted(&mut puts, 2, 0);
        assert_eq!((puts.next(), puts.writing().count()), (NextPut::Write, 1));
        puts.handle_write(NOW, 0, 0, WriteEnd::Good);
        assert_eq!((puts.next(), puts.ending().count()), (NextPut::End, 2));
        puts.handle_ended(0, Ok(()));
        puts.handle_ended(2, Ok(()));
        assert_eq!(puts.next(), NextPut::Done);
        assert_eq!(puts.result(1), Some(Err(Refusal::new(Code::OBJECT_ALREADY_EXISTS))));
    }

    #[test]
    fn a_batch_of_nothing_asks_nobody() {
        assert_eq!((Puts::new(0).next(), Puts::new(0).starting().count()), (NextPut::Done, 0));
    }

    #[test]
    fn one_good_replica_is_enough_and_is_named() {
        let mut puts = Puts::new(1);
        granted(&mut puts, 0, 2);
        puts.handle_write(NOW, 0, 0, WriteEnd::Failed);
        puts.handle_write(NOW, 0, 1, WriteEnd::Good);
        assert_eq!(puts.ending().next().unwrap().failed, [SegmentId::new(0, NonZeroU32::MIN)]);
    }

    #[test]
    fn a_failed_put_is_aborted_truthfully_and_tried_again() {
        let mut puts = Puts::new(1);
        for attempt in 1..=ATTEMPTS {
            granted(&mut puts, 0, 2);
            puts.handle_write(NOW, 0, 0, WriteEnd::Failed);
            puts.handle_write(NOW, 0, 1, WriteEnd::Unsure);
            assert_eq!(puts.next(), NextPut::Abort, "attempt {attempt}");
            assert!(!puts.aborting().next().unwrap().1.quiet);
            puts.handle_aborted(0);
        }
        assert_eq!(puts.result(0), Some(Err(Refusal::new(Code::TRANSFER_FAIL))));
    }

    #[test]
    fn a_write_that_ends_too_late_is_not_written() {
        let mut puts = Puts::new(1);
        granted(&mut puts, 0, 1);
        puts.handle_write(NOW + WRITE, 0, 0, WriteEnd::Good);
        assert_eq!(puts.next(), NextPut::Abort);
    }

    #[test]
    fn a_reserved_extent_that_is_gone_becomes_an_ordinary_put() {
        let mut puts = Puts::new(1);
        puts.use_reserved(0, grant(1), Term(1), NOW + WRITE);
        puts.handle_write(NOW, 0, 0, WriteEnd::Good);
        assert_eq!(puts.ending().next().unwrap().granted, Granted::Ahead);
        puts.handle_ended(0, Err(Refusal::new(Code::OBJECT_NOT_FOUND)));
        assert_eq!(puts.next(), NextPut::Start);
        granted(&mut puts, 0, 1);
        puts.handle_write(NOW, 0, 0, WriteEnd::Good);
        puts.handle_ended(0, Err(Refusal::new(Code::OBJECT_NOT_FOUND)));
        assert_eq!(puts.result(0), Some(Err(Refusal::new(Code::OBJECT_NOT_FOUND))));
    }

    #[test]
    fn an_extent_that_was_given_back_is_no_more_the_puts() {
        let mut puts = Puts::new(1);
        puts.use_reserved(0, grant(1), Term(1), NOW + WRITE);
        puts.handle_write(NOW, 0, 0, WriteEnd::Failed);
        assert_eq!(puts.next(), NextPut::Abort);
        puts.handle_aborted(0);
        puts.handle_grant(0, NOW, Term(1), WRITE, Err(Refusal::new(Code::OBJECT_ALREADY_EXISTS)));
        // Else it would be kept for the next put, and written over what is there by then.
        assert_eq!((puts.result(0).is_some(), puts.grant(0)), (true, None));
    }

    #[test]
    fn giving_up_in_mid_write_is_not_quiet() {
        let mut puts = Puts::new(2);
        granted(&mut puts, 0, 2);
        puts.handle_write(NOW, 0, 0, WriteEnd::Good);
        let timeout = Refusal::new(Code::RPC_TIMEOUT);
        assert_eq!(puts.give_up(0, timeout).map(|a| a.quiet), Some(false));
        assert_eq!(puts.give_up(1, timeout), None);
        assert_eq!(puts.give_up(1, timeout), None);
        assert_eq!(puts.next(), NextPut::Done);
    }
}
