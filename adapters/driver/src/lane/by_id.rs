//! Values by ids that somebody else gives out.

use springtide_core::id::Id;

/// A table by the slots of ids: O(1), no hashing, as large as the largest slot in use. A stale id finds nothing.
#[derive(Debug)]
pub(super) struct ById<I, T>(Vec<Option<(I, T)>>);

impl<I, T> Default for ById<I, T> {
    fn default() -> Self {
        Self(Vec::new())
    }
}

impl<I: Id, T> ById<I, T> {
    /// Puts `value` in place of whatever was in the id's slot.
    pub(super) fn insert(&mut self, id: I, value: T) {
        if self.0.len() <= id.index() {
            self.0.resize_with(id.index() + 1, || None);
        }
        self.0[id.index()] = Some((id, value));
    }

    pub(super) fn get(&self, id: I) -> Option<&T> {
        self.0.get(id.index())?.as_ref().filter(|(owner, _)| *owner == id).map(|(_, value)| value)
    }

    pub(super) fn get_mut(&mut self, id: I) -> Option<&mut T> {
        self.0.get_mut(id.index())?.as_mut().filter(|(owner, _)| *owner == id).map(|(_, value)| value)
    }

    pub(super) fn remove(&mut self, id: I) -> Option<T> {
        let slot = self.0.get_mut(id.index())?;
        slot.take_if(|(owner, _)| *owner == id).map(|(_, value)| value)
    }

    /// One past the highest slot.
    pub(super) fn slots(&self) -> usize {
        self.0.len()
    }

    /// What is in slot `index`.
    pub(super) fn at(&self, index: usize) -> Option<(I, &T)> {
        self.0.get(index)?.as_ref().map(|(id, value)| (*id, value))
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = (I, &T)> {
        self.0.iter().flatten().map(|(id, value)| (*id, value))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use springtide_core::id::PathId;

    #[test]
    fn a_stale_id_finds_nothing() {
        let old = PathId::from_bits(1 << 32 | 3).unwrap();
        let new = PathId::from_bits(2 << 32 | 3).unwrap();
        let mut table = ById::default();
        table.insert(old, 'a');
        table.insert(new, 'b');
        assert_eq!((table.get(old), table.get(new)), (None, Some(&'b')));
        assert_eq!((table.remove(old), table.remove(new)), (None, Some('b')));
        assert_eq!((table.slots(), table.iter().count()), (4, 0));
    }
}
