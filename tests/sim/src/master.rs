//! A master: the real machine of the metadata server behind simulated connections.

use core::time::Duration;

use springtide_core::id::Term;
use springtide_core::master::Master as Core;
use springtide_core::rng::mix;
use springtide_core::ticket::TicketKey;
use springtide_core::wire::frame::{Frame, Kind};
use springtide_master::Machine;
use springtide_rpc::Replies;

use crate::env::Env;
use crate::net::{Parcel, Way};
use crate::queue::Pid;

/// Longest that the machine is left alone.
const LOOK_AGAIN: Duration = Duration::from_millis(50);

/// A master in one of its lives.
#[derive(Debug)]
pub struct Master {
    pid: Pid,
    machine: Machine,
    out: Vec<u8>,
}

impl Master {
    /// A master that knows nothing but its cluster and its term: that is what is durable today.
    pub fn new(env: &mut Env, pid: Pid) -> Self {
        let life = env.lives[pid.index()];
        let now = env.local(pid);
        let seed = env.rng.next_u64();
        let core = Core::new(env.plan.rules.clone(), seed, Term(u64::from(life.life)), now);
        let mut secret = u128::from(mix(seed));
        let secrets = move || {
            secret += 1;
            TicketKey(secret.to_le_bytes())
        };
        let machine = Machine::new(core, u64::from(pid.0) + 1, life.incarnation, secrets);
        env.oracle.master_began(pid);
        Self { pid, machine, out: Vec::new() }
    }

    /// The machine inside.
    pub const fn core(&self) -> &Core {
        self.machine.master()
    }

    /// A frame arrives.
    pub fn frame(&mut self, env: &mut Env, parcel: &Parcel, frame: &Frame<'_>) {
        if frame.header.kind != Kind::Request {
            return;
        }
        let now = env.local(self.pid);
        let mut peer = env.net.conns[parcel.conn as usize].peer;
        self.out.clear();
        self.machine.handle(now, &mut peer, frame, &mut Replies::at_once(&mut self.out));
        env.net.conns[parcel.conn as usize].peer = peer;
        let Env { oracle, fabric, now: at, .. } = env;
        oracle.replied(*at, frame, &self.out);
        oracle.served((*at, now), (self.pid, self.machine.master()), fabric, frame, &self.out);
        env.send(parcel.conn, Way::Down, &self.out);
    }

    /// Does what is due.
    pub fn drive(&mut self, env: &mut Env) {
        let now = env.local(self.pid);
        env.oracle.looked(self.pid, now);
        let due = self.machine.turn(now);
        env.wake(self.pid, due.min(now + LOOK_AGAIN));
    }
}
