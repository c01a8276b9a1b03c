//! What the fuzzer feeds: every decoder of this crate.

use crate::address::{Address, Description};
use crate::entry::{Reply, Request};
use crate::message::{LEN, Message};

/// Reads `bytes` as all that a peer can say, writes what was read, and compares.
///
/// # Panics
/// When something reads differently than it was written.
pub fn decode(bytes: &[u8]) {
    if let Some(message) = bytes.get(..LEN).and_then(Message::decode) {
        assert_eq!(Message::decode(&message.encode()), Some(message));
    }
    let mut words = [0; 16];
    for (word, bytes) in words.iter_mut().zip(bytes.chunks_exact(8)) {
        *word = u64::from_le_bytes(bytes.try_into().expect("chunks of eight"));
    }
    if let Some(request) = Request::decode(&words) {
        assert_eq!(Request::decode(&request.encode()), Some(request));
    }
    if let Some(reply) = words.first_chunk().and_then(Reply::decode) {
        assert_eq!(Reply::decode(&reply.encode()), Some(reply));
    }
    let mut out = Vec::new();
    if let Some(address) = Address::decode(bytes) {
        address.encode(&mut out);
        assert_eq!(out, bytes);
        out.clear();
    }
    if let Some(description) = Description::decode(bytes) {
        description.encode(&mut out);
        assert_eq!(out, bytes);
    }
}
