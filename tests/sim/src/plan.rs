//! What one run looks like: everything that its seed decides before it begins.

use core::time::Duration;

use springtide_core::evict::Kind;
use springtide_core::master::Config;
use springtide_core::rng::Rng;

use crate::queue::Pid;

/// Times in a simulated cluster are a tenth of the usual ones, so that more of them pass.
pub const SCALE: u32 = 10;

/// How many of what there are, how large, and how they behave.
#[derive(Clone, Debug)]
pub struct Plan {
    /// The seed that all of it comes from.
    pub seed: u64,
    /// How many events happen before everything is mended.
    pub events: u64,
    /// Masters, each with a cluster of its own.
    pub masters: u16,
    /// Storage nodes, dealt out to the masters.
    pub nodes: u16,
    /// Clients, dealt out to the masters.
    pub clients: u16,
    /// Segments of each node, and the length of each in bytes.
    pub segments: (u16, u64),
    /// The masters' settings.
    pub rules: Config,
    /// What clients do.
    pub work: Work,
    /// The mean time between two faults; [`Duration::MAX`] for none.
    pub trouble: Duration,
}

/// What clients do.
#[derive(Clone, Copy, Debug)]
pub struct Work {
    /// Keys of a cluster.
    pub keys: u32,
    /// Operations that one client has under way at most.
    pub together: usize,
    /// The mean pause of one client between two operations.
    pub think: Duration,
    /// The longest value, in bytes.
    pub longest: u32,
    /// How long an operation may take.
    pub patience: Duration,
}

impl Plan {
    /// The run of `seed`, with `events` events.
    pub fn new(seed: u64, events: u64) -> Self {
        let mut rng = Rng::new(seed ^ 0x91a4);
        let masters = if rng.below(8) == 0 { 2 } else { 1 };
        let nodes = masters * (1 + rng.below(3) as u16);
        let clients = masters * (2 + rng.below(4) as u16);
        let segment = 1 << (13 + rng.below(4));
        let segments = (1 + rng.below(2) as u16, segment);
        let mut rules = scaled();
        rules.policy = [Kind::default(), Kind::Lru, Kind::S3Fifo][rng.below(3) as usize];
        if rng.below(4) == 0 {
            rules.lease /= 5;
        }
        let work = Work {
            keys: 16 << rng.below(5),
            together: 1 + rng.below(4) as usize,
            think: Duration::from_micros(500 << rng.below(6)),
            longest: 64 << rng.below(5),
            patience: Duration::from_secs(10) / SCALE,
        };
        let trouble = Duration::from_millis(50 << rng.below(4));
        Self { seed, events, masters, nodes, clients, segments, rules, work, trouble }
    }

    /// How many processes there are.
    pub const fn processes(&self) -> u16 {
        self.masters + self.nodes + self.clients
    }

    /// What process `pid` is.
    pub const fn role(&self, pid: Pid) -> Role {
        if pid.0 < self.masters {
            Role::Master
        } else if pid.0 < self.masters + self.nodes {
            Role::Node
        } else {
            Role::Client
        }
    }

    /// The master of the cluster that `pid` belongs to.
    pub const fn master_of(&self, pid: Pid) -> Pid {
        match self.role(pid) {
            Role::Master => pid,
            Role::Node => Pid((pid.0 - self.masters) % self.masters),
            Role::Client => Pid((pid.0 - self.masters - self.nodes) % self.masters),
        }
    }

    /// The processes, masters first, then nodes, then clients.
    pub fn pids(&self) -> impl Iterator<Item = Pid> + Clone + use<> {
        (0..self.processes()).map(Pid)
    }
}

/// The kinds of processes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Role {
    /// Holds the metadata.
    Master,
    /// Lends memory.
    Node,
    /// Puts and gets.
    Client,
}

/// The usual settings with shorter times.
fn scaled() -> Config {
    let usual = Config::default();
    Config {
        lease: usual.lease / SCALE,
        soft_pin: Duration::from_secs(5),
        client_ttl: usual.client_ttl / SCALE,
        crashed_ttl: usual.crashed_ttl / SCALE,
        heartbeat: usual.heartbeat / SCALE,
        put_discard: usual.put_discard / SCALE,
        put_release: usual.put_release / SCALE,
        max_segments: 64,
        ..usual
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_plan_goes_together() {
        for seed in 0..200 {
            let plan = Plan::new(seed, 1);
            assert_eq!(plan.rules.validate(), Ok(()), "seed {seed}");
            let roles = |role| plan.pids().filter(|&pid| plan.role(pid) == role).count();
            let all = [Role::Master, Role::Node, Role::Client].map(roles);
            assert_eq!(all, [plan.masters, plan.nodes, plan.clients].map(usize::from));
            assert!(plan.pids().all(|pid| plan.role(plan.master_of(pid)) == Role::Master));
        }
    }
}
