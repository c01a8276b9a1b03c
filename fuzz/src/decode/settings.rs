//! Settings: sizes, lengths of time, fractions, and the file.

use clap::CommandFactory;
use springtide_cli::args::Cli;
use springtide_cli::config::Settings;
use springtide_cli::duration;
use springtide_cli::fraction::Fraction;
use springtide_cli::size::Size;

/// The first byte says what the rest is read as: a size, a length of time, a fraction, or a file of settings.
pub fn settings(data: &[u8]) {
    let Some((&kind, text)) = data.split_first() else { return };
    let Ok(text) = core::str::from_utf8(text) else { return };
    match kind % 4 {
        0 => size(text),
        1 => time(text),
        2 => fraction(text),
        _ => file(text),
    }
}

fn size(text: &str) {
    match text.parse::<Size>() {
        Ok(size) => {
            assert_eq!(size.to_string().parse(), Ok(size));
            assert!(!size.rounded().is_empty());
        }
        Err(error) => assert!(error.to_string().contains(&format!("{text:?}"))),
    }
}

fn time(text: &str) {
    match duration::parse(text) {
        Ok(time) => {
            assert_eq!(duration::parse(&format!("{}ns", time.as_nanos())), Ok(time));
            assert!(!duration::rounded(time).is_empty());
        }
        Err(error) => assert!(error.starts_with(&format!("{text:?} "))),
    }
}

fn fraction(text: &str) {
    match text.parse::<Fraction>() {
        Ok(fraction) => {
            assert!(fraction.0 <= 1_000_000);
            assert_eq!(fraction.to_string().parse(), Ok(fraction));
        }
        Err(error) => assert!(error.starts_with(&format!("{text:?} "))),
    }
}

/// A file that is taken can be shown, and a command line that it completes parses or says why not.
fn file(text: &str) {
    let Ok(settings) = Settings::from_text(Cli::command(), "settings.toml".into(), text) else { return };
    assert!(!settings.in_force().is_empty());
    for command in ["master", "node", "status", "ls"] {
        let arguments = ["springtide", command].map(Into::into);
        if let Err(error) = settings.command.clone().try_get_matches_from(&arguments) {
            assert!(!error.to_string().is_empty());
            let _ = settings.origin(&error, &arguments);
        }
    }
}
