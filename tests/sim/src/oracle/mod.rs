//! Who watches: it knows what may be seen, and says when something else is.
//!
//! The oracle sees every request and reply of every master, every store that lands, and every result that a caller
//! gets. From these it keeps its own account: which put is what, which object is where, who may count on it for how
//! long, and whose every granule is. It changes nothing.
//!
//! - `puts`: whose bytes a read may give; - `answers`: what a master may answer; `objects`: what it holds; - `space`: when bytes may be
//!   used again; - `audit`: the full recount; - `calls`: every request has exactly one answer.

mod answers;
mod audit;
mod calls;
mod objects;
mod puts;
mod space;
#[cfg(test)]
mod tests;

use core::fmt;
use core::time::Duration;
use std::collections::VecDeque;
use std::rc::Rc;

use springtide_core::id::ObjectId;
use springtide_core::time::Instant;

use crate::plan::Plan;
use crate::queue::Pid;
pub use puts::GetEnd;

use calls::Calls;
use objects::View;
use puts::Put;

/// What was seen that must not be.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Violation {
    /// When, in true time.
    pub at: Instant,
    /// Which rule.
    pub rule: Rule,
    /// What exactly.
    pub what: String,
}

/// What must never be seen.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Rule {
    /// A get gives exactly the bytes of a put of its key that succeeded, or may have.
    Bytes,
    /// A get that ends after its lease is no success.
    LateRead,
    /// What was removed before a get began is not given by it.
    Removed,
    /// A put that was acknowledged has been ended at the master; one that failed never is.
    Acknowledged,
    /// Nothing is there before its put-end.
    Early,
    /// What was put stays until it is removed, evicted, or its last segment is lost.
    Vanished,
    /// Nothing is evicted or removed while a lease on it runs.
    Leased,
    /// What is pinned for good is not evicted.
    Pinned,
    /// A lease is renewed by reads, and by nothing else.
    Renewed,
    /// No byte belongs to two objects.
    Shared,
    /// No byte is granted again while a lease on it runs.
    ReusedLeased,
    /// No byte is granted again while its last writer may still store.
    ReusedUnfenced,
    /// No store lands in what belongs to somebody else, or is finished.
    LateStore,
    /// Used bytes are the sum of what is granted.
    Count,
    /// The bytes of a finished object stay as they were written.
    Damaged,
    /// Every request gets exactly one answer.
    Answers,
    /// Nothing is left over after a quiet time.
    Leak,
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?} at {:.6} s: {}", self.rule, self.at.nanos() as f64 / 1e9, self.what)
    }
}

/// The keys of all clusters, by number.
#[derive(Debug)]
pub struct Names(Vec<Box<[u8]>>);

impl Names {
    fn new(keys: u32) -> Self {
        Self((0..keys).map(|key| format!("key/{key:04}").into_bytes().into()).collect())
    }

    /// Key number `key`.
    pub fn of(&self, key: u32) -> &[u8] {
        &self.0[key as usize]
    }

    /// The number of a key.
    pub fn number(key: &[u8]) -> Option<u32> {
        let digits = key.strip_prefix(b"key/")?;
        digits.iter().try_fold(0, |number, digit| Some(number * 10 + u32::from(digit.checked_sub(b'0')?)))
    }
}

/// Who watches.
#[derive(Debug)]
pub struct Oracle {
    names: Rc<Names>,
    puts: Vec<Put>,
    /// Which put was to end as which object.
    ending: VecDeque<(Pid, ObjectId, u32)>,
    views: Vec<View>,
    calls: Calls,
    violation: Option<Violation>,
    /// The longest that a reader may count on a lease.
    lease: Duration,
}

impl Oracle {
    /// Nothing seen yet.
    pub fn new(plan: &Plan) -> Self {
        Self {
            names: Rc::new(Names::new(plan.work.keys)),
            puts: Vec::new(),
            ending: VecDeque::new(),
            views: (0..plan.masters).map(|_| View::new(plan)).collect(),
            calls: Calls::default(),
            violation: None,
            lease: plan.rules.lease,
        }
    }

    /// The keys.
    pub fn names(&self) -> Rc<Names> {
        Rc::clone(&self.names)
    }

    /// The first thing that was seen that must not be.
    pub const fn violation(&self) -> Option<&Violation> {
        self.violation.as_ref()
    }

    /// Something was seen that must not be; the first is what counts.
    pub fn violate(&mut self, at: Instant, rule: Rule, what: fmt::Arguments<'_>) {
        self.violation.get_or_insert_with(|| Violation { at, rule, what: what.to_string() });
    }

    /// A master looked at its clock.
    pub fn looked(&mut self, pid: Pid, now: Instant) {
        let view = &mut self.views[pid.index()];
        view.now = view.now.max(now);
    }

    /// A master began another life: what an earlier one held is lost with it.
    pub fn master_began(&mut self, pid: Pid) {
        self.views[pid.index()].begin();
    }
}
