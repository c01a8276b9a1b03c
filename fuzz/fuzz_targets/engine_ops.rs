//! The transfer engine over simulated rails that misbehave.
#![cfg_attr(fuzzing, no_main)]

#[cfg(fuzzing)]
libfuzzer_sys::fuzz_target!(|data: &[u8]| springtide_fuzz::engine_ops(data));

#[cfg(not(fuzzing))]
fn main() {
    springtide_fuzz::replay("engine_ops");
}
