//! What all processes share: time, what happens next, the network, the memory, and who watches.

use core::fmt;

use springtide_core::id::Incarnation;
use springtide_core::rng::{Rng, mix};
use springtide_core::time::Instant;

use crate::clock::Clock;
use crate::fabric::Fabric;
use crate::faults::Weather;
use crate::net::Net;
use crate::oracle::Oracle;
use crate::plan::{Plan, Role};
use crate::queue::{Event, Pid, Queue};
use crate::trace::Trace;

/// What others can know of a process.
#[derive(Clone, Copy, Debug)]
pub struct Life {
    /// Whether it runs.
    pub alive: bool,
    /// Which of its lives this is.
    pub life: u32,
    /// The same, as processes tell each other.
    pub incarnation: Incarnation,
    /// Its clock.
    pub clock: Clock,
    /// Until when it stands still.
    pub frozen: Instant,
    /// When it looks at its clock next.
    wake: Instant,
}

/// The world around the processes.
#[derive(Debug)]
pub struct Env {
    /// True time.
    pub now: Instant,
    /// What happens next.
    pub queue: Queue,
    /// The network.
    pub net: Net,
    /// The memory.
    pub fabric: Fabric,
    /// What the network is like.
    pub weather: Weather,
    /// Who watches.
    pub oracle: Oracle,
    /// The processes, by number.
    pub lives: Vec<Life>,
    /// Chance that belongs to no process.
    pub rng: Rng,
    /// What the run looks like.
    pub plan: Plan,
    /// Whether clients still begin operations.
    pub work: bool,
    trace: Trace,
}

impl Env {
    /// A world with nobody in it yet.
    pub fn new(plan: Plan, trace: Trace) -> Self {
        let mut rng = Rng::new(mix(plan.seed));
        let life = |_| {
            let start = core::time::Duration::from_millis(1_000 + rng.below(1_000_000));
            Life {
                alive: false,
                life: 0,
                incarnation: Incarnation::default(),
                clock: Clock::new(rng.below(8_001) as i64 - 4_000, start),
                frozen: Instant::ORIGIN,
                wake: Instant::NEVER,
            }
        };
        let lives: Vec<Life> = plan.pids().map(life).collect();
        let mut fabric = Fabric::default();
        fabric.homes.resize(lives.len(), Vec::new());
        Self {
            now: Instant::ORIGIN,
            queue: Queue::default(),
            net: Net::default(),
            fabric,
            weather: Weather::new(plan.processes()),
            oracle: Oracle::new(&plan),
            lives,
            rng,
            plan,
            work: true,
            trace,
        }
    }

    /// Begins another life of a process; gives back its number and what it is called.
    pub fn begin_life(&mut self, pid: Pid) -> (u32, Incarnation) {
        let (low, high) = (self.rng.next_u64(), self.rng.next_u64());
        let life = &mut self.lives[pid.index()];
        life.alive = true;
        life.life += 1;
        life.wake = Instant::NEVER;
        life.incarnation = Incarnation(u128::from(high) << 64 | u128::from(low) | 1);
        (life.life, life.incarnation)
    }

    /// What a process' clock shows now.
    pub fn local(&self, pid: Pid) -> Instant {
        self.lives[pid.index()].clock.local(self.now)
    }

    /// Has a process look at its clock when that shows `due`, if not earlier.
    pub fn wake(&mut self, pid: Pid, due: Instant) {
        let life = &mut self.lives[pid.index()];
        let at = life.clock.global(self.now, due);
        if at < life.wake {
            life.wake = at;
            self.queue.push(at, Event::Wake(pid));
        }
    }

    /// Whether a wake-up of `pid` that has come is the one that it waits for.
    pub fn is_awaited(&mut self, pid: Pid) -> bool {
        let life = &mut self.lives[pid.index()];
        let awaited = life.alive && life.wake.reached(self.now);
        if awaited {
            life.wake = Instant::NEVER;
        }
        awaited
    }

    /// Says a line of the log.
    pub fn say(&self, pid: Pid, what: fmt::Arguments<'_>) {
        if self.trace == Trace::On {
            self.trace.say(self.now, &Name(self.plan.role(pid), pid), what);
        }
    }

    /// Whether the log is wanted.
    pub fn tells(&self) -> bool {
        self.trace == Trace::On
    }
}

/// A process, as people call it.
pub struct Name(pub Role, pub Pid);

impl fmt::Display for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let role = match self.0 {
            Role::Master => "master",
            Role::Node => "node",
            Role::Client => "client",
        };
        f.pad(&format!("{role} {}", self.1.0))
    }
}
