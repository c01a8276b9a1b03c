//! Counts what test runners report.

use std::collections::BTreeMap;
use std::fmt;

/// How many tests ended how.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Tally {
    passed: u64,
    failed: u64,
    ignored: u64,
    /// Name and reason of tests that ran and said that this machine cannot run them. Their runner calls them passed.
    skips: BTreeMap<String, String>,
}

impl Tally {
    /// Counts one more check of our own.
    pub(crate) fn check(&mut self, passed: bool) {
        *if passed { &mut self.passed } else { &mut self.failed } += 1;
    }

    /// Counts tests that no runner ran because they are marked to be ignored.
    pub(crate) fn ignore(&mut self, tests: u64) {
        self.ignored += tests;
    }

    /// How many failures are counted.
    pub(crate) fn failed(&self) -> u64 {
        self.failed
    }

    /// How many tests were not run, or ran and did nothing.
    pub(crate) fn skipped(&self) -> u64 {
        self.ignored + self.skips.len() as u64
    }

    /// Name and reason of the tests that skipped themselves.
    pub(crate) fn skips(&self) -> impl Iterator<Item = (&str, &str)> {
        self.skips.iter().map(|(name, reason)| (name.as_str(), reason.as_str()))
    }

    /// Takes in a line that cargo test or cargo nextest printed, if it is a summary.
    pub(crate) fn read(&mut self, line: &str) {
        let line = plain(line);
        let counts = if let Some(counts) = line.trim_start().strip_prefix("test result: ") {
            counts.to_owned()
        } else if let (true, Some((_, counts))) =
            (line.trim_start().starts_with("Summary ["), line.split_once(" run: "))
        {
            without_parentheses(counts)
        } else {
            return;
        };
        for part in counts.split([',', ';', '.']) {
            let Some((number, what)) = part.trim().split_once(' ') else { continue };
            let Ok(number) = number.parse::<u64>() else { continue };
            match what {
                "passed" => self.passed += number,
                "failed" | "timed out" | "exec failed" => self.failed += number,
                "ignored" => self.ignored += number,
                _ => {}
            }
        }
    }

    /// Takes in what tests wrote into the file of skips: lines of `SKIPPED: name: reason`.
    pub(crate) fn read_skips(&mut self, text: &str) {
        for line in text.lines() {
            let Some((name, reason)) = line.strip_prefix("SKIPPED: ").and_then(|rest| rest.split_once(": "))
            else {
                continue;
            };
            self.skips.insert(name.to_owned(), reason.to_owned());
        }
    }
}

impl fmt::Display for Tally {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let passed = self.passed.saturating_sub(self.skips.len() as u64);
        write!(f, "{passed} passed, {} failed, {} skipped", self.failed, self.skipped())
    }
}

/// `line` without escape sequences for colour.
fn plain(line: &str) -> String {
    let mut parts = line.split('\u{1b}');
    let mut out = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        out.push_str(part.split_once('m').map_or("", |(_, rest)| rest));
    }
    out
}

fn without_parentheses(text: &str) -> String {
    let mut depth = 0;
    let outside = |c: &char| {
        match c {
            '(' => depth += 1,
            ')' => depth -= 1,
            _ => return depth == 0,
        }
        false
    };
    text.chars().filter(outside).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tally(lines: &[&str]) -> Tally {
        let mut tally = Tally::default();
        lines.iter().for_each(|line| tally.read(line));
        tally
    }

    #[test]
    fn reads_cargo_test() {
        let lines = [
            "running 3 tests",
            "test result: ok. 6 passed; 0 failed; 1 ignored; 0 measured; 22 filtered out; finished in 0.01s",
            "test result: FAILED. 1 passed; 2 failed; 0 ignored; 0 measured; 0 filtered out; finished in 1.20s",
        ];
        assert_eq!(tally(&lines).to_string(), "7 passed, 2 failed, 1 skipped");
    }

    #[test]
    fn reads_nextest_with_colour_and_asides() {
        let lines = [
            "\u{1b}[32;1m     Summary\u{1b}[0m [   1.018s] \u{1b}[1m7\u{1b}[0m tests run: \u{1b}[1m3\u{1b}[0m passed (1 slow, 2 flaky), 2 failed (1 due to x), 1 exec failed, 1 timed out, 22 skipped",
            "  Summary of changes: nothing run: 9 passed",
        ];
        assert_eq!(tally(&lines).to_string(), "3 passed, 4 failed, 0 skipped");
    }

    #[test]
    fn a_skip_is_no_pass_and_counts_once() {
        let mut tally = tally(&["test result: ok. 3 passed; 0 failed; 0 ignored"]);
        tally.read_skips(
            "SKIPPED: a::b: needs IPv6: none here\nnoise\nSKIPPED: a::b: needs IPv6: none here\n",
        );
        assert_eq!(tally.to_string(), "2 passed, 0 failed, 1 skipped");
        assert_eq!(tally.skips().collect::<Vec<_>>(), [("a::b", "needs IPv6: none here")]);
    }
}
