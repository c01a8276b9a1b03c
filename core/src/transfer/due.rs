//! What time brings, and what transports say about paths.

use super::batch::{Phase, Slice, Stage};
use super::engine::{BATCHES, Engine, PATHS};
use super::{Failure, Next, PathHealth, PathState};
use crate::id::{BatchId, Id, PathId};
use crate::time::Instant;

impl Engine {
    /// Does what is due: deadlines, pauses that are over, stalled paths. Early or late is harmless.
    pub fn handle_timeout(&mut self, now: Instant) {
        let now = self.clock.observe(now);
        while let Some(slot) = self.timers[BATCHES].pop_due(now) {
            if let Some(batch) = self.batches.id_at(slot) {
                self.batch_due(now, batch);
            }
        }
        // What is set again here lies in the future, so this ends.
        while let Some(slot) = self.timers[PATHS].pop_due(now) {
            if let Some(path) = self.topology.paths.id_at(slot) {
                self.path_due(now, path);
            }
        }
    }

    fn batch_due(&mut self, now: Instant, id: BatchId) {
        let Some(batch) = self.batches.get_mut(id) else { return };
        match batch.phase {
            Phase::Open => self.give_up(now, id, Failure::Deadline),
            Phase::Cancelling(since) => {
                batch.phase = Phase::Closing;
                self.close_idle(id, since);
                self.timers[BATCHES].set(id.index(), now + self.config.grace);
            }
            Phase::Closing => self.end(id),
            Phase::Ended => {}
        }
    }

    /// Closes the paths that hold ops of a batch and have not moved anything since it was given up.
    fn close_idle(&mut self, batch: BatchId, since: Instant) {
        for slot in 0..self.ops.slots() {
            let slice = self.ops.id_at(slot).and_then(|id| self.ops.get(id));
            let Some(slice) = slice.filter(|slice| slice.batch == batch && slice.stage.is_out()) else {
                continue;
            };
            let path = slice.path;
            if self.topology.paths.get(path).is_some_and(|known| known.load.moved <= since) {
                self.ask_close(path);
            }
        }
    }

    fn path_due(&mut self, now: Instant, id: PathId) {
        let Some(path) = self.topology.paths.get_mut(id) else { return };
        let until = path.breaker.until;
        match path.health {
            PathHealth::Closing => {}
            PathHealth::Down | PathHealth::Opening if !until.reached(now) => {
                self.timers[PATHS].set(id.index(), until);
            }
            PathHealth::Down => {
                path.health = PathHealth::Opening;
                path.breaker.until = now + self.config.stall;
                self.timers[PATHS].set(id.index(), path.breaker.until);
                self.out.asks.push_back(Next::Reopen(id));
            }
            PathHealth::Opening => {
                path.breaker.openings = path.breaker.openings.saturating_add(1);
                self.ask_close(id);
                self.fail_hopeless(id);
            }
            PathHealth::Up | PathHealth::Suspect => self.watch(now, id),
        }
    }

    /// Looks after a path in use: closes it when it stalls, and has it asked for work again.
    fn watch(&mut self, now: Instant, id: PathId) {
        let Some(path) = self.topology.paths.get(id) else { return };
        let stalls = path.stalls_at(&self.config);
        if path.load.flying > 0 {
            if stalls.reached(now) {
                self.ask_close(id);
                return;
            }
            self.timers[PATHS].set_earlier(id.index(), stalls);
        }
        if path.health == PathHealth::Suspect && !path.breaker.until.reached(now) {
            self.timers[PATHS].set_earlier(id.index(), path.breaker.until);
            return;
        }
        self.wake(id);
    }

    /// Takes in that a path came up or went down. Its ops complete through
    /// [`handle_completions`](Self::handle_completions) all the same, before or after. A path that is down is asked
    /// to be opened again after a pause, until it is removed.
    pub fn handle_path(&mut self, now: Instant, path: PathId, state: PathState) {
        let now = self.clock.observe(now);
        match state {
            PathState::Up => self.path_up(now, path),
            PathState::Down => self.path_down(now, path),
        }
    }

    fn path_up(&mut self, now: Instant, id: PathId) {
        let Some(path) = self.topology.paths.get_mut(id) else { return };
        // A path that is to be closed goes down first.
        if matches!(path.health, PathHealth::Opening | PathHealth::Down) {
            path.health = PathHealth::Up;
            path.breaker.openings = 0;
            path.breaker.failures = 0;
            path.load.moved = now;
            self.timers[PATHS].remove(id.index());
            self.wake(id);
        }
    }

    fn path_down(&mut self, now: Instant, id: PathId) {
        let Some(path) = self.topology.paths.get_mut(id) else { return };
        match path.health {
            PathHealth::Down => return,
            PathHealth::Opening => path.breaker.openings = path.breaker.openings.saturating_add(1),
            _ => {}
        }
        path.health = PathHealth::Down;
        path.pause(now, &self.config, &mut self.rng);
        self.timers[PATHS].set(id.index(), path.breaker.until);
        self.unpark(id, None);
        self.fail_hopeless(id);
        self.wake_others(id);
    }

    /// A closed path touches no memory any more: lost reads may be tried again, or fail with `why`.
    pub(super) fn unpark(&mut self, path: PathId, why: Option<Failure>) {
        for slot in 0..self.ops.slots() {
            let Some(id) = self.ops.id_at(slot) else { continue };
            let parked = |slice: &&Slice| slice.path == path && slice.stage == Stage::Parked;
            let Some(slice) = self.ops.get(id).filter(parked).copied() else { continue };
            let Some(batch) = self.batches.get_mut(slice.batch) else {
                self.ops.remove(id);
                continue;
            };
            batch.parked -= 1;
            if let Some(why) = why {
                batch.lost += 1;
                self.ops.remove(id);
                self.fail(slice.batch, Some(slice.flow), slice.work, why);
            } else {
                self.retry(id);
            }
            self.settle(slice.batch);
        }
    }

    /// Fails the work of targets that no path leads to any more.
    fn fail_hopeless(&mut self, path: PathId) {
        let targets = self.topology.paths.get(path).map_or(0, |known| known.targets.len());
        for index in 0..targets {
            let target = self.topology.paths.get(path).and_then(|known| known.targets.get(index).copied());
            if let Some(target) = target
                && self.is_hopeless(target)
            {
                self.fail_target(target, Failure::Unreachable);
            }
        }
    }

    /// Has the other paths of this path's targets look for work that they had left to it.
    fn wake_others(&mut self, path: PathId) {
        let targets = self.topology.paths.get(path).map_or(0, |known| known.targets.len());
        for index in 0..targets {
            let target = self.topology.paths.get(path).and_then(|known| known.targets.get(index).copied());
            if let Some(target) = target {
                self.mark_ready(target);
            }
        }
    }

    /// Marks the ops of batches that were given up, for the lane to cancel.
    pub(super) fn recall(&mut self) {
        for (id, slice) in self.ops.iter_mut().filter(|(_, slice)| slice.stage == Stage::Flying) {
            let given_up = self.batches.get(slice.batch).is_none_or(|batch| batch.phase != Phase::Open);
            if given_up {
                slice.stage = Stage::Recalled;
                self.out.cancels.push_back((slice.path, id));
            }
        }
    }
}
