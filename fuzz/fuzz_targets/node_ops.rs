//! A node's membership, gates and a master, with calls that get lost.
#![cfg_attr(fuzzing, no_main)]

#[cfg(fuzzing)]
libfuzzer_sys::fuzz_target!(|data: &[u8]| springtide_fuzz::node_ops(data));

#[cfg(not(fuzzing))]
fn main() {
    springtide_fuzz::replay("node_ops");
}
