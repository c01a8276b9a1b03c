//! The messages of the shared-memory transport.
#![cfg_attr(fuzzing, no_main)]

#[cfg(fuzzing)]
libfuzzer_sys::fuzz_target!(|data: &[u8]| springtide_fuzz::shm_wire(data));

#[cfg(not(fuzzing))]
fn main() {
    springtide_fuzz::replay("shm_wire");
}
