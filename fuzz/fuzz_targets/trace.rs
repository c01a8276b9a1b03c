//! Traces of requests.
#![cfg_attr(fuzzing, no_main)]

#[cfg(fuzzing)]
libfuzzer_sys::fuzz_target!(|data: &[u8]| springtide_fuzz::trace(data));

#[cfg(not(fuzzing))]
fn main() {
    springtide_fuzz::replay("trace");
}
