//! Reading.

use springtide_core::client::patience::{Share, attempt};
use springtide_core::client::{NextGet, ReadEnd};
use springtide_core::error::Code;
use springtide_core::id::{BatchId, SegmentId};
use springtide_core::time::Instant;
use springtide_core::transfer::{Outcome, Quiet, Transfer, TransferStatus, Verb};
use springtide_core::wire::message;
use springtide_hal_host::copy::crc32c;

use super::op::{Done, Leg, Op, Wait, Work};
use super::{Call, Client, OpRef, SLOT};
use crate::env::Env;
use crate::fabric::id;
use crate::oracle::GetEnd;

impl Client {
    pub(super) fn step_get(&mut self, env: &mut Env, now: Instant, place: usize, op: &mut Op) -> Done {
        let Work::Get(gets, _) = &mut op.work else { return Done::Yes };
        match gets.next() {
            NextGet::Ask if op.deadline.reached(now) => gets.handle_no_answer(Code::RPC_TIMEOUT),
            NextGet::Ask => {
                gets.asking().for_each(|item| op.asked[item] = env.now);
                op.wait = Wait::Call;
                let what = Call::Op(OpRef { place, number: op.number });
                let (round, keys) = (&mut op.round, &op.keys);
                let names = env.oracle.names();
                self.line.call(env, now, (message::GET, op.deadline), what, |body| {
                    round.get(now, gets, |item| names.of(keys[item]), body);
                });
            }
            NextGet::Read => self.read(env, now, place, op),
            NextGet::Done => {
                self.finish_get(env, op);
                return Done::Yes;
            }
        }
        Done::No
    }

    pub(super) fn get_answered(&self, op: &mut Op, answer: Result<&[u8], Code>) -> Done {
        let Work::Get(gets, _) = &mut op.work else { return Done::Yes };
        match answer {
            Ok(body) => {
                let Self { pid, routes, .. } = self;
                op.round.found(gets, body, |location| Self::rank(*pid, routes, location));
            }
            Err(code) => gets.handle_no_answer(code),
        }
        Done::No
    }

    /// Moves one replica of every item that is to be read.
    fn read(&mut self, env: &mut Env, now: Instant, place: usize, op: &mut Op) {
        let Work::Get(gets, slots) = &op.work else { return };
        let unknown =
            |segment: &SegmentId| self.routes.known(*segment).is_none() && !op.unreachable.contains(segment);
        if let Some(segment) = gets.reading().map(|read| read.from.segment).find(unknown) {
            op.wait = Wait::Route(segment);
            let deadline = op.deadline;
            return self.seek(env, now, segment, deadline);
        }
        let mut transfers: heapless::Vec<Transfer, 4> = heapless::Vec::new();
        let (mut others, mut bytes) = (0, 0);
        let mut ended: heapless::Vec<(usize, ReadEnd), 4> = heapless::Vec::new();
        for read in gets.reading() {
            let Some(route) = self.routes.known(read.from.segment) else {
                let _ = ended.push((read.item, ReadEnd::Failed));
                continue;
            };
            others = others.max(read.others);
            bytes += read.found.len;
            let at = (slots[read.item] * SLOT) as u64;
            let (target, to, len) = (route.target, read.from.offset, read.found.len);
            let _ = transfers.push(Transfer {
                verb: Verb::Read,
                local: id(0),
                at,
                target,
                to,
                ticket: None,
                len,
            });
            let segment = read.from.segment;
            op.legs.push(Leg { item: read.item, replica: 0, segment, route, ticket: None });
        }
        let until = match others {
            0 => op.deadline,
            _ => attempt(now, op.deadline, bytes, Share::Eighth),
        };
        let batch = if transfers.is_empty() { None } else { self.submit(now, place, &transfers, until) };
        let Work::Get(gets, _) = &mut op.work else { return };
        let Self { pid, routes, .. } = self;
        if batch.is_none() {
            ended.extend(op.legs.drain(..).map(|leg| (leg.item, ReadEnd::Refused(Code::BUSY))));
            op.unreachable.clear();
        }
        for (item, end) in ended {
            gets.handle_read(now, item, end, |location| Self::rank(*pid, routes, location));
        }
        if let Some(batch) = batch {
            op.wait = Wait::Batch(batch);
        }
    }

    /// Hands transfers to the engine for the operation at `place`.
    pub(super) fn submit(
        &mut self,
        now: Instant,
        place: usize,
        transfers: &[Transfer],
        until: Instant,
    ) -> Option<BatchId> {
        use springtide_core::id::Id;
        let batch = self.lane.engine.submit(now, transfers, until).ok()?;
        if self.batches.len() <= batch.index() {
            self.batches.resize(batch.index() + 1, None);
        }
        self.batches[batch.index()] = Some(place);
        Some(batch)
    }

    pub(super) fn get_moved(
        &mut self,
        env: &mut Env,
        now: Instant,
        op: &mut Op,
        batch: BatchId,
        outcome: Outcome,
    ) {
        for index in 0..op.legs.len() {
            let leg = op.legs[index];
            let status = self.lane.engine.transfer_status(batch, index);
            let Work::Get(gets, slots) = &mut op.work else { return };
            let end = match status {
                Some(TransferStatus::Done) => match gets.found(leg.item) {
                    Some(found) => {
                        let (len, at) = (found.len, slots[leg.item] * SLOT);
                        let value = &env.fabric.homes[self.pid.index()][at..at + len as usize];
                        ReadEnd::checked(len, found.checksum, || crc32c(value))
                    }
                    None => ReadEnd::Failed,
                },
                _ => {
                    if outcome.quiet() == Quiet::No {
                        // Scratch memory that may still be stored into is not used again.
                        slots[leg.item] = self.slots.pop().unwrap_or_else(|| fresh(env, self.pid.index()));
                    }
                    if !op.deadline.reached(now) {
                        self.forget_route(now, leg.segment, leg.route);
                    }
                    ReadEnd::failed(now, op.deadline)
                }
            };
            op.read[leg.item] = env.now;
            let Work::Get(gets, _) = &mut op.work else { return };
            if end == ReadEnd::Corrupt
                && let Some(found) = gets.found(leg.item)
            {
                let master = env.plan.master_of(self.pid);
                env.oracle.corrupt(env.now, master, leg.segment, found, op.asked[leg.item]);
            }
            let Self { pid, routes, .. } = self;
            gets.handle_read(now, leg.item, end, |location| Self::rank(*pid, routes, location));
        }
    }

    fn finish_get(&mut self, env: &mut Env, op: &Op) {
        let Work::Get(gets, slots) = &op.work else { return };
        for (item, (&key, &slot)) in op.keys.iter().zip(slots).enumerate() {
            let Some(result) = gets.result(item) else { continue };
            let at = slot * SLOT;
            let bytes = &env.fabric.homes[self.pid.index()];
            let value = result.map(|len| &bytes[at..at + len as usize]);
            let end = GetEnd {
                pid: self.pid,
                master: env.plan.master_of(self.pid),
                key,
                asked: op.asked[item],
                read: op.read[item],
                steady: env.lives[self.pid.index()].clock.jumped() < op.asked[item],
            };
            env.oracle.got(env.now, &end, value, gets.found(item));
            if env.tells() {
                env.say(self.pid, format_args!("get {key}: {result:?}"));
            }
        }
        self.slots.extend(slots.iter().copied());
    }
}

/// One more piece of scratch memory.
fn fresh(env: &mut Env, home: usize) -> usize {
    let home = &mut env.fabric.homes[home];
    home.resize(home.len() + SLOT, 0);
    home.len() / SLOT - 1
}
