//! Peers' memory and the paths that lead there.

use springtide_core::id::{PathId, RemoteId, TargetId};
use springtide_core::time::Instant;
use springtide_core::transfer::{PathShape, PathState};
use springtide_transport::{Capabilities, ControlError, DownReason};

use super::{Card, Lane, TargetError};

/// A way to one address over one transport.
#[derive(Debug)]
pub(super) struct Path {
    /// Which transport.
    pub(super) rail: usize,
    address: Box<[u8]>,
    /// What is imported on it; when the last goes, it is closed.
    remotes: Vec<RemoteId>,
    link: Link,
    /// Whether the engine may have more for it than the transport had room for.
    pub(super) hungry: bool,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Link {
    /// The transport knows the path: it is coming up, or up.
    Open,
    /// The transport does not know it.
    Shut,
    /// Nobody uses it any more: it is forgotten once the transport has let it go.
    Leaving,
}

/// A peer's memory on one path.
#[derive(Debug)]
pub(super) struct Remote {
    target: TargetId,
    path: PathId,
    description: Box<[u8]>,
}

impl Lane {
    /// Makes a peer's memory known: opens a path for each card, or shares the one that leads to the same address.
    /// Cards of unknown transports and of addresses that cannot be reached from here are skipped.
    ///
    /// Nothing is waited for: transfers wait until a path is up, or fail once none can be opened.
    ///
    /// # Errors
    /// When no card is left.
    pub fn target(&mut self, now: Instant, cards: &[Card]) -> Result<TargetId, TargetError> {
        self.told = true;
        let target = self.engine.add_target(now);
        self.ways.targets.insert(target, Vec::new());
        let mut last = TargetError::NoWay;
        for card in cards {
            let named = |rail: &usize| self.transports[*rail].capabilities().name == card.transport;
            let Some(rail) = (0..self.transports.len()).find(named) else { continue };
            if let Err(error) = self.reach(now, target, rail, card) {
                last = TargetError::Refused(error);
            }
        }
        if self.ways.targets.get(target).is_none_or(Vec::is_empty) {
            self.drop_target(now, target);
            return Err(last);
        }
        Ok(target)
    }

    /// Forgets a peer's memory; its transfers that have not ended fail. Paths that nobody uses any more are closed.
    pub fn drop_target(&mut self, now: Instant, target: TargetId) {
        self.told = true;
        for remote in self.ways.targets.remove(target).unwrap_or_default() {
            self.leave(now, remote);
        }
        self.engine.remove_target(now, target);
    }

    fn reach(
        &mut self,
        now: Instant,
        target: TargetId,
        rail: usize,
        card: &Card,
    ) -> Result<(), ControlError> {
        let path = match self.path_to(rail, &card.address) {
            Some(path) => path,
            None => self.open(now, rail, &card.address)?,
        };
        let remote = self.engine.attach(target, path).ok_or(ControlError::Unknown)?;
        if self.ways.remotes.get(remote).is_some() {
            // The same card twice.
            return Ok(());
        }
        let description = card.description.as_slice().into();
        self.ways.remotes.insert(remote, Remote { target, path, description });
        self.ways.targets.get_mut(target).into_iter().for_each(|remotes| remotes.push(remote));
        if let Some(known) = self.ways.paths.get_mut(path) {
            known.remotes.push(remote);
            if known.link == Link::Open
                && let Err(error) = self.transports[rail].import(path, remote, &card.description)
            {
                self.ways.targets.get_mut(target).into_iter().for_each(|remotes| {
                    remotes.retain(|other| *other != remote);
                });
                self.leave(now, remote);
                return Err(error);
            }
        }
        Ok(())
    }

    fn path_to(&self, rail: usize, address: &[u8]) -> Option<PathId> {
        let same = |path: &Path| path.rail == rail && *path.address == *address && path.link != Link::Leaving;
        self.ways.paths.iter().find(|(_, path)| same(path)).map(|(id, _)| id)
    }

    fn open(&mut self, now: Instant, rail: usize, address: &[u8]) -> Result<PathId, ControlError> {
        let path = self.engine.add_path(now, shape(self.transports[rail].capabilities()));
        if let Err(error) = self.transports[rail].open(now, path, address) {
            self.engine.remove_path(now, path);
            return Err(error);
        }
        let (address, remotes) = (address.into(), Vec::new());
        self.ways.paths.insert(path, Path { rail, address, remotes, link: Link::Open, hungry: false });
        Ok(path)
    }

    /// Ends a target's use of one path.
    fn leave(&mut self, now: Instant, remote: RemoteId) {
        let Some(Remote { target, path, .. }) = self.ways.remotes.remove(remote) else { return };
        self.engine.detach(target, path);
        let Some(known) = self.ways.paths.get_mut(path) else { return };
        known.remotes.retain(|other| *other != remote);
        self.transports[known.rail].forget(remote);
        if !known.remotes.is_empty() {
            return;
        }
        if known.link == Link::Open {
            known.link = Link::Leaving;
            self.transports[known.rail].close(path);
        } else {
            self.ways.paths.remove(path);
            self.engine.remove_path(now, path);
        }
    }

    /// Opens a path again under its id, with everything that was imported on it.
    pub(super) fn reopen(&mut self, now: Instant, id: PathId) {
        let Some(path) = self.ways.paths.get_mut(id) else { return };
        let transport = &mut self.transports[path.rail];
        if path.link != Link::Shut {
            return;
        }
        if let Err(error) = transport.open(now, id, &path.address) {
            tracing::debug!(%error, "a path does not open");
            self.engine.handle_path(now, id, PathState::Down);
            return;
        }
        path.link = Link::Open;
        for index in (0..path.remotes.len()).rev() {
            let remote = path.remotes[index];
            let Some(known) = self.ways.remotes.get(remote) else { continue };
            if let Err(error) = transport.import(id, remote, &known.description) {
                // The peer is gone, or lives again with other memory: this way to the target is no more.
                tracing::debug!(%error, "a peer's memory is not there any more");
                self.engine.detach(known.target, id);
                path.remotes.swap_remove(index);
            }
        }
    }

    /// Closes a path that the engine has given up; [`path_down`](Self::path_down) follows.
    pub(super) fn close(&mut self, now: Instant, id: PathId) {
        match self.ways.paths.get(id) {
            Some(path) if path.link == Link::Open => self.transports[path.rail].close(id),
            _ => self.engine.handle_path(now, id, PathState::Down),
        }
    }

    pub(super) fn path_up(&mut self, now: Instant, id: PathId) {
        if self.ways.paths.get(id).is_some_and(|path| path.link == Link::Open) {
            self.engine.handle_path(now, id, PathState::Up);
        }
    }

    pub(super) fn path_down(&mut self, now: Instant, id: PathId, reason: DownReason) {
        let Some(path) = self.ways.paths.get_mut(id) else { return };
        tracing::debug!(
            ?reason,
            transport = self.transports[path.rail].capabilities().name,
            "a path is down"
        );
        if path.link == Link::Leaving {
            self.ways.paths.remove(id);
            self.engine.remove_path(now, id);
            return;
        }
        path.link = Link::Shut;
        self.engine.handle_path(now, id, PathState::Down);
    }
}

fn shape(transport: &Capabilities) -> PathShape {
    PathShape {
        max_op: transport.max_op,
        chunk: transport.chunk,
        depth: transport.depth,
        latency: transport.latency,
        bandwidth: transport.bandwidth,
    }
}
