//! A client's batches against what they may say.

use core::num::NonZeroU32;
use core::time::Duration;

use springtide_core::checksum::{BLOCK, Checksum, stored_len};
use springtide_core::client::{ATTEMPTS, Gets, Granted, NextGet, NextPut, Puts, ReadEnd, WriteEnd, cover};
use springtide_core::error::Code;
use springtide_core::id::{Id, ObjectId, SegmentId, Term};
use springtide_core::range::Extent;
use springtide_core::time::{Instant, less_drift};
use springtide_core::wire::message::{Found, Grant, Location, Placement, Refusal};

use crate::Input;

const STEPS: usize = 400;
const ITEMS: usize = 5;
const REFUSED: Refusal = Refusal::new(Code::OBJECT_NOT_FOUND);

/// Batches of gets and puts with every answer that a master or a transfer could give, in and out of turn.
///
/// A result comes once and stays; no item is asked for more than [`ATTEMPTS`] times; a get that ended well ended inside
/// its lease; a put ends with the replicas that were written in time, and says that it is quiet only if it is.
pub fn client_ops(data: &[u8]) {
    let mut input = Input::new(data);
    let (value, at, len) = (length(&mut input), length(&mut input), length(&mut input));
    check_cover(value, at, len);
    match input.flag() {
        false => Reads::new(1 + input.below(ITEMS)).run(&mut input),
        true => Writes::new(1 + input.below(ITEMS)).run(&mut input),
    }
}

/// Lengths around the blocks, and absurd ones.
fn length(input: &mut Input<'_>) -> u64 {
    match input.byte() % 4 {
        0 => input.word(),
        1 => u64::from(input.short()),
        2 => u64::from(input.byte()) * BLOCK + u64::from(input.byte()) % 3,
        _ => u64::MAX - u64::from(input.short()) * u64::from(input.short()),
    }
}

/// What is read for a range covers it, lies inside the value, and comes with the sums of just its blocks.
fn check_cover(value: u64, at: u64, len: u64) {
    let wanted = Extent::new(0, value).and_then(|whole| whole.slice(at, len));
    for sum in [Checksum::None, Checksum::Crc32c(1)] {
        let Some(cover) = cover(value, sum, at, len) else {
            assert!(wanted.is_none() || stored_len(value).is_none());
            continue;
        };
        let wanted = wanted.expect("only what lies inside is covered");
        assert_eq!(cover.data.offset() + cover.skip, wanted.offset());
        assert!(cover.data.contains(wanted) && cover.data.end() <= value);
        if !cover.sums.is_empty() {
            assert_eq!(cover.sums.len() / 4, cover.data.len().div_ceil(BLOCK));
            assert_eq!(cover.sums.offset(), value + cover.data.offset() / BLOCK * 4);
            assert!(stored_len(value).is_none_or(|stored| cover.sums.end() <= stored));
        }
    }
}

fn segment(n: usize) -> SegmentId {
    SegmentId::new(n as u32, NonZeroU32::MIN)
}

fn object() -> ObjectId {
    ObjectId::new(1, NonZeroU32::MIN)
}

/// A time step: often none.
fn pass(now: &mut Instant, input: &mut Input<'_>) {
    if input.byte().is_multiple_of(4) {
        *now += Duration::from_millis(u64::from(input.short()) / 4);
    }
}

struct Reads {
    gets: Gets,
    now: Instant,
    items: Vec<ReadItem>,
}

#[derive(Clone, Default)]
struct ReadItem {
    answers: u8,
    /// When the lease ends, as the holder counts.
    until: Instant,
    /// Replicas that failed since the last answer.
    failed: Vec<SegmentId>,
    result: Option<Result<u64, Code>>,
}

impl Reads {
    fn new(items: usize) -> Self {
        let item = ReadItem { until: Instant::ORIGIN, ..ReadItem::default() };
        Self { gets: Gets::new(items), now: Instant::from_nanos(1), items: vec![item; items] }
    }

    fn run(mut self, input: &mut Input<'_>) {
        for _ in 0..STEPS {
            if input.is_empty() {
                break;
            }
            let item = input.below(self.items.len() + 1);
            match input.below(8) {
                0..3 => self.answer(item, input),
                3..7 => self.read(item, input),
                _ => {
                    let asked: Vec<_> = self.gets.asking().collect();
                    self.gets.handle_no_answer(Code::RPC_TIMEOUT);
                    for item in asked {
                        assert_eq!(self.gets.result(item), Some(Err(Code::RPC_TIMEOUT)));
                    }
                }
            }
            pass(&mut self.now, input);
            self.check();
        }
        self.finish();
    }

    fn answer(&mut self, item: usize, input: &mut Input<'_>) {
        let answer = match input.byte() % 8 {
            0 => Err(REFUSED),
            n => {
                let replicas = (0..input.below(9))
                    .map(|n| Location { segment: segment(n), offset: u64::from(input.byte()) })
                    .collect();
                let len = if n == 1 { 0 } else { 10 };
                Ok(Found { object: object(), len, checksum: Checksum::None, replicas })
            }
        };
        let lease = Duration::from_millis(u64::from(input.short()));
        let asked = self.gets.asking().any(|other| other == item);
        let now = self.now;
        let found = answer.is_ok();
        self.gets.handle_found(item, now, lease, answer, |location| location.offset as u32);
        if asked && found {
            let model = &mut self.items[item];
            model.answers += 1;
            model.until = now + less_drift(lease);
            model.failed.clear();
            assert!(model.answers <= ATTEMPTS, "item {item} was asked for {} times", model.answers);
        }
    }

    fn read(&mut self, item: usize, input: &mut Input<'_>) {
        let end = match input.byte() % 5 {
            0 | 1 => ReadEnd::Good(10),
            2 => ReadEnd::Corrupt,
            3 => ReadEnd::Failed,
            _ => ReadEnd::Refused(Code::INVALID_PARAMS),
        };
        let reading = self.gets.reading().find(|read| read.item == item).map(|read| read.from.segment);
        self.gets.handle_read(self.now, item, end, |location| location.offset as u32);
        let (Some(from), Some(model)) = (reading, self.items.get_mut(item)) else { return };
        assert!(!model.failed.contains(&from), "{from} was read again after it failed");
        if matches!(end, ReadEnd::Corrupt | ReadEnd::Failed) {
            model.failed.push(from);
        }
        if self.gets.result(item) == Some(Ok(10)) {
            assert!(
                end == ReadEnd::Good(10) && self.now < model.until,
                "a read after its lease is no success"
            );
        }
    }

    fn check(&mut self) {
        let (asking, reading) = (self.gets.asking().count(), self.gets.reading().count());
        let expected = match (asking, reading) {
            (0, 0) => NextGet::Done,
            (0, _) => NextGet::Read,
            _ => NextGet::Ask,
        };
        assert_eq!(self.gets.next(), expected);
        let done = (0..self.items.len()).filter(|&item| self.gets.result(item).is_some()).count();
        assert_eq!(asking + reading + done, self.items.len(), "every item is in one state");
        for (item, model) in self.items.iter_mut().enumerate() {
            let result = self.gets.result(item);
            assert!(model.result.is_none() || model.result == result, "a result changed");
            model.result = result;
        }
    }

    /// Whatever happened, a driver that goes on comes to an end.
    fn finish(mut self) {
        for _ in 0..ITEMS * (usize::from(ATTEMPTS) * 10 + 1) {
            match self.gets.next() {
                NextGet::Done => return,
                NextGet::Ask => self.gets.handle_no_answer(Code::RPC_TIMEOUT),
                NextGet::Read => {
                    let item = self.gets.reading().next().expect("there is something to read").item;
                    self.gets.handle_read(self.now, item, ReadEnd::Failed, |_| 0);
                }
            }
            self.check();
        }
        panic!("the batch does not end");
    }
}

struct Writes {
    puts: Puts,
    now: Instant,
    items: Vec<WriteItem>,
}

#[derive(Clone, Default)]
struct WriteItem {
    grants: u8,
    until: Instant,
    /// How each replica of the last grant ended.
    ends: Vec<Option<WriteEnd>>,
    written: Vec<bool>,
    ahead: bool,
    result: Option<Result<(), Refusal>>,
}

impl WriteItem {
    fn begin(&mut self, replicas: usize, until: Instant, ahead: bool) {
        self.grants += 1;
        assert!(self.grants <= ATTEMPTS, "granted {} times", self.grants);
        (self.until, self.ahead) = (until, ahead);
        (self.ends, self.written) = (vec![None; replicas], vec![false; replicas]);
    }

    /// Whether no write of the last grant can still land.
    fn is_quiet(&self) -> bool {
        self.ends.iter().all(|end| matches!(end, Some(WriteEnd::Good | WriteEnd::Failed)))
    }
}

impl Writes {
    fn new(items: usize) -> Self {
        let item = WriteItem { until: Instant::ORIGIN, ..WriteItem::default() };
        Self { puts: Puts::new(items), now: Instant::from_nanos(1), items: vec![item; items] }
    }

    fn run(mut self, input: &mut Input<'_>) {
        for _ in 0..STEPS {
            if input.is_empty() {
                break;
            }
            let item = input.below(self.items.len() + 1);
            match input.below(16) {
                0..3 => self.grant(item, input),
                3..9 => self.write(item, input),
                9..12 => self.end(item, input),
                12..15 => self.puts.handle_aborted(item),
                _ => self.give_up(item),
            }
            pass(&mut self.now, input);
            self.check();
        }
        self.finish();
    }

    fn grant(&mut self, item: usize, input: &mut Input<'_>) {
        let kind = input.byte() % 8;
        let starting = self.puts.starting().any(|other| other == item);
        let extent = Extent::new(0, 64).expect("small numbers");
        let place = |n| Placement { segment: segment(n), extent, serial: 1, tag: 1 };
        let grant = Grant { object: object(), replicas: (0..input.below(9)).map(place).collect() };
        let count = grant.replicas.len();
        let write = Duration::from_millis(u64::from(input.short()));
        let now = self.now;
        match kind {
            0 => self.puts.handle_grant(item, now, Term(1), write, Err(REFUSED)),
            1 | 2 => self.puts.use_reserved(item, grant, Term(1), now + write),
            _ => self.puts.handle_grant(item, now, Term(1), write, Ok(grant)),
        }
        if starting && kind != 0 {
            let ahead = kind <= 2;
            let until = now + if ahead { write } else { less_drift(write) };
            self.items[item].begin(count, until, ahead);
        }
    }

    fn write(&mut self, item: usize, input: &mut Input<'_>) {
        let replica = input.below(10);
        let end = input.choose(&[WriteEnd::Good, WriteEnd::Good, WriteEnd::Failed, WriteEnd::Unsure]);
        let writing = self.puts.writing().any(|write| (write.item, write.replica) == (item, replica));
        self.puts.handle_write(self.now, item, replica, end);
        if writing {
            let model = &mut self.items[item];
            assert_eq!(model.ends[replica], None, "a replica is written once");
            model.ends[replica] = Some(end);
            model.written[replica] = end == WriteEnd::Good && self.now < model.until;
        }
    }

    fn end(&mut self, item: usize, input: &mut Input<'_>) {
        let ending = self.puts.ending().find(|ending| ending.item == item);
        let answer = if input.flag() { Ok(()) } else { Err(REFUSED) };
        self.puts.handle_ended(item, answer);
        if ending.is_some() && answer.is_ok() {
            assert_eq!(self.puts.result(item), Some(Ok(())));
        }
    }

    fn give_up(&mut self, item: usize) {
        let open = item < self.items.len() && self.puts.result(item).is_none();
        let starting = self.puts.starting().any(|other| other == item);
        let abandoned = self.puts.give_up(item, REFUSED);
        assert_eq!(abandoned.is_some(), open && !starting, "what was started is to be aborted");
        if let Some(abandoned) = abandoned {
            assert!(!abandoned.quiet || self.items[item].is_quiet(), "it is not quiet");
        }
    }

    fn check(&mut self) {
        let starting = self.puts.starting().count();
        let mut writing: Vec<_> = self.puts.writing().map(|write| write.item).collect();
        writing.dedup();
        let (ending, aborting): (Vec<_>, Vec<_>) =
            (self.puts.ending().collect(), self.puts.aborting().collect());
        let expected = match (starting, writing.len(), ending.len(), aborting.len()) {
            (0, 0, 0, 0) => NextPut::Done,
            (0, 0, 0, _) => NextPut::Abort,
            (0, 0, _, _) => NextPut::End,
            (0, _, _, _) => NextPut::Write,
            _ => NextPut::Start,
        };
        assert_eq!(self.puts.next(), expected);
        for ending in &ending {
            let model = &self.items[ending.item];
            let failed: Vec<_> = (0..model.ends.len()).filter(|&n| !model.written[n]).map(segment).collect();
            assert_eq!(ending.failed, *failed, "what was not written in time failed");
            assert!(model.ends.is_empty() || failed.len() < model.ends.len(), "nothing was written");
            assert_eq!(ending.granted == Granted::Ahead, model.ahead);
        }
        for (item, abandoned) in &aborting {
            assert!(!abandoned.quiet || self.items[*item].is_quiet(), "item {item} is not quiet");
        }
        let done = (0..self.items.len()).filter(|&item| self.puts.result(item).is_some()).count();
        assert_eq!(starting + writing.len() + ending.len() + aborting.len() + done, self.items.len());
        for (item, model) in self.items.iter_mut().enumerate() {
            let result = self.puts.result(item);
            assert!(model.result.is_none() || model.result == result, "a result changed");
            model.result = result;
        }
    }

    fn finish(mut self) {
        for _ in 0..ITEMS * (usize::from(ATTEMPTS) * 12 + 1) {
            match self.puts.next() {
                NextPut::Done => return,
                NextPut::Start => {
                    let item = self.puts.starting().next().expect("there is something to start");
                    self.puts.handle_grant(item, self.now, Term(1), Duration::ZERO, Err(REFUSED));
                }
                NextPut::Write => {
                    let write = self.puts.writing().next().expect("there is something to write");
                    self.puts.handle_write(self.now, write.item, write.replica, WriteEnd::Failed);
                    self.items[write.item].ends[write.replica] = Some(WriteEnd::Failed);
                }
                NextPut::End => {
                    let item = self.puts.ending().next().expect("there is something to end").item;
                    self.puts.handle_ended(item, Ok(()));
                }
                NextPut::Abort => {
                    let item = self.puts.aborting().next().expect("there is something to abort").0;
                    self.puts.handle_aborted(item);
                }
            }
            self.check();
        }
        panic!("the batch does not end");
    }
}
