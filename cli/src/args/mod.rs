//! The command line. Each command's arguments are a struct of their own; [`Command`] lists the commands there are.

mod bench;
mod common;
mod config;
mod objects;
mod replay;
mod serve;

pub use bench::{Alloc, Bench, Evict, Measure, Meta, Operation, Store, Transfer};
pub use common::{Connect, Json};
pub use config::Config;
pub use objects::{Exists, Get, Ls, Put, Rm, Selection, Stat, Status};
pub use replay::Replay;
pub use serve::{Eviction, Master, Node, Times};

use std::path::PathBuf;

use clap::{Parser, Subcommand};

/// A KV-cache pool for LLM inference: pools the memory of a cluster, and moves bytes between any two pieces of it.
#[derive(Parser, Debug)]
#[command(
    name = "springtide",
    version,
    max_term_width = 110,
    subcommand_required = true,
    arg_required_else_help = true
)]
#[command(after_long_help = SETTINGS)]
pub struct Cli {
    /// Read settings from this TOML file.
    #[arg(long, global = true, value_name = "FILE", env = "SPRINGTIDE_CONFIG", display_order = 900)]
    pub config: Option<PathBuf>,

    /// What to log on standard error: a level (error, warn, info, debug, trace), or TARGET=LEVEL, separated by commas.
    #[arg(
        long,
        global = true,
        value_name = "FILTER",
        default_value = "info",
        env = "SPRINGTIDE_LOG",
        display_order = 901
    )]
    pub log: String,

    /// What to do.
    #[command(subcommand)]
    pub command: Command,
}

/// The commands.
#[derive(Subcommand, Debug)]
#[allow(missing_docs, reason = "the help of a command stands at its arguments")]
pub enum Command {
    Master(Master),
    Node(Node),
    Put(Put),
    Get(Get),
    Exists(Exists),
    Stat(Stat),
    Ls(Ls),
    Rm(Rm),
    Status(Status),
    Replay(Replay),
    Bench(Bench),
    Config(Config),
}

const SETTINGS: &str = "\
Settings:
  Every long option can also be set in the environment and in a file. A flag wins over the environment, the \
environment over the file, the file over the default. `springtide config` shows what is in force.

  Environment: SPRINGTIDE_COMMAND_OPTION, as in SPRINGTIDE_NODE_MEMORY=64GiB. SPRINGTIDE_MASTER stands for --master of \
every command that talks to a running pool, SPRINGTIDE_LOG for --log, SPRINGTIDE_CONFIG for --config.

  File (TOML): a section for each command, and [all] for every command that has the option and talks to a running \
pool. A key that no command knows is an error.
      log = \"info\"
      [all]
      master = \"pool-1:50051\"
      [node]
      memory = \"64GiB\"
      [bench.evict]
      blocks = [1000, 5000]

Values:
  Sizes: 4096, 64MiB, 1.5GiB (powers of 1024), 64MB (powers of 1000)
  Times: 500ms, 30s, 1h30m
  Fractions: 0.9, 90%
  Addresses: HOST, HOST:PORT, IPV6, [IPV6]:PORT

Exit codes:
  0 done
  1 it did not work, or the answer is no
  2 the command line or a setting is wrong";

#[cfg(test)]
mod tests;
