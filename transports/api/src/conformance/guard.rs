//! Rules 5, 6, 7, 8 and 13: what must be refused.

use springtide_core::id::{Incarnation, TicketId};
use springtide_core::range::Extent;
use springtide_core::ticket::Ticket;

use super::rig::{Checked, KEY, Rig, id, next_life};
use super::{Factory, Side};
use crate::{Budget, Event, Exposure, FenceKind, Op, Status, Verb};

const MIB: u64 = 1 << 20;

/// Runs ops one by one; each must be refused, and nothing may move.
fn all_refused(rig: &mut Rig, what: &str, ops: &[Op]) -> Checked {
    for op in ops {
        let status = rig.run(core::slice::from_ref(op))?[0];
        rig.require(status == Status::Refused, || format!("{what}: {status:?} for {op:?}"))?;
    }
    rig.same()
}

/// Runs an op that must end well.
fn done(rig: &mut Rig, what: &str, op: Op) -> Checked {
    let status = rig.run(&[op])?[0];
    rig.require(status == Status::Done, || format!("{what}: {status:?} for {op:?}"))?;
    rig.same()
}

pub(super) fn bounds(factory: Factory<'_>) -> Checked {
    let mut rig = Rig::new(5, factory, 64 << 10)?;
    // A ticket for everything, so that only the bounds can refuse.
    let everything = rig.sign(Incarnation(1), 10, Extent::new(0, u64::MAX));
    rig.ticket = id(5);
    rig.admit(rig.ticket, &everything)?;
    let (here, there) = (rig.local.len(), rig.owned.len());
    for verb in [Verb::Read, Verb::Write] {
        let outside = [
            (here - 100, 0, 101),
            (0, there - 100, 101),
            (here, 0, 1),
            (0, there, 1),
            (u64::MAX - 3, 0, 8),
            (0, u64::MAX - 3, 8),
            (here + 4_096, 0, 64),
            (0, there + 4_096, 64),
            (1 << 63, 0, 64),
            (0, 1 << 63, 64),
        ];
        for (at, to, len) in outside {
            let op = rig.op(verb, at, to, len);
            all_refused(&mut rig, "outside its memory", &[op])?;
        }
        let last = rig.op(verb, here - 100, there - 100, 100);
        done(&mut rig, "up to the last byte", last)?;
    }
    Ok(())
}

pub(super) fn stale_ids(factory: Factory<'_>) -> Checked {
    stale_here(factory)?;
    stale_there(factory)
}

/// Regions, remotes and tickets of the initiator.
fn stale_here(factory: Factory<'_>) -> Checked {
    let mut rig = Rig::new(6, factory, 64 << 10)?;
    let (region, other) = (rig.region, rig.world.block(64 << 10));
    rig.end(Side::Initiator)?.withdraw(region);
    let ops = [rig.read(0, 64, 99), rig.write(0, 64, 99)];
    all_refused(&mut rig, "a withdrawn region", &ops)?;
    let again = next_life(region);
    rig.must(Side::Initiator, "expose", |t| t.expose(again, &other, Exposure::Source))?;
    let ops = [rig.read(0, 64, 99), rig.write(0, 64, 99)];
    all_refused(&mut rig, "a region whose slot is used again", &ops)?;
    rig.require(other.to_vec().iter().all(|byte| *byte == 0), || "somebody else's region was hit".into())?;
    rig.end(Side::Initiator)?.withdraw(again);
    let (region, local) = (next_life(again), rig.local.clone());
    rig.region = region;
    rig.must(Side::Initiator, "expose", |t| t.expose(region, &local, Exposure::Source))?;

    let ticket = rig.ticket;
    rig.end(Side::Initiator)?.retire(ticket);
    let op = rig.write(0, 64, 99);
    all_refused(&mut rig, "a retired ticket", &[op])?;
    let good = rig.sign(Incarnation(1), 11, Extent::new(0, rig.owned.len()));
    rig.admit(next_life(ticket), &good)?;
    let op = rig.write(0, 64, 99);
    all_refused(&mut rig, "a ticket whose slot is used again", &[op])?;
    rig.ticket = next_life(ticket);
    let op = rig.write(0, 64, 99);
    done(&mut rig, "the new ticket", op)?;

    let remote = rig.remote;
    rig.end(Side::Initiator)?.forget(remote);
    let ops = [rig.read(0, 64, 99), rig.write(0, 64, 99)];
    all_refused(&mut rig, "a forgotten remote", &ops)?;
    let description = rig.describe()?;
    rig.remote = next_life(remote);
    rig.import(&description)?;
    let op = Op { remote, ..rig.read(0, 64, 99) };
    all_refused(&mut rig, "a remote whose slot is used again", &[op])?;
    let op = rig.read(0, 64, 99);
    done(&mut rig, "the new remote", op)
}

/// The segment goes while a peer knows it.
fn stale_there(factory: Factory<'_>) -> Checked {
    let mut rig = Rig::new(6, factory, 64 << 10)?;
    let (segment, other) = (rig.segment, rig.world.block(64 << 10));
    rig.end(Side::Target)?.withdraw(segment);
    let ops = [rig.read(0, 64, 99), rig.write(0, 64, 99)];
    all_refused(&mut rig, "a withdrawn segment", &ops)?;
    let exposure = Exposure::Segment { owner: Incarnation(1), segment: id(3), key: KEY };
    let again = next_life(segment);
    rig.must(Side::Target, "expose", |t| t.expose(again, &other, exposure))?;
    let ops = [rig.read(0, 64, 99), rig.write(0, 64, 99)];
    all_refused(&mut rig, "a segment whose slot is used again", &ops)?;
    rig.require(other.to_vec().iter().all(|byte| *byte == 0), || "somebody else's segment was hit".into())
}

pub(super) fn tickets(factory: Factory<'_>) -> Checked {
    let mut rig = Rig::new(7, factory, 64 << 10)?;
    if rig.end(Side::Target)?.capabilities().fence == FenceKind::Time {
        return Ok(());
    }
    let op = Op { ticket: None, ..rig.write(0, 512, 256) };
    all_refused(&mut rig, "a write without a ticket", &[op])?;
    let good = rig.sign(Incarnation(1), 20, Extent::new(512, 256));
    let bad = [
        ("a forged tag", Ticket { tag: good.tag ^ 1, ..good }),
        ("a stretched extent", Ticket { extent: Extent::new(0, 4_096).expect("small"), ..good }),
        ("a raised serial", Ticket { serial: 21, ..good }),
        ("a ticket for another segment", KEY.sign(Ticket { segment: id(4), ..good })),
        ("a ticket of another owner", KEY.sign(Ticket { owner: Incarnation(2), ..good })),
        ("a ticket for the bytes before", rig.sign(Incarnation(1), 20, Extent::new(0, 512))),
        ("a ticket for all but the last byte", rig.sign(Incarnation(1), 20, Extent::new(512, 255))),
        ("a ticket for all but the first byte", rig.sign(Incarnation(1), 20, Extent::new(513, 255))),
    ];
    for (n, (what, ticket)) in bad.iter().enumerate() {
        let id = id::<TicketId>(20 + n as u32);
        // A transport may refuse it here already: then the op names no ticket that it knows.
        let _ = rig.end(Side::Initiator)?.admit(id, ticket);
        let op = Op { ticket: Some(id), ..rig.write(0, 512, 256) };
        all_refused(&mut rig, what, &[op])?;
    }
    rig.ticket = id(19);
    rig.admit(rig.ticket, &good)?;
    let op = rig.write(3, 512, 256);
    done(&mut rig, "exactly what the ticket grants", op)?;
    let op = rig.read(0, 4_096, 256);
    done(&mut rig, "a read needs no ticket", op)
}

pub(super) fn fence(factory: Factory<'_>) -> Checked {
    for rounds in [0, 1, 2, 3, 5, 8, 13, 40] {
        late_writes(factory, rounds)?;
    }
    Ok(())
}

/// Fences while writes are under way, the writer being frozen from then on.
fn late_writes(factory: Factory<'_>, rounds: u32) -> Checked {
    let mut rig = Rig::new(8, factory, 2 * MIB)?;
    let kind = rig.end(Side::Target)?.capabilities().fence;
    if kind == FenceKind::Time {
        return Ok(());
    }
    let half = rig.owned.len() / 2;
    let len = rig.max_op(32)?;
    let ops: Vec<Op> = (0..16).map(|n| rig.write(n * u64::from(len), n * u64::from(len), len)).collect();
    rig.post(&ops)?;
    for _ in 0..rounds {
        rig.progress(Side::Initiator, Budget { ops: 4, bytes: 40_000 });
        rig.progress(Side::Target, Budget { ops: 4, bytes: 40_000 });
        rig.world.pass(core::time::Duration::from_micros(20));
    }
    let (segment, extent) = (rig.segment, Extent::new(0, half).expect("half of a length"));
    rig.must(Side::Target, "fence", |t| t.fence(segment, extent, 11, 123))?;
    let alone = |rig: &mut Rig| {
        rig.progress(Side::Target, Budget { ops: 4, bytes: 40_000 });
        rig.events_of(Side::Target);
        rig.world.pass(core::time::Duration::from_micros(20));
    };
    rig.until_by("the fence stands", alone, |rig| rig.saw(Side::Target, Event::Fenced(123)))?;
    let snapshot = rig.owned.to_vec();
    rig.finish(&ops)?;
    rig.settle();
    rig.require(rig.owned.to_vec() == snapshot, || "a store landed after the fence stood".into())?;
    rig.owned_model = snapshot;
    if kind == FenceKind::Path {
        return Ok(());
    }
    let op = rig.write(1, 2, 333);
    all_refused(&mut rig, "a fenced ticket", &[op])?;
    let beside = rig.sign(Incarnation(1), 10, Extent::new(half, 4_096));
    let newer = rig.sign(Incarnation(1), 11, Extent::new(0, 4_096));
    rig.admit(id(30), &beside)?;
    rig.admit(id(31), &newer)?;
    let op = Op { ticket: Some(id(30)), ..rig.write(1, half + 2, 333) };
    done(&mut rig, "an old ticket beside the fence", op)?;
    let op = Op { ticket: Some(id(31)), ..rig.write(1, 2, 333) };
    done(&mut rig, "a newer ticket", op)
}

pub(super) fn incarnation(factory: Factory<'_>) -> Checked {
    let mut rig = Rig::new(13, factory, 64 << 10)?;
    let (old, path) = (rig.describe()?, rig.path);
    let op = rig.write(0, 0, 512);
    done(&mut rig, "before the restart", op)?;
    rig.world.kill();
    rig.end(Side::Initiator)?.close(path);
    rig.settle();
    rig.world.restart();
    // The next life looks the same in everything but its incarnation.
    rig.owned = rig.world.block(64 << 10);
    rig.fill(5, 6);
    rig.expose_segment(Incarnation(2))?;
    rig.path = next_life(path);
    rig.remote = id(60);
    rig.connect()?;
    let (path, remote) = (rig.path, rig.remote);
    if rig.end(Side::Initiator)?.import(path, remote, &old).is_ok() {
        for op in [rig.read(0, 64, 99), rig.write(0, 64, 99)] {
            let status = rig.run(&[op])?[0];
            rig.require(status != Status::Done, || "memory of an earlier life was reached".into())?;
        }
        rig.same()?;
        rig.end(Side::Initiator)?.forget(remote);
    }
    let description = rig.describe()?;
    rig.remote = id(61);
    rig.import(&description)?;
    let op = rig.write(0, 64, 99);
    all_refused(&mut rig, "a ticket of an earlier life", &[op])?;
    let ticket = rig.sign(Incarnation(2), 30, Extent::new(0, 4_096));
    rig.ticket = id(62);
    rig.admit(rig.ticket, &ticket)?;
    let op = rig.write(0, 64, 99);
    done(&mut rig, "a ticket of this life", op)
}
