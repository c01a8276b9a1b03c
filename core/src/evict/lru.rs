//! Least recently used first.

use super::chunks::Chunks;
use super::list::{self, Link, Linked, List};
use super::{Keep, Policy, Removed};

/// Gives up the entry that was not used for the longest time. 12 bytes an entry.
///
/// An entry that is spared counts as used: whoever holds it is using it.
#[derive(Clone, Debug, Default)]
pub struct Lru {
    nodes: Chunks<Node>,
    list: List,
}

#[derive(Clone, Copy, Debug, Default)]
struct Node {
    link: Link,
    resident: bool,
}

impl Linked for Node {
    fn link(&self) -> Link {
        self.link
    }

    fn link_mut(&mut self) -> &mut Link {
        &mut self.link
    }
}

impl Lru {
    /// What is kept for each slot.
    pub const BYTES_PER_ENTRY: usize = size_of::<Node>();

    fn is_resident(&self, slot: u32) -> bool {
        self.nodes.get(slot).is_some_and(|node| node.resident)
    }
}

impl Policy for Lru {
    fn insert(&mut self, slot: u32, _fingerprint: u64) {
        self.nodes.reach(slot);
        if self.nodes[slot].resident {
            return self.touch(slot);
        }
        self.nodes[slot].resident = true;
        self.list.push(&mut self.nodes, slot);
    }

    fn touch(&mut self, slot: u32) {
        if self.is_resident(slot) {
            self.list.renew(&mut self.nodes, slot);
        }
    }

    fn remove(&mut self, slot: u32, _why: Removed) {
        if self.is_resident(slot) {
            self.list.unlink(&mut self.nodes, slot);
            self.nodes[slot].resident = false;
        }
    }

    fn victim(&mut self, effort: u32, keep: &mut dyn FnMut(u32) -> Keep) -> Option<u32> {
        for _ in 0..effort {
            let slot = self.list.oldest()?;
            match keep(slot) {
                Keep::Take => return Some(slot),
                Keep::Spare => self.list.renew(&mut self.nodes, slot),
            }
        }
        None
    }

    fn warm(&self, slot: u32) -> u64 {
        list::warm(&self.nodes, slot)
    }

    fn len(&self) -> usize {
        self.list.len() as usize
    }
}
