//! Slots with generational ids: O(1) insert, look-up and removal; a stale id finds nothing.

use alloc::vec::Vec;
use core::marker::PhantomData;
use core::num::NonZeroU32;

use crate::id::Id;

const NONE: u32 = u32::MAX;

/// A table whose keys are ids of type `I`. Slots are used again, generations are not.
#[derive(Clone, Debug)]
pub struct Slab<I, T> {
    slots: Vec<Slot<T>>,
    free: u32,
    len: usize,
    /// The first generation of every slot.
    first: NonZeroU32,
    kind: PhantomData<I>,
}

#[derive(Clone, Debug)]
struct Slot<T> {
    generation: NonZeroU32,
    value: Entry<T>,
}

#[derive(Clone, Debug)]
enum Entry<T> {
    Full(T),
    /// The next free slot.
    Free(u32),
}

impl<I, T> Default for Slab<I, T> {
    fn default() -> Self {
        Self::starting(NonZeroU32::MIN)
    }
}

impl<I, T> Slab<I, T> {
    /// An empty table whose ids begin with generation `first`: tables that begin far apart share no id for long.
    pub const fn starting(first: NonZeroU32) -> Self {
        Self { slots: Vec::new(), free: NONE, len: 0, first, kind: PhantomData }
    }
}

impl<I: Id, T> Slab<I, T> {
    /// An empty table with room for `capacity` values before it allocates again.
    pub fn with_capacity(capacity: usize) -> Self {
        Self { slots: Vec::with_capacity(capacity), ..Self::default() }
    }

    /// How many values there are.
    pub const fn len(&self) -> usize {
        self.len
    }

    /// Whether there are none.
    pub const fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// One more than the highest slot ever used: `index()` of every live id is below.
    pub fn slots(&self) -> usize {
        self.slots.len()
    }

    /// The id that the next [`insert`](Self::insert) will give.
    pub fn next_id(&self) -> I {
        if self.free == NONE {
            return I::new(self.slots.len() as u32, self.first);
        }
        I::new(self.free, self.slots[self.free as usize].generation)
    }

    /// Puts `value` in. Amortised O(1).
    ///
    /// # Panics
    /// When 2³² − 1 slots are in use.
    pub fn insert(&mut self, value: T) -> I {
        let id = self.next_id();
        if self.free == NONE {
            assert!(self.slots.len() < NONE as usize, "slab is full");
            self.slots.push(Slot { generation: id.generation(), value: Entry::Full(value) });
        } else {
            let slot = &mut self.slots[id.index()];
            if let Entry::Free(next) = slot.value {
                self.free = next;
            }
            slot.value = Entry::Full(value);
        }
        self.len += 1;
        id
    }

    /// The value of `id`, unless it was removed.
    #[inline]
    pub fn get(&self, id: I) -> Option<&T> {
        match self.slots.get(id.index()) {
            Some(Slot { generation, value: Entry::Full(value) }) if *generation == id.generation() => {
                Some(value)
            }
            _ => None,
        }
    }

    /// The value of `id`, to change.
    #[inline]
    pub fn get_mut(&mut self, id: I) -> Option<&mut T> {
        match self.slots.get_mut(id.index()) {
            Some(Slot { generation, value: Entry::Full(value) }) if *generation == id.generation() => {
                Some(value)
            }
            _ => None,
        }
    }

    /// Takes the value of `id` out. Its slot is used again under another generation; a slot whose generations are
    /// used up is retired.
    pub fn remove(&mut self, id: I) -> Option<T> {
        let slot = self.slots.get_mut(id.index())?;
        if slot.generation != id.generation() || matches!(slot.value, Entry::Free(_)) {
            return None;
        }
        let entry = core::mem::replace(&mut slot.value, Entry::Free(NONE));
        if let Some(next) = slot.generation.checked_add(1) {
            slot.generation = next;
            slot.value = Entry::Free(self.free);
            self.free = id.index() as u32;
        }
        self.len -= 1;
        match entry {
            Entry::Full(value) => Some(value),
            Entry::Free(_) => None,
        }
    }

    /// The live id in slot `index`.
    pub fn id_at(&self, index: usize) -> Option<I> {
        match self.slots.get(index) {
            Some(Slot { generation, value: Entry::Full(_) }) => Some(I::new(index as u32, *generation)),
            _ => None,
        }
    }

    /// All values, by slot.
    pub fn iter(&self) -> impl Iterator<Item = (I, &T)> {
        self.slots.iter().enumerate().filter_map(|(index, slot)| match &slot.value {
            Entry::Full(value) => Some((I::new(index as u32, slot.generation), value)),
            Entry::Free(_) => None,
        })
    }

    /// All values, by slot, to change.
    pub fn iter_mut(&mut self) -> impl Iterator<Item = (I, &mut T)> {
        self.slots.iter_mut().enumerate().filter_map(|(index, slot)| match &mut slot.value {
            Entry::Full(value) => Some((I::new(index as u32, slot.generation), value)),
            Entry::Free(_) => None,
        })
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::id::OpId;

    #[test]
    fn a_stale_id_finds_nothing() {
        let mut slab: Slab<OpId, u32> = Slab::default();
        let a = slab.insert(1);
        assert_eq!(slab.remove(a), Some(1));
        let b = slab.insert(2);
        assert_eq!(a.index(), b.index());
        assert_eq!((slab.get(a), slab.get(b)), (None, Some(&2)));
        assert_eq!(slab.remove(a), None);
        assert_eq!(slab.len(), 1);
    }

    #[test]
    fn next_id_tells_the_truth() {
        let mut slab: Slab<OpId, u32> = Slab::default();
        for n in 0..100 {
            let next = slab.next_id();
            assert_eq!(slab.insert(n), next);
            if n % 3 == 0 {
                slab.remove(next);
            }
        }
        assert_eq!(slab.iter().count(), slab.len());
    }

    #[test]
    fn a_slot_without_generations_is_retired() {
        let mut slab: Slab<OpId, u32> = Slab::default();
        let first = slab.insert(0);
        slab.slots[first.index()].generation = NonZeroU32::MAX;
        let last = slab.id_at(0).unwrap();
        assert_eq!(slab.remove(last), Some(0));
        assert_eq!(slab.insert(1).index(), 1);
    }

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn behaves_like_a_list(steps in prop::collection::vec((any::<bool>(), any::<usize>()), 1..200)) {
            let (mut slab, mut model, mut dead) = (Slab::<OpId, usize>::default(), Vec::new(), Vec::new());
            for (n, (grow, which)) in steps.into_iter().enumerate() {
                if grow || model.is_empty() {
                    let id = slab.insert(n);
                    prop_assert!(!model.contains(&(id, n)) && !dead.contains(&id), "an id is given out once");
                    model.push((id, n));
                } else {
                    let (id, value) = model.swap_remove(which % model.len());
                    prop_assert_eq!(slab.remove(id), Some(value));
                    dead.push(id);
                }
                prop_assert_eq!(slab.len(), model.len());
                model.sort_unstable_by_key(|(id, _)| id.index());
                prop_assert!(slab.iter().map(|(id, value)| (id, *value)).eq(model.iter().copied()));
                prop_assert!(dead.iter().all(|&id| slab.get(id).is_none()));
            }
        }
    }
}
