//! Two connected ends with filled memory, and what should be in it.

use core::num::NonZeroU32;
use core::time::Duration;
use std::collections::HashMap;

use springtide_core::id::{Id, Incarnation, OpId, PathId, RegionId, RemoteId, SegmentId, TicketId};
use springtide_core::range::Extent;
use springtide_core::rng::mix;
use springtide_core::ticket::{Ticket, TicketKey};
use springtide_hal::Block;

use super::{Factory, Side, Violation, World};
use crate::{
    Budget, Completion, ControlError, Event, Exposure, Op, Reason, Status, SubmitError, Transport, Verb,
};

/// A budget that does not bind.
pub(super) const WIDE: Budget = Budget { ops: 1_000_000, bytes: 1 << 40 };
/// How often both ends are called before something that does not happen is a violation.
const PATIENCE: u32 = 500_000;
/// Time between two rounds.
const STEP: Duration = Duration::from_micros(20);

pub(super) const KEY: TicketKey = TicketKey([42; 16]);

pub(super) type Checked<T = ()> = Result<T, Violation>;

/// An id with this slot, in its first life.
pub(super) fn id<I: Id>(index: u32) -> I {
    I::new(index, NonZeroU32::MIN)
}

/// The same slot's next life.
pub(super) fn next_life<I: Id>(old: I) -> I {
    I::new(old.index() as u32, old.generation().saturating_add(1))
}

/// A path from the initiator to the target, a segment there and a buffer here.
pub(super) struct Rig {
    pub(super) rule: u8,
    pub(super) world: Box<dyn World>,
    pub(super) path: PathId,
    pub(super) region: RegionId,
    pub(super) segment: RegionId,
    pub(super) remote: RemoteId,
    pub(super) ticket: TicketId,
    pub(super) local: Block,
    pub(super) owned: Block,
    /// What should be in the two blocks.
    pub(super) local_model: Vec<u8>,
    pub(super) owned_model: Vec<u8>,
    /// How every op ended, and how often.
    pub(super) ended: HashMap<OpId, (Completion, u32)>,
    pub(super) events: Vec<(Side, Event)>,
    ops: u32,
}

impl Rig {
    /// A connected pair with `len` bytes on either side, filled with patterns, and a ticket for all of the segment.
    pub(super) fn new(rule: u8, factory: Factory<'_>, len: u64) -> Checked<Self> {
        let mut world = factory();
        let (local, owned) = (world.block(len), world.block(len));
        let mut rig = Self {
            rule,
            world,
            path: id(0),
            region: id(0),
            segment: id(7),
            remote: id(0),
            ticket: id(0),
            local_model: vec![0; local.len() as usize],
            owned_model: vec![0; owned.len() as usize],
            local,
            owned,
            ended: HashMap::new(),
            events: Vec::new(),
            ops: 0,
        };
        rig.fill(1, 2);
        let (region, local) = (rig.region, rig.local.clone());
        rig.must(Side::Initiator, "expose a buffer", |t| t.expose(region, &local, Exposure::Source))?;
        rig.expose_segment(Incarnation(1))?;
        rig.connect()?;
        let description = rig.describe()?;
        rig.import(&description)?;
        let ticket = rig.sign(Incarnation(1), 10, Extent::new(0, rig.owned.len()));
        rig.admit(rig.ticket, &ticket)?;
        Ok(rig)
    }

    /// Fills both blocks with patterns of these seeds.
    pub(super) fn fill(&mut self, local: u64, owned: u64) {
        for (block, model, seed) in
            [(&self.local, &mut self.local_model, local), (&self.owned, &mut self.owned_model, owned)]
        {
            for (i, word) in model.chunks_mut(8).enumerate() {
                let bytes = mix(seed << 40 | i as u64).to_le_bytes();
                word.copy_from_slice(&bytes[..word.len()]);
            }
            block.write(0, model).expect("the model is as long as the block");
        }
    }

    pub(super) fn expose_segment(&mut self, owner: Incarnation) -> Checked {
        let (region, owned) = (self.segment, self.owned.clone());
        let exposure = Exposure::Segment { owner, segment: id::<SegmentId>(3), key: KEY };
        self.must(Side::Target, "expose a segment", |t| t.expose(region, &owned, exposure))
    }

    /// Opens `self.path` and waits until it is up.
    pub(super) fn connect(&mut self) -> Checked {
        let path = self.path;
        let address = self.address(Side::Target)?;
        let now = self.world.now();
        self.must(Side::Initiator, "open a path", |t| t.open(now, path, &address))?;
        self.until("the path comes up", |rig| rig.saw(Side::Initiator, Event::Up(path)))
    }

    pub(super) fn address(&mut self, side: Side) -> Checked<Vec<u8>> {
        let mut address = Vec::new();
        self.end(side)?.address(&mut address);
        Ok(address)
    }

    pub(super) fn describe(&mut self) -> Checked<Vec<u8>> {
        let (segment, mut description) = (self.segment, Vec::new());
        self.must(Side::Target, "describe a segment", |t| t.describe(segment, &mut description))?;
        Ok(description)
    }

    pub(super) fn import(&mut self, description: &[u8]) -> Checked {
        let (path, remote) = (self.path, self.remote);
        self.must(Side::Initiator, "import a segment", |t| t.import(path, remote, description))
    }

    /// A ticket that the owner takes, if the arguments fit.
    pub(super) fn sign(&self, owner: Incarnation, serial: u64, extent: Option<Extent>) -> Ticket {
        let extent = extent.expect("the suite's extents do not wrap");
        let ticket = Ticket { owner, segment: id(3), extent, serial, term: Default::default(), tag: 0 };
        KEY.sign(ticket)
    }

    pub(super) fn admit(&mut self, id: TicketId, ticket: &Ticket) -> Checked {
        self.must(Side::Initiator, "admit a ticket", |t| t.admit(id, ticket))
    }

    /// The end on `side`.
    pub(super) fn end(&mut self, side: Side) -> Checked<&mut dyn Transport> {
        let rule = self.rule;
        self.world.transport(side).ok_or_else(|| broken(rule, format!("no end on the {side:?} side")))
    }

    /// Calls `f` on an end; an error is a violation.
    pub(super) fn must<T>(
        &mut self,
        side: Side,
        what: &str,
        f: impl FnOnce(&mut dyn Transport) -> Result<T, ControlError>,
    ) -> Checked<T> {
        let rule = self.rule;
        f(self.end(side)?).map_err(|error| broken(rule, format!("could not {what}: {error}")))
    }

    /// A violation of this rig's rule unless `holds`.
    pub(super) fn require(&self, holds: bool, what: impl FnOnce() -> String) -> Checked {
        if holds { Ok(()) } else { Err(broken(self.rule, what())) }
    }

    // Ops.

    /// A read of `len` bytes from `to` in the segment to `at` in the buffer.
    pub(super) fn read(&mut self, at: u64, to: u64, len: u32) -> Op {
        self.op(Verb::Read, at, to, len)
    }

    /// A write of `len` bytes from `at` in the buffer to `to` in the segment, with the rig's ticket.
    pub(super) fn write(&mut self, at: u64, to: u64, len: u32) -> Op {
        self.op(Verb::Write, at, to, len)
    }

    pub(super) fn op(&mut self, verb: Verb, at: u64, to: u64, len: u32) -> Op {
        // Slots are used again under new generations, as the engine does.
        let generation = NonZeroU32::MIN.saturating_add(self.ops / 4_096);
        let op = OpId::new(self.ops % 4_096, generation);
        self.ops += 1;
        let ticket = (verb == Verb::Write).then_some(self.ticket);
        Op { id: op, local: self.region, at, remote: self.remote, to, ticket, len, verb }
    }

    /// Longest op that the transport takes, and that the blocks have room for `share` of.
    pub(super) fn max_op(&mut self, share: u64) -> Checked<u32> {
        let capabilities = *self.end(Side::Initiator)?.capabilities();
        let chunk = if capabilities.chunk == 0 { u64::MAX } else { capabilities.chunk };
        let most =
            u64::from(capabilities.max_op).min(chunk).min(self.owned.len().min(self.local.len()) / share);
        Ok(u32::try_from(most).unwrap_or(u32::MAX))
    }

    pub(super) fn room(&mut self) -> Checked<usize> {
        let path = self.path;
        Ok(self.end(Side::Initiator)?.room(path))
    }

    pub(super) fn submit(&mut self, ops: &[Op]) -> Checked<Result<(), SubmitError>> {
        let path = self.path;
        Ok(self.end(Side::Initiator)?.submit(path, ops))
    }

    /// Submits `ops` as room allows; those that the transport rejects for their memory end as refused. Gives back
    /// how many were accepted.
    pub(super) fn post(&mut self, ops: &[Op]) -> Checked<usize> {
        let (mut next, mut posted) = (0, 0);
        for _ in 0..PATIENCE {
            if next == ops.len() {
                return Ok(posted);
            }
            let room = self.room()?.min(ops.len() - next);
            if room == 0 {
                self.step();
                continue;
            }
            match self.submit(&ops[next..next + room])? {
                Ok(()) => (next, posted) = (next + room, posted + room),
                Err(SubmitError { accepted, reason }) => {
                    (next, posted) = (next + accepted, posted + accepted);
                    self.require(next < ops.len(), || "more ops accepted than submitted".into())?;
                    if reason == Reason::BadRegion {
                        let id = ops[next].id;
                        let refused = Completion { id, bytes: 0, status: Status::Refused, code: 0 };
                        self.ended.insert(id, (refused, 1));
                        next += 1;
                    } else {
                        self.require(reason == Reason::Full, || format!("{reason:?} on a path that is up"))?;
                        self.step();
                    }
                }
            }
        }
        Err(broken(self.rule, "the path has no room".into()))
    }

    /// Posts `ops`, waits for their ends, and takes what is done into the models.
    pub(super) fn run(&mut self, ops: &[Op]) -> Checked<Vec<Status>> {
        self.post(ops)?;
        self.finish(ops)
    }

    /// Waits for the ends of `ops`, and takes what is done into the models, in order.
    pub(super) fn finish(&mut self, ops: &[Op]) -> Checked<Vec<Status>> {
        self.until("every op ends", |rig| ops.iter().all(|op| rig.ended.contains_key(&op.id)))?;
        let statuses: Vec<Status> = ops.iter().map(|op| self.ended[&op.id].0.status).collect();
        for (op, _) in ops.iter().zip(&statuses).filter(|(_, status)| **status == Status::Done) {
            self.apply(op);
        }
        Ok(statuses)
    }

    pub(super) fn status(&self, op: &Op) -> Option<Status> {
        self.ended.get(&op.id).map(|(completion, _)| completion.status)
    }

    /// Does to the models what `op` does to the blocks. An op that reaches outside does nothing: its rule says so.
    pub(super) fn apply(&mut self, op: &Op) {
        let range = |start: u64| usize::try_from(start).ok().map(|at| at..at.saturating_add(op.len as usize));
        let (Some(local), Some(owned)) = (range(op.at), range(op.to)) else { return };
        let ours = self.local_model.get_mut(local);
        let theirs = self.owned_model.get_mut(owned);
        match (op.verb, ours, theirs) {
            (Verb::Read, Some(ours), Some(theirs)) => ours.copy_from_slice(theirs),
            (Verb::Write, Some(ours), Some(theirs)) => theirs.copy_from_slice(ours),
            _ => {}
        }
    }

    /// Both blocks hold what the models say.
    pub(super) fn same(&self) -> Checked {
        self.same_but(&[])
    }

    /// As [`same`](Self::same), but the destinations of `loose` may hold anything; the models take that over.
    pub(super) fn same_but(&self, loose: &[Op]) -> Checked {
        for (name, block, model, verb) in [
            ("the buffer", &self.local, &self.local_model, Verb::Read),
            ("the segment", &self.owned, &self.owned_model, Verb::Write),
        ] {
            let mut bytes = block.to_vec();
            for op in loose.iter().filter(|op| op.verb == verb) {
                let start = if verb == Verb::Read { op.at } else { op.to } as usize;
                let range = start..start + op.len as usize;
                bytes[range.clone()].copy_from_slice(&model[range]);
            }
            if bytes != *model {
                let wrong = bytes.iter().zip(model).position(|(a, b)| a != b).unwrap_or(0);
                return Err(broken(self.rule, format!("byte {wrong} of {name} is not what it should be")));
            }
        }
        Ok(())
    }

    // Time.

    /// Calls both ends once, and lets a little time pass.
    pub(super) fn step(&mut self) {
        self.progress(Side::Initiator, WIDE);
        self.events_of(Side::Initiator);
        self.progress(Side::Target, WIDE);
        self.events_of(Side::Target);
        self.world.pass(STEP);
    }

    /// Calls the initiator alone: the target is frozen.
    pub(super) fn step_alone(&mut self) {
        self.progress(Side::Initiator, WIDE);
        self.events_of(Side::Initiator);
        self.world.pass(STEP);
    }

    /// One `progress` of one end. Completions of the target's own ops are of no interest here.
    pub(super) fn progress(&mut self, side: Side, budget: Budget) -> usize {
        let now = self.world.now();
        let nothing = Completion { id: id(0), bytes: 0, status: Status::Lost, code: 0 };
        let mut done = [nothing; 32];
        let Some(end) = self.world.transport(side) else { return 0 };
        let count = end.progress(now, budget, &mut done);
        if side == Side::Initiator {
            for completion in &done[..count] {
                self.ended.entry(completion.id).or_insert((*completion, 0)).1 += 1;
            }
        }
        count
    }

    pub(super) fn events_of(&mut self, side: Side) {
        while let Some(event) = self.world.transport(side).and_then(|end| end.event()) {
            self.events.push((side, event));
        }
    }

    pub(super) fn saw(&self, side: Side, event: Event) -> bool {
        self.events.contains(&(side, event))
    }

    /// Calls both ends until `done`.
    pub(super) fn until(&mut self, what: &str, done: impl Fn(&Self) -> bool) -> Checked {
        self.until_by(what, Self::step, done)
    }

    /// Calls `step` until `done`.
    pub(super) fn until_by(
        &mut self,
        what: &str,
        step: impl Fn(&mut Self),
        done: impl Fn(&Self) -> bool,
    ) -> Checked {
        for _ in 0..PATIENCE {
            if done(self) {
                return Ok(());
            }
            step(self);
        }
        Err(broken(self.rule, format!("waited in vain until {what}")))
    }

    /// Calls both ends often enough for anything that is under way to arrive.
    pub(super) fn settle(&mut self) {
        for _ in 0..2_000 {
            self.step();
        }
    }
}

pub(super) fn broken(rule: u8, what: String) -> Violation {
    Violation { rule, what }
}
