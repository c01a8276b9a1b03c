//! The machine behind a [`Remote`](super::Remote): one socket at a time, calls by request id, a way back.

use core::convert::Infallible;
use core::net::SocketAddr;
use core::task::{Poll, Waker};
use core::time::Duration;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::event::epoll;
use springtide_core::rng::Rng;
use springtide_core::time::Instant;
use springtide_core::wire::frame::{Frame, HEADER, Header, MAX_BODY, decode, encode};
use springtide_driver::{Armed, Drive, Drove, Wakes};

use super::link::{self, Link};
use super::table::{Answer, RequestId, Table};
use super::{Ask, CallError, ClientConfig, Hello, Reason, WhileDown};

/// The hello's request id; calls have larger ones.
pub(super) const HELLO: u64 = 1;
/// A connection that says nothing for this long is looked at before it is trusted with a call.
const STALE: Duration = Duration::from_millis(100);

/// Whether there is a connection.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Standing {
    /// It stands, and the hello was answered.
    Up,
    /// Not at the moment.
    Down,
}

/// One peer's connection: a non-blocking socket, calls by request id, and a way back after it broke.
pub struct Connection {
    config: ClientConfig,
    addresses: Vec<SocketAddr>,
    /// Which address is tried next, or in use.
    at: usize,
    hello: Option<Box<dyn Hello>>,
    epoll: OwnedFd,
    phase: Phase,
    table: Table,
    /// Calls that wait for the connection, as frames.
    held: Vec<u8>,
    /// Rounds through all addresses that failed in a row.
    failures: u32,
    rng: Rng,
    made: u64,
    /// Why there is no connection; `None` while it stands, and before the first try.
    trouble: Option<Reason>,
}

enum Phase {
    /// Not connected; connects for the first call.
    Rest,
    Connecting(Link, Instant),
    Greeting(Link, Instant),
    Up(Link),
    /// Not before this moment again, because of this.
    Down(Instant, Reason),
    Shut,
}

impl Connection {
    pub(crate) fn new(
        addresses: Vec<SocketAddr>,
        config: ClientConfig,
        hello: Option<Box<dyn Hello>>,
    ) -> io::Result<Self> {
        if addresses.is_empty() {
            return Err(io::Error::new(io::ErrorKind::InvalidInput, "a peer without an address"));
        }
        let epoll = epoll::create(epoll::CreateFlags::CLOEXEC)?;
        Ok(Self {
            config,
            addresses,
            at: 0,
            hello,
            epoll,
            phase: Phase::Rest,
            table: Table::default(),
            held: Vec::new(),
            failures: 0,
            rng: Rng::new(config.seed),
            made: 0,
            trouble: None,
        })
    }

    /// Takes a call in. It is sent when the machine is driven.
    pub(crate) fn begin(
        &mut self,
        now: Instant,
        ask: Ask,
        body: impl FnOnce(&mut Vec<u8>),
    ) -> Result<RequestId, CallError> {
        match self.phase {
            Phase::Shut => return Err(CallError::Down(Reason::Shut)),
            Phase::Down(until, reason) if self.refuses(reason) && !until.reached(now) => {
                return Err(CallError::Down(reason));
            }
            _ => {}
        }
        if ask.deadline.reached(now) {
            return Err(CallError::Timeout);
        }
        let out = match &mut self.phase {
            Phase::Up(link) => link.outbox(),
            _ => &mut self.held,
        };
        if self.table.len() >= self.config.calls || out.len() > self.config.waiting {
            return Err(CallError::Busy);
        }
        let id = self.table.insert(ask.deadline);
        let start = out.len() + HEADER;
        let header = ask.header(id.to_bits(), ask.deadline.since(now));
        let encoded = encode(out, &header, |out| {
            body(out);
            if out.len() - start > MAX_BODY { Err(CallError::TooLong) } else { Ok(()) }
        });
        if let Err(error) = encoded {
            self.table.give_up(id);
            return Err(error);
        }
        Ok(id)
    }

    pub(crate) fn poll_call(&mut self, id: RequestId, waker: &Waker) -> Poll<Answer> {
        self.table.poll(id, waker)
    }

    pub(crate) fn give_up(&mut self, id: RequestId) -> Option<Waker> {
        self.table.give_up(id)
    }

    pub(crate) const fn connected(&self) -> (u64, Standing) {
        let standing = if matches!(self.phase, Phase::Up(_)) { Standing::Up } else { Standing::Down };
        (self.made, standing)
    }

    pub(crate) const fn trouble(&self) -> Option<Reason> {
        self.trouble
    }

    pub(crate) fn shut(&mut self, wakes: &mut Wakes) {
        self.phase = Phase::Shut;
        self.held = Vec::new();
        self.table.fail_all(&CallError::Closed(Reason::Shut), wakes);
    }

    /// Whether a call waits for a connection that has to be made.
    const fn wanted(&self) -> bool {
        self.table.open() > 0
    }

    fn connect(&mut self, now: Instant, wakes: &mut Wakes) {
        match Link::connect(self.addresses[self.at], self.epoll.as_fd(), self.config.silence) {
            Ok(link) => self.phase = Phase::Connecting(link, now + self.config.connect),
            Err(reason) => self.failed(now, reason, wakes),
        }
    }

    /// The connection could not be made: tries the next address, or pauses after the last.
    fn failed(&mut self, now: Instant, reason: Reason, wakes: &mut Wakes) {
        self.trouble = Some(reason);
        self.at = (self.at + 1) % self.addresses.len();
        if self.at != 0 {
            self.phase = Phase::Rest;
            return;
        }
        let pause = self.pause();
        tracing::debug!(address = %self.addresses[0], %reason, ?pause, "no connection");
        self.phase = Phase::Down(now + pause, reason);
        if self.refuses(reason) {
            self.held = Vec::new();
            self.table.fail_all(&CallError::Down(reason), wakes);
        } else {
            let mut wanted = Vec::new();
            self.renew(now, &self.held, &mut wanted);
            self.held = wanted;
        }
    }

    /// Whether calls fail while the peer cannot be reached because of `reason`. Waiting does not make a peer out of
    /// one that refuses us or speaks another protocol.
    const fn refuses(&self, reason: Reason) -> bool {
        matches!(self.config.while_down, WhileDown::Refuse)
            || matches!(reason, Reason::Refused(_) | Reason::Protocol(_) | Reason::Backwards)
    }

    /// The pause after one more failure: doubles, and half of it is random.
    fn pause(&mut self) -> Duration {
        let (first, longest) = self.config.backoff;
        let pause = first.saturating_mul(1 << self.failures.min(20)).min(longest);
        self.failures += 1;
        let nanos = springtide_core::time::nanos(pause);
        Duration::from_nanos(nanos / 2 + self.rng.below(nanos / 2 + 1))
    }

    /// The connection stood and broke: what was sent fails, what was not goes out on the next one.
    fn broke(&mut self, now: Instant, mut link: Link, reason: Reason, wakes: &mut Wakes) {
        tracing::debug!(address = %self.addresses[self.at], %reason, "the connection broke");
        self.trouble = Some(reason);
        self.held = link.unsent();
        let held = requests(&self.held).map(|(header, _)| header.request);
        let kept = held.filter_map(RequestId::from_bits);
        self.table.fail_others(kept, &CallError::Closed(reason), wakes);
        // One that broke at once is treated as one that could not be made.
        let (first, _) = self.config.backoff;
        self.phase = if now.since(link.since()) < first {
            Phase::Down(now + self.pause(), reason)
        } else {
            self.failures = 0;
            Phase::Rest
        };
    }

    fn greet(&mut self, now: Instant, mut link: Link, until: Instant) {
        let Some(hello) = &mut self.hello else { return self.up(now, link) };
        let header = Header::request(hello.method(), HELLO, Some(until.since(now)));
        append(link.outbox(), &header, |out| hello.say(out));
        self.phase = Phase::Greeting(link, until);
    }

    fn up(&mut self, now: Instant, mut link: Link) {
        self.made += 1;
        self.trouble = None;
        link.stands(now);
        let held = core::mem::take(&mut self.held);
        self.renew(now, &held, link.outbox());
        self.phase = Phase::Up(link);
    }

    /// Appends to `out` those of `held` whose callers still wait, with the time that is left to them now.
    fn renew(&self, now: Instant, held: &[u8], out: &mut Vec<u8>) {
        for (header, body) in requests(held) {
            let deadline = RequestId::from_bits(header.request).and_then(|id| self.table.deadline(id));
            let Some(deadline) = deadline else { continue };
            let header = Header { time_left: Some(deadline.since(now)), ..header };
            append(out, &header, |out| out.extend_from_slice(body));
        }
    }

    fn greeting(&mut self, now: Instant, mut link: Link, until: Instant, wakes: &mut Wakes) -> Drove {
        let mut heard = None;
        let Some(hello) = &mut self.hello else { return self.step_up(now, link) };
        let result = link.exchange(now, |frame| match frame.header.request {
            HELLO if frame.header.status.is_ok() => {
                heard = Some(hello.hear(frame.body).map_err(Reason::Refused));
                Ok(())
            }
            HELLO | 0 => {
                let text = String::from_utf8_lossy(frame.body);
                hello.refused(frame.header.status, &text);
                Err(Reason::Refused(frame.header.status))
            }
            _ => Ok(()),
        });
        match (result, heard) {
            (_, Some(Ok(()))) => return self.step_up(now, link),
            (Err(reason), _) | (_, Some(Err(reason))) => self.failed(now, reason, wakes),
            (Ok(_), None) if until.reached(now) => self.failed(now, Reason::Silent, wakes),
            (Ok(drove), None) => {
                self.phase = Phase::Greeting(link, until);
                return drove;
            }
        }
        Drove::Busy
    }

    fn step_up(&mut self, now: Instant, link: Link) -> Drove {
        self.up(now, link);
        Drove::Busy
    }

    fn working(&mut self, now: Instant, mut link: Link, wakes: &mut Wakes) -> Drove {
        let table = &mut self.table;
        let mut answer = |frame: Frame<'_>| match frame.header.request {
            0 => {
                let text = String::from_utf8_lossy(frame.body);
                tracing::info!(status = %frame.header.status, %text, "the peer ends the connection");
                Err(Reason::Refused(frame.header.status))
            }
            request => {
                if let Some(id) = RequestId::from_bits(request) {
                    table.answer(id, || link::answer(frame), wakes);
                }
                Ok(())
            }
        };
        let stale = now.since(link.moved()) > STALE;
        let checked = if stale { link.listen(now, &mut answer) } else { Ok(Drove::Idle) };
        match checked.and_then(|_| link.exchange(now, answer)) {
            Ok(drove) => {
                self.phase = Phase::Up(link);
                drove
            }
            Err(reason) => {
                self.broke(now, link, reason, wakes);
                Drove::Busy
            }
        }
    }
}

impl Drive for Connection {
    fn drive(&mut self, now: Instant, wakes: &mut Wakes) -> Drove {
        // What was never sent did not wait for an answer but for a connection.
        let why = self.trouble.map_or(CallError::Timeout, CallError::Down);
        self.table.expire(now, &why, wakes);
        match core::mem::replace(&mut self.phase, Phase::Rest) {
            Phase::Rest if self.wanted() => {
                self.connect(now, wakes);
                Drove::Busy
            }
            Phase::Rest => Drove::Idle,
            Phase::Down(until, _) if until.reached(now) => Drove::Busy,
            idle @ (Phase::Down(..) | Phase::Shut) => {
                self.phase = idle;
                Drove::Idle
            }
            Phase::Connecting(mut link, until) => match link.connected() {
                Ok(true) => {
                    self.greet(now, link, until);
                    Drove::Busy
                }
                Ok(false) if !until.reached(now) => {
                    self.phase = Phase::Connecting(link, until);
                    Drove::Idle
                }
                Ok(false) => {
                    self.failed(now, Reason::Silent, wakes);
                    Drove::Busy
                }
                Err(reason) => {
                    self.failed(now, reason, wakes);
                    Drove::Busy
                }
            },
            Phase::Greeting(link, until) => self.greeting(now, link, until, wakes),
            Phase::Up(link) => self.working(now, link, wakes),
        }
    }

    fn glance(&mut self, now: Instant, wakes: &mut Wakes) -> Drove {
        let resting = self.table.open() == 0 && matches!(&self.phase, Phase::Up(link) if !link.has_work());
        if resting { Drove::Idle } else { self.drive(now, wakes) }
    }

    fn arm(&mut self) -> Armed {
        let (wanted, epoll) = (self.wanted(), self.epoll.as_fd());
        match &mut self.phase {
            Phase::Rest if wanted => Armed::Again,
            Phase::Up(link) | Phase::Greeting(link, _) if link.has_work() => Armed::Again,
            Phase::Up(link) | Phase::Greeting(link, _) | Phase::Connecting(link, _) => link.watch(epoll),
            _ => Armed::Asleep,
        }
    }

    fn fd(&self) -> BorrowedFd<'_> {
        self.epoll.as_fd()
    }

    fn deadline(&self) -> Option<Instant> {
        let phase = match &self.phase {
            Phase::Connecting(_, until) | Phase::Greeting(_, until) => *until,
            Phase::Down(until, _) if self.wanted() => *until,
            _ => Instant::NEVER,
        };
        let first = phase.min(self.table.earliest());
        (first != Instant::NEVER).then_some(first)
    }
}

fn append(out: &mut Vec<u8>, header: &Header, body: impl FnOnce(&mut Vec<u8>)) {
    let Ok(()) = encode(out, header, |out| {
        body(out);
        Ok::<_, Infallible>(())
    });
}

/// The whole frames in `bytes`, which this side wrote.
fn requests(bytes: &[u8]) -> impl Iterator<Item = (Header, &[u8])> {
    let mut rest = bytes;
    core::iter::from_fn(move || {
        let (frame, used) = decode(rest).ok().flatten()?;
        rest = &rest[used..];
        Some((frame.header, frame.body))
    })
}
