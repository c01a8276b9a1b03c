//! How the command ends: what goes to standard error, and which code.

use core::fmt;
use std::process::ExitCode;

use springtide_core::error::Code;

/// Exit codes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Exit {
    /// Done. Also when the reader of standard output went away: it has what it wanted.
    Done = 0,
    /// It did not work, or the answer is no.
    Failed = 1,
    /// The command line, the environment or the configuration file is wrong.
    Usage = 2,
    /// Ended by a signal before the work was done (128 + SIGINT).
    Interrupted = 130,
}

/// Why a command ends early: one line that says why, and what to do about it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Failure {
    why: String,
    advice: Option<String>,
    exit: Exit,
}

impl Failure {
    /// It did not work, because of `why`.
    pub fn new(why: impl fmt::Display) -> Self {
        Self { why: why.to_string(), advice: None, exit: Exit::Failed }
    }

    /// What the user gave is wrong.
    pub fn usage(why: impl fmt::Display) -> Self {
        Self { exit: Exit::Usage, ..Self::new(why) }
    }

    /// A signal ended it.
    pub fn interrupted() -> Self {
        Self { exit: Exit::Interrupted, ..Self::new("interrupted") }
    }

    /// The answer is no, and that has been said already, or nobody is there to read it.
    pub fn silent(exit: Exit) -> Self {
        Self { exit, ..Self::new("") }
    }

    /// The service refused `what` with `code`.
    pub fn refused(what: impl fmt::Display, code: Code) -> Self {
        Self::refused_because(what, code, code)
    }

    /// The service refused `what` with `code`, and said why.
    pub fn refused_because(what: impl fmt::Display, why: impl fmt::Display, code: Code) -> Self {
        let failure = Self::new(format_args!("{what}: {why}"));
        match advice(code) {
            Some(advice) => failure.advise(advice),
            None => failure,
        }
    }

    /// The same, with what to do about it.
    pub fn advise(self, advice: impl fmt::Display) -> Self {
        Self { advice: Some(advice.to_string()), ..self }
    }

    /// The exit code.
    pub const fn exit(&self) -> Exit {
        self.exit
    }
}

/// What to do about a refusal whose text does not say so itself.
const fn advice(code: Code) -> Option<&'static str> {
    Some(match code {
        Code::NO_AVAILABLE_HANDLE => "add a node, remove objects, or try again when leases have ended",
        Code::NEVER_FITS => "start a node with more --memory, or split the value",
        Code::RPC_FAIL => "check --master and that `springtide master` is running there",
        Code::RPC_TIMEOUT => "check that the master is not overloaded, or give it longer with --timeout",
        Code::OBJECT_ALREADY_EXISTS => "remove it first: springtide rm KEY",
        Code::CHECKSUM_MISMATCH => "put the value again; the memory of its node may be faulty",
        Code::WRONG_CLUSTER => "check --master: it belongs to another cluster",
        Code::INVALID_VERSION => "update the older side",
        _ => return None,
    })
}

/// One line, whatever the parts hold.
impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let line = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
        f.write_str(&line(&self.why))?;
        match &self.advice {
            Some(advice) => write!(f, "; {}", line(advice)),
            None => Ok(()),
        }
    }
}

impl core::error::Error for Failure {}

/// Says on standard error why a command failed, unless it is silent, and gives its exit code.
pub fn report(result: Result<(), Failure>) -> ExitCode {
    let Err(failure) = result else { return ExitCode::from(Exit::Done as u8) };
    let text = failure.to_string();
    if !text.is_empty() {
        eprintln!("springtide: {text}");
    }
    ExitCode::from(failure.exit as u8)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failure_is_one_line() {
        let failure = Failure::new("first\nsecond").advise("do\n  this");
        assert_eq!(failure.to_string(), "first second; do this");
        assert_eq!(Failure::silent(Exit::Failed).to_string(), "");
    }

    #[test]
    fn a_refusal_says_what_to_do() {
        let failure = Failure::refused("put \"k\"", Code::NEVER_FITS);
        let text = failure.to_string();
        assert!(text.contains("put \"k\"") && text.contains("-1908") && text.contains("--memory"), "{text}");
        assert_eq!(failure.exit(), Exit::Failed);
    }
}
