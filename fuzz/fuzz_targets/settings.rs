//! Sizes, lengths of time, fractions, and the file of settings.
#![cfg_attr(fuzzing, no_main)]

#[cfg(fuzzing)]
libfuzzer_sys::fuzz_target!(|data: &[u8]| springtide_fuzz::settings(data));

#[cfg(not(fuzzing))]
fn main() {
    springtide_fuzz::replay("settings");
}
