//! Clients and their segments: register, heartbeat, healthy, disconnected, crashed.

mod ask;
mod shunned;
mod table;

use core::fmt;

use serde::{Deserialize, Serialize};

pub use ask::{Beat, Duty, Member, MemberInfo, Registered};
pub(crate) use table::{Change, Members, Record};

/// The two ways to run (S0B-092). Members and a master of different modes refuse each other.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub enum Mode {
    /// Clients lend raw memory; the master allocates ("centralized").
    #[default]
    Pool,
    /// Every node owns its tiers; the master knows who has what ("P2P").
    Peer,
}

/// A member's health (S0A-036, S0B-094; the numbers are the wire's).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[repr(u8)]
pub enum ClientStatus {
    /// Not registered: register again.
    #[default]
    Undefined = 0,
    /// Its heartbeats arrive.
    Healthy = 1,
    /// Silent for the client TTL: its replicas are hidden and nothing new is placed on it.
    Disconnected = 2,
    /// Silent for the crashed TTL: its replicas are dropped.
    Crashed = 3,
}

/// How a member ends writes that may still be in flight to its memory (design: reuse).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Fences {
    /// It can refuse or cut off writers when asked ([`Duty::Fence`]).
    #[default]
    Answers,
    /// It cannot: extents of writers that are gone wait for the release time-out.
    Time,
}

impl fmt::Display for ClientStatus {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Undefined => "not registered",
            Self::Healthy => "healthy",
            Self::Disconnected => "disconnected",
            Self::Crashed => "crashed",
        })
    }
}
