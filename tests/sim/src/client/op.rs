//! One operation of one caller, from its beginning to its one result.

use springtide_core::client::ahead::Reserved;
use springtide_core::client::{Gets, Puts, Round};
use springtide_core::error::Code;
use springtide_core::id::{BatchId, SegmentId, TicketId};
use springtide_core::time::Instant;
use springtide_core::transfer::Outcome;
use springtide_core::wire::message::Forcing;

use super::routes::Route;
use super::{Client, OpRef};
use crate::env::Env;

/// Most items of one batch.
pub(super) const ITEMS: usize = 4;

/// Keys by number.
pub(super) type Keys = heapless::Vec<u32, ITEMS>;

/// One operation under way.
#[derive(Debug)]
pub(super) struct Op {
    pub(super) number: u64,
    pub(super) deadline: Instant,
    /// By item: when the master was asked last, in true time.
    pub(super) asked: [Instant; ITEMS],
    /// By item: when its bytes were there and checked, in true time.
    pub(super) read: [Instant; ITEMS],
    pub(super) keys: Keys,
    pub(super) work: Work,
    pub(super) round: Round,
    pub(super) wait: Wait,
    /// What the batch under way moves.
    pub(super) legs: Vec<Leg>,
    /// Segments that no way was found to, in this trip.
    pub(super) unreachable: Vec<SegmentId>,
}

/// What an operation does.
#[derive(Debug)]
pub(super) enum Work {
    /// Reads values.
    Get(Gets, heapless::Vec<usize, ITEMS>),
    /// Writes values.
    Put(Puts, Box<Values>),
    /// Asks whether keys are there.
    Exists,
    /// Removes keys.
    Remove(Forcing),
}

/// What a put writes.
#[derive(Debug)]
pub(super) struct Values {
    pub(super) puts: heapless::Vec<Source, ITEMS>,
    pub(super) replicas: u8,
    pub(super) hard_pin: bool,
    /// The extent granted ahead that the only item uses.
    pub(super) ahead: Option<Reserved>,
    /// The last call that ends it, if one is under way or was.
    pub(super) stage: Stage,
}

/// One value.
#[derive(Clone, Copy, Debug)]
pub(super) struct Source {
    /// The put's number.
    pub(super) put: u32,
    pub(super) len: u32,
    pub(super) slot: usize,
    pub(super) sum: u32,
}

/// Which call of a put is under way.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Stage {
    Start,
    End,
    Abort,
}

/// What an operation waits for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Wait {
    Nothing,
    Call,
    Route(SegmentId),
    Batch(BatchId),
}

/// One transfer of a trip.
#[derive(Clone, Copy, Debug)]
pub(super) struct Leg {
    pub(super) item: usize,
    pub(super) replica: usize,
    pub(super) segment: SegmentId,
    pub(super) route: Route,
    pub(super) ticket: Option<TicketId>,
}

impl Op {
    /// Its caller died: what it has not heard of is undecided.
    pub(super) fn abandoned(&self, env: &mut Env) {
        if let Work::Put(_, values) = &self.work {
            values.puts.iter().for_each(|source| env.oracle.put_undecided(source.put));
        }
    }
}

impl Client {
    /// Lets an operation go as far as it can.
    pub(super) fn go_on(&mut self, env: &mut Env, now: Instant, place: usize, mut op: Box<Op>) {
        while op.wait == Wait::Nothing {
            let done = match op.work {
                Work::Get(..) => self.step_get(env, now, place, &mut op),
                Work::Put(..) => self.step_put(env, now, place, &mut op),
                Work::Exists | Work::Remove(_) => self.step_plain(env, now, place, &mut op),
            };
            if done == Done::Yes {
                env.oracle.op_ended();
                return;
            }
        }
        self.ops[place] = Some(op);
    }

    pub(super) fn op_answered(
        &mut self,
        env: &mut Env,
        now: Instant,
        OpRef { place, number }: OpRef,
        answer: Result<&[u8], Code>,
    ) {
        let Some(mut op) = self.ops[place].take() else { return };
        if op.number != number || op.wait != Wait::Call {
            self.ops[place] = Some(op);
            return;
        }
        op.wait = Wait::Nothing;
        let done = match op.work {
            Work::Get(..) => self.get_answered(&mut op, answer),
            Work::Put(..) => Self::put_answered(env, &mut op, answer),
            Work::Exists | Work::Remove(_) => self.plain_answered(env, &op, answer),
        };
        if done == Done::Yes {
            env.oracle.op_ended();
        } else {
            self.go_on(env, now, place, op);
        }
    }

    pub(super) fn trip_ended(
        &mut self,
        env: &mut Env,
        now: Instant,
        op: &mut Op,
        batch: BatchId,
        outcome: Outcome,
    ) {
        match op.work {
            Work::Get(..) => self.get_moved(env, now, op, batch, outcome),
            Work::Put(..) => self.put_moved(env, now, op, batch, outcome),
            Work::Exists | Work::Remove(_) => {}
        }
        op.legs.clear();
        op.unreachable.clear();
    }
}

/// Whether an operation has its result.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Done {
    Yes,
    No,
}
