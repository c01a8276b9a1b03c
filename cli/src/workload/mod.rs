//! Workloads of LLM requests: read from a trace, or generated; and what a prefix cache makes of them.
//!
//! - `trace`: JSON lines, as traces of production systems are published
//! - `conversation`: generated conversations of several turns
//! - [`mixes`]: patterns that tell eviction policies apart
//! - `prefix`: a cache of blocks without bytes or network, driven by the core's own policies

mod conversation;
pub mod mixes;
mod prefix;
mod trace;

pub use conversation::generate;
pub use prefix::{Hits, PrefixCache, prefix_hits};
pub use trace::{Fault, MOST_BLOCKS, TraceError, read, records};

use serde::Deserialize;

/// A request: the blocks of its input, in order. In a trace, a line of JSON with these names.
#[derive(Clone, PartialEq, Eq, Debug, Default, Deserialize)]
pub struct Record {
    /// When it arrives, in milliseconds from the beginning of the workload.
    pub timestamp: u64,
    /// How many tokens go in.
    pub input_length: u32,
    /// How many tokens come out.
    pub output_length: u32,
    /// The blocks of its input. Equal ids stand for equal contents with an equal prefix.
    pub hash_ids: Vec<u64>,
}
