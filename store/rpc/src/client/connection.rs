//! The machine behind a [`Remote`](super::Remote).

use core::task::{Poll, Waker};
use std::io;
use std::net::SocketAddr;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::event::epoll;
use springtide_core::time::Instant;
use springtide_driver::{Armed, Drive, Drove, Wakes};

use super::table::{Answer, RequestId, Table};
use super::{Ask, CallError, ClientConfig, Hello, Reason};

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
    hello: Option<Box<dyn Hello>>,
    epoll: OwnedFd,
    table: Table,
}

impl Connection {
    pub(crate) fn new(
        addresses: Vec<SocketAddr>,
        config: ClientConfig,
        hello: Option<Box<dyn Hello>>,
    ) -> io::Result<Self> {
        let epoll = epoll::create(epoll::CreateFlags::CLOEXEC)?;
        Ok(Self { config, addresses, hello, epoll, table: Table::default() })
    }

    pub(crate) fn begin(
        &mut self,
        _now: Instant,
        _ask: Ask,
        _body: impl FnOnce(&mut Vec<u8>),
    ) -> Result<RequestId, CallError> {
        Err(CallError::Down(Reason::Shut))
    }

    pub(crate) fn poll_call(&mut self, id: RequestId, waker: &Waker) -> Poll<Answer> {
        self.table.poll(id, waker)
    }

    pub(crate) fn give_up(&mut self, id: RequestId) -> Option<Waker> {
        self.table.give_up(id)
    }

    pub(crate) const fn connected(&self) -> (u64, Standing) {
        (0, Standing::Down)
    }

    pub(crate) fn shut(&mut self, wakes: &mut Wakes) {
        self.table.fail_all(&CallError::Closed(Reason::Shut), wakes);
    }
}

impl Drive for Connection {
    fn drive(&mut self, now: Instant, wakes: &mut Wakes) -> Drove {
        self.table.expire(now, wakes);
        Drove::Idle
    }

    fn arm(&mut self) -> Armed {
        Armed::Asleep
    }

    fn fd(&self) -> BorrowedFd<'_> {
        self.epoll.as_fd()
    }

    fn deadline(&self) -> Option<Instant> {
        Some(self.table.earliest()).filter(|at| *at != Instant::NEVER)
    }
}
