//! How ops, transfers and batches end.

use super::batch::{FlowId, Keep, Phase, Slice, Stage};
use super::engine::{BATCHES, Engine, PATHS};
use super::take::More;
use super::{Completion, Failure, Next, Op, PathHealth, Reject, Status, TransferStatus, Verb};
use crate::id::{BatchId, Id, OpId, PathId, TargetId};
use crate::time::{Instant, nanos};

impl Engine {
    /// Takes in how ops ended. Completions of unknown ops are counted ([`strange`](Self::strange)) and ignored.
    pub fn handle_completions(&mut self, now: Instant, path: PathId, done: &[Completion]) {
        let now = self.clock.observe(now);
        for completion in done {
            self.complete(now, path, completion);
        }
        self.wake(path);
    }

    fn complete(&mut self, now: Instant, path: PathId, completion: &Completion) {
        let id = completion.id;
        let Some(slice) = self.ops.get(id).copied().filter(|s| s.path == path && s.stage.is_out()) else {
            self.counts.strange += 1;
            return;
        };
        let short = completion.status == Status::Done && completion.bytes < slice.len;
        let status = if short { Status::Short } else { completion.status };
        self.unload(now, &slice, status);
        if status == Status::Lost {
            self.ask_close(path);
        }
        let Some(batch) = self.batches.get_mut(slice.batch) else {
            self.ops.remove(id);
            return;
        };
        batch.flying -= 1;
        let verb = batch.work[slice.work as usize].transfer.verb;
        match (status, verb) {
            (Status::Done, _) => {
                self.ops.remove(id);
                self.slice_done(&slice);
            }
            (Status::Refused, _) => {
                self.ops.remove(id);
                self.fail(slice.batch, Some(slice.flow), slice.work, Failure::Refused);
            }
            (Status::Lost, Verb::Read) => {
                batch.parked += 1;
                self.restage(id, Stage::Parked);
            }
            (Status::Lost, Verb::Write) => {
                batch.lost += 1;
                self.ops.remove(id);
                self.fail(slice.batch, Some(slice.flow), slice.work, Failure::Lost);
            }
            (Status::Short | Status::Flushed, _) => self.retry(id),
        }
        self.settle(slice.batch);
    }

    /// Takes an op off its path, and draws conclusions about the path.
    fn unload(&mut self, now: Instant, slice: &Slice, status: Status) {
        self.counts.flying -= 1;
        let Some(path) = self.topology.paths.get_mut(slice.path) else { return };
        path.unload(slice.len);
        path.load.moved = now;
        match status {
            Status::Done => path.succeeded(now, slice.ahead, nanos(now.since(slice.posted)), slice.len),
            // An answer, even if not the one that was hoped for: the path works.
            Status::Refused => {
                path.totals.errors += 1;
                path.breaker.failures = 0;
            }
            Status::Short | Status::Flushed | Status::Lost => {
                path.totals.errors += 1;
                if slice.stage != Stage::Recalled {
                    path.failed(now, &self.config, &mut self.rng);
                    let until = path.breaker.until;
                    if path.health == PathHealth::Suspect {
                        self.timers[PATHS].set_earlier(slice.path.index(), until);
                    }
                }
            }
        }
    }

    /// Takes in that `ops`, the tail of what [`take_ops`](Self::take_ops) gave, were not posted, the first of them
    /// because of `why`.
    pub fn handle_refused(&mut self, now: Instant, path: PathId, ops: &[Op], why: Reject) {
        let now = self.clock.observe(now);
        if why == Reject::PathDown
            && let Some(known) = self.topology.paths.get_mut(path)
        {
            // Its transport knows already; leave it alone until we are told.
            known.suspect(now, &self.config, &mut self.rng);
            self.timers[PATHS].set_earlier(path.index(), known.breaker.until);
        }
        // What goes back into the queue must not have the path called again at once.
        let called = self.set_called(path, true);
        // Backwards, since each goes to the front of those that wait.
        for (index, op) in ops.iter().enumerate().rev() {
            let Some(slice) = self.ops.get_mut(op.id).filter(|s| s.path == path && s.stage.is_out()) else {
                self.counts.strange += 1;
                continue;
            };
            let to_blame = index == 0 && why == Reject::BadRegion;
            if !to_blame {
                slice.tries = slice.tries.saturating_sub(1);
            }
            let slice = *slice;
            self.counts.flying -= 1;
            if let Some(known) = self.topology.paths.get_mut(path) {
                known.unload(slice.len);
            }
            if let Some(batch) = self.batches.get_mut(slice.batch) {
                batch.flying -= 1;
            }
            if to_blame && !self.has_other_path(&slice) {
                self.ops.remove(op.id);
                self.fail(slice.batch, Some(slice.flow), slice.work, Failure::Refused);
            } else if to_blame || why == Reject::PathDown {
                self.retry(op.id);
            } else {
                self.requeue(op.id, Stage::Returned);
            }
            self.settle(slice.batch);
        }
        if !called {
            self.set_called(path, false);
        }
        // A full or broken path says when it is not any more, or is asked again after a while.
        match why {
            Reject::BadRegion => self.wake(path),
            Reject::Full | Reject::PathDown => self.look_again(now, path, More::No),
        }
    }

    fn set_called(&mut self, path: PathId, called: bool) -> bool {
        let Some(known) = self.topology.paths.get_mut(path) else { return false };
        core::mem::replace(&mut known.called, called)
    }

    /// Whether another path than its last is in use for a slice, and it may be tried again.
    fn has_other_path(&self, slice: &Slice) -> bool {
        let target = self.flows.get(slice.flow).and_then(|flow| self.topology.targets.get(flow.target));
        let up = |path| self.topology.paths.get(path).is_some_and(|known| known.health == PathHealth::Up);
        slice.tries < self.config.tries
            && target.is_some_and(|t| t.links.iter().any(|link| link.path != slice.path && up(link.path)))
    }

    /// Lets a slice that did not end well be tried again, if that is safe, useful and allowed.
    pub(super) fn retry(&mut self, id: OpId) {
        let Some(slice) = self.ops.get(id).copied() else { return };
        let work = self.batches.get(slice.batch).map(|batch| batch.work[slice.work as usize]);
        let Some(work) = work.filter(|work| work.is_pending()) else {
            self.ops.remove(id);
            return;
        };
        let target = work.transfer.target;
        let safe = work.transfer.verb == Verb::Read || work.transfer.ticket.is_some();
        let why = if !safe || slice.tries >= self.config.tries {
            Failure::Interrupted
        } else if self.topology.targets.get(target).is_none() {
            Failure::Removed
        } else if self.is_hopeless(target) {
            Failure::Unreachable
        } else {
            self.requeue(id, Stage::Waiting);
            return;
        };
        self.ops.remove(id);
        self.fail(slice.batch, Some(slice.flow), slice.work, why);
    }

    /// Puts a slice to the front of those that wait in its flow.
    fn requeue(&mut self, id: OpId, stage: Stage) {
        let Some(slice) = self.ops.get_mut(id) else { return };
        let Some(flow) = self.flows.get_mut(slice.flow) else {
            self.ops.remove(id);
            return;
        };
        slice.stage = stage;
        slice.next = flow.retry.replace(id);
        flow.left += u64::from(slice.len);
        let flow = slice.flow;
        self.enqueue(flow);
    }

    fn restage(&mut self, id: OpId, stage: Stage) {
        if let Some(slice) = self.ops.get_mut(id) {
            slice.stage = stage;
        }
    }

    fn slice_done(&mut self, slice: &Slice) {
        let Some(batch) = self.batches.get_mut(slice.batch) else { return };
        let work = &mut batch.work[slice.work as usize];
        work.left -= u64::from(slice.len);
        if work.left == 0 && work.is_pending() {
            self.transfer_done(slice.batch, slice.work);
        }
    }

    pub(super) fn transfer_done(&mut self, batch: BatchId, index: u32) {
        if let Some(batch) = self.batches.get_mut(batch) {
            batch.work[index as usize].status = TransferStatus::Done;
            batch.pending -= 1;
        }
    }

    /// A transfer fails; what was not cut of it is not cut any more.
    pub(super) fn fail(&mut self, batch: BatchId, flow: Option<FlowId>, index: u32, why: Failure) {
        let Some(batch) = self.batches.get_mut(batch) else { return };
        let work = &mut batch.work[index as usize];
        if !work.is_pending() {
            return;
        }
        work.status = TransferStatus::Failed(why);
        let rest = work.transfer.len - work.cut;
        work.cut = work.transfer.len;
        batch.pending -= 1;
        batch.first.get_or_insert(why);
        if let Some(flow) = flow.and_then(|flow| self.flows.get_mut(flow)) {
            flow.left -= rest;
        }
    }

    /// Fails all that a target still has to do.
    pub(super) fn fail_target(&mut self, target: TargetId, why: Failure) {
        while let Some(known) = self.topology.targets.get_mut(target)
            && let Some(id) = known.ring.pop_front()
        {
            let Some(flow) = self.flows.get_mut(id) else {
                known.stale = known.stale.saturating_sub(1);
                continue;
            };
            flow.queued = false;
            let (batch, mut index) = (flow.batch, flow.head);
            while let Some(work) = self.batches.get(batch).and_then(|b| b.work.get(index as usize)) {
                let next = work.next;
                self.fail(batch, Some(id), index, why);
                index = next;
            }
            self.drain(id, Some(why));
            self.settle(batch);
        }
    }

    /// Takes all waiting slices out of a flow; their transfers fail if `why` is given.
    fn drain(&mut self, id: FlowId, why: Option<Failure>) {
        while let Some(flow) = self.flows.get_mut(id)
            && let Some(first) = flow.retry
        {
            let Some(slice) = self.ops.remove(first) else { break };
            flow.retry = slice.next;
            flow.left -= u64::from(slice.len);
            if let Some(why) = why {
                self.fail(slice.batch, Some(id), slice.work, why);
            }
        }
    }

    /// Gives up all that has not ended of a batch.
    pub(super) fn give_up(&mut self, now: Instant, id: BatchId, why: Failure) {
        let Some(batch) = self.batches.get_mut(id).filter(|batch| batch.phase == Phase::Open) else { return };
        for work in batch.work.iter_mut().filter(|work| work.is_pending()) {
            work.status = TransferStatus::Failed(why);
            work.cut = work.transfer.len;
        }
        if batch.pending > 0 {
            batch.first.get_or_insert(why);
        }
        batch.pending = 0;
        batch.phase = Phase::Cancelling(now);
        self.drop_flows(id);
        self.out.recall = true;
        self.timers[BATCHES].set(id.index(), now + self.config.grace);
        self.settle(id);
    }

    /// Takes a batch's flows away. Their entries in the rings become stale; rings that are half stale are swept.
    fn drop_flows(&mut self, id: BatchId) {
        let mut next = self.batches.get_mut(id).and_then(|batch| batch.flows.take());
        while let Some(id) = next {
            self.drain(id, None);
            let Some(flow) = self.flows.remove(id) else { break };
            next = flow.sibling;
            let Some(target) = self.topology.targets.get_mut(flow.target) else { continue };
            target.flows -= 1;
            target.stale += usize::from(flow.queued);
            if target.stale > 16 && target.stale * 2 > target.ring.len() {
                let flows = &self.flows;
                target.ring.retain(|id| flows.get(*id).is_some());
                target.stale = 0;
            }
        }
    }

    /// Ends a batch if nothing is left to wait for.
    pub(super) fn settle(&mut self, id: BatchId) {
        if self.batches.get(id).is_some_and(|batch| batch.phase != Phase::Ended && batch.is_over()) {
            self.end(id);
        }
    }

    /// Ends a batch, whatever is left.
    pub(super) fn end(&mut self, id: BatchId) {
        self.drop_flows(id);
        self.timers[BATCHES].remove(id.index());
        self.counts.live -= 1;
        let Some(batch) = self.batches.get_mut(id) else { return };
        batch.phase = Phase::Ended;
        match batch.keep {
            Keep::Caller => self.out.ended.push_back(id),
            Keep::Nobody => self.recycle(id),
        }
    }

    /// Asks the lane to close a path, once.
    pub(super) fn ask_close(&mut self, path: PathId) {
        if let Some(known) = self.topology.paths.get_mut(path)
            && !matches!(known.health, PathHealth::Closing | PathHealth::Down)
        {
            known.health = PathHealth::Closing;
            self.out.asks.push_back(Next::Close(path));
        }
    }
}
