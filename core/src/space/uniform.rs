//! The slab allocator: pages, each carved into slots of one length. For small values of few different lengths.
//!
//! Ten million small extents cost the offset allocator 32 bytes each; here a slot costs one bit. The price is waste,
//! which [`UniformAllocator::waste`] reports: a slot may be longer than its value, and a page's free slots serve
//! only values of its own size class until the page is empty.

use alloc::vec::Vec;

use super::bins::{Bin, Bins, Head};
use super::{Handle, Misuse, NONE, granules_of};
use crate::range::{Extent, GRANULE};

/// Bytes that hold no value and cannot hold any value.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Waste {
    /// Bytes between the end of a live extent and the end of its slot.
    pub padding: u64,
    /// Free slots, and ends of pages too short for a slot, in pages that are in use: only values of the pages' own
    /// size classes could use them.
    pub partial: u64,
}

/// Gives out slots of one segment.
///
/// Size classes are exact up to 4032 bytes and at most a thirty-second apart above; a page takes the class of the
/// first value that needs it, and gives it up when its last value goes. Memory: one bit a slot and about 70 bytes a
/// page. O(1), but for a scan of the page's bitmap, 64 slots a step (S0A-012).
#[derive(Clone, Debug)]
pub struct UniformAllocator {
    pages: Vec<Page>,
    /// By class: the pages that have a free slot.
    classes: Bins,
    /// The first page without a class.
    empty: u32,
    /// Granules a page.
    page: u64,
    used: u64,
    padding: u64,
    /// Granules in pages that have a class.
    carved: u64,
}

#[derive(Clone, Debug)]
struct Page {
    /// The class; `None` if the page is empty.
    class: Option<Bin>,
    slots: u32,
    used: u32,
    /// No word of the bitmap below this one has a free slot.
    hint: u32,
    prev: u32,
    next: u32,
    /// Granules of padding in this page.
    padding: u64,
    /// One bit a slot: set if live.
    bits: Vec<u64>,
}

impl UniformAllocator {
    /// An allocator for `len` bytes in pages of `page` bytes, both multiples of the granule; `None` unless `len` is
    /// a multiple of `page` and there are fewer than 2³² − 1 pages (S0A-049).
    pub fn new(len: u64, page: u64) -> Option<Self> {
        if page == 0 || !page.is_multiple_of(GRANULE) || !len.is_multiple_of(page) {
            return None;
        }
        let count = u32::try_from(len / page).ok().filter(|&count| count < NONE)?;
        let pages = (1..=count).map(|next| Page::empty(if next == count { NONE } else { next }));
        let empty = if count == 0 { NONE } else { 0 };
        let (pages, page) = (pages.collect(), page / GRANULE);
        Some(Self { pages, classes: Bins::new(), empty, page, used: 0, padding: 0, carved: 0 })
    }

    /// `len` bytes, rounded up to the granule; zero counts as one. `None` if neither the size class nor the segment
    /// has room.
    pub fn allocate(&mut self, len: u64) -> Option<(Extent, Handle)> {
        let want = granules_of(len).filter(|&want| want <= self.page)?;
        let class = Bin::at_least(want);
        let mut id = self.classes.head(class).id;
        if id == NONE {
            id = self.carve(class)?;
        }
        let slot_len = self.slot_len(class);
        let page = &mut self.pages[id as usize];
        let slot = page.take(slot_len - want);
        if page.used == page.slots {
            self.unlist(id, class);
        }
        self.used += slot_len;
        self.padding += slot_len - want;
        let offset = u64::from(id) * self.page + slot * slot_len;
        Some((Extent::new(offset * GRANULE, want * GRANULE)?, Handle(id)))
    }

    /// Gives back what [`allocate`](Self::allocate) gave: both values, as they were.
    ///
    /// # Errors
    /// [`Misuse`] if no live slot of this length begins there; nothing changes.
    pub fn free(&mut self, extent: Extent, handle: Handle) -> Result<(), Misuse> {
        let (id, class, slot) = self.locate(extent, handle).ok_or(Misuse)?;
        let slot_len = self.slot_len(class);
        let page = &mut self.pages[id as usize];
        let was_full = page.used == page.slots;
        let padding = page.put_back(slot, slot_len - extent.len() / GRANULE).ok_or(Misuse)?;
        let is_empty = page.used == 0;
        self.used -= slot_len;
        self.padding -= padding;
        match (was_full, is_empty) {
            (true, false) => self.list(id, class),
            (false, true) => {
                self.unlist(id, class);
                self.retire(id);
            }
            (true, true) => self.retire(id),
            (false, false) => {}
        }
        Ok(())
    }

    /// Bytes that can be granted.
    pub fn capacity(&self) -> u64 {
        self.pages.len() as u64 * self.page * GRANULE
    }

    /// Bytes in live slots: the live extents and their padding.
    pub const fn used(&self) -> u64 {
        self.used * GRANULE
    }

    /// What is lost now.
    pub const fn waste(&self) -> Waste {
        Waste { padding: self.padding * GRANULE, partial: (self.carved - self.used) * GRANULE }
    }

    /// The longest value that fits into an empty segment: a page.
    pub const fn longest(&self) -> u64 {
        self.page * GRANULE
    }

    /// The longest value that fits now, exactly. O(1).
    pub fn largest_hole(&self) -> u64 {
        if self.empty != NONE {
            return self.page * GRANULE;
        }
        self.classes.last().map_or(0, |class| self.slot_len(class) * GRANULE)
    }

    /// The page, class and slot of a live extent, as far as they are plausible.
    fn locate(&self, extent: Extent, handle: Handle) -> Option<(u32, Bin, u64)> {
        let page = self.pages.get(handle.0 as usize)?;
        let class = page.class?;
        let slot_len = self.slot_len(class);
        let (offset, len) = (extent.offset() / GRANULE, extent.len() / GRANULE);
        let within = offset.checked_sub(u64::from(handle.0) * self.page)?;
        let whole =
            extent.offset().is_multiple_of(GRANULE) && extent.len().is_multiple_of(GRANULE) && len > 0;
        let slot = within / slot_len;
        let fits = within % slot_len == 0 && slot < u64::from(page.slots) && Bin::at_least(len) == class;
        (whole && fits).then_some((handle.0, class, slot))
    }

    /// Granules in a slot of `class`.
    fn slot_len(&self, class: Bin) -> u64 {
        class.floor().min(self.page)
    }

    /// Gives an empty page to `class`.
    fn carve(&mut self, class: Bin) -> Option<u32> {
        let id = self.empty;
        let slots = u32::try_from(self.page / self.slot_len(class)).ok()?;
        let page = self.pages.get_mut(id as usize)?;
        self.empty = page.next;
        page.class = Some(class);
        page.slots = slots;
        page.hint = 0;
        page.bits.clear();
        page.bits.resize(slots.div_ceil(64) as usize, 0);
        self.carved += self.page;
        self.list(id, class);
        Some(id)
    }

    /// Takes the class from page `id`, which is empty.
    fn retire(&mut self, id: u32) {
        let page = &mut self.pages[id as usize];
        page.class = None;
        page.next = self.empty;
        self.empty = id;
        self.carved -= self.page;
    }

    /// Puts page `id` first among those of `class` that have a free slot.
    fn list(&mut self, id: u32, class: Bin) {
        let head = self.classes.head(class).id;
        let page = &mut self.pages[id as usize];
        (page.prev, page.next) = (NONE, head);
        if let Some(next) = self.pages.get_mut(head as usize) {
            next.prev = id;
        }
        self.classes.set_head(class, Head { id, len: class.floor() });
    }

    /// Takes page `id` out of that list.
    fn unlist(&mut self, id: u32, class: Bin) {
        let Page { prev, next, .. } = self.pages[id as usize];
        if let Some(page) = self.pages.get_mut(next as usize) {
            page.prev = prev;
        }
        match self.pages.get_mut(prev as usize) {
            Some(page) => page.next = next,
            None if next == NONE => self.classes.set_head(class, Head::NONE),
            None => self.classes.set_head(class, Head { id: next, len: class.floor() }),
        }
    }
}

impl Page {
    const fn empty(next: u32) -> Self {
        Self { class: None, slots: 0, used: 0, hint: 0, prev: NONE, next, padding: 0, bits: Vec::new() }
    }

    /// Takes the first free slot; there is one.
    fn take(&mut self, padding: u64) -> u64 {
        let from = self.hint as usize;
        let words = &mut self.bits[from..];
        let at = words.iter().position(|&word| word != u64::MAX).expect("a listed page has a free slot");
        let bit = words[at].trailing_ones();
        words[at] |= 1 << bit;
        self.hint = (from + at) as u32;
        self.used += 1;
        self.padding += padding;
        (from + at) as u64 * 64 + u64::from(bit)
    }

    /// Frees `slot`; the padding that goes with it, or `None` if the slot was free or never had so much.
    fn put_back(&mut self, slot: u64, padding: u64) -> Option<u64> {
        let word = (slot / 64) as usize;
        let mask = 1 << (slot % 64);
        if self.bits[word] & mask == 0 || padding > self.padding {
            return None;
        }
        if self.used == 1 && padding != self.padding {
            return None;
        }
        self.bits[word] &= !mask;
        self.hint = self.hint.min(word as u32);
        self.used -= 1;
        self.padding -= padding;
        Some(padding)
    }
}

#[cfg(test)]
mod tests;
