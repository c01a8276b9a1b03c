//! Bytes between processes of one host over shared memory.
#![forbid(unsafe_code)]
