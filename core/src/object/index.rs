//! The hash index: from a keyed 64-bit hash to the slot of an object. Grows one page at a time.
//!
//! Extendible hashing: a directory maps the upper bits of a hash to a page, a page is a small open table that knows
//! how many of those bits its entries share. A full page splits in two; a directory that is too coarse doubles, which
//! copies four bytes a page. So no insertion moves more than one page and one directory, however many objects there
//! are (at 10 M objects about 700 entries and 64 KiB).
//!
//! An entry is eight bytes: the hash's upper half, which is all that is used of it, and the slot. The caller compares keys; one look-up in 2³² ÷ *n*
//! compares one key in vain. The hash must be keyed by a secret, or peers can fill one page at will.

use alloc::vec;
use alloc::vec::Vec;

use crate::chunks::Chunks;

/// Entries of a page: two pages of memory.
const PAGE: usize = 1_024;
const MASK: u32 = PAGE as u32 - 1;
/// Pages that are allocated together: 64 KiB.
const CHUNK: usize = 8;
/// A page with this many entries splits: three quarters, so that a miss looks at eight entries on average.
const SPLIT_AT: u16 = (PAGE / 4 * 3) as u16;
/// The most bits that the directory uses: the ten below say where in its page an entry belongs.
const MAX_DEPTH: u8 = 22;
const EMPTY: u64 = 0;

/// From hashes to slots (S0A-074).
#[derive(Debug)]
pub(crate) struct Index {
    /// By the upper `depth` bits of the hash: the number of the page.
    directory: Vec<u32>,
    pages: Chunks<Page, CHUNK>,
    facts: Vec<Facts>,
    depth: u8,
    len: usize,
}

/// Hash above, slot plus one below; zero for none. Linear probing without tombstones.
#[derive(Debug)]
#[repr(align(64))]
struct Page([u64; PAGE]);

/// What is known of a page.
#[derive(Clone, Copy, Debug)]
struct Facts {
    len: u16,
    /// How many upper bits all hashes in it share.
    depth: u8,
}

/// The page that an entry belongs to is full and cannot be split: 2²² pages are in use.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct IndexFull;

const fn entry(hash: u64, slot: u32) -> u64 {
    hash & 0xffff_ffff_0000_0000 | (slot as u64 + 1)
}

const fn slot_of(entry: u64) -> u32 {
    (entry as u32).wrapping_sub(1)
}

const fn home(entry: u64) -> u32 {
    (entry >> 32) as u32 & MASK
}

impl Index {
    /// An empty index.
    pub(crate) fn new() -> Self {
        let mut pages = Chunks::new();
        pages.reach(0, Page::empty);
        Self { directory: vec![0], pages, facts: vec![Facts { len: 0, depth: 0 }], depth: 0, len: 0 }
    }

    /// How many entries there are.
    #[cfg(test)]
    pub(crate) const fn len(&self) -> usize {
        self.len
    }

    /// The slot with this hash for which `is_it` holds.
    #[inline]
    pub(crate) fn find(&self, hash: u64, mut is_it: impl FnMut(u32) -> bool) -> Option<u32> {
        let page = &self.pages[self.page_of(hash)].0;
        let wanted = (hash >> 32) as u32;
        let mut at = wanted & MASK;
        loop {
            let entry = page[at as usize];
            if entry == EMPTY {
                return None;
            }
            if (entry >> 32) as u32 == wanted && is_it(slot_of(entry)) {
                return Some(slot_of(entry));
            }
            at = (at + 1) & MASK;
        }
    }

    /// The entry with which a search for `hash` begins: a read without a branch that depends on it, so that several
    /// of them overlap.
    #[inline]
    pub(crate) fn first(&self, hash: u64) -> u64 {
        self.pages[self.page_of(hash)].0[home(hash) as usize]
    }

    /// Enters `slot` under `hash`. The caller knows that it is not there.
    pub(crate) fn insert(&mut self, hash: u64, slot: u32) -> Result<(), IndexFull> {
        let mut page = self.page_of(hash);
        // Two rounds are rare: all entries of a full page went to the same half.
        while self.facts[page as usize].len >= SPLIT_AT {
            let Facts { len, depth } = self.facts[page as usize];
            if depth == MAX_DEPTH {
                if usize::from(len) + 1 == PAGE {
                    return Err(IndexFull);
                }
                break;
            }
            self.split(page);
            page = self.page_of(hash);
        }
        self.put(page, entry(hash, slot));
        self.len += 1;
        Ok(())
    }

    /// Takes `slot` out; says whether it was there.
    pub(crate) fn remove(&mut self, hash: u64, slot: u32) -> bool {
        let page = self.page_of(hash);
        let found = self.pages[page].take(entry(hash, slot));
        self.len -= usize::from(found);
        self.facts[page as usize].len -= u16::from(found);
        found
    }

    #[inline]
    fn page_of(&self, hash: u64) -> u32 {
        // In two steps: a shift by all 64 bits would not be one.
        self.directory[(hash >> 1 >> (63 - self.depth)) as usize]
    }

    fn put(&mut self, page: u32, entry: u64) {
        self.pages[page].put(entry);
        self.facts[page as usize].len += 1;
    }

    fn split(&mut self, page: u32) {
        if self.facts[page as usize].depth == self.depth {
            self.directory = self.directory.iter().flat_map(|&page| [page, page]).collect();
            self.depth += 1;
        }
        let facts = Facts { len: 0, depth: self.facts[page as usize].depth + 1 };
        let sibling = self.facts.len() as u32;
        self.pages.reach(sibling, Page::empty);
        self.facts[page as usize] = facts;
        self.facts.push(facts);
        let old = core::mem::replace(&mut self.pages[page], Page::empty());
        let first = old.0.iter().copied().find(|&entry| entry != EMPTY).unwrap_or(EMPTY);
        self.point_upper_half(first, facts.depth, sibling);
        for entry in old.0.iter().copied().filter(|&entry| entry != EMPTY) {
            self.put(self.page_of(entry), entry);
        }
    }

    /// Lets the upper half of the directory's range of `member`'s page point to `sibling`.
    fn point_upper_half(&mut self, member: u64, depth: u8, sibling: u32) {
        let prefix = (member >> (64 - u32::from(depth))) | 1;
        let width = 1_usize << (self.depth - depth);
        let start = prefix as usize * width;
        self.directory[start..start + width].fill(sibling);
    }
}

impl Page {
    const fn empty() -> Self {
        Self([EMPTY; PAGE])
    }

    fn put(&mut self, entry: u64) {
        let mut at = home(entry);
        while self.0[at as usize] != EMPTY {
            at = (at + 1) & MASK;
        }
        self.0[at as usize] = entry;
    }

    fn take(&mut self, entry: u64) -> bool {
        let mut at = home(entry);
        while self.0[at as usize] != entry {
            if self.0[at as usize] == EMPTY {
                return false;
            }
            at = (at + 1) & MASK;
        }
        self.close(at);
        true
    }

    /// Moves up what would no longer be found behind the hole at `at`.
    fn close(&mut self, mut hole: u32) {
        let mut at = hole;
        loop {
            at = (at + 1) & MASK;
            let entry = self.0[at as usize];
            if entry == EMPTY {
                break;
            }
            // The entry may move if its home is not between the hole and itself.
            if at.wrapping_sub(home(entry)) & MASK >= at.wrapping_sub(hole) & MASK {
                self.0[hole as usize] = entry;
                hole = at;
            }
        }
        self.0[hole as usize] = EMPTY;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rng::{Rng, mix};
    use alloc::collections::BTreeMap;

    #[test]
    fn behaves_like_a_map() {
        let mut rng = Rng::new(3);
        let (mut index, mut model) = (Index::new(), BTreeMap::new());
        for step in 0..200_000_u64 {
            let slot = rng.below(20_000) as u32;
            // Few distinct upper halves, so that pages hold equal ones.
            let hash = mix(u64::from(slot) / 3) & 0xffff_ffff_0000_0000 | step;
            if model.remove(&slot).is_some() {
                assert!(index.remove(hash, slot));
            } else {
                assert!(!index.remove(hash, slot));
                index.insert(hash, slot).unwrap();
                model.insert(slot, hash);
            }
            assert_eq!(index.len(), model.len());
        }
        for slot in 0..20_000 {
            let found = index.find(mix(u64::from(slot) / 3), |s| s == slot);
            assert_eq!(found.is_some(), model.contains_key(&slot), "{slot}");
        }
    }

    #[test]
    fn grows_page_by_page() {
        let mut index = Index::new();
        for slot in 0..200_000 {
            let pages = index.facts.len();
            index.insert(mix(u64::from(slot)), slot).unwrap();
            assert!(index.facts.len() <= pages + 1, "one command split more than one page");
        }
        assert!((0..200_000).all(|slot| index.find(mix(u64::from(slot)), |s| s == slot).is_some()));
        let bytes = index.facts.len() * PAGE * 8 + index.directory.len() * 4;
        assert!(bytes / 200_000 < 24, "{} bytes an entry", bytes / 200_000);
    }

    #[test]
    fn equal_hashes_fill_a_page_and_no_more() {
        let mut index = Index::new();
        let full = (0..).find(|&slot| index.insert(u64::MAX, slot).is_err()).unwrap();
        assert_eq!(full as usize, PAGE - 1);
        assert_eq!(index.find(u64::MAX, |slot| slot == 7), Some(7));
        assert_eq!(index.find(u64::MAX, |_| false), None);
        assert!(index.remove(u64::MAX, 7));
        assert_eq!(index.insert(u64::MAX, 7), Ok(()));
    }
}
