//! Why a peer's memory cannot be made known.

use core::fmt;

use springtide_core::error::Code;
use springtide_transport::ControlError;

/// Why a peer's memory cannot be made known.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum TargetError {
    /// No card is of a transport of this lane: both sides need one in common.
    NoWay,
    /// Some are, but none can be used; the last one's reason.
    Refused(ControlError),
}

impl TargetError {
    /// The number that people see.
    pub const fn code(self) -> Code {
        Code::REPLICA_IS_GONE
    }
}

impl fmt::Display for TargetError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoWay => f.write_str("the peer and this process have no transport in common"),
            Self::Refused(error) => write!(f, "no transport reaches the peer's memory: {error}"),
        }
    }
}

impl core::error::Error for TargetError {}
