//! `springtide bench transfer`: bytes between this process and a node, beside what the machine does without us.

mod peer;

use std::collections::VecDeque;

use springtide_core::range::GRANULE;
use springtide_core::transfer::{Outcome, Transfer, Verb};
use springtide_driver::{Moving, block_on};
use springtide_hal_host::clock;

use self::peer::Peer;
use super::load::{Load, Target, Window, check, fill, report};
use super::plain;
use crate::args;
use crate::exit::Failure;
use crate::latency::Latencies;
use crate::reports::measure::{Measurement, Measurements};
use crate::signals::Stop;
use crate::size::Size;

/// A master that does not take the extent back as long as a measurement may last.
const MASTER: [&str; 4] = ["--put-discard", "24h", "--put-release", "48h"];

/// Measures and prints.
pub fn run(args: &args::Transfer) -> Result<(), Failure> {
    report(args.json.format(), |stop| measure(args, stop))
}

fn measure(args: &args::Transfer, stop: &Stop) -> Result<Measurements, Failure> {
    let largest = args.sizes.iter().map(|size| size.0).max().unwrap_or(0);
    let set = args.set.0.max(largest);
    // Twice the extent: the allocator takes nothing away, but a watermark keeps a tenth free.
    let target = Target::new(None, 1, Size(2 * set.next_multiple_of(GRANULE)), &MASTER)?;
    let pool = target.connect()?;
    let mut rows = Vec::new();
    let measured =
        Peer::connect(&args.transport, &target, pool.client().incarnation(), set).and_then(|peer| {
            let mover = Mover { peer, set, depth: args.depth.into(), load: Load::new(stop, args.duration) };
            for &Size(size) in &args.sizes {
                rows.extend(mover.size(size)?);
            }
            mover.peer.leave()
        });
    pool.close();
    target.stop()?;
    measured.map(|()| Measurements(rows))
}

/// Moves bytes to and from one extent.
struct Mover {
    peer: Peer,
    /// How many bytes are moved in turn.
    set: u64,
    depth: usize,
    load: Load,
}

/// How transfers follow each other.
#[derive(Clone, Copy)]
struct Shape {
    size: u64,
    /// Transfers in one batch.
    batch: usize,
    /// Batches under way at once.
    depth: usize,
}

impl Mover {
    fn size(&self, size: u64) -> Result<Vec<Measurement>, Failure> {
        self.verify(size)?;
        let memcpy = plain::memcpy(size, self.set, &self.load)?;
        let stream = plain::stream(size, self.set, &self.load)?;
        let round_trip = plain::round_trips(size, &self.load)?;
        let is_tcp = self.peer.transport() == "tcp";
        let (many, one) = if is_tcp { (&stream, &round_trip) } else { (&memcpy, &memcpy) };
        let half = self.depth.div_ceil(2);
        let mut rows = Vec::new();
        for verb in [Verb::Write, Verb::Read] {
            let shapes = [
                Shape { size, batch: 1, depth: self.depth },
                Shape { size, batch: half, depth: self.depth / half },
            ];
            for shape in shapes {
                rows.push(self.run(verb, shape, shape.name(verb))?.compared(many));
            }
            let alone = Shape { size, batch: 1, depth: 1 };
            rows.push(self.run(verb, alone, format!("{}, one at a time", name(verb)))?.compared(one));
        }
        Ok([memcpy.clone(), stream.clone(), round_trip.clone()].into_iter().chain(rows).collect())
    }

    fn run(&self, verb: Verb, shape: Shape, name: String) -> Result<Measurement, Failure> {
        let window = self.load.begin();
        let mut latencies = Latencies::new();
        let moved = self.flow(verb, shape, u64::MAX, Some((&window, &mut latencies)))?;
        let took = window.took();
        Ok(Measurement::new(name, Some(Size(shape.size)), moved, took).with_latencies(latencies.micros()))
    }

    /// Writes the whole set, and reads it back into memory that held something else.
    fn verify(&self, size: u64) -> Result<(), Failure> {
        let shape = Shape { size, batch: 1, depth: self.depth };
        let count = self.set / size;
        let mut bytes = vec![0; usize::try_from(count * size).map_err(Failure::new)?];
        fill(size, &mut bytes);
        let memory = self.peer.memory();
        memory.write(0, &bytes).map_err(Failure::new)?;
        self.flow(Verb::Write, shape, count, None)?;
        memory.write(0, &vec![0; bytes.len()]).map_err(Failure::new)?;
        self.flow(Verb::Read, shape, count, None)?;
        memory.read(0, &mut bytes).map_err(Failure::new)?;
        check(self.peer.transport(), size, &bytes)
    }

    /// Moves bytes until `count` transfers (whole batches) have ended or the window closes; gives back how many have.
    fn flow(
        &self,
        verb: Verb,
        shape: Shape,
        count: u64,
        timed: Option<(&Window, &mut Latencies)>,
    ) -> Result<u64, Failure> {
        let seat = self.peer.seat();
        let flow = self.flow_on(verb, shape, count, timed);
        block_on(&[&**seat], peer::deadline(), flow)
            .map_err(|_| Failure::new("the node did not answer in time"))?
    }

    async fn flow_on(
        &self,
        verb: Verb,
        shape: Shape,
        count: u64,
        mut timed: Option<(&Window, &mut Latencies)>,
    ) -> Result<u64, Failure> {
        let (mut at, mut begun, mut ended) = (0, 0, 0);
        let mut under_way: VecDeque<(Moving, springtide_core::time::Instant)> = VecDeque::new();
        let mut batch: Vec<Transfer> = Vec::with_capacity(shape.batch);
        loop {
            let now = clock::now();
            let open = timed.as_ref().is_none_or(|(window, _)| window.is_open(now));
            while open && begun < count && under_way.len() < shape.depth {
                batch.clear();
                while batch.len() < shape.batch && begun < count {
                    batch.push(self.peer.transfer(verb, at, shape.size));
                    at = plain::next(at, shape.size, self.set);
                    begun += 1;
                }
                under_way.push_back((self.peer.seat().transfer(&batch, peer::deadline()), now));
            }
            let Some((moving, since)) = under_way.pop_front() else { return Ok(ended) };
            let end = moving.await.map_err(Failure::new)?;
            if end.outcome != Outcome::Done {
                return Err(Failure::new(format_args!("a {} failed: {:?}", name(verb), end.outcome)));
            }
            ended += shape.batch as u64;
            if let Some((_, latencies)) = &mut timed {
                latencies.record(clock::now().since(since));
            }
        }
    }
}

const fn name(verb: Verb) -> &'static str {
    match verb {
        Verb::Read => "read",
        Verb::Write => "write",
    }
}

impl Shape {
    fn name(self, verb: Verb) -> String {
        let (verb, Self { batch, depth, .. }) = (name(verb), self);
        if batch == 1 {
            format!("{verb}, {depth} under way")
        } else {
            format!("{verb}, {depth} batches of {batch}")
        }
    }
}
