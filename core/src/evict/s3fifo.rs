//! S3-FIFO: three queues (Yang and others, "FIFO queues are all you need for cache eviction", SOSP 2023).

use super::chunks::Chunks;
use super::ghost::{Ghosts, tag};
use super::list::{self, Link, Linked, List};
use super::{Keep, Policy, Removed};

/// New entries go through a small queue; those read there, and those known as ghosts, get to the main queue,
/// where each read gives another round, up to three. At most 32 bytes an entry.
///
/// The small queue has a tenth of the entries; there are as many ghosts as entries.
#[derive(Clone, Debug, Default)]
pub struct S3Fifo {
    nodes: Chunks<Node>,
    small: List,
    main: List,
    ghosts: Ghosts,
    /// The entry looked at last was spared: look into the other queue, lest one full of pins hides the other.
    other: bool,
}

#[derive(Clone, Copy, Debug, Default)]
struct Node {
    link: Link,
    tag: u32,
    queue: Queue,
    reads: u8,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
enum Queue {
    #[default]
    None,
    Small,
    Main,
}

impl Linked for Node {
    fn link(&self) -> Link {
        self.link
    }

    fn link_mut(&mut self) -> &mut Link {
        &mut self.link
    }
}

const MOST_READS: u8 = 3;

impl S3Fifo {
    /// What is kept for each slot, ghosts included.
    pub const BYTES_PER_ENTRY: usize = size_of::<Node>() + Ghosts::BYTES_PER_GHOST.div_ceil(4) * 5;

    fn queue(&self, slot: u32) -> Queue {
        self.nodes.get(slot).map_or(Queue::None, |node| node.queue)
    }

    fn push(&mut self, slot: u32, queue: Queue) {
        self.nodes[slot].queue = queue;
        match queue {
            Queue::None => {}
            Queue::Small => self.small.push(&mut self.nodes, slot),
            Queue::Main => self.main.push(&mut self.nodes, slot),
        }
    }

    fn unlink(&mut self, slot: u32) {
        match self.nodes[slot].queue {
            Queue::None => {}
            Queue::Small => self.small.unlink(&mut self.nodes, slot),
            Queue::Main => self.main.unlink(&mut self.nodes, slot),
        }
        self.nodes[slot].queue = Queue::None;
    }

    /// Looks at the entry that is next; names it if it is to go.
    fn step(&mut self, keep: &mut dyn FnMut(u32) -> Keep) -> Option<u32> {
        let small_is_full = self.small.len() * 10 >= self.small.len() + self.main.len();
        let (slot, queue) = match (self.small.oldest(), self.main.oldest()) {
            (Some(slot), None) => (slot, Queue::Small),
            (Some(slot), Some(_)) if small_is_full != self.other => (slot, Queue::Small),
            (_, slot) => (slot?, Queue::Main),
        };
        let reads = &mut self.nodes[slot].reads;
        if *reads > 0 {
            *reads = if queue == Queue::Small { 0 } else { *reads - 1 };
            self.unlink(slot);
            self.push(slot, Queue::Main);
        } else if keep(slot) == Keep::Take {
            return Some(slot);
        } else {
            self.other = !self.other;
            self.unlink(slot);
            self.push(slot, queue);
        }
        None
    }
}

impl Policy for S3Fifo {
    fn insert(&mut self, slot: u32, fingerprint: u64) {
        self.nodes.reach(slot);
        if self.nodes[slot].queue != Queue::None {
            return self.touch(slot);
        }
        let tag = tag(fingerprint);
        let known = self.ghosts.take(tag);
        self.nodes[slot] = Node { tag, ..Node::default() };
        self.push(slot, if known { Queue::Main } else { Queue::Small });
    }

    fn touch(&mut self, slot: u32) {
        if self.queue(slot) != Queue::None {
            let reads = &mut self.nodes[slot].reads;
            *reads = MOST_READS.min(*reads + 1);
        }
    }

    fn remove(&mut self, slot: u32, why: Removed) {
        let queue = self.queue(slot);
        if queue == Queue::None {
            return;
        }
        if why == Removed::Evicted && queue == Queue::Small {
            let limit = self.small.len() + self.main.len();
            self.ghosts.add(self.nodes[slot].tag, limit);
        }
        self.unlink(slot);
        self.other = false;
    }

    fn victim(&mut self, effort: u32, keep: &mut dyn FnMut(u32) -> Keep) -> Option<u32> {
        (0..effort).find_map(|_| self.step(keep))
    }

    fn warm(&self, slot: u32) -> u64 {
        list::warm(&self.nodes, slot)
    }

    fn len(&self) -> usize {
        (self.small.len() + self.main.len()) as usize
    }
}
