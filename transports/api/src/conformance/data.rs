//! Rules 1, 3, 4 and 11: which ops are in flight, and what they do to memory.

use springtide_core::id::{Incarnation, PathId, RegionId, RemoteId, SegmentId};

use super::rig::{Checked, KEY, Rig, broken, id};
use super::{Factory, Side};
use crate::{Budget, Event, Exposure, Op, Status, SubmitError, Verb};

const MIB: u64 = 1 << 20;

pub(super) fn exact_prefix(factory: Factory<'_>) -> Checked {
    more_than_room(factory)?;
    a_bad_op_in_the_middle(factory)?;
    let mut rig = Rig::new(1, factory, MIB)?;
    let (path, op) = (rig.path, rig.read(0, 0, 64));
    rig.end(Side::Initiator)?.close(path);
    let refused = matches!(rig.submit(&[op])?, Err(SubmitError { accepted: 0, .. }));
    rig.require(refused, || "a closed path took an op".into())?;
    rig.settle();
    rig.require(rig.status(&op).is_none(), || "an op that was not accepted completed".into())
}

/// Far more ops than the path has room for, while the peer is frozen.
fn more_than_room(factory: Factory<'_>) -> Checked {
    let mut rig = Rig::new(1, factory, MIB)?;
    let count = rig.room()? + 40;
    let count = count.min((rig.local.len() / 128) as usize);
    let ops: Vec<Op> = (0..count as u64).map(|n| rig.read(n * 128, n * 128 + 1, 64)).collect();
    let accepted = match rig.submit(&ops)? {
        Ok(()) => ops.len(),
        Err(SubmitError { accepted, .. }) => {
            rig.require(accepted < ops.len(), || "an error, but every op was accepted".into())?;
            accepted
        }
    };
    let (flying, left) = ops.split_at(accepted);
    let statuses = rig.finish(flying)?;
    rig.require(statuses.iter().all(|s| *s == Status::Done), || format!("{statuses:?}"))?;
    rig.settle();
    rig.require(left.iter().all(|op| rig.status(op).is_none()), || {
        "an op beyond the accepted ones completed".into()
    })?;
    rig.same()?;
    rig.run(left)?;
    rig.same()
}

fn a_bad_op_in_the_middle(factory: Factory<'_>) -> Checked {
    let mut rig = Rig::new(1, factory, MIB)?;
    let mut ops: Vec<Op> = (0..7).map(|n| rig.read(n * 100, n * 1_000, 99)).collect();
    ops[3].local = id::<RegionId>(999);
    let accepted = match rig.submit(&ops)? {
        Ok(()) => 7,
        Err(SubmitError { accepted, .. }) => accepted,
    };
    rig.require(accepted <= 3 || accepted == 7, || format!("{accepted} accepted, yet op 3 is bad"))?;
    rig.finish(&ops[..accepted])?;
    rig.settle();
    let silent = ops[accepted..].iter().all(|op| rig.status(op).is_none());
    rig.require(silent, || "an op after the bad one completed".into())?;
    rig.same()
}

pub(super) fn done_means_there(factory: Factory<'_>) -> Checked {
    let mut rig = Rig::new(3, factory, 8 * MIB)?;
    let sizes =
        [1, 2, 3, 7, 63, 64, 65, 1_000, 4_095, 4_096, 4_097, 65_535, 65_536, 65_537, 262_145, 1_048_576];
    for round in 0..4 {
        rig.fill(3 + round, 90 + round);
        let mut ops = Vec::new();
        // Reads go from the lower half there to the upper half here, writes the other way round.
        let half = 4 * MIB;
        let (mut read, mut write) = (half + 1 + round, half + 3 + round);
        for (n, &size) in sizes.iter().enumerate() {
            let source = 17 * n as u64 + round;
            ops.extend(cut(&mut rig, Verb::Read, read, source, size)?);
            ops.extend(cut(&mut rig, Verb::Write, source + 5, write, size)?);
            // A gap between destinations, odd on purpose: whatever lands in it is seen.
            read += size + 13;
            write += size + 29;
        }
        if round % 2 == 1 {
            ops.reverse();
        }
        seen_when_done(&mut rig, &ops)?;
        rig.same()?;
    }
    backwards(factory)
}

/// Cuts one movement into ops that the transport takes.
fn cut(rig: &mut Rig, verb: Verb, at: u64, to: u64, len: u64) -> Checked<Vec<Op>> {
    let capabilities = *rig.end(Side::Initiator)?.capabilities();
    let chunk = if capabilities.chunk == 0 { u64::MAX } else { capabilities.chunk };
    let mut ops = Vec::new();
    let mut done = 0;
    while done < len {
        let (at, to) = (at + done, to + done);
        let seam = (chunk - at % chunk).min(chunk - to % chunk);
        let part = (len - done).min(u64::from(capabilities.max_op)).min(seam);
        ops.push(rig.op(verb, at, to, part as u32));
        done += part;
    }
    Ok(ops)
}

/// Posts `ops`; when one is reported done, its bytes must be there at that moment.
fn seen_when_done(rig: &mut Rig, ops: &[Op]) -> Checked {
    for op in ops {
        rig.apply(op);
    }
    let mut pending: Vec<Op> = ops.to_vec();
    let mut left = ops;
    for _ in 0..1_000_000 {
        let room = rig.room()?.min(left.len());
        let (now, later) = left.split_at(room);
        rig.post(now)?;
        left = later;
        rig.step();
        let (ended, going) = pending.into_iter().partition(|op| rig.status(op).is_some());
        pending = going;
        let ended: Vec<Op> = ended;
        for op in ended {
            rig.require(rig.status(&op) == Some(Status::Done), || format!("{:?}", rig.ended[&op.id].0))?;
            let (block, model, start) = match op.verb {
                Verb::Read => (&rig.local, &rig.local_model, op.at as usize),
                Verb::Write => (&rig.owned, &rig.owned_model, op.to as usize),
            };
            let mut bytes = vec![0; op.len as usize];
            block.read(start as u64, &mut bytes).expect("the op lies inside");
            let right = bytes == model[start..start + bytes.len()];
            rig.require(right, || format!("done, but the bytes of {op:?} are not there"))?;
        }
        if pending.is_empty() {
            return Ok(());
        }
    }
    Err(broken(3, "ops do not end".into()))
}

/// The same two ends, the other way round, over a path that the target opens.
fn backwards(factory: Factory<'_>) -> Checked {
    let mut rig = Rig::new(3, factory, MIB)?;
    let address = rig.address(Side::Initiator)?;
    if address.is_empty() {
        return Ok(());
    }
    let (segment, path, remote): (RegionId, PathId, RemoteId) = (id(40), id(41), id(42));
    let (there, here) = (rig.world.block(MIB), rig.world.block(MIB));
    there.write(0, &rig.local_model[..MIB as usize]).expect("as long as the block");
    let exposure = Exposure::Segment { owner: Incarnation(9), segment: id::<SegmentId>(8), key: KEY };
    rig.must(Side::Initiator, "expose a segment", |t| t.expose(segment, &there, exposure))?;
    rig.must(Side::Target, "expose a buffer", |t| t.expose(id(43), &here, Exposure::Source))?;
    let now = rig.world.now();
    rig.must(Side::Target, "open a path", |t| t.open(now, path, &address))?;
    rig.until("the path back comes up", |rig| rig.saw(Side::Target, Event::Up(path)))?;
    let mut description = Vec::new();
    rig.must(Side::Initiator, "describe", |t| t.describe(segment, &mut description))?;
    rig.must(Side::Target, "import", |t| t.import(path, remote, &description))?;
    let op = Op { local: id(43), remote, ..rig.read(100, 333, 50_001) };
    let taken = rig.end(Side::Target)?.submit(path, &[op]).is_ok();
    rig.require(taken, || "the path back takes no op".into())?;
    let range = 333..333 + 50_001;
    let want = rig.local_model[range].to_vec();
    let there = || {
        let mut bytes = vec![0; want.len()];
        here.read(100, &mut bytes).expect("inside the block");
        bytes == want
    };
    rig.until("the read back ends", |_| there())?;
    rig.same()
}

pub(super) fn room(factory: Factory<'_>) -> Checked {
    let mut rig = Rig::new(4, factory, MIB)?;
    for round in 0..5 {
        rig.until("an idle path has room", |_| true)?;
        let room = rig.room()?;
        rig.require(room > 0, || "a path that is up and idle has no room".into())?;
        let ops: Vec<Op> =
            (0..room as u64).map(|n| rig.read(n * 64 % (MIB / 2), n * 64 % (MIB / 2), 64)).collect();
        // In two parts, so that the answer in between is tested as well.
        let (first, rest) = ops.split_at(room / (round + 1));
        let took = rig.submit(first)?.is_ok();
        rig.require(took, || format!("room for {room}, but {} are not taken", first.len()))?;
        let left = rig.room()?.min(rest.len());
        let took = rig.submit(&rest[..left])?.is_ok();
        rig.require(took, || format!("room for {left} more, but they are not taken"))?;
        let posted: Vec<Op> = first.iter().chain(&rest[..left]).copied().collect();
        rig.finish(&posted)?;
    }
    let (unknown, path) = (id::<PathId>(77), rig.path);
    let room = rig.end(Side::Initiator)?.room(unknown);
    rig.require(room == 0, || format!("an unknown path has room for {room}"))?;
    rig.end(Side::Initiator)?.close(path);
    let room = rig.room()?;
    rig.require(room == 0, || format!("a closed path has room for {room}"))
}

pub(super) fn no_stray_bytes(factory: Factory<'_>) -> Checked {
    for progress in 0..10 {
        for close in [End::Cancel, End::Close, End::Kill] {
            cut_short(factory, progress, close)?;
        }
    }
    Ok(())
}

#[derive(Clone, Copy)]
enum End {
    Cancel,
    Close,
    Kill,
}

/// Lets ops go on for a while in small steps, ends them, and looks at what is around their destinations.
fn cut_short(factory: Factory<'_>, rounds: u32, end: End) -> Checked {
    let mut rig = Rig::new(11, factory, MIB)?;
    let len = rig.max_op(16)? - 64;
    let stride = u64::from(len) + 64;
    let mut ops = Vec::new();
    for n in 0..8 {
        ops.push(rig.read(n * stride + 32, n * stride + 32, len));
    }
    for n in 8..15 {
        ops.push(rig.write(n * stride + 32, n * stride + 32, len));
    }
    rig.post(&ops)?;
    for _ in 0..rounds {
        rig.progress(Side::Initiator, Budget { ops: 4, bytes: 20_000 });
        rig.progress(Side::Target, Budget { ops: 4, bytes: 20_000 });
        rig.world.pass(core::time::Duration::from_micros(20));
    }
    let path = rig.path;
    match end {
        End::Cancel => ops.iter().try_for_each(|op| {
            rig.end(Side::Initiator)?.cancel(op.id);
            Ok(())
        })?,
        End::Close => rig.end(Side::Initiator)?.close(path),
        End::Kill => rig.world.kill(),
    }
    let statuses = rig.finish(&ops)?;
    let loose: Vec<Op> =
        ops.iter().zip(&statuses).filter(|(_, s)| **s != Status::Done).map(|(op, _)| *op).collect();
    rig.same_but(&loose)
}
