//! The Runtime trait, lanes and seats: loops that turn the core's outputs into calls.
#![forbid(unsafe_code)]
