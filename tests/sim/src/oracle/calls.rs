//! Every request has exactly one answer, and every operation one result.

use springtide_core::time::Instant;
use springtide_core::wire::frame::{Frame, Kind, decode};

use super::{Oracle, Rule};

/// What is counted.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Calls {
    /// Calls whose caller waits.
    open: usize,
    /// Operations that have no result yet.
    operations: usize,
    /// Operations that had one.
    ended: u64,
}

impl Oracle {
    /// A process made a call.
    pub fn asked(&mut self, _now: Instant) {
        self.calls.open += 1;
    }

    /// A call ended.
    pub fn answered(&mut self, now: Instant) {
        match self.calls.open.checked_sub(1) {
            Some(open) => self.calls.open = open,
            None => self.violate(now, Rule::Answers, format_args!("a call ended that nobody made")),
        }
    }

    /// Callers died with so many calls.
    pub fn callers_died(&mut self, calls: usize) {
        self.calls.open = self.calls.open.saturating_sub(calls);
    }

    /// A server handled `request`, and wrote `out`.
    pub fn replied(&mut self, now: Instant, request: &Frame<'_>, out: &[u8]) {
        let (method, number) = (request.header.method, request.header.request);
        let mut rest = out;
        let mut replies = 0;
        while let Ok(Some((frame, used))) = decode(rest) {
            let pairs = frame.header.kind == Kind::Reply
                && frame.header.request == number
                && frame.header.method == method;
            if !pairs {
                let what = format_args!("the answer to {method:?} is for another request");
                return self.violate(now, Rule::Answers, what);
            }
            replies += 1;
            rest = &rest[used..];
        }
        if replies != 1 || !rest.is_empty() {
            self.violate(now, Rule::Answers, format_args!("{method:?} got {replies} answers"));
        }
    }

    /// A caller began an operation.
    pub const fn op_began(&mut self) {
        self.calls.operations += 1;
    }

    /// An operation has its result.
    pub const fn op_ended(&mut self) {
        self.calls.operations = self.calls.operations.saturating_sub(1);
        self.calls.ended += 1;
    }

    /// Calls whose caller waits.
    pub(super) const fn open_calls(&self) -> usize {
        self.calls.open
    }

    /// Operations that had their result.
    pub const fn operations(&self) -> u64 {
        self.calls.ended
    }
}
