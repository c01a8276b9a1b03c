//! How `springtide bench evict` is printed.

use serde::Serialize;
use springtide_core::evict::Kind;

use crate::output::{Align, Note, Report, Table, grouped};
use crate::workload::Hits;

/// What one policy got out of one size. The JSON has these names.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Outcome {
    /// The policy's name.
    pub policy: &'static str,
    /// How many blocks fit.
    pub blocks: u64,
    /// Share of the blocks asked for that were read: the longest resident prefix of each request.
    pub block_hit_ratio: f64,
    /// How many were read.
    pub hits: u64,
    /// How many were asked for.
    pub references: u64,
    /// How many were given up.
    pub evicted: u64,
}

/// The outcomes of one run. In JSON an array.
#[derive(Clone, PartialEq, Debug, Default, Serialize)]
#[serde(transparent)]
pub struct EvictReport(pub Vec<Outcome>);

impl EvictReport {
    /// Adds what `kind` got out of `blocks` blocks.
    pub fn add(&mut self, kind: Kind, blocks: u64, counted: Hits) {
        let Hits { hits, references, evicted } = counted;
        let block_hit_ratio = if references == 0 { 0.0 } else { hits as f64 / references as f64 };
        self.0.push(Outcome { policy: kind.name(), blocks, block_hit_ratio, hits, references, evicted });
    }
}

impl Report for EvictReport {
    fn tables(&self) -> Vec<Table> {
        let right = |name| (name, Align::Right);
        let mut table = Table::new(&[
            right("blocks"),
            ("policy", Align::Left),
            right("hit ratio"),
            right("hits"),
            right("evicted"),
        ]);
        for one in &self.0 {
            table.row([
                grouped(one.blocks),
                one.policy.to_owned(),
                format!("{:.4}", one.block_hit_ratio),
                grouped(one.hits),
                grouped(one.evicted),
            ]);
        }
        if let Some(one) = self.0.first() {
            table.note(Note::Plain, format!("of {} blocks asked for", grouped(one.references)));
        }
        vec![table]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::output::Colour;

    fn sample() -> EvictReport {
        let mut report = EvictReport::default();
        report.add(Kind::Lru, 1_000, Hits { hits: 500, references: 2_000, evicted: 300 });
        report.add(Kind::S3Fifo, 1_000, Hits::default());
        report
    }

    #[test]
    fn the_json_is_an_array_with_the_names_that_scripts_read() {
        let json = serde_json::to_value(sample()).unwrap();
        assert_eq!(json.as_array().map(Vec::len), Some(2));
        assert_eq!(json[0]["policy"], "lru");
        assert_eq!(json[0]["blocks"], 1_000);
        assert_eq!(json[0]["block_hit_ratio"], 0.25);
        assert_eq!(json[1]["block_hit_ratio"], 0.0);
    }

    #[test]
    fn the_table_has_a_row_for_each() {
        let text = sample().tables()[0].render(Colour::No);
        assert_eq!(text.lines().count(), 4, "{text}");
        for part in ["1,000  lru", "0.2500", "s3fifo", "of 2,000 blocks asked for"] {
            assert!(text.contains(part), "{part} in {text}");
        }
    }
}
