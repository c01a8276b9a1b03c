//! Which op goes to which path next.

use core::time::Duration;

use super::batch::{Batch, Flow, FlowId, Slice, Stage, Work};
use super::engine::{Engine, PATHS};
use super::{Op, PathHealth, PathShape};
use crate::id::{BatchId, Id, OpId, PathId, RemoteId, TargetId};
use crate::time::Instant;

/// How many flows that another path should take are looked at in one call.
const LOOKS: u32 = 16;
/// Paths are compared by how long this many bytes would take, or what is left if that is less.
const SIZE: u64 = 256 << 10;
/// Most bytes of an op that only measures its path.
const PROBE: u32 = 64 << 10;
/// How soon a path that left work lying is asked again at the latest.
const RELOOK: Duration = Duration::from_millis(1);

/// What came of looking at a target.
enum Step {
    Taken(Op),
    /// Better on this path.
    Declined(PathId),
    /// It has no work.
    Empty,
}

/// Whether a path would take more at once.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum More {
    Yes,
    No,
}

/// Whether a path takes from a flow.
enum Verdict {
    /// At most this many bytes.
    Take(u32),
    Leave(PathId),
}

impl Engine {
    /// Writes ops for `path` into `out`: at most `room` of them, each within the path's `max_op` and both sides'
    /// seams. Gives back how many. Post all of them, and report those that were not accepted. O(ops).
    pub fn take_ops(&mut self, now: Instant, path: PathId, room: usize, out: &mut [Op]) -> usize {
        let now = self.clock.observe(now);
        let Some(known) = self.topology.paths.get(path) else { return 0 };
        let depth = if known.is_usable(now) { known.depth_left() as usize } else { 0 };
        // Of what is left of all ops, a path leaves as many to others as it has: one that hangs stops nobody.
        let free = self.config.ops.saturating_sub(self.counts.flying);
        let free = (free.saturating_sub(known.load.flying) as usize).div_ceil(2);
        let limit = room.min(out.len()).min(depth).min(free);
        let (mut count, mut looks) = (0, LOOKS);
        while count < limit && looks > 0 {
            let Some(known) = self.topology.paths.get(path) else { break };
            let Some(&target) = known.ready.front() else { break };
            if known.is_full(&self.config) {
                break;
            }
            match self.step(now, path, target) {
                Step::Taken(op) => {
                    out[count] = op;
                    count += 1;
                }
                Step::Declined(better) => {
                    looks -= 1;
                    self.wake(better);
                    self.next_target(path);
                }
                Step::Empty => self.drop_target(path, target),
            }
        }
        let more = if count == out.len() && count < room { More::Yes } else { More::No };
        self.look_again(now, path, more);
        count
    }

    /// Sets when `path` is asked again, if anything is left to ask or to watch.
    pub(super) fn look_again(&mut self, now: Instant, path: PathId, more: More) {
        let Some(known) = self.topology.paths.get(path) else { return };
        if known.load.flying > 0 {
            self.timers[PATHS].set_earlier(path.index(), known.stalls_at(&self.config));
        }
        if !known.ready.is_empty() {
            self.timers[PATHS].set_earlier(path.index(), now + RELOOK);
            if more == More::Yes {
                self.wake(path);
            }
        }
    }

    /// The turn of the next target on `path`.
    fn next_target(&mut self, path: PathId) {
        if let Some(known) = self.topology.paths.get_mut(path)
            && known.ready.len() > 1
        {
            known.ready.rotate_left(1);
        }
    }

    /// Takes a target without work out of the path's ring; it stands at the front.
    fn drop_target(&mut self, path: PathId, target: TargetId) {
        if let Some(known) = self.topology.paths.get_mut(path) {
            known.ready.pop_front();
        }
        if let Some(known) = self.topology.targets.get_mut(target)
            && let Some(link) = known.link(path)
        {
            known.links[link].queued = false;
        }
    }

    /// The next op of `target` for `path`.
    fn step(&mut self, now: Instant, path: PathId, target: TargetId) -> Step {
        let mut declined = None;
        for _ in 0..LOOKS {
            let Some(known) = self.topology.targets.get_mut(target) else { return Step::Empty };
            let Some(&id) = known.ring.front() else { break };
            let Some(flow) = self.flows.get_mut(id) else {
                known.ring.pop_front();
                known.stale = known.stale.saturating_sub(1);
                continue;
            };
            if flow.left == 0 {
                known.ring.pop_front();
                flow.queued = false;
                flow.taken = 0;
                continue;
            }
            let Some(link) = known.link(path) else { return Step::Empty };
            let remote = known.links[link].remote;
            let verdict = self.verdict(now, path, id);
            let better = match verdict {
                Verdict::Take(most) => match self.slice(now, path, id, remote, most) {
                    Some(op) => {
                        self.end_turn(path, target, id, op.len);
                        return Step::Taken(op);
                    }
                    // What was waiting belonged to transfers that have failed: look again.
                    None => continue,
                },
                Verdict::Leave(better) => better,
            };
            if declined.is_some_and(|(first, _)| first == id) {
                break;
            }
            declined.get_or_insert((id, better));
            if let Some(known) = self.topology.targets.get_mut(target) {
                known.ring.rotate_left(1);
            }
        }
        declined.map_or(Step::Empty, |(_, better)| Step::Declined(better))
    }

    /// Counts what a flow took; after its quantum, or when it is through, the next one's turn comes.
    fn end_turn(&mut self, path: PathId, target: TargetId, id: FlowId, len: u32) {
        let Some(flow) = self.flows.get_mut(id) else { return };
        flow.taken = flow.taken.saturating_add(len);
        let through = flow.left == 0;
        if !through && flow.taken < self.config.quantum {
            return;
        }
        flow.taken = 0;
        if let Some(known) = self.topology.targets.get_mut(target) {
            if through {
                known.ring.pop_front();
                flow.queued = false;
            } else {
                known.ring.rotate_left(1);
            }
        }
        self.next_target(path);
    }

    /// Whether `path` is a good one for what is left of a flow: not much slower than the best for the next piece,
    /// and done before the best would be done with everything.
    fn verdict(&self, now: Instant, path: PathId, id: FlowId) -> Verdict {
        let whole = Verdict::Take(u32::MAX);
        let Some(flow) = self.flows.get(id) else { return whole };
        let Some(target) = self.topology.targets.get(flow.target) else { return whole };
        if target.links.len() < 2 {
            return whole;
        }
        let Some(known) = self.topology.paths.get(path) else { return whole };
        let avoided = self.avoided(flow);
        let others = target.links.iter().map(|link| link.path).filter(|p| *p != path && Some(*p) != avoided);
        let Some((better, theirs)) = self.best(now, others, flow.left.min(SIZE)) else { return whole };
        if avoided == Some(path) {
            return Verdict::Leave(better);
        }
        let mine = known.predict(now, flow.left.min(SIZE));
        if mine <= theirs.saturating_add(theirs / 2) {
            return whole;
        }
        let all = self.topology.paths.get(better).map_or(u64::MAX, |other| other.predict(now, flow.left));
        if mine <= theirs.saturating_mul(u64::from(self.config.spread)) && mine <= all {
            return whole;
        }
        let stale = (known.measured + self.config.probe).reached(now);
        let deadline = self.batches.get(flow.batch).map_or(now, |batch| batch.deadline);
        if stale && known.load.flying == 0 && now + Duration::from_nanos(mine) < deadline {
            return Verdict::Take(PROBE);
        }
        Verdict::Leave(better)
    }

    /// The best of these paths that are in use, and how long it would take for `len` bytes.
    fn best(&self, now: Instant, paths: impl Iterator<Item = PathId>, len: u64) -> Option<(PathId, u64)> {
        let up = paths.filter_map(|path| {
            let known = self.topology.paths.get(path)?;
            (known.health == PathHealth::Up).then(|| (path, known.predict(now, len)))
        });
        up.min_by_key(|(_, time)| *time)
    }

    /// The path on which what comes next in `flow` has just failed.
    fn avoided(&self, flow: &Flow) -> Option<PathId> {
        let first = self.ops.get(flow.retry?)?;
        (first.stage == Stage::Waiting).then_some(first.path)
    }

    /// Cuts the next op of a flow for `path`, of at most `most` bytes.
    fn slice(&mut self, now: Instant, path: PathId, id: FlowId, remote: RemoteId, most: u32) -> Option<Op> {
        let shape = self.topology.paths.get(path)?.shape;
        let shape = PathShape { max_op: shape.max_op.min(most), ..shape };
        let (old, slice) = match self.flows.get(id)?.retry {
            Some(waiting) => self.cut_waiting(id, waiting, &shape)?,
            None => (None, self.cut_fresh(id, &shape)?),
        };
        let batch = self.batches.get_mut(slice.batch)?;
        batch.flying += 1;
        self.counts.flying += 1;
        let transfer = batch.work[slice.work as usize].transfer;
        let known = self.topology.paths.get_mut(path)?;
        let ahead = known.load(now, slice.len);
        let tries = slice.tries.saturating_add(1);
        let slice = Slice { path, stage: Stage::Flying, posted: now, ahead, tries, next: None, ..slice };
        if let Some(old) = old {
            self.ops.remove(old);
        }
        let id = self.ops.insert(slice);
        Some(Op {
            id,
            local: transfer.local,
            at: transfer.at + slice.offset,
            remote,
            to: transfer.to + slice.offset,
            ticket: transfer.ticket,
            len: slice.len,
            verb: transfer.verb,
        })
    }

    /// Takes the first waiting slice of a flow, or as much of it as fits. Gives back the slot that it leaves.
    fn cut_waiting(&mut self, id: FlowId, first: OpId, shape: &PathShape) -> Option<(Option<OpId>, Slice)> {
        let flow = self.flows.get_mut(id)?;
        let waiting = self.ops.get_mut(first)?;
        let slice = *waiting;
        let work = self.batches.get(slice.batch).map(|batch| batch.work[slice.work as usize]);
        let Some(work) = work.filter(Work::is_pending) else {
            flow.retry = slice.next;
            flow.left -= u64::from(slice.len);
            self.ops.remove(first);
            return None;
        };
        let len = fit(shape, &work, slice.offset, u64::from(slice.len));
        flow.left -= u64::from(len);
        if len < slice.len {
            waiting.offset += u64::from(len);
            waiting.len -= len;
            return Some((None, Slice { len, ..slice }));
        }
        flow.retry = slice.next;
        Some((Some(first), slice))
    }

    /// Cuts a slice from the first transfer of a flow that has bytes left.
    fn cut_fresh(&mut self, id: FlowId, shape: &PathShape) -> Option<Slice> {
        let flow = self.flows.get_mut(id)?;
        let batch: &mut Batch = self.batches.get_mut(flow.batch)?;
        loop {
            let Some(work) = batch.work.get_mut(flow.head as usize) else {
                debug_assert!(flow.left == 0, "{} bytes left, but no transfer has them", flow.left);
                flow.left = 0;
                return None;
            };
            let rest = work.transfer.len - work.cut;
            if rest == 0 {
                flow.head = work.next;
                continue;
            }
            let (offset, index) = (work.cut, flow.head);
            let len = fit(shape, work, offset, rest);
            work.cut += u64::from(len);
            flow.left -= u64::from(len);
            return Some(Slice::new(flow.batch, id, index, offset, len));
        }
    }
}

/// How many of `rest` bytes from `offset` on fit one op: at most `max_op`, and up to the next seam on either side.
fn fit(shape: &PathShape, work: &Work, offset: u64, rest: u64) -> u32 {
    let mut len = rest.min(u64::from(shape.max_op));
    if shape.chunk > 0 {
        for start in [work.transfer.at + offset, work.transfer.to + offset] {
            len = len.min(shape.chunk - start % shape.chunk);
        }
    }
    len as u32
}

impl Slice {
    const fn new(batch: BatchId, flow: FlowId, work: u32, offset: u64, len: u32) -> Self {
        Self {
            batch,
            flow,
            work,
            len,
            offset,
            tries: 0,
            stage: Stage::Returned,
            path: NO_PATH,
            posted: Instant::ORIGIN,
            ahead: 0,
            next: None,
        }
    }
}

/// What a slice that was never on a path names.
const NO_PATH: PathId = match PathId::from_bits(u64::MAX) {
    Some(path) => path,
    None => panic!("a generation that is not zero"),
};
