//! The master's figures, as operators scrape them.

use springtide::Figures;
use springtide::admin::{Metric, Source};

/// The master's figures, asked for at every scrape.
pub(super) struct MasterFigures(Box<dyn Fn() -> Figures + Send + Sync>);

impl MasterFigures {
    pub(super) fn new(figures: impl Fn() -> Figures + Send + Sync + 'static) -> Self {
        Self(Box::new(figures))
    }
}

impl Source for MasterFigures {
    fn metrics(&self) -> Vec<Metric> {
        let Figures { capacity, used, objects, writing, draining, members, segments, .. } = (self.0)();
        let mut metrics = counters(&(self.0)());
        metrics.extend([
            Metric::gauge("springtide_capacity_bytes", "Bytes of all segments.", capacity),
            Metric::gauge("springtide_used_bytes", "Bytes in use.", used),
            Metric::gauge(
                "springtide_draining_bytes",
                "Bytes that wait for a lease, a copy or a fence.",
                draining,
            ),
            Metric::gauge("springtide_objects", "Objects that can be read.", objects),
            Metric::gauge(
                "springtide_writing",
                "Puts that have not ended, and extents granted ahead.",
                writing,
            ),
            Metric::gauge("springtide_members", "Healthy members.", members),
            Metric::gauge("springtide_segments", "Mounted segments.", segments),
        ]);
        metrics
    }

    fn health(&self) -> (bool, String) {
        let Figures { members, segments, .. } = (self.0)();
        let line =
            serde_json::json!({ "status": "ok", "role": "master", "members": members, "segments": segments });
        (true, line.to_string())
    }
}

fn counters(figures: &Figures) -> Vec<Metric> {
    let rows = [
        ("springtide_get_hits_total", "Gets that found their object.", figures.hits),
        ("springtide_get_misses_total", "Gets that did not.", figures.misses),
        ("springtide_puts_total", "Puts that ended well.", figures.puts),
        ("springtide_puts_refused_total", "Puts refused for want of space.", figures.refused_for_space),
        ("springtide_evicted_total", "Objects evicted.", figures.evicted),
        ("springtide_evicted_bytes_total", "Bytes evicted.", figures.evicted_bytes),
        ("springtide_eviction_blocked_total", "Evictions blocked by leases.", figures.blocked_by_leases),
        ("springtide_removed_total", "Objects removed by callers.", figures.removed),
        ("springtide_lost_total", "Objects lost with their last segment.", figures.lost),
        ("springtide_discarded_total", "Puts whose writer did not end them.", figures.discarded),
    ];
    rows.map(|(name, help, value)| Metric::counter(name, help, value)).into()
}
