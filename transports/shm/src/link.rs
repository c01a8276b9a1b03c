//! One connection between two transports: socket, boards and bells.

use std::collections::VecDeque;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::event::{EventfdFlags, epoll};
use rustix::io::Errno;
use springtide_hal::Block;
use springtide_hal_host::process::Process;
use springtide_hal_host::ring::{Board, Flag, PeerBoard, Shape};
use springtide_transport::{ControlError, DownReason};

use crate::message::Message;
use crate::socket::{self, Received};

/// Messages that wait for room in a socket at most. A peer that takes none for so long is cut off.
const NOTES: usize = 4_096;

/// What a link's descriptors say in the epoll: which kind of link, and which slot of its table.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Mark {
    pub(crate) side: Side,
    pub(crate) slot: u32,
}

/// Which end of a connection a link is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Side {
    /// No connection: the socket that listens.
    Listener,
    /// We opened it.
    Path,
    /// A peer opened it.
    Guest,
}

impl Mark {
    pub(crate) fn data(self) -> epoll::EventData {
        epoll::EventData::new_u64((self.side as u64) << 32 | u64::from(self.slot))
    }

    pub(crate) fn of(data: epoll::EventData) -> Self {
        let side = match data.u64() >> 32 {
            0 => Side::Listener,
            1 => Side::Path,
            _ => Side::Guest,
        };
        Self { side, slot: data.u64() as u32 }
    }
}

/// The peer's board, and the bell that wakes it.
#[derive(Debug)]
pub(crate) struct Peer {
    pub(crate) board: PeerBoard,
    bell: OwnedFd,
}

/// A connection to another transport, in this process or another one.
#[derive(Debug)]
pub(crate) struct Link {
    socket: OwnedFd,
    bell: OwnedFd,
    pub(crate) board: Board,
    /// `None` until it has introduced itself.
    pub(crate) peer: Option<Peer>,
    pub(crate) process: Process,
    notes: VecDeque<(Message, Option<Block>)>,
    mark: Mark,
}

pub(crate) fn system(errno: Errno) -> ControlError {
    ControlError::System(errno.raw_os_error())
}

impl Link {
    /// A link over `socket` whose board has `shape`, watched by `epoll`. Peers of other users are refused.
    pub(crate) fn new(
        socket: OwnedFd,
        shape: Shape,
        epoll: &OwnedFd,
        mark: Mark,
    ) -> Result<Self, ControlError> {
        let process = Process::of_peer(socket.as_fd()).map_err(|_| ControlError::Unreachable)?;
        if process.uid() != rustix::process::geteuid().as_raw() {
            return Err(ControlError::Unreachable);
        }
        let bell =
            rustix::event::eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK).map_err(system)?;
        let board = Board::create(shape).map_err(|_| ControlError::System(Errno::NOMEM.raw_os_error()))?;
        epoll::add(epoll, &socket, mark.data(), epoll::EventFlags::IN).map_err(system)?;
        epoll::add(epoll, &bell, mark.data(), epoll::EventFlags::IN).map_err(system)?;
        Ok(Self { socket, bell, board, peer: None, process, notes: VecDeque::new(), mark })
    }

    /// Sends `message`, which introduces us, with our board and bell. The socket is new, so there is room.
    pub(crate) fn introduce(&self, message: &Message) -> Result<(), DownReason> {
        let files = [self.board.file(), self.bell.as_fd()];
        socket::send(&self.socket, message, &files).map_err(|_| DownReason::PeerGone)
    }

    /// Takes in the peer's board, of `shape`, and its bell.
    pub(crate) fn meet(&mut self, files: [Option<OwnedFd>; 2], shape: Shape) -> Result<(), DownReason> {
        let [Some(board), Some(bell)] = files else { return Err(DownReason::Protocol) };
        let board = PeerBoard::map(board, shape).map_err(|_| DownReason::Protocol)?;
        self.peer = Some(Peer { board, bell });
        Ok(())
    }

    /// Sends `message`, and the file of `block` along; later, if the socket is full.
    pub(crate) fn tell(
        &mut self,
        epoll: &OwnedFd,
        message: Message,
        block: Option<Block>,
    ) -> Result<(), DownReason> {
        if self.notes.len() >= NOTES {
            return Err(DownReason::Silent);
        }
        self.notes.push_back((message, block));
        self.flush(epoll)
    }

    /// Sends what waits, as far as the socket takes it, and watches for room for the rest.
    pub(crate) fn flush(&mut self, epoll: &OwnedFd) -> Result<(), DownReason> {
        while let Some((message, block)) = self.notes.front() {
            let file = block.as_ref().and_then(Block::file).map(|(file, _)| file);
            match socket::send(&self.socket, message, file.as_slice()) {
                Ok(()) => drop(self.notes.pop_front()),
                Err(Errno::AGAIN) => {
                    return self.watch(epoll, epoll::EventFlags::IN | epoll::EventFlags::OUT);
                }
                // The peer is gone: `receive` will say so, after what it still said.
                Err(_) => self.notes.clear(),
            }
        }
        Ok(())
    }

    /// Whether messages wait for room in the socket.
    pub(crate) fn is_backed_up(&self) -> bool {
        !self.notes.is_empty()
    }

    fn watch(&self, epoll: &OwnedFd, flags: epoll::EventFlags) -> Result<(), DownReason> {
        epoll::modify(epoll, &self.socket, self.mark.data(), flags).map_err(|_| DownReason::PeerGone)
    }

    /// The epoll said that one of our descriptors is ready: quietens the bell and sends what waits.
    pub(crate) fn awake(&mut self, epoll: &OwnedFd) -> Result<(), DownReason> {
        self.quieten();
        if self.notes.is_empty() {
            return Ok(());
        }
        self.flush(epoll)?;
        if self.notes.is_empty() { self.watch(epoll, epoll::EventFlags::IN) } else { Ok(()) }
    }

    /// Empties our bell, so that the next ring is heard.
    fn quieten(&self) {
        // Nothing rang: nothing to do.
        let _ = rustix::io::read(&self.bell, &mut [0; 8]);
    }

    /// The next message of the peer.
    pub(crate) fn receive(&self) -> Received {
        socket::receive(&self.socket)
    }

    /// Shows the peer what was pushed, and wakes it if it sleeps.
    pub(crate) fn publish(&self) {
        self.board.publish();
        self.ring_if_asleep();
    }

    /// Makes the peer read its socket before it uses anything of ours again.
    pub(crate) fn changed(&self) {
        self.board.set(Flag::Changed, self.board.flag(Flag::Changed).wrapping_add(1));
    }

    fn ring_if_asleep(&self) {
        if let Some(peer) = &self.peer
            && peer.board.sleeps()
        {
            // A bell that is full rings already.
            let _ = rustix::io::write(&peer.bell, &1u64.to_ne_bytes());
        }
    }

    #[cfg(test)]
    pub(crate) const fn socket(&self) -> &OwnedFd {
        &self.socket
    }

    /// Stops watching. For a link that outlives its slot.
    pub(crate) fn unwatch(&self, epoll: &OwnedFd) {
        for descriptor in [self.socket.as_fd(), self.bell.as_fd()] {
            // It was watched, or closing it will end the watch.
            let _: Result<(), Errno> = epoll::delete(epoll, descriptor as BorrowedFd<'_>);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_full_socket_delays_messages_and_loses_none() {
        use rustix::net::{AddressFamily, SocketFlags, SocketType, socketpair};
        let (ours, theirs) =
            socketpair(AddressFamily::UNIX, SocketType::SEQPACKET, SocketFlags::NONBLOCK, None).unwrap();
        let epoll = epoll::create(epoll::CreateFlags::CLOEXEC).unwrap();
        let shape = Shape { slots: 1, words: 1, bytes: 0 };
        let mut link = Link::new(ours, shape, &epoll, Mark { side: Side::Path, slot: 0 }).unwrap();
        let mut sent = 0;
        while link.tell(&epoll, Message::Want { region: sent }, None).is_ok() {
            sent += 1;
        }
        assert!(link.is_backed_up() && sent > NOTES as u64);
        let mut seen = 0;
        while seen < sent {
            match socket::receive(&theirs) {
                Received::Message(Message::Want { region }, _) => {
                    assert_eq!(region, seen);
                    seen += 1;
                }
                _ => link.awake(&epoll).unwrap(),
            }
        }
        link.awake(&epoll).unwrap();
        assert!(!link.is_backed_up());
        assert!(matches!(socket::receive(&theirs), Received::Nothing));
    }

    #[test]
    fn marks_come_back() {
        for side in [Side::Listener, Side::Path, Side::Guest] {
            let mark = Mark { side, slot: u32::MAX };
            assert_eq!(Mark::of(mark.data()), mark);
        }
    }
}
