//! How submitted work ends.

use core::fmt;

use crate::error::Code;

/// How a batch ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Outcome {
    /// Every transfer is done, and every op has completed.
    Done,
    /// At least one transfer failed; [`Engine::transfer_status`](super::Engine::transfer_status) tells which.
    Failed {
        /// What went wrong first.
        first: Failure,
        /// Whether anything of the batch may still move bytes.
        quiet: Quiet,
    },
}

impl Outcome {
    /// Whether nothing of the batch can touch memory any more, here or there.
    pub const fn quiet(self) -> Quiet {
        match self {
            Self::Done => Quiet::Yes,
            Self::Failed { quiet, .. } => quiet,
        }
    }
}

/// Whether nothing can touch the memory any more.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Quiet {
    /// Every op has completed, and none was lost.
    Yes,
    /// An op may still store: its memory, here and there, must not be used again before its path is closed (reads)
    /// or its ticket is fenced (writes).
    No,
}

/// How far one transfer of a batch is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum TransferStatus {
    /// Not ended yet.
    Pending,
    /// All its bytes are in place.
    Done,
    /// It failed; some of its own bytes may have been stored.
    Failed(Failure),
}

/// Why a transfer failed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum Failure {
    /// The owner or this side refused it: stale memory, a fenced ticket, or outside its bounds. Look the object up again.
    Refused,
    /// It was tried as often as allowed, or could not be tried again safely (a write without a ticket).
    Interrupted,
    /// Nobody knows how it ended, and it may still store.
    Lost,
    /// No path to the target opens.
    Unreachable,
    /// Its deadline came first.
    Deadline,
    /// The caller cancelled it.
    Cancelled,
    /// Its target was removed.
    Removed,
}

impl Failure {
    /// The number that people see.
    pub const fn code(self) -> Code {
        match self {
            Self::Refused | Self::Interrupted | Self::Lost | Self::Cancelled => Code::TRANSFER_FAIL,
            Self::Unreachable | Self::Removed => Code::REPLICA_IS_GONE,
            Self::Deadline => Code::RPC_TIMEOUT,
        }
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Refused => "the owner of the memory refused the transfer; look the object up again",
            Self::Interrupted => "the transfer was interrupted too often; try another replica",
            Self::Lost => "the transfer's end is unknown; its memory is held until its path is closed",
            Self::Unreachable => "no path to the peer opens; try another replica",
            Self::Deadline => "the transfer did not end in time",
            Self::Cancelled => "the transfer was cancelled",
            Self::Removed => "the target of the transfer was removed",
        })
    }
}

impl core::error::Error for Failure {}

/// Why a batch was not taken. Nothing of it was started.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum SubmitError {
    /// As many batches or transfers as configured are not released yet: wait for one to end.
    Full,
    /// So many batches wait for the target of the transfer at this index that others need the rest: wait for one of
    /// them to end, or try another replica.
    TargetBusy(u32),
    /// The batch alone has more transfers than the engine takes: split it.
    TooLarge,
    /// The transfer at this index names a target that does not exist.
    UnknownTarget(u32),
    /// The transfer at this index reaches past the last address.
    OutOfRange(u32),
}

impl SubmitError {
    /// The number that people see.
    pub const fn code(self) -> Code {
        match self {
            Self::Full | Self::TargetBusy(_) => Code::BUSY,
            Self::TooLarge | Self::OutOfRange(_) => Code::INVALID_PARAMS,
            Self::UnknownTarget(_) => Code::SEGMENT_NOT_FOUND,
        }
    }
}

impl fmt::Display for SubmitError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Full => f.write_str("too many transfers are waiting; try again when one has ended"),
            Self::TargetBusy(index) => {
                write!(f, "too many batches wait for the target of transfer {index}; try another replica")
            }
            Self::TooLarge => f.write_str("the batch has more transfers than the engine takes; split it"),
            Self::UnknownTarget(index) => write!(f, "transfer {index} of the batch names no known target"),
            Self::OutOfRange(index) => {
                write!(f, "transfer {index} of the batch reaches past the last address")
            }
        }
    }
}

impl core::error::Error for SubmitError {}
