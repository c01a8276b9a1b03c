//! Batches of get and put from the client side: replica choice, retry, lease check, checksum.
//!
//! A [`Gets`] or [`Puts`] is one batch on its way. It says what to do next ([`Gets::next`]), the driver does it (a
//! call to the master, a batch of transfers) and reports item by item; no item waits for another's failure. Nothing
//! here is shared between batches, so they run side by side on any threads.

pub mod ahead;
mod calls;
mod ends;
mod get;
pub mod patience;
mod put;
mod range;

pub use calls::{Round, Value};
pub use get::{Gets, NextGet, Read, ReadEnd};
pub use put::{Ending, Granted, NextPut, Puts, Write, WriteEnd};
pub use range::{Cover, cover};

/// How often one item is asked for anew before its last error stands.
pub const ATTEMPTS: u8 = 3;
