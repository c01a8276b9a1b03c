//! What a command to the master costs: `cargo bench -p springtide-benches --bench master [-- OBJECTS…]`.
//!
//! For each number of objects (10 000 and 1 000 000 unless told otherwise) a pool of four segments is filled with
//! values of 4 KiB under keys of 40 bytes, then commands on random keys are timed in batches of 1 024; the table shows
//! the median batch; `get in batches` announces 64 keys at a time ([`Master::warm`]). A put is two commands, start and end; `put when full` is a put that has to evict. Memory is what
//! the process grew by while it was filled, less the keys' own bytes. `longest` is the longest single command while
//! the pool was filled: it is filled twice in the same way, and of each command the shorter time counts, so that what
//! the machine did meanwhile is mostly left out. `random read` is what one dependent read costs in a table of 200 bytes
//! an object: a command on a large pool costs a few of those, and hardly anything else.
#![allow(clippy::disallowed_methods, reason = "a benchmark reads the clock")]

use core::hint::black_box;
use core::time::Duration;
use std::time::Instant as Clock;

use springtide_core::checksum::Checksum;
use springtide_core::id::{Caller, Incarnation, ObjectId, TenantId, Term};
use springtide_core::key::Key;
use springtide_core::master::{
    Config, Force, MILLION, Master, Member, Probe, PutOptions, SegmentSpec, Written,
};
use springtide_core::members::{Fences, Mode};
use springtide_core::rng::{Rng, mix};
use springtide_core::ticket::TicketKey;
use springtide_core::time::Instant;

const LEN: u64 = 4_096;
const BATCH: usize = 1_024;
const BATCHES: usize = 101;
const NOW: Instant = Instant::from_nanos(1_000_000_000);
const CALLER: Caller = Caller { incarnation: Incarnation(1), tenant: TenantId(0), request: 7 };

type Name = [u8; 40];

fn main() {
    // cargo passes `--bench` along.
    let counts: Vec<u64> = std::env::args().skip(1).filter_map(|arg| arg.parse().ok()).collect();
    let counts = if counts.is_empty() { vec![10_000, 1_000_000] } else { counts };
    for count in counts {
        let mut times = vec![[u32::MAX; 2]; count as usize];
        let (first, bytes) = Bench::fill(count, &mut times);
        drop(first);
        let (mut bench, _) = Bench::fill(count, &mut times);
        (0..count).for_each(|n| bench.look(&name(n)));
        let longest = times.iter().flatten().max().copied().unwrap_or(0);
        println!(
            "{count} objects: {bytes:.0} bytes an object beyond its key, longest {} µs",
            longest / 1_000
        );
        println!("  {:<16} {:>6.0} ns", "random read", random_read(count as usize));
        bench.report();
    }
}

/// Like the keys of block caches: a name and a hash.
fn name(n: u64) -> Name {
    let mut name = *b"model-a/00000000000000000000000000000000";
    for (word, half) in [mix(n), mix(!n)].into_iter().zip(name[8..].chunks_exact_mut(16)) {
        for (at, digit) in half.iter_mut().enumerate() {
            *digit = b"0123456789abcdef"[(word >> (60 - 4 * at)) as usize & 15];
        }
    }
    name
}

fn key(name: &Name) -> Key<'_> {
    Key::new(name).expect("a key of 40 bytes")
}

/// Resident bytes of this process.
fn resident() -> u64 {
    let statm = std::fs::read_to_string("/proc/self/statm").unwrap_or_default();
    statm.split(' ').nth(1).and_then(|pages| pages.parse::<u64>().ok()).unwrap_or(0) * 4_096
}

struct Bench {
    master: Master,
    rng: Rng,
    count: u64,
}

impl Bench {
    /// A full pool, and what it takes for each object.
    fn fill(count: u64, times: &mut [[u32; 2]]) -> (Self, f64) {
        let before = resident();
        // Nothing is evicted before the pool is really full, and nothing that was read is kept.
        let config = Config { high_watermark: MILLION, lease: Duration::ZERO, ..Config::default() };
        let mut master = Master::new(config, 1, Term(1), NOW);
        let (mode, fences) = (Mode::Pool, Fences::Answers);
        let member = Member { name: "bench", address: "", mode, key: TicketKey([1; 16]), fences };
        master.register(NOW, Incarnation(1), &member).expect("the first member");
        for segment in ["a", "b", "c", "d"] {
            let len = (count + 4 * BATCH as u64) * LEN / 4;
            let spec = SegmentSpec { name: segment, len, ..SegmentSpec::default() };
            master.mount(NOW, Incarnation(1), &spec).expect("a new segment");
        }
        let mut bench = Self { master, rng: Rng::new(2), count };
        for (n, times) in (0..count).zip(times) {
            let name = name(n);
            let start = Clock::now();
            let object = bench.start(&name);
            let between = Clock::now();
            bench.end(object);
            let spent = [between - start, between.elapsed()];
            *times = core::array::from_fn(|at| times[at].min(spent[at].as_nanos() as u32));
        }
        let bytes = (resident() - before) as f64 / count as f64 - size_of::<Name>() as f64;
        (bench, bytes)
    }

    fn look(&mut self, name: &Name) {
        black_box(self.master.exists(NOW, CALLER, key(name), Probe::Plain));
    }

    fn start(&mut self, name: &Name) -> ObjectId {
        let started = self.master.put_start(NOW, CALLER, key(name), LEN, &PutOptions::default());
        started.expect("there is room").object
    }

    fn end(&mut self, object: ObjectId) {
        self.master
            .put_end(NOW, CALLER, object, Written::all(Checksum::Crc32c(1)))
            .expect("the put has begun");
    }

    /// Distinct random keys, that are there.
    fn names(&mut self) -> Vec<Name> {
        let start = self.rng.below(self.count);
        let stride = self.count / BATCH as u64;
        (0..BATCH as u64).map(|n| name((start + n * stride.max(1)) % self.count)).collect()
    }

    fn report(mut self) {
        let mut rows = [(); 6].map(|()| Vec::new());
        for _ in 0..BATCHES {
            let names = self.names();
            rows[0].push(timed(&names, |name| self.look(name)));
            let names = self.names();
            rows[1].push(timed(&names, |name| {
                black_box(self.master.get(NOW, CALLER, key(name)).is_ok());
            }));
            let absent: Vec<Name> = (0..BATCH as u64).map(|n| name(n + u64::MAX / 2)).collect();
            rows[2].push(timed(&absent, |name| {
                black_box(self.master.get(NOW, CALLER, key(name)).is_ok());
            }));
            let names = self.names();
            rows[3].push(timed(&names, |name| {
                black_box(self.master.remove(NOW, CALLER, key(name), Force::No).is_ok());
            }));
            let mut objects = Vec::with_capacity(BATCH);
            rows[4].push(timed(&names, |name| objects.push(self.start(name))));
            rows[5].push(timed(&objects, |&object| self.end(object)));
        }
        let batch = self.batches();
        let labels = ["exists", "get", "get of nothing", "remove", "put start", "put end"];
        let mut sum = 0.0;
        for (label, row) in labels.into_iter().zip(rows) {
            let median = median(row);
            println!("  {label:<16} {median:>6.0} ns");
            sum += median;
        }
        println!("  {:<16} {:>6.0} ns", "mean", sum / labels.len() as f64);
        println!("  {:<16} {:>6.0} ns", "get in batches", batch);
        println!("  {:<16} {:>6.0} ns", "put when full", self.put_when_full());
    }

    /// Nanoseconds of a get in batches of 64 that are announced.
    fn batches(&mut self) -> f64 {
        let mut row = Vec::new();
        for _ in 0..BATCHES {
            let names = self.names();
            let keys: Vec<Key<'_>> = names.iter().map(key).collect();
            let batches: Vec<&[Key<'_>]> = keys.chunks(64).collect();
            let a_batch = timed(&batches, |keys| {
                self.master.warm(CALLER, keys);
                for &key in *keys {
                    black_box(self.master.get(NOW, CALLER, key).is_ok());
                }
            });
            row.push(a_batch / 64.0);
        }
        median(row)
    }

    /// Nanoseconds of a start and an end, when each start evicts.
    fn put_when_full(&mut self) -> f64 {
        let fresh = self.count..;
        let mut fresh = fresh.map(name);
        // First fill what is left.
        let later = NOW + Duration::from_secs(8);
        let mut put = |name: &Name| {
            let started = self.master.put_start(later, CALLER, key(name), LEN, &PutOptions::default());
            let object = started.expect("something can go").object;
            self.master
                .put_end(later, CALLER, object, Written::all(Checksum::Crc32c(1)))
                .expect("the put has begun");
        };
        fresh.by_ref().take(8 * BATCH).for_each(|name| put(&name));
        let mut row = Vec::new();
        for _ in 0..BATCHES.min(self.count as usize / BATCH + 1) {
            let names: Vec<Name> = fresh.by_ref().take(BATCH).collect();
            row.push(timed(&names, &mut put));
        }
        median(row)
    }
}

/// Nanoseconds of one read whose address the last one gave.
fn random_read(count: usize) -> f64 {
    let mut order: Vec<u32> = (0..count as u32).collect();
    let mut rng = Rng::new(3);
    // One cycle through all (Sattolo's shuffle).
    (1..count).rev().for_each(|n| order.swap(n, rng.below(n as u64) as usize));
    let mut table = vec![[0_u32; 50]; count];
    for (entry, next) in table.iter_mut().zip(order) {
        entry[0] = next;
    }
    let mut at = 0;
    let mut row = Vec::new();
    for _ in 0..BATCHES {
        row.push(timed(&[(); BATCH], |()| at = table[at as usize][0]));
    }
    black_box(at);
    median(row)
}

/// Nanoseconds an item.
fn timed<T>(items: &[T], mut each: impl FnMut(&T)) -> f64 {
    let start = Clock::now();
    items.iter().for_each(&mut each);
    start.elapsed().as_nanos() as f64 / items.len() as f64
}

fn median(mut row: Vec<f64>) -> f64 {
    row.sort_by(f64::total_cmp);
    row[row.len() / 2]
}
