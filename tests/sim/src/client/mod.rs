//! A client: the real batches, table of calls, membership, extents ahead and engine, driven by simulated callers.

mod gets;
mod lane;
mod op;
mod plain;
mod puts;
mod routes;
mod work;

use springtide_core::client::ahead::Ahead;
use springtide_core::error::Code;
use springtide_core::id::{BatchId, Id, PathId, SegmentId};
use springtide_core::key::DEFAULT_TENANT;
use springtide_core::rng::{Rng, mix};
use springtide_core::time::Instant;
use springtide_core::transfer::{Completion, Outcome};
use springtide_core::wire::frame::{Frame, Kind};
use springtide_core::wire::message::Location;

use crate::env::Env;
use crate::line::{Heard, Line};
use crate::member::Member;
use crate::net::Parcel;
use crate::queue::{Pid, Turn};
use lane::Lane;
use op::{Op, Wait};
use routes::Routes;

/// Bytes of one piece of scratch memory: the longest value.
pub const SLOT: usize = 1_024;
/// Pieces that a client begins with.
const SLOTS: usize = 32;

/// What a call to the master is about.
#[derive(Clone, Copy, Debug)]
enum Call {
    /// An operation's own call.
    Op(OpRef),
    /// Where a segment is; until when its seeker waits.
    Segment(SegmentId, Instant),
    /// Extents ahead.
    Reserve,
    /// Nobody waits for its answer.
    Nobody,
}

/// An operation, by place and number.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct OpRef {
    place: usize,
    number: u64,
}

/// A client in one of its lives.
#[derive(Debug)]
pub struct Client {
    pid: Pid,
    tenant: String,
    member: Member,
    line: Line<Call>,
    lane: Lane,
    routes: Routes,
    ahead: Ahead,
    ops: Vec<Option<Box<Op>>>,
    /// Which operation waits for each batch.
    batches: Vec<Option<usize>>,
    numbers: u64,
    /// Pieces of scratch memory that nobody uses.
    slots: Vec<usize>,
    rng: Rng,
    /// When the next operation begins.
    next: Instant,
    /// Until when it puts all it can.
    fills: Instant,
    ended: Vec<(Call, Code)>,
}

impl Client {
    /// A client with nothing under way.
    pub fn new(env: &mut Env, pid: Pid) -> Self {
        let life = env.lives[pid.index()];
        let rng = Rng::new(mix(env.plan.seed ^ u64::from(pid.0) << 32 ^ u64::from(life.life)));
        let now = env.local(pid);
        env.fabric.homes[pid.index()] = vec![0; SLOT * SLOTS];
        let to = env.plan.master_of(pid);
        let tenant = DEFAULT_TENANT.to_owned();
        Self {
            pid,
            member: Member::new(env, pid, Vec::new(), String::new()),
            line: Line::new((pid, life.incarnation), to, Default::default(), &tenant),
            tenant,
            lane: Lane::new(pid, life.incarnation.0 as u64),
            routes: Routes::default(),
            ahead: Ahead::default(),
            ops: Vec::new(),
            batches: Vec::new(),
            numbers: 0,
            slots: (0..SLOTS).rev().collect(),
            rng,
            next: now,
            fills: Instant::ORIGIN,
            ended: Vec::new(),
        }
    }

    /// Whether its master knows it.
    pub fn is_inside(&self) -> bool {
        self.member.is_inside()
    }

    /// What it has under way: operations, calls, batches, permissions. Zero after quiet.
    pub fn left(&self) -> [usize; 3] {
        let ops = self.ops.iter().flatten().count();
        [ops, self.line.open() + self.routes.open(), self.lane.left()]
    }

    /// Calls of its membership that are under way.
    pub const fn members(&self) -> usize {
        self.member.open()
    }

    /// Its engine's history as a number.
    pub fn digest(&self) -> u64 {
        self.lane.digest()
    }

    /// Puts all it can until `until`.
    pub fn fill(&mut self, env: &mut Env, until: Instant) {
        self.fills = until;
        self.next = env.local(self.pid);
        self.drive(env);
    }

    /// A frame arrives.
    pub fn frame(&mut self, env: &mut Env, parcel: &Parcel, frame: &Frame<'_>) {
        if frame.header.kind != Kind::Reply {
            return;
        }
        let now = env.local(self.pid);
        if self.line.has(parcel.conn) {
            if let Heard::Answer(call, status) = self.line.hear(env, now, frame) {
                let answer = if status.is_ok() { Ok(frame.body) } else { Err(status) };
                self.answered(env, now, call, answer);
            }
        } else if self.member.has(parcel.conn) {
            self.member.hear(env, now, frame);
        } else if !self.owner_frame(env, now, parcel.conn, frame) {
            return;
        }
        self.drive(env);
    }

    /// A connection is gone.
    pub fn closed(&mut self, env: &mut Env, conn: u32) {
        let now = env.local(self.pid);
        if self.line.has(conn) {
            self.line.closed(now);
        } else if self.member.has(conn) {
            self.member.closed(now);
        } else if !self.owner_closed(now, conn) {
            return;
        }
        self.drive(env);
    }

    fn answered(&mut self, env: &mut Env, now: Instant, call: Call, answer: Result<&[u8], Code>) {
        match call {
            Call::Op(op) => self.op_answered(env, now, op, answer),
            Call::Segment(segment, until) => self.located(env, now, (segment, until), answer.ok()),
            Call::Reserve => self.ahead.handle_reserved(answer.ok()),
            Call::Nobody => {}
        }
    }

    /// A path came up or went down.
    pub fn turned(&mut self, env: &mut Env, path: PathId, opening: u32, turn: Turn) {
        let now = env.local(self.pid);
        self.lane.turned(env, now, path, opening, turn);
        self.drive(env);
    }

    /// The end of a one-sided operation arrives.
    pub fn reap(&mut self, env: &mut Env, path: PathId, completion: Completion) {
        let now = env.local(self.pid);
        self.lane.reap(now, path, completion);
        self.drive(env);
    }

    /// The paths to a process that died.
    pub fn paths_to(&self, other: Pid) -> impl Iterator<Item = (PathId, u32)> {
        self.lane.paths_to(other)
    }

    /// Does what is due.
    pub fn drive(&mut self, env: &mut Env) {
        let now = env.local(self.pid);
        self.member.drive(env, now);
        self.drive_owners(env, now);
        let mut ended = core::mem::take(&mut self.ended);
        self.line.drive(env, now, &mut ended);
        for (call, code) in ended.drain(..) {
            self.answered(env, now, call, Err(code));
        }
        self.ended = ended;
        if env.work && self.next.reached(now) {
            self.begin(env, now);
        }
        while let Some((batch, outcome)) = self.lane.work(env, now) {
            self.batch_ended(env, now, batch, outcome);
        }
        let work = if env.work { self.next } else { Instant::NEVER };
        let due = self.member.due(now).min(self.line.due()).min(self.routes.due());
        env.wake(self.pid, due.min(self.lane.due()).min(work));
    }

    fn batch_ended(&mut self, env: &mut Env, now: Instant, batch: BatchId, outcome: Outcome) {
        let waiting = self.batches.get_mut(batch.index()).and_then(Option::take);
        let Some(place) = waiting else { return self.lane.engine.release(now, batch) };
        let Some(mut op) = self.ops[place].take() else { return self.lane.engine.release(now, batch) };
        op.wait = Wait::Nothing;
        env.say(self.pid, format_args!("the transfers of operation {} ended: {outcome:?}", op.number));
        self.trip_ended(env, now, &mut op, batch, outcome);
        self.lane.engine.release(now, batch);
        self.go_on(env, now, place, op);
    }

    /// A way to `segment` was found, or not: whoever waits for it goes on.
    fn route_found(&mut self, env: &mut Env, now: Instant, segment: SegmentId, found: bool) {
        for place in 0..self.ops.len() {
            if self.ops[place].as_ref().is_none_or(|op| op.wait != Wait::Route(segment)) {
                continue;
            }
            let Some(mut op) = self.ops[place].take() else { continue };
            op.wait = Wait::Nothing;
            if !found {
                op.unreachable.push(segment);
            }
            self.go_on(env, now, place, op);
        }
    }

    /// Orders replicas; spreads equal ones by this client's number.
    fn rank(pid: Pid, routes: &Routes, location: &Location) -> u32 {
        let far = routes.known(location.segment).is_none();
        let spread = mix(u64::from(pid.0) ^ location.segment.to_bits());
        u32::from(far) << 31 | (spread >> 33) as u32
    }

    /// It dies with all it has under way.
    pub fn die(&mut self, env: &mut Env) {
        self.lane.die(env);
        let asked = self.line.open() + self.routes.open() + self.member.open();
        env.oracle.callers_died(asked);
        for op in self.ops.iter().flatten() {
            op.abandoned(env);
        }
    }

    fn slot(&mut self, env: &mut Env) -> usize {
        self.slots.pop().unwrap_or_else(|| {
            let home = &mut env.fabric.homes[self.pid.index()];
            home.resize(home.len() + SLOT, 0);
            home.len() / SLOT - 1
        })
    }
}
