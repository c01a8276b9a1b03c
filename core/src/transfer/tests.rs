//! Any sequence of commands and facts, and what must hold after each.

use alloc::vec;
use alloc::vec::Vec;
use core::num::NonZeroU32;
use core::time::Duration;

use proptest::prelude::*;

use super::batch::{Phase, Stage};
use super::*;
use crate::id::{BatchId, Id, OpId, PathId, TargetId};
use crate::time::Instant;

/// One thing that happens.
#[derive(Clone, Debug)]
enum Step {
    Submit { transfers: Vec<(u8, u16, bool)>, within: u16 },
    Take { path: u8, room: u8 },
    Refuse { last: u8, why: u8 },
    End { op: u8, status: u8 },
    Path { path: u8, up: bool },
    Cancel(u8),
    Release(u8),
    RemovePath(u8),
    RemoveTarget(u8),
    Pass(u16),
    Poll,
}

fn step() -> impl Strategy<Value = Step> {
    let transfers = prop::collection::vec((any::<u8>(), 0..5_000u16, any::<bool>()), 0..5);
    prop_oneof![
        4 => (transfers, any::<u16>()).prop_map(|(transfers, within)| Step::Submit { transfers, within }),
        6 => (any::<u8>(), 0..8u8).prop_map(|(path, room)| Step::Take { path, room }),
        1 => (any::<u8>(), any::<u8>()).prop_map(|(last, why)| Step::Refuse { last, why }),
        8 => (any::<u8>(), 0..8u8).prop_map(|(op, status)| Step::End { op, status }),
        2 => (any::<u8>(), any::<bool>()).prop_map(|(path, up)| Step::Path { path, up }),
        1 => any::<u8>().prop_map(Step::Cancel),
        1 => any::<u8>().prop_map(Step::Release),
        1 => (0..40u8).prop_map(Step::RemovePath),
        1 => (0..40u8).prop_map(Step::RemoveTarget),
        3 => any::<u16>().prop_map(Step::Pass),
        4 => Just(Step::Poll),
    ]
}

struct World {
    engine: Engine,
    now: Instant,
    paths: Vec<PathId>,
    targets: Vec<TargetId>,
    flying: Vec<(PathId, Op)>,
    /// Batches that were taken in, with their deadlines, until they are reported.
    live: Vec<(BatchId, Instant)>,
    ended: Vec<BatchId>,
}

const GRACE: Duration = Duration::from_micros(50);

impl World {
    fn new() -> Self {
        let config = Config {
            batches: 12,
            transfers: 40,
            ops: 20,
            tries: 3,
            grace: GRACE,
            stall: Duration::from_millis(1),
            backoff: (Duration::from_micros(50), Duration::from_micros(200)),
            attempts: 1,
            ..Config::default()
        };
        let (mut engine, now) = (Engine::new(config, 3), Instant::from_nanos(1));
        let targets: Vec<_> = (0..3).map(|_| engine.add_target(now)).collect();
        let shape = |n: u32| PathShape {
            max_op: 1_000 + 300 * n,
            chunk: if n == 2 { 512 } else { 0 },
            depth: 6,
            latency: Duration::from_micros(10),
            bandwidth: 1 << 28,
        };
        let paths: Vec<_> = (0..4).map(|n| engine.add_path(now, shape(n))).collect();
        for (target, path) in [(0, 0), (0, 1), (1, 1), (1, 2), (2, 3)] {
            engine.attach(targets[target], paths[path]).unwrap();
        }
        Self { engine, now, paths, targets, flying: Vec::new(), live: Vec::new(), ended: Vec::new() }
    }

    fn path(&self, n: u8) -> PathId {
        self.paths[usize::from(n) % self.paths.len()]
    }

    fn act(&mut self, step: &Step) {
        match step {
            Step::Submit { transfers, within } => self.submit(transfers, *within),
            Step::Take { path, room } => self.take(self.path(*path), usize::from(*room)),
            Step::Refuse { last, why } => self.refuse(usize::from(*last), *why),
            Step::End { op, status } => self.end(usize::from(*op), *status),
            Step::Path { path, up } => {
                let state = if *up { PathState::Up } else { PathState::Down };
                self.engine.handle_path(self.now, self.path(*path), state);
            }
            Step::Cancel(n) if !self.live.is_empty() => {
                self.engine.cancel(self.now, self.live[usize::from(*n) % self.live.len()].0);
            }
            Step::Release(n) if !self.live.is_empty() => {
                let (batch, _) = self.live.swap_remove(usize::from(*n) % self.live.len());
                self.engine.release(self.now, batch);
            }
            Step::RemovePath(n) if *n < 4 => {
                let path = self.path(*n);
                self.engine.remove_path(self.now, path);
                self.flying.retain(|(on, _)| *on != path);
            }
            Step::RemoveTarget(n) if *n < 3 => {
                self.engine.remove_target(self.now, self.targets[usize::from(*n)]);
            }
            Step::Pass(micros) => {
                self.now += Duration::from_nanos(u64::from(*micros) * 50);
                self.engine.handle_timeout(self.now);
            }
            Step::Poll => self.poll(),
            _ => {}
        }
    }

    fn submit(&mut self, transfers: &[(u8, u16, bool)], within: u16) {
        let batch: Vec<Transfer> = transfers
            .iter()
            .map(|(target, len, write)| Transfer {
                verb: if *write { Verb::Write } else { Verb::Read },
                local: Id::new(0, NonZeroU32::MIN),
                at: u64::from(*len) / 2,
                target: self.targets[usize::from(*target) % 3],
                to: 77,
                ticket: (*write && len % 3 > 0).then(|| Id::new(0, NonZeroU32::MIN)),
                len: u64::from(*len),
            })
            .collect();
        let deadline = self.now + Duration::from_nanos(u64::from(within) * 10);
        if let Ok(id) = self.engine.submit(self.now, &batch, deadline) {
            self.live.push((id, deadline));
        }
    }

    fn take(&mut self, path: PathId, room: usize) {
        let nothing = Op {
            id: Id::new(0, NonZeroU32::MIN),
            local: Id::new(0, NonZeroU32::MIN),
            at: 0,
            remote: Id::new(0, NonZeroU32::MIN),
            to: 0,
            ticket: None,
            len: 0,
            verb: Verb::Read,
        };
        let mut ops = vec![nothing; 8];
        let count = self.engine.take_ops(self.now, path, room, &mut ops);
        assert!(count <= room);
        for op in &ops[..count] {
            assert!(op.len > 0);
            assert_eq!(self.engine.path_of(op.id), Some(path));
            self.flying.push((path, *op));
        }
    }

    /// The last ops of one path were not posted.
    fn refuse(&mut self, last: usize, why: u8) {
        let Some(&(path, _)) = self.flying.last() else { return };
        let whys = [Reject::Full, Reject::PathDown, Reject::BadRegion];
        let tail = self.flying.iter().rev().take_while(|(on, _)| *on == path).count();
        let ops = self.flying.split_off(self.flying.len() - 1 - last % tail);
        let ops: Vec<Op> = ops.into_iter().map(|(_, op)| op).collect();
        self.engine.handle_refused(self.now, path, &ops, whys[usize::from(why) % 3]);
    }

    fn end(&mut self, op: usize, status: u8) {
        if self.flying.is_empty() {
            return;
        }
        let (path, op) = self.flying.swap_remove(op % self.flying.len());
        let statuses = [Status::Refused, Status::Short, Status::Flushed, Status::Lost];
        let status = statuses.get(usize::from(status)).copied().unwrap_or(Status::Done);
        let bytes = if status == Status::Done { op.len } else { 0 };
        let done = Completion { id: op.id, bytes, status, code: 0 };
        self.engine.handle_completions(self.now, path, &[done]);
    }

    fn poll(&mut self) {
        for n in 0.. {
            assert!(n < 1_000, "the engine never waits");
            match self.engine.poll(self.now) {
                Next::Wait(at) => {
                    assert!(self.engine.live() == 0 || at.is_some(), "work, but nothing to wait for");
                    return;
                }
                Next::Batch(id, outcome) => {
                    let known = self.live.iter().position(|(live, _)| *live == id);
                    self.live.swap_remove(known.expect("a batch ends once"));
                    let statuses = (0..).map_while(|index| self.engine.transfer_status(id, index));
                    let done = statuses.clone().all(|status| status == TransferStatus::Done);
                    assert_eq!(done && outcome.quiet() == Quiet::Yes, outcome == Outcome::Done);
                    assert!(statuses.clone().all(|status| status != TransferStatus::Pending));
                    assert_eq!(self.engine.quiet(id), Some(outcome.quiet()));
                    self.ended.push(id);
                    if self.ended.len() > 3 {
                        self.engine.release(self.now, self.ended.remove(0));
                    }
                }
                Next::Cancel(path, op) => assert_eq!(self.engine.path_of(op), Some(path)),
                Next::Take(path) => self.take(path, 3),
                Next::Reopen(_) | Next::Close(_) => {}
            }
        }
    }

    /// What one can count must be what was counted.
    fn check(&self) {
        let engine = &self.engine;
        assert_eq!(engine.flying() as usize, self.flying.len());
        assert_eq!(engine.strange(), 0);
        let out: Vec<_> = engine.ops.iter().filter(|(_, slice)| slice.stage.is_out()).collect();
        assert_eq!(out.len(), self.flying.len());
        for (id, path) in engine.topology.paths.iter() {
            let mine = out.iter().filter(|(_, slice)| slice.path == id);
            let bytes: u64 = mine.clone().map(|(_, slice)| u64::from(slice.len)).sum();
            assert_eq!((path.load.flying as usize, path.load.outstanding), (mine.count(), bytes));
        }
        for (id, batch) in engine.batches.iter() {
            let mine: Vec<_> = engine.ops.iter().filter(|(_, slice)| slice.batch == id).collect();
            let count = |stage: fn(Stage) -> bool| mine.iter().filter(|(_, s)| stage(s.stage)).count();
            assert_eq!(batch.flying as usize, count(Stage::is_out));
            assert_eq!(batch.parked as usize, count(|stage| stage == Stage::Parked));
            let pending = batch.work.iter().filter(|work| work.is_pending()).count();
            assert_eq!(batch.pending as usize, pending);
            let over = batch.phase == Phase::Ended;
            assert!(over || !batch.is_over(), "nothing is left to wait for");
            self.check_bytes(id);
        }
        self.check_flows();
    }

    /// Every byte of a pending transfer is done, on a path, waiting, or not cut yet.
    fn check_bytes(&self, id: BatchId) {
        let Some(batch) = self.engine.batches.get(id) else { return };
        for (index, work) in batch.work.iter().enumerate().filter(|(_, work)| work.is_pending()) {
            let mine = |slice: &batch::Slice| slice.batch == id && slice.work as usize == index;
            let slices = self.engine.ops.iter().filter(|(_, slice)| mine(slice));
            let out: u64 = slices.map(|(_, slice)| u64::from(slice.len)).sum();
            assert_eq!(work.left, out + (work.transfer.len - work.cut), "{work:?}");
        }
    }

    /// Flows know what is left of them, and stand in their target's ring if there is anything.
    fn check_flows(&self) {
        for (id, flow) in self.engine.flows.iter() {
            let batch = self.engine.batches.get(flow.batch).expect("a flow goes with its batch");
            let (mut left, mut next) = (0, flow.head);
            while let Some(work) = batch.work.get(next as usize) {
                left += work.transfer.len - work.cut;
                next = work.next;
            }
            let mut waiting: Option<OpId> = flow.retry;
            while let Some(slice) = waiting.and_then(|id| self.engine.ops.get(id)) {
                assert!(matches!(slice.stage, Stage::Waiting | Stage::Returned));
                left += u64::from(slice.len);
                waiting = slice.next;
            }
            assert_eq!(flow.left, left, "{flow:?}");
            let target = self.engine.topology.targets.get(flow.target);
            let stands = target.map_or(0, |t| t.ring.iter().filter(|other| **other == id).count());
            assert_eq!(stands, usize::from(flow.queued && target.is_some()), "{flow:?}");
            assert!(flow.queued || flow.left == 0, "{flow:?} has work and no turn");
        }
    }

    /// Time goes by and everything that is out comes back: every batch must end.
    fn wind_up(&mut self) {
        while !self.flying.is_empty() {
            self.end(0, 2);
        }
        self.poll();
        for _ in 0..6 {
            while !self.flying.is_empty() {
                self.end(0, 2);
            }
            self.now += Duration::from_millis(1);
            self.engine.handle_timeout(self.now);
            self.poll();
        }
        assert_eq!(self.live, [], "batches that never end");
        assert_eq!(self.engine.live(), 0);
        assert_eq!(self.engine.flows.len(), 0);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn the_books_are_right_whatever_happens(steps in prop::collection::vec(step(), 1..120)) {
        let mut world = World::new();
        for path in world.paths.clone() {
            world.engine.handle_path(world.now, path, PathState::Up);
        }
        for step in &steps {
            world.act(step);
            world.check();
        }
        world.wind_up();
    }

    #[test]
    fn the_same_steps_give_the_same_engine(steps in prop::collection::vec(step(), 1..60)) {
        let digests: Vec<u64> = (0..2)
            .map(|_| {
                let mut world = World::new();
                steps.iter().for_each(|step| world.act(step));
                world.engine.digest()
            })
            .collect();
        prop_assert_eq!(digests[0], digests[1]);
    }
}
