//! Things under ids that the caller chose: a vector by slot, whose generation is checked.

use springtide_core::id::Id;

/// Values under generational ids from outside.
#[derive(Debug)]
pub(crate) struct Table<I, T>(Vec<Option<(I, T)>>);

impl<I, T> Default for Table<I, T> {
    fn default() -> Self {
        Self(Vec::new())
    }
}

impl<I: Id, T> Table<I, T> {
    /// Puts `value` under `id`; gives it back if the slot is taken.
    pub(crate) fn insert(&mut self, id: I, value: T) -> Result<(), T> {
        if self.0.len() <= id.index() {
            self.0.resize_with(id.index() + 1, || None);
        }
        match &mut self.0[id.index()] {
            Some(_) => Err(value),
            free => {
                *free = Some((id, value));
                Ok(())
            }
        }
    }

    pub(crate) fn get(&self, id: I) -> Option<&T> {
        match self.0.get(id.index()) {
            Some(Some((there, value))) if *there == id => Some(value),
            _ => None,
        }
    }

    pub(crate) fn get_mut(&mut self, id: I) -> Option<&mut T> {
        match self.0.get_mut(id.index()) {
            Some(Some((there, value))) if *there == id => Some(value),
            _ => None,
        }
    }

    pub(crate) fn remove(&mut self, id: I) -> Option<T> {
        self.get(id)?;
        self.0[id.index()].take().map(|(_, value)| value)
    }

    /// Removes every value that `gone` names.
    pub(crate) fn purge(&mut self, gone: impl Fn(&T) -> bool) {
        for slot in &mut self.0 {
            slot.take_if(|(_, value)| gone(value));
        }
    }

    /// One more than the highest slot ever used.
    pub(crate) fn slots(&self) -> usize {
        self.0.len()
    }

    /// What is in slot `index`.
    pub(crate) fn at(&mut self, index: usize) -> Option<(I, &mut T)> {
        self.0.get_mut(index)?.as_mut().map(|(id, value)| (*id, value))
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = (I, &T)> {
        self.0.iter().flatten().map(|(id, value)| (*id, value))
    }

    pub(crate) fn iter_mut(&mut self) -> impl Iterator<Item = (I, &mut T)> {
        self.0.iter_mut().flatten().map(|(id, value)| (*id, value))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use springtide_core::id::RegionId;

    #[test]
    fn another_generation_finds_nothing() {
        let id = |generation: u64| RegionId::from_bits(generation << 32 | 3).unwrap();
        let mut table = Table::default();
        assert_eq!(table.insert(id(1), 'a'), Ok(()));
        assert_eq!(table.insert(id(2), 'b'), Err('b'));
        assert_eq!((table.get(id(1)), table.get(id(2))), (Some(&'a'), None));
        assert_eq!((table.remove(id(2)), table.remove(id(1))), (None, Some('a')));
        assert_eq!(table.insert(id(2), 'b'), Ok(()));
        assert_eq!(table.get(id(1)), None);
        assert_eq!(table.get_mut(id(2)), Some(&mut 'b'));
        assert_eq!(table.iter().count(), 1);
        table.purge(|&value| value == 'x');
        assert_eq!(table.slots(), 4);
        table.purge(|&value| value == 'b');
        assert_eq!((table.iter().count(), table.at(3)), (0, None));
    }
}
