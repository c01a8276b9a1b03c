//! A client's batches of gets and puts.
#![cfg_attr(fuzzing, no_main)]

#[cfg(fuzzing)]
libfuzzer_sys::fuzz_target!(|data: &[u8]| springtide_fuzz::client_ops(data));

#[cfg(not(fuzzing))]
fn main() {
    springtide_fuzz::replay("client_ops");
}
