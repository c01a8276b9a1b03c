//! A table whose ids are given by the caller.

use core::num::NonZeroU32;

use springtide_core::id::Id;

/// Values by generational id. Memory grows with the highest index.
#[derive(Debug)]
pub(crate) struct Table<I, T> {
    slots: Vec<Option<(NonZeroU32, T)>>,
    kind: core::marker::PhantomData<I>,
}

impl<I, T> Default for Table<I, T> {
    fn default() -> Self {
        Self { slots: Vec::new(), kind: core::marker::PhantomData }
    }
}

impl<I: Id, T> Table<I, T> {
    /// Whether the slot of `id` holds a value, of whatever generation.
    pub(crate) fn is_taken(&self, id: I) -> bool {
        matches!(self.slots.get(id.index()), Some(Some(_)))
    }

    /// Puts `value` in, in place of whatever the slot held.
    pub(crate) fn insert(&mut self, id: I, value: T) {
        if self.slots.len() <= id.index() {
            self.slots.resize_with(id.index() + 1, || None);
        }
        self.slots[id.index()] = Some((id.generation(), value));
    }

    /// The value of `id`.
    #[inline]
    pub(crate) fn get(&self, id: I) -> Option<&T> {
        match self.slots.get(id.index()) {
            Some(Some((generation, value))) if *generation == id.generation() => Some(value),
            _ => None,
        }
    }

    /// The value of `id`, to change.
    #[inline]
    pub(crate) fn get_mut(&mut self, id: I) -> Option<&mut T> {
        match self.slots.get_mut(id.index()) {
            Some(Some((generation, value))) if *generation == id.generation() => Some(value),
            _ => None,
        }
    }

    /// All values.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &T> {
        self.slots.iter().flatten().map(|(_, value)| value)
    }

    /// Takes the value of `id` out.
    pub(crate) fn remove(&mut self, id: I) -> Option<T> {
        self.get(id)?;
        self.slots[id.index()].take().map(|(_, value)| value)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use springtide_core::id::RegionId;

    #[test]
    fn another_generation_finds_nothing() {
        let id = |generation| RegionId::new(3, NonZeroU32::new(generation).unwrap());
        let mut table = Table::default();
        table.insert(id(1), 'a');
        assert!(table.is_taken(id(2)));
        assert_eq!((table.get(id(1)), table.get(id(2))), (Some(&'a'), None));
        assert_eq!((table.remove(id(2)), table.remove(id(1)), table.remove(id(1))), (None, Some('a'), None));
        assert!(!table.is_taken(id(1)));
    }
}
