//! Calls that change nothing: whether objects are there, and where.

use springtide_core::rng::Rng;
use springtide_core::wire::codec::{self, Malformed};
use springtide_core::wire::frame::Method;
use springtide_core::wire::message::{self, Found, Leased, Presence, ProbeKind, Refusal};
use springtide_hal_host::clock;

use super::super::plain::one_by_one;
use super::super::wire::{self, Wire};
use super::Meter;
use super::pace::Counter;
use crate::exit::Failure;
use crate::reports::measure::Measurement;

/// How many random keys each connection asks for in turn: more than the master's caches hold.
const KEYS: u32 = 1 << 17;

/// Which call.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Kind {
    /// Whether an object is there.
    Exists,
    /// Where it is.
    Get,
}

impl Kind {
    const fn method(self) -> Method {
        match self {
            Self::Exists => message::EXISTS,
            Self::Get => message::GET,
        }
    }

    const fn name(self) -> &'static str {
        match self {
            Self::Exists => "exists",
            Self::Get => "get",
        }
    }

    fn head(self, body: &mut Vec<u8>) {
        match self {
            Self::Exists => codec::put(body, &ProbeKind::Plain),
            Self::Get => codec::put(body, &()),
        }
    }

    /// How many objects an answer says are there.
    fn present(self, body: &[u8]) -> Result<usize, Malformed> {
        match self {
            Self::Exists => {
                let ((), tail) = codec::split::<(), Presence>(body)?;
                Ok(tail.filter(|item| *item == Ok(Presence::Present)).count())
            }
            Self::Get => {
                let (_, tail) = codec::split::<Leased, Result<Found, Refusal>>(body)?;
                Ok(tail.filter(|item| matches!(item, Ok(Ok(_)))).count())
            }
        }
    }
}

/// Calls that were written ahead, so that sending them is all that is left to do.
struct Prepared {
    bytes: Vec<u8>,
    /// Where each call ends.
    ends: Vec<usize>,
    next: usize,
}

impl Prepared {
    /// The next calls, at most `count`: fewer where the last is followed by the first.
    fn take(&mut self, count: usize) -> (&[u8], usize) {
        let first = self.next;
        let last = (first + count).min(self.ends.len());
        self.next = if last == self.ends.len() { 0 } else { last };
        let begin = first.checked_sub(1).map_or(0, |before| self.ends[before]);
        (&self.bytes[begin..self.ends[last - 1]], last - first)
    }
}

impl Meter<'_> {
    fn prepare(&self, kind: Kind, batch: u32, seed: u64) -> Prepared {
        let mut rng = Rng::new(seed);
        let (mut bytes, mut ends, mut key) = (Vec::new(), Vec::new(), Vec::new());
        for call in 0..u64::from((KEYS / batch).max(2)) {
            wire::encode(&mut bytes, call + 1, kind.method(), |body| {
                kind.head(body);
                for _ in 0..batch {
                    codec::put(body, &self.keys.write(rng.below(self.keys.count()), &mut key));
                }
            });
            ends.push(bytes.len());
        }
        Prepared { bytes, ends, next: 0 }
    }

    /// An error unless the first calls find all that they ask for.
    fn verify(kind: Kind, batch: u32, wire: &mut Wire, calls: &mut Prepared) -> Result<(), Failure> {
        let (bytes, mut left) = calls.take(16);
        wire.send(bytes)?;
        while left > 0 {
            left -= wire.receive(|frame| match kind.present(frame.body).map_err(Failure::new)? {
                found if found == batch as usize => Ok(()),
                found => Err(Failure::new(format_args!("{found} of {batch} objects are there"))),
            })? as usize;
        }
        Ok(())
    }

    /// One call of one key after another, on one connection.
    pub(super) fn one_by_one(&self, kind: Kind) -> Result<Measurement, Failure> {
        let mut wire = self.connect()?;
        let mut calls = self.prepare(kind, 1, self.args.seed);
        Self::verify(kind, 1, &mut wire, &mut calls)?;
        let window = self.load.begin();
        let latencies = one_by_one(&window, || {
            wire.send(calls.take(1).0)?;
            wire.receive(|_| Ok(())).map(drop)
        })?;
        let name = self.name(&format!("{}, one at a time", kind.name()));
        let row = Measurement::new(name, None, latencies.count(), window.took());
        Ok(row.with_latencies(latencies.micros()))
    }

    /// Calls of `batch` keys, `pipeline` of them under way on every connection. An operation is a key.
    pub(super) fn many(&self, kind: Kind, batch: u32, pipeline: usize) -> Result<Measurement, Failure> {
        let name = match batch {
            1 => format!("{}, {} × {pipeline} under way", kind.name(), self.args.connections),
            _ => format!("{}, {} × {pipeline} batches of {batch}", kind.name(), self.args.connections),
        };
        let name = self.name(&name);
        let load = |number: u64, mut wire: Wire, count: &Counter| {
            let mut calls = self.prepare(kind, batch, self.args.seed + number);
            Self::verify(kind, batch, &mut wire, &mut calls)?;
            let window = self.load.begin();
            let (bytes, mut under_way) = calls.take(pipeline);
            wire.send(bytes)?;
            let mut answered = 0;
            while window.is_open(clock::now()) {
                let mut free = wire.receive(|_| Ok(()))? as usize;
                answered += free as u64;
                count.add(free as u64 * u64::from(batch));
                under_way -= free;
                while free > 0 {
                    let (bytes, count) = calls.take(free);
                    wire.send(bytes)?;
                    (free, under_way) = (free - count, under_way + count);
                }
            }
            let took = window.took();
            while under_way > 0 {
                under_way -= wire.receive(|_| Ok(()))? as usize;
            }
            Ok((answered * u64::from(batch), took))
        };
        let (loads, seconds) = self.everywhere(&name, load)?;
        let keys = loads.iter().map(|(keys, _)| keys).sum();
        let took = loads.iter().map(|(_, took)| *took).max().unwrap_or_default();
        Ok(Measurement::new(name, None, keys, took).with_each_second(seconds))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prepared_calls_come_round_again() {
        let mut calls = Prepared { bytes: b"abbccc".to_vec(), ends: vec![1, 3, 6], next: 0 };
        assert_eq!(calls.take(2), (&b"abb"[..], 2));
        assert_eq!(calls.take(2), (&b"ccc"[..], 1));
        assert_eq!(calls.take(9), (&b"abbccc"[..], 3));
        assert_eq!(calls.take(1), (&b"a"[..], 1));
    }
}
