//! Packets with descriptors over Unix sockets in the abstract name space, which leaves no files behind.

use core::mem::MaybeUninit;
use std::io::{IoSlice, IoSliceMut};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::cmsg_space;
use rustix::io::Errno;
use rustix::net::{
    AddressFamily, RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer,
    SendAncillaryMessage, SendFlags, SocketAddrUnix, SocketFlags, SocketType,
};

use crate::message::{LEN, Message};

/// Connections that the kernel holds for us until we accept them.
const BACKLOG: i32 = 128;
/// Descriptors that go along with one message at most.
const FILES: usize = 2;

fn name(life: u128) -> Result<SocketAddrUnix, Errno> {
    SocketAddrUnix::new_abstract_name(format!("springtide-shm-{life:032x}").as_bytes())
}

fn socket() -> Result<OwnedFd, Errno> {
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    rustix::net::socket_with(AddressFamily::UNIX, SocketType::SEQPACKET, flags, None)
}

/// Listens for whoever looks for `life`.
pub(crate) fn listen(life: u128) -> Result<OwnedFd, Errno> {
    let socket = socket()?;
    rustix::net::bind(&socket, &name(life)?)?;
    rustix::net::listen(&socket, BACKLOG)?;
    Ok(socket)
}

/// Connects to `life`: at once, or not at all.
pub(crate) fn connect(life: u128) -> Result<OwnedFd, Errno> {
    let socket = socket()?;
    rustix::net::connect(&socket, &name(life)?)?;
    Ok(socket)
}

/// The next connection that waits.
pub(crate) fn accept(listener: &OwnedFd) -> Result<OwnedFd, Errno> {
    rustix::net::accept_with(listener, SocketFlags::CLOEXEC | SocketFlags::NONBLOCK)
}

/// Sends `message` with `files`, whole or not at all.
pub(crate) fn send(socket: impl AsFd, message: &Message, files: &[BorrowedFd<'_>]) -> Result<(), Errno> {
    let mut space = [MaybeUninit::uninit(); cmsg_space!(ScmRights(FILES))];
    let mut control = SendAncillaryBuffer::new(&mut space);
    if !files.is_empty() && !control.push(SendAncillaryMessage::ScmRights(files)) {
        return Err(Errno::INVAL);
    }
    let flags = SendFlags::NOSIGNAL | SendFlags::DONTWAIT;
    rustix::net::sendmsg(socket, &[IoSlice::new(&message.encode())], &mut control, flags).map(drop)
}

/// What came out of a socket.
#[derive(Debug)]
pub(crate) enum Received {
    /// A message, and the descriptors that came along.
    Message(Message, [Option<OwnedFd>; FILES]),
    /// Something else: the peer breaks the protocol.
    Garbage,
    /// Nothing now.
    Nothing,
    /// Nothing any more: the peer closed, or is dead.
    End,
}

/// Takes the next message out of `socket`.
pub(crate) fn receive(socket: impl AsFd) -> Received {
    let mut space = [MaybeUninit::uninit(); cmsg_space!(ScmRights(FILES))];
    let mut control = RecvAncillaryBuffer::new(&mut space);
    // One byte more than a message, so that a longer one is seen to be longer.
    let mut bytes = [0; LEN + 1];
    let flags = RecvFlags::DONTWAIT | RecvFlags::CMSG_CLOEXEC;
    let len = match rustix::net::recvmsg(socket, &mut [IoSliceMut::new(&mut bytes)], &mut control, flags) {
        Ok(received) => received.bytes,
        Err(Errno::AGAIN | Errno::INTR) => return Received::Nothing,
        Err(_) => return Received::End,
    };
    let mut files = [None, None];
    for message in control.drain() {
        if let RecvAncillaryMessage::ScmRights(passed) = message {
            for (slot, file) in files.iter_mut().zip(passed) {
                *slot = Some(file);
            }
        }
    }
    match (len, Message::decode(&bytes[..len])) {
        (0, _) => Received::End,
        (_, Some(message)) => Received::Message(message, files),
        (_, None) => Received::Garbage,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pair() -> (OwnedFd, OwnedFd) {
        rustix::net::socketpair(AddressFamily::UNIX, SocketType::SEQPACKET, SocketFlags::NONBLOCK, None)
            .unwrap()
    }

    #[test]
    fn messages_carry_files() {
        let (a, b) = pair();
        let file = rustix::event::eventfd(41, rustix::event::EventfdFlags::NONBLOCK).unwrap();
        send(&a, &Message::Want { region: 5 }, &[file.as_fd()]).unwrap();
        let Received::Message(Message::Want { region: 5 }, [Some(got), None]) = receive(&b) else {
            panic!("the message and one file")
        };
        let mut value = [0; 8];
        rustix::io::read(&got, &mut value).unwrap();
        assert_eq!(u64::from_ne_bytes(value), 41);
        assert!(matches!(receive(&b), Received::Nothing));
        drop(a);
        assert!(matches!(receive(&b), Received::End));
    }

    #[test]
    fn garbage_is_seen() {
        let (a, b) = pair();
        for bytes in [&[0; LEN][..], &[1; 3], &[1; LEN + 1], &[4; 500]] {
            rustix::net::send(&a, bytes, SendFlags::empty()).unwrap();
            assert!(matches!(receive(&b), Received::Garbage), "{} bytes", bytes.len());
        }
    }

    #[test]
    fn a_life_listens_once_and_only_while_it_lives() {
        let life = springtide_hal_host::clock::incarnation().0;
        let listener = listen(life).unwrap();
        assert_eq!(listen(life).unwrap_err(), Errno::ADDRINUSE);
        let _connection = connect(life).unwrap();
        assert!(accept(&listener).is_ok());
        assert_eq!(accept(&listener).unwrap_err(), Errno::AGAIN);
        drop(listener);
        assert_eq!(connect(life).unwrap_err(), Errno::CONNREFUSED);
    }
}
