//! The lane's loop: what the engine wants done, and what the transports have to say.

use core::time::Duration;

use springtide_core::id::{Id, OpId, PathId, RegionId, RemoteId};
use springtide_core::time::Instant;
use springtide_core::transfer::{Completion, Next, Op, Reject, Status, Verb};
use springtide_transport::{Budget, Event, Reason};

use super::{Lane, Rail, Scratch};
use crate::seat::Drove;
use crate::wakes::Wakes;

/// What one transport may do before the others and the seat's other users have their turn: about 100 µs of copying.
const BUDGET: Budget = Budget { ops: 256, bytes: 1 << 20 };
/// Most ops to post, and completions to reap, at once.
const STEP: usize = 256;
/// Most wishes of the engine to fulfil in one turn.
const WISHES: usize = 1_024;

/// How long a transport on which nothing is in flight is left alone by a user who is awake.
const QUIET: Duration = Duration::from_millis(1);

/// Which transports one turn asks.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Look {
    /// All of them.
    Everywhere,
    /// Those that have something in flight, or were not asked for a while; all of them where peers are served.
    WhereAwaited,
}

impl Lane {
    /// One turn: reaps, tells the engine, and does what it wants.
    pub(super) fn work(&mut self, now: Instant, look: Look, wakes: &mut Wakes) -> Drove {
        let mut drove = Drove::Idle;
        // What was asked for goes out before the transports are, so that one turn does both.
        if core::mem::take(&mut self.told) {
            drove = self.obey(now, wakes);
        }
        for rail in 0..self.transports.len() {
            if (look == Look::Everywhere || self.awaits(now, rail))
                && self.reap(now, rail, wakes) == Drove::Busy
            {
                drove = Drove::Busy;
            }
        }
        if self.wait.is_some_and(|at| at.reached(now)) {
            self.engine.handle_timeout(now);
        }
        match self.obey(now, wakes) {
            Drove::Busy => Drove::Busy,
            Drove::Idle => drove,
        }
    }

    /// Whether something is to be expected of a transport, so that a system call is worth its while.
    fn awaits(&self, now: Instant, rail: usize) -> bool {
        let Rail { in_flight, asked } = self.rails[rail];
        in_flight > 0 || self.serves || (asked + QUIET).reached(now)
    }

    /// Does what the engine wants, and posts what it has.
    fn obey(&mut self, now: Instant, wakes: &mut Wakes) -> Drove {
        let mut drove = Drove::Idle;
        for _ in 0..WISHES {
            match self.engine.poll(now) {
                Next::Wait(at) => {
                    self.wait = at;
                    return self.feed(now, drove);
                }
                Next::Batch(batch, outcome) => self.ended(now, batch, outcome, wakes),
                Next::Take(path) => {
                    self.ways.paths.get_mut(path).into_iter().for_each(|path| path.hungry = true)
                }
                Next::Cancel(path, op) => {
                    if let Some(path) = self.ways.paths.get(path) {
                        self.transports[path.rail].cancel(op);
                    }
                }
                Next::Reopen(path) => self.reopen(now, path),
                Next::Close(path) => self.close(now, path),
                other => tracing::error!(?other, "the engine wants what this lane cannot do"),
            }
            drove = Drove::Busy;
        }
        self.feed(now, Drove::Busy)
    }

    /// Lets a transport move bytes, and takes in what it finished and what happened to it.
    fn reap(&mut self, now: Instant, rail: usize, wakes: &mut Wakes) -> Drove {
        let count = self.transports[rail].progress(now, BUDGET, &mut self.scratch.done);
        let known = &mut self.rails[rail];
        known.asked = now;
        known.in_flight = known.in_flight.saturating_sub(count);
        let done = &self.scratch.done[..count];
        let path_of = |completion: &Completion| self.flying.get(completion.id.index()).copied().flatten();
        for group in done.chunk_by(|a, b| path_of(a) == path_of(b)) {
            let Some(path) = path_of(&group[0]) else { continue };
            self.engine.handle_completions(now, path, group);
            self.ways.paths.get_mut(path).into_iter().for_each(|path| path.hungry = true);
        }
        let mut drove = if count > 0 { Drove::Busy } else { Drove::Idle };
        while let Some(event) = self.transports[rail].event() {
            drove = Drove::Busy;
            match event {
                Event::Up(path) => self.path_up(now, path),
                Event::Down(path, reason) => self.path_down(now, path, reason),
                Event::Fenced(number) => self.fenced(number, wakes),
                other => tracing::error!(?other, "a transport says what this lane does not know"),
            }
        }
        drove
    }

    /// Posts what the engine has for paths that may have room.
    fn feed(&mut self, now: Instant, mut drove: Drove) -> Drove {
        for index in 0..self.ways.paths.slots() {
            let Some((id, path)) = self.ways.paths.at(index) else { continue };
            if path.hungry && self.post(now, id, path.rail) == Drove::Busy {
                drove = Drove::Busy;
            }
        }
        drove
    }

    /// Posts ops on one path until the engine has no more or the transport no room.
    fn post(&mut self, now: Instant, id: PathId, rail: usize) -> Drove {
        let mut drove = Drove::Idle;
        loop {
            let room = self.transports[rail].room(id);
            if room == 0 {
                // Its completions make room, and come here again.
                return drove;
            }
            let count = self.engine.take_ops(now, id, room, &mut self.scratch.ops);
            if count == 0 {
                self.ways.paths.get_mut(id).into_iter().for_each(|path| path.hungry = false);
                return drove;
            }
            drove = Drove::Busy;
            let ops = &self.scratch.ops[..count];
            for op in ops {
                let slot = op.id.index();
                if self.flying.len() <= slot {
                    self.flying.resize(slot + 1, None);
                }
                self.flying[slot] = Some(id);
            }
            let submitted = self.transports[rail].submit(id, ops);
            self.rails[rail].in_flight += submitted.as_ref().map_or_else(|error| error.accepted, |()| count);
            if let Err(error) = submitted {
                self.engine.handle_refused(now, id, &ops[error.accepted..], reject(error.reason));
                if error.reason != Reason::BadRegion {
                    return drove;
                }
            }
        }
    }
}

const fn reject(reason: Reason) -> Reject {
    match reason {
        Reason::PathDown => Reject::PathDown,
        Reason::BadRegion => Reject::BadRegion,
        _ => Reject::Full,
    }
}

impl Default for Scratch {
    fn default() -> Self {
        let op = Op {
            id: OpId::new(0, core::num::NonZeroU32::MIN),
            local: RegionId::new(0, core::num::NonZeroU32::MIN),
            at: 0,
            remote: RemoteId::new(0, core::num::NonZeroU32::MIN),
            to: 0,
            ticket: None,
            len: 0,
            verb: Verb::Read,
        };
        let done = Completion { id: op.id, bytes: 0, status: Status::Done, code: 0 };
        Self { ops: vec![op; STEP].into(), done: vec![done; STEP].into() }
    }
}
