//! Writing.

use springtide_core::checksum::Checksum;
use springtide_core::client::patience::{Share, attempt};
use springtide_core::client::{Granted, NextPut, Value, WriteEnd};
use springtide_core::error::Code;
use springtide_core::id::{BatchId, SegmentId};
use springtide_core::ticket::Ticket;
use springtide_core::time::Instant;
use springtide_core::transfer::{Outcome, Transfer, TransferStatus, Verb};
use springtide_core::wire::codec;
use springtide_core::wire::message::{self, Abandoned, Options, Placement, Refusal};

use super::op::{Done, Leg, Op, Source, Stage, Wait, Work};
use super::{Call, Client, OpRef, SLOT};
use crate::env::Env;
use crate::fabric::id;

impl Client {
    pub(super) fn step_put(&mut self, env: &mut Env, now: Instant, place: usize, op: &mut Op) -> Done {
        let Work::Put(puts, values) = &mut op.work else { return Done::Yes };
        let what = Call::Op(OpRef { place, number: op.number });
        let names = env.oracle.names();
        let (round, keys, sources) = (&mut op.round, &op.keys, &values.puts);
        let value = |item: usize| Value {
            key: names.of(keys[item]),
            len: sources[item].len.into(),
            checksum: Checksum::Crc32c(sources[item].sum),
        };
        let stage = match puts.next() {
            NextPut::Write => {
                self.write(env, now, place, op);
                return Done::No;
            }
            NextPut::Done => {
                self.finish_put(env, now, op);
                return Done::Yes;
            }
            NextPut::Start => Stage::Start,
            NextPut::End => Stage::End,
            NextPut::Abort => Stage::Abort,
        };
        values.stage = stage;
        op.wait = Wait::Call;
        let mut body = Vec::new();
        let master = env.plan.master_of(self.pid);
        let method = match stage {
            Stage::Start => {
                let options =
                    Options { replicas: values.replicas, hard_pin: values.hard_pin, ..Options::default() };
                round.start(now, puts, &options, value, &mut body);
                message::PUT_START
            }
            Stage::End => {
                let by = puts.ending().next().map_or(Granted::ByStart, |ending| ending.granted);
                let method = round.end(now, puts, by, value, &mut body);
                for ending in puts.ending() {
                    env.oracle.put_ending(master, ending.object, values.puts[ending.item].put);
                }
                method
            }
            Stage::Abort => {
                round.abort(now, puts, &mut body);
                message::PUT_ABORT
            }
        };
        self.line.call(env, now, (method, op.deadline), what, |out| out.append(&mut body));
        Done::No
    }

    pub(super) fn put_answered(env: &mut Env, op: &mut Op, answer: Result<&[u8], Code>) -> Done {
        let Work::Put(puts, values) = &mut op.work else { return Done::Yes };
        if values.stage == Stage::End && answer.is_err() {
            // The master may have heard it, or not.
            values.puts.iter().for_each(|source| env.oracle.put_undecided(source.put));
        }
        match (values.stage, answer) {
            (Stage::Start, Ok(body)) => op.round.started(puts, body),
            (Stage::End, Ok(body)) => op.round.ended(puts, body),
            (Stage::Abort, _) => op.round.aborted(puts),
            (_, Err(code)) => op.round.give_up(puts, code),
        }
        Done::No
    }

    /// Writes what is left to write.
    fn write(&mut self, env: &mut Env, now: Instant, place: usize, op: &mut Op) {
        let Work::Put(puts, values) = &op.work else { return };
        let unknown =
            |segment: &SegmentId| self.routes.known(*segment).is_none() && !op.unreachable.contains(segment);
        if let Some(segment) = puts.writing().map(|write| write.to.segment).find(unknown) {
            op.wait = Wait::Route(segment);
            let deadline = op.deadline;
            return self.seek(env, now, segment, deadline);
        }
        let mut transfers: heapless::Vec<Transfer, 16> = heapless::Vec::new();
        let mut ended: heapless::Vec<(usize, usize, WriteEnd), 16> = heapless::Vec::new();
        let (mut until, mut bytes) = (op.deadline, 0);
        for write in puts.writing() {
            let Source { len, slot, .. } = values.puts[write.item];
            let route = self.routes.known(write.to.segment);
            let Some(route) = route.filter(|_| u64::from(len) <= write.to.extent.len()) else {
                let _ = ended.push((write.item, write.replica, WriteEnd::Failed));
                continue;
            };
            let Placement { segment, extent, serial, tag } = write.to;
            let ticket = Ticket { owner: route.owner, segment, extent, serial, term: write.term, tag };
            let ticket = Some(self.lane.admit(ticket));
            until = until.min(write.until);
            bytes += u64::from(len);
            let (at, target, to) = ((slot * SLOT) as u64, route.target, extent.offset());
            let len = u64::from(len);
            let _ = transfers.push(Transfer { verb: Verb::Write, local: id(0), at, target, to, ticket, len });
            op.legs.push(Leg { item: write.item, replica: write.replica, segment, route, ticket });
        }
        until = until.min(attempt(now, op.deadline, bytes, Share::Third));
        let batch = if transfers.is_empty() { None } else { self.submit(now, place, &transfers, until) };
        let Work::Put(puts, _) = &mut op.work else { return };
        match batch {
            Some(batch) => op.wait = Wait::Batch(batch),
            None => {
                for leg in op.legs.drain(..) {
                    leg.ticket.into_iter().for_each(|ticket| self.lane.retire(ticket));
                    let _ = ended.push((leg.item, leg.replica, WriteEnd::Failed));
                }
                op.unreachable.clear();
            }
        }
        for (item, replica, end) in ended {
            puts.handle_write(now, item, replica, end);
        }
        self.too_late(env, now, op);
    }

    pub(super) fn put_moved(
        &mut self,
        env: &mut Env,
        now: Instant,
        op: &mut Op,
        batch: BatchId,
        outcome: Outcome,
    ) {
        for index in 0..op.legs.len() {
            let leg = op.legs[index];
            leg.ticket.into_iter().for_each(|ticket| self.lane.retire(ticket));
            let end = match self.lane.engine.transfer_status(batch, index) {
                Some(TransferStatus::Done) => WriteEnd::Good,
                Some(TransferStatus::Failed(failure)) => {
                    self.forget_route(now, leg.segment, leg.route);
                    WriteEnd::failed(failure, outcome.quiet())
                }
                _ => WriteEnd::Unsure,
            };
            if let Work::Put(puts, _) = &mut op.work {
                puts.handle_write(now, leg.item, leg.replica, end);
            }
        }
        self.too_late(env, now, op);
    }

    /// After the deadline, puts that are to be started again end, and give back what they have.
    fn too_late(&mut self, env: &mut Env, now: Instant, op: &mut Op) {
        let Work::Put(puts, _) = &mut op.work else { return };
        if !op.deadline.reached(now) {
            return;
        }
        let late: heapless::Vec<usize, 4> = puts.aborting().map(|(item, _)| item).collect();
        let code = Refusal::new(Code::RPC_TIMEOUT);
        let abandoned: Vec<Abandoned> = late.iter().filter_map(|&item| puts.give_up(item, code)).collect();
        self.give_back(env, now, &abandoned);
    }

    /// Tells the master, without waiting for it, to take extents back.
    pub(super) fn give_back(&mut self, env: &mut Env, now: Instant, abandoned: &[Abandoned]) {
        if abandoned.is_empty() {
            return;
        }
        let deadline = now + core::time::Duration::from_millis(100);
        self.line.call(env, now, (message::PUT_ABORT, deadline), Call::Nobody, |body| {
            codec::put(body, &());
            abandoned.iter().for_each(|item| codec::put(body, item));
        });
    }

    fn finish_put(&mut self, env: &mut Env, _now: Instant, op: &mut Op) {
        let Work::Put(puts, values) = &mut op.work else { return };
        for (item, source) in values.puts.iter().enumerate() {
            let Some(result) = puts.result(item) else { continue };
            env.oracle.put_ended(env.now, source.put, result.map_err(|refusal| refusal.code));
            if env.tells() {
                let (key, put) = (op.keys[item], source.put);
                env.say(self.pid, format_args!("put {key} (number {put}): {result:?}"));
            }
            self.slots.push(source.slot);
        }
        if let Some(extent) = values.ahead.take() {
            let exists =
                matches!(puts.result(0), Some(Err(refusal)) if refusal.code == Code::OBJECT_ALREADY_EXISTS);
            let same = puts.grant(0).is_some_and(|grant| grant.object == extent.grant.object);
            if exists && same {
                self.ahead.put_back(extent);
            }
        }
    }
}
