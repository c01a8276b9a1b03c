//! Looking at objects, and removing them by pattern: bounded steps, patterns outside the core.

use regex::bytes::{Regex, RegexBuilder};
use springtide_core::error::Code;
use springtide_core::id::Caller;
use springtide_core::key::Key;
use springtide_core::master::Cursor;
use springtide_core::wire::codec::put;
use springtide_core::wire::message::{self as wire, Pattern, Refusal};

use crate::answer::{split, whole};
use crate::convert::{self, BAD_KEY};
use crate::dispatch::Call;
use crate::objects::force_of;
use crate::state::State;

/// Objects that one step looks at: well under a millisecond.
const STEP: u32 = 1_024;
/// Most keys on one page of a listing.
const MAX_PAGE: u32 = 4_096;
/// Most bytes that one page of a listing takes.
const MAX_PAGE_BYTES: usize = 1 << 20;
/// Most bytes that a compiled pattern takes; what is larger is refused.
const MAX_REGEX: usize = 1 << 20;

/// What is said of an empty expression.
const EMPTY: &str = "the regex is empty and would match every key; ask for all keys instead";

/// A pattern, ready to use.
enum Matcher<'a> {
    All,
    Prefix(&'a [u8]),
    Regex(Regex),
}

impl<'a> Matcher<'a> {
    fn new(pattern: Pattern<'a>) -> Result<Self, regex::Error> {
        Ok(match pattern {
            Pattern::All => Self::All,
            Pattern::Prefix(prefix) => Self::Prefix(prefix),
            // It would match every key: likelier a variable that was not set than a wish to remove all there is.
            Pattern::Regex("") => return Err(regex::Error::Syntax(EMPTY.to_owned())),
            Pattern::Regex(text) => {
                Self::Regex(RegexBuilder::new(text).size_limit(MAX_REGEX).dfa_size_limit(MAX_REGEX).build()?)
            }
        })
    }

    fn matches(&self, key: &[u8]) -> bool {
        match self {
            Self::All => true,
            Self::Prefix(prefix) => key.starts_with(prefix),
            Self::Regex(regex) => regex.is_match(key),
        }
    }
}

pub(crate) fn stat(state: &State, caller: Caller, call: Call<'_, '_>) {
    let ((), keys) = match split::<(), &[u8]>(call.frame.body) {
        Ok(parts) => parts,
        Err(error) => return call.answer.refuse(Code::INVALID_PARAMS, error),
    };
    call.answer.batch(&(), |out| {
        for key in keys {
            let stat = Key::new(key).map_err(|_| BAD_KEY).and_then(|key| {
                let stat = state.master.stat(call.now, caller, key);
                stat.map(|stat| convert::stat(call.now, &stat)).ok_or(Refusal::new(Code::OBJECT_NOT_FOUND))
            });
            out.put(&stat);
        }
    });
}

pub(crate) fn scan(state: &State, caller: Caller, call: Call<'_, '_>) {
    let request: wire::Scan<'_> = match whole(call.frame.body) {
        Ok(request) => request,
        Err(error) => return call.answer.refuse(Code::INVALID_PARAMS, error),
    };
    let matcher = match Matcher::new(request.pattern) {
        Ok(matcher) => matcher,
        Err(error) => return call.answer.refuse(Code::INVALID_PARAMS, error),
    };
    let limit = request.limit.clamp(1, MAX_PAGE);
    let mut page = Vec::new();
    let mut listed = 0;
    // A step is at most as long as the room that is left on the page, so that no key is passed over.
    let mut cursor = Cursor(request.cursor);
    let mut steps = 0;
    while !cursor.is_end() && listed < limit && page.len() < MAX_PAGE_BYTES && steps < STEP {
        let budget = (limit - listed).min(64);
        cursor = state.master.scan(caller.tenant, cursor, budget, &mut |key, stat| {
            if matcher.matches(key) {
                put(&mut page, &wire::Listed { key, stat: convert::stat(call.now, stat) });
                listed += 1;
            }
        });
        steps += budget;
    }
    call.answer.tail(&wire::ScanPage { next: on_the_wire(cursor) }, |out| out.extend_from_slice(&page));
}

pub(crate) fn remove_matching(state: &mut State, caller: Caller, call: Call<'_, '_>) {
    let request: wire::RemoveMatching<'_> = match whole(call.frame.body) {
        Ok(request) => request,
        Err(error) => return call.answer.refuse(Code::INVALID_PARAMS, error),
    };
    let matcher = match Matcher::new(request.pattern) {
        Ok(matcher) => matcher,
        Err(error) => return call.answer.refuse(Code::INVALID_PARAMS, error),
    };
    let force = force_of(request.force);
    let matches = &mut |key: &[u8]| matcher.matches(key);
    let step = state.master.remove_step(call.now, caller, Cursor(request.cursor), STEP, force, matches);
    state.counts.removed += step.removed;
    let next = on_the_wire(step.next);
    call.answer.head(&wire::RemoveStep { next, removed: step.removed, skipped: step.skipped });
}

/// On the wire the end is 0, where a scan also begins.
fn on_the_wire(cursor: Cursor) -> u64 {
    if cursor.is_end() { 0 } else { cursor.0 }
}
