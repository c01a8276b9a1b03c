//! The engine: what it holds, how work comes in, and its one way out.

use alloc::collections::VecDeque;
use alloc::vec::Vec;
use core::time::Duration;

use super::batch::{Batch, Flow, FlowId, Keep, NONE, Phase, Slice, Stage, Target, Work};
use super::path::Path;
use super::timers::Timers;
use super::{Config, Failure, Next, PathHealth, PathStats, Quiet, SubmitError, Transfer, TransferStatus};
use crate::id::{BatchId, Id, OpId, PathId, RemoteId, TargetId};
use crate::rng::{Rng, mix};
use crate::slab::Slab;
use crate::time::{Instant, Monotone};

/// The engine of one lane. See the [module](super) for how to drive it.
#[derive(Debug)]
pub struct Engine {
    pub(super) config: Config,
    pub(super) clock: Monotone,
    pub(super) rng: Rng,
    pub(super) topology: Topology,
    pub(super) batches: Slab<BatchId, Batch>,
    pub(super) flows: Slab<FlowId, Flow>,
    pub(super) ops: Slab<OpId, Slice>,
    pub(super) timers: [Timers; 2],
    pub(super) out: Out,
    pub(super) counts: Counts,
    /// Emptied tables of ended batches, to be filled again.
    spare: Vec<Vec<Work>>,
}

/// Batches that may wait for one target, however few may still be taken.
const FEW: u32 = 8;

/// Which timer table.
pub(super) const BATCHES: usize = 0;
pub(super) const PATHS: usize = 1;

/// What there is to reach, and how.
#[derive(Debug, Default)]
pub(super) struct Topology {
    pub(super) paths: Slab<PathId, Path>,
    pub(super) targets: Slab<TargetId, Target>,
    pub(super) remotes: Slab<RemoteId, (TargetId, PathId)>,
}

/// What the lane is to be told.
#[derive(Debug, Default)]
pub(super) struct Out {
    pub(super) ended: VecDeque<BatchId>,
    pub(super) cancels: VecDeque<(PathId, OpId)>,
    pub(super) asks: VecDeque<Next>,
    pub(super) takes: VecDeque<PathId>,
    /// Whether a batch was given up whose ops are not in `cancels` yet.
    pub(super) recall: bool,
}

#[derive(Debug, Default)]
pub(super) struct Counts {
    /// Ops that transports have.
    pub(super) flying: u32,
    /// Transfers of batches that are not released.
    pub(super) transfers: usize,
    /// Room in `spare`.
    pub(super) spare: usize,
    /// Batches that have not ended.
    pub(super) live: usize,
    /// Completions of unknown ops.
    pub(super) strange: u64,
}

impl Engine {
    /// An engine without paths and targets. `seed` decides how pauses are jittered.
    pub fn new(config: Config, seed: u64) -> Self {
        let (batches, ops) = (config.batches as usize, config.ops as usize);
        Self {
            config,
            clock: Monotone::default(),
            rng: Rng::new(seed),
            topology: Topology::default(),
            batches: Slab::with_capacity(batches),
            flows: Slab::with_capacity(batches),
            ops: Slab::with_capacity(ops),
            timers: [Timers::with_capacity(batches), Timers::default()],
            out: Out { ended: VecDeque::with_capacity(batches), ..Out::default() },
            counts: Counts::default(),
            spare: Vec::with_capacity(batches),
        }
    }

    // Work.

    /// Takes a batch in. It ends exactly once, with [`Next::Batch`], at `deadline` and two [`Config::grace`]s at the
    /// latest. An empty batch ends at once. O(transfers); allocates nothing once warm.
    pub fn submit(
        &mut self,
        now: Instant,
        batch: &[Transfer],
        deadline: Instant,
    ) -> Result<BatchId, SubmitError> {
        let now = self.clock.observe(now);
        self.check(batch)?;
        let mut work = self.spare.pop().unwrap_or_default();
        self.counts.spare -= work.capacity();
        // In powers of two, so that tables of different ages soon fit all batches that are usual here.
        work.reserve(batch.len().next_power_of_two().max(16));
        work.extend(batch.iter().map(Work::new));
        self.counts.transfers += work.len();
        self.counts.live += 1;
        let pending = work.len() as u32;
        let id = self.batches.insert(Batch::new(work, pending, deadline));
        for (index, transfer) in batch.iter().enumerate() {
            self.enlist(id, index as u32, transfer);
        }
        self.timers[BATCHES].set(id.index(), deadline);
        if deadline.reached(now) {
            self.give_up(now, id, Failure::Deadline);
        }
        self.settle(id);
        Ok(id)
    }

    fn check(&self, batch: &[Transfer]) -> Result<(), SubmitError> {
        if batch.len() > self.config.transfers as usize {
            return Err(SubmitError::TooLarge);
        }
        if self.batches.len() >= self.config.batches as usize
            || self.counts.transfers + batch.len() > self.config.transfers as usize
        {
            return Err(SubmitError::Full);
        }
        let free = self.config.batches as usize - self.batches.len();
        for (index, transfer) in batch.iter().enumerate() {
            let Some(target) = self.topology.targets.get(transfer.target) else {
                return Err(SubmitError::UnknownTarget(index as u32));
            };
            if target.flows >= FEW && target.flows as usize >= free {
                return Err(SubmitError::TargetBusy(index as u32));
            }
            let wraps = |start: u64| start.checked_add(transfer.len).is_none();
            if wraps(transfer.at) || wraps(transfer.to) {
                return Err(SubmitError::OutOfRange(index as u32));
            }
        }
        Ok(())
    }

    /// Puts one transfer of a new batch into the flow of its target (S0A-060).
    fn enlist(&mut self, batch: BatchId, index: u32, transfer: &Transfer) {
        if transfer.len == 0 {
            self.transfer_done(batch, index);
            return;
        }
        if self.is_hopeless(transfer.target) {
            self.fail(batch, None, index, Failure::Unreachable);
            return;
        }
        let flow = self.flow_of(batch, transfer.target, index);
        let Some(flow) = self.flows.get_mut(flow) else { return };
        let tail = core::mem::replace(&mut flow.tail, index);
        flow.left = flow.left.saturating_add(transfer.len);
        if tail != index
            && let Some(batch) = self.batches.get_mut(batch)
        {
            batch.work[tail as usize].next = index;
        }
    }

    /// The flow of `batch` to `target`; a new one begins with transfer `index`.
    fn flow_of(&mut self, batch: BatchId, target: TargetId, index: u32) -> FlowId {
        let last = self.topology.targets.get(target).and_then(|target| target.last);
        if let Some(last) = last
            && self.flows.get(last).is_some_and(|flow| flow.batch == batch)
        {
            return last;
        }
        let Some(owner) = self.batches.get_mut(batch) else { unreachable!("the batch was just made") };
        let flow = Flow::new(batch, target, index, owner.flows);
        let id = self.flows.insert(flow);
        owner.flows = Some(id);
        if let Some(target) = self.topology.targets.get_mut(target) {
            target.last = Some(id);
            target.flows += 1;
        }
        self.enqueue(id);
        id
    }

    /// Gives up what has not ended of a batch; it still ends with [`Next::Batch`].
    pub fn cancel(&mut self, now: Instant, batch: BatchId) {
        let now = self.clock.observe(now);
        self.give_up(now, batch, Failure::Cancelled);
    }

    /// Forgets an ended batch. A batch that has not ended is cancelled, and ends without [`Next::Batch`].
    pub fn release(&mut self, now: Instant, batch: BatchId) {
        let now = self.clock.observe(now);
        let Some(known) = self.batches.get_mut(batch) else { return };
        if known.phase == Phase::Ended {
            self.recycle(batch);
        } else {
            known.keep = Keep::Nobody;
            self.give_up(now, batch, Failure::Cancelled);
        }
    }

    /// Takes a batch out, and keeps its table for another.
    pub(super) fn recycle(&mut self, batch: BatchId) {
        let Some(Batch { mut work, .. }) = self.batches.remove(batch) else { return };
        self.counts.transfers -= work.len();
        work.clear();
        let fits = self.counts.spare + work.capacity() <= self.config.transfers as usize;
        if fits && self.spare.len() < self.config.batches as usize {
            self.counts.spare += work.capacity();
            self.spare.push(work);
        }
    }

    /// What the lane must do now. The last answer is always [`Next::Wait`].
    pub fn poll(&mut self, now: Instant) -> Next {
        self.clock.observe(now);
        while let Some(id) = self.out.ended.pop_front() {
            if let Some(batch) = self.batches.get(id) {
                return Next::Batch(id, batch.outcome());
            }
        }
        if core::mem::take(&mut self.out.recall) {
            self.recall();
        }
        while let Some((path, op)) = self.out.cancels.pop_front() {
            if self.ops.get(op).is_some_and(|slice| slice.stage == Stage::Recalled) {
                return Next::Cancel(path, op);
            }
        }
        while let Some(ask) = self.out.asks.pop_front() {
            if let Next::Close(path) | Next::Reopen(path) = ask
                && self.topology.paths.get(path).is_some()
            {
                return ask;
            }
        }
        while let Some(path) = self.out.takes.pop_front() {
            if let Some(known) = self.topology.paths.get_mut(path) {
                known.called = false;
                return Next::Take(path);
            }
        }
        let [batches, paths] = self.timers.each_ref().map(|timers| timers.first());
        Next::Wait(batches.into_iter().chain(paths).min())
    }

    // Looking.

    /// How far transfer `index` of a batch is; `None` if there is none or the batch was released.
    pub fn transfer_status(&self, batch: BatchId, index: usize) -> Option<TransferStatus> {
        self.batches.get(batch)?.work.get(index).map(|work| work.status)
    }

    /// Whether anything of a batch may still move bytes; also after it ended, until it is released.
    pub fn quiet(&self, batch: BatchId) -> Option<Quiet> {
        self.batches.get(batch).map(Batch::quiet)
    }

    /// The path that an op in flight is on; a transport's completions do not say.
    pub fn path_of(&self, op: OpId) -> Option<PathId> {
        self.ops.get(op).filter(|slice| slice.stage.is_out()).map(|slice| slice.path)
    }

    /// Figures of a path.
    pub fn path_stats(&self, path: PathId) -> Option<PathStats> {
        self.topology.paths.get(path).map(Path::stats)
    }

    /// How long `len` bytes more would take on `path` now.
    pub fn predicted(&self, now: Instant, path: PathId, len: u64) -> Option<Duration> {
        let path = self.topology.paths.get(path)?;
        Some(Duration::from_nanos(path.predict(now, len)))
    }

    /// Batches that have not ended.
    pub const fn live(&self) -> usize {
        self.counts.live
    }

    /// Ops that were handed out and have not completed.
    pub const fn flying(&self) -> u32 {
        self.counts.flying
    }

    /// Completions that named no op in flight on their path: a transport that breaks its contract.
    pub const fn strange(&self) -> u64 {
        self.counts.strange
    }

    /// A fingerprint of what decides what the engine does next, for replay.
    pub fn digest(&self) -> u64 {
        let mut digest = mix(self.batches.len() as u64) ^ u64::from(self.counts.flying);
        let mut add = |word: u64| digest = mix(digest ^ word);
        for (id, path) in self.topology.paths.iter() {
            let stats = path.stats();
            let up = u64::from(stats.health == PathHealth::Up);
            for word in [id.to_bits(), stats.bytes, stats.ops, stats.errors, stats.outstanding, up] {
                add(word);
            }
            add(path.estimate.time(0));
            add(path.estimate.time(1 << 20));
        }
        for (id, batch) in self.batches.iter() {
            add(id.to_bits());
            add(u64::from(batch.pending) << 32 | u64::from(batch.flying));
            batch.work.iter().for_each(|work| add(work.cut ^ work.left.rotate_left(32)));
        }
        for (id, slice) in self.ops.iter() {
            add(id.to_bits());
            add(slice.offset ^ slice.posted.nanos().rotate_left(32));
        }
        digest
    }
}

impl Batch {
    const fn new(work: Vec<Work>, pending: u32, deadline: Instant) -> Self {
        Self {
            work,
            phase: Phase::Open,
            keep: Keep::Caller,
            pending,
            flying: 0,
            parked: 0,
            lost: 0,
            first: None,
            flows: None,
            deadline,
        }
    }
}

impl Work {
    const fn new(transfer: &Transfer) -> Self {
        let (transfer, left) = (*transfer, transfer.len);
        Self { transfer, cut: 0, left, status: TransferStatus::Pending, next: NONE }
    }
}

impl Flow {
    const fn new(batch: BatchId, target: TargetId, index: u32, sibling: Option<FlowId>) -> Self {
        Self {
            batch,
            target,
            head: index,
            tail: index,
            retry: None,
            left: 0,
            taken: 0,
            queued: false,
            sibling,
        }
    }
}
