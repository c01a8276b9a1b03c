//! Logs, on standard error.

use std::io;

use tracing_subscriber::filter::EnvFilter;

use crate::exit::Failure;
use crate::output::Colour;

/// Starts logging what `filter` lets through: a level (`error`, `warn`, `info`, `debug`, `trace`) or directives such as
/// `info,springtide_rpc=debug`. Colour only on a terminal. Does nothing if logging has started already.
pub fn start(filter: &str) -> Result<(), Failure> {
    let filter = check(filter)?;
    let colour = Colour::of(&io::stderr()) == Colour::Yes;
    let log = tracing_subscriber::fmt().with_env_filter(filter).with_writer(io::stderr).with_ansi(colour);
    // An error means that there is a subscriber already, as in a program that embeds this crate.
    let _ = log.try_init();
    Ok(())
}

fn check(filter: &str) -> Result<EnvFilter, Failure> {
    EnvFilter::try_new(filter).map_err(|error| {
        Failure::usage(format_args!("{filter:?} is no log filter: {error}"))
            .advise("write a level (error, warn, info, debug, trace) or TARGET=LEVEL, separated by commas")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn levels_and_directives_are_read() {
        for filter in ["off", "info", "info,springtide_rpc=debug", ""] {
            assert!(check(filter).is_ok(), "{filter}");
        }
    }

    #[test]
    fn what_is_no_filter_is_named() {
        let error = check("springtide=loud").unwrap_err().to_string();
        assert!(error.contains("springtide=loud") && error.contains("debug"), "{error}");
    }
}
