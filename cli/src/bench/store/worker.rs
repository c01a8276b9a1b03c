//! One call after another.

use core::time::Duration;
use std::sync::Arc;

use springtide::{Blocking, Client, Code, Error, Memory, Piece, PutOptions, Runtime, Slice, Tokio};
use springtide_hal_host::clock;

use super::super::load::{Window, fill};
use super::values::Values;
use crate::commands::pool::failed;
use crate::exit::Failure;
use crate::latency::Latencies;
use crate::reports::measure::Measurement;
use crate::size::Size;

/// How long a worker leaves a full pool alone.
const PAUSE: Duration = Duration::from_millis(1);

/// Which call.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Op {
    /// From memory that the client does not know.
    Put,
    /// From registered memory.
    PutFrom,
    /// To memory that the client makes.
    Get,
    /// To registered memory.
    GetInto,
}

impl Op {
    /// Whether batches of it are measured too.
    pub(super) const fn has_batches(self) -> bool {
        matches!(self, Self::PutFrom | Self::GetInto)
    }

    /// What a row is called.
    pub(super) fn name(self, batch: usize, tasks: usize) -> String {
        let name = match self {
            Self::Put => "put",
            Self::PutFrom => "put_from",
            Self::Get => "get",
            Self::GetInto => "get_into",
        };
        match (batch, tasks) {
            (1, 1) => format!("{name}, one at a time"),
            (1, tasks) => format!("{name}, {tasks} under way"),
            (batch, tasks) => format!("{name}, {tasks} × batch of {batch}"),
        }
    }
}

/// A client, registered memory for one batch, and one value.
pub(super) struct Worker {
    client: Client<Tokio>,
    runtime: Tokio,
    values: Arc<Values>,
    op: Op,
    batch: usize,
    memory: Memory,
    value: Vec<u8>,
    /// The next value to read.
    next: u64,
}

/// What a worker did.
#[derive(Default)]
pub(super) struct Done {
    values: u64,
    latencies: Latencies,
    refused: u64,
    error: Option<Error>,
}

/// What to do after a call.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Then {
    /// The next one.
    Go,
    /// Let the pool find room first.
    Pause,
    /// Nothing more.
    Stop,
}

impl Done {
    /// Counts a call of `values` values.
    fn note(&mut self, result: Result<(), Error>, values: u64, took: Duration) -> Then {
        match result {
            Ok(()) => {
                self.values += values;
                self.latencies.record(took);
                Then::Go
            }
            Err(error) if error.code() == Code::NO_AVAILABLE_HANDLE => {
                self.refused += 1;
                Then::Pause
            }
            Err(error) => {
                self.error = Some(error);
                Then::Stop
            }
        }
    }

    pub(super) fn merge(&mut self, other: Self) {
        self.values += other.values;
        self.latencies.merge(&other.latencies);
        self.refused += other.refused;
        self.error = self.error.take().or(other.error);
    }

    /// What was measured.
    pub(super) fn row(self, name: String, size: u64, took: Duration) -> Result<Measurement, Failure> {
        if let Some(error) = &self.error {
            return Err(failed(name, error));
        }
        if self.refused > 0 {
            tracing::warn!(refused = self.refused, name, size, "calls found no room and came again");
        }
        let row = Measurement::new(name, Some(Size(size)), self.values, took);
        Ok(row.with_latencies(self.latencies.micros()))
    }
}

impl Worker {
    pub(super) fn new(
        client: Client<Tokio>,
        runtime: Tokio,
        values: Arc<Values>,
        op: Op,
        batch: usize,
        number: usize,
    ) -> Result<Self, Error> {
        let memory = client.allocate(values.size() * batch as u64)?;
        let mut value = vec![0; values.size() as usize];
        fill(u64::MAX, &mut value);
        for place in 0..batch as u64 {
            memory.write(place * values.size(), &value)?;
        }
        // Workers begin at different places of the circle.
        let next = number as u64 * 97;
        Ok(Self { client, runtime, values, op, batch, memory, value, next })
    }

    /// Works as long as `window` lasts, as a task.
    pub(super) async fn work(mut self, window: &Window) -> Done {
        let mut done = Done::default();
        let mut now = clock::now();
        while window.is_open(now) {
            let result = self.call().await;
            let end = clock::now();
            match done.note(result, self.batch as u64, end.since(now)) {
                Then::Go => {}
                Then::Pause => self.runtime.timer(end + PAUSE).await,
                Then::Stop => break,
            }
            now = clock::now();
        }
        done
    }

    /// The same, on the calling thread.
    pub(super) fn block(mut self, blocking: &Blocking<Tokio>, window: &Window) -> Done {
        let mut done = Done::default();
        let mut now = clock::now();
        while window.is_open(now) {
            let result = blocking.run(self.call());
            let end = clock::now();
            if done.note(result, self.batch as u64, end.since(now)) == Then::Stop {
                break;
            }
            now = end;
        }
        done
    }

    fn slice(&self, place: usize) -> Result<Slice<'_>, Error> {
        let size = self.values.size();
        self.memory.slice(place as u64 * size, size)
    }

    async fn call(&mut self) -> Result<(), Error> {
        let first = self.next;
        self.next += self.batch as u64;
        let options = PutOptions::default();
        match self.op {
            Op::Put => self.client.put(&self.values.fresh(), &self.value, &options).await,
            Op::PutFrom => {
                let keys: Vec<Vec<u8>> = (0..self.batch).map(|_| self.values.fresh()).collect();
                let items = (0..).zip(&keys).map(|(place, key)| Ok((&key[..], self.slice(place)?)));
                let items = items.collect::<Result<Vec<_>, Error>>()?;
                self.client.put_from_batch(&items, &options).await.into_iter().collect()
            }
            Op::Get => {
                let value = self.client.get(self.values.key(first)).await?;
                whole(value.len() as u64, self.values.size())
            }
            Op::GetInto => {
                let piece = |place: usize| {
                    let key = self.values.key(first + place as u64);
                    Ok(Piece { key, at: 0, len: None, into: self.slice(place)? })
                };
                let pieces = (0..self.batch).map(piece).collect::<Result<Vec<_>, Error>>()?;
                let read = self.client.get_pieces(&pieces).await;
                read.into_iter().try_for_each(|read| whole(read?, self.values.size()))
            }
        }
    }
}

fn whole(got: u64, wanted: u64) -> Result<(), Error> {
    if got == wanted { Ok(()) } else { Err(Error::from(Code::INVALID_REPLICA)) }
}
