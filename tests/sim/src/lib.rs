//! The cluster simulator: any number of masters, nodes and clients as their real machines, in one thread, in virtual
//! time, from one seed, under an oracle. `docs/simulation.md` says how to read, repeat and extend it.
//!
//! - [`plan`]: what a run looks like; [`faults`]: what goes wrong; [`world`]: the loop
//! - [`env`](mod@env): what all processes share; [`queue`]: what happens next; [`net`], [`fabric`]: frames and memory
//! - [`master`], [`node`], [`client`]: the processes; [`line`](mod@line), [`member`]: calls and registration
//! - [`oracle`]: what may be seen; [`shrink`]: which faults a failure needs; [`trace`], [`digest`]: what happened
#![forbid(unsafe_code)]

pub mod client;
pub mod clock;
pub mod digest;
pub mod env;
pub mod fabric;
pub mod faults;
pub mod line;
pub mod master;
pub mod member;
pub mod net;
pub mod node;
pub mod oracle;
pub mod pattern;
pub mod plan;
pub mod queue;
pub mod shrink;
pub mod trace;
pub mod world;
