//! Groups: objects that go together.

use hashbrown::HashMap;
use hashbrown::hash_map::Entry;

use super::Links;
use super::table::NONE;
use crate::rng::mix;

/// Which objects belong together, as rings through their slots. Costs nothing for objects without a group.
#[derive(Debug, Default)]
pub(crate) struct Groups {
    /// By group: one member. Groups are keyed hashes of tenant and name; two names with one hash go together.
    heads: HashMap<u64, u32, Mixer>,
    members: HashMap<u32, Member, Mixer>,
}

#[derive(Clone, Copy, Debug)]
struct Member {
    group: u64,
    ring: Links,
}

/// Hashes numbers that are secret hashes or dense already.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Mixer(u64);

impl core::hash::BuildHasher for Mixer {
    type Hasher = Self;

    fn build_hasher(&self) -> Self {
        *self
    }
}

impl core::hash::Hasher for Mixer {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        for &byte in bytes {
            self.write_u64(u64::from(byte));
        }
    }

    fn write_u32(&mut self, number: u32) {
        self.write_u64(u64::from(number));
    }

    fn write_u64(&mut self, number: u64) {
        self.0 = mix(self.0 ^ number);
    }
}

impl Groups {
    /// Adds the object in `slot`, which is in no group.
    pub(crate) fn add(&mut self, group: u64, slot: u32) {
        let ring = match self.heads.entry(group) {
            Entry::Vacant(entry) => {
                entry.insert(slot);
                Links { prev: slot, next: slot }
            }
            Entry::Occupied(entry) => {
                let next = *entry.get();
                let prev = self.link(next, |ring| core::mem::replace(&mut ring.prev, slot));
                self.link(prev, |ring| core::mem::replace(&mut ring.next, slot));
                Links { prev, next }
            }
        };
        self.members.insert(slot, Member { group, ring });
    }

    /// The one that joined the group of `slot` after it, or the first; `None` if it is alone or in no group.
    pub(crate) fn after(&self, slot: u32) -> Option<u32> {
        self.members.get(&slot).map(|member| member.ring.next).filter(|&next| next != slot)
    }

    /// Takes the object in `slot` out of its group, if it is in one.
    pub(crate) fn remove(&mut self, slot: u32) {
        let Some(Member { group, ring }) = self.members.remove(&slot) else { return };
        if ring.next == slot {
            self.heads.remove(&group);
            return;
        }
        self.link(ring.prev, |links| core::mem::replace(&mut links.next, ring.next));
        self.link(ring.next, |links| core::mem::replace(&mut links.prev, ring.prev));
        if let Some(head) = self.heads.get_mut(&group)
            && *head == slot
        {
            *head = ring.next;
        }
    }

    fn link(&mut self, slot: u32, change: impl FnOnce(&mut Links) -> u32) -> u32 {
        debug_assert!(self.members.contains_key(&slot), "a ring leads to slot {slot}, which is in no group");
        self.members.get_mut(&slot).map_or(NONE, |member| change(&mut member.ring))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec::Vec;

    fn ring(groups: &Groups, from: u32) -> Vec<u32> {
        let mut all = alloc::vec![from];
        while let Some(next) = groups.after(all[all.len() - 1]).filter(|&next| next != from) {
            all.push(next);
        }
        all
    }

    #[test]
    fn rings_hold_their_members_in_order() {
        let mut groups = Groups::default();
        for slot in 0..4 {
            groups.add(7, slot);
        }
        groups.add(8, 9);
        assert_eq!(ring(&groups, 2), [2, 3, 0, 1]);
        assert_eq!(groups.after(9), None);
        groups.remove(0);
        groups.remove(2);
        groups.remove(5);
        assert_eq!(ring(&groups, 1), [1, 3]);
        groups.add(7, 6);
        assert_eq!(ring(&groups, 1), [1, 3, 6]);
        for slot in [1, 3, 6, 9] {
            groups.remove(slot);
        }
        assert!(groups.heads.is_empty() && groups.members.is_empty());
    }
}
