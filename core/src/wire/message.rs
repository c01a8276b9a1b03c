//! The calls, by method number (S0A-068, S0A-069, S0B-020). A message never changes: a new one gets a new number
//! (design: "Versions").
//!
//! A call is written as its head and, where it has one, its tail of items; so is its answer. Items of an answer stand
//! in the order of the call's items. Keys in calls are bytes; whether they are keys is for the master to say, item by
//! item, so that one bad key does not fail a batch.

mod member;
mod object;
mod operator;
#[cfg(test)]
mod tests;

pub use member::*;
pub use object::*;
pub use operator::*;

pub use crate::members::{ClientStatus, Mode};

use core::fmt;

use serde::{Deserialize, Serialize};

use super::frame::Method;
use crate::error::Code;
use crate::id::{Incarnation, Term};

macro_rules! methods {
    ($($(#[$doc:meta])* $name:ident = $number:literal;)*) => {
        $($(#[$doc])* pub const $name: Method = Method($number);)*

        /// The call's name, for figures and logs.
        pub const fn name(method: Method) -> &'static str {
            match method.0 { $($number => stringify!($name),)* _ => "UNKNOWN" }
        }

        /// Every method.
        pub const METHODS: &[Method] = &[$($name),*];
    };
}

methods! {
    /// [`Hello`] → [`Welcome`]: the first call on every connection.
    HELLO = 1;
    /// [`Register`] → [`Registered`].
    REGISTER = 2;
    /// [`Heartbeat`], tail `u64` (fences done) → [`Beat`], tail [`FenceDuty`].
    HEARTBEAT = 3;
    /// `()` → `()`: a member goes, and its segments with it.
    LEAVE = 4;
    /// [`Mount`] → [`crate::id::SegmentId`].
    MOUNT = 5;
    /// [`crate::id::SegmentId`] → `()`.
    UNMOUNT = 6;
    /// [`crate::id::SegmentId`] → [`SegmentInfo`].
    SEGMENT = 7;
    /// `()` → `()`, tail [`SegmentInfo`].
    SEGMENTS = 8;
    /// `()` → `()`, tail [`MemberInfo`].
    MEMBERS = 9;
    /// `()`, tail keys → [`Leased`], tail `Result<`[`Found`]`, `[`Refusal`]`>`.
    GET = 16;
    /// [`ProbeKind`], tail keys → `()`, tail [`Presence`].
    EXISTS = 17;
    /// [`Options`], tail ([`Wanted`]) → [`Granted`], tail `Result<`[`Grant`]`, `[`Refusal`]`>`.
    PUT_START = 18;
    /// `()`, tail [`Finished`] → `()`, tail `Result<(), `[`Refusal`]`>`.
    PUT_END = 19;
    /// `()`, tail [`Abandoned`] → `()`, tail `Result<(), `[`Refusal`]`>`.
    PUT_ABORT = 20;
    /// [`Reserve`] → [`Granted`], tail `Result<`[`Grant`]`, `[`Refusal`]`>`.
    RESERVE = 21;
    /// `()`, tail [`Publish`] → `()`, tail `Result<(), `[`Refusal`]`>`.
    PUBLISH = 22;
    /// [`Forcing`], tail keys → `()`, tail `Result<(), `[`Refusal`]`>`.
    REMOVE = 23;
    /// [`RemoveMatching`] → [`RemoveStep`].
    REMOVE_MATCHING = 24;
    /// `()`, tail keys → `()`, tail `Result<`[`Stat`]`, `[`Refusal`]`>`.
    STAT = 25;
    /// [`Scan`] → [`ScanPage`], tail [`Listed`].
    SCAN = 26;
    /// [`CopyStart`] → [`CopyPlan`].
    COPY_START = 27;
    /// [`CopyEnd`] → `()`.
    COPY_END = 28;
    /// [`Clear`], tail keys → `()`, tail `Result<(), `[`Refusal`]`>`.
    CLEAR = 29;
    /// `()` → [`Figures`].
    FIGURES = 48;
    /// To a node: [`crate::id::SegmentId`] → `()`, tail [`Card`].
    DESCRIBE = 64;
}

/// Oldest and newest protocol that this code speaks. A protocol is the set of method numbers and their messages.
pub const PROTOCOL: (u16, u16) = (1, 1);

/// Who calls.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Hello<'a> {
    /// Oldest protocol that the caller speaks.
    pub oldest: u16,
    /// Newest protocol that the caller speaks.
    pub newest: u16,
    /// The cluster that the caller wants; 0 takes any.
    pub cluster: u64,
    /// This life of the calling process.
    pub incarnation: Incarnation,
    /// Whose keys the calls on this connection mean.
    pub tenant: &'a str,
    /// The life of the called process that the caller expects; zero takes any.
    pub expected: Incarnation,
}

/// Who answers.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Welcome {
    /// The protocol to speak from here on.
    pub protocol: u16,
    /// The cluster's id.
    pub cluster: u64,
    /// This life of the answering process.
    pub incarnation: Incarnation,
    /// The master's term; zero from a node.
    pub term: Term,
    /// How the cluster is run.
    pub mode: Mode,
}

/// Why one item of a call was refused.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Refusal {
    /// The public number.
    pub code: Code,
    /// What the text needs: the largest hole or segment in bytes for the codes about space, else 0.
    pub detail: u64,
}

impl Refusal {
    /// A refusal without detail.
    pub const fn new(code: Code) -> Self {
        Self { code, detail: 0 }
    }
}

impl From<Code> for Refusal {
    fn from(code: Code) -> Self {
        Self::new(code)
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.code, self.detail) {
            (Code::NEVER_FITS, bytes) => {
                write!(
                    f,
                    "the value is larger than every segment; the largest has {bytes} bytes ({:?})",
                    self.code
                )
            }
            (Code::NO_AVAILABLE_HANDLE, 0) => {
                write!(f, "no space: no segment is mounted; start a node with memory ({:?})", self.code)
            }
            (Code::NO_AVAILABLE_HANDLE, bytes) => {
                write!(
                    f,
                    "no space now: the largest hole has {bytes} bytes; try again or add memory ({:?})",
                    self.code
                )
            }
            (code, _) => write!(f, "{code}"),
        }
    }
}

impl core::error::Error for Refusal {}
