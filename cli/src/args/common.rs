//! Options that several commands share.

use core::time::Duration;

use clap::Args;

use crate::address::Address;
use crate::duration;
use crate::output::Format;

/// Which pool to talk to.
#[derive(Args, Clone, Debug)]
pub struct Connect {
    /// The master of the pool.
    #[arg(long, value_name = "ADDR", env = "SPRINGTIDE_MASTER", default_value = "127.0.0.1:50051", value_parser = Address::peer)]
    pub master: Address,

    /// Whose keys are meant; tenants do not see each other's objects.
    #[arg(long, value_name = "NAME", default_value = springtide_core::key::DEFAULT_TENANT)]
    pub tenant: String,

    /// Give up after this long.
    #[arg(long, value_name = "TIME", default_value = "30s", value_parser = duration::parse)]
    pub timeout: Duration,
}

/// How figures are printed.
#[derive(Args, Clone, Copy, Debug)]
pub struct Json {
    /// Print JSON instead of tables. Sizes are bytes, times are in the unit that the name says.
    #[arg(long)]
    pub json: bool,
}

impl Json {
    /// The format that was asked for.
    pub const fn format(self) -> Format {
        if self.json { Format::Json } else { Format::Table }
    }
}
