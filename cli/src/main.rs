//! The `springtide` command.
#![forbid(unsafe_code)]
fn main() {}
