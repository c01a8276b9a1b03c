//! Once warm, the transfer engine allocates nothing for batches and ops.

use core::num::NonZeroU32;
use core::time::Duration;

use springtide_core::id::{Id, PathId, RegionId, TargetId, TicketId};
use springtide_core::time::Instant;
use springtide_core::transfer::{
    Completion, Config, Engine, Next, Op, PathShape, PathState, Reject, Status, Transfer, Verb,
};
use springtide_counting::{Counting, during};

#[global_allocator]
static COUNTING: Counting = Counting;

fn id<I: Id>(index: u32) -> I {
    I::new(index, NonZeroU32::MIN)
}

const NOTHING: Op = Op {
    id: match springtide_core::id::OpId::from_bits(1 << 32) {
        Some(id) => id,
        None => panic!("generation one"),
    },
    local: match RegionId::from_bits(1 << 32) {
        Some(id) => id,
        None => panic!("generation one"),
    },
    at: 0,
    remote: match springtide_core::id::RemoteId::from_bits(1 << 32) {
        Some(id) => id,
        None => panic!("generation one"),
    },
    to: 0,
    ticket: None,
    len: 0,
    verb: Verb::Read,
};

/// One engine with two targets over three paths.
struct Rig {
    engine: Engine,
    targets: [TargetId; 2],
    now: Instant,
    round: u64,
}

impl Rig {
    fn new() -> Self {
        let (mut engine, now) = (Engine::new(Config::default(), 1), Instant::from_nanos(1));
        let targets = [engine.add_target(now), engine.add_target(now)];
        let shape = PathShape {
            max_op: 64 << 10,
            chunk: 0,
            depth: 64,
            latency: Duration::from_micros(10),
            bandwidth: 1 << 30,
        };
        let paths: Vec<PathId> = (0..3).map(|_| engine.add_path(now, shape)).collect();
        for (target, path) in [(0, 0), (0, 1), (1, 2)] {
            let path = *paths.get(path).unwrap();
            engine.attach(targets[target], path).unwrap();
            engine.handle_path(now, path, PathState::Up);
        }
        Self { engine, targets, now, round: 0 }
    }

    /// Some batches of all kinds, from submit to release, with a few ops that are refused or fail.
    fn round(&mut self) {
        for n in 0..8 {
            let read = Transfer {
                verb: Verb::Read,
                local: id(0),
                at: 0,
                target: self.targets[n % 2],
                to: 0,
                ticket: None,
                len: 100_000 * n as u64 + 1,
            };
            let write = Transfer { verb: Verb::Write, ticket: Some(id::<TicketId>(0)), len: 4_096, ..read };
            let other = Transfer { target: self.targets[(n + 1) % 2], ..write };
            let batch = [read, write, other, write, write];
            let deadline = self.now + Duration::from_secs(1);
            self.engine.submit(self.now, &batch[..1 + n % 5], deadline).unwrap();
        }
        while self.engine.live() > 0 {
            self.turn();
        }
        self.turn();
    }

    fn turn(&mut self) {
        self.now += Duration::from_micros(100);
        self.engine.handle_timeout(self.now);
        loop {
            match self.engine.poll(self.now) {
                Next::Wait(_) => return,
                Next::Take(path) => self.post(path),
                Next::Batch(batch, _) => self.engine.release(self.now, batch),
                other => panic!("{other:?}"),
            }
        }
    }

    fn post(&mut self, path: PathId) {
        let mut ops = [NOTHING; 16];
        let count = self.engine.take_ops(self.now, path, 16, &mut ops);
        self.round += 1;
        let posted = if self.round.is_multiple_of(13) { count / 2 } else { count };
        self.engine.handle_refused(self.now, path, &ops[posted..count], Reject::Full);
        for op in &ops[..posted] {
            let flushed = self.round.is_multiple_of(17) && op.len.is_multiple_of(2);
            let status = if flushed { Status::Flushed } else { Status::Done };
            let bytes = if flushed { 0 } else { op.len };
            let done = Completion { id: op.id, bytes, status, code: 0 };
            self.engine.handle_completions(self.now, path, &[done]);
        }
    }
}

#[test]
fn nothing_is_allocated_once_warm() {
    let mut rig = Rig::new();
    for _ in 0..50 {
        rig.round();
    }
    assert_eq!(during(|| (0..500).for_each(|_| rig.round())), 0);
    assert!(rig.round > 3_000, "the rounds did something: {}", rig.round);
}
