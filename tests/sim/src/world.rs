//! One run: processes, faults, and the loop that lets things happen.

use core::time::Duration;
use std::collections::BTreeSet;

use springtide_core::time::Instant;
use springtide_core::transfer::{Completion, Status};
use springtide_core::wire::frame::decode;

use crate::client::Client;
use crate::digest::Digest;
use crate::env::Env;
use crate::fabric::Stage;
use crate::faults::Fault;
use crate::master::Master;
use crate::net::Way;
use crate::node::Node;
use crate::oracle::Violation;
use crate::plan::{Plan, Role};
use crate::queue::{Event, Pid, Turn};
use crate::trace::{Message, Trace};

/// Everything is recounted after so many events.
pub const AUDIT: u64 = 4_096;

/// One process in one of its lives.
#[derive(Debug)]
enum Process {
    Master(Box<Master>),
    Node(Box<Node>),
    Client(Box<Client>),
    /// It does not run.
    Dead,
}

/// A cluster, or a few, and all that happens to it.
#[derive(Debug)]
pub struct World {
    env: Env,
    processes: Vec<Process>,
    /// Faults that are left out.
    spared: BTreeSet<u32>,
    /// The next fault.
    next: u32,
    events: u64,
    audits: u32,
    digest: Digest,
    phase: Phase,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Phase {
    /// Callers work, things go wrong.
    Work,
    /// Everything is mended, nobody works, until then.
    Quiet(Instant),
    Over,
}

/// What came of a run.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Outcome {
    /// What was seen that must not be.
    pub violation: Option<Violation>,
    /// How many events happened.
    pub events: u64,
    /// How many operations had their result.
    pub operations: u64,
    /// How many faults there were.
    pub faults: u32,
    /// All that happened, as a number.
    pub digest: u64,
}

impl World {
    /// The run of `plan` without the faults `spared`.
    pub fn new(plan: Plan, spared: BTreeSet<u32>, trace: Trace) -> Self {
        let mut env = Env::new(plan, trace);
        let pids: Vec<Pid> = env.plan.pids().collect();
        let processes = pids.iter().map(|_| Process::Dead).collect();
        env.queue.push(Instant::ORIGIN, Event::Fault(u32::MAX));
        let mut world = Self {
            env,
            processes,
            spared,
            next: 0,
            events: 0,
            audits: 0,
            digest: Digest::default(),
            phase: Phase::Work,
        };
        pids.into_iter().for_each(|pid| world.start(pid));
        world.plan_fault();
        world
    }

    /// Runs to its end, or to the first violation.
    pub fn run(mut self) -> Outcome {
        while self.phase != Phase::Over && self.env.oracle.violation().is_none() {
            self.step();
        }
        if self.env.oracle.violation().is_none() {
            self.close();
        }
        let Self { env, events, next, .. } = &self;
        Outcome {
            violation: env.oracle.violation().cloned(),
            events: *events,
            operations: env.oracle.operations(),
            faults: *next,
            digest: self.digest(),
        }
    }

    /// All that happened, and all that is there, as a number.
    pub fn digest(&self) -> u64 {
        let mut digest = self.digest;
        for process in &self.processes {
            match process {
                Process::Master(master) => digest.add(master.core().digest()),
                Process::Client(client) => digest.add(client.digest()),
                Process::Node(_) | Process::Dead => {}
            }
        }
        digest.value()
    }

    /// Lets the next thing happen.
    fn step(&mut self) {
        let Some((at, event)) = self.env.queue.pop() else {
            self.phase = Phase::Over;
            return;
        };
        self.env.now = at;
        if let Phase::Quiet(until) = self.phase
            && until.reached(at)
        {
            self.phase = Phase::Over;
            return;
        }
        if !self.happens(event) {
            return;
        }
        self.events += 1;
        self.digest.add(at.nanos());
        if self.events.is_multiple_of(AUDIT) {
            self.audit();
        }
        if self.phase == Phase::Work && self.events >= self.env.plan.events {
            self.mend();
        }
    }

    /// Whether it happened: what is stale, or waits for a process that stands still, did not.
    fn happens(&mut self, event: Event) -> bool {
        match event {
            Event::Frame(number) => self.frame(number),
            Event::Closed(conn) => {
                let caller = self.env.net.conns[conn as usize].caller;
                self.is_for(caller.0, caller.1, event) && self.closed(caller.0, conn)
            }
            Event::Wake(pid) => {
                let frozen = self.env.lives[pid.index()].frozen;
                if frozen > self.env.now {
                    self.env.queue.push(frozen, event);
                    return false;
                }
                self.env.is_awaited(pid) && self.drive(pid)
            }
            Event::Land(number) => {
                let region = self.env.fabric.flight(number).region;
                let owner = self.env.fabric.regions.get(region).map(|region| region.pid);
                let frozen = owner.map_or(Instant::ORIGIN, |owner| self.env.lives[owner.index()].frozen);
                if frozen > self.env.now {
                    self.env.queue.push(frozen, event);
                    return false;
                }
                self.env.land(number);
                true
            }
            Event::Reap(number) => self.reap(number),
            Event::Path(pid, path, opening, turn) => {
                let life = self.env.lives[pid.index()].life;
                if !self.is_for(pid, life, event) {
                    return false;
                }
                let Self { env, processes, .. } = self;
                if let Process::Client(client) = &mut processes[pid.index()] {
                    client.turned(env, path, opening, turn);
                }
                true
            }
            Event::Fault(u32::MAX) => true,
            Event::Fault(number) => self.fault(number),
        }
    }

    /// Whether `pid` is in its life `life` and moves; if it stands still, `event` comes again.
    fn is_for(&mut self, pid: Pid, life: u32, event: Event) -> bool {
        let now = self.env.now;
        let known = &self.env.lives[pid.index()];
        if !known.alive || known.life != life {
            return false;
        }
        if known.frozen > now {
            self.env.queue.push(known.frozen, event);
            return false;
        }
        true
    }

    fn frame(&mut self, number: u32) -> bool {
        let parcel = self.env.net.take(number);
        let conn = self.env.net.conns[parcel.conn as usize];
        let (to, life) = match parcel.way {
            Some(Way::Up) => conn.server,
            _ => conn.caller,
        };
        let known = self.env.lives[to.index()];
        if known.alive && known.life == life && known.frozen > self.env.now {
            self.env.net.keep(number, parcel);
            self.env.queue.push(known.frozen, Event::Frame(number));
            return false;
        }
        let arrives = conn.open && known.alive && known.life == life;
        if arrives && let Ok(Some((frame, _))) = decode(&parcel.bytes) {
            self.digest.add(frame.header.request ^ u64::from(frame.header.method.0) << 48);
            let Self { env, processes, .. } = self;
            if env.tells() {
                let from = if parcel.way == Some(Way::Up) { conn.caller.0 } else { conn.server.0 };
                env.say(to, format_args!("from {}: {}", from.0, Message(&frame)));
            }
            match &mut processes[to.index()] {
                Process::Master(master) => {
                    master.frame(env, &parcel, &frame);
                    master.drive(env);
                }
                Process::Node(node) => node.frame(env, &parcel, &frame),
                Process::Client(client) => client.frame(env, &parcel, &frame),
                Process::Dead => {}
            }
        }
        self.env.net.put_back(number, parcel);
        arrives
    }

    fn closed(&mut self, pid: Pid, conn: u32) -> bool {
        let Self { env, processes, .. } = self;
        match &mut processes[pid.index()] {
            Process::Node(node) => node.closed(env, conn),
            Process::Client(client) => client.closed(env, conn),
            Process::Master(_) | Process::Dead => return false,
        }
        true
    }

    fn drive(&mut self, pid: Pid) -> bool {
        let Self { env, processes, .. } = self;
        match &mut processes[pid.index()] {
            Process::Master(master) => master.drive(env),
            Process::Node(node) => node.drive(env),
            Process::Client(client) => client.drive(env),
            Process::Dead => return false,
        }
        true
    }

    fn reap(&mut self, number: u32) -> bool {
        let flight = self.env.fabric.flight(number);
        let ((by, life), path, op) = (flight.by, flight.path, flight.op);
        let Stage::Back(status) = flight.stage else {
            self.env.fabric.remove(number);
            return false;
        };
        if !self.is_for(by, life, Event::Reap(number)) {
            let known = self.env.lives[by.index()];
            if !known.alive || known.life != life {
                self.env.fabric.remove(number);
            }
            return false;
        }
        self.env.fabric.remove(number);
        let bytes = if status == Status::Done { op.len } else { 0 };
        let Self { env, processes, .. } = self;
        if let Process::Client(client) = &mut processes[by.index()] {
            client.reap(env, path, Completion { id: op.id, bytes, status, code: 0 });
        }
        true
    }

    fn start(&mut self, pid: Pid) {
        let env = &mut self.env;
        env.begin_life(pid);
        let process = match env.plan.role(pid) {
            Role::Master => Process::Master(Box::new(Master::new(env, pid))),
            Role::Node => Process::Node(Box::new(Node::new(env, pid))),
            Role::Client => Process::Client(Box::new(Client::new(env, pid))),
        };
        self.processes[pid.index()] = process;
        let now = env.local(pid);
        env.wake(pid, now);
    }

    fn kill(&mut self, pid: Pid) {
        let env = &mut self.env;
        match core::mem::replace(&mut self.processes[pid.index()], Process::Dead) {
            Process::Client(mut client) => client.die(env),
            Process::Node(mut node) => node.die(env),
            Process::Master(_) | Process::Dead => {}
        }
        env.lives[pid.index()].alive = false;
        env.lives[pid.index()].frozen = Instant::ORIGIN;
        let lost: Vec<(u32, Pid)> = env.net.lose(pid).collect();
        for (conn, caller) in lost {
            if env.weather.cut(pid, caller) <= env.now {
                let at = env.now + env.flight_time();
                env.queue.push(at, Event::Closed(conn));
            }
        }
        for place in 0..self.processes.len() {
            let Process::Client(client) = &self.processes[place] else { continue };
            let other = Pid(place as u16);
            if self.env.weather.cut(pid, other) > self.env.now {
                continue;
            }
            let paths: Vec<_> = client.paths_to(pid).collect();
            for (path, opening) in paths {
                let at = self.env.now + self.env.op_time();
                self.env.queue.push(at, Event::Path(other, path, opening, Turn::Down));
            }
        }
    }

    fn plan_fault(&mut self) {
        if self.env.plan.trouble == Duration::MAX {
            return;
        }
        let (gap, _) = Fault::of(&self.env.plan, self.next);
        self.env.queue.push(self.env.now + gap, Event::Fault(self.next));
    }

    fn fault(&mut self, number: u32) -> bool {
        if number >= RESTART {
            let pid = Pid((number - RESTART) as u16);
            if !self.env.lives[pid.index()].alive {
                self.env.say(pid, format_args!("is back"));
                self.start(pid);
            }
            return true;
        }
        if self.phase != Phase::Work {
            return false;
        }
        self.next = number + 1;
        let (_, fault) = Fault::of(&self.env.plan, number);
        let happens = !self.spared.contains(&number);
        if happens {
            self.env.say(Pid(0), format_args!("fault {number}: {fault}"));
            self.strike(fault);
        }
        self.plan_fault();
        happens
    }

    fn strike(&mut self, fault: Fault) {
        let env = &mut self.env;
        let now = env.now;
        match fault {
            Fault::Lose(share, time) => env.weather.lose = (share, now + time),
            Fault::Repeat(share, time) => env.weather.repeat = (share, now + time),
            Fault::Slow(by, time) => env.weather.slow = (by, now + time),
            Fault::Tear(by, time) => env.weather.tear = (by, now + time),
            Fault::Late(by, time) => env.weather.late = (by, now + time),
            Fault::Cut(from, to, time) => env.weather.cut_until(from, to, now + time),
            Fault::Freeze(pid, time) if env.lives[pid.index()].alive => {
                let frozen = &mut env.lives[pid.index()].frozen;
                *frozen = (*frozen).max(now + time);
            }
            Fault::Crash(pid, time) if env.lives[pid.index()].alive => {
                self.kill(pid);
                self.env.queue.push(now + time, Event::Fault(RESTART + u32::from(pid.0)));
            }
            Fault::Ahead(pid, by) => {
                env.lives[pid.index()].clock.jump(now, by);
                self.jumped(pid);
            }
            Fault::Back(pid, by) => {
                env.lives[pid.index()].clock.jump_back(now, by);
                self.jumped(pid);
            }
            Fault::Flip(pid, which) => self.flip(pid, which),
            Fault::Fill(pid, time) => {
                let until = env.local(pid) + time;
                if let Process::Client(client) = &mut self.processes[pid.index()] {
                    client.fill(env, until);
                }
            }
            Fault::Freeze(..) | Fault::Crash(..) => {}
        }
    }

    /// Whoever waits by its clock looks at it anew.
    fn jumped(&mut self, pid: Pid) {
        let now = self.env.local(pid);
        self.env.wake(pid, now);
    }

    fn flip(&mut self, pid: Pid, which: u64) {
        let env = &mut self.env;
        let home = &mut env.fabric.homes[pid.index()];
        if home.is_empty() || !env.lives[pid.index()].alive {
            return;
        }
        let bit = which as usize % (home.len() * 8);
        home[bit / 8] ^= 1 << (bit % 8);
        let byte = bit / 8;
        let hit =
            env.fabric.regions.iter().find(|(_, region)| {
                region.pid == pid && (region.base..region.base + region.len).contains(&byte)
            });
        if let Some((_, region)) = hit {
            env.oracle.flipped(region, (byte - region.base) as u64);
        }
    }

    /// The end of trouble and work: everything is mended, and what is under way may end.
    fn mend(&mut self) {
        let env = &mut self.env;
        env.say(Pid(0), format_args!("everything is mended; quiet"));
        let processes = env.plan.processes();
        env.weather = crate::faults::Weather::new(processes);
        env.work = false;
        for pid in env.plan.pids().collect::<Vec<_>>() {
            self.env.lives[pid.index()].frozen = Instant::ORIGIN;
            if self.env.lives[pid.index()].alive {
                self.drive(pid);
            } else {
                self.start(pid);
            }
        }
        let rules = &self.env.plan.rules;
        let span = rules.put_discard + rules.lease + rules.crashed_ttl * 2 + Duration::from_secs(2);
        self.phase = Phase::Quiet(self.env.now + span);
    }

    fn audit(&mut self) {
        self.audits += 1;
        let Self { env, processes, audits, .. } = self;
        for (place, process) in processes.iter().enumerate() {
            let Process::Master(master) = process else { continue };
            let pid = Pid(place as u16);
            let Env { oracle, fabric, now: at, .. } = env;
            oracle.audit(*at, (pid, master.core()), fabric, *audits);
        }
    }

    /// The last look: nothing is left that should not be.
    fn close(&mut self) {
        self.audit();
        let at = self.env.now;
        let mut members = 0;
        for (place, process) in self.processes.iter().enumerate() {
            let pid = Pid(place as u16);
            let Env { oracle, .. } = &mut self.env;
            match process {
                Process::Master(master) => oracle.settled(at, (pid, master.core())),
                Process::Node(node) => {
                    members += node.open();
                    oracle.is_inside(at, pid, node.is_inside());
                }
                Process::Client(client) => {
                    members += client.members();
                    oracle.is_inside(at, pid, client.is_inside());
                    oracle.left_over(at, pid, client.left());
                }
                Process::Dead => {}
            }
        }
        self.env.oracle.nobody_waits(at, members);
    }
}

/// Numbers of faults from here on are restarts.
const RESTART: u32 = u32::MAX - 0x2_0000;
