//! Vectored socket I/O straight between a socket and blocks.
//!
//! One call takes up to [`PIECES`] pieces, each either bytes of ours or a span of a block, and never waits. The
//! kernel copies between the socket and the memory; no byte passes through a buffer in between.

use core::mem::zeroed;
use core::ptr::null_mut;
use std::io;
use std::os::fd::{AsRawFd, BorrowedFd};

use springtide_hal::Span;

/// Most pieces that one call looks at; what stands behind them is left for the next call.
pub const PIECES: usize = 64;

/// Something to send.
#[derive(Clone, Copy, Debug)]
pub enum Out<'a> {
    /// Bytes of ours.
    Bytes(&'a [u8]),
    /// Memory that others may be writing meanwhile.
    Memory(Span<'a>),
}

/// A place for what arrives.
#[derive(Debug)]
pub enum In<'a> {
    /// Bytes of ours.
    Bytes(&'a mut [u8]),
    /// Memory that others may be touching meanwhile.
    Memory(Span<'a>),
}

impl Out<'_> {
    /// How many bytes.
    pub const fn len(&self) -> u64 {
        match self {
            Self::Bytes(bytes) => bytes.len() as u64,
            Self::Memory(span) => span.len(),
        }
    }

    /// Whether there are none.
    pub const fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

impl In<'_> {
    /// How many bytes.
    pub const fn len(&self) -> u64 {
        match self {
            Self::Bytes(bytes) => bytes.len() as u64,
            Self::Memory(span) => span.len(),
        }
    }

    /// Whether there are none.
    pub const fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

const EMPTY: libc::iovec = libc::iovec { iov_base: null_mut(), iov_len: 0 };

fn memory(span: Span<'_>) -> libc::iovec {
    libc::iovec { iov_base: span.address().as_ptr().cast(), iov_len: span.len() as usize }
}

fn message(vectors: &mut [libc::iovec]) -> libc::msghdr {
    // SAFETY: `msghdr` is plain data; all zeroes means no name, no vectors and no control data.
    let mut message: libc::msghdr = unsafe { zeroed() };
    message.msg_iov = vectors.as_mut_ptr();
    message.msg_iovlen = vectors.len() as _;
    message
}

/// Sends as much of `pieces`, in order, as the socket takes now: how many bytes. One system call.
///
/// # Errors
/// `WouldBlock` if the socket takes nothing now; else what the socket says. Never raises `SIGPIPE`.
pub fn send(socket: BorrowedFd<'_>, pieces: &[Out<'_>]) -> io::Result<usize> {
    let mut vectors = [EMPTY; PIECES];
    let count = pieces.len().min(PIECES);
    for (vector, piece) in vectors.iter_mut().zip(pieces) {
        *vector = match piece {
            Out::Bytes(bytes) => {
                libc::iovec { iov_base: bytes.as_ptr().cast_mut().cast(), iov_len: bytes.len() }
            }
            Out::Memory(span) => memory(*span),
        };
    }
    let message = message(&mut vectors[..count]);
    // SAFETY: every vector names memory that the pieces borrow for the whole call (a span was checked against its
    // block, which keeps it mapped); the kernel only reads it. The descriptor is open, as it is borrowed.
    let sent = unsafe {
        libc::sendmsg(socket.as_raw_fd(), &raw const message, libc::MSG_NOSIGNAL | libc::MSG_DONTWAIT)
    };
    usize::try_from(sent).map_err(|_| io::Error::last_os_error())
}

/// Receives what is there now into `pieces`, in order: how many bytes; 0 if the peer has ended its side (or if the
/// pieces are empty). One system call.
///
/// # Errors
/// `WouldBlock` if there is nothing now; else what the socket says.
pub fn recv(socket: BorrowedFd<'_>, pieces: &mut [In<'_>]) -> io::Result<usize> {
    let mut vectors = [EMPTY; PIECES];
    let count = pieces.len().min(PIECES);
    for (vector, piece) in vectors.iter_mut().zip(pieces.iter_mut()) {
        *vector = match piece {
            In::Bytes(bytes) => libc::iovec { iov_base: bytes.as_mut_ptr().cast(), iov_len: bytes.len() },
            In::Memory(span) => memory(*span),
        };
    }
    let mut message = message(&mut vectors[..count]);
    // SAFETY: every vector names memory that the pieces borrow for the whole call: byte slices exclusively, spans as
    // memory of a block that anybody may write and nobody holds a reference into. The descriptor is open.
    let got = unsafe { libc::recvmsg(socket.as_raw_fd(), &raw mut message, libc::MSG_DONTWAIT) };
    usize::try_from(got).map_err(|_| io::Error::last_os_error())
}

#[cfg(test)]
mod tests {
    use super::*;
    use springtide_hal::Block;
    use std::os::fd::AsFd;
    use std::os::unix::net::UnixStream;

    fn block(len: usize) -> Block {
        vec![0; len].into()
    }

    fn pair() -> (UnixStream, UnixStream) {
        UnixStream::pair().unwrap()
    }

    #[test]
    fn pieces_keep_their_order() {
        let ((a, b), from, to) = (pair(), block(64), block(64));
        from.write(8, b"memory").unwrap();
        let out = [Out::Bytes(b"head"), Out::Memory(from.span(8, 6).unwrap()), Out::Bytes(b"!")];
        assert_eq!(send(a.as_fd(), &out).unwrap(), 11);
        let mut head = [0; 4];
        let mut rest = [0; 10];
        let mut pieces = [In::Bytes(&mut head), In::Memory(to.span(1, 6).unwrap()), In::Bytes(&mut rest)];
        assert_eq!(recv(b.as_fd(), &mut pieces).unwrap(), 11);
        let mut got = [0; 8];
        to.read(0, &mut got).unwrap();
        assert_eq!((&head, &got, rest[0]), (b"head", b"\0memory\0", b'!'));
    }

    #[test]
    fn never_waits_and_never_raises() {
        let (a, b) = pair();
        let mut byte = [0];
        assert_eq!(
            recv(b.as_fd(), &mut [In::Bytes(&mut byte)]).unwrap_err().kind(),
            io::ErrorKind::WouldBlock
        );
        let big = block(16 << 20);
        let all = big.span(0, big.len()).unwrap();
        assert!((send(a.as_fd(), &[Out::Memory(all)]).unwrap() as u64) < big.len());
        drop(b);
        assert_eq!(send(a.as_fd(), &[Out::Bytes(b"x")]).unwrap_err().kind(), io::ErrorKind::BrokenPipe);
    }

    #[test]
    fn more_pieces_than_one_call_takes_are_left() {
        let (a, b) = pair();
        assert_eq!(send(a.as_fd(), &[Out::Bytes(b"x"); PIECES + 9]).unwrap(), PIECES);
        drop(a);
        let mut bytes = [0; 100];
        assert_eq!(recv(b.as_fd(), &mut [In::Bytes(&mut bytes)]).unwrap(), PIECES);
        assert_eq!(recv(b.as_fd(), &mut [In::Bytes(&mut bytes)]).unwrap(), 0);
    }
}
