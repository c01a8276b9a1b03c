//! What a replay counts, and how it is printed.

use core::time::Duration;

use serde::Serialize;

use crate::duration;
use crate::latency::{Latencies, Micros};
use crate::output::{Align, Note, Report, Table, grouped};
use crate::size::Size;

/// What one worker of a replay counted. Merged at the end.
#[derive(Clone, Debug, Default)]
pub struct Tally {
    /// Requests that are done.
    pub requests: u64,
    /// Blocks that they asked for.
    pub blocks: u64,
    /// Blocks that were read: the longest resident prefix of each request.
    pub hits: u64,
    /// Blocks whose bytes were not those of their id.
    pub verify_errors: u64,
    /// Blocks that could not be stored for want of space.
    pub not_stored: u64,
    /// Calls and blocks that failed for another reason.
    pub errors: u64,
    /// The first of them.
    pub first_error: Option<String>,
    /// Time spent on making and comparing contents, which is no part of the calls.
    pub content: Duration,
    /// Bytes that were read and verified.
    pub bytes_read: u64,
    /// Bytes that were stored.
    pub bytes_written: u64,
    /// How long each call that read took.
    pub get: Latencies,
    /// How long each call that stored took.
    pub put: Latencies,
}

impl Tally {
    /// Takes over what another worker counted.
    pub fn merge(&mut self, other: &Self) {
        self.requests += other.requests;
        self.blocks += other.blocks;
        self.hits += other.hits;
        self.verify_errors += other.verify_errors;
        self.not_stored += other.not_stored;
        self.errors += other.errors;
        self.first_error = self.first_error.take().or_else(|| other.first_error.clone());
        self.content += other.content;
        self.bytes_read += other.bytes_read;
        self.bytes_written += other.bytes_written;
        self.get.merge(&other.get);
        self.put.merge(&other.put);
    }
}

/// What is known of a replay beside its workers' counts.
#[derive(Clone, PartialEq, Debug)]
pub struct Circumstances {
    /// How long it took.
    pub took: Duration,
    /// How many blocks LRU would have read from as much memory, of the same requests at the same times.
    pub lru_hits: u64,
    /// How many objects the master evicted meanwhile.
    pub evicted: u64,
    /// The master's policy, if this replay chose it.
    pub policy: Option<String>,
    /// How many workers there were.
    pub workers: u16,
}

/// The figures of a replay. The JSON has these names.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct ReplayReport {
    /// Requests replayed.
    pub requests: u64,
    /// Blocks asked for.
    pub blocks: u64,
    /// Share of the blocks that were read from the pool.
    pub block_hit_ratio: f64,
    /// The same, had the pool been one LRU list of as many blocks as its memory holds. Requests under way at the same
    /// time overlap there as they did in the pool: what one of them is still storing is no hit for another.
    pub lru_hit_ratio: f64,
    /// Blocks whose bytes were wrong.
    pub verify_errors: u64,
    /// Blocks that could not be stored for want of space.
    pub not_stored: u64,
    /// Calls and blocks that failed for another reason.
    pub errors: u64,
    /// The first of them; null if none did.
    pub first_error: Option<String>,
    /// Bytes read.
    pub bytes_read: u64,
    /// Bytes stored.
    pub bytes_written: u64,
    /// Bytes read and stored a second, in 10⁹.
    pub gb_per_second: f64,
    /// Latency of reads.
    pub get_us: Micros,
    /// Latency of stores.
    pub put_us: Micros,
    /// Objects evicted.
    pub evicted: u64,
    /// How long it took.
    pub seconds: f64,
    /// How much of that one worker spent on making and comparing contents, on average.
    pub content_seconds: f64,
    /// The master's policy; null if this replay did not choose it.
    pub policy: Option<String>,
}

impl ReplayReport {
    /// The figures of `tally` under `circumstances`.
    pub fn new(tally: &Tally, circumstances: Circumstances) -> Self {
        let Circumstances { took, lru_hits, evicted, policy, workers } = circumstances;
        let seconds = took.as_secs_f64();
        let moved = (tally.bytes_read + tally.bytes_written) as f64;
        Self {
            requests: tally.requests,
            blocks: tally.blocks,
            block_hit_ratio: ratio(tally.hits, tally.blocks),
            lru_hit_ratio: ratio(lru_hits, tally.blocks),
            verify_errors: tally.verify_errors,
            not_stored: tally.not_stored,
            errors: tally.errors,
            first_error: tally.first_error.clone(),
            bytes_read: tally.bytes_read,
            bytes_written: tally.bytes_written,
            gb_per_second: if seconds > 0.0 { moved / seconds / 1e9 } else { 0.0 },
            get_us: tally.get.micros(),
            put_us: tally.put.micros(),
            evicted,
            seconds,
            content_seconds: tally.content.as_secs_f64() / f64::from(workers.max(1)),
            policy,
        }
    }
}

/// `part` of `whole`; zero of nothing.
fn ratio(part: u64, whole: u64) -> f64 {
    if whole == 0 { 0.0 } else { part as f64 / whole as f64 }
}

impl Report for ReplayReport {
    fn tables(&self) -> Vec<Table> {
        let mut figures = Table::new(&[("replay", Align::Left), ("", Align::Right)]);
        let policy = self.policy.as_deref().unwrap_or("pool");
        let mut row = |name: &str, value: String| figures.row([name.to_owned(), value]);
        row("requests", grouped(self.requests));
        row("blocks", grouped(self.blocks));
        row(&format!("block hit ratio, {policy}"), format!("{:.4}", self.block_hit_ratio));
        row("block hit ratio, LRU for comparison", format!("{:.4}", self.lru_hit_ratio));
        row("read", Size(self.bytes_read).rounded());
        row("stored", Size(self.bytes_written).rounded());
        row("throughput", format!("{:.2} GB/s", self.gb_per_second));
        row("evicted objects", grouped(self.evicted));
        row("blocks not stored for want of space", grouped(self.not_stored));
        row("time", duration::rounded(Duration::from_secs_f64(self.seconds.max(0.0))));

        let right = |name| (name, Align::Right);
        let mut latency =
            Table::new(&[("latency in µs", Align::Left), right("p50"), right("p99"), right("p999")]);
        for (name, micros) in [("get", self.get_us), ("put", self.put_us)] {
            let [p50, p99, p999] = micros.cells();
            latency.row([name.to_owned(), p50, p99, p999]);
        }
        match self.verify_errors {
            0 => latency.note(Note::Good, "every byte read was verified"),
            errors => latency.note(Note::Bad, format!("{} blocks held wrong bytes", grouped(errors))),
        }
        if let Some(error) = &self.first_error {
            latency.note(Note::Bad, format!("{} errors, the first: {error}", grouped(self.errors)));
        }
        vec![figures, latency]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::output::Colour;

    fn sample() -> ReplayReport {
        let mut tally = Tally { requests: 2, blocks: 8, hits: 2, bytes_read: 1 << 20, ..Tally::default() };
        let other = Tally { blocks: 2, bytes_written: 3 << 20, verify_errors: 1, ..Tally::default() };
        tally.merge(&other);
        tally.get.record(Duration::from_micros(100));
        let circumstances = Circumstances {
            took: Duration::from_secs(2),
            lru_hits: 1,
            evicted: 7,
            policy: Some("lru".to_owned()),
            workers: 2,
        };
        ReplayReport::new(&tally, circumstances)
    }

    #[test]
    fn the_json_has_the_names_that_scripts_read() {
        let json = serde_json::to_value(sample()).unwrap();
        assert_eq!(json["block_hit_ratio"], 0.2);
        assert_eq!(json["get_us"]["p999"], 100.0);
        for name in [
            "requests",
            "blocks",
            "verify_errors",
            "bytes_read",
            "bytes_written",
            "evicted",
            "seconds",
            "lru_hit_ratio",
        ] {
            assert!(json[name].is_number(), "{name} in {json}");
        }
        for name in ["p50", "p99", "p999"] {
            assert!(json["get_us"][name].is_number() && json["put_us"][name].is_number(), "{name} in {json}");
        }
    }

    #[test]
    fn the_table_shows_both_ratios_and_wrong_bytes() {
        let text: String = sample().tables().iter().map(|table| table.render(Colour::No)).collect();
        for part in ["0.2000", "0.1000", "1 blocks held wrong bytes", "3 MiB", "p999"] {
            assert!(text.contains(part), "{part} in {text}");
        }
    }

    #[test]
    fn a_replay_of_nothing_has_figures() {
        let circumstances =
            Circumstances { took: Duration::ZERO, lru_hits: 0, evicted: 0, policy: None, workers: 0 };
        let report = ReplayReport::new(&Tally::default(), circumstances);
        assert_eq!((report.block_hit_ratio, report.gb_per_second), (0.0, 0.0));
    }
}
