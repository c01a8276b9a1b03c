//! How calls fail.

use core::fmt;
use std::io;

use springtide_core::error::Code;
use springtide_core::wire::frame::{FrameError, MAX_BODY};

/// Why a call has no answer, or which refusal it got.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum CallError {
    /// The deadline came first. The peer may carry the call out all the same.
    Timeout,
    /// The connection ended before the answer came. The peer may have carried the call out.
    Closed(Reason),
    /// There is no connection. The call was not sent.
    Down(Reason),
    /// As many calls, or bytes of calls, as allowed are waiting. The call was not sent.
    Busy,
    /// The message is longer than a frame may be. The call was not sent.
    TooLong,
    /// The peer answered: no, and why.
    Status(Code, Box<str>),
}

impl CallError {
    /// The number that people see.
    pub const fn code(&self) -> Code {
        match self {
            Self::Timeout => Code::RPC_TIMEOUT,
            Self::Closed(reason) | Self::Down(reason) => reason.code(),
            Self::Busy => Code::BUSY,
            Self::TooLong => Code::INVALID_PARAMS,
            Self::Status(code, _) => *code,
        }
    }

    /// Whether the peer cannot have seen the call, so that repeating it is always safe.
    pub const fn unsent(&self) -> bool {
        matches!(self, Self::Down(_) | Self::Busy | Self::TooLong)
    }
}

impl fmt::Display for CallError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Timeout => f.write_str("no answer in time"),
            Self::Closed(reason) => write!(f, "the connection ended before the answer came: {reason}"),
            Self::Down(reason) => write!(f, "no connection: {reason}"),
            Self::Busy => f.write_str("too many calls are waiting; try again when one has ended"),
            Self::TooLong => write!(f, "the message is longer than {MAX_BODY} bytes; split it"),
            Self::Status(code, text) if text.is_empty() => code.fmt(f),
            Self::Status(code, text) => write!(f, "{text} ({}, {})", code.name(), code.number()),
        }
    }
}

impl core::error::Error for CallError {}

/// Why there is no connection (any more).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum Reason {
    /// It could not be made, or broke; the system's error number.
    System(i32),
    /// It could not be made in time, or the peer did not answer the hello.
    Silent,
    /// The peer closed it.
    PeerClosed,
    /// The peer sent what is no frame.
    Protocol(FrameError),
    /// The peer sent a request where only replies belong.
    Backwards,
    /// The peer refused the hello, or ended the connection with a reason.
    Refused(Code),
    /// It was closed on this side.
    Shut,
}

impl Reason {
    /// The number that people see.
    pub const fn code(self) -> Code {
        match self {
            Self::Refused(code) => code,
            Self::Protocol(FrameError::Version(_)) => Code::INVALID_VERSION,
            Self::Shut => Code::SHUTTING_DOWN,
            _ => Code::RPC_FAIL,
        }
    }
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::System(errno) => io::Error::from_raw_os_error(*errno).fmt(f),
            Self::Silent => f.write_str("the peer did not answer in time"),
            Self::PeerClosed => f.write_str("the peer closed it"),
            Self::Protocol(error) => error.fmt(f),
            Self::Backwards => f.write_str("the peer sent a request instead of a reply"),
            Self::Refused(code) => write!(f, "the peer refused: {code}"),
            Self::Shut => f.write_str("it was closed on this side"),
        }
    }
}
