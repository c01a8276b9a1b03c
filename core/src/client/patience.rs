//! How long one peer is waited for while another could be asked.
//!
//! A process that stands still keeps its connections: nothing says that it will not answer. So an attempt that has an
//! alternative gets a part of the time that is left, more for more bytes, and never so little that a busy machine
//! looks like a dead one.

use core::time::Duration;

use crate::time::Instant;

/// The shortest attempt.
const LEAST: Duration = Duration::from_millis(500);
/// What a byte may take: a peer that moves less than 64 MB a second is not worth waiting for if there is another.
const BYTE: u64 = 16;

/// What an attempt may use of the time that is left.
#[derive(Clone, Copy, Debug)]
pub enum Share {
    /// Others have the same bytes.
    Eighth,
    /// Another attempt starts anew elsewhere.
    Third,
}

/// When to give up an attempt to move `bytes`, so that another one can be made by `deadline`.
pub fn attempt(now: Instant, deadline: Instant, bytes: u64, share: Share) -> Instant {
    let part = match share {
        Share::Eighth => 8,
        Share::Third => 3,
    };
    let fair = deadline.since(now) / part + Duration::from_nanos(bytes.saturating_mul(BYTE));
    deadline.min(now + fair.max(LEAST))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_attempt_leaves_time_for_others_and_is_never_too_short() {
        let (now, at) = (Instant::ORIGIN, |millis| Instant::ORIGIN + Duration::from_millis(millis));
        assert_eq!(attempt(now, at(16_000), 0, Share::Eighth), at(2_000));
        assert_eq!(attempt(now, at(9_000), 0, Share::Third), at(3_000));
        assert_eq!(attempt(now, at(16_000), 62_500_000, Share::Eighth), at(3_000));
        assert_eq!(attempt(now, at(1_000), 0, Share::Eighth), at(500));
        assert_eq!(attempt(now, at(300), 0, Share::Eighth), at(300));
        assert_eq!(attempt(now, at(9_000), u64::MAX, Share::Third), at(9_000));
    }
}
