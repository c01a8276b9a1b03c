//! Generated conversations: the workload of `springtide replay` when there is no trace.
//!
//! Users open sessions, at random times. A session begins with one of [`PROMPTS`] system prompts of 1 to 8 blocks,
//! popular ones far more often than others (Zipf: the n-th is chosen in proportion to 1/n). Each turn sends all that
//! was said so far and what the user says now; the answer follows, and is part of what the next turn sends. A quarter
//! of the sessions are one-shot: a long document and one question. Of the others, a turn has a next one with a chance
//! of two in three, after a time to think, or after a long break. So blocks are shared between sessions (prompts), re-read within
//! one (history), or never seen again (documents, last turns), and many sessions are under way at once.
//!
//! Integers only: a seed gives the same records on every machine.

use core::cmp::Reverse;
use std::collections::BinaryHeap;

use springtide_core::rng::{Rng, mix};

use super::Record;
use super::mixes::Zipf;

/// How many system prompts there are.
const PROMPTS: u64 = 300;
/// How many blocks a system prompt has at most.
const PROMPT_BLOCKS: u64 = 8;
/// How many tokens a block has.
const TOKENS: u64 = 512;
/// Time between the beginnings of two sessions, in milliseconds, on average.
const ARRIVAL_MS: u64 = 1_000;
/// Time to think before a next turn, in milliseconds, at least and at most.
const THINK_MS: (u64, u64) = (2_000, 60_000);
/// Of so many such times, one is a break, which is this many times as long.
const BREAK: (u64, u64) = (4, 10);
/// Of so many sessions, one is one-shot.
const ONE_SHOT: u64 = 4;
/// Blocks of a one-shot document, at least and at most.
const DOCUMENT: (u64, u64) = (8, 40);
/// Blocks of what a user says in a turn, at least and at most.
const SAID: (u64, u64) = (1, 5);
/// Blocks of an answer, at least and at most.
const ANSWER: (u64, u64) = (1, 3);
/// Of so many turns of a conversation, one is the last.
const LAST: u64 = 3;
/// A session ends when it is longer than this, as a model's context does.
const CONTEXT_BLOCKS: usize = 256;

/// The first `requests` requests of a workload of conversations, in order of time. The same for the same seed; ids of
/// different seeds are different.
pub fn generate(seed: u64, requests: usize) -> Vec<Record> {
    let mut world = World::new(seed);
    (0..requests).map(|_| world.next()).collect()
}

struct World {
    rng: Rng,
    ids: Ids,
    prompts: Prompts,
    /// When the next session begins.
    arrival: u64,
    /// Sessions that will say more: when, in which order if at the same time, and what was said so far.
    sessions: BinaryHeap<Reverse<(u64, u64, Vec<u64>)>>,
    /// How many turns there were.
    turns: u64,
}

impl World {
    fn new(seed: u64) -> Self {
        let mut rng = Rng::new(seed);
        let mut ids = Ids { base: mix(seed), used: 0 };
        let prompts = Prompts::new(&mut rng, &mut ids);
        Self { rng, ids, prompts, arrival: 0, sessions: BinaryHeap::new(), turns: 0 }
    }

    /// The request that comes next.
    fn next(&mut self) -> Record {
        self.turns += 1;
        let due = self.sessions.peek().is_some_and(|Reverse((at, ..))| *at <= self.arrival);
        match if due { self.sessions.pop() } else { None } {
            Some(Reverse((at, _, history))) => self.turn(at, history),
            None => self.begin(),
        }
    }

    /// A session's first request.
    fn begin(&mut self) -> Record {
        let at = self.arrival;
        self.arrival += self.rng.below(2 * ARRIVAL_MS);
        let prompt = self.prompts.choose(&mut self.rng);
        if self.rng.below(ONE_SHOT) > 0 {
            return self.turn(at, prompt);
        }
        let document = self.ids.some(between(&mut self.rng, DOCUMENT));
        let answer = between(&mut self.rng, ANSWER);
        record(&mut self.rng, at, [prompt, document].concat(), answer)
    }

    /// The turn at `at` of the conversation in which `history` was said. It may have another.
    fn turn(&mut self, at: u64, history: Vec<u64>) -> Record {
        let said = self.ids.some(between(&mut self.rng, SAID));
        let answer = between(&mut self.rng, ANSWER);
        let input = [history, said].concat();
        if self.rng.below(LAST) > 0 && input.len() < CONTEXT_BLOCKS {
            let next = at + think(&mut self.rng);
            let history = [input.clone(), self.ids.some(answer)].concat();
            self.sessions.push(Reverse((next, self.turns, history)));
        }
        record(&mut self.rng, at, input, answer)
    }
}

/// A request whose last blocks, of the input and of the answer, are not quite full.
fn record(rng: &mut Rng, timestamp: u64, hash_ids: Vec<u64>, answer: u64) -> Record {
    let mut tokens = |blocks: u64| (blocks * TOKENS - rng.below(TOKENS)) as u32;
    let (input_length, output_length) = (tokens(hash_ids.len() as u64), tokens(answer));
    Record { timestamp, input_length, output_length, hash_ids }
}

fn think(rng: &mut Rng) -> u64 {
    let times = if rng.below(BREAK.0) == 0 { BREAK.1 } else { 1 };
    times * between(rng, THINK_MS)
}

fn between(rng: &mut Rng, (least, most): (u64, u64)) -> u64 {
    least + rng.below(most - least + 1)
}

/// Ids that were not used before: a bijection of a counter, so that no two are equal.
struct Ids {
    base: u64,
    used: u64,
}

impl Ids {
    fn some(&mut self, blocks: u64) -> Vec<u64> {
        let first = self.base.wrapping_add(self.used);
        self.used += blocks;
        (0..blocks).map(|n| mix(first.wrapping_add(n))).collect()
    }
}

/// System prompts, the popular ones first.
struct Prompts {
    blocks: Vec<Vec<u64>>,
    popularity: Zipf,
}

impl Prompts {
    fn new(rng: &mut Rng, ids: &mut Ids) -> Self {
        let blocks = (0..PROMPTS).map(|_| ids.some(between(rng, (1, PROMPT_BLOCKS)))).collect();
        Self { blocks, popularity: Zipf::new(PROMPTS) }
    }

    fn choose(&self, rng: &mut Rng) -> Vec<u64> {
        self.blocks[self.popularity.rank(rng) as usize].clone()
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use springtide_core::evict::Kind;

    use super::super::prefix_hits;
    use super::*;

    #[test]
    fn a_seed_decides_everything() {
        assert_eq!(generate(1, 500), generate(1, 500));
        assert_eq!(generate(1, 500)[..200], generate(1, 200));
        let ids =
            |seed| -> HashSet<u64> { generate(seed, 500).into_iter().flat_map(|r| r.hash_ids).collect() };
        assert!(ids(1).is_disjoint(&ids(2)));
        assert_eq!(generate(1, 0), []);
    }

    #[test]
    fn time_does_not_go_back() {
        let times: Vec<_> = generate(3, 2_000).iter().map(|record| record.timestamp).collect();
        assert!(times.is_sorted());
        assert!(times[1_999] > 60_000);
    }

    #[test]
    fn lengths_fit_the_blocks() {
        for Record { input_length, output_length, hash_ids, .. } in generate(4, 2_000) {
            assert_eq!(u64::from(input_length).div_ceil(TOKENS), hash_ids.len() as u64);
            assert!((1..=ANSWER.1 * TOKENS).contains(&output_length.into()));
        }
    }

    /// A block follows one block only, or begins a prompt; so equal ids have equal prefixes.
    #[test]
    fn an_id_has_one_prefix() {
        let mut before = std::collections::HashMap::new();
        for Record { hash_ids, .. } in generate(5, 2_000) {
            let mut last = None;
            for id in hash_ids {
                assert_eq!(*before.entry(id).or_insert(last), last);
                last = Some(id);
            }
        }
    }

    #[test]
    fn turns_begin_with_the_turn_before_and_sessions_overlap() {
        let requests = generate(6, 2_000);
        let (mut continued, mut interleaved) = (0, 0);
        for (n, record) in requests.iter().enumerate() {
            let ids = &record.hash_ids;
            // The turn before is the one whose last block, said by the user, is in this one.
            let earlier = requests[..n].iter().rposition(|other| {
                other.hash_ids.len() < ids.len() && ids.contains(&other.hash_ids[other.hash_ids.len() - 1])
            });
            if let Some(earlier) = earlier {
                assert!(ids.starts_with(&requests[earlier].hash_ids));
                continued += 1;
                interleaved += usize::from(earlier + 1 < n);
            }
        }
        assert!(continued > 800 && interleaved > continued / 2, "{continued} {interleaved}");
    }

    #[test]
    fn the_default_workload_evicts_and_still_hits() {
        let requests = generate(1, 2_000);
        let blocks: usize = requests.iter().map(|record| record.hash_ids.len()).sum();
        assert!((20_000..40_000).contains(&blocks), "{blocks}");
        let hits = prefix_hits(Kind::Lru, 10_000, &requests);
        let ratio = hits.hits as f64 / hits.references as f64;
        assert!((0.4..0.7).contains(&ratio) && hits.evicted > 1_000, "{ratio} {hits:?}");
    }
}
