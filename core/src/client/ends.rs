//! What the end of a transfer means for the item that it was for.

use super::{ReadEnd, WriteEnd};
use crate::checksum::Checksum;
use crate::error::Code;
use crate::time::Instant;
use crate::transfer::{Failure, Quiet};

impl ReadEnd {
    /// A whole value of `len` bytes that is in place and sums to `sum` (CRC32C), where it should sum to `checksum`.
    pub fn checked(len: u64, checksum: Checksum, sum: impl FnOnce() -> u32) -> Self {
        if checksum.fits(sum) { Self::Good(len) } else { Self::Corrupt }
    }

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
    fn bytes_that_do_not_sum_are_corrupt() {
        let checked = |checksum| ReadEnd::checked(9, checksum, || 7);
        assert_eq!(checked(Checksum::Crc32c(7)), ReadEnd::Good(9));
        assert_eq!(checked(Checksum::Crc32c(8)), ReadEnd::Corrupt);
        assert_eq!(checked(Checksum::None), ReadEnd::Good(9));
    }

    #[test]
    fn a_failure_after_the_deadline_is_final() {
        let (early, late) = (Instant::from_nanos(1), Instant::from_nanos(2));
        assert_eq!(ReadEnd::failed(early, late), ReadEnd::Failed);
        assert_eq!(ReadEnd::failed(late, late), ReadEnd::Refused(Code::RPC_TIMEOUT));
    }
}
