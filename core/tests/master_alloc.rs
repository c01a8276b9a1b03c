//! Once warm, the master allocates nothing for reads, probes and puts, nor does the wire for their messages.

use core::time::Duration;

use springtide_core::checksum::Checksum;
use springtide_core::error::Code;
use springtide_core::id::{Caller, Incarnation, TenantId, Term};
use springtide_core::key::Key;
use springtide_core::master::{
    Config, Existence, Force, Master, Member, Probe, PutOptions, SegmentSpec, Written,
};
use springtide_core::members::{Fences, Mode};
use springtide_core::ticket::TicketKey;
use springtide_core::time::Instant;
use springtide_core::wire::codec::{put, split};
use springtide_core::wire::frame::{self, Header};
use springtide_core::wire::message::{self, Found, Leased, Location, Refusal};
use springtide_counting::{Counting, during};

#[global_allocator]
static COUNTING: Counting = Counting;

const NODE: Incarnation = Incarnation(1);
const SUM: Checksum = Checksum::Crc32c(7);
const KEYS: u64 = 200;

struct Rig {
    master: Master,
    now: Instant,
    request: u64,
}

impl Rig {
    fn new() -> Self {
        let now = Instant::from_nanos(1);
        let mut master = Master::new(Config::default(), 1, Term(1), now);
        let member = |name| Member {
            name,
            address: "",
            mode: Mode::Pool,
            key: TicketKey([9; 16]),
            fences: Fences::Answers,
        };
        master.register(now, NODE, &member("node")).unwrap();
        let spec = SegmentSpec { name: "memory", len: 64 << 20, ..SegmentSpec::default() };
        master.mount(now, NODE, &spec).unwrap();
        Self { master, now, request: 0 }
    }

    fn caller(&mut self) -> Caller {
        self.request += 1;
        Caller { incarnation: NODE, tenant: TenantId(0), request: self.request }
    }

    /// Every key is put, probed, read and removed again.
    fn round(&mut self) {
        for n in 0..KEYS {
            let (bytes, caller) = (n.to_le_bytes(), self.caller());
            let key = Key::new(&bytes).unwrap();
            let started =
                self.master.put_start(self.now, caller, key, 1_000 + n * 64, &PutOptions::default()).unwrap();
            self.master.put_end(self.now, caller, started.object, Written::all(SUM)).unwrap();
        }
        self.reads();
        for n in 0..KEYS {
            let (bytes, caller) = (n.to_le_bytes(), self.caller());
            self.master.remove(self.now, caller, Key::new(&bytes).unwrap(), Force::Yes).unwrap();
        }
        self.now += Duration::from_secs(11);
        self.master.heartbeat(self.now, NODE, core::iter::empty());
        for _ in 0..20 {
            self.master.handle_timeout(self.now);
        }
        assert_eq!(self.master.stats().used, 0);
    }

    fn reads(&mut self) {
        for n in 0..KEYS {
            let (bytes, caller) = (n.to_le_bytes(), self.caller());
            let key = Key::new(&bytes).unwrap();
            assert_eq!(self.master.exists(self.now, caller, key, Probe::Plain), Existence::Present);
            assert_eq!(self.master.get(self.now, caller, key).unwrap().replicas.len(), 1);
        }
    }
}

#[test]
fn a_warm_master_allocates_nothing() {
    let mut rig = Rig::new();
    (0..30).for_each(|_| rig.round());
    assert_eq!(during(|| (0..50).for_each(|_| rig.round())), 0);
}

/// A batch of answers is written into a buffer that was used before, and read without one.
#[test]
fn a_warm_buffer_takes_a_batch_without_allocating() {
    let at = Location { segment: springtide_core::id::SegmentId::from_bits(1 << 32).unwrap(), offset: 64 };
    let found = Found {
        object: springtide_core::id::ObjectId::from_bits(1 << 32).unwrap(),
        len: 4_096,
        checksum: SUM,
        replicas: [at; 3].into_iter().collect(),
    };
    let mut out = Vec::new();
    let mut batch = || {
        out.clear();
        let header = Header::request(message::GET, 7, None).reply(Code::OK);
        let body = |out: &mut Vec<u8>| {
            put(out, &Leased { lease_ms: 10_000 });
            for n in 0..100 {
                match n % 3 {
                    0 => put(out, &Err::<Found, _>(Refusal::new(Code::OBJECT_NOT_FOUND))),
                    _ => put(out, &Ok::<_, Refusal>(&found)),
                }
            }
            Ok::<(), ()>(())
        };
        frame::encode(&mut out, &header, body).unwrap();
        let (frame, used) = frame::decode(&out).unwrap().unwrap();
        let (_, tail) = split::<Leased, Result<Found, Refusal>>(frame.body).unwrap();
        assert_eq!((used, tail.map(Result::unwrap).filter(Result::is_ok).count()), (out.len(), 66));
    };
    batch();
    assert_eq!(during(batch), 0);
}
