//! What is done from second to second (S0A-010).

use core::sync::atomic::{AtomicU64, Ordering};
use core::time::Duration;
use std::sync::Mutex;
use std::sync::mpsc::{Receiver, RecvTimeoutError};

use crate::output::{Format, grouped};

/// How often it is told.
const SECOND: Duration = Duration::from_secs(1);

/// Counts what the threads of one measurement have done, and tells every second what it came to, on standard error if
/// the output is for people.
pub(super) struct Pace<'a> {
    name: &'a str,
    format: Format,
    done: Vec<Counter>,
    seconds: Mutex<Vec<u64>>,
}

/// One thread's count, in a cache line of its own.
#[repr(align(64))]
#[derive(Default)]
pub(super) struct Counter(AtomicU64);

impl Counter {
    /// Only its own thread does this.
    pub(super) fn add(&self, more: u64) {
        self.0.fetch_add(more, Ordering::Relaxed);
    }
}

impl<'a> Pace<'a> {
    /// Of a measurement called `name` in as many threads.
    pub(super) fn new(name: &'a str, threads: u16, format: Format) -> Self {
        let done = (0..threads).map(|_| Counter::default()).collect();
        Self { name, format, done, seconds: Mutex::default() }
    }

    /// The count of one thread.
    pub(super) fn of(&self, thread: u64) -> &Counter {
        &self.done[thread as usize]
    }

    /// Tells, until the other end of `over` is dropped.
    pub(super) fn tell(&self, over: &Receiver<()>) {
        let mut before = 0;
        while over.recv_timeout(SECOND) == Err(RecvTimeoutError::Timeout) {
            before = self.second(before);
        }
    }

    /// One second has gone by; `before` is what was done until it began.
    fn second(&self, before: u64) -> u64 {
        let done: u64 = self.done.iter().map(|counter| counter.0.load(Ordering::Relaxed)).sum();
        let mut seconds = self.seconds.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        seconds.push(done - before);
        if self.format != Format::Json {
            let second = seconds.len();
            eprintln!("{}: second {second}: {} operations", self.name, grouped(done - before));
        }
        done
    }

    /// How many operations ended in each whole second.
    pub(super) fn seconds(self) -> Vec<u64> {
        self.seconds.into_inner().unwrap_or_else(std::sync::PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_second_has_what_was_done_in_it() {
        let pace = Pace::new("get", 2, Format::Json);
        pace.of(0).add(3);
        pace.of(1).add(4);
        let first = pace.second(0);
        assert_eq!((first, pace.second(first)), (7, 7));
        pace.of(1).add(5);
        pace.second(first);
        assert_eq!(pace.seconds(), [7, 0, 5]);
    }

    #[test]
    fn it_is_told_until_nobody_measures_any_more() {
        let (over, hear) = std::sync::mpsc::channel();
        drop(over);
        let pace = Pace::new("get", 1, Format::Json);
        pace.tell(&hear);
        assert!(pace.seconds().is_empty());
    }
}
