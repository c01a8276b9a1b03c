//! One socket of a connection.

use core::net::SocketAddr;
use core::time::Duration;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::event::{PollFd, PollFlags, Timespec, epoll, poll};
use rustix::io::Errno;
use rustix::net::{AddressFamily, SocketFlags, SocketType, connect, socket_with, sockopt};
use springtide_core::time::Instant;
use springtide_core::wire::frame::{Frame, Kind, decode};
use springtide_driver::{Armed, Drove};

use super::table::Answer;
use super::{CallError, Reason, Reply};
use crate::stream::{self, Flushed, Inbox, Outbox};

/// Most bytes of replies that are read at once.
const READ: usize = 256 << 10;

/// A socket with what goes in and out, and what the epoll descriptor watches it for.
pub(super) struct Link {
    socket: OwnedFd,
    inbox: Inbox,
    outbox: Outbox,
    blocked: bool,
    watched: epoll::EventFlags,
    moved: Instant,
    since: Instant,
    /// Whether the socket was drained by the last look at it. Forgotten before anybody sleeps.
    drained: bool,
}

/// What a reply says to its caller.
pub(super) fn answer(reply: Frame<'_>) -> Answer {
    let Frame { header, body } = reply;
    if header.status.is_ok() {
        return Ok(Reply { header, body: body.to_vec() });
    }
    Err(CallError::Status(header.status, String::from_utf8_lossy(body).into()))
}

impl Link {
    /// Begins to connect; never waits.
    pub(super) fn connect(
        address: SocketAddr,
        epoll: BorrowedFd<'_>,
        silence: Duration,
    ) -> Result<Self, Reason> {
        let begin = || {
            let family = if address.is_ipv4() { AddressFamily::INET } else { AddressFamily::INET6 };
            let flags = SocketFlags::NONBLOCK | SocketFlags::CLOEXEC;
            let socket = socket_with(family, SocketType::STREAM, flags, None)?;
            stream::tune(socket.as_fd(), silence)?;
            match connect(&socket, &address) {
                Ok(()) | Err(Errno::INPROGRESS) => {}
                Err(error) => return Err(error.into()),
            }
            let watched = epoll::EventFlags::OUT;
            epoll::add(epoll, &socket, epoll::EventData::new_u64(0), watched)?;
            Ok((socket, watched))
        };
        let (socket, watched) = begin().map_err(|error| system(&error))?;
        let (moved, since) = (Instant::ORIGIN, Instant::ORIGIN);
        let (inbox, outbox) = (Inbox::default(), Outbox::default());
        Ok(Self { socket, inbox, outbox, blocked: true, watched, moved, since, drained: false })
    }

    /// Whether the connection was made.
    pub(super) fn connected(&mut self) -> Result<bool, Reason> {
        let mut fds = [PollFd::new(&self.socket, PollFlags::OUT)];
        let now = Timespec { tv_sec: 0, tv_nsec: 0 };
        match poll(&mut fds, Some(&now)) {
            Ok(0) | Err(Errno::INTR) => return Ok(false),
            Ok(_) => {}
            Err(error) => return Err(Reason::System(error.raw_os_error())),
        }
        match sockopt::socket_error(&self.socket) {
            Ok(Ok(())) => {
                self.blocked = false;
                Ok(true)
            }
            Ok(Err(error)) | Err(error) => Err(Reason::System(error.raw_os_error())),
        }
    }

    /// From `now` on calls may use it.
    pub(super) const fn stands(&mut self, now: Instant) {
        self.since = now;
        self.moved = now;
    }

    /// Since when calls may use it.
    pub(super) const fn since(&self) -> Instant {
        self.since
    }

    /// When bytes last moved.
    pub(super) const fn moved(&self) -> Instant {
        self.moved
    }

    /// Where to append requests.
    pub(super) const fn outbox(&mut self) -> &mut Vec<u8> {
        self.outbox.bytes()
    }

    /// Requests of which no byte was sent.
    pub(super) fn unsent(&mut self) -> Vec<u8> {
        self.outbox.untouched()
    }

    /// Whether there is something to send that was not tried yet.
    pub(super) const fn has_work(&self) -> bool {
        self.outbox.waiting() > 0 && !self.blocked
    }

    /// Has the epoll descriptor become readable when there is something to do.
    pub(super) fn watch(&mut self, epoll: BorrowedFd<'_>) -> Armed {
        // Who is woken has to look.
        self.drained = false;
        let mut wanted = epoll::EventFlags::IN;
        if self.blocked {
            wanted |= epoll::EventFlags::OUT;
        }
        if wanted != self.watched
            && epoll::modify(epoll, &self.socket, epoll::EventData::new_u64(0), wanted).is_ok()
        {
            self.watched = wanted;
        }
        if wanted == self.watched {
            return Armed::Asleep;
        }
        // The kernel had no memory for it: look again soon.
        Armed::Poll(Duration::from_millis(1))
    }

    /// Sends what waits and takes in what is there. A socket that was drained a moment ago is not looked at again, once.
    pub(super) fn exchange(
        &mut self,
        now: Instant,
        hear: impl FnMut(Frame<'_>) -> Result<(), Reason>,
    ) -> Result<Drove, Reason> {
        let (sent, flushed) = self.outbox.flush(self.socket.as_fd()).map_err(|error| system(&error))?;
        self.blocked = flushed == Flushed::Blocked;
        if sent > 0 {
            self.moved = now;
        }
        if !core::mem::take(&mut self.drained) && self.listen(now, hear)? == Drove::Busy {
            return Ok(Drove::Busy);
        }
        Ok(if sent > 0 { Drove::Busy } else { Drove::Idle })
    }

    /// Takes in what is there.
    pub(super) fn listen(
        &mut self,
        now: Instant,
        mut hear: impl FnMut(Frame<'_>) -> Result<(), Reason>,
    ) -> Result<Drove, Reason> {
        let mut end = Ok(());
        let read = self.inbox.read(self.socket.as_fd(), READ, |bytes| {
            let mut used = 0;
            loop {
                match decode(&bytes[used..])
                    .map_err(Reason::Protocol)
                    .and_then(|whole| heard(whole, &mut hear))
                {
                    Ok(0) => return used,
                    Ok(len) => used += len,
                    Err(reason) => {
                        end = Err(reason);
                        return bytes.len();
                    }
                }
            }
        });
        end?;
        match read {
            Ok(0) => Err(Reason::PeerClosed),
            Ok(_) => {
                self.moved = now;
                self.drained = self.inbox.is_drained();
                Ok(Drove::Busy)
            }
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(Drove::Idle),
            Err(error) => Err(system(&error)),
        }
    }
}

/// Lets `hear` have a whole frame; gives back its length, zero if it is not whole yet.
fn heard(
    whole: Option<(Frame<'_>, usize)>,
    hear: &mut impl FnMut(Frame<'_>) -> Result<(), Reason>,
) -> Result<usize, Reason> {
    match whole {
        None => Ok(0),
        Some((frame, _)) if frame.header.kind == Kind::Request => Err(Reason::Backwards),
        Some((frame, len)) => {
            hear(frame)?;
            Ok(len)
        }
    }
}

fn system(error: &io::Error) -> Reason {
    Reason::System(error.raw_os_error().unwrap_or(Errno::IO.raw_os_error()))
}
