//! Paths and targets come and go.

use super::batch::{FlowId, Link};
use super::engine::{Engine, PATHS};
use super::path::Path;
use super::{Completion, Failure, PathHealth, PathShape, Status};
use crate::id::{Id, PathId, RemoteId, TargetId};
use crate::time::Instant;

impl Engine {
    /// Makes a path known. It starts as [`PathHealth::Opening`]: the lane opens it and reports with
    /// [`handle_path`](Self::handle_path).
    pub fn add_path(&mut self, now: Instant, shape: PathShape) -> PathId {
        let now = self.clock.observe(now);
        let path = Path::new(now, shape, &self.config);
        let until = path.breaker.until;
        let id = self.topology.paths.insert(path);
        self.timers[PATHS].set(id.index(), until);
        id
    }

    /// Forgets a path. Call it when the transport has completed the path's ops; ops that are still in flight count
    /// as lost.
    pub fn remove_path(&mut self, now: Instant, path: PathId) {
        let now = self.clock.observe(now);
        let Some(known) = self.topology.paths.get_mut(path) else { return };
        // Nobody is to be asked to close it, and what is lost on it is lost for good.
        known.health = PathHealth::Closing;
        for slot in 0..self.ops.slots() {
            if let Some(id) = self.ops.id_at(slot)
                && self.ops.get(id).is_some_and(|slice| slice.path == path && slice.stage.is_out())
            {
                let lost = Completion { id, bytes: 0, status: Status::Lost, code: 0 };
                self.handle_completions(now, path, &[lost]);
            }
        }
        self.unpark(path, Some(Failure::Lost));
        while let Some(target) = self.topology.paths.get_mut(path).and_then(|known| known.targets.pop()) {
            self.detach(target, path);
        }
        self.timers[PATHS].remove(path.index());
        self.topology.paths.remove(path);
    }

    /// Makes a target known; reachable once [`attach`](Self::attach)ed.
    pub fn add_target(&mut self, now: Instant) -> TargetId {
        self.clock.observe(now);
        self.topology.targets.insert(Default::default())
    }

    /// Forgets a target. What was not handed out of its transfers fails with [`Failure::Removed`]; the lane forgets
    /// the remote ids that it had ([`remote`](Self::remote)) by itself.
    pub fn remove_target(&mut self, now: Instant, target: TargetId) {
        self.clock.observe(now);
        self.fail_target(target, Failure::Removed);
        while let Some(link) = self.topology.targets.get(target).and_then(|known| known.links.last().copied())
        {
            self.detach(target, link.path);
        }
        self.topology.targets.remove(target);
    }

    /// Says that `target` can be reached over `path`, under the id that it gives back: the lane imports the target's
    /// memory under it, now or when the path comes up. `None` if either is unknown; the same id if attached already.
    pub fn attach(&mut self, target: TargetId, path: PathId) -> Option<RemoteId> {
        if let Some(remote) = self.remote(target, path) {
            return Some(remote);
        }
        let known = self.topology.paths.get_mut(path)?;
        let links = &mut self.topology.targets.get_mut(target)?.links;
        let remote = self.topology.remotes.insert((target, path));
        known.targets.push(target);
        links.push(Link { path, remote, queued: false });
        self.mark_ready(target);
        Some(remote)
    }

    /// Ends [`attach`](Self::attach): no more ops go that way. Gives back the id to forget. What waits for a target
    /// that has no way left fails with [`Failure::Unreachable`]: nobody would ever take it up.
    pub fn detach(&mut self, target: TargetId, path: PathId) -> Option<RemoteId> {
        let known = self.topology.targets.get_mut(target)?;
        let link = known.links.remove(known.link(path)?);
        self.topology.remotes.remove(link.remote);
        if let Some(path) = self.topology.paths.get_mut(path) {
            path.targets.retain(|other| *other != target);
            path.ready.retain(|other| *other != target);
        }
        if self.is_hopeless(target) {
            self.fail_target(target, Failure::Unreachable);
        }
        Some(link.remote)
    }

    /// Under which id the memory of `target` is imported on `path`.
    pub fn remote(&self, target: TargetId, path: PathId) -> Option<RemoteId> {
        let target = self.topology.targets.get(target)?;
        target.link(path).map(|link| target.links[link].remote)
    }

    /// The targets that are attached to `path`, with the ids under which to import them.
    pub fn imports(&self, path: PathId) -> impl Iterator<Item = (TargetId, RemoteId)> {
        let targets = self.topology.paths.get(path).map_or(&[][..], |known| &known.targets);
        targets.iter().filter_map(move |target| Some((*target, self.remote(*target, path)?)))
    }

    /// Whether every path to `target` has failed to open as often as is tried, or it has none.
    pub(super) fn is_hopeless(&self, target: TargetId) -> bool {
        let Some(target) = self.topology.targets.get(target) else { return true };
        let hopeless =
            |path| self.topology.paths.get(path).is_none_or(|known: &Path| known.is_hopeless(&self.config));
        target.links.iter().all(|link| hopeless(link.path))
    }

    /// Puts a flow into its target's ring, and tells the target's paths.
    pub(super) fn enqueue(&mut self, id: FlowId) {
        let Some(flow) = self.flows.get_mut(id) else { return };
        let target = flow.target;
        if !core::mem::replace(&mut flow.queued, true)
            && let Some(known) = self.topology.targets.get_mut(target)
        {
            known.ring.push_back(id);
        }
        self.mark_ready(target);
    }

    /// Puts a target that has work into the rings of its paths.
    pub(super) fn mark_ready(&mut self, target: TargetId) {
        let Some(known) = self.topology.targets.get_mut(target) else { return };
        if known.ring.is_empty() {
            return;
        }
        for link in &mut known.links {
            let Some(path) = self.topology.paths.get_mut(link.path) else { continue };
            if !core::mem::replace(&mut link.queued, true) {
                path.ready.push_back(target);
            }
            if path.may_be_called() {
                path.called = true;
                self.out.takes.push_back(link.path);
            }
        }
    }

    /// Tells the lane that a path has work, if it has.
    pub(super) fn wake(&mut self, path: PathId) {
        if let Some(known) = self.topology.paths.get_mut(path)
            && known.may_be_called()
        {
            known.called = true;
            self.out.takes.push_back(path);
        }
    }
}

impl Path {
    fn may_be_called(&self) -> bool {
        let up = matches!(self.health, PathHealth::Up | PathHealth::Suspect);
        up && !self.called && !self.ready.is_empty()
    }
}
