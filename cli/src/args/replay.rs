//! `springtide replay`.

use std::path::PathBuf;

use clap::Args;

use super::Json;
use crate::address::Address;
use crate::size::Size;

/// Replay a workload of LLM requests through a pool, and print how it did.
///
/// Each request reads the longest prefix of its blocks that is in the pool and stores the rest. Contents derive from
/// block and offset, and every byte read is checked, so that a wrong block is seen. Without --master it starts a master
/// and nodes as processes of its own, on this machine; without --trace it generates conversations of several turns.
#[derive(Args, Debug)]
#[command(after_long_help = "\
A trace is a file of lines {\"timestamp\": MS, \"input_length\": TOKENS, \"output_length\": TOKENS, \"hash_ids\": [BLOCK, …]}.

Examples:
  springtide replay
  springtide replay --trace conversation.jsonl --requests 2000 --nodes 3 --memory 1GiB --policy lru
  springtide replay --master pool-1:50051 --concurrency 64 --json")]
pub struct Replay {
    /// The trace to replay [default: a generated workload]
    #[arg(long, value_name = "FILE")]
    pub trace: Option<PathBuf>,

    /// How many nodes to start.
    #[arg(long, value_name = "N", default_value_t = 3, value_parser = clap::value_parser!(u16).range(1..=256))]
    pub nodes: u16,

    /// How much memory each started node lends.
    #[arg(long, value_name = "SIZE", default_value = "256MiB")]
    pub memory: Size,

    /// How large a block is.
    #[arg(long, value_name = "SIZE", default_value = "64KiB", value_parser = block)]
    pub block: Size,

    /// Replay this many requests [default: all of the trace, or 2000 generated ones]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub requests: Option<u64>,

    /// How many requests are under way at once.
    #[arg(long, value_name = "N", default_value_t = 16, value_parser = clap::value_parser!(u16).range(1..=4096))]
    pub concurrency: u16,

    /// How the started master chooses what to evict: lru, s3fifo, or the default, which tunes itself.
    #[arg(long, value_name = "NAME")]
    pub policy: Option<String>,

    /// Keep the trace's own pace, times this [default: as fast as it goes]
    #[arg(long, value_name = "FACTOR", value_parser = speed)]
    pub speed: Option<f64>,

    /// The seed of the generated workload.
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub seed: u64,

    /// Use this running pool instead of starting one. It is filled with blocks of the workload.
    #[arg(long, value_name = "ADDR", value_parser = Address::peer, conflicts_with_all = ["nodes", "memory", "policy"])]
    pub master: Option<Address>,

    /// Tables or JSON.
    #[command(flatten)]
    pub json: Json,
}

impl Replay {
    /// How many requests a generated workload has unless told otherwise.
    pub const GENERATED: u64 = 2_000;
}

/// A block holds at least what tells it from another, and at most what one request may take in memory.
fn block(text: &str) -> Result<Size, String> {
    let size: Size = text.parse().map_err(|error: crate::size::SizeError| error.to_string())?;
    let (least, most) = (Size(64), Size(1 << 30));
    if size < least || size > most {
        return Err(format!("{text:?}: a block has {least} to {most} bytes"));
    }
    Ok(size)
}

fn speed(text: &str) -> Result<f64, String> {
    let factor = text.parse().ok().filter(|factor: &f64| factor.is_finite() && *factor > 0.0);
    factor.ok_or_else(|| format!("{text:?} is no factor; write a number above zero, as in 0.5 or 10"))
}
