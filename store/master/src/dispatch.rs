//! From a request frame to its reply, whatever the method.

use springtide_core::error::Code;
use springtide_core::id::Incarnation;
use springtide_core::time::Instant;
use springtide_core::wire::frame::Frame;
use springtide_core::wire::message::{self as wire, Hello, PROTOCOL, Welcome};
use springtide_rpc::Replies;

use crate::answer::{Answer, whole};
use crate::calls::Calls;
use crate::state::{Greeted, Peer, State};
use crate::{listing, members, objects};

/// What a handler has at hand.
pub(crate) struct Call<'a, 'r> {
    pub(crate) now: Instant,
    pub(crate) frame: &'a Frame<'a>,
    pub(crate) answer: Answer<'a, 'r>,
}

/// Answers `frame`, exactly once.
pub(crate) fn dispatch(
    (state, calls): (&mut State, &Calls),
    now: Instant,
    peer: &mut Peer,
    frame: &Frame<'_>,
    replies: &mut Replies<'_>,
) {
    // Also for calls that ask nothing of the machine: its time is that of the last frame.
    let now = state.master.observe(now);
    let answer = Answer::new(&frame.header, replies, calls);
    if frame.header.method == wire::HELLO {
        return hello(state, peer, frame, answer);
    }
    let caller = match peer.caller(frame.header.request) {
        Ok(caller) => caller,
        Err(code) => return answer.refuse(code, "say hello first"),
    };
    let call = Call { now, frame, answer };
    match frame.header.method {
        wire::REGISTER => members::register(state, caller, call),
        wire::HEARTBEAT => members::heartbeat(state, caller, call),
        wire::LEAVE => members::leave(state, caller, call),
        wire::MOUNT => members::mount(state, caller, call),
        wire::UNMOUNT => members::unmount(state, caller, call),
        wire::SEGMENT => members::segment(state, call),
        wire::SEGMENTS => members::segments(state, call),
        wire::MEMBERS => members::members(state, call),
        wire::GET => objects::get(state, caller, call),
        wire::EXISTS => objects::exists(state, caller, call),
        wire::PUT_START => objects::put_start(state, caller, call),
        wire::PUT_END => objects::put_end(state, caller, call),
        wire::PUT_ABORT => objects::put_abort(state, caller, call),
        wire::RESERVE => objects::reserve(state, caller, call),
        wire::PUBLISH => objects::publish(state, caller, call),
        wire::REMOVE => objects::remove(state, caller, call),
        wire::CLEAR => objects::clear(state, caller, call),
        wire::COPY_START => objects::copy_start(state, caller, call),
        wire::COPY_END => objects::copy_end(state, caller, call),
        wire::STAT => listing::stat(state, caller, call),
        wire::SCAN => listing::scan(state, caller, call),
        wire::REMOVE_MATCHING => listing::remove_matching(state, caller, call),
        wire::FIGURES => call.answer.head(&state.figures()),
        method => {
            let text = format!("method {} is unknown to this master; update it", method.0);
            call.answer.refuse(Code::NOT_IMPLEMENTED, text);
        }
    }
}

/// Settles who calls, which protocol is spoken, and that both mean the same cluster.
fn hello(state: &mut State, peer: &mut Peer, frame: &Frame<'_>, answer: Answer<'_, '_>) {
    let hello: Hello<'_> = match whole(frame.body) {
        Ok(hello) => hello,
        Err(error) => return answer.refuse(Code::INVALID_PARAMS, error),
    };
    let (oldest, newest) = PROTOCOL;
    if hello.newest < oldest || hello.oldest > newest {
        let text = format!(
            "the caller speaks protocols {} to {}, this master {oldest} to {newest}; update the older one",
            hello.oldest, hello.newest
        );
        return answer.refuse(Code::INVALID_VERSION, text);
    }
    if hello.cluster != 0 && hello.cluster != state.cluster {
        let text = format!("the caller wants cluster {:016x}, this is {:016x}", hello.cluster, state.cluster);
        return answer.refuse(Code::WRONG_CLUSTER, text);
    }
    if hello.expected != Incarnation::default() && hello.expected != state.incarnation {
        return answer.refuse(Code::CLIENT_NOT_FOUND, "this master has been restarted since");
    }
    let tenant = match state.master.tenant(hello.tenant) {
        Ok(tenant) => tenant,
        Err(error) => return answer.refuse(error.code(), error),
    };
    state.greeted += 1;
    *peer = Peer(Some(Greeted { incarnation: hello.incarnation, tenant, number: state.greeted }));
    answer.head(&Welcome {
        protocol: newest.min(hello.newest),
        cluster: state.cluster,
        incarnation: state.incarnation,
        term: state.master.term(),
        mode: wire::Mode::Pool,
    });
}
