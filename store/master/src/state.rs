//! The machine and what the service counts beside it.

use springtide_core::error::Code;
use springtide_core::id::{Caller, Incarnation, TenantId};
use springtide_core::master::Master;
use springtide_core::rng::mix;
use springtide_core::ticket::TicketKey;
use springtide_core::wire::message::Figures;

/// Everything that one lock guards: taken once for all frames of one read.
#[derive(Debug)]
pub(crate) struct State {
    pub(crate) master: Master,
    pub(crate) cluster: u64,
    /// This life of the master process.
    pub(crate) incarnation: Incarnation,
    /// How many connections said hello.
    pub(crate) greeted: u64,
    pub(crate) counts: Counts,
    pub(crate) secrets: Secrets,
}

/// Where secrets for tickets come from: a fresh one for each registration.
pub(crate) struct Secrets(pub(crate) Box<dyn FnMut() -> TicketKey + Send>);

impl core::fmt::Debug for Secrets {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str("Secrets(…)")
    }
}

/// What happened since the start, as callers see it.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Counts {
    pub(crate) hits: u64,
    pub(crate) misses: u64,
    pub(crate) puts: u64,
    pub(crate) removed: u64,
}

impl State {
    pub(crate) fn figures(&self) -> Figures {
        let stats = self.master.stats();
        Figures {
            capacity: stats.capacity,
            used: stats.used,
            objects: stats.objects,
            writing: stats.writing,
            draining: stats.draining,
            members: stats.active_members,
            segments: stats.segments,
            hits: self.counts.hits,
            misses: self.counts.misses,
            puts: self.counts.puts,
            refused_for_space: stats.totals.no_room,
            evicted: stats.totals.evicted,
            evicted_bytes: stats.totals.evicted_bytes,
            blocked_by_leases: stats.totals.blocked_by_leases,
            removed: self.counts.removed,
            lost: stats.totals.lost,
            discarded: stats.totals.discarded,
            clock_went_back: stats.totals.clock_went_back,
        }
    }
}

/// Who is on the other end of a connection; nobody until it said hello.
#[derive(Clone, Copy, Debug, Default)]
pub struct Peer(pub(crate) Option<Greeted>);

#[derive(Clone, Copy, Debug)]
pub(crate) struct Greeted {
    pub(crate) incarnation: Incarnation,
    pub(crate) tenant: TenantId,
    /// Which connection it is.
    pub(crate) number: u64,
}

impl Peer {
    /// The caller of `request`, or the code for a connection that has not said hello.
    pub(crate) fn caller(&self, request: u64) -> Result<Caller, Code> {
        let Greeted { incarnation, tenant, number } = self.0.ok_or(Code::INVALID_PARAMS)?;
        // Request ids repeat from connection to connection; a request of the machine is one of a kind.
        Ok(Caller { incarnation, tenant, request: mix(mix(number) ^ request) })
    }
}
