//! The real engine, its paths and what they lead to. What a lane does with transports is done here with the fabric.

use springtide_core::id::{BatchId, Id, Incarnation, OpId, PathId, RegionId, RemoteId, TargetId, TicketId};
use springtide_core::slab::Slab;
use springtide_core::ticket::Ticket;
use springtide_core::time::Instant;
use springtide_core::transfer::{Completion, Config, Engine, Next, Op, PathShape, PathState, Status, Verb};

use crate::env::Env;
use crate::fabric::{Flight, Stage, no_op};
use crate::plan::SCALE;
use crate::queue::{Event, Pid, Turn};

/// Operations in flight on one path at most.
const DEPTH: usize = 64;

/// The engine of one client, and its ways to other processes' memory.
#[derive(Debug)]
pub(super) struct Lane {
    pid: Pid,
    /// The engine.
    pub(super) engine: Engine,
    paths: Vec<Option<Path>>,
    remotes: Vec<Option<Remote>>,
    targets: Vec<(TargetId, RemoteId)>,
    tickets: Slab<TicketId, Ticket>,
    flying: Vec<Option<u32>>,
    scratch: Vec<Op>,
    wait: Instant,
}

#[derive(Clone, Copy, Debug)]
struct Path {
    id: PathId,
    to: Pid,
    /// Which life of the other side it leads to.
    life: u32,
    /// Which of its openings this is.
    opening: u32,
    link: Link,
    flying: usize,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Link {
    Open,
    Shut,
}

#[derive(Clone, Copy, Debug)]
struct Remote {
    id: RemoteId,
    target: TargetId,
    path: PathId,
    region: RegionId,
    owner: Incarnation,
}

impl Lane {
    /// A lane without paths.
    pub(super) fn new(pid: Pid, seed: u64) -> Self {
        let usual = Config::default();
        let (first, longest) = usual.backoff;
        let config = Config {
            batches: 64,
            transfers: 1_024,
            ops: 256,
            backoff: (first / SCALE, longest / SCALE),
            stall: usual.stall / SCALE,
            grace: usual.grace / SCALE,
            ..usual
        };
        Self {
            pid,
            engine: Engine::new(config, seed),
            paths: Vec::new(),
            remotes: Vec::new(),
            targets: Vec::new(),
            tickets: Slab::default(),
            flying: Vec::new(),
            scratch: vec![no_op(); DEPTH],
            wait: Instant::NEVER,
        }
    }

    /// When the engine has something to do.
    pub(super) const fn due(&self) -> Instant {
        self.wait
    }

    /// Makes a write permission known.
    pub(super) fn admit(&mut self, ticket: Ticket) -> TicketId {
        self.tickets.insert(ticket)
    }

    /// Ends [`admit`](Self::admit).
    pub(super) fn retire(&mut self, ticket: TicketId) {
        self.tickets.remove(ticket);
    }

    /// Makes the memory known that `to` described; `None` if it is not there.
    pub(super) fn target(
        &mut self,
        env: &mut Env,
        now: Instant,
        to: Pid,
        (owner, region): (Incarnation, RegionId),
    ) -> Option<TargetId> {
        if !serves(env, to, owner, region) {
            return None;
        }
        let path = match self.paths.iter().flatten().find(|path| path.to == to).map(|path| path.id) {
            Some(path) => path,
            None => self.add_path(env, now, to),
        };
        let target = self.engine.add_target(now);
        let remote = self.engine.attach(target, path)?;
        put(&mut self.remotes, remote.index(), Remote { id: remote, target, path, region, owner });
        self.targets.push((target, remote));
        Some(target)
    }

    /// Forgets a target.
    pub(super) fn drop_target(&mut self, now: Instant, target: TargetId) {
        if let Some(at) = self.targets.iter().position(|(known, _)| *known == target) {
            let (_, remote) = self.targets.swap_remove(at);
            self.forget(remote);
        }
        self.engine.remove_target(now, target);
    }

    fn forget(&mut self, remote: RemoteId) {
        if let Some(entry) = self.remotes.get_mut(remote.index())
            && entry.is_some_and(|known| known.id == remote)
        {
            *entry = None;
        }
    }

    fn add_path(&mut self, env: &mut Env, now: Instant, to: Pid) -> PathId {
        let shape = PathShape {
            max_op: 2_048,
            chunk: 0,
            depth: DEPTH as u32,
            latency: core::time::Duration::from_micros(20),
            bandwidth: 1 << 30,
        };
        let id = self.engine.add_path(now, shape);
        put(&mut self.paths, id.index(), Path { id, to, life: 0, opening: 0, link: Link::Shut, flying: 0 });
        self.open(env, id);
        id
    }

    /// Begins to open a path; what comes of it is told later.
    fn open(&mut self, env: &mut Env, id: PathId) {
        let Some(path) = self.paths.get_mut(id.index()).and_then(Option::as_mut) else { return };
        path.opening += 1;
        path.link = Link::Open;
        let (to, opening, other) = (path.to, path.opening, env.lives[path.to.index()]);
        path.life = other.life;
        if env.weather.cut(self.pid, to) > env.now || env.weather.cut(to, self.pid) > env.now {
            return;
        }
        let turn = if other.alive { Turn::Up } else { Turn::Down };
        let at = env.now + env.op_time() * 2;
        env.queue.push(at, Event::Path(self.pid, id, opening, turn));
    }

    /// A path came up or went down.
    pub(super) fn turned(&mut self, env: &mut Env, now: Instant, id: PathId, opening: u32, turn: Turn) {
        let path = self.paths.get(id.index()).copied().flatten();
        let current = |path: &Path| path.id == id && path.opening == opening && path.link == Link::Open;
        if !path.as_ref().is_some_and(current) {
            return;
        }
        match turn {
            Turn::Up => self.engine.handle_path(now, id, PathState::Up),
            Turn::Down => self.close(env, now, id),
        }
    }

    /// The paths to `other`, which died, with the number of their opening.
    pub(super) fn paths_to(&self, other: Pid) -> impl Iterator<Item = (PathId, u32)> {
        let lead_there = move |path: &&Path| path.to == other && path.link == Link::Open;
        self.paths.iter().flatten().filter(lead_there).map(|path| (path.id, path.opening))
    }

    /// Ends a path: what flies on it ends. Writes may still land; reads do not.
    fn close(&mut self, env: &mut Env, now: Instant, id: PathId) {
        let Some(path) = self.paths.get_mut(id.index()).and_then(Option::as_mut) else { return };
        path.link = Link::Shut;
        path.flying = 0;
        env.say(self.pid, format_args!("closes {id} to {}", path.to.0));
        for slot in 0..self.flying.len() {
            let Some(number) = self.flying[slot] else { continue };
            let flight = env.fabric.flight(number);
            if flight.path != id {
                continue;
            }
            self.flying[slot] = None;
            let op = flight.op;
            let status = match (op.verb, flight.stage) {
                (Verb::Write, Stage::Out) => {
                    flight.stage = Stage::Adrift;
                    Status::Lost
                }
                (Verb::Write, _) => {
                    flight.stage = Stage::Void;
                    Status::Lost
                }
                (Verb::Read, _) => {
                    flight.stage = Stage::Void;
                    Status::Flushed
                }
            };
            let done = Completion { id: op.id, bytes: 0, status, code: 0 };
            self.engine.handle_completions(now, id, &[done]);
        }
        self.engine.handle_path(now, id, PathState::Down);
    }

    /// Opens a path again, with everything that was imported on it.
    fn reopen(&mut self, env: &mut Env, now: Instant, id: PathId) {
        let Some(path) = self.paths.get(id.index()).copied().flatten() else { return };
        self.open(env, id);
        for index in 0..self.remotes.len() {
            let Some(remote) = self.remotes[index].filter(|remote| remote.path == id) else { continue };
            if !serves(env, path.to, remote.owner, remote.region) {
                self.engine.detach(remote.target, id);
                self.targets.retain(|(_, known)| *known != remote.id);
                self.remotes[index] = None;
            }
        }
        let _ = now;
    }

    fn cancel(&mut self, env: &mut Env, now: Instant, path: PathId, op: OpId) {
        let Some(number) = self.flying.get(op.index()).copied().flatten() else { return };
        let flight = env.fabric.flight(number);
        // A write may be on its way already: only its end, or its path's, tells.
        if flight.op.id != op || flight.op.verb == Verb::Write || flight.stage != Stage::Out {
            return;
        }
        flight.stage = Stage::Void;
        self.landed(path, op);
        let done = Completion { id: op, bytes: 0, status: Status::Flushed, code: 0 };
        self.engine.handle_completions(now, path, &[done]);
    }

    fn landed(&mut self, path: PathId, op: OpId) {
        self.flying[op.index()] = None;
        if let Some(path) = self.paths.get_mut(path.index()).and_then(Option::as_mut) {
            path.flying = path.flying.saturating_sub(1);
        }
    }

    /// An operation's end arrives; gives back whether it was awaited.
    pub(super) fn reap(&mut self, now: Instant, path: PathId, completion: Completion) {
        self.landed(path, completion.id);
        self.engine.handle_completions(now, path, &[completion]);
    }

    /// Does what the engine wants, up to the next batch that has ended.
    pub(super) fn work(
        &mut self,
        env: &mut Env,
        now: Instant,
    ) -> Option<(BatchId, springtide_core::transfer::Outcome)> {
        if self.wait.reached(now) {
            self.engine.handle_timeout(now);
        }
        loop {
            match self.engine.poll(now) {
                Next::Batch(batch, outcome) => return Some((batch, outcome)),
                Next::Take(path) => self.post(env, now, path),
                Next::Cancel(path, op) => self.cancel(env, now, path, op),
                Next::Reopen(path) => self.reopen(env, now, path),
                Next::Close(path) => self.close(env, now, path),
                Next::Wait(due) => {
                    self.wait = due.unwrap_or(Instant::NEVER);
                    return None;
                }
                other => unreachable!("the engine wants {other:?}, which is new"),
            }
        }
    }

    fn post(&mut self, env: &mut Env, now: Instant, id: PathId) {
        loop {
            let Some(path) = self.paths.get(id.index()).copied().flatten() else { return };
            let room = DEPTH.saturating_sub(path.flying);
            if room == 0 {
                return;
            }
            let mut ops = core::mem::take(&mut self.scratch);
            let count = self.engine.take_ops(now, id, room, &mut ops);
            ops[..count].iter().for_each(|op| self.fly(env, &path, op));
            self.scratch = ops;
            if count == 0 {
                return;
            }
        }
    }

    fn fly(&mut self, env: &mut Env, path: &Path, op: &Op) {
        // A remote that is forgotten reaches nothing; its owner refuses.
        let remote = self.remotes.get(op.remote.index()).copied().flatten();
        let region = remote.filter(|remote| remote.id == op.remote).map_or(NOWHERE, |remote| remote.region);
        let ticket = op.ticket.and_then(|ticket| self.tickets.get(ticket).copied());
        let by = (self.pid, env.lives[self.pid.index()].life);
        let at = env.op_time();
        if env.tells() {
            let serial = ticket.map(|ticket| ticket.serial);
            env.say(
                self.pid,
                format_args!("{:?} {} at {} by ticket {serial:?} to {}", op.verb, op.id, op.to, path.to.0),
            );
        }
        let Env { fabric, weather, queue, now, .. } = env;
        let home = self.pid.index();
        let bytes = core::mem::take(&mut fabric.homes[home]);
        let (number, data) = fabric.add(Flight::new(by, (path.id, path.opening), *op, region, ticket));
        if op.verb == Verb::Write {
            data.extend_from_slice(&bytes[op.at as usize..op.at as usize + op.len as usize]);
        }
        fabric.homes[home] = bytes;
        put(&mut self.flying, op.id.index(), number);
        if let Some(path) = self.paths.get_mut(path.id.index()).and_then(Option::as_mut) {
            path.flying += 1;
        }
        // What cannot get there now is sent again until it can.
        let healed = weather.cut(self.pid, path.to).max(*now);
        queue.push(healed + at, Event::Land(number));
    }

    /// Dies: reads come to nothing, writes may still land.
    pub(super) fn die(&mut self, env: &mut Env) {
        for number in self.flying.drain(..).flatten() {
            let flight = env.fabric.flight(number);
            let adrift = flight.op.verb == Verb::Write && flight.stage == Stage::Out;
            flight.stage = if adrift { Stage::Adrift } else { Stage::Void };
        }
    }

    /// What must be zero when nobody does anything: batches and operations.
    pub(super) fn left(&self) -> usize {
        self.engine.live() + self.engine.flying() as usize + self.tickets.len()
    }

    /// The engine's history as a number.
    pub(super) fn digest(&self) -> u64 {
        self.engine.digest() ^ self.wait.nanos()
    }
}

/// A region that nobody has.
const NOWHERE: RegionId = match RegionId::from_bits(u64::MAX) {
    Some(region) => region,
    None => panic!("a generation that is not zero"),
};

fn serves(env: &Env, to: Pid, owner: Incarnation, region: RegionId) -> bool {
    let life = env.lives[to.index()];
    let known = env.fabric.regions.get(region).is_some_and(|region| region.pid == to);
    life.alive && life.incarnation == owner && known
}

fn put<T: Copy>(table: &mut Vec<Option<T>>, index: usize, value: T) {
    if table.len() <= index {
        table.resize(index + 1, None);
    }
    table[index] = Some(value);
}
