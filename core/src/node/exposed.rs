//! What of a node's memory peers can reach, and under which ids.

use alloc::vec::Vec;

use super::Effect;
use crate::id::{RegionId, SegmentId};
use crate::range::Extent;
use crate::ticket::TicketKey;

/// What is exposed now, by the segments' places.
#[derive(Clone, Debug)]
pub struct Exposed(Vec<Option<(SegmentId, RegionId)>>);

/// What the driver does with one region of memory.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Step {
    /// Expose the segment at this place, then [`Exposed::handle_exposed`].
    Expose {
        /// Which of the segments lent.
        place: usize,
        /// Its id at the master.
        id: SegmentId,
        /// The secret for its tickets.
        key: TicketKey,
    },
    /// Withdraw this region.
    Withdraw(RegionId),
    /// Refuse older stores, then [`Membership::handle_fenced`](super::Membership::handle_fenced) with the number. Where
    /// that fails nothing is reported: the master asks again, or waits for the release time-out.
    Fence {
        /// Which region.
        region: RegionId,
        /// Which bytes.
        extent: Extent,
        /// Tickets with a lower serial end.
        below: u64,
        /// What to report.
        number: u64,
    },
    /// Nothing is served there any more, so nothing can land: report this fence as standing.
    Stands(u64),
}

impl Exposed {
    /// Nothing is exposed of `segments` segments.
    pub fn new(segments: usize) -> Self {
        Self(alloc::vec![None; segments])
    }

    /// The steps that carry `effect` out, in order. What is withdrawn is forgotten at once.
    pub fn steps(&mut self, effect: Effect) -> impl Iterator<Item = Step> + use<> {
        let steps = match effect {
            Effect::Expose { place, id, key } => {
                [self.withdraw(place), Some(Step::Expose { place, id, key })]
            }
            Effect::Withdraw { place } => [self.withdraw(place), None],
            Effect::Fence { place, duty } => {
                let exposed = self.0.get(place).copied().flatten().filter(|(id, _)| *id == duty.segment);
                let step = match exposed {
                    Some((_, region)) => {
                        Step::Fence { region, extent: duty.extent, below: duty.below, number: duty.number }
                    }
                    None => Step::Stands(duty.number),
                };
                [Some(step), None]
            }
        };
        steps.into_iter().flatten()
    }

    /// The segment at `place` is exposed as `region`.
    pub fn handle_exposed(&mut self, place: usize, id: SegmentId, region: RegionId) {
        if let Some(entry) = self.0.get_mut(place) {
            *entry = Some((id, region));
        }
    }

    /// The region under which peers reach the segment `id`; `None` if none of that id is served.
    pub fn region(&self, id: SegmentId) -> Option<RegionId> {
        self.0.iter().flatten().find(|(known, _)| *known == id).map(|&(_, region)| region)
    }

    fn withdraw(&mut self, place: usize) -> Option<Step> {
        let (_, region) = self.0.get_mut(place)?.take()?;
        Some(Step::Withdraw(region))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::id::Id;
    use crate::wire::message::FenceDuty;
    use core::num::NonZeroU32;

    const KEY: TicketKey = TicketKey([1; 16]);

    fn segment(n: u32) -> SegmentId {
        SegmentId::new(n, NonZeroU32::MIN)
    }

    fn region(n: u32) -> RegionId {
        RegionId::new(n, NonZeroU32::MIN)
    }

    fn steps(exposed: &mut Exposed, effect: Effect) -> Vec<Step> {
        exposed.steps(effect).collect()
    }

    #[test]
    fn exposing_again_withdraws_first() {
        let mut exposed = Exposed::new(1);
        let expose = |id| Effect::Expose { place: 0, id, key: KEY };
        let step = |id| Step::Expose { place: 0, id, key: KEY };
        assert_eq!(steps(&mut exposed, expose(segment(1))), [step(segment(1))]);
        exposed.handle_exposed(0, segment(1), region(7));
        assert_eq!(exposed.region(segment(1)), Some(region(7)));
        let again = steps(&mut exposed, expose(segment(2)));
        assert_eq!(again, [Step::Withdraw(region(7)), step(segment(2))]);
        assert_eq!(exposed.region(segment(1)), None);
    }

    #[test]
    fn fences_of_what_is_not_served_stand() {
        let mut exposed = Exposed::new(1);
        exposed.handle_exposed(0, segment(1), region(7));
        let extent = Extent::new(0, 64).unwrap();
        let fence = |id| {
            let duty = FenceDuty { number: 5, segment: segment(id), extent, below: 9 };
            Effect::Fence { place: 0, duty }
        };
        let stands = Step::Fence { region: region(7), extent, below: 9, number: 5 };
        assert_eq!(steps(&mut exposed, fence(1)), [stands]);
        assert_eq!(steps(&mut exposed, fence(2)), [Step::Stands(5)]);
        assert_eq!(steps(&mut exposed, Effect::Withdraw { place: 0 }), [Step::Withdraw(region(7))]);
        assert_eq!(steps(&mut exposed, fence(1)), [Step::Stands(5)]);
    }
}
