//! What each command does.

pub mod config;
mod figures;
pub mod objects;
pub(crate) mod pool;
pub mod ready;
pub mod replay;
pub mod serve;
pub mod status;

use std::process::ExitCode;

use clap::{CommandFactory, FromArgMatches};

use crate::args::{Cli, Command};
use crate::bench;
use crate::config::Settings;
use crate::exit::{Failure, report};
use crate::logging;

/// The whole command: reads the command line, the environment and the file, does what they say, and gives the exit
/// code.
pub fn main() -> ExitCode {
    let arguments: Vec<_> = std::env::args_os().collect();
    let settings = match Settings::load(Cli::command(), &arguments) {
        Ok(settings) => settings,
        Err(failure) => return report(Err(failure)),
    };
    let parsed = settings.command.clone().try_get_matches_from(&arguments);
    match parsed.and_then(|matches| Cli::from_arg_matches(&matches)) {
        Ok(cli) => report(logging::start(&cli.log).and_then(|()| run(&cli.command, &settings))),
        Err(error) => refuse(&error, &settings, &arguments),
    }
}

fn run(command: &Command, settings: &Settings) -> Result<(), Failure> {
    match command {
        Command::Master(args) => serve::master(args),
        Command::Node(args) => serve::node(args),
        Command::Put(args) => objects::put(args),
        Command::Get(args) => objects::get(args),
        Command::Exists(args) => objects::exists(args),
        Command::Stat(args) => objects::stat(args),
        Command::Ls(args) => objects::ls(args),
        Command::Rm(args) => objects::rm(args),
        Command::Status(args) => status::run(args),
        Command::Replay(args) => replay::run(args),
        Command::Bench(args) => bench::run(args),
        Command::Config(args) => config::run(args, settings),
    }
}

/// Says what is wrong with the command line, or prints the help that was asked for.
fn refuse(error: &clap::Error, settings: &Settings, arguments: &[std::ffi::OsString]) -> ExitCode {
    // A reader that went away needs no help.
    let _ = error.print();
    if let Some(origin) = settings.origin(error, arguments) {
        eprintln!("\nspringtide: {origin}");
    }
    ExitCode::from(u8::try_from(error.exit_code()).unwrap_or(2))
}
