//! The frame around every message.

use core::convert::Infallible;

use springtide_core::wire::frame::{HEADER, MAX_BODY, decode, encode, needed};

/// A stream of frames. What is decoded encodes to the same bytes; the front of a frame is never an error; and a decoder
/// asks for as many bytes as it takes.
pub fn frames(data: &[u8]) {
    let mut rest = data;
    while let Ok(Some((frame, used))) = decode(rest) {
        assert!((HEADER..=HEADER + MAX_BODY).contains(&used) && used <= rest.len());
        assert_eq!((needed(rest), frame.body.len()), (Ok(Some(used)), used - HEADER));
        let mut out = vec![7];
        let Ok(()) = encode(&mut out, &frame.header, |out| {
            out.extend_from_slice(frame.body);
            Ok::<_, Infallible>(())
        });
        assert_eq!(out[1..], rest[..used], "{:?}", frame.header);
        for cut in [0, 1, HEADER - 1, HEADER, used - 1] {
            assert!(cut == used || decode(&rest[..cut.min(used - 1)]) == Ok(None));
        }
        let failed = encode(&mut out, &frame.header, |out| {
            out.push(1);
            Err(())
        });
        assert_eq!((failed, out.len()), (Err(()), used + 1), "a body that failed leaves nothing");
        rest = &rest[used..];
    }
    if let Err(error) = decode(rest) {
        assert_eq!(needed(rest), Err(error));
        assert!(!error.to_string().is_empty());
    }
}
