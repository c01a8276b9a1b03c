//! A master and a clock in the test's hand.

use core::time::Duration;

use springtide_core::checksum::Checksum;
use springtide_core::id::{Caller, Incarnation, ObjectId, SegmentId, TenantId, Term};
use springtide_core::key::Key;
use springtide_core::master::{
    Config, Cursor, Duty, EndError, Existence, Force, GetError, Master, Member, Next, Probe, PutError,
    PutOptions, Quiet, SegmentSpec, Started, Written,
};
use springtide_core::members::{Fences, Mode};
use springtide_core::ticket::TicketKey;
use springtide_core::time::Instant;

pub(crate) const MIB: u64 = 1 << 20;
pub(crate) const SUM: Checksum = Checksum::Crc32c(7);

/// A master and a clock.
pub(crate) struct Pool {
    pub(crate) master: Master,
    pub(crate) now: Instant,
    pub(crate) request: u64,
}

pub(crate) fn member(name: &str) -> Member<'_> {
    Member { name, address: "", mode: Mode::Pool, key: TicketKey([9; 16]), fences: Fences::Answers }
}

pub(crate) fn key(name: &str) -> Key<'_> {
    Key::new(name.as_bytes()).unwrap()
}

impl Pool {
    /// A master with one node (incarnation 1) that lends `len` bytes, and two clients (2 and 3).
    pub(crate) fn new(len: u64) -> Self {
        Self::with(Config::default(), len)
    }

    pub(crate) fn with(config: Config, len: u64) -> Self {
        Self::new_with(config, 1, len)
    }

    pub(crate) fn seeded(seed: u64, len: u64) -> Self {
        Self::new_with(Config::default(), seed, len)
    }

    fn new_with(config: Config, seed: u64, len: u64) -> Self {
        let now = Instant::from_nanos(1);
        let mut pool = Self { master: Master::new(config, seed, Term(1), now), now, request: 0 };
        for (n, name) in [(1, "node"), (2, "one"), (3, "two")] {
            pool.master.register(now, Incarnation(n), &member(name)).unwrap();
        }
        if len > 0 {
            pool.mount(1, "memory", len);
        }
        pool
    }

    pub(crate) fn mount(&mut self, node: u128, name: &str, len: u64) -> SegmentId {
        let spec = SegmentSpec { name, len, ..SegmentSpec::default() };
        self.master.mount(self.now, Incarnation(node), &spec).unwrap()
    }

    pub(crate) fn caller(&mut self, client: u128) -> Caller {
        self.request += 1;
        Caller { incarnation: Incarnation(client), tenant: TenantId(0), request: self.request }
    }

    /// Lets time pass, with everybody's heartbeats.
    pub(crate) fn pass(&mut self, seconds: u64) {
        for _ in 0..seconds * 2 {
            for member in 1..=3 {
                self.master.heartbeat(self.now, Incarnation(member), [].into_iter());
            }
            self.silence(Duration::from_millis(500));
        }
    }

    /// Lets time pass, and nothing else.
    pub(crate) fn silence(&mut self, time: Duration) {
        self.now += time;
        self.run();
    }

    /// Does what is due now; says in how many steps.
    pub(crate) fn run(&mut self) -> usize {
        let mut steps = 0;
        loop {
            match self.master.poll(self.now) {
                Next::Wait(Some(due)) if due <= self.now => {
                    self.master.handle_timeout(self.now);
                    steps += 1;
                }
                Next::Wait(_) => return steps,
                _ => {}
            }
        }
    }

    pub(crate) fn start(&mut self, client: u128, name: &str, len: u64) -> Result<Started, PutError> {
        self.start_with(client, name, len, &PutOptions::default())
    }

    pub(crate) fn start_with(
        &mut self,
        client: u128,
        name: &str,
        len: u64,
        o: &PutOptions<'_>,
    ) -> Result<Started, PutError> {
        let caller = self.caller(client);
        self.master.put_start(self.now, caller, key(name), len, o)
    }

    pub(crate) fn end(&mut self, client: u128, object: ObjectId) -> Result<(), EndError> {
        let caller = self.caller(client);
        self.master.put_end(self.now, caller, object, Written::all(SUM))
    }

    pub(crate) fn abort(&mut self, client: u128, object: ObjectId, quiet: Quiet) -> Result<(), EndError> {
        let caller = self.caller(client);
        self.master.put_abort(self.now, caller, object, quiet)
    }

    pub(crate) fn put(&mut self, name: &str, len: u64) -> Result<ObjectId, PutError> {
        self.put_with(name, len, &PutOptions::default())
    }

    pub(crate) fn put_with(
        &mut self,
        name: &str,
        len: u64,
        options: &PutOptions<'_>,
    ) -> Result<ObjectId, PutError> {
        let started = self.start_with(2, name, len, options)?;
        self.end(2, started.object).unwrap();
        self.run();
        Ok(started.object)
    }

    pub(crate) fn get(&mut self, name: &str) -> Result<u64, GetError> {
        let caller = self.caller(3);
        self.master.get(self.now, caller, key(name)).map(|found| found.len)
    }

    pub(crate) fn probe(&mut self, name: &str, probe: Probe) -> Existence {
        let caller = self.caller(3);
        self.master.exists(self.now, caller, key(name), probe)
    }

    pub(crate) fn exists(&mut self, name: &str) -> Existence {
        self.probe(name, Probe::Plain)
    }

    pub(crate) fn remove(&mut self, name: &str, force: Force) -> i16 {
        let caller = self.caller(3);
        let removed = self.master.remove(self.now, caller, key(name), force);
        removed.map_or_else(|error| error.code().number(), |()| 0)
    }

    pub(crate) fn remove_all(&mut self, force: Force) -> (u64, u64) {
        let (mut cursor, mut removed, mut skipped) = (Cursor::START, 0, 0);
        while !cursor.is_end() {
            let caller = self.caller(3);
            let step = self.master.remove_step(self.now, caller, cursor, 2, force, &mut |_| true);
            cursor = step.next;
            removed += step.removed;
            skipped += step.skipped;
        }
        (removed, skipped)
    }

    pub(crate) fn used(&self) -> u64 {
        self.master.stats().used
    }

    pub(crate) fn fences(&self, node: u128) -> Vec<u64> {
        self.master.duties(Incarnation(node)).map(|Duty::Fence { number, .. }| number).collect()
    }

    pub(crate) fn report(&mut self, node: u128) {
        let fenced = self.fences(node);
        self.master.heartbeat(self.now, Incarnation(node), fenced.into_iter());
    }
}
