//! HTTP for operators: metrics and health.
#![forbid(unsafe_code)]
