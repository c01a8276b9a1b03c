//! What the end of a transfer means for the item that it was for.

use super::{ReadEnd, WriteEnd};
use crate::error::Code;
use crate::time::Instant;
use crate::transfer::{Failure, Quiet};

impl ReadEnd {
    /// A read whose transfer failed, for a caller who waits until `deadline`.
    pub fn failed(now: Instant, deadline: Instant) -> Self {
        if deadline.reached(now) { Self::Refused(Code::RPC_TIMEOUT) } else { Self::Failed }
    }
}

impl WriteEnd {
    /// A write whose transfer failed, in a batch that ended `quiet`. A write that was cut off may still be on its way to
    /// its owner: only a refusal is sure.
    pub const fn failed(failure: Failure, quiet: Quiet) -> Self {
        match (failure, quiet) {
            (Failure::Refused, Quiet::Yes) => Self::Failed,
            _ => Self::Unsure,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_refusal_is_sure() {
        assert_eq!(WriteEnd::failed(Failure::Refused, Quiet::Yes), WriteEnd::Failed);
        assert_eq!(WriteEnd::failed(Failure::Refused, Quiet::No), WriteEnd::Unsure);
        assert_eq!(WriteEnd::failed(Failure::Deadline, Quiet::Yes), WriteEnd::Unsure);
    }

    #[test]
    fn a_failure_after_the_deadline_is_final() {
        let (early, late) = (Instant::from_nanos(1), Instant::from_nanos(2));
        assert_eq!(ReadEnd::failed(early, late), ReadEnd::Failed);
        assert_eq!(ReadEnd::failed(late, late), ReadEnd::Refused(Code::RPC_TIMEOUT));
    }
}
