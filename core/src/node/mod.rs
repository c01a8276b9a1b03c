//! A member's side of membership: registration, mounting, heartbeats, fences.
//!
//! A storage node is a [`Membership`] with segments and a lane that serves them. The driver makes the calls that
//! [`Membership::next`] names, one at a time, reports how they went, and carries out what [`Membership::effect`]
//! says about memory.

mod calls;
mod exposed;
mod membership;

pub use calls::Identity;
pub use exposed::{Exposed, Step};
pub use membership::{CallError, Config, Effect, Lent, Membership, Next};
