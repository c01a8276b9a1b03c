//! What the fuzzer feeds: every decoder of this crate.

use springtide_core::transfer::Verb;

use crate::address;
use crate::wire::{GROUP, HELLO, Hello, MAX_REQUEST, REPLY, Reply, Request};

/// The longest operation that requests may ask for here.
const MAX_OP: u32 = 1 << 20;

/// Reads `bytes` as all that can stand on the wire, writes what was read, and compares.
///
/// # Panics
/// When something reads differently than it was written.
pub fn decode(bytes: &[u8]) {
    if let Ok(Some(hello)) = Hello::decode(bytes) {
        assert_eq!(hello.encode(), bytes[..HELLO]);
    }
    if let Ok(Some(reply)) = Reply::decode(bytes) {
        assert_eq!(Reply::decode(&reply.encode()), Ok(Some(reply)));
        assert_eq!(reply.encode(), bytes[..REPLY]);
    }
    request(bytes);
    if let Some((socket, owner)) = address::decode(bytes) {
        let mut out = Vec::new();
        address::encode(socket, owner, &mut out);
        assert_eq!(out, bytes);
    }
}

fn request(bytes: &[u8]) {
    let Ok(Some((request, used))) = Request::decode(bytes, MAX_OP) else { return };
    assert!(used <= bytes.len() && used <= MAX_REQUEST && (1..=GROUP).contains(&request.count));
    assert_eq!(crate::wire::request(request.verb, request.count, request.first), bytes[..16]);
    for index in 0..request.count {
        let item = request.item(index);
        assert!(item.len <= MAX_OP);
        if let Some(region) = item.region {
            let written = crate::wire::item(region, item.at, item.len);
            let len = if request.verb == Verb::Read { 24 } else { 64 };
            assert_eq!(written, bytes[16 + index * len..][..24]);
        }
        if request.verb == Verb::Write
            && let Some(permission) = request.permission(index)
        {
            assert!(permission.extent.is_sound());
        }
    }
    for cut in [0, 1, 15, 16, used - 1] {
        assert!(cut >= used || matches!(Request::decode(&bytes[..cut], MAX_OP), Ok(None)));
    }
}
