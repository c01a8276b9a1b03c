//! Rule 12: nobody sleeps through anything.

use springtide_core::time::Instant;

use super::rig::{Checked, Rig, WIDE, broken};
use super::{Factory, Side};
use crate::{Armed, Event};

/// What one end is doing.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Mood {
    Awake,
    /// Until its descriptor is readable, or this moment.
    Asleep(Option<Instant>),
}

pub(super) fn arm(factory: Factory<'_>) -> Checked {
    let mut rig = Rig::new(12, factory, 1 << 20)?;
    rig.settle();
    let mut moods = [Mood::Awake; 2];
    sleep(&mut rig, &mut moods)?;
    for n in 0..40 {
        let len = if n % 5 == 0 { rig.max_op(4)? } else { 100 };
        let op = if n % 2 == 0 { rig.read(7, 9, len) } else { rig.write(7, 9, len) };
        rig.post(&[op])?;
        // Who submits goes on; the other end may sleep.
        moods[0] = Mood::Awake;
        wait(&mut rig, &mut moods, "an op ends", |rig| rig.status(&op).is_some())?;
        if n % 3 == 0 {
            sleep(&mut rig, &mut moods)?;
        }
    }
    sleep(&mut rig, &mut moods)?;
    rig.world.kill();
    let path = rig.path;
    wait(&mut rig, &mut moods, "the peer's death is told", move |rig| {
        rig.events.iter().any(|(_, event)| matches!(event, Event::Down(which, _) if *which == path))
    })
}

/// One round in which only those move who are awake or have a reason to wake.
fn round(rig: &mut Rig, moods: &mut [Mood; 2]) -> Checked {
    for (side, mood) in [Side::Initiator, Side::Target].into_iter().zip(moods.iter_mut()) {
        if rig.world.transport(side).is_none() {
            *mood = Mood::Asleep(None);
            continue;
        }
        if let Mood::Asleep(until) = *mood {
            let due = until.is_some_and(|at| at.reached(rig.world.now()));
            if !due && !rig.world.readable(side) {
                continue;
            }
        }
        rig.progress(side, WIDE);
        rig.events_of(side);
        let now = rig.world.now();
        *mood = match rig.end(side)?.arm() {
            Armed::Again => Mood::Awake,
            Armed::Asleep => Mood::Asleep(None),
            Armed::Poll(after) => Mood::Asleep(Some(now + after)),
        };
    }
    rig.world.pass(core::time::Duration::from_micros(20));
    Ok(())
}

fn wait(rig: &mut Rig, moods: &mut [Mood; 2], what: &str, done: impl Fn(&Rig) -> bool) -> Checked {
    for _ in 0..200_000 {
        if done(rig) {
            return Ok(());
        }
        round(rig, moods)?;
    }
    Err(broken(12, format!("everybody sleeps, but should wake until {what}")))
}

/// Ends that have nothing to do go to sleep, or at least look only now and then.
fn sleep(rig: &mut Rig, moods: &mut [Mood; 2]) -> Checked {
    for _ in 0..20_000 {
        round(rig, moods)?;
        if moods.iter().all(|mood| *mood != Mood::Awake) {
            return Ok(());
        }
    }
    Err(broken(12, "an idle end never goes to sleep".into()))
}
