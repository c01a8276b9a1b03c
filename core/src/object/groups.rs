//! Groups: objects that go together.

use alloc::boxed::Box;
use alloc::vec;
use alloc::vec::Vec;

use super::table::NONE;
use super::{Index, Links};

const CHUNK: usize = 1_024;

/// Which objects belong together, as rings through their slots. Costs nothing for slots that never had a group, 16
/// bytes for others; grows by chunks and pages, like the tables.
#[derive(Debug)]
pub(crate) struct Groups {
    /// By group: one member. Groups are keyed hashes of tenant and name; two names with one hash go together.
    heads: Index,
    members: Vec<Option<Box<[Member]>>>,
}

/// What is kept for a slot.
#[derive(Clone, Copy, Debug)]
struct Member {
    group: u64,
    /// [`Links::ALONE`] for a slot without a group.
    ring: Links,
}

impl Default for Groups {
    fn default() -> Self {
        Self { heads: Index::new(), members: Vec::new() }
    }
}

impl Groups {
    fn member(&self, slot: u32) -> Option<&Member> {
        let chunk = self.members.get(slot as usize / CHUNK)?.as_ref()?;
        Some(&chunk[slot as usize % CHUNK]).filter(|member| member.ring.next != NONE)
    }

    fn member_mut(&mut self, slot: u32) -> &mut Member {
        let chunk = slot as usize / CHUNK;
        if self.members.len() <= chunk {
            self.members.resize_with(chunk + 1, || None);
        }
        let vacant = || vec![Member { group: 0, ring: Links::ALONE }; CHUNK].into_boxed_slice();
        &mut self.members[chunk].get_or_insert_with(vacant)[slot as usize % CHUNK]
    }

    fn head(&self, group: u64) -> Option<u32> {
        self.heads.find(group, |slot| self.member(slot).is_some_and(|member| member.group == group))
    }

    /// Adds the object in `slot`, which is in no group.
    pub(crate) fn add(&mut self, group: u64, slot: u32) {
        let ring = match self.head(group) {
            Some(next) => {
                let prev = core::mem::replace(&mut self.member_mut(next).ring.prev, slot);
                self.member_mut(prev).ring.next = slot;
                Links { prev, next }
            }
            // A group that cannot be entered any more has one member at a time.
            None if self.heads.insert(group, slot).is_err() => return,
            None => Links { prev: slot, next: slot },
        };
        *self.member_mut(slot) = Member { group, ring };
    }

    /// The one that joined the group of `slot` after it, or the first; `None` if it is alone or in no group.
    pub(crate) fn after(&self, slot: u32) -> Option<u32> {
        self.member(slot).map(|member| member.ring.next).filter(|&next| next != slot)
    }

    /// Takes the object in `slot` out of its group, if it is in one.
    pub(crate) fn remove(&mut self, slot: u32) {
        let Some(&Member { group, ring }) = self.member(slot) else { return };
        self.member_mut(ring.prev).ring.next = ring.next;
        self.member_mut(ring.next).ring.prev = ring.prev;
        if self.heads.remove(group, slot) && ring.next != slot {
            // There was an entry a moment ago, so there is room for one.
            let entered = self.heads.insert(group, ring.next);
            debug_assert!(entered.is_ok(), "an entry that was taken out fits again");
        }
        self.member_mut(slot).ring = Links::ALONE;
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
        groups.add(8, 3_000);
        assert_eq!(ring(&groups, 2), [2, 3, 0, 1]);
        assert_eq!(groups.after(3_000), None);
        groups.remove(0);
        groups.remove(2);
        groups.remove(5);
        assert_eq!(ring(&groups, 1), [1, 3]);
        groups.add(7, 6);
        assert_eq!(ring(&groups, 1), [1, 3, 6]);
        for slot in [1, 3, 6, 3_000] {
            groups.remove(slot);
        }
        assert_eq!(groups.heads.len(), 0);
        assert!((0..4_000).all(|slot| groups.member(slot).is_none()));
    }
}
