//! Tables of numbered values and of values with generational ids.

use core::marker::PhantomData;
use core::num::NonZeroU32;
use core::ops::{Index, IndexMut};

use crate::chunks::Chunks;
use crate::id::Id;

/// No slot.
pub(crate) const NONE: u32 = u32::MAX;

/// Few, so that a growth step is short; many, so that the array of chunks stays in the cache.
const CHUNK: usize = 1 << 11;

/// Values by number.
#[derive(Debug)]
pub(crate) struct Pool<T> {
    chunks: Chunks<T, CHUNK>,
    fresh: u32,
}

impl<T> Default for Pool<T> {
    fn default() -> Self {
        Self { chunks: Chunks::new(), fresh: 0 }
    }
}

impl<T> Pool<T> {
    /// One more than the highest number ever used.
    pub(crate) const fn slots(&self) -> u32 {
        self.fresh
    }

    #[inline]
    pub(crate) fn get(&self, slot: u32) -> Option<&T> {
        self.chunks.get(slot)
    }

    #[inline]
    pub(crate) fn get_mut(&mut self, slot: u32) -> Option<&mut T> {
        self.chunks.get_mut(slot)
    }

    /// A number never used before; `None` when 2³² − 1 are in use. `vacant` fills the rest of a new chunk.
    pub(crate) fn add(&mut self, vacant: fn() -> T) -> Option<u32> {
        let slot = self.fresh;
        if slot == NONE {
            return None;
        }
        self.chunks.reach(slot, vacant);
        self.fresh += 1;
        Some(slot)
    }
}

impl<T> Index<u32> for Pool<T> {
    type Output = T;

    #[inline]
    fn index(&self, slot: u32) -> &T {
        &self.chunks[slot]
    }
}

impl<T> IndexMut<u32> for Pool<T> {
    #[inline]
    fn index_mut(&mut self, slot: u32) -> &mut T {
        &mut self.chunks[slot]
    }
}

/// Values with generational ids, as [`crate::slab::Slab`] keeps them, in chunks.
#[derive(Debug)]
pub(crate) struct Table<I, T> {
    slots: Pool<Slot<T>>,
    free: u32,
    len: usize,
    /// The first generation of every slot.
    first: NonZeroU32,
    kind: PhantomData<I>,
}

/// Two cache lines, that lie in one page, if the value takes no more.
#[derive(Debug)]
#[repr(align(128))]
struct Slot<T> {
    generation: NonZeroU32,
    /// The next free slot, of one that is.
    next: u32,
    value: Option<T>,
}

impl<T> Slot<T> {
    const fn vacant() -> Self {
        Self { generation: NonZeroU32::MIN, next: NONE, value: None }
    }
}

impl<I, T> Default for Table<I, T> {
    fn default() -> Self {
        Self::starting(NonZeroU32::MIN)
    }
}

impl<I, T> Table<I, T> {
    /// An empty table whose ids begin with generation `first`: tables that begin far apart share no id for long.
    pub(crate) fn starting(first: NonZeroU32) -> Self {
        Self { slots: Pool::default(), free: NONE, len: 0, first, kind: PhantomData }
    }
}

impl<I: Id, T> Table<I, T> {
    /// How many values there are.
    #[cfg(test)]
    pub(crate) const fn len(&self) -> usize {
        self.len
    }

    /// One more than the highest slot ever used.
    pub(crate) const fn slots(&self) -> u32 {
        self.slots.slots()
    }

    /// Puts `value` in; `None` when all slots are used up.
    pub(crate) fn insert(&mut self, value: T) -> Option<I> {
        let fresh = self.free == NONE;
        let index = if fresh { self.slots.add(Slot::vacant)? } else { self.free };
        let slot = &mut self.slots[index];
        if fresh {
            slot.generation = self.first;
        } else {
            self.free = slot.next;
        }
        slot.value = Some(value);
        self.len += 1;
        Some(I::new(index, slot.generation))
    }

    /// Takes the value in slot `index` out. A slot whose generations are used up is retired.
    pub(crate) fn remove(&mut self, index: u32) -> Option<T> {
        let slot = self.slots.get_mut(index)?;
        let value = slot.value.take()?;
        if let Some(next) = slot.generation.checked_add(1) {
            slot.generation = next;
            slot.next = self.free;
            self.free = index;
        }
        self.len -= 1;
        Some(value)
    }

    /// The value in slot `index`, with its id.
    #[inline]
    pub(crate) fn at(&self, index: u32) -> Option<(I, &T)> {
        let slot = self.slots.get(index)?;
        slot.value.as_ref().map(|value| (I::new(index, slot.generation), value))
    }

    /// The value in slot `index`, to change.
    #[inline]
    pub(crate) fn at_mut(&mut self, index: u32) -> Option<&mut T> {
        self.slots.get_mut(index)?.value.as_mut()
    }

    /// The slot of `id`, unless its value was removed.
    #[inline]
    pub(crate) fn slot(&self, id: I) -> Option<u32> {
        let index = id.index() as u32;
        let slot = self.slots.get(index)?;
        (slot.generation == id.generation() && slot.value.is_some()).then_some(index)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::id::ObjectId;
    use alloc::vec::Vec;

    #[test]
    fn a_stale_id_finds_nothing() {
        let mut table: Table<ObjectId, u64> = Table::default();
        let ids: Vec<ObjectId> = (0..3_000).map(|n| table.insert(n).unwrap()).collect();
        assert_eq!(table.remove(7), Some(7));
        assert_eq!((table.slot(ids[7]), table.remove(7)), (None, None));
        let again = table.insert(9).unwrap();
        assert_eq!((again.index(), table.slot(again)), (7, Some(7)));
        assert!(again != ids[7] && table.at(7) == Some((again, &9)));
        assert_eq!((table.len(), table.slots()), (3_000, 3_000));
        assert!(table.at(3_000).is_none() && table.at(u32::MAX).is_none());
    }

    #[test]
    fn tables_that_begin_apart_share_no_id() {
        let first = NonZeroU32::new(77).unwrap();
        let (mut a, mut b) = (Table::<ObjectId, u8>::default(), Table::starting(first));
        let (id, other) = (a.insert(1).unwrap(), b.insert(1).unwrap());
        assert_eq!((id.index(), id == other, b.slot(id)), (other.index(), false, None));
        assert_eq!(b.remove(0), Some(1));
        assert_eq!(b.insert(2).unwrap().generation().get(), 78);
    }

    #[test]
    fn a_slot_without_generations_is_retired() {
        let mut table: Table<ObjectId, u32> = Table::default();
        table.insert(1);
        table.slots[0].generation = NonZeroU32::MAX;
        assert_eq!(table.remove(0), Some(1));
        assert_eq!(table.insert(2).unwrap().index(), 1);
    }
}
