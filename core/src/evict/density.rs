//! By hit density: what promises the fewest hits for its space goes first.

use alloc::boxed::Box;
use core::ops::Range;

use super::curve::{CLASSES, Curves, ONCE};
use super::forest::{Forest, Node};
use super::ghost::tag;
use super::list::NONE;
use super::memory::{Memory, Note};
use super::{Keep, Policy, Removed};

/// Keeps what is worth most, by what came back so far. There is nothing to tune.
///
/// Entries read or stored one after the other are taken for a chain of prefixes, of which each is of no use without
/// those before it. So only the ends of chains may go; an entry that many chains share goes after the last of them.
/// Where one path ends and another begins is seen when an entry follows another one than the last time.
///
/// Entries are sorted into a few classes, each a list by last use: by how often they were used (once, twice, three
/// times, more in powers of two), and those used once by what the order of calls tells: whether they were stored after other
/// entries had been read (the new end of a known chain), and whether they were the last stored before the
/// next read (the end of a chain, which seldom comes back). What each class is worth at each age is learned, also from
/// entries that were given up; whether these distinctions mean anything is learned with it. The victim is the entry
/// that is worth least of the oldest and the newest of each class. The newest go first where entries gain by waiting: in
/// loops, and in pools so small that most chains are given up before they come back. If that is the entry stored last,
/// what follows it is worth nothing, and goes before all others as soon as there are several.
///
/// Entries used once are held to their usual share of the pool, a slow average: when it rises fast, as in a scan, they go
/// first, before there is any proof that they do not come back. Whether one came back in good time counts, too: four
/// and more uses are counted only of entries that come back before four calls for each entry have passed.
///
/// A spared entry waits aside, so that held entries do not hide others, and is looked at again in turn. At most 48
/// bytes an entry, and 320 KiB from the start.
#[derive(Clone, Debug, Default)]
pub struct Density {
    forest: Forest,
    memory: Memory,
    curves: Box<Curves>,
    len: u32,
    path: Path,
    /// Reads in a row before the last store, or up to now.
    reads: u32,
    /// How many entries used once there are.
    once: u32,
    /// How many there are usually, in units of 2⁻²⁰.
    usual: u64,
}

/// Calls in a row that seem to go down one chain.
#[derive(Clone, Copy, Debug)]
struct Path {
    /// The entry of the last call.
    tip: u32,
    /// When that was used before this.
    used: u64,
    /// How many entries of the path it follows.
    depth: u64,
    /// Stores in a row; zero after a read.
    stored: u32,
    /// The entry stored last; its life is counted when the next call tells its class.
    fresh: u32,
    /// The entry stored last was given up before the next was stored.
    lost: Lost,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Lost {
    No,
    Yes,
}

impl Default for Path {
    fn default() -> Self {
        Self { tip: NONE, used: 0, depth: 0, stored: 0, fresh: NONE, lost: Lost::No }
    }
}

/// Stores in a row that are taken for one chain, at most; or half of all entries.
const LONGEST_RUN: u32 = 256;
/// From so many stores in a row on, an entry surely belongs to the one stored before: fewer may be of separate requests.
const CERTAIN: u32 = 5;
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

    /// One call passed.
    fn tick(&mut self) {
        self.curves.tick();
        let (once, span) = (u64::from(self.once) << 20, (USUAL_CALLS * u64::from(self.len)).max(1));
        if once > self.usual {
            self.usual += (once - self.usual) / span;
        } else {
            self.usual -= (self.usual - once) / span;
        }
    }

    /// Counts the life of the entry stored last, as the next call is a store, or as nobody will know.
    fn settle(&mut self) {
        let fresh = core::mem::replace(&mut self.path.fresh, NONE);
        if fresh != NONE {
            self.curves.begin(self.forest.node(fresh).class());
        }
    }

    /// The same when the next call is a read: it was the end of a chain.
    fn settle_end(&mut self) {
        let fresh = self.path.fresh;
        if fresh != NONE && self.forest.node(fresh).class() < CHAIN_END {
            self.forest.reclass(fresh, CHAIN_END);
        }
        self.settle();
    }

    /// Goes on with the path to `slot`, which was used at `used` before.
    fn go_on(&mut self, slot: u32, used: u64) {
        (self.path.tip, self.path.used) = (slot, used);
        self.path.depth += 1;
    }

    /// Begins a path with `slot`.
    fn begin(&mut self, slot: u32, used: u64) {
        (self.path.tip, self.path.used, self.path.depth) = (slot, used, 0);
        self.forest.begin_path();
    }

    /// Puts the entry in `slot`, just stored, behind the one before.
    fn place_stored(&mut self, slot: u32, now: u64) {
        if self.path.stored >= LONGEST_RUN.min(self.len / 2) {
            self.path = Path::default();
        }
        let Path { tip, lost, .. } = self.path;
        self.path.lost = Lost::No;
        self.path.stored += 1;
        self.path.fresh = slot;
        if lost == Lost::No && tip != slot && self.forest.is_resident(tip) {
            self.forest.attach(slot, tip);
            self.go_on(slot, now);
        } else {
            self.begin(slot, now);
        }
        match lost {
            Lost::No => self.forest.push(slot),
            Lost::Yes if self.path.stored >= CERTAIN => self.forest.push_orphan(slot),
            Lost::Yes => self.forest.push(slot),
        }
    }

    /// Finds out whether `slot`, which is read now, follows the entry of the last call. It does if it did the last time,
    /// or if it has no link and both were used one after the other the last time.
    fn place_read(&mut self, slot: u32, used: u64, age: u64) {
        let Path { tip, used: before, depth, .. } = self.path;
        let parent = self.forest.node(slot).parent();
        // Whoever was used before the path began is no part of it.
        let beyond = age > depth + 1;
        if parent == NONE && used == before + 1 && beyond && self.forest.is_in_order(tip) {
            self.forest.attach(slot, tip);
            self.go_on(slot, used);
        } else if parent != NONE && parent == tip {
            self.go_on(slot, used);
        } else if tip == NONE {
            // The first of a batch: nobody knows what it follows this time, so what it followed before is believed.
            self.begin(slot, used);
        } else {
            self.forest.detach(slot);
            self.begin(slot, used);
        }
        self.forest.push(slot);
    }

    /// The entry that is worth least: of all, or in a surge of those used once. The entry read last goes on being used.
    fn least(&mut self) -> Option<u32> {
        let surge = u64::from(self.once) << 20 > self.usual + (u64::from(self.len) << 20) / SURGE;
        let reading = if self.path.stored == 0 { self.path.tip } else { NONE };
        let orphan = self.forest.orphan();
        let once = |density: &mut Self| if surge { density.least_of(0..ONCE, reading) } else { None };
        orphan
            .or_else(|| once(self))
            .or_else(|| self.least_of(0..CLASSES, reading))
            .or_else(|| Some(reading).filter(|&slot| self.forest.is_end(slot)))
    }

    fn least_of(&mut self, classes: Range<usize>, reading: u32) -> Option<u32> {
        let (mut least, now) = (None, self.curves.now());
        for class in classes {
            for slot in self.forest.ends(class, reading).into_iter().flatten() {
                let age = self.forest.node(slot).age(now);
                let key = (self.curves.worth(class as u8, age), u64::MAX - age);
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
        if self.forest.is_resident(slot) {
            return self.touch(slot);
        }
        self.tick();
        self.settle();
        let (now, tag) = (self.curves.now(), tag(fingerprint));
        let (class, uses) = self.first_class(tag);
        self.forest.write(slot, Node::new(tag, class, uses, now));
        self.place_stored(slot, now);
        self.once += u32::from(class < TWICE);
        self.len += 1;
        self.memory.grow_for(self.len);
    }

    fn touch(&mut self, slot: u32) {
        if !self.forest.is_resident(slot) {
            return;
        }
        self.tick();
        self.settle_end();
        self.reads = if self.path.stored == 0 { self.reads.saturating_add(1) } else { 1 };
        (self.path.stored, self.path.lost) = (0, Lost::No);
        self.forest.unlink(slot);
        let now = self.curves.now();
        let node = self.forest.node_mut(slot);
        let (used, age) = (node.used(), node.age(now));
        self.curves.end(node.class(), age);
        self.once -= u32::from(node.class() < TWICE);
        node.uses = MANY.min(node.uses + 1);
        let class = class_of(node.uses);
        node.use_in(class, now);
        self.curves.begin(class);
        self.place_read(slot, used, age);
    }

    fn begin_batch(&mut self) {
        let fresh = self.path.fresh;
        self.path = Path { fresh, ..Path::default() };
    }

    fn remove(&mut self, slot: u32, why: Removed) {
        if !self.forest.is_resident(slot) {
            return;
        }
        if self.path.fresh == slot {
            self.settle();
            self.path.lost = if why == Removed::Evicted { Lost::Yes } else { Lost::No };
        }
        self.forest.unlink(slot);
        self.forest.detach(slot);
        let node = self.forest.node(slot);
        self.once -= u32::from(node.class() < TWICE);
        self.len -= 1;
        if why == Removed::Evicted {
            self.memory.add(node.tag, node.class(), node.used(), self.curves.now());
        }
    }

    fn victim(&mut self, effort: u32, keep: &mut dyn FnMut(u32) -> Keep) -> Option<u32> {
        for look in 0..effort {
            let slot = match (self.least(), self.forest.held()) {
                (None, None) => continue,
                (Some(slot), None) => slot,
                (least, Some(held)) if look == 0 || least.is_none() => held,
                (least, _) => least?,
            };
            if keep(slot) == Keep::Take {
                return Some(slot);
            }
            self.forest.hold(slot);
        }
        None
    }

    fn warm(&self, slot: u32) -> u64 {
        self.forest.warm(slot)
    }

    fn len(&self) -> usize {
        self.len as usize
    }
}

#[cfg(test)]
mod tests {
    use alloc::vec::Vec;

    use super::*;
    use crate::rng::mix;

    fn filled(entries: u32) -> Density {
        let mut density = Density::default();
        (0..entries).for_each(|slot| density.insert(slot, mix(slot.into())));
        density
    }

    fn evict(density: &mut Density) -> u32 {
        let slot = density.victim(8, &mut |_| Keep::Take).expect("nothing is held");
        density.remove(slot, Removed::Evicted);
        slot
    }

    fn uses(density: &Density, slot: u32) -> u8 {
        density.forest.node(slot).uses
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
    fn the_first_scan_does_not_drive_out_what_was_read() {
        let mut density = filled(200);
        for round in 0..2_000 {
            density.touch(round % 150);
        }
        for key in 1_000..1_150 {
            let slot = evict(&mut density);
            density.insert(slot, mix(key));
        }
        // A surge begins at an eighth of the entries above what is usual.
        let kept = (0..150).filter(|&slot| uses(&density, slot) > 1).count();
        assert!(kept >= 150 - 200 / 8 - 10, "{kept}");
    }

    #[test]
    fn who_comes_back_late_is_counted_up_to_three_uses() {
        let mut density = filled(16);
        let mut back = |after: u64| {
            density.remove(0, Removed::Evicted);
            (0..after).for_each(|_| density.touch(1));
            density.insert(0, mix(0));
            uses(&density, 0)
        };
        assert_eq!([back(1_000), back(1_000), back(1_000), back(10)], [2, 3, 3, 4]);
    }

    #[test]
    fn an_entry_that_was_dropped_is_new_again() {
        let mut density = filled(16);
        density.remove(3, Removed::Dropped);
        density.insert(3, mix(3));
        assert_eq!(uses(&density, 3), 1);
    }

    #[test]
    fn chains_go_from_their_ends_and_what_they_share_goes_last() {
        let mut density = filled(40);
        // Two chains that share the first four: 0-1-2-3, and behind it 4 … 9, or 40 … 45.
        (0..10).for_each(|slot| density.touch(slot));
        (0..4).for_each(|slot| density.touch(slot));
        (40..46).for_each(|slot| density.insert(slot, mix(slot.into())));
        density.touch(39);
        let order: Vec<u32> = (0..45).map(|_| evict(&mut density)).collect();
        let at = |slot| order.iter().position(|&other| other == slot).expect("it went");
        assert!((0..3).chain(4..9).chain(40..45).all(|slot| at(slot + 1) < at(slot)), "{order:?}");
        assert!(at(4) < at(3) && at(40) < at(3), "{order:?}");
    }

    #[test]
    fn a_link_that_was_missed_is_found_when_the_order_comes_again() {
        let mut density = filled(16);
        density.touch(5);
        assert_eq!(density.forest.node(5).parent(), NONE, "it followed another one now");
        (4..6).for_each(|slot| density.touch(slot));
        assert_eq!(density.forest.node(5).parent(), NONE, "once may be by chance");
        density.touch(0);
        (4..6).for_each(|slot| density.touch(slot));
        assert_eq!(density.forest.node(5).parent(), 4);
    }

    #[test]
    fn the_first_of_a_batch_keeps_what_it_followed_and_gains_nothing() {
        let mut density = filled(16);
        density.touch(9);
        density.begin_batch();
        (4..6).for_each(|slot| density.touch(slot));
        assert_eq!(density.forest.node(4).parent(), 3, "it is not known to follow another one");
        density.begin_batch();
        density.insert(16, 16);
        density.insert(17, 17);
        assert_eq!(density.forest.node(16).parent(), NONE, "another caller read entry 5");
        assert_eq!(density.forest.node(17).parent(), 16);
    }

    #[test]
    fn a_loop_is_no_circle() {
        let mut density = filled(8);
        for _ in 0..10 {
            (0..8).for_each(|slot| density.touch(slot));
        }
        let mut order: Vec<u32> = (0..8).map(|_| evict(&mut density)).collect();
        order.sort_unstable();
        assert_eq!(order, [0, 1, 2, 3, 4, 5, 6, 7]);
    }

    #[test]
    fn what_follows_an_entry_that_was_given_up_at_once_goes_first() {
        let mut density = filled(64);
        (0..64).for_each(|slot| density.touch(slot));
        (64..67).for_each(|slot| density.insert(slot, mix(slot.into())));
        let lose = |density: &mut Density| {
            density.insert(67, mix(67));
            density.remove(67, Removed::Evicted);
            density.insert(67, mix(68));
        };
        lose(&mut density);
        assert_eq!(density.victim(8, &mut |_| Keep::Take), Some(67));
        density.touch(67);
        assert_ne!(density.victim(8, &mut |_| Keep::Take), Some(67), "it is of use after all");
        density.remove(67, Removed::Dropped);
        density.touch(0);
        lose(&mut density);
        assert_eq!(density.forest.orphan(), None, "two stores may be of two requests");
    }
}
