//! How measurements of `springtide bench` are printed.

use core::time::Duration;

use serde::Serialize;

use crate::latency::Micros;
use crate::output::{Align, Report, Table, grouped};
use crate::size::Size;

/// One measurement.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Measurement {
    /// What was measured.
    pub name: String,
    /// The size of each operation in bytes; null if operations have none.
    pub size: Option<u64>,
    /// How many operations were done.
    pub operations: u64,
    /// How long they took together.
    pub seconds: f64,
    /// Operations a second.
    pub per_second: f64,
    /// Bytes a second, in 10⁹; null if operations have no size.
    pub gb_per_second: Option<f64>,
    /// Throughput as a share of that of [`Self::compared_with`] in the same run.
    pub ratio: Option<f64>,
    /// What [`Self::ratio`] compares with.
    pub compared_with: Option<String>,
    /// Latencies; null if they were not taken one by one.
    pub us: Option<Micros>,
    /// How many operations ended in each whole second, where that was counted.
    pub each_second: Vec<u64>,
}

impl Measurement {
    /// `operations` of `size` that took `took` together.
    pub fn new(name: impl Into<String>, size: Option<Size>, operations: u64, took: Duration) -> Self {
        let seconds = took.as_secs_f64();
        let rate = |amount: f64| if seconds > 0.0 { amount / seconds } else { 0.0 };
        Self {
            name: name.into(),
            size: size.map(|size| size.0),
            operations,
            seconds,
            per_second: rate(operations as f64),
            gb_per_second: size.map(|size| rate(operations as f64 * size.0 as f64) / 1e9),
            ratio: None,
            compared_with: None,
            us: None,
            each_second: Vec::new(),
        }
    }

    /// The same with its latencies.
    pub fn with_latencies(self, us: Micros) -> Self {
        Self { us: Some(us), ..self }
    }

    /// The same with what was done from second to second.
    pub fn with_each_second(self, each_second: Vec<u64>) -> Self {
        Self { each_second, ..self }
    }

    /// The same, compared with what `other` did in the same run.
    pub fn compared(self, other: &Self) -> Self {
        let ratio = (other.per_second > 0.0).then(|| self.per_second / other.per_second);
        Self { ratio, compared_with: Some(other.name.clone()), ..self }
    }

    /// Nanoseconds an operation took on average, if they were done one after another.
    pub fn nanos(&self) -> f64 {
        if self.operations == 0 { 0.0 } else { self.seconds * 1e9 / self.operations as f64 }
    }
}

/// The measurements of one run. In JSON an array.
#[derive(Clone, PartialEq, Debug, Default, Serialize)]
#[serde(transparent)]
pub struct Measurements(pub Vec<Measurement>);

impl Report for Measurements {
    fn tables(&self) -> Vec<Table> {
        let right = |name| (name, Align::Right);
        let columns =
            ["size", "operations", "a second", "ns each", "GB/s", "ratio", "p50 µs", "p99 µs", "p999 µs"];
        let columns: Vec<_> = [("measured", Align::Left)].into_iter().chain(columns.map(right)).collect();
        let mut table = Table::new(&columns);
        let none = || "-".to_owned();
        for one in &self.0 {
            let [p50, p99, p999] = one.us.map_or_else(|| [none(), none(), none()], |us| us.cells());
            table.row([
                one.name.clone(),
                one.size.map_or_else(none, |size| Size(size).rounded()),
                grouped(one.operations),
                grouped(one.per_second.round() as u64),
                format!("{:.1}", one.nanos()),
                one.gb_per_second.map_or_else(none, |rate| format!("{rate:.2}")),
                one.ratio.map_or_else(none, |ratio| format!("{ratio:.2}")),
                p50,
                p99,
                p999,
            ]);
        }
        vec![table]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::output::Colour;

    #[test]
    fn rates_and_ratios() {
        let second = Duration::from_secs(1);
        let memcpy = Measurement::new("memcpy", Some(Size(1 << 20)), 2_000, second);
        let tcp = Measurement::new("tcp", Some(Size(1 << 20)), 1_000, second).compared(&memcpy);
        assert_eq!((tcp.ratio, tcp.nanos()), (Some(0.5), 1e6));
        assert_eq!(tcp.gb_per_second, Some(1.048_576));
        let text = Measurements(vec![memcpy, tcp]).tables()[0].render(Colour::No);
        assert!(text.contains("1.05") && text.contains("0.50") && text.contains("1 MiB"), "{text}");
    }

    #[test]
    fn nothing_measured_divides_by_nothing() {
        let nothing = Measurement::new("x", Some(Size(1)), 0, Duration::ZERO);
        assert_eq!((nothing.per_second, nothing.nanos(), nothing.gb_per_second), (0.0, 0.0, Some(0.0)));
        assert_eq!(nothing.clone().compared(&nothing).ratio, None);
    }

    #[test]
    fn json_is_an_array() {
        let one =
            Measurement::new("alloc", None, 10, Duration::from_secs(1)).with_latencies(Micros::default());
        let json = serde_json::to_value(Measurements(vec![one])).unwrap();
        assert_eq!(json[0]["per_second"], 10.0);
        assert!(json[0]["us"]["p99"].is_number() && json[0]["gb_per_second"].is_null());
    }
}
