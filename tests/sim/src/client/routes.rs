//! From a segment's number to a way to its bytes: by the master, then by the owner.

use core::time::Duration;

use springtide_core::client::patience::{Share, attempt};
use springtide_core::error::Code;
use springtide_core::id::{Incarnation, RegionId, SegmentId, TargetId};
use springtide_core::time::Instant;
use springtide_core::wire::codec;
use springtide_core::wire::frame::Frame;
use springtide_core::wire::message::{self, Card, SegmentInfo};

use super::{Call, Client};
use crate::env::Env;
use crate::line::{Heard, Line};
use crate::node;
use crate::queue::Pid;

/// A way to a segment's bytes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Route {
    /// The engine's name for them.
    pub(super) target: TargetId,
    /// The owner's life, which tickets name.
    pub(super) owner: Incarnation,
}

/// The ways known, those that are looked for, and who owns the memory.
#[derive(Debug, Default)]
pub(super) struct Routes {
    known: Vec<(SegmentId, Route)>,
    sought: Vec<SegmentId>,
    owners: Vec<Owner>,
    ended: Vec<(SegmentId, Code)>,
}

#[derive(Debug)]
struct Owner {
    pid: Pid,
    life: Incarnation,
    line: Line<SegmentId>,
}

impl Routes {
    /// The way to `segment`, if it is known.
    pub(super) fn known(&self, segment: SegmentId) -> Option<Route> {
        self.known.iter().find(|(known, _)| *known == segment).map(|(_, route)| *route)
    }

    /// Calls under way.
    pub(super) fn open(&self) -> usize {
        self.owners.iter().map(|owner| owner.line.open()).sum()
    }

    /// When a line has something to do.
    pub(super) fn due(&self) -> Instant {
        self.owners.iter().map(|owner| owner.line.due()).min().unwrap_or(Instant::NEVER)
    }
}

/// How long finding a way may take when its first seeker has `deadline`.
fn patience(now: Instant, deadline: Instant) -> Instant {
    attempt(now, deadline, 0, Share::Third).min(now + Duration::from_millis(300))
}

impl Client {
    /// Looks for a way to `segment`; [`found`](Self::found) tells.
    pub(super) fn seek(&mut self, env: &mut Env, now: Instant, segment: SegmentId, deadline: Instant) {
        if self.routes.sought.contains(&segment) {
            return;
        }
        self.routes.sought.push(segment);
        let until = patience(now, deadline);
        let what = Call::Segment(segment, until);
        self.line.call(env, now, (message::SEGMENT, until), what, |body| codec::put(body, &segment));
    }

    /// The master says where a segment is: its owner says how to get there.
    pub(super) fn located(
        &mut self,
        env: &mut Env,
        now: Instant,
        (segment, until): (SegmentId, Instant),
        answer: Option<&[u8]>,
    ) {
        let info = answer.and_then(|body| codec::whole::<SegmentInfo<'_>>(body).ok());
        let owner = info.and_then(|info| Some((node::at(info.address)?, info.incarnation)));
        let Some((pid, life)) = owner else { return self.found(env, now, segment, None) };
        let place = self.routes.owners.iter().position(|owner| (owner.pid, owner.life) == (pid, life));
        let place = place.unwrap_or_else(|| {
            // One life of a process at an address ends the others; what is asked of them runs into its deadline.
            let me = (self.pid, env.lives[self.pid.index()].incarnation);
            let line = Line::new(me, pid, life, &self.tenant);
            self.routes.owners.push(Owner { pid, life, line });
            self.routes.owners.len() - 1
        });
        let line = &mut self.routes.owners[place].line;
        line.call(env, now, (message::DESCRIBE, until), segment, |body| codec::put(body, &segment));
    }

    /// A frame may be for one of the lines to owners; says whether it was.
    pub(super) fn owner_frame(&mut self, env: &mut Env, now: Instant, conn: u32, frame: &Frame<'_>) -> bool {
        let Some(place) = self.routes.owners.iter().position(|owner| owner.line.has(conn)) else {
            return false;
        };
        let Owner { pid, life, line } = &mut self.routes.owners[place];
        let (pid, life) = (*pid, *life);
        if let Heard::Answer(segment, status) = line.hear(env, now, frame) {
            let described = status.is_ok().then(|| region(frame.body)).flatten();
            let target = described.and_then(|(owner, region)| {
                self.lane.target(env, now, pid, (owner, region)).filter(|_| owner == life)
            });
            self.found(env, now, segment, target.map(|target| Route { target, owner: life }));
        }
        true
    }

    /// The connection to an owner is gone; says whether it was one.
    pub(super) fn owner_closed(&mut self, now: Instant, conn: u32) -> bool {
        let owner = self.routes.owners.iter_mut().find(|owner| owner.line.has(conn));
        owner.map(|owner| owner.line.closed(now)).is_some()
    }

    /// Drives the lines to owners.
    pub(super) fn drive_owners(&mut self, env: &mut Env, now: Instant) {
        let mut ended = core::mem::take(&mut self.routes.ended);
        self.routes.owners.iter_mut().for_each(|owner| owner.line.drive(env, now, &mut ended));
        for (segment, _) in ended.drain(..) {
            self.found(env, now, segment, None);
        }
        self.routes.ended = ended;
        // Lives that are over answer nobody.
        self.routes
            .owners
            .retain(|owner| owner.line.open() > 0 || env.lives[owner.pid.index()].incarnation == owner.life);
    }

    /// A way was found, or there is none now.
    pub(super) fn found(&mut self, env: &mut Env, now: Instant, segment: SegmentId, route: Option<Route>) {
        self.routes.sought.retain(|sought| *sought != segment);
        if let Some(route) = route {
            match self.routes.known(segment) {
                Some(_) => self.lane.drop_target(now, route.target),
                None => self.routes.known.push((segment, route)),
            }
        }
        self.route_found(env, now, segment, route.is_some());
    }

    /// Forgets a way that failed, unless it was found anew meanwhile.
    pub(super) fn forget_route(&mut self, now: Instant, segment: SegmentId, failed: Route) {
        let before = self.routes.known.len();
        self.routes.known.retain(|entry| *entry != (segment, failed));
        if self.routes.known.len() < before {
            self.lane.drop_target(now, failed.target);
        }
    }
}

/// What the first card of a description names.
fn region(body: &[u8]) -> Option<(Incarnation, RegionId)> {
    let ((), mut cards) = codec::split::<(), Card<'_>>(body).ok()?;
    let card = cards.next()?.ok()?;
    let (owner, region) = card.description.split_first_chunk::<16>()?;
    let region = RegionId::from_bits(u64::from_le_bytes(region.try_into().ok()?))?;
    Some((Incarnation(u128::from_le_bytes(*owner)), region))
}
