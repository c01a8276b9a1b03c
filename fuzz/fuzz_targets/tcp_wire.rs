//! The wire of the TCP transport.
#![cfg_attr(fuzzing, no_main)]

#[cfg(fuzzing)]
libfuzzer_sys::fuzz_target!(|data: &[u8]| springtide_fuzz::tcp_wire(data));

#[cfg(not(fuzzing))]
fn main() {
    springtide_fuzz::replay("tcp_wire");
}
