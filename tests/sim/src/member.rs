//! Staying registered: the real membership over a line.

use core::time::Duration;

use springtide_core::error::Code;
use springtide_core::node::{CallError, Config, Effect, Identity, Lent, Membership, Next};
use springtide_core::time::Instant;
use springtide_core::wire::frame::Frame;

use crate::env::Env;
use crate::line::{Heard, Line};
use crate::plan::SCALE;
use crate::queue::Pid;

/// How long one call may take.
const CALL: Duration = Duration::from_millis(300);

/// A process as a member of its cluster.
#[derive(Debug)]
pub struct Member {
    line: Line<Next>,
    membership: Membership,
    name: String,
    address: String,
    /// Whether a call is under way.
    busy: bool,
    ended: Vec<(Next, Code)>,
}

impl Member {
    /// The member `pid` that lends `lent`, and is reached at `address` or not at all.
    pub fn new(env: &mut Env, pid: Pid, lent: Vec<Lent>, address: String) -> Self {
        let usual = Config::default();
        let config = Config { retry: usual.retry / SCALE, retry_most: usual.retry_most / SCALE };
        let me = (pid, env.lives[pid.index()].incarnation);
        let to = env.plan.master_of(pid);
        Self {
            line: Line::new(me, to, Default::default(), springtide_core::key::DEFAULT_TENANT),
            membership: Membership::new(config, lent, env.rng.next_u64()),
            name: format!("p{}", pid.0),
            address,
            busy: false,
            ended: Vec::new(),
        }
    }

    /// Whether it has this connection.
    pub const fn has(&self, conn: u32) -> bool {
        self.line.has(conn)
    }

    /// Calls under way.
    pub const fn open(&self) -> usize {
        self.line.open()
    }

    /// Whether the master knows it with all that it lends.
    pub fn is_inside(&self) -> bool {
        self.membership.is_inside()
    }

    /// A fence stands.
    pub fn fenced(&mut self, now: Instant, number: u64) {
        self.membership.handle_fenced(now, number);
    }

    /// What to do with our memory.
    pub fn effect(&mut self) -> Option<Effect> {
        self.membership.effect()
    }

    /// The connection is gone.
    pub fn closed(&mut self, now: Instant) {
        self.line.closed(now);
    }

    /// Takes in a frame.
    pub fn hear(&mut self, env: &mut Env, now: Instant, frame: &Frame<'_>) {
        if let Heard::Answer(next, status) = self.line.hear(env, now, frame) {
            self.busy = false;
            let answer = if status.is_ok() { Ok(frame.body) } else { Err(CallError::Refused(status)) };
            self.membership.handle_answer(now, next, answer);
        }
    }

    /// Does what is due.
    pub fn drive(&mut self, env: &mut Env, now: Instant) {
        self.line.drive(env, now, &mut self.ended);
        for (next, _) in self.ended.drain(..) {
            self.busy = false;
            self.membership.handle_answer(now, next, Err(CallError::NoAnswer));
        }
        if self.busy {
            return;
        }
        let next = self.membership.next(now);
        let (name, address) = (&*self.name, &*self.address);
        let mut body = Vec::new();
        if let Some(method) = self.membership.request(next, Identity { name, address }, &mut body) {
            self.busy = true;
            self.line.call(env, now, (method, now + CALL), next, |out| out.append(&mut body));
        }
    }

    /// When [`drive`](Self::drive) has something to do.
    pub fn due(&self, now: Instant) -> Instant {
        let next = match self.membership.next(now) {
            _ if self.busy => Instant::NEVER,
            Next::Wait(until) => until,
            _ => now,
        };
        next.min(self.line.due())
    }
}
