//! One control machine and its shards: the metadata server without its sockets.
//!
//! Pool mode: members lend segments, writers put in two phases (start, write, end) or on extents granted ahead
//! (reserve, write, publish), readers get a lease. `now` comes first in every command; going backwards is clamped
//! and counted.
//!
//! Inside, a *control* machine (members, space, tenants, tickets, duties) and a *shard* (index, objects, leases,
//! eviction) tell each other small typed events. There is one shard today; keys choose it by a keyed hash, and it
//! knows nothing of the control machine, so more of them are a matter of driving.
//!
//! **Reuse.** Bytes are granted again only when no lease on them runs, no copy uses them, and no write can still land
//! in them. A writer that ends, or aborts with [`Quiet::Yes`], has stopped; of one that has not said so the master asks
//! the owner ([`Duty::Fence`]), and without an answer waits for the release time-out.
//!
//! **Bounded steps.** No command looks at more than a fixed number of objects. What is more than that (sweeping a
//! segment that left, giving up puts, eviction) is done piece by piece in [`Master::handle_timeout`], for which
//! [`Master::poll`] asks.

mod config;
mod control;
mod copy;
mod digest;
mod error;
mod events;
mod look;
mod member;
mod put;
mod read;
mod remove;
mod reserve;
mod room;
mod shard;
mod tenants;
mod time;
mod types;

use core::num::NonZeroU32;

use crate::id::{Caller, MemberId, Term};
use crate::key::Key;
use crate::rng::Rng;
use crate::time::{Instant, Monotone};

use control::Control;
use room::Round;
use shard::Shard;

pub use config::{Config, ConfigError, MILLION, SoftPinned};
pub use error::{
    CopyEndError, CopyError, EndError, GetError, MountError, PublishError, PutError, RegisterError,
    RemoveError, TenantError, UnmountError,
};
pub use reserve::MAX_RESERVE;
pub use types::*;

/// The metadata server as a machine: one owner, no locks (S0A-071, S0A-077).
#[derive(Debug)]
pub struct Master {
    config: Config,
    clock: Monotone,
    control: Control,
    shard: Shard,
    round: Round,
    no_room: u64,
    blocked_by_leases: u64,
}

impl Master {
    /// A master without members, in `term`. `seed` comes from outside randomness; equal seeds and commands give equal
    /// histories. Check `config` with [`Config::validate`] before.
    pub fn new(config: Config, seed: u64, term: Term, now: Instant) -> Self {
        let mut clock = Monotone::default();
        clock.observe(now);
        let mut rng = Rng::new(seed);
        let generation = first_generation(&mut rng);
        let shard = Shard::new(&config, &mut rng, generation);
        let control = Control::new(&config, rng, term, generation);
        let round = Round::default();
        Self { config, clock, control, shard, round, no_room: 0, blocked_by_leases: 0 }
    }

    /// The settings.
    pub const fn config(&self) -> &Config {
        &self.config
    }

    /// The term that tickets carry.
    pub const fn term(&self) -> Term {
        self.control.term
    }

    fn hash(&self, caller: Caller, key: Key<'_>) -> u64 {
        self.shard.hasher.hash(caller.tenant, key.bytes())
    }

    /// The caller as a member.
    fn member_id(&self, caller: Caller) -> Option<MemberId> {
        self.control.members.id_of(caller.incarnation)
    }

    /// Lets the control machine and the shard hear what they have for each other.
    fn settle(&mut self, now: Instant) {
        while !self.shard.out.is_empty() || !self.control.out.is_empty() {
            // In order: a fence is asked for before it is over.
            let mut events = core::mem::take(&mut self.shard.out);
            events.drain(..).for_each(|event| self.control.handle(event));
            self.shard.out = events;
            let mut events = core::mem::take(&mut self.control.out);
            events.drain(..).for_each(|event| self.shard.handle(now, event));
            self.control.out = events;
        }
    }
}

/// Where the generations of this life's ids begin: what an earlier life of the master gave out means nothing to it, so
/// that an end or an abort that comes too late does not hit what somebody else has begun since.
fn first_generation(rng: &mut Rng) -> NonZeroU32 {
    NonZeroU32::MIN.saturating_add(rng.below(1 << 31) as u32)
}
