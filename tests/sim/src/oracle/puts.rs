//! Whose bytes a read may give.

use springtide_core::error::Code;
use springtide_core::id::ObjectId;
use springtide_core::time::Instant;
use springtide_core::wire::message::Found;

use super::{Oracle, Rule};
use crate::pattern;
use crate::queue::Pid;

/// Ends of puts that are remembered: more than are under way.
const ENDING: usize = 512;

/// One put of one value.
#[derive(Clone, Copy, Debug)]
pub(super) struct Put {
    pub(super) master: Pid,
    pub(super) key: u32,
    pub(super) len: u32,
    /// Its master took its end.
    pub(super) ended: bool,
    /// When its object was removed.
    pub(super) removed: Instant,
    result: Known,
}

/// What its caller knows of a put.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Known {
    Nothing,
    /// It said that it failed, and nothing of it may be seen.
    Failed,
    /// It may have succeeded.
    Undecided,
    Succeeded,
}

/// A get that ended.
#[derive(Clone, Copy, Debug)]
pub struct GetEnd {
    /// Whose.
    pub pid: Pid,
    /// At which master.
    pub master: Pid,
    /// Of which key.
    pub key: u32,
    /// When the master was asked last, in true time.
    pub asked: Instant,
    /// When its bytes were there and checked, in true time.
    pub read: Instant,
    /// Whether the reader's clock has not jumped since.
    pub steady: bool,
}

impl Oracle {
    /// A caller puts a value of `len` bytes; gives back the put's number, which the bytes are made from.
    pub fn put_began(&mut self, master: Pid, key: u32, len: u32) -> u32 {
        let (ended, removed, result) = (false, Instant::NEVER, Known::Nothing);
        self.puts.push(Put { master, key, len, ended, removed, result });
        self.puts.len() as u32
    }

    pub(super) fn put_of(&mut self, number: u32) -> Option<&mut Put> {
        self.puts.get_mut((number as usize).checked_sub(1)?)
    }

    /// A call sets out that ends put `number` as `object`.
    pub fn put_ending(&mut self, master: Pid, object: ObjectId, number: u32) {
        if self.ending.len() >= ENDING {
            self.ending.pop_front();
        }
        self.ending.push_back((master, object, number));
    }

    /// The put of `key` that was to end as `object`, where its bytes cannot be looked at.
    pub(super) fn put_ending_as(&self, master: Pid, object: ObjectId, key: u32) -> Option<u32> {
        let same = |&&(at, id, number): &&(Pid, ObjectId, u32)| {
            let put = self.puts.get((number as usize).wrapping_sub(1));
            (at, id) == (master, object) && put.is_some_and(|put| put.key == key)
        };
        self.ending.iter().rev().find(same).map(|&(.., number)| number)
    }

    /// Nobody knows whether a put succeeds.
    pub fn put_undecided(&mut self, number: u32) {
        if let Some(put) = self.put_of(number)
            && put.result == Known::Nothing
        {
            put.result = Known::Undecided;
        }
    }

    /// A caller has the result of a put.
    pub fn put_ended(&mut self, now: Instant, number: u32, result: Result<(), Code>) {
        let Some(put) = self.put_of(number) else { return };
        match result {
            Ok(()) if !put.ended => {
                let what = format_args!("put {number} was acknowledged, but never ended");
                self.violate(now, Rule::Acknowledged, what);
            }
            Ok(()) => put.result = Known::Succeeded,
            Err(_) if put.result == Known::Undecided || put.ended => put.result = Known::Undecided,
            Err(_) => put.result = Known::Failed,
        }
    }

    /// A master made the value of put `number` readable as `key`.
    pub(super) fn put_readable(&mut self, now: Instant, number: u32, master: Pid, (key, len): (u32, u64)) {
        let Some(put) = self.put_of(number) else { return };
        put.ended = true;
        let (is, was) = ((master, key, len), (put.master, put.key, u64::from(put.len)));
        let failed = put.result == Known::Failed;
        if is != was {
            let what = format_args!("put {number} is readable as {is:?}, but was {was:?}");
            self.violate(now, Rule::Bytes, what);
        } else if failed {
            let what = format_args!("put {number} failed, and was ended all the same");
            self.violate(now, Rule::Acknowledged, what);
        }
    }

    /// A get ended with these bytes, or not.
    pub fn got(&mut self, now: Instant, end: &GetEnd, value: Result<&[u8], Code>, found: Option<&Found>) {
        let Ok(bytes) = value else { return };
        let key = end.key;
        let Some(number) = pattern::author(bytes) else {
            let (len, claims) = (bytes.len(), pattern::claimed(bytes));
            let what = format_args!("key {key} read as {len} bytes that no put wrote (first of {claims:?})");
            return self.violate(now, Rule::Bytes, what);
        };
        let Some(&mut put) = self.put_of(number) else {
            return self.violate(now, Rule::Bytes, format_args!("there is no put {number}"));
        };
        let whole = found.is_none_or(|found| found.len == bytes.len() as u64);
        if (put.master, put.key, put.len as usize) != (end.master, key, bytes.len()) || !whole {
            let what = format_args!("key {key} read as put {number}, which is {put:?}");
            return self.violate(now, Rule::Bytes, what);
        }
        if !put.ended {
            let what = format_args!("key {key} read as put {number}, which has not ended");
            self.violate(now, Rule::Early, what);
        } else if put.result == Known::Failed {
            let what = format_args!("key {key} read as put {number}, which failed");
            self.violate(now, Rule::Bytes, what);
        } else if put.removed < end.asked {
            let what = format_args!("key {key} read as put {number}, which had been removed");
            self.violate(now, Rule::Removed, what);
        }
        if end.steady && end.read > end.asked + self.lease {
            let late = end.read.since(end.asked + self.lease);
            let what = format_args!("client {} read key {key} {late:?} after its lease", end.pid.0);
            self.violate(now, Rule::LateRead, what);
        }
    }
}
