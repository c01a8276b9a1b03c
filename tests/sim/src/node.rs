//! A storage node: the real membership, steps, desk and gates over simulated memory.

use springtide_core::id::RegionId;
use springtide_core::node::{Exposed, Lent, Step};
use springtide_core::ticket::Gate;
use springtide_core::time::Instant;
use springtide_core::wire::frame::{Frame, Kind};
use springtide_node::{Desk, Served, Way as Road};
use springtide_rpc::Replies;

use crate::env::Env;
use crate::fabric::Region;
use crate::member::Member;
use crate::net::{Parcel, Way};
use crate::queue::Pid;

/// A storage node in one of its lives.
#[derive(Debug)]
pub struct Node {
    pid: Pid,
    member: Member,
    exposed: Exposed,
    desk: Desk,
    regions: Vec<RegionId>,
    out: Vec<u8>,
}

impl Node {
    /// A node with fresh memory.
    pub fn new(env: &mut Env, pid: Pid) -> Self {
        let (count, len) = env.plan.segments;
        env.fabric.homes[pid.index()] = vec![0; usize::from(count) * len as usize];
        let lent = |place| Lent { name: format!("p{}/{place}", pid.0), len, uniform: 0 };
        let lent: Vec<Lent> = (0..count).map(lent).collect();
        let desk = Desk { incarnation: env.lives[pid.index()].incarnation };
        let exposed = Exposed::new(lent.len());
        let member = Member::new(env, pid, lent, address(pid));
        Self { pid, member, exposed, desk, regions: Vec::new(), out: Vec::new() }
    }

    /// Whether all its memory is in the pool.
    pub fn is_inside(&self) -> bool {
        self.member.is_inside()
    }

    /// Calls under way.
    pub const fn open(&self) -> usize {
        self.member.open()
    }

    /// A frame arrives.
    pub fn frame(&mut self, env: &mut Env, parcel: &Parcel, frame: &Frame<'_>) {
        let now = env.local(self.pid);
        if frame.header.kind == Kind::Request {
            return self.answer(env, parcel.conn, frame);
        }
        if self.member.has(parcel.conn) {
            self.member.hear(env, now, frame);
            self.drive(env);
        }
    }

    fn answer(&mut self, env: &mut Env, conn: u32, frame: &Frame<'_>) {
        let mut greeted = env.net.conns[conn as usize].greeted;
        self.out.clear();
        let mut replies = Replies::at_once(&mut self.out);
        let Self { exposed, desk, pid, .. } = self;
        desk.handle(&mut greeted, frame, &mut replies, |segment, name| {
            let Some(region) = exposed.region(segment) else { return Served::No };
            let mut description = [0; 24];
            description[..16].copy_from_slice(&desk.incarnation.0.to_le_bytes());
            description[16..].copy_from_slice(&region.to_bits().to_le_bytes());
            let address = &pid.0.to_le_bytes();
            name(Road { transport: "sim", address, description: &description });
            Served::Yes
        });
        env.net.conns[conn as usize].greeted = greeted;
        env.oracle.replied(env.now, frame, &self.out);
        env.send(conn, Way::Down, &self.out);
    }

    /// The member's connection is gone.
    pub fn closed(&mut self, env: &mut Env, conn: u32) {
        if self.member.has(conn) {
            self.member.closed(env.local(self.pid));
            self.drive(env);
        }
    }

    /// Does what is due.
    pub fn drive(&mut self, env: &mut Env) {
        let now = env.local(self.pid);
        self.member.drive(env, now);
        while let Some(effect) = self.member.effect() {
            for step in self.exposed.steps(effect) {
                self.take(env, now, step);
            }
        }
        let due = self.member.due(now);
        env.wake(self.pid, due);
    }

    fn take(&mut self, env: &mut Env, now: Instant, step: Step) {
        env.say(self.pid, format_args!("{step:?}"));
        match step {
            Step::Expose { place, id, key } => {
                let owner = self.desk.incarnation;
                let (_, len) = env.plan.segments;
                let region = env.fabric.regions.insert(Region {
                    pid: self.pid,
                    master: env.plan.master_of(self.pid),
                    segment: id,
                    gate: Gate::new(owner, id, key),
                    base: place * len as usize,
                    len: len as usize,
                });
                self.regions.push(region);
                self.exposed.handle_exposed(place, id, region);
            }
            Step::Withdraw(region) => {
                env.fabric.regions.remove(region);
                self.regions.retain(|other| *other != region);
            }
            Step::Fence { region, extent, below, number } => {
                if let Some(region) = env.fabric.regions.get_mut(region) {
                    region.gate.fence(extent, below);
                    self.member.fenced(now, number);
                }
            }
            Step::Stands(number) => self.member.fenced(now, number),
        }
    }

    /// It dies: nothing reaches its memory any more.
    pub fn die(&mut self, env: &mut Env) {
        env.oracle.callers_died(self.open());
        for region in self.regions.drain(..) {
            env.fabric.regions.remove(region);
        }
    }
}

/// Where a node is reached.
fn address(pid: Pid) -> String {
    format!("sim:{}", pid.0)
}

/// The node that is reached at `address`.
pub fn at(address: &str) -> Option<Pid> {
    address.strip_prefix("sim:")?.parse().ok().map(Pid)
}
