//! Why something failed.

use core::fmt;
use std::io;

use springtide_core::error::Code;
use springtide_core::transfer::SubmitError;
use springtide_core::wire::codec::Malformed;
use springtide_core::wire::message::Refusal;
use springtide_rpc::CallError;

/// Why something failed: a public number, and a line for people.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Error {
    code: Code,
    text: Option<Box<str>>,
}

impl Error {
    /// An error with a line of its own.
    pub fn new(code: Code, text: impl fmt::Display) -> Self {
        Self { code, text: Some(text.to_string().into()) }
    }

    /// The public number.
    pub const fn code(&self) -> Code {
        self.code
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.text {
            Some(text) => f.write_str(text),
            None => self.code.fmt(f),
        }
    }
}

impl core::error::Error for Error {}

impl From<Code> for Error {
    fn from(code: Code) -> Self {
        Self { code, text: None }
    }
}

impl From<Refusal> for Error {
    fn from(refusal: Refusal) -> Self {
        let says_more = refusal.detail != 0 || refusal.code == Code::NO_AVAILABLE_HANDLE;
        if says_more { Self::new(refusal.code, refusal) } else { refusal.code.into() }
    }
}

impl From<CallError> for Error {
    fn from(error: CallError) -> Self {
        let code = error.code();
        match error {
            CallError::Status(..) => Self::new(code, error),
            _ => Self::new(code, format_args!("the peer: {error} ({}, {})", code.name(), code.number())),
        }
    }
}

impl From<Malformed> for Error {
    fn from(malformed: Malformed) -> Self {
        Self::new(Code::INVALID_VERSION, malformed)
    }
}

impl From<SubmitError> for Error {
    fn from(error: SubmitError) -> Self {
        Self::new(error.code(), error)
    }
}

impl From<io::Error> for Error {
    fn from(error: io::Error) -> Self {
        Self::new(Code::INTERNAL_ERROR, error)
    }
}
