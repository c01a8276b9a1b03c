//! What a server does with frames.

use springtide_core::time::Instant;
use springtide_core::wire::frame::{Frame, FrameError, Kind, decode};

use super::Replies;

/// Answers requests. One value serves all connections.
pub trait Service: Send + Sync + 'static {
    /// What is remembered of each connection: who said hello, for which tenant.
    type Peer: Send + Default + 'static;

    /// Handles `frames` in order: all requests that were there to be read. Each gets exactly one reply, now or through
    /// [`Replies::park`], in any order: request ids pair them. Never blocks. Frames that the service leaves in the
    /// iterator are not answered.
    fn handle(&self, now: Instant, peer: &mut Self::Peer, frames: Frames<'_>, replies: &mut Replies<'_>);

    /// The connection has ended, whoever ended it.
    fn closed(&self, now: Instant, peer: &mut Self::Peer);
}

/// The whole requests at the front of some bytes, in order.
#[derive(Clone, Debug)]
pub struct Frames<'a> {
    bytes: &'a [u8],
}

impl<'a> Frames<'a> {
    /// Looks for whole requests at the front of `bytes`: those, how many bytes they take, and what is wrong with what
    /// follows. All frames before a wrong one are still good.
    pub(crate) fn split(bytes: &'a [u8]) -> (Self, usize, Result<(), BadFrame>) {
        let mut whole = 0;
        let end = loop {
            match decode(&bytes[whole..]) {
                Ok(Some((frame, _))) if frame.header.kind == Kind::Reply => break Err(BadFrame::Reply),
                Ok(Some((_, used))) => whole += used,
                Ok(None) => break Ok(()),
                Err(error) => break Err(BadFrame::Malformed(error)),
            }
        };
        (Self { bytes: &bytes[..whole] }, whole, end)
    }

    /// Whether there is none.
    pub const fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }
}

impl<'a> Iterator for Frames<'a> {
    type Item = Frame<'a>;

    fn next(&mut self) -> Option<Frame<'a>> {
        let (frame, used) = decode(self.bytes).ok().flatten()?;
        self.bytes = &self.bytes[used..];
        Some(frame)
    }
}

/// Why a connection's bytes are of no use any more.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum BadFrame {
    Malformed(FrameError),
    /// A reply to a server, which asked nothing.
    Reply,
}

impl core::fmt::Display for BadFrame {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        match self {
            Self::Malformed(error) => error.fmt(f),
            Self::Reply => f.write_str("a reply was sent to a server, which asked nothing"),
        }
    }
}
