//! The frame around every message: a fixed header of 32 bytes, then the body.
//!
//! ```text
//!  0 magic 0xF5   1 version   2 kind   3 priority   4 method u16   6 status i16   8 body length u32
//! 12 time left u32 (µs, 0 = none said)   16 request id u64   24 trace id u64   32 body …        little endian
//! ```
//! The magic is a byte that no Mooncake, TLS or HTTP stream begins with, so that one port can serve all of them.

use alloc::vec::Vec;
use core::fmt;
use core::time::Duration;

use crate::error::Code;

/// The first byte of every frame of ours.
pub const MAGIC: u8 = 0xF5;
/// The frame format that this code writes, and the only one that it reads.
pub const VERSION: u8 = 1;
/// Length of the header, in bytes.
pub const HEADER: usize = 32;
/// Longest body, in bytes. A peer that announces more is cut off before anything is allocated for it.
pub const MAX_BODY: usize = 16 << 20;

/// Whether a frame asks or answers.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kind {
    /// A call; wants exactly one reply with its request id.
    Request,
    /// The answer to a call.
    Reply,
}

/// Which call, with its version: a changed message gets a new number.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Method(pub u16);

/// Everything in front of a body.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Header {
    /// Request or reply.
    pub kind: Kind,
    /// 0 is ordinary; higher is more urgent.
    pub priority: u8,
    /// Which call.
    pub method: Method,
    /// Of a reply: success, or why not (the body then holds one line of text). Zero in requests.
    pub status: Code,
    /// Of a request: how long the caller still waits; `None` if it did not say.
    pub time_left: Option<Duration>,
    /// Pairs a reply with its request.
    pub request: u64,
    /// Follows one user action through processes; 0 if nobody traces.
    pub trace: u64,
}

impl Header {
    /// The header of an ordinary request.
    pub const fn request(method: Method, request: u64, time_left: Option<Duration>) -> Self {
        Self { kind: Kind::Request, priority: 0, method, status: Code::OK, time_left, request, trace: 0 }
    }

    /// The header of the answer to a request with this header.
    pub const fn reply(&self, status: Code) -> Self {
        Self { kind: Kind::Reply, status, time_left: None, ..*self }
    }

    fn encode(&self, body_len: u32) -> [u8; HEADER] {
        let mut out = [0; HEADER];
        out[0] = MAGIC;
        out[1] = VERSION;
        out[2] = (self.kind == Kind::Reply).into();
        out[3] = self.priority;
        out[4..6].copy_from_slice(&self.method.0.to_le_bytes());
        out[6..8].copy_from_slice(&self.status.number().to_le_bytes());
        out[8..12].copy_from_slice(&body_len.to_le_bytes());
        let micros =
            self.time_left.map_or(0, |left| u32::try_from(left.as_micros()).unwrap_or(u32::MAX).max(1));
        out[12..16].copy_from_slice(&micros.to_le_bytes());
        out[16..24].copy_from_slice(&self.request.to_le_bytes());
        out[24..32].copy_from_slice(&self.trace.to_le_bytes());
        out
    }
}

/// A whole frame, its body borrowed from the bytes that were fed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Frame<'a> {
    /// Everything in front of the body.
    pub header: Header,
    /// The message.
    pub body: &'a [u8],
}

/// Why bytes are no frame of ours. The connection is of no use any more.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum FrameError {
    /// The first byte is not [`MAGIC`]; holds it.
    Magic(u8),
    /// A version that this code does not read.
    Version(u8),
    /// Neither request nor reply.
    Kind(u8),
    /// A body longer than [`MAX_BODY`]; holds the announced length.
    TooLong(u32),
}

impl fmt::Display for FrameError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Magic(byte) => write!(f, "not a Springtide stream: it begins with byte {byte:#04x}"),
            Self::Version(version) => {
                write!(
                    f,
                    "the peer speaks frame version {version}, this process speaks {VERSION}; update the older one"
                )
            }
            Self::Kind(kind) => write!(f, "unknown frame kind {kind}"),
            Self::TooLong(len) => write!(f, "a frame of {len} bytes; {MAX_BODY} are allowed"),
        }
    }
}

impl core::error::Error for FrameError {}

/// Looks for a whole frame at the front of `bytes`: the frame and how many bytes it takes, or `None` if more bytes
/// are needed.
pub fn decode(bytes: &[u8]) -> Result<Option<(Frame<'_>, usize)>, FrameError> {
    let Some(needed) = needed(bytes)? else { return Ok(None) };
    if bytes.len() < needed {
        return Ok(None);
    }
    let word = |at: usize| u32::from_le_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]]);
    let long = |at: usize| u64::from(word(at)) | u64::from(word(at + 4)) << 32;
    let micros = word(12);
    let header = Header {
        kind: if bytes[2] == 0 { Kind::Request } else { Kind::Reply },
        priority: bytes[3],
        method: Method(word(4) as u16),
        status: Code::from_number((word(4) >> 16) as u16 as i16),
        time_left: (micros != 0).then_some(Duration::from_micros(micros.into())),
        request: long(16),
        trace: long(24),
    };
    Ok(Some((Frame { header, body: &bytes[HEADER..needed] }, needed)))
}

/// How many bytes the frame at the front of `bytes` takes, as soon as its header can be judged. Every byte is judged
/// as soon as it is there: garbage is refused without waiting for more of it.
pub fn needed(bytes: &[u8]) -> Result<Option<usize>, FrameError> {
    match bytes {
        [magic, ..] if *magic != MAGIC => return Err(FrameError::Magic(*magic)),
        [_, version, ..] if *version != VERSION => return Err(FrameError::Version(*version)),
        [_, _, kind, ..] if *kind > 1 => return Err(FrameError::Kind(*kind)),
        _ if bytes.len() < HEADER => return Ok(None),
        _ => {}
    }
    let len = u32::from_le_bytes([bytes[8], bytes[9], bytes[10], bytes[11]]);
    if len as usize > MAX_BODY {
        return Err(FrameError::TooLong(len));
    }
    Ok(Some(HEADER + len as usize))
}

/// Appends a frame to `out`; `body` appends the message. Gives the body's error back, with `out` as it was.
pub fn encode<E>(
    out: &mut Vec<u8>,
    header: &Header,
    body: impl FnOnce(&mut Vec<u8>) -> Result<(), E>,
) -> Result<(), E> {
    let start = out.len();
    out.extend_from_slice(&[0; HEADER]);
    if let Err(error) = body(out) {
        out.truncate(start);
        return Err(error);
    }
    let len = out.len() - start - HEADER;
    debug_assert!(len <= MAX_BODY, "a body of {len} bytes");
    out[start..start + HEADER].copy_from_slice(&header.encode(len as u32));
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use core::convert::Infallible;
    use proptest::prelude::*;

    fn frame(header: &Header, body: &[u8]) -> Vec<u8> {
        let mut out = Vec::new();
        let fill = |out: &mut Vec<u8>| {
            out.extend_from_slice(body);
            Ok::<_, Infallible>(())
        };
        let Ok(()) = encode(&mut out, header, fill);
        out
    }

    fn sample() -> Header {
        Header {
            status: Code::OBJECT_NOT_FOUND,
            kind: Kind::Reply,
            priority: 3,
            trace: 9,
            ..Header::request(Method(0x1234), u64::MAX - 1, Some(Duration::from_micros(77)))
        }
    }

    #[test]
    fn golden_bytes() {
        let bytes = frame(&sample(), b"hi");
        let head = [0xF5, 1, 1, 3, 0x34, 0x12, 0x40, 0xFD, 2, 0, 0, 0, 77, 0, 0, 0];
        assert_eq!(bytes[..16], head);
        assert_eq!(bytes[16..24], (u64::MAX - 1).to_le_bytes());
        assert_eq!(bytes[24..], [9, 0, 0, 0, 0, 0, 0, 0, b'h', b'i']);
    }

    #[test]
    fn comes_back_whole_and_waits_for_the_rest() {
        let bytes = frame(&sample(), b"body");
        for cut in 0..bytes.len() {
            assert_eq!(decode(&bytes[..cut]), Ok(None), "{cut}");
        }
        let (got, used) = decode(&bytes).unwrap().unwrap();
        assert_eq!((got.header, got.body, used), (sample(), &b"body"[..], bytes.len()));
    }

    #[test]
    fn refuses_as_soon_as_it_can() {
        assert_eq!(decode(b"GET"), Err(FrameError::Magic(b'G')));
        assert_eq!(decode(&[MAGIC, 2]), Err(FrameError::Version(2)));
        assert_eq!(decode(&[MAGIC, 1, 9]), Err(FrameError::Kind(9)));
        let mut long = frame(&sample(), b"");
        long[8..12].copy_from_slice(&u32::MAX.to_le_bytes());
        assert_eq!(decode(&long), Err(FrameError::TooLong(u32::MAX)));
    }

    proptest! {
        #[test]
        fn random_bytes_never_panic(bytes in proptest::collection::vec(any::<u8>(), 0..200), ours: bool) {
            let mut bytes = bytes;
            if ours && bytes.len() > 3 {
                bytes[..3].copy_from_slice(&[MAGIC, VERSION, 0]);
            }
            let _ = decode(&bytes);
        }
    }
}
