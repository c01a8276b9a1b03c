//! The engine's doors.

use core::time::Duration;

use super::{Completion, Config, Op, Outcome, PathShape, SubmitError, TransferStatus, Verb};
use crate::id::{BatchId, OpId, PathId, RegionId, RemoteId, TargetId, TicketId};
use crate::rng::mix;
use crate::slab::Slab;
use crate::time::{Instant, Monotone};

/// One movement of bytes between our memory and a target's, of any length.
#[derive(Clone, Copy, Debug)]
pub struct Transfer {
    /// Which way.
    pub verb: Verb,
    /// Our memory.
    pub local: RegionId,
    /// The first byte in our memory.
    pub at: u64,
    /// The peer's segment.
    pub target: TargetId,
    /// The first byte in the peer's segment.
    pub to: u64,
    /// The write permission; `None` for reads. A write without one is not tried twice.
    pub ticket: Option<TicketId>,
    /// How many bytes.
    pub len: u64,
}

/// What the lane must do now.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum Next {
    /// This batch has ended. Look at its transfers, then [`Engine::release`] it.
    Batch(BatchId, Outcome),
    /// This path has work: call [`Engine::take_ops`] with the transport's room. Said once for each change, so a lane
    /// may as well call it for all its paths and ignore this.
    Take(PathId),
    /// Ask this path's transport to cancel this op.
    Cancel(PathId, OpId),
    /// Open this path again under the same id, and import the memory of its targets again under the same remote ids.
    /// Answer with [`Engine::handle_path`].
    Reopen(PathId),
    /// Close this path; report its completions and then [`PathState::Down`].
    Close(PathId),
    /// Nothing to do before this moment, or before something happens.
    Wait(Option<Instant>),
}

/// What a transport said about a path.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum PathState {
    /// It can be used.
    Up,
    /// It is gone; the transport completes its ops.
    Down,
}

/// Why ops were not posted.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Reject {
    /// No room.
    Full,
    /// The path is not up.
    PathDown,
    /// This path cannot reach the first op's memory; another one may.
    BadRegion,
}

/// How a path is doing.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum PathHealth {
    /// Being opened.
    Opening,
    /// In use.
    Up,
    /// Up, but it failed too often: on trial with one op at a time.
    Suspect,
    /// Being closed.
    Closing,
    /// Waiting to be opened again.
    Down,
}

/// Figures of one path, since it was added.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct PathStats {
    /// How it is doing.
    pub health: PathHealth,
    /// Bytes that moved.
    pub bytes: u64,
    /// Ops that were done.
    pub ops: u64,
    /// Ops that ended otherwise.
    pub errors: u64,
    /// Ops in flight.
    pub flying: u32,
    /// Bytes in flight.
    pub outstanding: u64,
    /// Measured latency of one op.
    pub latency: Duration,
    /// Measured throughput, in bytes per second.
    pub bandwidth: u64,
}

#[derive(Debug)]
struct Path {
    health: PathHealth,
}

/// The engine of one lane. See the [module](super) for how to drive it.
#[derive(Debug)]
pub struct Engine {
    config: Config,
    clock: Monotone,
    seed: u64,
    paths: Slab<PathId, Path>,
    targets: Slab<TargetId, ()>,
    remotes: Slab<RemoteId, (TargetId, PathId)>,
}

// The doors, first draft: topology is kept, work is refused.
impl Engine {
    /// An engine without paths and targets. `seed` decides how pauses are jittered.
    pub fn new(config: Config, seed: u64) -> Self {
        Self {
            config,
            clock: Monotone::default(),
            seed,
            paths: Slab::default(),
            targets: Slab::default(),
            remotes: Slab::default(),
        }
    }

    // Topology.

    /// Makes a path known. It starts as [`PathHealth::Opening`]: the lane opens it and reports with
    /// [`handle_path`](Self::handle_path).
    pub fn add_path(&mut self, now: Instant, _shape: PathShape) -> PathId {
        self.clock.observe(now);
        self.paths.insert(Path { health: PathHealth::Opening })
    }

    /// Forgets a path. Call it when the transport has completed the path's ops; ops that are still in flight count
    /// as lost.
    pub fn remove_path(&mut self, now: Instant, path: PathId) {
        self.clock.observe(now);
        self.paths.remove(path);
    }

    /// Makes a target known; reachable once [`attach`](Self::attach)ed.
    pub fn add_target(&mut self, now: Instant) -> TargetId {
        self.clock.observe(now);
        self.targets.insert(())
    }

    /// Forgets a target. Its transfers that have not ended fail with [`Failure::Removed`](super::Failure).
    pub fn remove_target(&mut self, now: Instant, target: TargetId) {
        self.clock.observe(now);
        self.targets.remove(target);
    }

    /// Says that `target` can be reached over `path`, under the id that it gives back: the lane imports the target's
    /// memory under it, now or when the path comes up. `None` if either is unknown; the same id if attached already.
    pub fn attach(&mut self, target: TargetId, path: PathId) -> Option<RemoteId> {
        self.targets.get(target)?;
        self.paths.get(path)?;
        Some(self.remotes.insert((target, path)))
    }

    /// Ends [`attach`](Self::attach): no more ops go that way. Gives back the id to forget.
    pub fn detach(&mut self, target: TargetId, path: PathId) -> Option<RemoteId> {
        let remote = self.remote(target, path)?;
        self.remotes.remove(remote);
        Some(remote)
    }

    /// Under which id the memory of `target` is imported on `path`.
    pub fn remote(&self, target: TargetId, path: PathId) -> Option<RemoteId> {
        self.remotes.iter().find(|(_, link)| **link == (target, path)).map(|(remote, _)| remote)
    }

    /// The targets that are attached to `path`, with the ids under which to import them.
    pub fn imports(&self, path: PathId) -> impl Iterator<Item = (TargetId, RemoteId)> {
        self.remotes.iter().filter(move |(_, link)| link.1 == path).map(|(remote, link)| (link.0, remote))
    }

    /// Takes in that a path came up or went down. Its ops complete through
    /// [`handle_completions`](Self::handle_completions) all the same, before or after.
    pub fn handle_path(&mut self, now: Instant, path: PathId, state: PathState) {
        self.clock.observe(now);
        if let Some(path) = self.paths.get_mut(path) {
            path.health = match state {
                PathState::Up => PathHealth::Up,
                PathState::Down => PathHealth::Down,
            };
        }
    }

    // Work.

    /// Takes a batch in. It ends exactly once, with [`Next::Batch`], soon after `deadline` at the latest. An empty
    /// batch ends at once.
    pub fn submit(
        &mut self,
        now: Instant,
        _batch: &[Transfer],
        _deadline: Instant,
    ) -> Result<BatchId, SubmitError> {
        self.clock.observe(now);
        Err(SubmitError::Full)
    }

    /// Gives up what has not ended of a batch; it still ends with [`Next::Batch`].
    pub fn cancel(&mut self, now: Instant, _batch: BatchId) {
        self.clock.observe(now);
    }

    /// How far transfer `index` of a batch is; `None` if there is none or the batch was released.
    pub fn transfer_status(&self, _batch: BatchId, _index: usize) -> Option<TransferStatus> {
        None
    }

    /// Forgets an ended batch. A batch that has not ended is cancelled, and ends without [`Next::Batch`].
    pub fn release(&mut self, now: Instant, _batch: BatchId) {
        self.clock.observe(now);
    }

    /// Writes ops for `path` into `out`: at most `room` of them, each within the path's `max_op` and both sides'
    /// seams. Gives back how many. Post all of them, and report those that were not accepted.
    pub fn take_ops(&mut self, now: Instant, _path: PathId, _room: usize, _out: &mut [Op]) -> usize {
        self.clock.observe(now);
        0
    }

    /// Takes in that `ops`, the tail of what [`take_ops`](Self::take_ops) gave, were not posted, the first of them
    /// because of `why`.
    pub fn handle_refused(&mut self, now: Instant, _path: PathId, _ops: &[Op], _why: Reject) {
        self.clock.observe(now);
    }

    /// Takes in how ops ended. Completions of unknown ops are counted and ignored.
    pub fn handle_completions(&mut self, now: Instant, _path: PathId, _done: &[Completion]) {
        self.clock.observe(now);
    }

    /// Does what is due: deadlines, pauses that are over, stalled paths. Early or late is harmless.
    pub fn handle_timeout(&mut self, now: Instant) {
        self.clock.observe(now);
    }

    /// What the lane must do now. The last answer is always [`Next::Wait`].
    pub fn poll(&mut self, now: Instant) -> Next {
        self.clock.observe(now);
        Next::Wait(None)
    }

    // Looking.

    /// Figures of a path.
    pub fn path_stats(&self, _path: PathId) -> Option<PathStats> {
        None
    }

    /// How long one op of `len` bytes would take on `path` now.
    pub fn predicted(&self, _now: Instant, _path: PathId, _len: u32) -> Option<Duration> {
        None
    }

    /// Batches that have not ended.
    pub fn live(&self) -> usize {
        0
    }

    /// A fingerprint of everything that decides what the engine does next, for replay.
    pub fn digest(&self) -> u64 {
        mix(self.seed ^ self.paths.len() as u64 ^ u64::from(self.config.batches))
    }
}
