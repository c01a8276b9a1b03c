//! One number for all that happened.

use springtide_core::rng::mix;

/// Folds what happens; equal histories give equal numbers.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Digest(u64);

impl Digest {
    /// Takes one more number in.
    pub const fn add(&mut self, word: u64) {
        self.0 = mix(self.0.rotate_left(5) ^ word.wrapping_add(0x9e37_79b9_7f4a_7c15));
    }

    /// The number.
    pub const fn value(self) -> u64 {
        self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn order_counts() {
        let of = |words: &[u64]| {
            let mut digest = Digest::default();
            words.iter().for_each(|&word| digest.add(word));
            digest
        };
        assert_eq!(of(&[1, 2]), of(&[1, 2]));
        assert_ne!(of(&[1, 2]), of(&[2, 1]));
        assert_ne!(of(&[0]).value(), of(&[]).value());
    }
}
