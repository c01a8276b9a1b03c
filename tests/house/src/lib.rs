//! How a test says that this machine cannot run it.
//!
//! A test that needs what not every machine has ends with [`skip!`]. `cargo xtask test` sets `SPRINGTIDE_SKIPS` to the
//! name of a file, collects what is written there, counts it, and with `--require all` calls it a failure. The checks
//! on the workspace itself are this package's tests.
#![forbid(unsafe_code)]

use std::fmt;
use std::fs::OpenOptions;
use std::io::Write;

/// Ends the calling test as skipped, for a reason (a format string) that says what is missing.
///
/// ```
/// fn needs_ipv6() {
///     let Ok(_listener) = std::net::TcpListener::bind("[::1]:0") else {
///         springtide_house::skip!("needs IPv6 on the loopback interface");
///     };
/// }
/// # needs_ipv6();
/// ```
#[macro_export]
macro_rules! skip {
    ($($reason:tt)+) => {{
        fn here() {}
        let here = ::std::any::type_name_of_val(&here);
        $crate::skipped(here.trim_end_matches("::here"), ::std::format_args!($($reason)+));
        return;
    }};
}

/// Reports that the test `name` was skipped, on standard error and in the file that `SPRINGTIDE_SKIPS` names.
pub fn skipped(name: &str, reason: fmt::Arguments<'_>) {
    let line = format!("SKIPPED: {name}: {reason}\n");
    eprint!("{line}");
    let Some(path) = std::env::var_os("SPRINGTIDE_SKIPS") else { return };
    // One write of one line in append mode: tests in other processes append at the same time.
    let file = OpenOptions::new().append(true).create(true).open(&path);
    let written = file.and_then(|mut file| file.write_all(line.as_bytes()));
    assert!(written.is_ok(), "cannot record a skip in {}: {written:?}", path.display());
}
