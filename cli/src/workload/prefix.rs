//! A prefix cache without bytes: what a policy gets out of a number of blocks.

use std::collections::HashMap;

use springtide_core::evict::{Evictor, Keep, Kind, Policy, Removed};
use springtide_core::rng::mix;

use super::Record;

/// How many entries a policy looks at in one call. It is called again until it names one.
const EFFORT: u32 = 64;

/// What a run counted.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Hits {
    /// Blocks that were read: the longest resident prefix of each request.
    pub hits: u64,
    /// Blocks that the requests asked for.
    pub references: u64,
    /// Blocks that were given up for others.
    pub evicted: u64,
}

/// Serves `requests` one after another from a cache of `blocks` blocks that evicts by `kind`.
///
/// A request reads its longest prefix of resident blocks: these are the hits, and each is touched, the first one first.
/// The rest it stores in order, whereby a block that is resident already, behind the first one that is not, counts as
/// touched but not as a hit. A full cache gives up one block before each that it stores; nothing is spared, the blocks
/// of the running request neither. O(1) for each block.
pub fn prefix_hits(kind: Kind, blocks: usize, requests: &[Record]) -> Hits {
    let mut cache = PrefixCache::new(kind, blocks);
    for Record { hash_ids, .. } in requests {
        let prefix = cache.read(hash_ids);
        cache.store(&hash_ids[prefix..]);
    }
    cache.hits()
}

/// A cache that requests read from and store into, perhaps several at a time.
pub struct PrefixCache {
    policy: Evictor,
    room: usize,
    /// Blocks by id, in dense slots.
    slots: HashMap<u64, u32>,
    /// The block in each slot; the slots behind were never used.
    ids: Vec<u64>,
    hits: Hits,
}

impl PrefixCache {
    /// An empty one with room for so many blocks, that evicts by `kind`.
    pub fn new(kind: Kind, room: usize) -> Self {
        // The highest number is no slot.
        let room = room.min(u32::MAX as usize);
        let (slots, ids) = (HashMap::new(), Vec::new());
        Self { policy: Evictor::new(kind), room, slots, ids, hits: Hits::default() }
    }

    /// What was counted so far.
    pub fn hits(&self) -> Hits {
        self.hits
    }

    /// A request begins: reads the longest prefix of `ids` that is resident; says how long that is. O(1) for each block.
    pub fn read(&mut self, ids: &[u64]) -> usize {
        let prefix = ids.iter().take_while(|&&id| self.touch(id)).count();
        self.hits.hits += prefix as u64;
        self.hits.references += ids.len() as u64;
        prefix
    }

    /// A request ends: stores `ids`, those behind the prefix that it read. O(1) for each block.
    pub fn store(&mut self, ids: &[u64]) {
        ids.iter().for_each(|&id| self.store_one(id));
    }

    /// Touches block `id`, if it is resident.
    fn touch(&mut self, id: u64) -> bool {
        let slot = self.slots.get(&id);
        slot.inspect(|slot| self.policy.touch(**slot)).is_some()
    }

    /// Makes block `id` resident.
    fn store_one(&mut self, id: u64) {
        if self.room == 0 || self.touch(id) {
            return;
        }
        let slot = if self.ids.len() < self.room {
            self.ids.push(id);
            self.ids.len() as u32 - 1
        } else {
            self.evict()
        };
        self.ids[slot as usize] = id;
        self.slots.insert(id, slot);
        self.policy.insert(slot, mix(id));
    }

    /// Gives up a block, and with it the slot.
    fn evict(&mut self) -> u32 {
        let slot = loop {
            if let Some(slot) = self.policy.victim(EFFORT, &mut |_| Keep::Take) {
                break slot;
            }
        };
        self.policy.remove(slot, Removed::Evicted);
        self.slots.remove(&self.ids[slot as usize]);
        self.hits.evicted += 1;
        slot
    }
}

#[cfg(test)]
mod tests {
    use springtide_core::rng::Rng;

    use super::super::mixes;
    use super::*;

    fn requests(lists: &[&[u64]]) -> Vec<Record> {
        lists.iter().map(|ids| Record { hash_ids: ids.to_vec(), ..Record::default() }).collect()
    }

    #[test]
    fn only_the_prefix_counts() {
        let requests = requests(&[&[1, 2, 3], &[1, 2, 4], &[9, 2, 3], &[1, 2, 3, 4, 5]]);
        for kind in Kind::ALL {
            let hits = prefix_hits(kind, 100, &requests);
            assert_eq!(hits, Hits { hits: 2 + 4, references: 14, evicted: 0 }, "{kind}");
        }
    }

    #[test]
    fn what_another_request_is_still_storing_is_no_hit() {
        let mut cache = PrefixCache::new(Kind::Lru, 10);
        assert_eq!((cache.read(&[1, 2]), cache.read(&[1, 2, 3])), (0, 0));
        cache.store(&[1, 2]);
        assert_eq!(cache.read(&[1, 2, 3]), 2);
        cache.store(&[1, 2, 3]);
        assert_eq!(cache.hits(), Hits { hits: 2, references: 8, evicted: 0 });
    }

    #[test]
    fn a_request_that_is_larger_than_the_cache_drives_itself_out() {
        let hits = prefix_hits(Kind::Lru, 2, &requests(&[&[1, 2, 3], &[1, 2, 3], &[]]));
        assert_eq!(hits, Hits { hits: 0, references: 6, evicted: 4 });
    }

    #[test]
    fn a_cache_without_room_stores_nothing() {
        for kind in Kind::ALL {
            let hits = prefix_hits(kind, 0, &requests(&[&[1], &[1]]));
            assert_eq!(hits, Hits { hits: 0, references: 2, evicted: 0 });
        }
    }

    #[test]
    fn on_scans_loops_and_shifts_the_default_keeps_up_with_the_better_of_the_two() {
        for (seed, blocks) in [(1, 200), (2, 500), (3, 1_000)] {
            let loops = mixes::cycle(seed, 2 * blocks, 60_000);
            for requests in [mixes::scan(seed, 60_000), loops, mixes::shifting(seed, 60_000)] {
                let ratio = |kind| prefix_hits(kind, blocks, &requests).hits as f64 / requests.len() as f64;
                let (found, better) = (ratio(Kind::default()), ratio(Kind::Lru).max(ratio(Kind::S3Fifo)));
                assert!(found >= better - 0.01, "{blocks} blocks: {found}, not {better}");
            }
        }
    }

    #[test]
    fn the_published_conversation_trace_gives_the_known_ratios() {
        let Some(file) = std::env::var_os("SPRINGTIDE_TRACE") else {
            springtide_house::skip!(
                "needs SPRINGTIDE_TRACE, the path of Mooncake's conversation_trace.jsonl"
            );
        };
        let requests = super::super::read(file.as_ref(), None).unwrap();
        let known = [
            (Kind::Lru, ["0.044", "0.110", "0.211", "0.326"]),
            (Kind::S3Fifo, ["0.056", "0.145", "0.202", "0.285"]),
        ];
        for (kind, ratios) in known {
            let found = [1_000, 5_000, 10_000, 30_000].map(|blocks| {
                let hits = prefix_hits(kind, blocks, &requests);
                format!("{:.3}", hits.hits as f64 / hits.references as f64)
            });
            assert_eq!(found, ratios, "{kind}");
        }
    }

    /// LRU by search in a list.
    fn model(blocks: usize, requests: &[Record]) -> Hits {
        let (mut list, mut hits) = (Vec::<u64>::new(), Hits::default());
        for Record { hash_ids, .. } in requests {
            let prefix = hash_ids.iter().take_while(|id| list.contains(id)).count();
            hits.hits += prefix as u64;
            hits.references += hash_ids.len() as u64;
            for id in hash_ids {
                if let Some(at) = list.iter().position(|other| other == id) {
                    list.remove(at);
                } else if list.len() == blocks {
                    list.remove(0);
                    hits.evicted += 1;
                }
                list.push(*id);
            }
        }
        hits
    }

    #[test]
    fn lru_is_what_a_list_does() {
        let mut rng = Rng::new(7);
        let requests: Vec<_> = (0..2_000)
            .map(|_| {
                let start = rng.below(60);
                Record { hash_ids: (start..=start + rng.below(8)).collect(), ..Record::default() }
            })
            .collect();
        for blocks in [1, 7, 20, 40, 100] {
            assert_eq!(prefix_hits(Kind::Lru, blocks, &requests), model(blocks, &requests), "{blocks}");
        }
    }

    #[test]
    fn scans_do_not_drive_out_what_s3fifo_keeps() {
        let requests = mixes::scan(1, 60_000);
        let ratio = |kind| prefix_hits(kind, 500, &requests).hits as f64 / requests.len() as f64;
        assert!(
            ratio(Kind::S3Fifo) > ratio(Kind::Lru) + 0.05,
            "{} {}",
            ratio(Kind::S3Fifo),
            ratio(Kind::Lru)
        );
    }
}
