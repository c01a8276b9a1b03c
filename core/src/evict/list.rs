//! Doubly linked lists of slots; the links live in the slots' own state.

use super::chunks::Chunks;

/// No slot.
pub(super) const NONE: u32 = u32::MAX;

/// A slot's neighbours.
#[derive(Clone, Copy, Debug)]
pub(super) struct Link {
    older: u32,
    newer: u32,
}

impl Link {
    /// The next newer slot, or [`NONE`].
    pub(super) const fn newer(self) -> u32 {
        self.newer
    }
}

impl Default for Link {
    fn default() -> Self {
        Self { older: NONE, newer: NONE }
    }
}

/// State that holds a link.
pub(super) trait Linked {
    fn link(&self) -> Link;
    fn link_mut(&mut self) -> &mut Link;
}

/// Reads `slot` and its neighbours, as taking it out of its list will. The result has no meaning; it depends on all that
/// was read.
pub(super) fn warm<T: Linked>(nodes: &Chunks<T>, slot: u32) -> u64 {
    let link = |slot| nodes.get(slot).map_or_else(Link::default, Linked::link);
    let Link { older, newer } = link(slot);
    u64::from(link(older).older ^ link(newer).newer)
}

/// Slots in order, from the oldest to the newest. A slot is in at most one list; its owner knows in which.
#[derive(Clone, Copy, Debug)]
pub(super) struct List {
    oldest: u32,
    newest: u32,
    len: u32,
}

impl Default for List {
    fn default() -> Self {
        Self { oldest: NONE, newest: NONE, len: 0 }
    }
}

impl List {
    /// How many slots are in it.
    pub(super) const fn len(&self) -> u32 {
        self.len
    }

    /// The oldest slot.
    pub(super) const fn oldest(&self) -> Option<u32> {
        if self.oldest == NONE { None } else { Some(self.oldest) }
    }

    /// Puts `slot`, which is in no list, at the newest end.
    pub(super) fn push<T: Linked>(&mut self, nodes: &mut Chunks<T>, slot: u32) {
        *nodes[slot].link_mut() = Link { older: self.newest, newer: NONE };
        match self.newest {
            NONE => self.oldest = slot,
            newest => nodes[newest].link_mut().newer = slot,
        }
        self.newest = slot;
        self.len += 1;
    }

    /// Puts `slot`, which is in no list, at the oldest end.
    pub(super) fn push_oldest<T: Linked>(&mut self, nodes: &mut Chunks<T>, slot: u32) {
        *nodes[slot].link_mut() = Link { older: NONE, newer: self.oldest };
        match self.oldest {
            NONE => self.newest = slot,
            oldest => nodes[oldest].link_mut().older = slot,
        }
        self.oldest = slot;
        self.len += 1;
    }

    /// Puts `slot`, which is in no list, right behind `anchor`, which is in this one: as the next older.
    pub(super) fn push_behind<T: Linked>(&mut self, nodes: &mut Chunks<T>, anchor: u32, slot: u32) {
        let older = core::mem::replace(&mut nodes[anchor].link_mut().older, slot);
        *nodes[slot].link_mut() = Link { older, newer: anchor };
        match older {
            NONE => self.oldest = slot,
            older => nodes[older].link_mut().newer = slot,
        }
        self.len += 1;
    }

    /// Takes `slot`, which is in this list, out.
    pub(super) fn unlink<T: Linked>(&mut self, nodes: &mut Chunks<T>, slot: u32) {
        let Link { older, newer } = nodes[slot].link();
        match older {
            NONE => self.oldest = newer,
            older => nodes[older].link_mut().newer = newer,
        }
        match newer {
            NONE => self.newest = older,
            newer => nodes[newer].link_mut().older = older,
        }
        self.len -= 1;
    }

    /// Makes `slot`, which is in this list, the newest.
    pub(super) fn renew<T: Linked>(&mut self, nodes: &mut Chunks<T>, slot: u32) {
        if self.newest != slot {
            self.unlink(nodes, slot);
            self.push(nodes, slot);
        }
    }
}
