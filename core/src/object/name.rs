//! The bytes of a key as an object keeps them.

use alloc::boxed::Box;
use core::ops::Deref;

/// The longest key that is kept in place.
pub(crate) const SHORT: usize = 46;

/// A key, or no bytes for an object that has none yet.
///
/// Short ones are kept in place: to compare one takes no further read, and to drop it nothing is given back.
#[derive(Debug)]
pub(crate) enum Name {
    /// Its length, and its bytes in front.
    Short(u8, [u8; SHORT]),
    /// More bytes than [`SHORT`].
    Long(Box<[u8]>),
}

impl Name {
    /// No bytes.
    pub(crate) const EMPTY: Self = Self::Short(0, [0; SHORT]);
}

impl From<&[u8]> for Name {
    fn from(bytes: &[u8]) -> Self {
        if bytes.len() > SHORT {
            return Self::Long(bytes.into());
        }
        let mut short = [0; SHORT];
        short[..bytes.len()].copy_from_slice(bytes);
        Self::Short(bytes.len() as u8, short)
    }
}

impl Deref for Name {
    type Target = [u8];

    #[inline]
    fn deref(&self) -> &[u8] {
        match self {
            Self::Short(len, bytes) => &bytes[..*len as usize],
            Self::Long(bytes) => bytes,
        }
    }
}

const _: () = assert!(size_of::<Name>() <= 48);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keeps_all_bytes() {
        let bytes: [u8; 300] = core::array::from_fn(|at| at as u8);
        for len in [0, 1, SHORT - 1, SHORT, SHORT + 1, 300] {
            let name = Name::from(&bytes[..len]);
            assert_eq!(*name, bytes[..len]);
            assert_eq!(matches!(name, Name::Short(..)), len <= SHORT);
        }
        assert!(Name::EMPTY.is_empty());
    }
}
