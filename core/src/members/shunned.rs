//! Where a writer's writes failed lately.

use crate::id::SegmentId;
use crate::time::Instant;

/// Most segments that are remembered for one writer.
pub(crate) const MAX_SHUNNED: usize = 8;

/// Segments.
pub(crate) type Segments = heapless::Vec<SegmentId, MAX_SHUNNED>;

/// Segments that a writer could not write to, so that its next puts go elsewhere while there is room: a node may be dead
/// long before the master counts it as silent (case 29).
#[derive(Debug, Default)]
pub(crate) struct Shunned(heapless::Vec<(SegmentId, Instant), MAX_SHUNNED>);

impl Shunned {
    /// Notes a failure. One segment too many takes the place of the oldest.
    pub(crate) fn note(&mut self, segment: SegmentId, until: Instant) {
        self.0.retain(|(known, _)| *known != segment);
        if self.0.is_full() {
            self.0.remove(0);
        }
        // There is room for one now.
        let _ = self.0.push((segment, until));
    }

    /// Those to go around at `now`.
    pub(crate) fn at(&self, now: Instant) -> Segments {
        self.0.iter().filter(|(_, until)| !until.reached(now)).map(|(segment, _)| *segment).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::id::Id;
    use core::num::NonZeroU32;

    #[test]
    fn the_latest_failures_are_remembered_for_their_time() {
        let (id, at) = (|n| SegmentId::new(n, NonZeroU32::MIN), Instant::from_nanos);
        let mut shunned = Shunned::default();
        for n in 0..10 {
            shunned.note(id(n), at(u64::from(n)));
        }
        shunned.note(id(2), at(20));
        assert_eq!(shunned.at(at(7)), [id(8), id(9), id(2)]);
        assert_eq!(
            (shunned.at(at(19)), shunned.at(at(20)).len()),
            (Segments::from_slice(&[id(2)]).unwrap(), 0)
        );
        assert_eq!(shunned.at(at(0)).len(), MAX_SHUNNED);
    }
}
