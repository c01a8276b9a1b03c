//! `springtide config`.

use clap::Args;

use super::Json;

/// Print the settings in force and where each comes from.
///
/// Looks at the environment and at the file of --config, not at the flags of other commands.
#[derive(Args, Debug)]
#[command(after_help = "Example:\n  SPRINGTIDE_LOG=debug springtide config --config springtide.toml")]
pub struct Config {
    /// Tables or JSON.
    #[command(flatten)]
    pub json: Json,
}
