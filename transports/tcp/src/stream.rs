//! One TCP connection: its socket, what waits to go out, where arriving bytes go, and what epoll said about it.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::event::epoll::EventFlags;
use springtide_core::time::Instant;
use springtide_hal_host::net;

use crate::inbox::Inbox;
use crate::outbox::Outbox;

/// Why a connection is of no use any more.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Broken {
    /// The peer ended it or died.
    Gone,
    /// The peer said nothing for too long.
    Silent,
    /// The peer broke the protocol, speaks another version, or is another life of the process that was meant.
    Protocol,
}

/// What may still be moved and started before others have their turn.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Allowance {
    pub(crate) bytes: u64,
    pub(crate) ops: u32,
}

impl Allowance {
    pub(crate) const fn is_spent(&self) -> bool {
        self.bytes == 0 || self.ops == 0
    }

    pub(crate) const fn moved(&mut self, bytes: u64) {
        self.bytes = self.bytes.saturating_sub(bytes);
    }

    pub(crate) const fn did(&mut self, ops: usize) {
        self.ops = self.ops.saturating_sub(ops as u32);
    }
}

/// Why decoding stopped.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Stop {
    /// More bytes must arrive first.
    Starved,
    /// Bytes must be sent first.
    Choked,
    /// Others have their turn first.
    Spent,
}

/// One connection.
#[derive(Debug)]
pub(crate) struct Stream {
    socket: OwnedFd,
    pub(crate) inbox: Inbox,
    pub(crate) outbox: Outbox,
    readable: bool,
    writable: bool,
    hung_up: bool,
    /// Why decoding stopped last.
    pub(crate) stop: Stop,
    /// When bytes last moved, or began to wait.
    pub(crate) moved: Instant,
}

impl Stream {
    pub(crate) const fn new(socket: OwnedFd, inbox: Inbox, outbox: Outbox, now: Instant) -> Self {
        Self {
            socket,
            inbox,
            outbox,
            readable: false,
            writable: false,
            hung_up: false,
            stop: Stop::Starved,
            moved: now,
        }
    }

    /// Takes in what epoll reported; edges, so that each is told once.
    pub(crate) fn notice(&mut self, flags: EventFlags) {
        let end = EventFlags::HUP | EventFlags::ERR | EventFlags::RDHUP;
        self.hung_up |= flags.intersects(end);
        self.readable |= flags.intersects(EventFlags::IN | end);
        self.writable |= flags.intersects(EventFlags::OUT | EventFlags::HUP | EventFlags::ERR);
    }

    /// Whether a turn now would do something.
    pub(crate) const fn has_work(&self) -> bool {
        let reads = match self.stop {
            Stop::Starved => self.readable,
            Stop::Choked => false,
            Stop::Spent => true,
        };
        reads || self.writable && !self.outbox.is_empty()
    }

    /// Whether the peer owes us bytes, or room for ours.
    pub(crate) fn waits(&self) -> bool {
        !self.outbox.is_empty() || !self.inbox.landings().is_empty()
    }

    /// Sends what waits, as far as the socket and `allowance` allow.
    pub(crate) fn flush(&mut self, now: Instant, allowance: &mut Allowance) -> Result<(), Broken> {
        while self.writable && !self.outbox.is_empty() && allowance.bytes > 0 {
            let socket = self.socket.as_fd();
            match self.outbox.drain(allowance.bytes, |pieces| net::send(socket, pieces)) {
                Ok((offered, taken)) => {
                    self.writable = taken == offered;
                    self.moved = now;
                    allowance.moved(taken);
                }
                Err(error) => self.writable = !would_block(&error)?,
            }
        }
        Ok(())
    }

    /// Receives once, if there is anything: how many landings came to their end.
    pub(crate) fn receive(
        &mut self,
        now: Instant,
        scratch: &mut [u8],
        allowance: &mut Allowance,
    ) -> Result<usize, Broken> {
        let socket = self.socket.as_fd();
        match self.inbox.fill(scratch, allowance.bytes, |pieces| net::recv(socket, pieces)) {
            Ok(filled) if filled.got == 0 => Err(Broken::Gone),
            Ok(filled) => {
                // A short read emptied the socket; what comes later is a new edge. An end of stream is not.
                self.readable = filled.got == filled.asked || self.hung_up;
                self.moved = now;
                allowance.moved(filled.got);
                Ok(filled.landed)
            }
            Err(error) => {
                self.readable = !would_block(&error)?;
                Ok(0)
            }
        }
    }

    /// Whether a receive may find something.
    pub(crate) const fn is_readable(&self) -> bool {
        self.readable
    }
}

impl AsFd for Stream {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

/// Whether the error only says "later"; interruptions are tried again.
fn would_block(error: &io::Error) -> Result<bool, Broken> {
    match error.kind() {
        io::ErrorKind::WouldBlock => Ok(true),
        io::ErrorKind::Interrupted => Ok(false),
        _ => Err(Broken::Gone),
    }
}
