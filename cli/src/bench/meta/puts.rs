//! Calls that change what there is: puts without bytes, and removals.

use core::ops::Range;
use core::time::Duration;

use springtide_core::checksum::Checksum;
use springtide_core::wire::codec;
use springtide_core::wire::message::{
    self, Finished, Forcing, Grant, Granted, Options, Pattern, Refusal, RemoveMatching, RemoveStep, Wanted,
};
use springtide_hal_host::clock;

use super::super::wire::Wire;
use super::keys::Keys;
use super::{ADDED, Meter};
use crate::exit::Failure;
use crate::reports::measure::Measurement;
use crate::size::Size;

/// Objects that one call puts while the master is filled.
pub(super) const AT_ONCE: u32 = 1_024;

/// Puts the objects `numbers`, each said to be of `size`: two calls.
pub(super) fn put(wire: &mut Wire, keys: &Keys, size: Size, numbers: Range<u64>) -> Result<(), Failure> {
    let wanted = numbers.end - numbers.start;
    let mut key = Vec::new();
    let begin = |body: &mut Vec<u8>| {
        codec::put(body, &Options::default());
        for number in numbers {
            codec::put(body, &Wanted { key: keys.write(number, &mut key), len: size.0 });
        }
    };
    let mut ends = Vec::new();
    let granted = wire.call(message::PUT_START, begin, |body| {
        let (_, tail) = codec::split::<Granted, Result<Grant, Refusal>>(body)?;
        tail.map(|grant| {
            let end = |grant: Grant| Finished {
                object: grant.object,
                checksum: Checksum::None,
                failed: Default::default(),
            };
            grant.map(|grant| grant.map(end))
        })
        .collect::<Result<Result<Vec<Finished>, Refusal>, _>>()
    })?;
    let granted = granted.map_err(|refusal| Failure::refused("put", refusal.code))?;
    granted.iter().for_each(|end| codec::put(&mut ends, end));
    let ended = wire.call(
        message::PUT_END,
        |body| body.extend_from_slice(&ends),
        |body| {
            let ((), tail) = codec::split::<(), Result<(), Refusal>>(body)?;
            Ok(tail.filter(|end| *end == Ok(Ok(()))).count() as u64)
        },
    )?;
    if ended == wanted { Ok(()) } else { Err(Failure::new(format_args!("{ended} of {wanted} puts ended"))) }
}

/// Removes the objects `numbers`: one call.
fn remove(wire: &mut Wire, keys: &Keys, numbers: Range<u64>) -> Result<(), Failure> {
    let wanted = numbers.end - numbers.start;
    let mut key = Vec::new();
    let begin = |body: &mut Vec<u8>| {
        codec::put(body, &Forcing::Yes);
        numbers.for_each(|number| codec::put(body, &keys.write(number, &mut key)));
    };
    let removed = wire.call(message::REMOVE, begin, |body| {
        let ((), tail) = codec::split::<(), Result<(), Refusal>>(body)?;
        Ok(tail.filter(|end| *end == Ok(Ok(()))).count() as u64)
    })?;
    match removed == wanted {
        true => Ok(()),
        false => Err(Failure::new(format_args!("{removed} of {wanted} objects were removed"))),
    }
}

/// Removes every object of a run, step by step.
pub(super) fn remove_matching(wire: &mut Wire, keys: &Keys) -> Result<(), Failure> {
    let mut cursor = 0;
    loop {
        let request = RemoveMatching { cursor, pattern: Pattern::Prefix(keys.prefix()), force: Forcing::Yes };
        let begin = |body: &mut Vec<u8>| codec::put(body, &request);
        let step: RemoveStep = wire.call(message::REMOVE_MATCHING, begin, |body| codec::whole(body))?;
        match step.next {
            0 => return Ok(()),
            next => cursor = next,
        }
    }
}

impl Meter<'_> {
    /// Puts objects that are not there yet, on every connection, in batches; then removes them. An operation is an
    /// object: a put is its start and its end.
    pub(super) fn put_and_remove(&self) -> Result<[Measurement; 2], Failure> {
        let batch = u64::from(self.args.batch);
        let share = (ADDED / u64::from(self.args.connections)).max(batch);
        let put_name = self.name(&self.what("put"));
        let (puts, put_seconds) = self.everywhere(&put_name, |number, mut wire, count| {
            let first = self.keys.count() + number * share;
            let mut at = first;
            let window = self.load.begin();
            while at + batch <= first + share && window.is_open(clock::now()) {
                put(&mut wire, &self.keys, self.args.size, at..at + batch)?;
                at += batch;
                count.add(batch);
            }
            Ok((first..at, window.took()))
        })?;
        let remove_name = self.name(&self.what("remove"));
        let (removals, remove_seconds) = self.everywhere(&remove_name, |number, mut wire, count| {
            let (range, _) = &puts[number as usize];
            let begun = clock::now();
            for at in range.clone().step_by(batch as usize) {
                remove(&mut wire, &self.keys, at..at + batch)?;
                count.add(batch);
            }
            Ok((range.clone(), clock::now().since(begun)))
        })?;
        let put = row(put_name, &puts).with_each_second(put_seconds);
        Ok([put, row(remove_name, &removals).with_each_second(remove_seconds)])
    }

    fn what(&self, what: &str) -> String {
        format!("{what}, {} batches of {}", self.args.connections, self.args.batch)
    }
}

fn row(name: String, done: &[(Range<u64>, Duration)]) -> Measurement {
    let objects = done.iter().map(|(range, _)| range.end - range.start).sum();
    let took = done.iter().map(|(_, took)| *took).max().unwrap_or_default();
    Measurement::new(name, None, objects, took)
}
