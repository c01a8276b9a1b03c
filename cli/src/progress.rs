//! Progress of long work, on standard error, for people only.

use std::io::{self, IsTerminal};

use indicatif::{ProgressBar, ProgressStyle};

use crate::output::Format;

/// A bar on a terminal, and nothing anywhere else. Disappears when dropped.
#[derive(Debug)]
pub struct Progress {
    bar: ProgressBar,
}

/// What is counted.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Unit {
    /// Bytes, shown as sizes with their rate.
    Bytes,
    /// Requests, objects, operations.
    Items,
}

impl Progress {
    /// A bar for `total` units of work called `what`; hidden if standard error is no terminal, or the output is JSON.
    pub fn new(what: &'static str, total: u64, unit: Unit, format: Format) -> Self {
        if format == Format::Json || !io::stderr().is_terminal() {
            return Self { bar: ProgressBar::hidden() };
        }
        let style = style(unit);
        Self { bar: ProgressBar::new(total).with_style(style).with_message(what) }
    }

    /// Adds finished work. Cheap enough for every request; any thread may call it.
    pub fn add(&self, done: u64) {
        self.bar.inc(done);
    }

    /// How much is finished.
    pub fn done(&self) -> u64 {
        self.bar.position()
    }
}

fn style(unit: Unit) -> ProgressStyle {
    let template = match unit {
        Unit::Bytes => "{msg} {wide_bar} {bytes}/{total_bytes} {bytes_per_sec} {eta}",
        Unit::Items => "{msg} {wide_bar} {human_pos}/{human_len} {per_sec} {eta}",
    };
    ProgressStyle::with_template(template).expect("the templates are constants that parse")
}

impl Drop for Progress {
    fn drop(&mut self) {
        self.bar.finish_and_clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_without_a_terminal() {
        let progress = Progress::new("replay", 10, Unit::Items, Format::Json);
        progress.add(3);
        progress.add(4);
        assert_eq!(progress.done(), 7);
        assert!(progress.bar.is_hidden());
    }

    #[test]
    fn the_templates_parse() {
        for unit in [Unit::Bytes, Unit::Items] {
            style(unit);
        }
    }
}
