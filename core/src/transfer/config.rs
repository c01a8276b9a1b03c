//! What bounds the engine, and what it is told about a path.

use core::time::Duration;

/// The engine's bounds and times. Everything is allocated up to them; nothing grows beyond.
#[derive(Clone, Copy, Debug)]
pub struct Config {
    /// Most batches that are not released yet. Default 1,024. A target that more batches wait for than may still be
    /// taken is refused more, so that a peer that hangs does not use them up for all.
    pub batches: u32,
    /// Most transfers in those batches together. Default 65,536.
    pub transfers: u32,
    /// Most ops in flight; one path has at most half of them. Default 4,096.
    pub ops: u32,
    /// How often one slice is tried before its transfer fails with [`Failure::Interrupted`](super::Failure). Default 6.
    pub tries: u8,
    /// How many bytes one batch may take in a row where others wait. Default 256 KiB.
    pub quantum: u32,
    /// How much time's worth of bytes is given to a transport at once, so that a small transfer does not wait long
    /// behind a big one. Default 2 ms, and never less than four ops.
    pub standing: Duration,
    /// Paths are used side by side when one needs at most this many times as long as another; slower ones stand by.
    /// Default 4.
    pub spread: u32,
    /// How often a path that gets no work is measured with one small op. Default 10 ms.
    pub probe: Duration,
    /// How many failures in a row take a path out of use. Default 4.
    pub trip: u32,
    /// First and longest pause before a path that failed is tried again; doubles in between. Default 10 ms and 5 s.
    pub backoff: (Duration, Duration),
    /// How often opening a path may fail before work that has no other path fails with
    /// [`Failure::Unreachable`](super::Failure) instead of waiting for its deadline. Default 3.
    pub attempts: u32,
    /// A path with work in flight and no completion for this long (and eight times what was predicted) is closed.
    /// Default 5 s. Also how long opening a path may take.
    pub stall: Duration,
    /// How long cancelled ops may take to end before their path is closed, and as long again before the batch is
    /// reported without them. Default 100 ms.
    pub grace: Duration,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            batches: 1_024,
            transfers: 65_536,
            ops: 4_096,
            tries: 6,
            quantum: 256 << 10,
            standing: Duration::from_millis(2),
            spread: 4,
            probe: Duration::from_millis(10),
            trip: 4,
            backoff: (Duration::from_millis(10), Duration::from_secs(5)),
            attempts: 3,
            stall: Duration::from_secs(5),
            grace: Duration::from_millis(100),
        }
    }
}

/// What a transport says about its paths; the engine measures the last two from then on.
#[derive(Clone, Copy, Debug)]
pub struct PathShape {
    /// Longest op, in bytes; zero counts as one.
    pub max_op: u32,
    /// Ops must not cross a multiple of this many bytes on either side; a power of two, 0 for none.
    pub chunk: u64,
    /// Most ops in flight.
    pub depth: u32,
    /// A first guess at one op's latency.
    pub latency: Duration,
    /// A first guess at throughput, in bytes per second.
    pub bandwidth: u64,
}
