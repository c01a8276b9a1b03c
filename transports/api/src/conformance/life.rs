//! Rules 2, 9, 10 and 16: how ops, memory and paths end.

use std::collections::HashSet;

use super::rig::{Checked, Rig, id};
use super::{Factory, Side};
use crate::{Budget, DownReason, Event, Op, Status};

const MIB: u64 = 1 << 20;

/// How the ops of a test are ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum End {
    Cancel,
    Close,
    Kill,
}

pub(super) fn once(factory: Factory<'_>) -> Checked {
    for end in [End::Cancel, End::Close, End::Kill] {
        for rounds in [0, 1, 3, 9] {
            every_op_once(factory, end, rounds)?;
        }
    }
    Ok(())
}

fn every_op_once(factory: Factory<'_>, end: End, rounds: u32) -> Checked {
    let mut rig = Rig::new(2, factory, MIB)?;
    let len = rig.max_op(64)?;
    let ops: Vec<Op> = (0..32)
        .map(|n| {
            let at = n * u64::from(len);
            if n % 2 == 0 { rig.read(at, at, len) } else { rig.write(at, at, len) }
        })
        .collect();
    rig.post(&ops)?;
    for _ in 0..rounds {
        rig.progress(Side::Initiator, Budget { ops: 4, bytes: 40_000 });
        rig.progress(Side::Target, Budget { ops: 4, bytes: 40_000 });
        rig.world.pass(core::time::Duration::from_micros(20));
    }
    let path = rig.path;
    match end {
        End::Cancel => {
            // Some twice, and one that never was.
            for op in ops.iter().step_by(2).chain(ops.iter().step_by(4)) {
                rig.end(Side::Initiator)?.cancel(op.id);
            }
            rig.end(Side::Initiator)?.cancel(id(4_000));
        }
        End::Close => rig.end(Side::Initiator)?.close(path),
        End::Kill => rig.world.kill(),
    }
    rig.finish(&ops)?;
    rig.settle();
    let known: HashSet<_> = ops.iter().map(|op| op.id).collect();
    for (id, (completion, times)) in &rig.ended {
        rig.require(known.contains(id), || format!("{id:?} completed, but was not submitted"))?;
        rig.require(*times == 1, || format!("{completion:?} was reported {times} times after {end:?}"))?;
    }
    Ok(())
}

pub(super) fn idle_targets_serve(factory: Factory<'_>) -> Checked {
    let mut rig = Rig::new(9, factory, MIB)?;
    let len = rig.max_op(16)?;
    let mut ops: Vec<Op> = (0..6).map(|n| rig.read(n * u64::from(len), 0, len)).collect();
    ops.extend((8..14).map(|n| rig.write(0, n * u64::from(len), len)));
    rig.post(&ops)?;
    let idle = |rig: &mut Rig| {
        rig.progress(Side::Initiator, Budget { ops: 64, bytes: MIB });
        rig.events_of(Side::Initiator);
        rig.progress(Side::Target, Budget { ops: 64, bytes: MIB });
        rig.world.pass(core::time::Duration::from_micros(20));
    };
    rig.until_by("a target that only calls progress has served", idle, |rig| {
        ops.iter().all(|op| rig.status(op).is_some())
    })?;
    Ok(())
}

pub(super) fn lost_keeps_memory(factory: Factory<'_>) -> Checked {
    withdrawn_in_flight(factory)?;
    lost_until_closed(factory)
}

/// The region goes while a frozen peer has not served its op.
fn withdrawn_in_flight(factory: Factory<'_>) -> Checked {
    let mut rig = Rig::new(10, factory, MIB)?;
    let op = rig.read(64, 64, 4_096);
    rig.post(&[op])?;
    for _ in 0..10 {
        rig.step_alone();
    }
    let region = rig.region;
    rig.end(Side::Initiator)?.withdraw(region);
    let mut let_go = None;
    for _ in 0..200_000 {
        if rig.status(&op).is_some() {
            break;
        }
        if rig.local.shares() == 1 && let_go.is_none() {
            let_go = Some(rig.local.to_vec());
        }
        rig.step();
    }
    let Some(status) = rig.status(&op) else {
        return rig.require(false, || "an op whose region was withdrawn does not end".into());
    };
    if let Some(then) = let_go {
        rig.require(status != Status::Done, || "done into memory that was let go".into())?;
        rig.require(rig.local.to_vec() == then, || "bytes moved into memory that was let go".into())?;
    }
    if status == Status::Lost {
        let path = rig.path;
        rig.end(Side::Initiator)?.close(path);
    }
    rig.until("withdrawn memory is let go", |rig| rig.local.shares() == 1)
}

/// The peer dies with ops in flight: those that are lost keep their memory until the path is closed.
fn lost_until_closed(factory: Factory<'_>) -> Checked {
    let mut rig = Rig::new(10, factory, MIB)?;
    let ops: Vec<Op> = (0..4).map(|n| rig.read(n * 8_192, n * 8_192, 4_096)).collect();
    rig.post(&ops)?;
    for _ in 0..10 {
        rig.step_alone();
    }
    rig.world.kill();
    let statuses = rig.finish(&ops)?;
    let (region, path) = (rig.region, rig.path);
    rig.end(Side::Initiator)?.withdraw(region);
    let down = |rig: &Rig| rig.events.iter().any(|(_, event)| matches!(event, Event::Down(..)));
    if statuses.contains(&Status::Lost) && !down(&rig) {
        rig.require(rig.local.shares() > 1, || "the memory of a lost op was let go".into())?;
    }
    rig.end(Side::Initiator)?.close(path);
    rig.until("memory is let go when the path is closed", |rig| rig.local.shares() == 1)
}

pub(super) fn closed_paths_end(factory: Factory<'_>) -> Checked {
    closed_under_a_frozen_peer(factory)?;
    a_dead_peer_is_told(factory)
}

fn closed_under_a_frozen_peer(factory: Factory<'_>) -> Checked {
    let mut rig = Rig::new(16, factory, MIB)?;
    let len = rig.max_op(64)?;
    let ops: Vec<Op> = (0..16).map(|n| rig.read(n * u64::from(len), 0, len)).collect();
    let posted = rig.post(&ops)?;
    rig.require(posted == ops.len(), || "good ops were refused".into())?;
    let (path, description) = (rig.path, rig.describe()?);
    rig.step_alone();
    rig.end(Side::Initiator)?.close(path);
    let down = Event::Down(path, DownReason::Closed);
    rig.until_by("a closed path is down, whatever its peer does", Rig::step_alone, |rig| {
        rig.saw(Side::Initiator, down)
    })?;
    let ended = ops.iter().all(|op| rig.status(op).is_some());
    rig.require(ended, || "the path went down before its ops ended".into())?;
    // The same ids again, as after any path that went down.
    rig.fill(7, 8);
    rig.events.clear();
    rig.connect()?;
    rig.import(&description)?;
    let op = rig.read(0, 128, 777);
    let status = rig.run(&[op])?[0];
    rig.require(status == Status::Done, || format!("{status:?} on a path that was opened again"))
}

fn a_dead_peer_is_told(factory: Factory<'_>) -> Checked {
    let mut rig = Rig::new(16, factory, MIB)?;
    let address = rig.address(Side::Target)?;
    rig.world.kill();
    let path = rig.path;
    let down = move |rig: &Rig| {
        rig.events.iter().any(|(side, event)| {
            *side == Side::Initiator && matches!(event, Event::Down(which, _) if *which == path)
        })
    };
    rig.until("the death of the peer is told", down)?;
    let room = rig.room()?;
    rig.require(room == 0, || format!("a path that is down has room for {room}"))?;
    rig.events.clear();
    let now = rig.world.now();
    if rig.end(Side::Initiator)?.open(now, path, &address).is_ok() {
        rig.until("opening a path to nobody fails", down)?;
    }
    Ok(())
}
