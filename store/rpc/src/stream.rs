//! Bytes in and out of a non-blocking socket, the same for both ends.

use core::cell::RefCell;
use core::time::Duration;
use std::io;
use std::os::fd::BorrowedFd;

use rustix::buffer::spare_capacity;
use rustix::net::{SendFlags, send, sockopt};
use springtide_core::wire::frame::{HEADER, needed};

/// Most bytes that are read ahead for one long frame at a time.
const STRIDE: usize = 1 << 20;
/// Buffers that grew beyond this are given back once they are empty.
const KEEP: usize = 256 << 10;

thread_local! {
    /// Where reads go first, so that a connection without half a frame holds no memory.
    static SCRATCH: RefCell<Vec<u8>> = const { RefCell::new(Vec::new()) };
}

/// No delay for small writes; a peer that the network does not reach any more is found within `silence`.
pub(crate) fn tune(socket: BorrowedFd<'_>, silence: Duration) -> io::Result<()> {
    // The kernel counts both in whole seconds.
    let probe = (silence / 6).max(Duration::from_secs(1));
    sockopt::set_tcp_nodelay(socket, true)?;
    sockopt::set_socket_keepalive(socket, true)?;
    sockopt::set_tcp_keepidle(socket, (silence / 2).max(Duration::from_secs(1)))?;
    sockopt::set_tcp_keepintvl(socket, probe)?;
    sockopt::set_tcp_keepcnt(socket, 3)?;
    sockopt::set_tcp_user_timeout(socket, u32::try_from(silence.as_millis()).unwrap_or(u32::MAX))?;
    Ok(())
}

/// What has come in and is not a whole frame yet.
#[derive(Debug, Default)]
pub(crate) struct Inbox {
    held: Vec<u8>,
    /// Whether the last read left room: then it took all there was.
    drained: bool,
}

impl Inbox {
    /// Whether part of a frame is there.
    pub(crate) const fn is_empty(&self) -> bool {
        self.held.is_empty()
    }

    /// Whether the last read took all there was: what comes after it makes the socket readable anew.
    pub(crate) const fn is_drained(&self) -> bool {
        self.drained
    }

    /// Forgets what is held.
    pub(crate) fn clear(&mut self) {
        self.held = Vec::new();
    }

    /// Reads once, about `most` bytes, and shows `take` all that is there; it says how many bytes it is done with.
    /// Gives back how many bytes were read; none at the stream's end.
    pub(crate) fn read(
        &mut self,
        socket: BorrowedFd<'_>,
        most: usize,
        take: impl FnOnce(&[u8]) -> usize,
    ) -> io::Result<usize> {
        if self.held.is_empty() {
            return SCRATCH.with_borrow_mut(|scratch| {
                scratch.clear();
                scratch.reserve(most);
                let read = receive(socket, scratch)?;
                self.drained = scratch.len() < scratch.capacity();
                if read > 0 {
                    let used = take(scratch);
                    self.held.extend_from_slice(&scratch[used..]);
                }
                Ok(read)
            });
        }
        self.held.reserve(self.missing(most));
        let read = receive(socket, &mut self.held)?;
        self.drained = self.held.len() < self.held.capacity();
        if read > 0 {
            let used = take(&self.held);
            self.held.drain(..used);
            if self.held.is_empty() && self.held.capacity() > KEEP {
                self.clear();
            }
        }
        Ok(read)
    }

    /// How much to read after half a frame: its rest, in strides, and room for what follows it.
    fn missing(&self, most: usize) -> usize {
        let whole = needed(&self.held).ok().flatten().unwrap_or(HEADER);
        whole.saturating_sub(self.held.len()).min(STRIDE).max(most.min(16 << 10))
    }
}

fn receive(socket: BorrowedFd<'_>, into: &mut Vec<u8>) -> io::Result<usize> {
    loop {
        match rustix::io::read(socket, spare_capacity(into)) {
            Err(rustix::io::Errno::INTR) => {}
            result => return Ok(result?),
        }
    }
}

/// What is to go out.
#[derive(Debug, Default)]
pub(crate) struct Outbox {
    bytes: Vec<u8>,
    sent: usize,
    /// Whether some of what was appended since it was last empty went out.
    begun: bool,
}

impl Outbox {
    /// Bytes that were not sent yet.
    pub(crate) const fn waiting(&self) -> usize {
        self.bytes.len() - self.sent
    }

    /// Where to append.
    pub(crate) const fn bytes(&mut self) -> &mut Vec<u8> {
        &mut self.bytes
    }

    /// Takes everything, if no byte of it was sent; else gives nothing.
    pub(crate) fn untouched(&mut self) -> Vec<u8> {
        let all = core::mem::take(self);
        if all.begun { Vec::new() } else { all.bytes }
    }

    /// Sends what it can, with as few calls as that takes. Gives back how many bytes went out, and whether the rest
    /// would block.
    pub(crate) fn flush(&mut self, socket: BorrowedFd<'_>) -> io::Result<(usize, Flushed)> {
        let before = self.sent;
        while self.waiting() > 0 {
            match send(socket, &self.bytes[self.sent..], SendFlags::NOSIGNAL) {
                Ok(sent) => {
                    self.sent += sent;
                    self.begun = true;
                }
                Err(rustix::io::Errno::INTR) => {}
                Err(rustix::io::Errno::AGAIN) => {
                    let sent = self.sent - before;
                    self.compact();
                    return Ok((sent, Flushed::Blocked));
                }
                Err(error) => return Err(error.into()),
            }
        }
        let sent = self.sent - before;
        (self.sent, self.begun) = (0, false);
        self.bytes.clear();
        if self.bytes.capacity() > KEEP {
            self.bytes = Vec::new();
        }
        Ok((sent, Flushed::All))
    }

    /// Moves the rest to the front once it is the smaller part, so that the cost stays in proportion.
    fn compact(&mut self) {
        if self.sent > self.bytes.len() / 2 {
            self.bytes.drain(..self.sent);
            self.sent = 0;
        }
    }
}

/// How far [`Outbox::flush`] came.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Flushed {
    /// Nothing waits any more.
    All,
    /// The socket takes no more at the moment.
    Blocked,
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{Read, Write};
    use std::os::fd::AsFd;
    use std::os::unix::net::UnixStream;

    fn pair() -> (UnixStream, UnixStream) {
        let (a, b) = UnixStream::pair().unwrap();
        a.set_nonblocking(true).unwrap();
        b.set_nonblocking(true).unwrap();
        (a, b)
    }

    #[test]
    fn what_is_not_taken_comes_again() {
        let (mut a, b) = pair();
        let mut inbox = Inbox::default();
        a.write_all(b"abc").unwrap();
        assert_eq!(inbox.read(b.as_fd(), 64, |bytes| bytes.len() - 1).unwrap(), 3);
        assert!(!inbox.is_empty() && inbox.is_drained());
        a.write_all(b"d").unwrap();
        let seen = inbox.read(b.as_fd(), 64, |bytes| {
            assert_eq!(bytes, b"cd");
            2
        });
        assert_eq!(seen.unwrap(), 1);
        assert!(inbox.is_empty());
        let blocked = inbox.read(b.as_fd(), 64, |_| unreachable!("nothing is there")).unwrap_err();
        assert_eq!(blocked.kind(), io::ErrorKind::WouldBlock);
    }

    #[test]
    fn a_read_that_was_filled_may_have_left_something() {
        let (mut a, b) = pair();
        let (mut inbox, mut seen, mut reads) = (Inbox::default(), 0, 0);
        a.write_all(&[7; 100_000]).unwrap();
        while !inbox.is_drained() {
            seen += inbox.read(b.as_fd(), 64, <[u8]>::len).unwrap();
            reads += 1;
        }
        assert_eq!(seen, 100_000, "after {reads} reads");
        let nothing = inbox.read(b.as_fd(), 64, <[u8]>::len).unwrap_err();
        assert_eq!(nothing.kind(), io::ErrorKind::WouldBlock);
    }

    #[test]
    fn sends_all_through_a_small_window() {
        let (a, mut b) = pair();
        let all: Vec<u8> = (0..3 << 20).map(|n: u32| n as u8).collect();
        let (mut outbox, mut seen, mut blocked) = (Outbox::default(), Vec::new(), 0);
        outbox.bytes().extend_from_slice(&all);
        while seen.len() < all.len() {
            if let (_, Flushed::Blocked) = outbox.flush(a.as_fd()).unwrap() {
                blocked += 1;
            }
            let mut some = vec![0; 100_000];
            let n = b.read(&mut some).unwrap();
            seen.extend_from_slice(&some[..n]);
        }
        assert!(seen == all && blocked > 0);
        assert_eq!(outbox.waiting(), 0);
    }
}
