//! The core in a loop of one's own: a member of the pool without executor, runtime or thread, over a byte stream.
//!
//! `cargo run --example bare_loop -- 127.0.0.1:50051 KEY…` joins the pool of a running `springtide master`, reports a
//! few times and asks which keys are there. [`Membership`] is the core's machine: it decides what is to be called and
//! when; this file makes the calls. Everything above [`Socket`] knows only the traits of `embedded-io-async`, so that a
//! board's UART or TCP stack can stand in its place.

use core::future::Future;
use core::pin::pin;
use core::task::{Context, Poll, Waker};
use core::time::Duration;
use std::io::{self, Read as _, Write as _};
use std::net::TcpStream;

use embedded_io_async::{ErrorType, Read, Write};
use springtide::core::error::Code;
use springtide::core::id::Incarnation;
use springtide::core::node::{CallError, Config, Membership, Next};
use springtide::core::time::Instant;
use springtide::core::wire::message::{
    self, Beat, FenceDuty, Heartbeat, Hello, Mode, PROTOCOL, Presence, ProbeKind, Register, Registered,
    Welcome,
};
use springtide::core::wire::{codec, frame};

/// How long one call may take.
const CALL: Duration = Duration::from_secs(3);

/// Calls over any stream of bytes, one at a time.
struct Caller<S>(S, u64);

impl<S: Read + Write> Caller<S> {
    /// Sends one frame and reads until its answer is whole.
    async fn call(
        &mut self,
        method: frame::Method,
        body: impl FnOnce(&mut Vec<u8>),
    ) -> Result<Vec<u8>, CallError> {
        let Self(stream, request) = self;
        *request += 1;
        let (mut bytes, header) = (Vec::new(), frame::Header::request(method, *request, Some(CALL)));
        frame::encode(&mut bytes, &header, |out| {
            body(out);
            Ok::<_, CallError>(())
        })?;
        stream.write_all(&bytes).await.map_err(|_| CallError::NoAnswer)?;
        bytes.clear();
        loop {
            if let Some((reply, _)) = frame::decode(&bytes).map_err(|_| CallError::NoAnswer)? {
                let code = reply.header.status;
                return if code == Code::OK {
                    Ok(reply.body.to_vec())
                } else {
                    Err(CallError::Refused(code))
                };
            }
            let mut some = [0; 256];
            match stream.read(&mut some).await {
                Ok(0) | Err(_) => return Err(CallError::NoAnswer),
                Ok(n) => bytes.extend_from_slice(&some[..n]),
            }
        }
    }

    async fn hello(&mut self, incarnation: Incarnation) -> Result<Welcome, CallError> {
        let (oldest, newest) = PROTOCOL;
        let hello = Hello {
            oldest,
            newest,
            cluster: 0,
            incarnation,
            tenant: "default",
            expected: Incarnation::default(),
        };
        let body = self.call(message::HELLO, |out| codec::put(out, &hello)).await?;
        codec::whole(&body).map_err(|_| CallError::NoAnswer)
    }

    async fn register(&mut self, name: &str) -> Result<Registered, CallError> {
        let register = Register { name, address: "", mode: Mode::Pool, fences: true };
        let body = self.call(message::REGISTER, |out| codec::put(out, &register)).await?;
        codec::whole(&body).map_err(|_| CallError::NoAnswer)
    }

    async fn exists(&mut self, keys: &[&[u8]]) -> Result<Vec<Presence>, CallError> {
        let asked = self.call(message::EXISTS, |out| {
            codec::put(out, &ProbeKind::Plain);
            keys.iter().for_each(|key| codec::put(out, key));
        });
        let body = asked.await?;
        let ((), tail) = codec::split::<(), Presence>(&body).map_err(|_| CallError::NoAnswer)?;
        tail.collect::<Result<_, _>>().map_err(|_| CallError::NoAnswer)
    }
}

/// The one place that knows where bytes and time come from.
struct Board {
    socket: TcpStream,
    start: std::time::Instant,
}

impl Board {
    fn now(&self) -> Instant {
        Instant::from_nanos(self.start.elapsed().as_nanos() as u64 + 1)
    }

    /// Sleeps until bytes come or the time is up. On a board: until the next interrupt.
    fn sleep(&self, time: Duration) -> io::Result<()> {
        self.socket.set_nonblocking(false)?;
        self.socket.set_read_timeout(Some(time.max(Duration::from_millis(1))))?;
        let _ = self.socket.peek(&mut [0]);
        self.socket.set_nonblocking(true)
    }

    /// Polls one future until it ends or a call's time is up: all that an executor would be needed for.
    fn run<T>(&self, future: impl Future<Output = Result<T, CallError>>) -> Result<T, CallError> {
        let (mut future, until) = (pin!(future), self.now() + CALL);
        loop {
            if let Poll::Ready(answer) = future.as_mut().poll(&mut Context::from_waker(Waker::noop())) {
                return answer;
            }
            // Short, as a socket can only be slept on for reading.
            let slept = self.sleep(Duration::from_millis(10));
            if until.reached(self.now()) || slept.is_err() {
                return Err(CallError::NoAnswer);
            }
        }
    }
}

/// A non-blocking socket as a stream of `embedded-io-async`.
struct Socket(TcpStream);

impl ErrorType for Socket {
    type Error = io::Error;
}

impl Read for Socket {
    async fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        unless_blocked(|| self.0.read(bytes)).await
    }
}

impl Write for Socket {
    async fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        unless_blocked(|| self.0.write(bytes)).await
    }

    async fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

async fn unless_blocked(mut io: impl FnMut() -> io::Result<usize>) -> io::Result<usize> {
    core::future::poll_fn(|_| match io() {
        Err(error) if error.kind() == io::ErrorKind::WouldBlock => Poll::Pending,
        done => Poll::Ready(done),
    })
    .await
}

/// Joins the pool at `master`, stays for `beats` reports, asks for `keys` and leaves.
///
/// # Errors
/// When the master cannot be reached, or refuses.
pub(crate) fn stay(
    master: &str,
    name: &str,
    mut beats: u32,
    keys: &[&[u8]],
) -> Result<Vec<Presence>, Box<dyn core::error::Error>> {
    let socket = TcpStream::connect(master)?;
    socket.set_nonblocking(true)?;
    #[allow(clippy::disallowed_methods, reason = "a loop of one's own brings its own clock")]
    let board = Board { socket: socket.try_clone()?, start: std::time::Instant::now() };
    let mut caller = Caller(Socket(socket), 0);
    let failed = |error: CallError| format!("the master does not take part: {error:?}");
    let life =
        Incarnation(u128::from(std::process::id()) << 64 | u128::from(board.socket.local_addr()?.port()));
    board.run(caller.hello(life)).map_err(failed)?;

    // The machine's loop: it says what is next, we do it and tell how it went.
    let mut member = Membership::new(Config::default(), Vec::new(), 1);
    while beats > 0 {
        match member.next(board.now()) {
            Next::Register => {
                let answer = board.run(caller.register(name));
                member.handle_registered(board.now(), answer);
            }
            Next::Heartbeat => {
                let fenced: Vec<u64> = member.fenced().to_vec();
                let asked = caller.call(message::HEARTBEAT, |out| {
                    codec::put(out, &Heartbeat { count: 0 });
                    fenced.iter().for_each(|number| codec::put(out, number));
                });
                let body = board.run(asked);
                let beat = body
                    .as_deref()
                    .map_err(|error| *error)
                    .and_then(|body| codec::split::<Beat, FenceDuty>(body).map_err(|_| CallError::NoAnswer));
                let duties = beat.as_ref().ok().map(|(_, duties)| duties.clone()).into_iter().flatten();
                let status = beat.as_ref().map(|(beat, _)| beat.status).map_err(|error| *error);
                member.handle_beat(board.now(), status, duties.filter_map(Result::ok));
                beats -= 1;
            }
            Next::Wait(until) => board.sleep(until.since(board.now()))?,
            Next::Mount(_) => unreachable!("this member lends no memory"),
        }
    }
    let found = board.run(caller.exists(keys)).map_err(failed)?;
    board.run(caller.call(message::LEAVE, |out| codec::put(out, &()))).map_err(failed)?;
    Ok(found)
}

fn main() -> Result<(), Box<dyn core::error::Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let (master, keys) = arguments.split_first().ok_or("usage: bare_loop HOST:PORT [KEY…]")?;
    let names: Vec<&[u8]> = keys.iter().map(String::as_bytes).collect();
    for (key, presence) in keys.iter().zip(stay(master, "bare-loop", 3, &names)?) {
        println!("{key}: {presence:?}");
    }
    Ok(())
}
