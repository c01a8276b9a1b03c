//! What calls came to, method by method: counted for operators.

use core::array::from_fn;
use core::sync::atomic::{AtomicU64, Ordering::Relaxed};

use springtide_core::wire::frame::Method;
use springtide_core::wire::message::{FIGURES, METHODS, name};

/// The numbers of a master's methods lie below this; calls of others are counted under 0.
const END: usize = FIGURES.0 as usize + 1;

/// What the calls of one method came to since the start (S0A-091, S0A-146, S0B-030).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct CallFigures {
    /// The method's name; `UNKNOWN` stands for all that this master does not know.
    pub method: &'static str,
    /// How many calls were answered.
    pub calls: u64,
    /// How many of them failed: refused as a whole, or every one of their items. A batch of nothing is no failure.
    pub failed: u64,
    /// How many of them failed in part: some of their items.
    pub partial: u64,
    /// How many items batches had.
    pub items: u64,
    /// How many of these items were refused.
    pub failed_items: u64,
}

/// Counters for every method. Read without the machine's lock.
#[derive(Debug)]
pub(crate) struct Calls([Tally; END]);

#[derive(Debug, Default)]
struct Tally {
    calls: AtomicU64,
    failed: AtomicU64,
    partial: AtomicU64,
    items: AtomicU64,
    failed_items: AtomicU64,
}

impl Default for Calls {
    fn default() -> Self {
        Self(from_fn(|_| Tally::default()))
    }
}

impl Calls {
    fn of(&self, method: Method) -> &Tally {
        self.0.get(usize::from(method.0)).unwrap_or(&self.0[0])
    }

    /// A call was answered, `failed` of its `items` with a refusal.
    pub(crate) fn answered(&self, method: Method, items: u64, failed: u64) {
        let tally = self.of(method);
        tally.calls.fetch_add(1, Relaxed);
        if items > 0 {
            tally.items.fetch_add(items, Relaxed);
        }
        if failed > 0 {
            tally.failed_items.fetch_add(failed, Relaxed);
            let whole = if failed == items { &tally.failed } else { &tally.partial };
            whole.fetch_add(1, Relaxed);
        }
    }

    /// A call was refused as a whole.
    pub(crate) fn refused(&self, method: Method) {
        let tally = self.of(method);
        tally.calls.fetch_add(1, Relaxed);
        tally.failed.fetch_add(1, Relaxed);
    }

    /// The figures of every method that a master answers, called or not, and of unknown ones.
    pub(crate) fn figures(&self) -> Vec<CallFigures> {
        let known = METHODS.iter().copied().filter(|method| usize::from(method.0) < END);
        known.chain([Method(0)]).map(|method| self.of(method).figures(method)).collect()
    }
}

impl Tally {
    fn figures(&self, method: Method) -> CallFigures {
        CallFigures {
            method: name(method),
            calls: self.calls.load(Relaxed),
            failed: self.failed.load(Relaxed),
            partial: self.partial.load(Relaxed),
            items: self.items.load(Relaxed),
            failed_items: self.failed_items.load(Relaxed),
        }
    }
}
