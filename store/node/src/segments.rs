//! The memory lent, and under which ids peers reach it.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use springtide_client::member::{Effect, Shared};
use springtide_core::id::{Incarnation, RegionId, SegmentId};
use springtide_core::node::{Exposed, Step};
use springtide_driver::{Card, Lane, Runtime, Seat};
use springtide_hal::Block;
use springtide_transport::Exposure;

/// The memory lent, and what is exposed of it now.
pub(crate) struct Segments<R> {
    runtime: R,
    lane: Arc<Seat<Lane>>,
    owner: Incarnation,
    blocks: Vec<Block>,
    exposed: Mutex<Exposed>,
}

impl<R: Runtime> Segments<R> {
    pub(crate) fn new(runtime: R, lane: Arc<Seat<Lane>>, owner: Incarnation, blocks: Vec<Block>) -> Self {
        let exposed = Mutex::new(Exposed::new(blocks.len()));
        Self { runtime, lane, owner, blocks, exposed }
    }

    fn lock(&self) -> MutexGuard<'_, Exposed> {
        self.exposed.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Carries out what the master wants of our memory.
    pub(crate) fn carry_out(&self, effect: Effect, member: &Shared) {
        let steps = self.lock().steps(effect);
        steps.for_each(|step| self.take(step, member));
    }

    fn take(&self, step: Step, member: &Shared) {
        let now = self.runtime.now();
        match step {
            Step::Expose { place, id, key } => {
                let exposure = Exposure::Segment { owner: self.owner, segment: id, key };
                match self.lane.with(now, |lane, _| lane.expose(&self.blocks[place], exposure)) {
                    Ok(region) => self.lock().handle_exposed(place, id, region),
                    Err(error) => tracing::error!(%id, %error, "a segment cannot be served"),
                }
            }
            Step::Withdraw(region) => self.lane.with(now, |lane, _| lane.withdraw(region)),
            Step::Fence { region, extent, below, number } => {
                let fence = self.lane.fence(region, extent, below);
                let (runtime, member) = (self.runtime.clone(), member.clone());
                drop(self.runtime.spawn(async move {
                    match fence.await {
                        Ok(()) => member.lock().handle_fenced(runtime.now(), number),
                        Err(error) => tracing::warn!(number, %error, "a fence does not stand"),
                    }
                }));
            }
            Step::Stands(number) => member.lock().handle_fenced(now, number),
        }
    }

    /// What a peer needs in order to reach the segment `id`; `None` if we serve none of that id.
    pub(crate) fn cards(&self, id: SegmentId) -> Option<Vec<Card>> {
        let region: RegionId = self.lock().region(id)?;
        self.lane.with(self.runtime.now(), |lane, _| lane.cards(region)).ok()
    }
}
