//! What the machine does without us: copies in memory, and a plain stream over loopback.

use core::hint::black_box;
use std::io::{self, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::thread;

use springtide_hal::Block;
use springtide_hal_host::clock;
use springtide_hal_host::copy::copy;
use springtide_hal_host::memory::{self, Options, Pages, Prefault, Sharing};

use super::load::{Load, Window};
use crate::exit::Failure;
use crate::latency::Latencies;
use crate::reports::measure::Measurement;
use crate::size::Size;

/// How many bytes are copied between two looks at the clock.
const STRETCH: u64 = 1 << 20;

/// Memory that is there, all of it, as clients allocate it (`Shared`) or as a process has it (`Private`).
pub(super) fn block(len: u64, sharing: Sharing) -> Result<Block, Failure> {
    let options =
        Options { sharing, pages: Pages::Transparent, prefault: Prefault::Yes, ..Options::default() };
    memory::allocate(len, options).map(|allocation| allocation.block).map_err(Failure::new)
}

/// One copy after another of `size` bytes, from one place of `set` bytes to the other.
pub(super) fn memcpy(size: u64, set: u64, load: &Load) -> Result<Measurement, Failure> {
    let (from, to) = (block(set, Sharing::Private)?, block(set, Sharing::Private)?);
    let window = load.begin();
    let (mut operations, mut at) = (0, 0);
    while window.is_open(clock::now()) {
        for _ in 0..(STRETCH / size).max(1) {
            let spans = from.span(at, size).and_then(|from| Ok((from, to.span(at, size)?)));
            let (from, to) = spans.map_err(Failure::new)?;
            black_box(copy(black_box(from), black_box(to)));
            operations += 1;
            at = next(at, size, set);
        }
    }
    Ok(Measurement::new("memcpy", Some(Size(size)), operations, window.took()))
}

/// The place after `at` in a ring of `set` bytes that is walked in steps of `size`.
pub(super) const fn next(at: u64, size: u64, set: u64) -> u64 {
    if at + 2 * size <= set { at + size } else { 0 }
}

/// Two threads and a plain blocking stream between them over loopback, written in pieces of `size`.
pub(super) fn stream(size: u64, set: u64, load: &Load) -> Result<Measurement, Failure> {
    let (mut from, mut to) = pair().map_err(broken)?;
    let set = usize::try_from(set).map_err(Failure::new)?;
    let reader = thread::spawn(move || -> io::Result<()> {
        let (mut memory, mut at) = (vec![0; set], 0);
        loop {
            match to.read(&mut memory[at..])? {
                0 => return Ok(()),
                got => at = (at + got) % set,
            }
        }
    });
    let memory = vec![1; set];
    let window = load.begin();
    let (mut operations, mut at) = (0, 0);
    while window.is_open(clock::now()) {
        from.write_all(&memory[at as usize..][..size as usize]).map_err(broken)?;
        operations += 1;
        at = next(at, size, set as u64);
    }
    drop(from);
    ended(reader.join())?;
    Ok(Measurement::new("plain stream", Some(Size(size)), operations, window.took()))
}

/// The same two threads: a short question, `size` bytes in answer, one at a time.
pub(super) fn round_trips(size: u64, load: &Load) -> Result<Measurement, Failure> {
    let (mut asking, mut answering) = pair().map_err(broken)?;
    let len = usize::try_from(size).map_err(Failure::new)?;
    let answerer = thread::spawn(move || -> io::Result<()> {
        let answer = vec![1; len];
        loop {
            let mut question = [0; 32];
            match answering.read_exact(&mut question) {
                Ok(()) => answering.write_all(&answer)?,
                Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => return Ok(()),
                Err(error) => return Err(error),
            }
        }
    });
    let mut memory = vec![0; len];
    let window = load.begin();
    let latencies = one_by_one(&window, || {
        asking.write_all(&[0; 32]).and_then(|()| asking.read_exact(&mut memory)).map_err(broken)
    })?;
    let took = window.took();
    drop(asking);
    ended(answerer.join())?;
    Ok(Measurement::new("plain round trip", Some(Size(size)), latencies.count(), took)
        .with_latencies(latencies.micros()))
}

/// Does `operation` over and over as long as `window` lasts, and takes the time of each.
pub(super) fn one_by_one(
    window: &Window,
    mut operation: impl FnMut() -> Result<(), Failure>,
) -> Result<Latencies, Failure> {
    let mut latencies = Latencies::new();
    let mut now = clock::now();
    while window.is_open(now) {
        operation()?;
        let end = clock::now();
        latencies.record(end.since(now));
        now = end;
    }
    Ok(latencies)
}

fn pair() -> io::Result<(TcpStream, TcpStream)> {
    let listener = TcpListener::bind("127.0.0.1:0")?;
    let one = TcpStream::connect(listener.local_addr()?)?;
    let (other, _) = listener.accept()?;
    one.set_nodelay(true)?;
    other.set_nodelay(true)?;
    Ok((one, other))
}

fn ended(joined: thread::Result<io::Result<()>>) -> Result<(), Failure> {
    match joined {
        Ok(result) => result.map_err(broken),
        Err(panic) => std::panic::resume_unwind(panic),
    }
}

fn broken(error: io::Error) -> Failure {
    Failure::new(format_args!("a plain stream over loopback: {error}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_ring_is_walked_and_never_left() {
        assert_eq!((next(0, 4, 8), next(4, 4, 8)), (4, 0));
        assert_eq!((next(0, 3, 8), next(3, 3, 8)), (3, 0));
        assert_eq!(next(0, 8, 8), 0);
    }
}
