//! The default policy on mixes that are hard for one policy or the other, and on workloads of prefixes as a cache of an
//! inference engine sees them: never more than 0.01 below the better of the two, with several seeds and pool sizes.

use std::collections::HashMap;

use springtide_core::evict::{Evictor, Keep, Kind, Policy, Removed};
use springtide_core::rng::{Rng, mix};

/// A pool of a number of keys.
struct Pool {
    policy: Evictor,
    capacity: usize,
    slots: HashMap<u64, u32>,
    keys: Vec<u64>,
}

impl Pool {
    fn new(kind: Kind, capacity: usize) -> Self {
        Self { policy: Evictor::new(kind), capacity, slots: HashMap::new(), keys: Vec::new() }
    }

    fn read(&mut self, key: u64) -> bool {
        let slot = self.slots.get(&key);
        slot.inspect(|slot| self.policy.touch(**slot)).is_some()
    }

    fn store(&mut self, key: u64) {
        if self.read(key) {
            return;
        }
        let slot = if self.slots.len() == self.capacity {
            let victim = || self.policy.victim(64, &mut |_| Keep::Take);
            let slot = core::iter::repeat_with(victim).flatten().next().expect("there is no end");
            self.policy.remove(slot, Removed::Evicted);
            self.slots.remove(&self.keys[slot as usize]);
            slot
        } else {
            self.keys.push(key);
            self.keys.len() as u32 - 1
        };
        self.keys[slot as usize] = key;
        self.slots.insert(key, slot);
        self.policy.insert(slot, mix(key + 1));
    }
}

/// Hits in ten thousand: each request reads its longest prefix of resident keys, and stores the rest.
fn hits(kind: Kind, capacity: usize, requests: &[Vec<u64>]) -> u64 {
    let (mut pool, mut hits, mut all) = (Pool::new(kind, capacity), 0, 0);
    for keys in requests {
        let prefix = keys.iter().take_while(|&&key| pool.read(key)).count();
        keys[prefix..].iter().for_each(|&key| pool.store(key));
        (hits, all) = (hits + prefix, all + keys.len());
    }
    (hits * 10_000 / all) as u64
}

/// The same for requests of one key each.
fn compare(name: &str, capacities: &[usize], keys: impl IntoIterator<Item = u64>) {
    compare_prefixes(name, capacities, &keys.into_iter().map(|key| vec![key]).collect::<Vec<_>>());
}

fn compare_prefixes(name: &str, capacities: &[usize], requests: &[Vec<u64>]) {
    for &capacity in capacities {
        let [lru, s3fifo, density] =
            [Kind::Lru, Kind::S3Fifo, Kind::Density].map(|kind| hits(kind, capacity, requests));
        let found = format!("{name} in {capacity}: lru {lru} s3fifo {s3fifo} density {density}");
        println!("{found}");
        assert!(density + 100 >= lru.max(s3fifo), "{found}");
    }
}

/// Ranks from zero, the n-th in proportion to 1/(n + 1).
struct Zipf {
    rng: Rng,
    sums: Vec<u64>,
}

impl Zipf {
    fn new(seed: u64, ranks: u64) -> Self {
        let mut sum = 0;
        let sums = (1..=ranks).map(|n| {
            sum += (1 << 40) / n;
            sum
        });
        Self { rng: Rng::new(seed), sums: sums.collect() }
    }

    fn rank(&mut self) -> u64 {
        let at = self.rng.below(self.sums[self.sums.len() - 1]);
        self.sums.partition_point(|&sum| sum <= at) as u64
    }
}

/// Keys of a scan: none comes twice.
const SCANNED: u64 = 1 << 32;

#[test]
fn scans_that_interrupt_what_is_popular() {
    for seed in 1..=3 {
        let mut zipf = Zipf::new(seed, 2_000);
        let key = |step| if step % 5_000 >= 4_000 { SCANNED + step } else { zipf.rank() };
        compare(&format!("scan {seed}"), &[100, 200, 500, 1_000, 1_500], (0..60_000).map(key));
    }
}

#[test]
fn short_scans() {
    for seed in 4..=5 {
        let mut zipf = Zipf::new(seed, 5_000);
        let key = |step| if step % 1_000 >= 800 { SCANNED + step } else { zipf.rank() };
        compare(&format!("short scan {seed}"), &[100, 500, 2_000], (0..60_000).map(key));
    }
}

#[test]
fn scans_in_between_what_is_popular() {
    let mut zipf = Zipf::new(6, 4_000);
    let key = |step: u64| {
        if step % 5_000 < 2_500 && step.is_multiple_of(2) { SCANNED + step } else { zipf.rank() }
    };
    compare("scan in between", &[200, 1_000], (0..100_000).map(key));
}

#[test]
fn loops() {
    for length in [180, 220, 400, 900, 1_100, 2_000, 5_000] {
        compare(&format!("loop of {length}"), &[200, 1_000], (0..60_000).map(|step| step % length));
    }
}

#[test]
fn loops_beside_what_is_popular() {
    for (seed, length) in [(1, 900), (2, 1_500), (3, 5_000)] {
        let mut zipf = Zipf::new(seed, 4_000);
        let key = |step: u64| if step.is_multiple_of(3) { SCANNED + step / 3 % length } else { zipf.rank() };
        compare(&format!("loop of {length} beside zipf"), &[300, 1_000], (0..100_000).map(key));
    }
}

#[test]
fn what_is_popular_shifts() {
    for (seed, steps) in [(1, 500), (2, 2_000), (3, 2_000), (4, 10_000)] {
        let mut zipf = Zipf::new(seed, 2_000);
        // Every so many reads, a twentieth of the order of popularity moves on.
        let key = |step: u64| step / steps * 100 + zipf.rank();
        compare(&format!("shift in {steps}"), &[200, 500, 1_000], (0..60_000).map(key));
    }
}

#[test]
fn what_is_popular_changes_at_once() {
    for seed in 1..=2 {
        let mut zipf = Zipf::new(seed, 5_000);
        let key = |step: u64| step / 25_000 * 100_000 + zipf.rank();
        compare(&format!("change {seed}"), &[200, 1_000], (0..100_000).map(key));
    }
}

/// Requests of sessions that go on: each sends what was said so far, and some more.
struct Sessions {
    rng: Rng,
    /// How many are under way.
    live: usize,
    pace: Pace,
    /// Blocks that a request adds, at most.
    adds: u64,
    /// Requests of a session, on average.
    requests: u64,
    /// Blocks so far.
    used: u64,
}

/// Who goes on next.
#[derive(Clone, Copy)]
enum Pace {
    /// Each in turn, as agents whose tools take equally long.
    InTurn,
    /// Anyone.
    Random,
    /// The latest of four at random.
    Recent,
}

impl Sessions {
    fn some(&mut self, blocks: u64) -> Vec<u64> {
        self.used += blocks;
        (self.used - blocks..self.used).map(|n| SCANNED + n).collect()
    }

    /// A prompt of a few kinds, and the first words.
    fn begin(&mut self, prompts: &mut Zipf) -> Vec<u64> {
        let kind = prompts.rank();
        let mut blocks: Vec<_> = (0..2 + kind % 7).map(|n| kind * 10 + n).collect();
        let words = 1 + self.rng.below(self.adds);
        blocks.extend(self.some(words));
        blocks
    }

    fn next(&mut self, order: &mut Vec<usize>) -> usize {
        let len = order.len();
        let mut draw = || self.rng.below(len as u64) as usize;
        let at = match self.pace {
            Pace::InTurn => 0,
            Pace::Random => draw(),
            Pace::Recent => (0..4).map(|_| draw()).max().unwrap_or(0),
        };
        let session = order.remove(at);
        order.push(session);
        session
    }

    fn generate(mut self, prompts: u64, references: usize) -> Vec<Vec<u64>> {
        let mut prompts = Zipf::new(self.rng.next_u64(), prompts);
        let mut histories: Vec<_> = (0..self.live).map(|_| self.begin(&mut prompts)).collect();
        let (mut order, mut out, mut count): (Vec<_>, _, _) = ((0..self.live).collect(), Vec::new(), 0);
        while count < references {
            let session = self.next(&mut order);
            count += histories[session].len();
            out.push(histories[session].clone());
            if self.rng.below(self.requests) == 0 {
                histories[session] = self.begin(&mut prompts);
            } else {
                let words = 1 + self.rng.below(self.adds);
                let more = self.some(words);
                histories[session].extend(more);
            }
        }
        out
    }
}

fn sessions(seed: u64, live: usize, pace: Pace, adds: u64, requests: u64) -> Sessions {
    Sessions { rng: Rng::new(seed), live, pace, adds, requests, used: 0 }
}

#[test]
fn agents_that_go_on_in_turn() {
    let requests = sessions(1, 60, Pace::InTurn, 3, 15).generate(5, 100_000);
    compare_prefixes("agents in turn", &[300, 1_000, 2_000], &requests);
}

#[test]
fn sessions_that_go_on_at_any_time() {
    for (seed, live, requests) in [(2, 30, 40), (3, 200, 40), (4, 200, 8)] {
        let requests = sessions(seed, live, Pace::Random, 6, requests).generate(20, 150_000);
        compare_prefixes(&format!("{live} sessions"), &[800, 3_000, 8_000], &requests);
    }
}

#[test]
fn conversations_that_go_on_soon_or_never() {
    for (seed, live, requests) in [(5, 100, 4), (6, 300, 10)] {
        let requests = sessions(seed, live, Pace::Recent, 5, requests).generate(100, 150_000);
        compare_prefixes(&format!("{live} conversations"), &[500, 2_000, 8_000], &requests);
    }
}

#[test]
fn questions_about_documents_in_passes() {
    let (mut rng, mut used) = (Rng::new(7), 0);
    let mut fresh = |blocks: u64| {
        used += blocks;
        (used - blocks..used).collect::<Vec<u64>>()
    };
    let documents: Vec<_> = (0..100).map(|_| fresh(2 + rng.below(40))).collect();
    let request = |n: usize| [documents[n / 3 % 100].clone(), fresh(1)].concat();
    compare_prefixes("documents", &[500, 1_500, 3_000], &(0..5_000).map(request).collect::<Vec<_>>());
}

#[test]
fn prompts_that_many_share_and_questions_nobody_asks_again() {
    for (seed, prompts, blocks) in [(8, 60, 15), (9, 400, 6)] {
        let (mut zipf, mut rng) = (Zipf::new(seed, prompts), Rng::new(seed));
        let request = |n: u64| {
            let kind = zipf.rank();
            let prompt = (0..1 + mix(kind) % blocks).map(|b| kind * 100 + b);
            prompt.chain((0..1 + rng.below(4)).map(|b| SCANNED + n * 10 + b)).collect()
        };
        let requests: Vec<Vec<u64>> = (0..12_000).map(request).collect();
        compare_prefixes(&format!("{prompts} prompts"), &[150, 400, 1_000], &requests);
    }
}
