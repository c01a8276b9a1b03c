//! Keys and names, checked once at the edge.

use core::fmt;

/// The longest key, in bytes. Keys may hold any bytes.
pub const MAX_KEY: usize = 65_535;
/// The longest tenant, segment, group or member name, in bytes of UTF-8.
pub const MAX_NAME: usize = 255;
/// The tenant of whoever names none.
pub const DEFAULT_TENANT: &str = "default";

/// An object's key: 1 to [`MAX_KEY`] bytes of any kind.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Key<'a>(&'a [u8]);

/// Why bytes are no key.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum KeyError {
    /// No bytes at all.
    Empty,
    /// More than [`MAX_KEY`] bytes; holds how many.
    TooLong(usize),
}

impl<'a> Key<'a> {
    /// Checks that `bytes` can be a key.
    pub const fn new(bytes: &'a [u8]) -> Result<Self, KeyError> {
        match bytes.len() {
            0 => Err(KeyError::Empty),
            1..=MAX_KEY => Ok(Self(bytes)),
            len => Err(KeyError::TooLong(len)),
        }
    }

    /// The key's bytes.
    pub const fn bytes(self) -> &'a [u8] {
        self.0
    }
}

impl fmt::Debug for Key<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "\"{}\"", self.0.escape_ascii())
    }
}

impl fmt::Display for KeyError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Empty => write!(f, "the key is empty; a key has 1 to {MAX_KEY} bytes"),
            Self::TooLong(len) => write!(f, "the key has {len} bytes; a key has 1 to {MAX_KEY}"),
        }
    }
}

impl core::error::Error for KeyError {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limits_are_exact() {
        assert_eq!(Key::new(b""), Err(KeyError::Empty));
        assert!(Key::new(&[0; MAX_KEY]).is_ok());
        assert_eq!(Key::new(&[0; MAX_KEY + 1]), Err(KeyError::TooLong(MAX_KEY + 1)));
    }
}
