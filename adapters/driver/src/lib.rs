//! The Runtime trait, lanes and seats: loops that turn the core's outputs into calls.
//!
//! - [`Runtime`]: what an executor must offer; adapters implement it
//! - [`Seat`], [`Drive`]: one machine, shared by blocked callers and tasks; [`block_on`], [`attend`]
//! - [`Lane`]: an engine with its transports
//! - [`Pause`]: bounded spinning, the only place where it happens; [`Parker`]: how a thread sleeps after that
//! - [`Shutdown`]: one signal that ends many tasks
//! - [`now`]: the clock that every deadline given to these types is measured with
#![forbid(unsafe_code)]

mod alarm;
mod lane;
mod park;
mod pause;
mod runtime;
mod seat;
mod shutdown;
mod sync;
mod wakes;

pub use alarm::Alarm;
pub use lane::{Card, Ended, Fencing, Lane, Moving, TargetError};
pub use park::Parker;
pub use pause::{Pause, Step};
pub use runtime::{Interest, Ready, Runtime};
pub use seat::{Drive, Driven, Drove, Seat, TimedOut, attend, block_on, block_on_with};
#[doc(hidden)]
pub use seat::{Sat, User};
pub use shutdown::{Begun, Shutdown};
pub use springtide_hal_host::clock::now;
pub use springtide_transport::Armed;
pub use wakes::Wakes;
