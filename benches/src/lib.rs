//! Benchmarks of the core and the data path.
#![forbid(unsafe_code)]
