//! A process' side of the calls to one other process: the real table of calls and the real greeting over a simulated
//! connection.

use core::task::{Poll, Waker};
use core::time::Duration;

use springtide_client::Greeting;
use springtide_core::error::Code;
use springtide_core::id::{Id, Incarnation};
use springtide_core::time::Instant;
use springtide_core::wire::frame::{Frame, HEADER, Header, Method, encode};
use springtide_driver::Wakes;
use springtide_rpc::{CallError, Hello, Reason, RequestId, Table};

use crate::env::Env;
use crate::net::Way;
use crate::queue::Pid;

/// The hello's request id; calls have larger ones.
const HELLO: u64 = 1;
/// How long a hello may take, and the first and longest pause before another.
const CONNECT: Duration = Duration::from_millis(300);
const BACKOFF: (Duration, Duration) = (Duration::from_millis(2), Duration::from_millis(200));

/// The calls to one other process. `C` says what a call is about.
#[derive(Debug)]
pub struct Line<C> {
    me: Pid,
    to: Pid,
    greeting: Greeting,
    conn: u32,
    phase: Phase,
    table: Table<()>,
    calls: Vec<Option<(RequestId, C)>>,
    /// Calls that wait for the connection, as frames.
    held: Vec<(RequestId, Vec<u8>)>,
    failures: u32,
    wakes: Wakes,
    out: Vec<u8>,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Phase {
    Rest,
    Greeting(Instant),
    Up,
    Down(Instant),
}

/// What a frame was to a line.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Heard<C> {
    /// Nothing that concerns a call.
    Nothing,
    /// The answer to this call: success, or the code of a refusal.
    Answer(C, Code),
}

impl<C: Copy> Line<C> {
    /// A line from `me` (in the life `incarnation`) to `to`, which is expected in a certain life, or in any (zero).
    pub fn new(me: (Pid, Incarnation), to: Pid, expected: Incarnation, tenant: &str) -> Self {
        Self {
            me: me.0,
            to,
            greeting: Greeting::new(me.1, tenant, 0).expecting(expected),
            conn: u32::MAX,
            phase: Phase::Rest,
            table: Table::default(),
            calls: Vec::new(),
            held: Vec::new(),
            failures: 0,
            wakes: Wakes::new(),
            out: Vec::new(),
        }
    }

    /// Whether it has this connection now.
    pub const fn has(&self, conn: u32) -> bool {
        self.conn == conn
    }

    /// Calls that have not ended.
    pub const fn open(&self) -> usize {
        self.table.len()
    }

    /// The life of the other side that answered the last hello.
    pub fn life(&self) -> Option<Incarnation> {
        self.greeting.welcome().map(|welcome| welcome.incarnation)
    }

    /// Makes a call about `what`.
    pub fn call(
        &mut self,
        env: &mut Env,
        now: Instant,
        (method, deadline): (Method, Instant),
        what: C,
        body: impl FnOnce(&mut Vec<u8>),
    ) {
        let id = self.table.insert(deadline);
        if self.calls.len() <= id.index() {
            self.calls.resize(id.index() + 1, None);
        }
        self.calls[id.index()] = Some((id, what));
        let header = Header::request(method, id.to_bits(), Some(deadline.since(now)));
        self.out.clear();
        write(&mut self.out, &header, body);
        if self.phase == Phase::Up {
            env.send(self.conn, Way::Up, &self.out);
        } else {
            self.held.push((id, self.out.clone()));
            if self.phase == Phase::Rest {
                self.connect(env, now);
            }
        }
        env.oracle.asked(env.now);
    }

    fn connect(&mut self, env: &mut Env, now: Instant) {
        self.conn = env.connect(self.me, self.to);
        self.phase = Phase::Greeting(now + CONNECT);
        let header = Header::request(self.greeting.method(), HELLO, Some(CONNECT));
        self.out.clear();
        let Self { out, greeting, .. } = self;
        write(out, &header, |body| greeting.say(body));
        env.send(self.conn, Way::Up, &self.out);
    }

    /// Takes in a reply that came on this line's connection.
    pub fn hear(&mut self, env: &mut Env, now: Instant, frame: &Frame<'_>) -> Heard<C> {
        if frame.header.request == HELLO {
            self.welcomed(env, now, frame);
            return Heard::Nothing;
        }
        let Some(id) = RequestId::from_bits(frame.header.request) else { return Heard::Nothing };
        if !self.table.answer(id, || Ok(()), &mut self.wakes) {
            return Heard::Nothing;
        }
        match self.end(env, id) {
            Some((what, _)) => Heard::Answer(what, frame.header.status),
            None => Heard::Nothing,
        }
    }

    fn welcomed(&mut self, env: &mut Env, now: Instant, frame: &Frame<'_>) {
        if !matches!(self.phase, Phase::Greeting(_)) {
            return;
        }
        let status = frame.header.status;
        if !status.is_ok() || self.greeting.hear(frame.body).is_err() {
            return self.failed(now);
        }
        self.phase = Phase::Up;
        self.failures = 0;
        for (id, bytes) in self.held.drain(..) {
            if self.table.deadline(id).is_some() {
                env.send(self.conn, Way::Up, &bytes);
            }
        }
    }

    fn failed(&mut self, now: Instant) {
        let (first, longest) = BACKOFF;
        let pause = first.saturating_mul(1 << self.failures.min(20)).min(longest);
        self.failures += 1;
        self.conn = u32::MAX;
        self.phase = Phase::Down(now + pause);
    }

    /// The connection is gone: what was sent on it has no answer, what waits for one goes out on the next.
    pub fn closed(&mut self, now: Instant) {
        let kept = self.held.iter().map(|(id, _)| *id);
        self.table.fail_others(kept, &CallError::Closed(Reason::PeerClosed), &mut self.wakes);
        self.failed(now);
    }

    /// Does what is due; appends the calls that have ended without an answer to `ended`.
    pub fn drive(&mut self, env: &mut Env, now: Instant, ended: &mut Vec<(C, Code)>) {
        self.table.expire(now, &CallError::Timeout, &mut self.wakes);
        match self.phase {
            Phase::Greeting(until) if until.reached(now) => self.failed(now),
            Phase::Down(until) if until.reached(now) => {
                self.phase = Phase::Rest;
                if self.table.open() > 0 {
                    self.connect(env, now);
                }
            }
            _ => {}
        }
        if self.table.open() == self.table.len() {
            return;
        }
        for index in 0..self.calls.len() {
            if let Some((id, _)) = self.calls[index]
                && self.table.deadline(id).is_none()
                && let Some((what, Err(error))) = self.end(env, id)
            {
                self.held.retain(|(held, _)| *held != id);
                ended.push((what, error.code()));
            }
        }
    }

    /// Takes the end of a call out of the table.
    fn end(&mut self, env: &mut Env, id: RequestId) -> Option<(C, Result<(), CallError>)> {
        let Poll::Ready(end) = self.table.poll(id, Waker::noop()) else { return None };
        let (_, what) = self.calls.get_mut(id.index())?.take()?;
        env.oracle.answered(env.now);
        Some((what, end))
    }

    /// When [`drive`](Self::drive) has something to do.
    pub fn due(&self) -> Instant {
        let phase = match self.phase {
            Phase::Greeting(until) => until,
            Phase::Down(until) if self.table.open() > 0 => until,
            _ => Instant::NEVER,
        };
        let ended = if self.table.open() == self.table.len() { Instant::NEVER } else { Instant::ORIGIN };
        phase.min(self.table.earliest()).min(ended)
    }
}

fn write(out: &mut Vec<u8>, header: &Header, body: impl FnOnce(&mut Vec<u8>)) {
    let Ok(()) = encode(out, header, |out| {
        debug_assert_eq!(out.len(), HEADER);
        body(out);
        Ok::<_, core::convert::Infallible>(())
    });
}
