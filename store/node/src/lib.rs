//! The storage node.
#![forbid(unsafe_code)]
