//! Calls and the handle that makes them (S0A-066, S0A-067, S0B-163, S0B-165).

use core::fmt;
use core::future::Future;
use core::net::SocketAddr;
use core::pin::Pin;
use core::task::{Context, Poll};
use core::time::Duration;
use std::io;
use std::sync::Arc;

use springtide_core::time::Instant;
use springtide_core::wire::frame::{Header, Method};
use springtide_driver::{Driven, Pause, Runtime, Seat, attend, block_on, now};

use super::table::RequestId;
use super::{CallError, ClientConfig, Connection, Hello, Reason, Standing};

/// One peer, at one or more addresses. A handle: cloning is cheap, all clones share one connection.
///
/// The connection is made with the first call and again with the first call after it broke. Calls work under
/// [`springtide_driver::block_on`] over [`seat`](Self::seat), with no other thread, and in tasks while somebody
/// [`attend`](Self::attend)s.
#[derive(Clone)]
pub struct Remote(Arc<Seat<Connection>>);

/// What is asked, and until when.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Ask {
    /// Which call.
    pub method: Method,
    /// When the caller gives up; the peer is told how long that is.
    pub deadline: Instant,
    /// 0 is ordinary; higher is more urgent.
    pub priority: u8,
    /// Follows one user action through processes; 0 if nobody traces.
    pub trace: u64,
}

impl Ask {
    /// An ordinary call without a trace.
    pub const fn new(method: Method, deadline: Instant) -> Self {
        Self { method, deadline, priority: 0, trace: 0 }
    }

    pub(super) const fn header(&self, request: u64, left: Duration) -> Header {
        Header {
            priority: self.priority,
            trace: self.trace,
            ..Header::request(self.method, request, Some(left))
        }
    }
}

/// A successful answer.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Reply {
    /// Everything in front of the body.
    pub header: Header,
    /// The message.
    pub body: Vec<u8>,
}

impl Remote {
    /// A peer at `addresses`, which are tried in order. Each new connection begins with `hello`, if there is one.
    /// Nothing is sent yet.
    ///
    /// # Errors
    /// The system's, when it has no descriptors left.
    pub fn new(
        addresses: Vec<SocketAddr>,
        config: ClientConfig,
        hello: Option<Box<dyn Hello>>,
    ) -> io::Result<Self> {
        Ok(Self(Arc::new(Seat::new(Connection::new(addresses, config, hello)?)?)))
    }

    /// What a blocked caller drives.
    pub fn seat(&self) -> &dyn Driven {
        &*self.0
    }

    /// Spawns a task that drives the connection for callers that are tasks themselves. It ends with the last handle.
    ///
    /// # Errors
    /// The runtime's, when it cannot watch another descriptor.
    pub fn attend<R: Runtime>(&self, runtime: &R, pause: Pause) -> io::Result<R::Task> {
        Ok(runtime.spawn(attend(runtime, &self.0, pause)?))
    }

    /// Asks `method`, with the message that `body` appends, and gives back the future answer. Dropping that gives the
    /// call up; a later answer is dropped too.
    pub fn call(&self, method: Method, deadline: Instant, body: impl FnOnce(&mut Vec<u8>)) -> Call {
        self.ask(Ask::new(method, deadline), body)
    }

    /// [`call`](Self::call) with priority and trace.
    pub fn ask(&self, ask: Ask, body: impl FnOnce(&mut Vec<u8>)) -> Call {
        let moment = now();
        let begun = self.0.with(moment, |connection, _| connection.begin(moment, ask, body));
        Call { seat: Arc::clone(&self.0), state: begun.map_or_else(State::Failed, State::Waiting) }
    }

    /// [`ask`](Self::ask), blocking this thread, which drives the connection meanwhile.
    ///
    /// # Errors
    /// As the future's.
    pub fn ask_blocking(&self, ask: Ask, body: impl FnOnce(&mut Vec<u8>)) -> Result<Reply, CallError> {
        block_on(&[self.seat()], ask.deadline, async { self.ask(ask, body).await })
            .unwrap_or(Err(CallError::Timeout))
    }

    /// How many connections were made so far, and whether the last one stands: for figures and tests.
    pub fn connected(&self) -> (u64, Standing) {
        self.0.with(now(), |connection, _| connection.connected())
    }

    /// Why there is no connection; `None` while it stands, and before the first try.
    pub fn trouble(&self) -> Option<Reason> {
        self.0.with(now(), |connection, _| connection.trouble())
    }

    /// Ends the connection and fails all calls, now and later, with [`Reason::Shut`].
    pub fn shut(&self) {
        let moment = now();
        self.0.with(moment, |connection, wakes| connection.shut(wakes));
    }
}

impl fmt::Debug for Remote {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Remote")
    }
}

/// The future answer to a call.
#[must_use = "a call that is dropped is given up"]
pub struct Call {
    seat: Arc<Seat<Connection>>,
    state: State,
}

enum State {
    Waiting(RequestId),
    Failed(CallError),
    Ended,
}

impl Future for Call {
    type Output = Result<Reply, CallError>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        match core::mem::replace(&mut self.state, State::Ended) {
            State::Waiting(id) => {
                let moment = now();
                let polled = self.seat.with(moment, |connection, _| connection.poll_call(id, cx.waker()));
                if polled.is_pending() {
                    self.state = State::Waiting(id);
                }
                polled
            }
            State::Failed(error) => Poll::Ready(Err(error)),
            State::Ended => panic!("a call is polled after its end"),
        }
    }
}

impl Drop for Call {
    fn drop(&mut self) {
        if let State::Waiting(id) = self.state {
            // The slot holds a waker, which is dropped outside the lock.
            drop(self.seat.with(now(), |connection, _| connection.give_up(id)));
        }
    }
}
