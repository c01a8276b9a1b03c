//! Waiting for what a lane does.

use core::future::Future;
use core::pin::Pin;
use core::task::{Context, Poll};
use std::sync::Arc;

use springtide_core::id::RegionId;
use springtide_core::range::Extent;
use springtide_core::time::Instant;
use springtide_core::transfer::{Failure, Outcome, SubmitError, Transfer};
use springtide_transport::ControlError;

use super::Lane;
use crate::seat::Seat;

/// How a batch ended.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Ended {
    /// Whether all of it is done; if not, what failed first and whether anything may still move.
    pub outcome: Outcome,
    /// The transfers that failed, by their place in the batch. Empty if none did.
    pub failed: Vec<(u32, Failure)>,
}

/// The future end of a batch. Dropping it cancels the batch.
pub struct Moving {
    _seat: Arc<Seat<Lane>>,
    failed: Option<SubmitError>,
}

/// The future end of a fence. Dropping it does not undo the fence.
pub struct Fencing {
    _seat: Arc<Seat<Lane>>,
    failed: Option<ControlError>,
}

impl Seat<Lane> {
    /// Moves bytes. Works under [`block_on`](crate::block_on) over this seat, and in tasks while somebody
    /// [`attend`](crate::attend)s.
    ///
    /// # Errors
    /// The engine's, when it takes none of it. What was taken and fails is not an error but told in [`Ended`].
    pub fn transfer(self: &Arc<Self>, transfers: &[Transfer], deadline: Instant) -> Moving {
        let moment = crate::now();
        let failed = self.with(moment, |lane, _| lane.submit(moment, transfers, deadline)).err();
        Moving { _seat: Arc::clone(self), failed }
    }

    /// [`Lane::fence`], and waits until no fenced write can land any more.
    ///
    /// # Errors
    /// As [`Lane::fence`].
    pub fn fence(self: &Arc<Self>, region: RegionId, extent: Extent, below: u64) -> Fencing {
        let failed = self.with(crate::now(), |lane, _| lane.fence(region, extent, below)).err();
        Fencing { _seat: Arc::clone(self), failed }
    }
}

impl Future for Moving {
    type Output = Result<Ended, SubmitError>;

    fn poll(mut self: Pin<&mut Self>, _cx: &mut Context<'_>) -> Poll<Self::Output> {
        self.failed.take().map_or(Poll::Pending, |error| Poll::Ready(Err(error)))
    }
}

impl Future for Fencing {
    type Output = Result<(), ControlError>;

    fn poll(mut self: Pin<&mut Self>, _cx: &mut Context<'_>) -> Poll<Self::Output> {
        self.failed.take().map_or(Poll::Pending, |error| Poll::Ready(Err(error)))
    }
}
