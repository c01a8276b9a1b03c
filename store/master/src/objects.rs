//! Puts, gets and removals over the wire: a batch is one call, its items are answered one by one.

use core::time::Duration;

use springtide_core::error::Code;
use springtide_core::id::Caller;
use springtide_core::key::Key;
use springtide_core::master::{Existence, Force, Probe, PutError, Quiet, Written};
use springtide_core::rng::mix;
use springtide_core::wire::message::{self as wire, Refusal};

use crate::answer::{split, whole};
use crate::convert::{self, BAD_KEY, Wishes};
use crate::dispatch::Call;
use crate::state::State;

fn millis(duration: Duration) -> u32 {
    u32::try_from(duration.as_millis()).unwrap_or(u32::MAX)
}

/// Tells the policy that a batch begins, if it has more than one item: calls of one item are told apart by nobody.
fn begin_batch<T>(state: &mut State, mut items: impl Iterator<Item = T>) {
    if items.nth(1).is_some() {
        state.master.begin_batch();
    }
}

pub(crate) fn get(state: &mut State, caller: Caller, call: Call<'_, '_>) {
    let ((), keys) = match split::<(), &[u8]>(call.frame.body) {
        Ok(parts) => parts,
        Err(error) => return call.answer.refuse(Code::INVALID_PARAMS, error),
    };
    begin_batch(state, keys.clone());
    let lease_ms = millis(state.master.config().lease);
    call.answer.batch(&wire::Leased { lease_ms }, |out| {
        for key in keys {
            let found = Key::new(key).map_err(|_| BAD_KEY).and_then(|key| {
                state.master.get(call.now, caller, key).map_err(|error| Refusal::new(error.code()))
            });
            match &found {
                Ok(_) => state.counts.hits += 1,
                Err(_) => state.counts.misses += 1,
            }
            out.put(&found.as_ref().map(convert::found));
        }
    });
}

pub(crate) fn exists(state: &mut State, caller: Caller, call: Call<'_, '_>) {
    let (probe, keys) = match split::<wire::ProbeKind, &[u8]>(call.frame.body) {
        Ok(parts) => parts,
        Err(error) => return call.answer.refuse(Code::INVALID_PARAMS, error),
    };
    let probe = match probe {
        wire::ProbeKind::Plain => Probe::Plain,
        wire::ProbeKind::RenewLease => Probe::RenewLease,
    };
    call.answer.batch(&(), |out| {
        for key in keys {
            let presence = match Key::new(key).map(|key| state.master.exists(call.now, caller, key, probe)) {
                Err(_) => wire::Presence::BadKey,
                Ok(Existence::Present) => wire::Presence::Present,
                Ok(Existence::Writing) => wire::Presence::Writing,
                Ok(Existence::Absent | Existence::Silent) => wire::Presence::Absent,
            };
            out.say(&presence);
        }
    });
}

pub(crate) fn put_start(state: &mut State, caller: Caller, call: Call<'_, '_>) {
    let (asked, items) = match split::<wire::Options<'_>, wire::Wanted<'_>>(call.frame.body) {
        Ok(parts) => parts,
        Err(error) => return call.answer.refuse(Code::INVALID_PARAMS, error),
    };
    let mut wishes = Wishes::new(&state.master, &asked);
    call.answer.batch(&granted(state), |out| {
        for (place, item) in items.enumerate() {
            // One key twice in a batch is two puts, not one that is repeated.
            let caller = Caller { request: item_request(caller.request, place), ..caller };
            let grant = Key::new(item.key).map_err(|_| BAD_KEY).and_then(|key| {
                let options = wishes.options(&asked);
                let started = state.master.put_start(call.now, caller, key, item.len, &options);
                started.map(|started| convert::grant(&started)).map_err(convert::put_refusal)
            });
            if let (0, true, Ok(first)) = (place, asked.together, &grant) {
                wishes.follow(first);
            }
            out.put(&grant);
        }
    });
}

/// The request that the item at `place` of a batch makes: another for each place, so that one key twice is two puts,
/// and the same when the batch comes again.
const fn item_request(request: u64, place: usize) -> u64 {
    match place {
        0 => request,
        place => mix(request).wrapping_add(place as u64),
    }
}

fn granted(state: &State) -> wire::Granted {
    wire::Granted { term: state.master.term(), write_ms: millis(state.master.config().put_discard) }
}

pub(crate) fn put_end(state: &mut State, caller: Caller, call: Call<'_, '_>) {
    let ((), items) = match split::<(), wire::Finished>(call.frame.body) {
        Ok(parts) => parts,
        Err(error) => return call.answer.refuse(Code::INVALID_PARAMS, error),
    };
    begin_batch(state, items.clone());
    call.answer.batch(&(), |out| {
        for item in items {
            let written = Written { checksum: item.checksum, failed: &item.failed };
            let ended = state.master.put_end(call.now, caller, item.object, written);
            state.counts.puts += u64::from(ended.is_ok());
            out.put(&ended.map_err(|error| Refusal::new(error.code())));
        }
    });
}

pub(crate) fn put_abort(state: &mut State, caller: Caller, call: Call<'_, '_>) {
    let ((), items) = match split::<(), wire::Abandoned>(call.frame.body) {
        Ok(parts) => parts,
        Err(error) => return call.answer.refuse(Code::INVALID_PARAMS, error),
    };
    call.answer.batch(&(), |out| {
        for item in items {
            let aborted = state.master.put_abort(call.now, caller, item.object, quiet(item.quiet));
            out.put(&aborted.map_err(|error| Refusal::new(error.code())));
        }
    });
}

fn quiet(quiet: bool) -> Quiet {
    if quiet { Quiet::Yes } else { Quiet::Unknown }
}

/// Most extents that one call reserves.
const MAX_RESERVE: u32 = 1_024;

pub(crate) fn reserve(state: &mut State, caller: Caller, call: Call<'_, '_>) {
    let request: wire::Reserve<'_> = match whole(call.frame.body) {
        Ok(request) => request,
        Err(error) => return call.answer.refuse(Code::INVALID_PARAMS, error),
    };
    if request.count > MAX_RESERVE {
        return call
            .answer
            .refuse(Code::INVALID_PARAMS, format_args!("at most {MAX_RESERVE} extents a call"));
    }
    let wishes = Wishes::new(&state.master, &request.options);
    let options = wishes.options(&request.options);
    let mut started = Vec::new();
    let result: Result<(), PutError> =
        state.master.reserve(call.now, caller, request.len, request.count, &options, &mut started);
    match result {
        Ok(()) => call.answer.batch(&granted(state), |out| {
            for started in &started {
                out.put(&Ok::<_, Refusal>(convert::grant(started)));
            }
        }),
        Err(error) => call.answer.refuse(error.code(), error),
    }
}

pub(crate) fn publish(state: &mut State, caller: Caller, call: Call<'_, '_>) {
    let ((), items) = match split::<(), wire::Publish<'_>>(call.frame.body) {
        Ok(parts) => parts,
        Err(error) => return call.answer.refuse(Code::INVALID_PARAMS, error),
    };
    begin_batch(state, items.clone());
    call.answer.batch(&(), |out| {
        for item in items {
            let published = Key::new(item.key).map_err(|_| BAD_KEY).and_then(|key| {
                let wire::Publish { object, len, checksum, ref failed, .. } = item;
                let result =
                    state.master.publish(call.now, caller, object, key, len, Written { checksum, failed });
                result.map_err(|error| Refusal::new(error.code()))
            });
            state.counts.puts += u64::from(published.is_ok());
            out.put(&published);
        }
    });
}

pub(crate) fn force_of(forcing: wire::Forcing) -> Force {
    match forcing {
        wire::Forcing::No => Force::No,
        wire::Forcing::Yes => Force::Yes,
    }
}

pub(crate) fn remove(state: &mut State, caller: Caller, call: Call<'_, '_>) {
    let (forcing, keys) = match split::<wire::Forcing, &[u8]>(call.frame.body) {
        Ok(parts) => parts,
        Err(error) => return call.answer.refuse(Code::INVALID_PARAMS, error),
    };
    call.answer.batch(&(), |out| {
        for key in keys {
            let removed = Key::new(key).map_err(|_| BAD_KEY).and_then(|key| {
                let result = state.master.remove(call.now, caller, key, force_of(forcing));
                result.map_err(|error| Refusal::new(error.code()))
            });
            state.counts.removed += u64::from(removed.is_ok());
            out.put(&removed);
        }
    });
}

pub(crate) fn clear(state: &mut State, caller: Caller, call: Call<'_, '_>) {
    let (request, keys) = match split::<wire::Clear<'_>, &[u8]>(call.frame.body) {
        Ok(parts) => parts,
        Err(error) => return call.answer.refuse(Code::INVALID_PARAMS, error),
    };
    let segment = state.master.segments_named(request.segment).next().map(|segment| segment.id);
    if segment.is_none() && !request.segment.is_empty() {
        return call.answer.refuse(Code::SEGMENT_NOT_FOUND, Code::SEGMENT_NOT_FOUND);
    }
    call.answer.batch(&(), |out| {
        for key in keys {
            let cleared = Key::new(key).map_err(|_| BAD_KEY).and_then(|key| {
                let result = state.master.clear(call.now, caller, key, segment);
                result.map_err(|error| Refusal::new(error.code()))
            });
            out.put(&cleared);
        }
    });
}

pub(crate) fn copy_start(state: &mut State, caller: Caller, call: Call<'_, '_>) {
    let request: wire::CopyStart<'_> = match whole(call.frame.body) {
        Ok(request) => request,
        Err(error) => return call.answer.refuse(Code::INVALID_PARAMS, error),
    };
    let Ok(key) = Key::new(request.key) else { return call.answer.refuse(BAD_KEY.code, BAD_KEY) };
    let Some(to) = state.master.segments_named(request.to).next().map(|segment| segment.id) else {
        return call.answer.refuse(Code::SEGMENT_NOT_FOUND, Code::SEGMENT_NOT_FOUND);
    };
    let known = state.master.stat(call.now, caller, key);
    let (len, checksum) = known.map(|stat| (stat.len, stat.checksum)).unwrap_or_default();
    let plan = state.master.copy_start(call.now, caller, key, to).map(|task| wire::CopyPlan {
        object: task.object,
        len,
        checksum,
        from: convert::location(&task.from),
        to: convert::placement(&task.to),
        term: task.to.ticket.term,
    });
    call.answer.head_or(plan, |error| error.code());
}

pub(crate) fn copy_end(state: &mut State, caller: Caller, call: Call<'_, '_>) {
    let end: wire::CopyEnd = match whole(call.frame.body) {
        Ok(end) => end,
        Err(error) => return call.answer.refuse(Code::INVALID_PARAMS, error),
    };
    let result = if end.good {
        state.master.copy_end(call.now, caller, end.object)
    } else {
        state.master.copy_abort(call.now, caller, end.object, quiet(end.quiet))
    };
    call.answer.head_or(result, |error| error.code());
}
