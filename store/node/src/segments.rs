//! The memory lent, and under which ids peers reach it.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use springtide_client::member::{Effect, Shared};
use springtide_core::id::{Incarnation, RegionId, SegmentId};
use springtide_driver::{Card, Lane, Runtime, Seat};
use springtide_hal::Block;
use springtide_transport::Exposure;

/// The memory lent, and what is exposed of it now.
pub(crate) struct Segments<R> {
    runtime: R,
    lane: Arc<Seat<Lane>>,
    owner: Incarnation,
    blocks: Vec<Block>,
    exposed: Mutex<Vec<Option<(SegmentId, RegionId)>>>,
}

impl<R: Runtime> Segments<R> {
    pub(crate) fn new(runtime: R, lane: Arc<Seat<Lane>>, owner: Incarnation, blocks: Vec<Block>) -> Self {
        let exposed = Mutex::new(blocks.iter().map(|_| None).collect());
        Self { runtime, lane, owner, blocks, exposed }
    }

    fn lock(&self) -> MutexGuard<'_, Vec<Option<(SegmentId, RegionId)>>> {
        self.exposed.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Carries out what the master wants of our memory.
    pub(crate) fn carry_out(&self, effect: Effect, member: &Shared) {
        let now = self.runtime.now();
        match effect {
            Effect::Expose { place, id, key } => {
                self.withdraw(place);
                let exposure = Exposure::Segment { owner: self.owner, segment: id, key };
                match self.lane.with(now, |lane, _| lane.expose(&self.blocks[place], exposure)) {
                    Ok(region) => self.lock()[place] = Some((id, region)),
                    Err(error) => tracing::error!(%id, %error, "a segment cannot be served"),
                }
            }
            Effect::Withdraw { place } => self.withdraw(place),
            Effect::Fence { place, duty } => {
                let exposed = self.lock()[place].filter(|(id, _)| *id == duty.segment);
                let Some((_, region)) = exposed else {
                    // Nothing is served under that id any more, so nothing can land.
                    return member.lock().handle_fenced(now, duty.number);
                };
                let fence = self.lane.fence(region, duty.extent, duty.below);
                let (runtime, member) = (self.runtime.clone(), member.clone());
                drop(self.runtime.spawn(async move {
                    match fence.await {
                        Ok(()) => member.lock().handle_fenced(runtime.now(), duty.number),
                        // Not reported: the master asks again, or waits for the release time-out.
                        Err(error) => tracing::warn!(number = duty.number, %error, "a fence does not stand"),
                    }
                }));
            }
        }
    }

    fn withdraw(&self, place: usize) {
        let Some((_, region)) = self.lock()[place].take() else { return };
        self.lane.with(self.runtime.now(), |lane, _| lane.withdraw(region));
    }

    /// What a peer needs in order to reach the segment `id`; `None` if we serve none of that id.
    pub(crate) fn cards(&self, id: SegmentId) -> Option<Vec<Card>> {
        let region = self.lock().iter().flatten().find(|(known, _)| *known == id)?.1;
        self.lane.with(self.runtime.now(), |lane, _| lane.cards(region)).ok()
    }
}
