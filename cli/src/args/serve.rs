//! `springtide master`, `springtide node`.

use core::time::Duration;
use std::path::PathBuf;

use clap::Args;

use super::Connect;
use crate::address::{self, Address, Http};
use crate::duration;
use crate::fraction::Fraction;
use crate::size::Size;

/// Run the pool's master: it knows which object is where, grants space, and gives up what is used least.
///
/// Prints its address when it is ready, one line, and serves until TERM or INT.
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  springtide master
  springtide master --listen 0.0.0.0:50051 --http off --state /var/lib/springtide")]
pub struct Master {
    /// Where to serve RPC; port 0 takes a free one. Bytes and keys go in plain text: use a trusted network.
    #[arg(long, value_name = "ADDR", default_value = "127.0.0.1:50051", value_parser = Address::rpc)]
    pub listen: Address,

    /// Where to serve metrics and health, or `off`.
    #[arg(long, value_name = "ADDR", default_value = "127.0.0.1:9003", value_parser = Http::parse)]
    pub http: Http,

    /// The folder that makes this the only master of its cluster; created if missing.
    #[arg(long, value_name = "FOLDER", default_value = "springtide-state")]
    pub state: PathBuf,

    /// What to give up when space runs out.
    #[command(flatten)]
    pub eviction: Eviction,

    /// How long things last.
    #[command(flatten)]
    pub times: Times,

    /// Stop when standard input closes: whoever started this holds its other end.
    #[arg(long, hide = true)]
    pub until_eof: bool,
}

/// What the master gives up when space runs out.
#[derive(Args, Debug)]
#[command(next_help_heading = "Eviction")]
pub struct Eviction {
    /// How to choose what goes: lru, s3fifo, or the default, which tunes itself.
    #[arg(long, value_name = "NAME")]
    pub policy: Option<String>,

    /// Begin to evict when more than this share of the memory is used.
    #[arg(long, value_name = "FRACTION", default_value = "0.9")]
    pub high_watermark: Fraction,

    /// Evict until this share below the watermark is free.
    #[arg(long, value_name = "FRACTION", default_value = "0.05")]
    pub eviction_ratio: Fraction,
}

/// How long things last at the master.
#[derive(Args, Debug)]
#[command(next_help_heading = "Times")]
pub struct Times {
    /// How long a reader may count on what it looked up.
    #[arg(long, value_name = "TIME", default_value = "10s", value_parser = duration::parse)]
    pub lease: Duration,

    /// How long a soft pin lasts whose owner does not say.
    #[arg(long, value_name = "TIME", default_value = "30m", value_parser = duration::parse)]
    pub soft_pin: Duration,

    /// Hide the replicas of a node that is silent for this long.
    #[arg(long, value_name = "TIME", default_value = "10s", value_parser = duration::parse)]
    pub client_ttl: Duration,

    /// Drop the replicas of a node that is silent for this long [default: three times --client-ttl]
    #[arg(long, value_name = "TIME", value_parser = duration::parse)]
    pub crashed_ttl: Option<Duration>,

    /// Give up a put that has not ended after this long.
    #[arg(long, value_name = "TIME", default_value = "30s", value_parser = duration::parse)]
    pub put_discard: Duration,

    /// Use the memory of such a put again after this long, where its owner cannot stop the writer.
    #[arg(long, value_name = "TIME", default_value = "10m", value_parser = duration::parse)]
    pub put_release: Duration,
}

impl Times {
    /// After how long a silence a node's replicas are dropped (S0A-142).
    pub fn crashed_ttl(&self) -> Duration {
        self.crashed_ttl.unwrap_or_else(|| self.client_ttl.saturating_mul(3))
    }
}

/// Run a node: it lends memory to the pool and serves it to clients.
///
/// Prints its address when it is ready, one line, and serves until TERM or INT. It waits for a master that is not
/// there yet, and rejoins one that was restarted.
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  springtide node --memory 64GiB
  springtide node --master pool-1:50051 --memory 64GiB --listen 0.0.0.0:0 --advertise node-a")]
pub struct Node {
    /// Which pool to join.
    #[command(flatten)]
    pub connect: Connect,

    /// How much memory to lend.
    #[arg(long, value_name = "SIZE")]
    pub memory: Size,

    /// Where to serve; without a port, or with port 0, on a free one. Bytes go in plain text: use a trusted network.
    #[arg(long, value_name = "ADDR", default_value = "127.0.0.1:0", value_parser = Address::listen)]
    pub listen: Address,

    /// The host that peers are told, if it is not the one that is listened on.
    #[arg(long, value_name = "HOST", value_parser = address::advertised)]
    pub advertise: Option<String>,

    /// The node's name, for people and for `put --prefer`, which means all nodes of that name [default: its address]
    #[arg(long, value_name = "NAME")]
    pub name: Option<String>,

    /// Hold objects of one size only, this one: wastes less when all objects are alike.
    #[arg(long, value_name = "SIZE")]
    pub uniform: Option<Size>,

    /// Stop when standard input closes: whoever started this holds its other end.
    #[arg(long, hide = true)]
    pub until_eof: bool,
}
