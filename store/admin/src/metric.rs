//! A figure, and how Prometheus reads it.

use core::fmt::{self, Write};

/// Whether a figure only grows.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kind {
    /// It goes up and down; it is derived from what is there now.
    Gauge,
    /// It grows while the process lives.
    Counter,
}

/// One figure.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Metric {
    /// Its name, `springtide_…`, with its unit; counters end in `_total`.
    pub name: &'static str,
    /// One line that says what it counts.
    pub help: &'static str,
    /// Whether it only grows.
    pub kind: Kind,
    /// Name and value of its labels.
    pub labels: Vec<(&'static str, String)>,
    /// The figure.
    pub value: u64,
}

impl Metric {
    /// A gauge without labels.
    pub const fn gauge(name: &'static str, help: &'static str, value: u64) -> Self {
        Self { name, help, kind: Kind::Gauge, labels: Vec::new(), value }
    }

    /// A counter without labels.
    pub const fn counter(name: &'static str, help: &'static str, value: u64) -> Self {
        Self { name, help, kind: Kind::Counter, labels: Vec::new(), value }
    }

    /// The same with one more label.
    #[must_use]
    pub fn label(mut self, name: &'static str, value: impl Into<String>) -> Self {
        self.labels.push((name, value.into()));
        self
    }
}

/// All figures in Prometheus' text format; figures of one name stand together under one header.
pub(crate) fn render(metrics: &[Metric]) -> String {
    let mut out = String::with_capacity(metrics.len() * 96);
    for (i, metric) in metrics.iter().enumerate() {
        if i == 0 || metrics[i - 1].name != metric.name {
            let kind = if metric.kind == Kind::Gauge { "gauge" } else { "counter" };
            let _ = writeln!(out, "# HELP {} {}\n# TYPE {} {kind}", metric.name, metric.help, metric.name);
        }
        let _ = write_line(&mut out, metric);
    }
    out
}

fn write_line(out: &mut String, metric: &Metric) -> fmt::Result {
    out.push_str(metric.name);
    for (i, (name, value)) in metric.labels.iter().enumerate() {
        let open = if i == 0 { '{' } else { ',' };
        let value = value.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n");
        write!(out, "{open}{name}=\"{value}\"")?;
    }
    let close = if metric.labels.is_empty() { "" } else { "}" };
    writeln!(out, "{close} {}", metric.value)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_header_a_name_and_labels_escaped() {
        let used = |segment: &str, value| {
            Metric::gauge("used_bytes", "Bytes in use.", value).label("segment", segment)
        };
        let text = render(&[used("a", 1), used("b\"\n", 2), Metric::counter("puts_total", "Puts.", 3)]);
        let expected = "# HELP used_bytes Bytes in use.\n# TYPE used_bytes gauge\nused_bytes{segment=\"a\"} 1\n\
                        used_bytes{segment=\"b\\\"\\n\"} 2\n# HELP puts_total Puts.\n# TYPE puts_total counter\nputs_total 3\n";
        assert_eq!(text, expected);
    }
}
