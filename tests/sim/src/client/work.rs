//! What callers ask for next.

use core::time::Duration;

use springtide_core::client::{Gets, NextPut, Puts, Round};
use springtide_core::time::Instant;
use springtide_core::wire::codec;
use springtide_core::wire::message::{Abandoned, Forcing, RESERVE};
use springtide_hal_host::copy::crc32c;

use super::op::{ITEMS, Keys, Op, Source, Stage, Values, Wait, Work};
use super::{Call, Client, SLOT};
use crate::env::Env;
use crate::pattern;

impl Client {
    /// Begins an operation, unless enough are under way.
    pub(super) fn begin(&mut self, env: &mut Env, now: Instant) {
        let work = env.plan.work;
        let fills = !self.fills.reached(now);
        let mean = if fills { Duration::from_micros(100) } else { work.think };
        self.next = now + Duration::from_nanos(1 + self.rng.below(2 * mean.as_nanos() as u64));
        let free = self.ops.iter().position(Option::is_none);
        let Some(place) = free.or_else(|| (self.ops.len() < work.together).then_some(self.ops.len())) else {
            return;
        };
        if place == self.ops.len() {
            self.ops.push(None);
        }
        let keys = self.keys(work.keys);
        self.numbers += 1;
        let work = match self.rng.below(100) {
            _ if fills => self.put(env, &keys),
            0..45 => self.get(env, &keys),
            45..80 => self.put(env, &keys),
            80..90 => Work::Exists,
            90..97 => Work::Remove(Forcing::No),
            _ => Work::Remove(Forcing::Yes),
        };
        let mut op = Box::new(Op {
            number: self.numbers,
            deadline: now + env.plan.work.patience,
            asked: [env.now; ITEMS],
            read: [env.now; ITEMS],
            keys,
            work,
            round: Round::default(),
            wait: Wait::Nothing,
            legs: Vec::new(),
            unreachable: Vec::new(),
        });
        env.oracle.op_began();
        self.use_ahead(env, now, &mut op);
        self.go_on(env, now, place, op);
    }

    /// One key most of the time, else a few; the same may come twice.
    fn keys(&mut self, all: u32) -> Keys {
        let count = if self.rng.below(4) == 0 { 1 + self.rng.below(4) } else { 1 };
        (0..count).map(|_| self.rng.below(all.into()).min(self.rng.below(all.into())) as u32).collect()
    }

    fn get(&mut self, env: &mut Env, keys: &Keys) -> Work {
        Work::Get(Gets::new(keys.len()), keys.iter().map(|_| self.slot(env)).collect())
    }

    fn put(&mut self, env: &mut Env, keys: &Keys) -> Work {
        let longest = u64::from(env.plan.work.longest).min(SLOT as u64);
        let master = env.plan.master_of(self.pid);
        let hard_pin = self.rng.below(64) == 0;
        let mut puts = heapless::Vec::new();
        for &key in keys {
            let shortest = u64::from(pattern::SHORTEST);
            let len = match self.rng.below(4) {
                0 => shortest + self.rng.below(longest - shortest + 1),
                _ => longest,
            } as u32;
            let put = env.oracle.put_began(master, key, len);
            let slot = self.slot(env);
            let home = &mut env.fabric.homes[self.pid.index()];
            let value = &mut home[slot * SLOT..slot * SLOT + len as usize];
            pattern::fill(put, value);
            let _ = puts.push(Source { put, len, slot, sum: crc32c(value) });
        }
        let replicas = if self.rng.below(4) == 0 { 2 } else { 1 };
        let count = puts.len();
        let values = Box::new(Values { puts, replicas, hard_pin, ahead: None, stage: Stage::Start });
        Work::Put(Puts::new(count), values)
    }

    /// Takes an extent that was granted ahead for the only item, if it is an ordinary put; asks for more.
    fn use_ahead(&mut self, env: &mut Env, now: Instant, op: &mut Op) {
        let Work::Put(puts, values) = &mut op.work else { return };
        let ordinary = values.replicas == 1 && !values.hard_pin && puts.next() == NextPut::Start;
        let ([only], true) = (&values.puts[..], ordinary) else { return };
        let len = u64::from(only.len);
        let extent = self.ahead.take(now, len);
        if let Some(reserve) = self.ahead.ask(now, len) {
            let deadline = op.deadline;
            self.line.call(env, now, (RESERVE, deadline), Call::Reserve, |body| codec::put(body, &reserve));
        }
        if let Some(extent) = extent {
            puts.use_reserved(0, extent.grant.clone(), extent.term, extent.until);
            values.ahead = Some(extent);
        }
        let stale: Vec<Abandoned> = self.ahead.stale(now).collect();
        self.give_back(env, now, &stale);
    }
}
