//! The keys of one run.

use std::io::Write;

use springtide_core::id::Incarnation;

/// The keys of one run, by number; those below [`count`](Self::count) are stored.
#[derive(Clone, Debug)]
pub(super) struct Keys {
    prefix: String,
    count: u64,
}

impl Keys {
    /// None yet. `run` tells them from those of other runs.
    pub(super) fn new(run: Incarnation) -> Self {
        Self { prefix: format!("bench/{:016x}/", run.0 as u64), count: 0 }
    }

    /// What all of them begin with.
    pub(super) fn prefix(&self) -> &[u8] {
        self.prefix.as_bytes()
    }

    /// How many are stored.
    pub(super) const fn count(&self) -> u64 {
        self.count
    }

    /// `more` are stored now.
    pub(super) const fn add(&mut self, more: u64) {
        self.count += more;
    }

    /// Key `number`, in place of what `buffer` held: 39 bytes.
    pub(super) fn write<'a>(&self, number: u64, buffer: &'a mut Vec<u8>) -> &'a [u8] {
        buffer.clear();
        write!(buffer, "{}{number:016x}", self.prefix).expect("a vector takes all");
        buffer
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_differ_by_run_and_number() {
        let (a, b) = (Keys::new(Incarnation(1)), Keys::new(Incarnation(2)));
        let key = |keys: &Keys, number| keys.write(number, &mut vec![9; 99]).to_vec();
        assert_eq!(key(&a, 255), b"bench/0000000000000001/00000000000000ff");
        assert_ne!(key(&a, 255), key(&b, 255));
        assert!(key(&a, 255).starts_with(a.prefix()));
    }
}
