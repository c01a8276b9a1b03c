//! The `springtide` command.
#![forbid(unsafe_code)]

use std::process::ExitCode;

fn main() -> ExitCode {
    springtide_cli::commands::main()
}
