//! The log of one run, for people.

use core::fmt;

use springtide_core::time::Instant;

/// Whether a run tells what it does.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Trace {
    /// It does not.
    #[default]
    Off,
    /// Line by line, on standard output.
    On,
}

impl Trace {
    /// Says one line. Nothing is formatted where nobody listens.
    pub fn say(self, now: Instant, who: &dyn fmt::Display, what: fmt::Arguments<'_>) {
        if self == Self::On {
            let (seconds, micros) = (now.nanos() / 1_000_000_000, now.nanos() / 1_000 % 1_000_000);
            println!("{seconds:>4}.{micros:06}  {who:<8}  {what}");
        }
    }
}
