//! How fast bytes move between two processes, beside a plain copy in one: `cargo run --release -p
//! springtide-transport-shm --example speed`.
//!
//! The peer process polls for a while before it sleeps, as a lane does. Every figure is the best of several runs, by
//! the clock and of processor time in the measuring thread.

use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};

use rustix::event::{PollFd, PollFlags};
use springtide_core::id::{Incarnation, OpId, PathId, RegionId, RemoteId, SegmentId, Term, TicketId};
use springtide_core::range::Extent;
use springtide_core::ticket::{Ticket, TicketKey};
use springtide_hal::Block;
use springtide_hal_host::clock::now;
use springtide_hal_host::copy::{copy, copy_crc32c, crc32c_span};
use springtide_hal_host::memory::{Options, Prefault, Sharing, allocate};
use springtide_transport::{Armed, Budget, Completion, Event, Exposure, Op, Status, Transport, Verb};
use springtide_transport_shm::Shm;

const LEN: u64 = 32 << 20;
const RUNS: u32 = 10;
const SIZES: [u64; 3] = [4 << 10, 1 << 20, 16 << 20];
const KEY: TicketKey = TicketKey([1; 16]);
const BUDGET: Budget = Budget { ops: 256, bytes: 4 << 20 };

fn main() {
    if std::env::args().nth(1).is_some() {
        owner();
    }
    let (from, to) = (block(Sharing::Shared), block(Sharing::Shared));
    from.write(0, &vec![7; LEN as usize]).unwrap();
    println!("{:36} {:>9} {:>8} {:>8} {:>10}", "", "bytes", "GB/s", "(cpu)", "us each");
    for size in SIZES {
        let each = |f: &dyn Fn(u64)| best(|| (0..LEN / size).for_each(|n| f(n * size)));
        let plain = each(&|at| {
            core::hint::black_box(copy(from.span(at, size).unwrap(), to.span(at, size).unwrap()));
        });
        row("memcpy", size, plain);
        row(
            "copy and CRC32C",
            size,
            each(&|at| {
                core::hint::black_box(copy_crc32c(from.span(at, size).unwrap(), to.span(at, size).unwrap()));
            }),
        );
        row(
            "CRC32C",
            size,
            each(&|at| {
                core::hint::black_box(crc32c_span(from.span(at, size).unwrap()));
            }),
        );
    }
    for (name, sharing, exposure, verb) in [
        ("read", Sharing::Shared, Exposure::Source, Verb::Read),
        ("write, source mapped", Sharing::Shared, Exposure::Source, Verb::Write),
        ("write, source private", Sharing::Private, Exposure::Source, Verb::Write),
        ("write, in pieces", Sharing::Private, Exposure::Local, Verb::Write),
    ] {
        for ends in [Ends::OneThread, Ends::TwoProcesses] {
            let mut pair = Pair::new(block(sharing), exposure, ends);
            for size in SIZES {
                for depth in [1, 16] {
                    let side = if ends == Ends::OneThread { "" } else { ", other process" };
                    let label = format!("{name}, x{depth}{side}");
                    row(&label, size, best(|| pair.move_all(verb, size, depth)));
                }
            }
        }
    }
}

/// Where the owner is.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Ends {
    /// Here, driven in turn: the processor time is that of both ends.
    OneThread,
    /// In a process of its own.
    TwoProcesses,
}

fn block(sharing: Sharing) -> Block {
    allocate(LEN, Options { sharing, prefault: Prefault::Yes, ..Options::default() }).unwrap().block
}

/// The shortest of several runs, in nanoseconds: by the clock, and of this thread's processor time, which a loaded
/// machine disturbs less.
fn best(mut f: impl FnMut()) -> (u64, u64) {
    let cpu = || {
        let time = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
        time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
    };
    let mut run = || {
        let start = (now().nanos(), cpu());
        f();
        (now().nanos() - start.0, cpu() - start.1)
    };
    (0..RUNS).map(|_| run()).fold((u64::MAX, u64::MAX), |best, run| (best.0.min(run.0), best.1.min(run.1)))
}

fn row(name: &str, size: u64, (wall, cpu): (u64, u64)) {
    let rate = |nanos| LEN as f64 / nanos as f64;
    let each = wall as f64 / 1e3 / (LEN / size) as f64;
    println!("{name:36} {size:>9} {:>8.2} {:>8.2} {each:>10.2}", rate(wall), rate(cpu));
}

/// A transport that owns a segment, its address and the segment's description.
fn segment() -> (Shm, Vec<u8>, Vec<u8>) {
    let mut shm = Shm::new().unwrap();
    let exposure = Exposure::Segment { owner: Incarnation(1), segment: id(1), key: KEY };
    shm.expose(region(0), &block(Sharing::Shared), exposure).unwrap();
    let (mut address, mut description) = (Vec::new(), Vec::new());
    shm.address(&mut address);
    shm.describe(region(0), &mut description).unwrap();
    (shm, address, description)
}

const NOTHING: Completion = {
    let id = OpId::from_bits(1 << 32).unwrap();
    Completion { id, bytes: 0, status: Status::Lost, code: 0 }
};

/// The peer: a segment, served until the other process ends this one.
fn owner() -> ! {
    let (mut shm, address, description) = segment();
    println!("{}", hex(&address));
    println!("{}", hex(&description));
    loop {
        for _ in 0..500 {
            shm.progress(now(), BUDGET, &mut [NOTHING; 16]);
        }
        if shm.arm() == Armed::Asleep {
            let fd = shm.wake_fd().unwrap();
            rustix::event::poll(&mut [PollFd::new(&fd, PollFlags::IN)], None).unwrap();
        }
    }
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn from_hex(line: &str) -> Vec<u8> {
    let digits = line.trim();
    (0..digits.len() / 2).map(|i| u8::from_str_radix(&digits[2 * i..2 * i + 2], 16).unwrap()).collect()
}

fn id(index: u64) -> SegmentId {
    SegmentId::from_bits(1 << 32 | index).unwrap()
}

fn region(index: u64) -> RegionId {
    RegionId::from_bits(1 << 32 | index).unwrap()
}

fn path_id() -> PathId {
    PathId::from_bits(1 << 32).unwrap()
}

fn remote_id() -> RemoteId {
    RemoteId::from_bits(1 << 32).unwrap()
}

fn ticket_id() -> TicketId {
    TicketId::from_bits(1 << 32).unwrap()
}

fn op_id(index: u64) -> OpId {
    OpId::from_bits(1 << 32 | index).unwrap()
}

enum Owner {
    Here(Box<Shm>),
    There(Child),
}

struct Pair {
    shm: Shm,
    owner: Owner,
}

/// Starts the peer process; it says where it is.
fn start() -> (Owner, Vec<u8>, Vec<u8>) {
    let this = std::env::current_exe().unwrap();
    let mut peer = Command::new(this).arg("owner").stdout(Stdio::piped()).spawn().unwrap();
    let mut lines = BufReader::new(peer.stdout.take().unwrap()).lines().map(|line| from_hex(&line.unwrap()));
    let (address, description) = (lines.next().unwrap(), lines.next().unwrap());
    (Owner::There(peer), address, description)
}

impl Pair {
    fn new(ours: Block, exposure: Exposure, ends: Ends) -> Self {
        let (owner, address, description) = match ends {
            Ends::TwoProcesses => start(),
            Ends::OneThread => {
                let (shm, address, description) = segment();
                (Owner::Here(Box::new(shm)), address, description)
            }
        };
        let mut shm = Shm::new().unwrap();
        ours.write(0, &vec![9; LEN as usize]).unwrap();
        shm.expose(region(0), &ours, exposure).unwrap();
        shm.open(now(), path_id(), &address).unwrap();
        let mut pair = Self { shm, owner };
        while pair.shm.event() != Some(Event::Up(path_id())) {
            pair.reap();
        }
        pair.shm.import(path_id(), remote_id(), &description).unwrap();
        let extent = Extent::new(0, LEN).unwrap();
        let (owner, term) = (Incarnation(1), Term(1));
        let ticket = Ticket { owner, segment: id(1), extent, serial: 1, term, tag: 0 };
        pair.shm.admit(ticket_id(), &KEY.sign(ticket)).unwrap();
        pair
    }

    fn reap(&mut self) -> u64 {
        if let Owner::Here(owner) = &mut self.owner {
            owner.progress(now(), BUDGET, &mut [NOTHING; 1]);
        }
        let mut done = [NOTHING; 64];
        let count = self.shm.progress(now(), BUDGET, &mut done);
        assert!(done[..count].iter().all(|done| done.status == Status::Done), "{done:?}");
        done[..count].iter().map(|done| u64::from(done.bytes)).sum()
    }

    /// Moves all of the segment in pieces of `size`, `depth` of them in flight, cut as the transport wants it.
    fn move_all(&mut self, verb: Verb, size: u64, depth: u64) {
        let cut = size.min(self.shm.capabilities().max_op.into());
        let (mut sent, mut moved) = (0, 0);
        while moved < LEN {
            while sent < LEN && sent - moved < size * depth && self.shm.room(path_id()) > 0 {
                let ticket = (verb == Verb::Write).then(ticket_id);
                let op = Op {
                    id: op_id(sent / cut % 1024),
                    local: region(0),
                    at: sent,
                    remote: remote_id(),
                    to: sent,
                    ticket,
                    len: cut as u32,
                    verb,
                };
                self.shm.submit(path_id(), &[op]).unwrap();
                sent += cut;
            }
            moved += self.reap();
        }
    }
}

impl Drop for Pair {
    fn drop(&mut self) {
        if let Owner::There(peer) = &mut self.owner {
            let _ = peer.kill();
            let _ = peer.wait();
        }
    }
}
