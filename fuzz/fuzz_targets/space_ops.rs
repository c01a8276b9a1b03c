//! Allocators and the table of segments against interval maps.
#![cfg_attr(fuzzing, no_main)]

#[cfg(fuzzing)]
libfuzzer_sys::fuzz_target!(|data: &[u8]| springtide_fuzz::space_ops(data));

#[cfg(not(fuzzing))]
fn main() {
    springtide_fuzz::replay("space_ops");
}
