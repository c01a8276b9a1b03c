//! `springtide bench`: the load generator.

pub mod alloc;
pub mod evict;
mod load;
pub mod meta;
mod plain;
pub mod store;
pub mod transfer;
mod wire;

use crate::args::{Bench, Measure};
use crate::exit::Failure;

/// Measures what `args` names, and prints it.
pub fn run(args: &Bench) -> Result<(), Failure> {
    match &args.what {
        Measure::Alloc(args) => alloc::run(args),
        Measure::Evict(args) => evict::run(args),
        Measure::Meta(args) => meta::run(args),
        Measure::Transfer(args) => transfer::run(args),
        Measure::Store(args) => store::run(args),
    }
}
