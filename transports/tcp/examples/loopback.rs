//! Throughput and latency between two threads over loopback, beside a plain stream of the same bytes.
//!
//! `cargo run --release -p springtide-transport-tcp --example loopback [-- ROUNDS [LANES]]`
//!
//! Each round measures a plain blocking stream and then every shape, so that the ratio compares like with like. Both
//! sides spin a little before they sleep. Then the same shapes with both sides driven by one thread, in CPU time: what
//! an op costs both sides together, whoever else uses the machine.

use core::sync::atomic::{AtomicBool, Ordering};
use core::time::Duration;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::Arc;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::time::{ClockId, clock_gettime};
use springtide_core::id::{Id, Incarnation, PathId, RegionId, RemoteId, SegmentId, TicketId};
use springtide_core::range::Extent;
use springtide_core::ticket::{Ticket, TicketKey};
use springtide_core::time::Instant;
use springtide_hal::Block;
use springtide_hal_host::clock::now;
use springtide_transport::{Armed, Budget, Completion, Event, Exposure, Op, Status, Transport, Verb};
use springtide_transport_tcp::{Config, MAX_OP, TcpTransport};

const MEMORY: usize = 64 << 20;
const KEY: TicketKey = TicketKey([1; 16]);
const BUDGET: Budget = Budget { ops: 1_024, bytes: 8 << 20 };
const SPINS: u32 = 500;
const SHAPES: [(u32, usize); 6] =
    [(4 << 10, 1), (4 << 10, 128), (64 << 10, 128), (256 << 10, 64), (1 << 20, 64), (16 << 20, 4)];

fn id<I: Id>(index: u32) -> I {
    I::new(index, core::num::NonZeroU32::MIN)
}

fn seconds(from: Instant) -> f64 {
    now().since(from).as_secs_f64()
}

/// A transport with its memory as region 0 and segment 0.
fn node(who: u128, lanes: usize) -> (TcpTransport, Block) {
    let mut config = Config::new(Incarnation(who));
    config.listen = Some("127.0.0.1:0".parse().expect("an address"));
    config.lanes = lanes;
    let mut transport = TcpTransport::new(config).expect("loopback listens");
    let memory = Block::from(vec![who as u8; MEMORY]);
    let exposure = Exposure::Segment { owner: config.owner, segment: id::<SegmentId>(0), key: KEY };
    transport.expose(id::<RegionId>(0), &memory, exposure).expect("a fresh region");
    (transport, memory)
}

/// One look at what is there; sleeps when there has been nothing for a while.
fn turn(transport: &mut TcpTransport, idle: &mut u32, done: &mut [Completion]) -> usize {
    let count = transport.progress(now(), BUDGET, done);
    let wait = match transport.arm() {
        _ if count > 0 => None,
        Armed::Again => None,
        Armed::Asleep => Some(Duration::from_millis(100)),
        Armed::Poll(after) => Some(after),
    };
    let Some(wait) = wait else {
        *idle = 0;
        return count;
    };
    *idle += 1;
    if *idle > SPINS
        && let Some(fd) = transport.wake_fd()
    {
        let timeout = Timespec { tv_sec: 0, tv_nsec: wait.subsec_nanos().into() };
        let _ = poll(&mut [PollFd::new(&fd, PollFlags::IN)], Some(&timeout));
    }
    count
}

fn serve(mut transport: TcpTransport, stop: &AtomicBool) {
    let nothing = Completion { id: id(0), bytes: 0, status: Status::Lost, code: 0 };
    let (mut done, mut idle) = ([nothing; 64], 0);
    while !stop.load(Ordering::Relaxed) {
        turn(&mut transport, &mut idle, &mut done);
        while transport.event().is_some() {}
    }
}

/// CPU seconds that this thread has used.
fn cpu() -> f64 {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    time.tv_sec as f64 + time.tv_nsec as f64 / 1e9
}

struct Client {
    transport: TcpTransport,
    path: PathId,
    idle: u32,
}

impl Client {
    /// Moves `total` bytes in ops of `len`, `depth` in flight. Drives the other side too, if it is given.
    fn run(&mut self, verb: Verb, len: u32, depth: usize, total: u64, mut peer: Option<&mut TcpTransport>) {
        let nothing = Completion { id: id(0), bytes: 0, status: Status::Lost, code: 0 };
        let mut done = [nothing; 64];
        let (count, slots) = (total / u64::from(len), MEMORY as u64 / u64::from(len));
        let (mut posted, mut ended) = (0, 0);
        let mut batch: Vec<Op> = Vec::with_capacity(depth);
        while ended < count {
            batch.clear();
            while posted < count && posted - ended < depth as u64 {
                let at = posted % slots * u64::from(len);
                let ticket = (verb == Verb::Write).then(|| id::<TicketId>(0));
                let (local, remote) = (id::<RegionId>(0), id::<RemoteId>(0));
                batch.push(Op { id: id(posted as u32), local, at, remote, to: at, ticket, len, verb });
                posted += 1;
            }
            self.transport.submit(self.path, &batch).expect("the path has room for the depth");
            if let Some(peer) = &mut peer {
                self.idle = 0;
                peer.progress(now(), BUDGET, &mut done);
            }
            let finished = turn(&mut self.transport, &mut self.idle, &mut done);
            assert!(done[..finished].iter().all(|done| done.status == Status::Done && done.bytes == len));
            ended += finished as u64;
        }
    }
}

/// Moves `total` bytes through a plain blocking stream: seconds.
fn plain(total: usize) -> f64 {
    let listener = TcpListener::bind("127.0.0.1:0").expect("loopback listens");
    let address = listener.local_addr().expect("bound");
    let reader = std::thread::spawn(move || {
        let (mut stream, _) = listener.accept().expect("somebody connects");
        let mut buffer = vec![0; MEMORY];
        let mut got = 0;
        while got < total {
            let at = got % MEMORY;
            match stream.read(&mut buffer[at..]).expect("the stream holds") {
                0 => break,
                n => got += n,
            }
        }
        stream.write_all(b".").expect("the stream holds");
    });
    let mut stream = TcpStream::connect(address).expect("somebody listens");
    let buffer = vec![1; MEMORY];
    let start = now();
    for _ in 0..total / MEMORY {
        buffer.chunks(1 << 20).for_each(|chunk| stream.write_all(chunk).expect("the stream holds"));
    }
    stream.read_exact(&mut [0]).expect("the reader answers");
    let seconds = seconds(start);
    reader.join().expect("the reader ends");
    seconds
}

/// Moves `total` bytes through a plain stream, both ends driven by this thread: CPU seconds.
fn plain_cpu(total: usize) -> f64 {
    let listener = TcpListener::bind("127.0.0.1:0").expect("loopback listens");
    let mut sender = TcpStream::connect(listener.local_addr().expect("bound")).expect("somebody listens");
    let (mut receiver, _) = listener.accept().expect("somebody connects");
    sender.set_nonblocking(true).expect("a socket");
    receiver.set_nonblocking(true).expect("a socket");
    let (from, mut to) = (vec![1; MEMORY], vec![0; MEMORY]);
    let (mut sent, mut got) = (0, 0);
    let start = cpu();
    while got < total {
        let at = sent % MEMORY;
        sent += sender.write(&from[at..(at + (1 << 20)).min(MEMORY)]).unwrap_or(0);
        got += receiver.read(&mut to[got % MEMORY..]).unwrap_or(0);
    }
    cpu() - start
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

fn connect(lanes: usize, target: &TcpTransport) -> Client {
    let (mut address, mut description) = (Vec::new(), Vec::new());
    target.address(&mut address);
    target.describe(id(0), &mut description).expect("exposed");
    let (mut transport, _memory) = node(1, lanes);
    let path = id(0);
    transport.open(now(), path, &address).expect("loopback is reachable");
    transport.import(path, id::<RemoteId>(0), &description).expect("described a moment ago");
    let extent = Extent::new(0, MEMORY as u64).expect("fits");
    let (owner, segment, term) = (Incarnation(2), id::<SegmentId>(0), Default::default());
    let ticket = KEY.sign(Ticket { owner, segment, extent, serial: 1, term, tag: 0 });
    transport.admit(id::<TicketId>(0), &ticket).expect("a fresh id");
    Client { transport, path, idle: 0 }
}

/// What was measured, by shape and direction.
type Rates = Vec<Vec<f64>>;

/// Prints one line for each shape and direction that was measured.
fn print(rates: Rates, line: impl Fn(f64, u32) -> String) {
    let names = SHAPES.iter().flat_map(|shape| [(shape, "read"), (shape, "write")]);
    for ((&(len, depth), name), rates) in names.zip(rates) {
        if !rates.is_empty() {
            println!("{:6} KiB × {depth:3} {name:5} {}", len >> 10, line(median(rates), len));
        }
    }
}

/// Runs every shape both ways; `measure` gives the figure for (verb, length, depth, bytes).
fn sweep(only: Option<usize>, rates: &mut Rates, mut measure: impl FnMut(Verb, u32, usize, u64) -> f64) {
    for (index, &(len, depth)) in SHAPES.iter().enumerate() {
        if only.is_some_and(|only| only != index) {
            continue;
        }
        assert!(len <= MAX_OP);
        let total = if depth == 1 { 64 << 20 } else { 1 << 30 };
        rates[2 * index].push(measure(Verb::Read, len, depth, total));
        rates[2 * index + 1].push(measure(Verb::Write, len, depth, total));
    }
}

/// Waits until the client's path is up, driving the other side too.
fn up(client: &mut Client, peer: &mut TcpTransport) {
    let nothing = Completion { id: id(0), bytes: 0, status: Status::Lost, code: 0 };
    while client.transport.event() != Some(Event::Up(client.path)) {
        peer.progress(now(), BUDGET, &mut [nothing; 1]);
        client.transport.progress(now(), BUDGET, &mut [nothing; 1]);
    }
}

fn main() {
    let mut arguments = std::env::args().skip(1).map(|text| text.parse().expect("a number"));
    let (rounds, lanes) = (arguments.next().unwrap_or(3), arguments.next().unwrap_or(1));
    let only = arguments.next();
    let (mut target, _memory) = node(2, 1);
    let mut client = connect(lanes, &target);
    up(&mut client, &mut target);
    one_thread(rounds, only, &mut client, &mut target);
    two_threads(rounds, lanes, only, client, target);
}

fn one_thread(rounds: usize, only: Option<usize>, client: &mut Client, target: &mut TcpTransport) {
    let (mut streams, mut rates) = (Vec::new(), vec![Vec::new(); SHAPES.len() * 2]);
    for _ in 0..rounds {
        streams.push(plain_cpu(1 << 30));
        sweep(only, &mut rates, |verb, len, depth, total| {
            client.run(verb, len, depth, total / 16, Some(target));
            let start = cpu();
            client.run(verb, len, depth, total, Some(target));
            (cpu() - start) / (total / u64::from(len)) as f64
        });
    }
    let stream = median(streams) / (1u64 << 30) as f64;
    println!(
        "one thread, CPU time of both sides; plain stream {:.0} µs a MiB",
        stream * 1e6 * (1 << 20) as f64
    );
    print(rates, |seconds, len| {
        let plain = stream * f64::from(len);
        format!("{:8.2} µs an op, plain {:8.2}, ratio {:.2}", seconds * 1e6, plain * 1e6, plain / seconds)
    });
}

fn two_threads(rounds: usize, lanes: usize, only: Option<usize>, mut client: Client, target: TcpTransport) {
    let stop = Arc::new(AtomicBool::new(false));
    let stopped = stop.clone();
    let server = std::thread::spawn(move || serve(target, &stopped));
    let (mut streams, mut rates) = (Vec::new(), vec![Vec::new(); SHAPES.len() * 2]);
    for _ in 0..rounds {
        streams.push((1u64 << 30) as f64 / plain(1 << 30) / 1e9);
        sweep(only, &mut rates, |verb, len, depth, total| {
            client.run(verb, len, depth, total / 16, None);
            let start = now();
            client.run(verb, len, depth, total, None);
            total as f64 / seconds(start) / 1e9
        });
    }
    let stream = median(streams);
    println!("two threads, medians of {rounds}, {lanes} lanes; plain stream {stream:.2} GB/s");
    print(rates, |rate, len| {
        format!("{rate:6.2} GB/s {:8.0} op/s, {:.2} of plain", rate * 1e9 / f64::from(len), rate / stream)
    });
    stop.store(true, Ordering::Relaxed);
    server.join().expect("the server ends");
}
