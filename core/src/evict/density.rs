//! By hit density: what promises the fewest hits for its space goes first.

use alloc::boxed::Box;

use super::chunks::Chunks;
use super::curve::{CLASSES, Curves, ONCE};
use super::ghost::tag;
use super::list::{Link, Linked, List, NONE};
use super::memory::{Memory, Note};
use super::{Keep, Policy, Removed};

/// Keeps what is worth most, by what came back so far. There is nothing to tune.
///
/// Entries are sorted into a few classes, each a list by last use: by how often they were used (once, twice, three
/// times, more in powers of two), and those used once by what the order of calls tells: whether they were stored after other
/// entries had been read (the new end of a known chain of prefixes), and whether they were the last stored before the
/// next read (the end of a chain, which seldom comes back). What each class is worth at each age is learned, also from
/// entries that were given up; whether these distinctions mean anything is learned with it. The victim is the entry
/// that is worth least of the oldest and the newest of each class. The newest go first where entries gain by waiting: in
/// loops, and in pools so small that most chains are given up before they come back.
///
/// Entries used once are held to their usual share of the pool, a slow average: when it rises fast, as in a scan, they go
/// first, before there is any proof that they do not come back. Whether one came back in good time counts, too: four
/// and more uses are counted only of entries that come back before four calls for each entry have passed.
///
/// Entries stored in a row, and entries read in the order in which they were stored, are taken for a chain of
/// prefixes: the deepest goes first, as it is of no use without the others.
///
/// A spared entry waits aside, so that held entries do not hide others, and is looked at again in turn. At most 48
/// bytes an entry, and 320 KiB from the start.
#[derive(Clone, Debug, Default)]
pub struct Density {
    nodes: Chunks<Node>,
    classes: [List; CLASSES],
    held: List,
    memory: Memory,
    curves: Box<Curves>,
    len: u32,
    last: Last,
    /// Reads in a row before the last store, or up to now.
    reads: u32,
    run: Run,
    tips: [Tip; CLASSES],
    /// How many entries used once there are usually, in units of 2⁻²⁰.
    usual: u64,
}

/// Calls of one kind in a row that seem to go down one chain.
#[derive(Clone, Copy, Debug, Default)]
struct Run {
    id: u32,
    len: u32,
    /// The slot that was behind the one read last: read next, it goes on with the chain.
    deeper: u32,
}

/// The slot that was put into a class last, and in which run.
#[derive(Clone, Copy, Debug)]
struct Tip {
    slot: u32,
    run: u32,
}

impl Default for Tip {
    fn default() -> Self {
        Self { slot: NONE, run: 0 }
    }
}

#[derive(Clone, Copy, Debug, Default)]
struct Node {
    link: Link,
    tag: u32,
    /// When it was last used: 40 bits, in two parts to save space.
    used: u32,
    used_high: u8,
    /// Uses since it was stored, up to [`MANY`].
    uses: u8,
    class: u8,
    place: Place,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
enum Place {
    #[default]
    Nowhere,
    InClass,
    Held,
}

/// The last call.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
enum Last {
    #[default]
    Read,
    /// The slot was stored; its life is counted when the next call tells its class.
    Stored(u32),
}

/// Stores in a row that are taken for one chain, at most; or a sixteenth of all entries.
const LONGEST_RUN: u32 = 256;
/// Used once: stored after at most one read, or after more; last of a chain.
const ALONE: u8 = 0;
const CHAIN_END: u8 = ONCE as u8 - 1;
/// Used twice, three times, more often.
const TWICE: u8 = ONCE as u8;
const OFTEN: u8 = 7;
const MANY: u8 = 16;
/// Coming back after it was given up raises an entry's count to so many uses, however late.
const PROVEN: u8 = 3;
/// And beyond that before so many calls for each entry: later, it is only as good as those that are as often used.
const SOON: u64 = 4;
/// Calls for each entry over which the usual share of entries used once is an average.
const USUAL_CALLS: u64 = 4;
/// A surge: more than usual by so great a part of all entries.
const SURGE: u64 = 8;

impl Linked for Node {
    fn link(&self) -> Link {
        self.link
    }

    fn link_mut(&mut self) -> &mut Link {
        &mut self.link
    }
}

impl Node {
    fn used(&self) -> u64 {
        u64::from(self.used_high) << 32 | u64::from(self.used)
    }

    /// Calls since the last use; right as long as they are fewer than 2⁴⁰.
    fn age(&self, now: u64) -> u64 {
        now.wrapping_sub(self.used()) & ((1 << 40) - 1)
    }

    fn use_at(&mut self, now: u64) {
        (self.used, self.used_high) = (now as u32, (now >> 32) as u8);
    }
}

/// The class of entries that were used so often: two, three, up to seven, up to fifteen, more.
const fn class_of(uses: u8) -> u8 {
    match uses {
        0..=2 => TWICE,
        3 => TWICE + 1,
        4..8 => TWICE + 2,
        8..MANY => TWICE + 3,
        _ => OFTEN,
    }
}

/// The fewest uses that lead to `class`.
const fn uses_of(class: u8) -> u8 {
    match class {
        ..TWICE => 1,
        OFTEN => MANY,
        _ => [2, 3, 4, 8][(class - TWICE) as usize],
    }
}

impl Density {
    /// What is kept for each slot, notes of what was given up included.
    pub const BYTES_PER_ENTRY: usize = size_of::<Node>() + Memory::BYTES_PER_RESIDENT;

    fn place(&self, slot: u32) -> Place {
        self.nodes.get(slot).map_or(Place::Nowhere, |node| node.place)
    }

    fn push(&mut self, slot: u32) {
        let node = &mut self.nodes[slot];
        node.place = Place::InClass;
        let (list, tip) = (&mut self.classes[node.class as usize], &mut self.tips[node.class as usize]);
        if tip.slot != NONE && tip.run == self.run.id {
            list.push_behind(&mut self.nodes, tip.slot, slot);
        } else {
            list.push(&mut self.nodes, slot);
        }
        *tip = Tip { slot, run: self.run.id };
    }

    fn hold(&mut self, slot: u32) {
        self.nodes[slot].place = Place::Held;
        self.held.push(&mut self.nodes, slot);
    }

    fn unlink(&mut self, slot: u32) {
        let node = &mut self.nodes[slot];
        match core::mem::take(&mut node.place) {
            Place::Nowhere => {}
            Place::Held => self.held.unlink(&mut self.nodes, slot),
            Place::InClass => {
                let class = node.class as usize;
                if self.tips[class].slot == slot {
                    self.tips[class].slot = node.link.newer();
                }
                self.classes[class].unlink(&mut self.nodes, slot);
            }
        }
    }

    fn new_run(&mut self) {
        self.run = Run { id: self.run.id.wrapping_add(1), len: 0, deeper: NONE };
    }

    /// Counts the life of the entry stored last, now that the next call is known.
    fn settle(&mut self, next: Last) {
        let Last::Stored(slot) = core::mem::replace(&mut self.last, next) else { return };
        if self.place(slot) == Place::Nowhere {
            return;
        }
        if next == Last::Read && self.nodes[slot].class < CHAIN_END && self.place(slot) == Place::InClass {
            self.unlink(slot);
            self.nodes[slot].class = CHAIN_END;
            self.push(slot);
        }
        self.curves.begin(self.nodes[slot].class);
    }

    /// One call passed.
    fn tick(&mut self) {
        self.curves.tick();
        let (once, span) = (self.once(), (USUAL_CALLS * u64::from(self.len)).max(1));
        if once > self.usual {
            self.usual += (once - self.usual) / span;
        } else {
            self.usual -= (self.usual - once) / span;
        }
    }

    /// How many entries used once there are, in units of 2⁻²⁰.
    fn once(&self) -> u64 {
        self.classes[..ONCE].iter().map(|list| u64::from(list.len())).sum::<u64>() << 20
    }

    /// The entry that is worth least: of all, or in a surge of those used once.
    fn least(&self) -> Option<u32> {
        let surge = self.once() > self.usual + (u64::from(self.len) << 20) / SURGE;
        let classes = if surge { 0..ONCE } else { 0..CLASSES };
        let mut least = None;
        for (list, tip) in self.classes[classes.clone()].iter().zip(&self.tips[classes]) {
            let (Some(oldest), Some(newest)) = (list.oldest(), list.newest()) else { continue };
            let newest = if tip.slot == NONE { newest } else { tip.slot };
            for slot in [oldest, newest] {
                let node = &self.nodes[slot];
                let age = node.age(self.curves.now());
                let key = (self.curves.worth(node.class, age), u64::MAX - age);
                if least.is_none_or(|(other, _)| key < other) {
                    least = Some((key, slot));
                }
            }
        }
        least.map(|(_, slot)| slot)
    }

    /// The class of an entry that becomes resident now, and how often it was used.
    fn first_class(&mut self, tag: u32) -> (u8, u8) {
        let Some(Note { class, age }) = self.memory.take(tag, self.curves.now()) else {
            return (ALONE + u8::from(self.reads > 1), 1);
        };
        self.curves.end(class, age);
        let uses = uses_of(class);
        let counts = uses < PROVEN || age <= SOON * u64::from(self.len);
        let uses = MANY.min(uses + u8::from(counts));
        (class_of(uses), uses)
    }
}

impl Policy for Density {
    fn insert(&mut self, slot: u32, fingerprint: u64) {
        self.nodes.reach(slot);
        if self.nodes[slot].place != Place::Nowhere {
            return self.touch(slot);
        }
        self.tick();
        if self.last == Last::Read || self.run.len >= LONGEST_RUN.min(self.len / 16) {
            self.new_run();
        }
        self.settle(Last::Stored(slot));
        let (now, tag) = (self.curves.now(), tag(fingerprint));
        let (class, uses) = self.first_class(tag);
        self.nodes[slot] = Node { tag, class, uses, ..Node::default() };
        self.nodes[slot].use_at(now);
        self.push(slot);
        self.run.len += 1;
        self.len += 1;
        self.memory.grow_for(self.len);
    }

    fn touch(&mut self, slot: u32) {
        if self.place(slot) == Place::Nowhere {
            return;
        }
        self.tick();
        self.reads = if self.last == Last::Read { self.reads.saturating_add(1) } else { 1 };
        self.settle(Last::Read);
        if self.run.deeper != slot {
            self.new_run();
        }
        self.run.deeper = self.nodes[slot].link.older();
        self.unlink(slot);
        let now = self.curves.now();
        let node = &mut self.nodes[slot];
        self.curves.end(node.class, node.age(now));
        node.uses = MANY.min(node.uses + 1);
        node.class = class_of(node.uses);
        node.use_at(now);
        self.curves.begin(node.class);
        self.push(slot);
    }

    fn remove(&mut self, slot: u32, why: Removed) {
        if self.place(slot) == Place::Nowhere {
            return;
        }
        if self.last == Last::Stored(slot) {
            // Its life counts, though nobody will know what came after it.
            self.curves.begin(self.nodes[slot].class);
            self.last = Last::Stored(NONE);
        }
        self.unlink(slot);
        self.len -= 1;
        if why == Removed::Evicted {
            let node = &self.nodes[slot];
            self.memory.add(node.tag, node.class, node.used(), self.curves.now());
        }
    }

    fn victim(&mut self, effort: u32, keep: &mut dyn FnMut(u32) -> Keep) -> Option<u32> {
        for look in 0..effort {
            let slot = match (self.least(), self.held.oldest()) {
                (Some(slot), None) => slot,
                (least, Some(held)) if look == 0 || least.is_none() => held,
                (least, _) => least?,
            };
            if keep(slot) == Keep::Take {
                return Some(slot);
            }
            self.unlink(slot);
            self.hold(slot);
        }
        None
    }

    fn len(&self) -> usize {
        self.len as usize
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rng::mix;

    fn evict(density: &mut Density) -> u32 {
        let slot = density.victim(8, &mut |_| Keep::Take).expect("nothing is held");
        density.remove(slot, Removed::Evicted);
        slot
    }

    #[test]
    fn classes_and_uses_agree() {
        for uses in 2..=MANY {
            let class = class_of(uses);
            assert!((TWICE..=OFTEN).contains(&class));
            assert!(uses_of(class) <= uses && class_of(uses_of(class)) == class);
        }
        assert!((ALONE..=CHAIN_END).all(|class| uses_of(class) == 1));
        assert_eq!(usize::from(OFTEN) + 1, CLASSES);
    }

    #[test]
    fn ages_wrap_with_forty_bits() {
        let mut node = Node::default();
        node.use_at((1 << 40) - 5);
        assert_eq!(node.age((1 << 40) + 7), 12);
    }

    #[test]
    fn the_first_scan_does_not_drive_out_what_was_read() {
        let mut density = Density::default();
        for slot in 0..200 {
            density.insert(slot, mix(slot.into()));
        }
        for round in 0..2_000 {
            density.touch(round % 150);
        }
        for key in 1_000..1_150 {
            let slot = evict(&mut density);
            density.insert(slot, mix(key));
        }
        // A surge begins at an eighth of the entries above what is usual.
        let kept = (0..150).filter(|&slot| density.nodes[slot].uses > 1).count();
        assert!(kept >= 150 - 200 / 8 - 10, "{kept}");
    }

    #[test]
    fn who_comes_back_late_is_counted_up_to_three_uses() {
        let mut density = Density::default();
        (0..16).for_each(|slot| density.insert(slot, mix(slot.into())));
        let mut back = |after: u64| {
            density.remove(0, Removed::Evicted);
            (0..after).for_each(|_| density.touch(1));
            density.insert(0, mix(0));
            density.nodes[0].uses
        };
        assert_eq!([back(1_000), back(1_000), back(1_000), back(10)], [2, 3, 3, 4]);
    }

    #[test]
    fn an_entry_that_was_dropped_is_new_again() {
        let mut density = Density::default();
        (0..16).for_each(|slot| density.insert(slot, mix(slot.into())));
        density.remove(3, Removed::Dropped);
        density.insert(3, mix(3));
        assert_eq!(density.nodes[3].uses, 1);
    }

    #[test]
    fn a_chain_is_listed_with_its_deepest_as_the_oldest() {
        let mut density = Density::default();
        (0..320).for_each(|slot| density.insert(slot, mix(slot.into())));
        (0..320).for_each(|slot| density.touch(slot));
        (320..330).for_each(|slot| density.insert(slot, mix(slot.into())));
        density.touch(0);
        let chain = density.classes[ALONE as usize + 1];
        let mut next = chain.newest().unwrap();
        let order: [u32; 9] = core::array::from_fn(|_| {
            let deeper = density.nodes[next].link.older();
            core::mem::replace(&mut next, deeper)
        });
        assert_eq!(order, [320, 321, 322, 323, 324, 325, 326, 327, 328]);
        assert_eq!(density.nodes[329].class, CHAIN_END);
    }
}
