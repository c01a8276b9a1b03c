//! The master's figures, as operators scrape them.

use springtide::admin::{Metric, Source};
use springtide::{CallFigures, Figures};

/// The master's figures, asked for at every scrape.
pub(super) struct MasterFigures {
    figures: Box<dyn Fn() -> Figures + Send + Sync>,
    calls: Box<dyn Fn() -> Vec<CallFigures> + Send + Sync>,
}

impl MasterFigures {
    pub(super) fn new(
        figures: impl Fn() -> Figures + Send + Sync + 'static,
        calls: impl Fn() -> Vec<CallFigures> + Send + Sync + 'static,
    ) -> Self {
        Self { figures: Box::new(figures), calls: Box::new(calls) }
    }
}

impl Source for MasterFigures {
    fn metrics(&self) -> Vec<Metric> {
        let Figures { capacity, used, objects, writing, draining, members, segments, .. } = (self.figures)();
        let mut metrics = counters(&(self.figures)());
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
        metrics.extend(by_method(&(self.calls)()));
        metrics
    }

    fn health(&self) -> (bool, String) {
        let Figures { members, segments, .. } = (self.figures)();
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

/// What one counter of a method says.
type Of = fn(&CallFigures) -> u64;

/// What calls came to, by method; methods that nobody called stand there with 0 (S0A-146, S0A-148).
fn by_method(calls: &[CallFigures]) -> Vec<Metric> {
    let rows: [(_, _, Of); 5] = [
        ("springtide_calls_total", "Calls answered.", |call| call.calls),
        ("springtide_calls_failed_total", "Calls refused, or all of their items.", |call| call.failed),
        ("springtide_calls_partial_total", "Batches of which some items were refused.", |call| call.partial),
        ("springtide_items_total", "Items of batches.", |call| call.items),
        ("springtide_items_failed_total", "Items of batches that were refused.", |call| call.failed_items),
    ];
    let row = |(name, help, of): (_, _, Of)| {
        calls.iter().map(move |call| Metric::counter(name, help, of(call)).label("method", call.method))
    };
    rows.into_iter().flat_map(row).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_method_is_told_also_before_its_first_call() {
        let call =
            |method, calls| CallFigures { method, calls, failed: 2, partial: 1, items: 9, failed_items: 4 };
        let calls = move || vec![call("GET", 5), call("PUT_END", 0)];
        let metrics =
            MasterFigures::new(|| Figures { used: 7, evicted: 3, ..Figures::default() }, calls).metrics();
        let value = |name: &str, method: &str| {
            let labels: &[_] = if method.is_empty() { &[] } else { &[("method", method.to_owned())] };
            metrics
                .iter()
                .find(|metric| metric.name == name && metric.labels == labels)
                .map(|metric| metric.value)
        };
        assert_eq!(value("springtide_calls_total", "GET"), Some(5));
        assert_eq!(value("springtide_calls_total", "PUT_END"), Some(0));
        assert_eq!(value("springtide_calls_failed_total", "GET"), Some(2));
        assert_eq!(value("springtide_calls_partial_total", "GET"), Some(1));
        assert_eq!(value("springtide_items_total", "GET"), Some(9));
        assert_eq!(value("springtide_items_failed_total", "GET"), Some(4));
        assert_eq!(
            (value("springtide_used_bytes", ""), value("springtide_evicted_total", "")),
            (Some(7), Some(3))
        );
        // Figures of one name stand together, as Prometheus wants them.
        let mut names: Vec<_> = metrics.iter().map(|metric| metric.name).collect();
        names.dedup();
        let all = names.len();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), all);
    }
}
