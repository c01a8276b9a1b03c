//! `springtide bench`.

use core::time::Duration;
use std::path::PathBuf;

use clap::{Args, Subcommand, ValueEnum};

use super::Json;
use crate::address::Address;
use crate::duration;
use crate::size::Size;

/// Measure one part of the system under load.
#[derive(Args, Debug)]
#[command(after_help = "Example:\n  springtide bench alloc --help")]
pub struct Bench {
    /// What to measure.
    #[command(subcommand)]
    pub what: Measure,
}

/// What can be measured.
#[derive(Subcommand, Debug)]
#[allow(missing_docs, reason = "the help of a command stands at its arguments")]
pub enum Measure {
    Alloc(Alloc),
    Evict(Evict),
    Meta(Meta),
    Transfer(Transfer),
    Store(Store),
}

/// Metadata commands against a master: puts and gets without bytes.
#[derive(Args, Debug)]
#[command(
    after_help = "Example:\n  springtide bench meta --objects 10000,1000000 --segments 128 --operations get,put --duration 10s"
)]
pub struct Meta {
    /// Use this running pool instead of a master and a node of its own.
    #[arg(long, value_name = "ADDR", value_parser = Address::peer)]
    pub master: Option<Address>,

    /// How many segments the master of its own has, one a member; nothing is written into them.
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u16).range(1..=1024))]
    #[arg(conflicts_with = "master")]
    pub segments: u16,

    /// What to measure; puts are removed again, and that is measured too.
    #[arg(long, value_name = "NAMES", value_delimiter = ',', default_value = "exists,get,put")]
    pub operations: Vec<Operation>,

    /// How long each object is said to be.
    #[arg(long, value_name = "SIZE", default_value = "8B", value_parser = some)]
    pub size: Size,

    /// How many objects there are before measuring begins; all is measured for each, and compared with the first.
    #[arg(long, value_name = "N,…", value_delimiter = ',', default_value = "10000")]
    #[arg(value_parser = clap::value_parser!(u64).range(1..=100_000_000))]
    pub objects: Vec<u64>,

    /// Keys in one call of a batch.
    #[arg(long, value_name = "N", default_value_t = 128, value_parser = clap::value_parser!(u32).range(1..=65_536))]
    pub batch: u32,

    /// How many connections.
    #[arg(long, value_name = "N", default_value_t = 4, value_parser = clap::value_parser!(u16).range(1..=1024))]
    pub connections: u16,

    /// Calls of one key under way at once on each connection; of batches, two are.
    #[arg(long, value_name = "N", default_value_t = 16, value_parser = clap::value_parser!(u16).range(1..=1024))]
    pub pipeline: u16,

    /// Measure each kind of call for this long.
    #[arg(long, value_name = "TIME", default_value = "2s", value_parser = duration::parse)]
    pub duration: Duration,

    /// The seed of the order in which keys are asked for.
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub seed: u64,

    /// Tables or JSON.
    #[command(flatten)]
    pub json: Json,
}

/// A kind of metadata command.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub enum Operation {
    /// Whether objects are there.
    Exists,
    /// Where they are.
    Get,
    /// Puts, and removals.
    Put,
}

/// The allocator, in this process.
#[derive(Args, Debug)]
#[command(after_help = "Example:\n  springtide bench alloc --live 10000000 --json")]
pub struct Alloc {
    /// How many extents are allocated while measuring.
    #[arg(long, value_name = "N", default_value_t = 1_000_000)]
    pub live: u64,

    /// How many times to free and allocate.
    #[arg(long, value_name = "N", default_value_t = 5_000_000)]
    pub operations: u64,

    /// The smallest extent.
    #[arg(long, value_name = "SIZE", default_value = "1KiB")]
    pub smallest: Size,

    /// The largest extent; the same as the smallest for uniform ones.
    #[arg(long, value_name = "SIZE", default_value = "64KiB")]
    pub largest: Size,

    /// The seed of sizes and order.
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub seed: u64,

    /// Table or JSON.
    #[command(flatten)]
    pub json: Json,
}

/// Bytes from one process to another, beside memcpy and a plain loopback stream in the same run.
#[derive(Args, Debug)]
#[command(after_help = "Example:\n  springtide bench transfer --transport tcp --sizes 4KiB,64KiB,1MiB")]
pub struct Transfer {
    /// Over which transport: tcp or shm.
    #[arg(long, value_name = "NAME", default_value = "tcp", value_parser = ["tcp", "shm"])]
    pub transport: String,

    /// Sizes of one transfer.
    #[arg(long, value_name = "SIZES", value_delimiter = ',', default_value = "4KiB,64KiB,1MiB", value_parser = some)]
    pub sizes: Vec<Size>,

    /// Transfers under way at once.
    #[arg(long, value_name = "N", default_value_t = 16, value_parser = clap::value_parser!(u16).range(1..=4096))]
    pub depth: u16,

    /// How many bytes are moved in turn on each side; more than a cache holds shows what memory gives.
    #[arg(long, value_name = "SIZE", default_value = "64MiB", value_parser = some)]
    pub set: Size,

    /// Measure each size and direction for this long.
    #[arg(long, value_name = "TIME", default_value = "2s", value_parser = duration::parse)]
    pub duration: Duration,

    /// Tables or JSON.
    #[command(flatten)]
    pub json: Json,
}

/// Puts and gets of whole values through a pool.
#[derive(Args, Debug)]
#[command(after_help = "Example:\n  springtide bench store --sizes 64KiB,1MiB --concurrency 32")]
pub struct Store {
    /// Use this running pool instead of starting one.
    #[arg(long, value_name = "ADDR", value_parser = Address::peer, conflicts_with_all = ["nodes", "memory"])]
    pub master: Option<Address>,

    /// How many nodes to start.
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u16).range(1..=256))]
    pub nodes: u16,

    /// How much memory each started node lends.
    #[arg(long, value_name = "SIZE", default_value = "1GiB")]
    pub memory: Size,

    /// Sizes of values.
    #[arg(long, value_name = "SIZES", value_delimiter = ',', default_value = "4KiB,64KiB,1MiB", value_parser = some)]
    pub sizes: Vec<Size>,

    /// Operations under way at once.
    #[arg(long, value_name = "N", default_value_t = 16, value_parser = clap::value_parser!(u16).range(1..=4096))]
    pub concurrency: u16,

    /// Measure each kind of put and get of each size for this long.
    #[arg(long, value_name = "TIME", default_value = "2s", value_parser = duration::parse)]
    pub duration: Duration,

    /// Tables or JSON.
    #[command(flatten)]
    pub json: Json,
}

/// Hit ratio of the eviction policies on a trace: the core's own policies, no network, no bytes.
#[derive(Args, Debug)]
#[command(
    after_help = "Example:\n  springtide bench evict --trace conversation.jsonl --blocks 1000,5000,10000,30000 --json"
)]
pub struct Evict {
    /// The trace [default: the generated workload of `springtide replay`]
    #[arg(long, value_name = "FILE")]
    pub trace: Option<PathBuf>,

    /// How many blocks fit, one run for each.
    #[arg(long, value_name = "N,…", value_delimiter = ',', default_value = "1000,5000,10000,30000")]
    #[arg(value_parser = clap::value_parser!(u64).range(1..))]
    pub blocks: Vec<u64>,

    /// Which policies [default: all]
    #[arg(long, value_name = "NAMES", value_delimiter = ',')]
    pub policy: Vec<String>,

    /// Use this many requests of the trace [default: all]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub requests: Option<u64>,

    /// The seed of a generated workload.
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub seed: u64,

    /// Table or JSON: an array of objects with `policy`, `blocks` and `block_hit_ratio`.
    #[command(flatten)]
    pub json: Json,
}

/// A size of what is moved.
fn some(text: &str) -> Result<Size, String> {
    match text.parse::<Size>().map_err(|error| error.to_string())? {
        Size(0) => Err("0: there is nothing to move; give one byte at least".to_owned()),
        size => Ok(size),
    }
}
