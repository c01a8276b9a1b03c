//! What a command to the master costs: `cargo bench -p springtide-benches --bench master [-- OBJECTS…]`.
//!
//! For each number of objects (10 000 and 1 000 000 unless told otherwise) a pool of four segments is filled with
//! values of 4 KiB under keys of 40 bytes, then commands on random keys are timed in batches of 1 024; the table shows
//! the median batch. `get in batches` announces 64 keys at a time ([`Master::warm`]). A put is two commands, start and
//! end; `put when full` is a put that has to evict. Memory is what the process grew by while it was filled, less the
//! keys' own bytes. `random read` is what one dependent read costs in a table of 200 bytes an object: a command on a
//! large pool costs a few of those, and hardly anything else.
//!
//! `longest` is the longest single command of each kind in processor time of the thread: of a million rounds of all
//! commands on random keys, and of the puts that filled the pool. Both are done twice in the same way, and of each
//! command the shorter time counts, as a hypervisor's pauses are taken for time of the thread.
//!
//! The tables lie in huge pages that a second thread makes present, as in the `springtide` command; `SMALL_PAGES=1` does
//! without. Each number of objects has a process of its own, so that none finds memory that another left.
#![allow(clippy::disallowed_methods, reason = "a benchmark reads the clock")]

use core::hint::black_box;
use core::time::Duration;

use springtide_benches::{median, random_read, thread_time};
use springtide_core::checksum::Checksum;
use springtide_core::id::{Caller, Incarnation, ObjectId, TenantId, Term};
use springtide_core::key::Key;
use springtide_core::master::{
    Ahead, Config, Force, MILLION, Master, Member, Probe, PutOptions, SegmentSpec, Written,
};
use springtide_core::members::{Fences, Mode};
use springtide_core::rng::{Rng, mix};
use springtide_core::ticket::TicketKey;
use springtide_core::time::Instant;
use springtide_hal_host::huge::HugePages;

const LEN: u64 = 4_096;
const BATCH: usize = 1_024;
const BATCHES: usize = 101;
const NOW: Instant = Instant::from_nanos(1_000_000_000);
const CALLER: Caller = Caller { incarnation: Incarnation(1), tenant: TenantId(0), request: 7 };

type Name = [u8; 40];

#[global_allocator]
static MEMORY: HugePages = HugePages::new();

fn main() {
    // cargo passes `--bench` along.
    let counts: Vec<u64> = std::env::args().skip(1).filter_map(|arg| arg.parse().ok()).collect();
    let counts = if counts.is_empty() { vec![10_000, 1_000_000] } else { counts };
    if let [count] = counts[..] {
        if std::env::var_os("SMALL_PAGES").is_none() {
            std::thread::spawn(|| MEMORY.keep_ahead());
        }
        return measure(count);
    }
    let program = std::env::current_exe().expect("a running program has a path");
    for count in counts {
        let ended = std::process::Command::new(&program).arg(count.to_string()).status();
        assert!(ended.is_ok_and(|status| status.success()), "the run with {count} objects failed");
    }
}

fn measure(count: u64) {
    let mut times = vec![[u32::MAX; 2]; count as usize];
    let (first, bytes) = Bench::fill(count, &mut times);
    drop(first);
    let (mut bench, _) = Bench::fill(count, &mut times);
    (0..count).for_each(|n| bench.look(&name(n)));
    println!("{count} objects: {bytes:.0} bytes an object beyond its key");
    println!("  {:<16} {:>6.0} ns", "random read", random_read::<50>(count as usize));
    let longest: [u32; 2] = core::array::from_fn(|at| times.iter().map(|times| times[at]).max().unwrap_or(0));
    drop(times);
    bench.report(longest);
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
            let start = thread_time();
            let object = bench.start(&name);
            let between = thread_time();
            bench.end(object);
            let spent = [between - start, thread_time() - between];
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

    fn report(mut self, longest: [u32; 2]) {
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
        self.longest(longest);
        println!("  {:<16} {:>6.0} ns", "put when full", self.put_when_full());
    }

    /// Prints the longest single command of each kind; those of the puts that filled the pool are known.
    fn longest(&mut self, [start, end]: [u32; 2]) {
        let mut times = vec![[u32::MAX; 5]; self.count.min(1_000_000) as usize];
        for _ in 0..2 {
            let mut rng = Rng::new(5);
            for least in &mut times {
                let spent = self.round(&name(rng.below(self.count)));
                *least = core::array::from_fn(|at| least[at].min(spent[at]));
            }
        }
        let most = |at: usize| times.iter().map(|times| times[at]).max().unwrap_or(0);
        let longest = [most(0), most(1), most(2), most(3).max(start), most(4).max(end)];
        let micros = longest.map(|nanos| nanos / 1_000);
        println!("  longest: exists, get, remove, put start, put end: {micros:?} µs");
    }

    /// Nanoseconds of one command of each kind on `name`, which is there, and is there in the end.
    fn round(&mut self, name: &Name) -> [u32; 5] {
        let mut times = [thread_time(); 6];
        self.look(name);
        times[1] = thread_time();
        black_box(self.master.get(NOW, CALLER, key(name)).is_ok());
        times[2] = thread_time();
        black_box(self.master.remove(NOW, CALLER, key(name), Force::No).is_ok());
        times[3] = thread_time();
        let object = self.start(name);
        times[4] = thread_time();
        self.end(object);
        times[5] = thread_time();
        core::array::from_fn(|at| (times[at + 1] - times[at]).as_nanos() as u32)
    }

    /// Nanoseconds of a get in batches of 64 that are announced.
    fn batches(&mut self) -> f64 {
        let mut row = Vec::new();
        for _ in 0..BATCHES {
            let names = self.names();
            let keys: Vec<Key<'_>> = names.iter().map(key).collect();
            let batches: Vec<&[Key<'_>]> = keys.chunks(64).collect();
            let a_batch = timed(&batches, |keys| {
                self.master.warm(CALLER, keys, Ahead::Read);
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

/// Nanoseconds of processor time an item.
fn timed<T>(items: &[T], mut each: impl FnMut(&T)) -> f64 {
    let start = thread_time();
    items.iter().for_each(&mut each);
    (thread_time() - start).as_nanos() as f64 / items.len() as f64
}
