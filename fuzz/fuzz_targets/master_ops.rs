//! The master's commands against a naive model.
#![cfg_attr(fuzzing, no_main)]

#[cfg(fuzzing)]
libfuzzer_sys::fuzz_target!(|data: &[u8]| springtide_fuzz::master_ops(data));

#[cfg(not(fuzzing))]
fn main() {
    springtide_fuzz::replay("master_ops");
}
