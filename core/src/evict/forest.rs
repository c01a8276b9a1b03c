//! Entries by what they follow: chains of prefixes, which branch, and the order in which their ends may go.
//!
//! An entry is of no use without those before it, so one that others follow is not offered. Links are guesses from the
//! order of calls, and can be wrong or missing: then an entry goes a little too late or too early, and that is all. An
//! entry is linked to another only when it is new, or has no link and is no ancestor of the other, so there are no circles.

use super::chunks::Chunks;
use super::curve::CLASSES;
use super::list::{self, Link, Linked, List, NONE};

/// Entries with others behind them that one look into a class puts aside at most.
const COVERED_AT_ONCE: u32 = 64;

/// What is kept for an entry.
#[derive(Clone, Copy, Debug)]
pub(super) struct Node {
    link: Link,
    /// The fingerprint, shortened.
    pub(super) tag: u32,
    /// When it was last used: 40 bits, in two parts to save space.
    used: u32,
    /// The entry that it follows.
    parent: u32,
    /// How many follow it; may be too few, never too many.
    children: u16,
    used_high: u8,
    /// Uses since it was stored, up to a limit.
    pub(super) uses: u8,
    class: u8,
    place: Place,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
enum Place {
    #[default]
    Nowhere,
    InClass,
    /// In no list, until the last that follows it is gone.
    Covered,
    Held,
    Orphan,
}

impl Default for Node {
    fn default() -> Self {
        let (link, place) = (Link::default(), Place::Nowhere);
        Self { link, tag: 0, used: 0, parent: NONE, children: 0, used_high: 0, uses: 0, class: 0, place }
    }
}

impl Linked for Node {
    fn link(&self) -> Link {
        self.link
    }

    fn link_mut(&mut self) -> &mut Link {
        &mut self.link
    }
}

impl Node {
    /// An entry that is nowhere yet, used at `now`.
    pub(super) fn new(tag: u32, class: u8, uses: u8, now: u64) -> Self {
        let mut node = Self { tag, class, uses, ..Self::default() };
        node.use_at(now);
        node
    }

    /// The class in whose list it is, or would be.
    pub(super) const fn class(&self) -> u8 {
        self.class
    }

    /// When it was last used.
    pub(super) fn used(&self) -> u64 {
        u64::from(self.used_high) << 32 | u64::from(self.used)
    }

    /// Calls since the last use; right as long as they are fewer than 2⁴⁰.
    pub(super) fn age(&self, now: u64) -> u64 {
        now.wrapping_sub(self.used()) & ((1 << 40) - 1)
    }

    /// Sets the last use and the class that comes with it.
    pub(super) fn use_in(&mut self, class: u8, now: u64) {
        self.class = class;
        self.use_at(now);
    }

    fn use_at(&mut self, now: u64) {
        (self.used, self.used_high) = (now as u32, (now >> 32) as u8);
    }

    pub(super) const fn parent(&self) -> u32 {
        self.parent
    }
}

/// A class: a list by last use, in which the entries of one path stand together, the deepest as the oldest of them.
#[derive(Clone, Copy, Debug)]
struct Ranks {
    list: List,
    /// The deepest of the last path in it, and which path that is.
    tip: u32,
    path: u32,
    /// The deepest of the path before.
    before: u32,
}

impl Default for Ranks {
    fn default() -> Self {
        Self { list: List::default(), tip: NONE, path: 0, before: NONE }
    }
}

/// All entries.
#[derive(Clone, Debug, Default)]
pub(super) struct Forest {
    nodes: Chunks<Node>,
    classes: [Ranks; CLASSES],
    held: List,
    orphans: List,
    /// The number of the current path.
    path: u32,
}

impl Forest {
    pub(super) fn node(&self, slot: u32) -> &Node {
        &self.nodes[slot]
    }

    pub(super) fn node_mut(&mut self, slot: u32) -> &mut Node {
        &mut self.nodes[slot]
    }

    /// Reads `slot` and those that it stands beside or follows. The result has no meaning; it depends on all that was
    /// read.
    pub(super) fn warm(&self, slot: u32) -> u64 {
        let parent = self.nodes.get(slot).map_or(NONE, |node| node.parent);
        let children = self.nodes.get(parent).map_or(0, |node| node.children);
        list::warm(&self.nodes, slot) ^ u64::from(children)
    }

    pub(super) fn is_resident(&self, slot: u32) -> bool {
        self.place(slot) != Place::Nowhere
    }

    fn place(&self, slot: u32) -> Place {
        self.nodes.get(slot).map_or(Place::Nowhere, |node| node.place)
    }

    /// Begins a path: what is pushed from now on does not stand with what was pushed before.
    pub(super) fn begin_path(&mut self) {
        self.path = self.path.wrapping_add(1);
    }

    /// Writes `node` into `slot`, which no entry has.
    pub(super) fn write(&mut self, slot: u32, node: Node) {
        self.nodes.reach(slot);
        self.nodes[slot] = node;
    }

    /// Puts `slot`, which is in no list, into its class, as the deepest of the current path.
    pub(super) fn push(&mut self, slot: u32) {
        let node = &mut self.nodes[slot];
        node.place = Place::InClass;
        let ranks = &mut self.classes[node.class as usize];
        if ranks.tip != NONE && ranks.path == self.path {
            ranks.list.push_behind(&mut self.nodes, ranks.tip, slot);
        } else {
            ranks.list.push(&mut self.nodes, slot);
            ranks.before = ranks.tip;
            ranks.path = self.path;
        }
        ranks.tip = slot;
    }

    /// Puts `slot`, which is in no list, among those that go before all others.
    pub(super) fn push_orphan(&mut self, slot: u32) {
        self.nodes[slot].place = Place::Orphan;
        self.orphans.push(&mut self.nodes, slot);
    }

    /// Puts `slot` aside, as somebody holds it. It no longer keeps the entry that it follows.
    pub(super) fn hold(&mut self, slot: u32) {
        self.unlink(slot);
        self.detach(slot);
        self.nodes[slot].place = Place::Held;
        self.held.push(&mut self.nodes, slot);
    }

    /// Moves `slot` to another class.
    pub(super) fn reclass(&mut self, slot: u32, class: u8) {
        let place = self.place(slot);
        if place == Place::InClass {
            self.unlink(slot);
        }
        self.nodes[slot].class = class;
        if place == Place::InClass {
            self.push(slot);
        }
    }

    /// Takes `slot` out of its list.
    pub(super) fn unlink(&mut self, slot: u32) {
        let node = &mut self.nodes[slot];
        match core::mem::take(&mut node.place) {
            Place::Nowhere | Place::Covered => {}
            Place::Held => self.held.unlink(&mut self.nodes, slot),
            Place::Orphan => self.orphans.unlink(&mut self.nodes, slot),
            Place::InClass => {
                let ranks = &mut self.classes[node.class as usize];
                let newer = node.link.newer();
                if ranks.tip == slot {
                    ranks.tip = newer;
                }
                if ranks.before == slot {
                    ranks.before = if newer == ranks.tip { NONE } else { newer };
                }
                ranks.list.unlink(&mut self.nodes, slot);
            }
        }
    }

    /// Notes that `slot`, which follows none, follows `parent`.
    pub(super) fn attach(&mut self, slot: u32, parent: u32) {
        let children = &mut self.nodes[parent].children;
        *children = children.saturating_add(1);
        self.nodes[slot].parent = parent;
    }

    /// Forgets what `slot` follows. If nothing else follows that, it may go, as the oldest of its class, which it was
    /// when it was put aside.
    pub(super) fn detach(&mut self, slot: u32) {
        let parent = core::mem::replace(&mut self.nodes[slot].parent, NONE);
        if !self.is_resident(parent) {
            return;
        }
        let node = &mut self.nodes[parent];
        node.children = node.children.saturating_sub(1);
        if node.children == 0 && node.place == Place::Covered {
            node.place = Place::InClass;
            self.classes[node.class as usize].list.push_oldest(&mut self.nodes, parent);
        }
    }

    /// Who is held and looked at next.
    pub(super) const fn held(&self) -> Option<u32> {
        self.held.oldest()
    }

    /// Who goes before all others.
    pub(super) const fn orphan(&self) -> Option<u32> {
        self.orphans.oldest()
    }

    /// Whether `slot` is where entries are that nobody holds.
    pub(super) fn is_in_order(&self, slot: u32) -> bool {
        matches!(self.place(slot), Place::InClass | Place::Covered)
    }

    /// Whether `slot` is in its class's list and nothing follows it.
    pub(super) fn is_end(&self, slot: u32) -> bool {
        self.place(slot) == Place::InClass && self.nodes[slot].children == 0
    }

    /// The oldest and the newest of `class` that may go, without `spared`. Puts aside what it meets at the oldest end
    /// and something follows, so this is O(1) amortised.
    pub(super) fn ends(&mut self, class: usize, spared: u32) -> [Option<u32>; 2] {
        for _ in 0..COVERED_AT_ONCE {
            match self.classes[class].list.oldest() {
                Some(slot) if self.nodes[slot].children > 0 => {
                    self.unlink(slot);
                    self.nodes[slot].place = Place::Covered;
                }
                _ => break,
            }
        }
        let Ranks { list, tip, before, .. } = self.classes[class];
        let may_go = |slot: &u32| *slot != spared && self.is_end(*slot);
        [list.oldest().filter(may_go), [tip, before].into_iter().find(may_go)]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn forest(slots: u32) -> Forest {
        let mut forest = Forest::default();
        for slot in 0..slots {
            forest.write(slot, Node::new(0, 0, 1, slot.into()));
            if slot > 0 {
                forest.attach(slot, slot - 1);
            }
            forest.push(slot);
        }
        forest
    }

    fn remove(forest: &mut Forest, slot: u32) {
        forest.unlink(slot);
        forest.detach(slot);
    }

    #[test]
    fn a_chain_goes_from_its_end() {
        let mut forest = forest(5);
        for end in (0..5).rev() {
            assert_eq!(forest.ends(0, NONE), [Some(end); 2]);
            remove(&mut forest, end);
        }
        assert_eq!(forest.ends(0, NONE), [None; 2]);
    }

    #[test]
    fn what_others_follow_waits_for_the_last_of_them() {
        let mut forest = forest(1);
        forest.begin_path();
        forest.write(1, Node::new(0, 1, 1, 1));
        forest.attach(1, 0);
        forest.push(1);
        forest.begin_path();
        forest.write(2, Node::new(0, 1, 1, 2));
        forest.attach(2, 0);
        forest.push(2);
        assert_eq!(forest.ends(0, NONE), [None; 2], "two follow it");
        assert_eq!(forest.ends(1, NONE), [Some(1), Some(2)]);
        assert_eq!(forest.ends(1, 2), [Some(1), Some(1)], "the newest but the one that is spared");
        remove(&mut forest, 1);
        assert_eq!(forest.ends(0, NONE), [None; 2]);
        forest.hold(2);
        assert_eq!((forest.ends(0, NONE)[0], forest.held()), (Some(0), Some(2)), "who is held keeps nobody");
    }

    #[test]
    fn more_than_one_look_puts_aside_is_found_by_the_next() {
        let mut forest = forest(1);
        for slot in 1..=3 * COVERED_AT_ONCE {
            forest.begin_path();
            forest.write(slot, Node::new(0, 0, 1, slot.into()));
            forest.attach(slot, slot - 1);
            forest.push(slot);
        }
        let last = 3 * COVERED_AT_ONCE;
        assert_eq!(forest.ends(0, NONE), [None, Some(last)]);
        assert_eq!(forest.ends(0, last), [None; 2]);
        assert_eq!(forest.ends(0, last), [None; 2]);
        assert_eq!(forest.ends(0, NONE), [Some(last); 2]);
    }

    #[test]
    fn a_link_to_a_slot_with_another_entry_does_no_harm() {
        let mut forest = forest(3);
        // The owner drops the middle one; another entry gets its slot, and one that follows it.
        remove(&mut forest, 1);
        forest.write(1, Node::new(0, 1, 1, 9));
        forest.push(1);
        remove(&mut forest, 2);
        assert!(forest.is_end(1) && forest.is_end(0));
    }

    #[test]
    fn ages_wrap_with_forty_bits() {
        let node = Node::new(0, 0, 1, (1 << 40) - 5);
        assert_eq!(node.age((1 << 40) + 7), 12);
    }
}
