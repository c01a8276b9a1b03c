//! Coordination: who is master, and since when.
#![forbid(unsafe_code)]
