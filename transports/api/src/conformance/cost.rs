//! Rules 14 and 15: what one call may cost.

use core::time::Duration;

use springtide_core::id::OpId;

use super::rig::{Checked, Rig, id, next_life};
use super::{Factory, Side};
use crate::{Budget, Completion, Op, Status, Verb};

const MIB: u64 = 1 << 20;

pub(super) fn budget(factory: Factory<'_>) -> Checked {
    moves_at_most(factory, Verb::Read)?;
    moves_at_most(factory, Verb::Write)
}

/// Lets many long ops arrive, and then counts the bytes that change in one call.
fn moves_at_most(factory: Factory<'_>, verb: Verb) -> Checked {
    let mut rig = Rig::new(14, factory, 2 * MIB)?;
    let len = rig.max_op(32)?;
    let ops: Vec<Op> = (0..16).map(|n| rig.op(verb, n * u64::from(len), n * u64::from(len), len)).collect();
    let destination = if verb == Verb::Read { rig.local.clone() } else { rig.owned.clone() };
    let mut bytes = vec![0; 16 * len as usize];
    destination.write(0, &bytes).expect("the ops lie inside");
    rig.post(&ops)?;
    let budget = Budget { ops: 64, bytes: 32 << 10 };
    let most = budget.bytes + u64::from(len);
    // Everything arrives before the target looks.
    for _ in 0..100 {
        rig.progress(Side::Initiator, budget);
        rig.world.pass(Duration::from_micros(500));
    }
    let mut moved = || {
        destination.read(0, &mut bytes).expect("the ops lie inside");
        bytes.iter().step_by(64).filter(|byte| **byte != 0).count() as u64 * 64
    };
    let mut before = moved();
    for _ in 0..100_000 {
        if ops.iter().all(|op| rig.status(op).is_some()) {
            return Ok(());
        }
        for side in [Side::Target, Side::Initiator] {
            rig.progress(side, budget);
            let after = moved();
            rig.require(after - before <= most, || {
                format!("one call moved {} bytes; the budget was {}", after - before, budget.bytes)
            })?;
            before = after;
        }
        rig.events_of(Side::Initiator);
        rig.events_of(Side::Target);
        rig.world.pass(Duration::from_micros(100));
    }
    rig.require(false, || "ops do not end under a small budget".into())
}

pub(super) fn no_allocation(factory: Factory<'_>) -> Checked {
    let mut rig = Rig::new(15, factory, MIB)?;
    if rig.world.allocations().is_none() {
        return Ok(());
    }
    let mut ops = [rig.read(0, 0, 1_000); 16];
    for (n, op) in ops.iter_mut().enumerate() {
        op.id = id::<OpId>(n as u32);
        op.verb = if n % 2 == 0 { Verb::Read } else { Verb::Write };
        op.ticket = (op.verb == Verb::Write).then_some(rig.ticket);
    }
    rounds(&mut rig, &mut ops)?;
    let during = rounds(&mut rig, &mut ops)?;
    rig.require(during == 0, || format!("{during} allocations in submit and progress"))
}

/// Runs the same ops many times under new ids; gives back how many allocations happened in data calls.
fn rounds(rig: &mut Rig, ops: &mut [Op]) -> Checked<u64> {
    let mut during = 0;
    for _ in 0..200 {
        ops.iter_mut().for_each(|op| op.id = next_life(op.id));
        let mut left = rig.room()?.min(ops.len());
        let start = rig.world.allocations().unwrap_or(0);
        let taken = rig.submit(&ops[..left])?;
        during += rig.world.allocations().unwrap_or(0) - start;
        rig.require(taken.is_ok(), || format!("a path with room for {left} ops does not take them"))?;
        for _ in 0..500_000 {
            if left == 0 {
                break;
            }
            for side in [Side::Initiator, Side::Target] {
                let nothing = Completion { id: id(0), bytes: 0, status: Status::Lost, code: 0 };
                let (mut done, now) = ([nothing; 32], rig.world.now());
                let start = rig.world.allocations().unwrap_or(0);
                let count = rig.end(side)?.progress(now, Budget { ops: 64, bytes: MIB }, &mut done);
                during += rig.world.allocations().unwrap_or(0) - start;
                left -= if side == Side::Initiator { count } else { 0 };
                rig.events_of(side);
            }
            rig.world.pass(Duration::from_micros(20));
        }
        rig.require(left == 0, || "ops do not end".into())?;
    }
    Ok(during)
}
