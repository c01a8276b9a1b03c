//! A program without std that uses the core: if std leaks into the core or anything below it, the two panic handlers
//! collide and this does not compile (E0152). It also runs: exit code 0, or the number of the first check that failed.
//!
//! The few `unsafe` lines are what every program without std must bring itself: its entry point, its allocator and
//! how it stops.
#![no_std]
#![no_main]

extern crate alloc;

mod bare;

use alloc::string::ToString;
use alloc::vec::Vec;
use core::time::Duration;

use springtide_core::address::HostPort;
use springtide_core::checksum::{self, Checksum};
use springtide_core::error::Code;
use springtide_core::id::{Caller, Incarnation, OpId, SegmentId, TenantId, Term};
use springtide_core::key::Key;
use springtide_core::master::{Config, Master, Member, Next, PutOptions, SegmentSpec, Written};
use springtide_core::members::{Fences, Mode};
use springtide_core::range::Extent;
use springtide_core::slab::Slab;
use springtide_core::space::OffsetAllocator;
use springtide_core::ticket::{Gate, Ticket, TicketKey};
use springtide_core::time::{Instant, Monotone};
use springtide_core::wire::frame::{self, Header, Method};

const CHECKS: [fn() -> Option<()>; 7] = [vocabulary, slots, tickets, frames, addresses, extents, pool];

/// Runs the checks in turn: 0, or the number of the first that failed.
fn run() -> i32 {
    for (number, check) in (1..).zip(CHECKS) {
        if check().is_none() {
            return number;
        }
    }
    0
}

fn vocabulary() -> Option<()> {
    let mut clock = Monotone::default();
    clock.observe(Instant::from_nanos(10));
    let now = clock.observe(Instant::from_nanos(3));
    let key = Key::new(b"key").ok()?;
    let stored = checksum::stored_len(1 << 20)?;
    holds(
        now + Duration::from_nanos(1) == Instant::from_nanos(11)
            && key.bytes().len() == 3
            && stored > 1 << 20,
    )
}

fn slots() -> Option<()> {
    let mut slab: Slab<OpId, u32> = Slab::with_capacity(4);
    let first = slab.insert(1);
    slab.remove(first)?;
    let second = slab.insert(2);
    holds(slab.get(first).is_none() && slab.get(second) == Some(&2))
}

fn tickets() -> Option<()> {
    let (owner, secret) = (Incarnation(7), TicketKey([3; 16]));
    let segment = SegmentId::from_bits(1 << 32)?;
    let extent = Extent::new(0, 128)?;
    let ticket = secret.sign(Ticket { owner, segment, extent, serial: 1, term: Term(1), tag: 0 });
    let mut gate = Gate::new(owner, segment, secret);
    gate.admit(&ticket, extent).ok()?;
    gate.fence(extent, 2);
    holds(gate.admit(&ticket, extent).is_err())
}

fn frames() -> Option<()> {
    let mut bytes = Vec::new();
    let header = Header::request(Method(1), 42, Some(Duration::from_millis(5)));
    let body = |out: &mut Vec<u8>| {
        out.extend_from_slice(b"body");
        Ok::<(), Code>(())
    };
    frame::encode(&mut bytes, &header, body).ok()?;
    let (got, used) = frame::decode(&bytes).ok()??;
    holds(got.header == header && got.body == b"body" && used == bytes.len())
}

fn addresses() -> Option<()> {
    let address = HostPort::parse("[2001:db8::1]:9000", 0).ok()?;
    let refused = HostPort::parse("node-a:", 0).err()?;
    holds(address.to_string() == "[2001:db8::1]:9000" && refused.code() == Code::INVALID_PARAMS)
}

fn extents() -> Option<()> {
    let mut allocator = OffsetAllocator::new(1 << 20);
    let (a, first) = allocator.allocate(1_000)?;
    let (b, second) = allocator.allocate(2_000)?;
    allocator.free(a, first).ok()?;
    allocator.free(b, second).ok()?;
    holds(!a.overlaps(b) && allocator.used() == 0 && allocator.largest_hole() == 1 << 20)
}

/// A node lends memory, one client puts, another gets.
fn pool() -> Option<()> {
    let now = Instant::from_nanos(1);
    let mut master = Master::new(Config::default(), 1, Term(1), now);
    for (number, name) in [(1, "node"), (2, "writer"), (3, "reader")] {
        let key = TicketKey([9; 16]);
        let member = Member { name, address: "", mode: Mode::Pool, key, fences: Fences::Answers };
        master.register(now, Incarnation(number), &member).ok()?;
    }
    let spec = SegmentSpec { name: "memory", len: 1 << 20, ..SegmentSpec::default() };
    master.mount(now, Incarnation(1), &spec).ok()?;
    let caller = |number| Caller { incarnation: Incarnation(number), tenant: TenantId(0), request: 1 };
    let key = Key::new(b"key").ok()?;
    let object = master.put_start(now, caller(2), key, 4_096, &PutOptions::default()).ok()?.object;
    master.put_end(now, caller(2), object, Written::all(Checksum::Crc32c(7))).ok()?;
    while !matches!(master.poll(now), Next::Wait(_)) {}
    let found = master.get(now, caller(3), key).ok()?;
    holds(found.len == 4_096)
}

fn holds(condition: bool) -> Option<()> {
    condition.then_some(())
}
