//! Members and segments over the wire.

use springtide_core::error::Code;
use springtide_core::id::{Caller, SegmentId};
use springtide_core::master::{Duty, Member, SegmentInfo, SegmentSpec};
use springtide_core::members::Fences;
use springtide_core::space::{AllocatorKind, Visibility};
use springtide_core::wire::codec::put;
use springtide_core::wire::message as wire;

use crate::answer::{split, whole};
use crate::dispatch::Call;
use crate::state::State;

pub(crate) fn register(state: &mut State, caller: Caller, call: Call<'_, '_>) {
    let request: wire::Register<'_> = match whole(call.frame.body) {
        Ok(request) => request,
        Err(error) => return call.answer.refuse(Code::INVALID_PARAMS, error),
    };
    let member = Member {
        name: request.name,
        address: request.address,
        mode: request.mode,
        key: (state.secrets.0)(),
        fences: if request.fences { Fences::Answers } else { Fences::Time },
    };
    let registered = state.master.register(call.now, caller.incarnation, &member);
    match registered {
        // Clients come and go all the time; nodes are worth a line.
        Ok(_) if request.address.is_empty() => tracing::debug!(name = request.name, "client registered"),
        Ok(_) => tracing::info!(name = request.name, address = request.address, "node registered"),
        Err(error) => tracing::warn!(name = request.name, %error, "a member was refused"),
    }
    let registered = registered.map(|registered| wire::Registered {
        ticket_key: registered.ticket_key,
        heartbeat_ms: registered.heartbeat.as_millis() as u32,
        ttl_ms: registered.ttl.as_millis() as u32,
    });
    call.answer.head_or(registered, |error| error.code());
}

pub(crate) fn heartbeat(state: &mut State, caller: Caller, call: Call<'_, '_>) {
    let (_, fenced) = match split::<wire::Heartbeat, u64>(call.frame.body) {
        Ok(parts) => parts,
        Err(error) => return call.answer.refuse(Code::INVALID_PARAMS, error),
    };
    let beat = state.master.heartbeat(call.now, caller.incarnation, fenced);
    call.answer.tail(&wire::Beat { status: beat.status }, |out| {
        for Duty::Fence { number, segment, extent, below } in state.master.duties(caller.incarnation) {
            put(out, &wire::FenceDuty { number, segment, extent, below });
        }
    });
}

pub(crate) fn leave(state: &mut State, caller: Caller, call: Call<'_, '_>) {
    state.master.leave(call.now, caller.incarnation);
    call.answer.head(&());
}

pub(crate) fn mount(state: &mut State, caller: Caller, call: Call<'_, '_>) {
    let request: wire::Mount<'_> = match whole(call.frame.body) {
        Ok(request) => request,
        Err(error) => return call.answer.refuse(Code::INVALID_PARAMS, error),
    };
    let allocator = match request.uniform {
        0 => AllocatorKind::Offset,
        page => AllocatorKind::Uniform { page },
    };
    let spec = SegmentSpec { name: request.name, len: request.len, allocator, ..SegmentSpec::default() };
    let mounted = state.master.mount(call.now, caller.incarnation, &spec);
    if let Ok(segment) = mounted {
        tracing::info!(name = request.name, bytes = request.len, %segment, "segment mounted");
    }
    call.answer.head_or(mounted, |error| error.code());
}

pub(crate) fn unmount(state: &mut State, caller: Caller, call: Call<'_, '_>) {
    match whole::<SegmentId>(call.frame.body) {
        Ok(id) => {
            let result = state.master.unmount(call.now, caller.incarnation, id);
            call.answer.head_or(result, |error| error.code());
        }
        Err(error) => call.answer.refuse(Code::INVALID_PARAMS, error),
    }
}

fn describe<'a>(state: &'a State, segment: &SegmentInfo<'a>) -> Option<wire::SegmentInfo<'a>> {
    let owner = state.master.member(segment.owner)?;
    Some(wire::SegmentInfo {
        id: segment.id,
        name: segment.name,
        owner: owner.name,
        incarnation: owner.incarnation,
        address: owner.address,
        len: segment.len,
        used: segment.used,
        largest_hole: segment.largest_hole,
        open: segment.visible == Visibility::Open,
    })
}

pub(crate) fn segment(state: &State, call: Call<'_, '_>) {
    let id: SegmentId = match whole(call.frame.body) {
        Ok(id) => id,
        Err(error) => return call.answer.refuse(Code::INVALID_PARAMS, error),
    };
    match state.master.segment(id).and_then(|segment| describe(state, &segment)) {
        Some(info) => call.answer.head(&info),
        None => call.answer.refuse(Code::SEGMENT_NOT_FOUND, Code::SEGMENT_NOT_FOUND),
    }
}

pub(crate) fn segments(state: &State, call: Call<'_, '_>) {
    call.answer.tail(&(), |out| {
        for segment in state.master.segments() {
            if let Some(info) = describe(state, &segment) {
                put(out, &info);
            }
        }
    });
}

pub(crate) fn members(state: &State, call: Call<'_, '_>) {
    call.answer.tail(&(), |out| {
        for member in state.master.members() {
            let segments = state.master.segments().filter(|segment| segment.owner == member.id).count();
            put(
                out,
                &wire::MemberInfo {
                    name: member.name,
                    address: member.address,
                    incarnation: member.incarnation,
                    status: member.status,
                    segments: segments as u32,
                    duties: member.duties as u32,
                },
            );
        }
    });
}
