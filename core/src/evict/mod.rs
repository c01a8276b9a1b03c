//! What to give up: eviction policies behind one small trait, chosen by enum.
//!
//! A policy knows entries by the dense slot number of their object, so that its state is an array. It sees what
//! happens to them in order, and nothing else: no sizes, no clock, no keys (a fingerprint of the key lets it know an
//! entry again that was given up a while ago). Leases and pins stay with the caller, who may spare any entry.
//!
//! Cost: every call is O(1), [`Policy::victim`] per entry looked at; arrays grow by small chunks, so no call copies the
//! state of all entries. No policy keeps more than [`BYTES_PER_ENTRY`] for each slot, ghosts included.

mod chunks;
mod curve;
mod density;
mod forest;
mod ghost;
mod list;
mod lru;
mod memory;
mod s3fifo;

use alloc::boxed::Box;
use core::fmt;
use core::str::FromStr;

pub use density::Density;
pub use lru::Lru;
pub use s3fifo::S3Fifo;

/// The most that a policy keeps for each slot in use, ghosts included.
pub const BYTES_PER_ENTRY: usize = 48;
const _: () = assert!(Density::BYTES_PER_ENTRY <= BYTES_PER_ENTRY);
const _: () = assert!(Lru::BYTES_PER_ENTRY <= BYTES_PER_ENTRY);
const _: () = assert!(S3Fifo::BYTES_PER_ENTRY <= BYTES_PER_ENTRY);

/// Decides which entry goes when room is needed (S0A-076).
///
/// Slots are small numbers, used again after [`remove`](Self::remove). Calls about a slot that is not resident change
/// nothing, except [`insert`](Self::insert); an insert of a resident slot counts as a touch.
pub trait Policy {
    /// The entry in `slot` became resident. `fingerprint` is a hash of tenant and key, the same whenever the same key
    /// comes back.
    fn insert(&mut self, slot: u32, fingerprint: u64);

    /// The entry in `slot` was read.
    fn touch(&mut self, slot: u32);

    /// A batch of calls begins: what comes next need not follow what came before, as that may be another caller's.
    fn begin_batch(&mut self) {}

    /// The entry in `slot` is gone. Also call it for the slot that [`victim`](Self::victim) named, once it was taken.
    fn remove(&mut self, slot: u32, why: Removed);

    /// Names the entry to give up next, looking at no more than `effort` entries.
    ///
    /// `keep` says whether an entry may be taken; one that is spared is not looked at again before the others. `None`:
    /// nothing was found within the effort; the next call goes on where this one ended. The entry stays resident
    /// until it is removed.
    fn victim(&mut self, effort: u32, keep: &mut dyn FnMut(u32) -> Keep) -> Option<u32>;

    /// Reads what [`touch`](Self::touch) or [`remove`](Self::remove) of `slot` will read, so that reads for many slots
    /// overlap. Changes nothing. The result has no meaning; it depends on all that was read.
    fn warm(&self, slot: u32) -> u64;

    /// How many entries are resident.
    fn len(&self) -> usize;

    /// Whether no entry is.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

/// Why an entry is gone.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Removed {
    /// To make room: it may come back, and its coming back tells something.
    Evicted,
    /// Its owner dropped it: nothing is remembered.
    Dropped,
}

/// Whether a policy may take an entry.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Keep {
    /// It may go.
    Take,
    /// Somebody holds it: a lease, a pin.
    Spare,
}

/// The policies by name.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub enum Kind {
    /// Least recently used first.
    Lru,
    /// Three queues: a small one on trial, a main one, and the ghosts.
    S3Fifo,
    /// What promises the fewest hits for its space first, as learned from what came back.
    #[default]
    Density,
}

impl Kind {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Lru, Self::S3Fifo, Self::Density];

    /// The name that users type.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Lru => "lru",
            Self::S3Fifo => "s3fifo",
            Self::Density => "density",
        }
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// The name of a policy that there is not.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct UnknownPolicy;

impl fmt::Display for UnknownPolicy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("no such eviction policy; there are")?;
        for (i, kind) in Kind::ALL.iter().enumerate() {
            write!(f, "{} {kind}", if i == 0 { "" } else { "," })?;
        }
        Ok(())
    }
}

impl core::error::Error for UnknownPolicy {}

impl FromStr for Kind {
    type Err = UnknownPolicy;

    fn from_str(name: &str) -> Result<Self, UnknownPolicy> {
        Self::ALL.into_iter().find(|kind| kind.name() == name).ok_or(UnknownPolicy)
    }
}

/// A policy chosen at start-up.
#[derive(Clone, Debug)]
pub struct Evictor(Inner);

#[derive(Clone, Debug)]
enum Inner {
    Lru(Lru),
    S3Fifo(S3Fifo),
    Density(Box<Density>),
}

macro_rules! each {
    ($self:ident, $policy:ident => $call:expr) => {
        match &mut $self.0 {
            Inner::Lru($policy) => $call,
            Inner::S3Fifo($policy) => $call,
            Inner::Density($policy) => $call,
        }
    };
}

impl Evictor {
    /// An empty policy of `kind`.
    pub fn new(kind: Kind) -> Self {
        Self(match kind {
            Kind::Lru => Inner::Lru(Lru::default()),
            Kind::S3Fifo => Inner::S3Fifo(S3Fifo::default()),
            Kind::Density => Inner::Density(Box::default()),
        })
    }

    /// Which policy this is.
    pub const fn kind(&self) -> Kind {
        match &self.0 {
            Inner::Lru(_) => Kind::Lru,
            Inner::S3Fifo(_) => Kind::S3Fifo,
            Inner::Density(_) => Kind::Density,
        }
    }
}

impl Default for Evictor {
    fn default() -> Self {
        Self::new(Kind::default())
    }
}

impl Policy for Evictor {
    fn insert(&mut self, slot: u32, fingerprint: u64) {
        each!(self, p => p.insert(slot, fingerprint));
    }

    fn touch(&mut self, slot: u32) {
        each!(self, p => p.touch(slot));
    }

    fn begin_batch(&mut self) {
        each!(self, p => p.begin_batch());
    }

    fn remove(&mut self, slot: u32, why: Removed) {
        each!(self, p => p.remove(slot, why));
    }

    fn victim(&mut self, effort: u32, keep: &mut dyn FnMut(u32) -> Keep) -> Option<u32> {
        each!(self, p => p.victim(effort, keep))
    }

    fn warm(&self, slot: u32) -> u64 {
        match &self.0 {
            Inner::Lru(p) => p.warm(slot),
            Inner::S3Fifo(p) => p.warm(slot),
            Inner::Density(p) => p.warm(slot),
        }
    }

    fn len(&self) -> usize {
        match &self.0 {
            Inner::Lru(p) => p.len(),
            Inner::S3Fifo(p) => p.len(),
            Inner::Density(p) => p.len(),
        }
    }
}

#[cfg(test)]
mod tests;
