//! Batches, and waiting for what a lane does.

use core::future::Future;
use core::pin::Pin;
use core::task::{Context, Poll, Waker};
use std::sync::Arc;

use springtide_core::id::{BatchId, RegionId};
use springtide_core::range::Extent;
use springtide_core::time::Instant;
use springtide_core::transfer::{Failure, Outcome, SubmitError, Transfer, TransferStatus};
use springtide_transport::ControlError;

use super::{Lane, register};
use crate::now;
use crate::seat::Seat;
use crate::wakes::Wakes;

/// How a batch ended.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Ended {
    /// Whether all of it is done; if not, what failed first and whether anything may still move.
    pub outcome: Outcome,
    /// The transfers that failed, by their place in the batch. Empty if none did.
    pub failed: Vec<(u32, Failure)>,
}

/// A batch that has not ended, or whose end was not looked at.
#[derive(Debug, Default)]
pub(super) struct Waiting {
    waker: Option<Waker>,
    ended: Option<Ended>,
}

impl Lane {
    /// Starts transfers; they end by `deadline`. [`poll_batch`](Self::poll_batch) tells how;
    /// [`Seat::transfer`](crate::Seat::transfer) does both.
    ///
    /// # Errors
    /// The engine's; nothing was started then.
    pub fn submit(
        &mut self,
        now: Instant,
        transfers: &[Transfer],
        deadline: Instant,
    ) -> Result<BatchId, SubmitError> {
        let batch = self.engine.submit(now, transfers, deadline)?;
        self.told = true;
        self.batches.insert(batch, Waiting::default());
        Ok(batch)
    }

    /// How a batch ended: ready once, then it is forgotten. Registers `waker` if it has not. `None` for a batch that
    /// is not known.
    pub fn poll_batch(&mut self, now: Instant, batch: BatchId, waker: &Waker) -> Poll<Option<Ended>> {
        let Some(waiting) = self.batches.get_mut(batch) else { return Poll::Ready(None) };
        if waiting.ended.is_none() {
            register(&mut waiting.waker, waker);
            return Poll::Pending;
        }
        // Only now may the engine give the batch's slot to another one.
        self.engine.release(now, batch);
        Poll::Ready(self.batches.remove(batch).and_then(|waiting| waiting.ended))
    }

    /// Cancels a batch and forgets it. Its memory may be touched until the last of its ops has ended; the transports
    /// hold it until then.
    pub fn give_up(&mut self, now: Instant, batch: BatchId) -> Option<Waker> {
        let waiting = self.batches.remove(batch)?;
        self.told = true;
        self.engine.release(now, batch);
        waiting.waker
    }

    pub(super) fn ended(&mut self, now: Instant, batch: BatchId, outcome: Outcome, wakes: &mut Wakes) {
        let Some(waiting) = self.batches.get_mut(batch) else { return self.engine.release(now, batch) };
        let status = |index| self.engine.transfer_status(batch, index as usize).map(|status| (index, status));
        let looked_at = if outcome == Outcome::Done { 0..0 } else { 0..u32::MAX };
        let failed = looked_at.map_while(status).filter_map(|(index, status)| match status {
            TransferStatus::Failed(failure) => Some((index, failure)),
            TransferStatus::Pending | TransferStatus::Done => None,
        });
        waiting.ended = Some(Ended { outcome, failed: failed.collect() });
        waiting.waker.take().into_iter().for_each(|waker| wakes.push(waker));
    }
}

/// The future end of a batch. Dropping it cancels the batch.
#[must_use = "a batch whose future is dropped is cancelled"]
pub struct Moving {
    seat: Arc<Seat<Lane>>,
    state: State<BatchId, SubmitError>,
}

/// The future end of a fence. Dropping it does not undo the fence.
#[must_use = "a fence stands only once its future has ended"]
pub struct Fencing {
    seat: Arc<Seat<Lane>>,
    state: State<u64, ControlError>,
}

enum State<T, E> {
    Waiting(T),
    Failed(E),
    Ended,
}

impl Seat<Lane> {
    /// Moves bytes. Works under [`block_on`](crate::block_on) over this seat, and in tasks while somebody
    /// [`attend`](crate::attend)s.
    ///
    /// # Errors
    /// The engine's, when it takes none of it. What was taken and fails is not an error but told in [`Ended`].
    pub fn transfer(self: &Arc<Self>, transfers: &[Transfer], deadline: Instant) -> Moving {
        let moment = now();
        let begun = self.with(moment, |lane, _| lane.submit(moment, transfers, deadline));
        Moving { seat: Arc::clone(self), state: begun.map_or_else(State::Failed, State::Waiting) }
    }

    /// [`Lane::fence`], and waits until no fenced write can land any more.
    ///
    /// # Errors
    /// As [`Lane::fence`].
    pub fn fence(self: &Arc<Self>, region: RegionId, extent: Extent, below: u64) -> Fencing {
        let begun = self.with(now(), |lane, _| lane.fence(region, extent, below));
        Fencing { seat: Arc::clone(self), state: begun.map_or_else(State::Failed, State::Waiting) }
    }
}

impl Future for Moving {
    type Output = Result<Ended, SubmitError>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        match core::mem::replace(&mut self.state, State::Ended) {
            State::Failed(error) => Poll::Ready(Err(error)),
            State::Ended => panic!("a transfer is polled after its end"),
            State::Waiting(batch) => {
                let moment = now();
                match self.seat.with(moment, |lane, _| lane.poll_batch(moment, batch, cx.waker())) {
                    Poll::Ready(ended) => {
                        Poll::Ready(Ok(ended.expect("a batch is known until its end was looked at")))
                    }
                    Poll::Pending => {
                        self.state = State::Waiting(batch);
                        Poll::Pending
                    }
                }
            }
        }
    }
}

impl Drop for Moving {
    fn drop(&mut self) {
        if let State::Waiting(batch) = self.state {
            let moment = now();
            // The waker is dropped outside the lock.
            drop(self.seat.with(moment, |lane, _| lane.give_up(moment, batch)));
        }
    }
}

impl Future for Fencing {
    type Output = Result<(), ControlError>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        match core::mem::replace(&mut self.state, State::Ended) {
            State::Failed(error) => Poll::Ready(Err(error)),
            State::Ended => panic!("a fence is polled after its end"),
            State::Waiting(number) => {
                let polled = self.seat.with(now(), |lane, _| lane.poll_fence(number, cx.waker()));
                if polled.is_pending() {
                    self.state = State::Waiting(number);
                }
                polled.map(Ok)
            }
        }
    }
}

impl Drop for Fencing {
    fn drop(&mut self) {
        if let State::Waiting(number) = self.state {
            drop(self.seat.with(now(), |lane, _| lane.leave_fence(number)));
        }
    }
}
