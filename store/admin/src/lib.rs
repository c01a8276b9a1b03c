//! HTTP for operators: metrics and health.
//!
//! One thread of its own, so that a scrape never waits for the data path or holds it up. `GET /metrics` answers in
//! Prometheus' text format, `GET /health` with one line of JSON (503 while not ready), `GET /` lists the routes.
#![forbid(unsafe_code)]

mod metric;
mod server;

pub use metric::{Kind, Metric};
pub use server::{Server, Source};
