//! How a body is laid out: a head, then any number of items of one type up to the end. Both are postcard.
//!
//! So a batch needs no length up front, is written item by item into the buffer that will be sent, and is read item
//! by item without allocation.

use alloc::vec::Vec;
use core::fmt;
use core::marker::PhantomData;

use postcard::ser_flavors::Flavor;
use serde::{Deserialize, Serialize};

/// The bytes are not the message that they should be.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Malformed;

impl fmt::Display for Malformed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the message cannot be decoded; the peer runs another version, or the bytes are damaged")
    }
}

impl core::error::Error for Malformed {}

struct Append<'a>(&'a mut Vec<u8>);

impl Flavor for Append<'_> {
    type Output = ();
    fn try_push(&mut self, byte: u8) -> postcard::Result<()> {
        self.0.push(byte);
        Ok(())
    }
    fn try_extend(&mut self, bytes: &[u8]) -> postcard::Result<()> {
        self.0.extend_from_slice(bytes);
        Ok(())
    }
    fn finalize(self) -> postcard::Result<()> {
        Ok(())
    }
}

/// Appends `value`, a head or an item, to `out`.
///
/// # Panics
/// When the type cannot be written as postcard (a sequence of unknown length); no message of ours is such a type.
pub fn put<T: Serialize>(out: &mut Vec<u8>, value: &T) {
    postcard::serialize_with_flavor(value, Append(out)).expect("messages have only sized fields");
}

/// Reads a message that has no tail (S0A-179, S0B-005).
pub fn whole<'a, T: Deserialize<'a>>(body: &'a [u8]) -> Result<T, Malformed> {
    match postcard::take_from_bytes(body) {
        Ok((head, [])) => Ok(head),
        _ => Err(Malformed),
    }
}

/// Reads a message's head; its items are read as they are asked for.
pub fn split<'a, H: Deserialize<'a>, T>(body: &'a [u8]) -> Result<(H, Tail<'a, T>), Malformed> {
    let (head, rest) = postcard::take_from_bytes(body).map_err(|_| Malformed)?;
    Ok((head, Tail { rest, items: PhantomData }))
}

/// The items at the end of a message. After a malformed item there are no more.
#[derive(Debug)]
pub struct Tail<'a, T> {
    rest: &'a [u8],
    items: PhantomData<fn() -> T>,
}

impl<T> Clone for Tail<'_, T> {
    fn clone(&self) -> Self {
        Self { rest: self.rest, items: PhantomData }
    }
}

impl<'a, T: Deserialize<'a>> Iterator for Tail<'a, T> {
    type Item = Result<T, Malformed>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.rest.is_empty() {
            return None;
        }
        let before = self.rest.len();
        match postcard::take_from_bytes(self.rest) {
            Ok((item, rest)) => {
                // An item of no bytes would repeat for ever.
                self.rest = if rest.len() < before { rest } else { &[] };
                Some(Ok(item))
            }
            Err(_) => {
                self.rest = &[];
                Some(Err(Malformed))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec;

    #[test]
    fn head_and_items_come_back() {
        let mut out = Vec::new();
        put(&mut out, &7u16);
        for key in [&b"a"[..], b"bc", b""] {
            put(&mut out, &key);
        }
        let (head, tail) = split::<u16, &[u8]>(&out).unwrap();
        assert_eq!(head, 7);
        assert_eq!(tail.collect::<Result<Vec<_>, _>>(), Ok(vec![&b"a"[..], b"bc", b""]));
    }

    #[test]
    fn a_malformed_item_is_the_last() {
        let (_, mut tail) = split::<(), &[u8]>(&[200, 1, 2]).unwrap();
        assert_eq!(tail.next(), Some(Err(Malformed)));
        assert_eq!(tail.next(), None);
    }

    #[test]
    fn items_without_bytes_end() {
        let (_, tail) = split::<(), ()>(&[1, 2, 3]).unwrap();
        assert!(tail.count() <= 1);
    }

    #[test]
    fn rest_behind_a_whole_message_is_refused() {
        assert_eq!(whole::<u8>(&[1, 2]), Err(Malformed));
        assert_eq!(whole::<u8>(&[1]), Ok(1));
    }
}
