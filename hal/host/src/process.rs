//! The process at the other end of a Unix socket: who it is, whether it lives, and its private memory.

use core::fmt;
use std::os::fd::{AsRawFd, BorrowedFd, OwnedFd};

use rustix::event::{PollFd, PollFlags, Timespec};
use rustix::io::Errno;
use rustix::process::{Pid, PidfdFlags};
use springtide_hal::Span;

/// Why bytes of a process could not be read.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ProcessError {
    /// This process may not read there, or the other one is in a namespace that hides it.
    NotPermitted,
    /// The address is not mapped there.
    Unmapped,
    /// The process has ended; what was read may be of another one.
    Gone,
    /// The system refused; its error number.
    System(i32),
}

impl fmt::Display for ProcessError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotPermitted => f.write_str("the peer's private memory may not be read from here"),
            Self::Unmapped => f.write_str("the peer has nothing mapped at that address"),
            Self::Gone => f.write_str("the peer process has ended"),
            Self::System(errno) => {
                write!(f, "reading the peer's memory failed: {}", std::io::Error::from_raw_os_error(*errno))
            }
        }
    }
}

impl core::error::Error for ProcessError {}

impl From<Errno> for ProcessError {
    fn from(errno: Errno) -> Self {
        match errno {
            Errno::PERM | Errno::ACCESS | Errno::NOSYS => Self::NotPermitted,
            Errno::FAULT => Self::Unmapped,
            Errno::SRCH => Self::Gone,
            other => Self::System(other.raw_os_error()),
        }
    }
}

/// A peer process, held so that its number cannot come to mean another one unnoticed.
#[derive(Debug)]
pub struct Process {
    uid: u32,
    /// `None` if the peer is in a namespace that hides it.
    handle: Option<(Pid, OwnedFd)>,
}

impl Process {
    /// The process that connected, or listened, at the other end of `socket`, a Unix socket.
    pub fn of_peer(socket: BorrowedFd<'_>) -> Result<Self, ProcessError> {
        let mut peer = libc::ucred { pid: 0, uid: u32::MAX, gid: u32::MAX };
        let mut len = size_of::<libc::ucred>() as libc::socklen_t;
        // SAFETY: `peer` is `len` bytes of plain numbers, all of whose values are allowed (a hidden peer's pid is 0).
        let result = unsafe {
            libc::getsockopt(
                socket.as_raw_fd(),
                libc::SOL_SOCKET,
                libc::SO_PEERCRED,
                (&raw mut peer).cast(),
                &raw mut len,
            )
        };
        if result != 0 {
            return Err(last_error());
        }
        let Some(pid) = Pid::from_raw(peer.pid).filter(|pid| pid.as_raw_nonzero().get() > 0) else {
            return Ok(Self { uid: peer.uid, handle: None });
        };
        let handle = match rustix::process::pidfd_open(pid, PidfdFlags::empty()) {
            Ok(handle) => Some((pid, handle)),
            Err(Errno::SRCH) => return Err(ProcessError::Gone),
            // Kernels before 5.3 cannot hold a process: its private memory stays unread.
            Err(_) => None,
        };
        Ok(Self { uid: peer.uid, handle })
    }

    /// The peer's effective user id at connection time.
    pub const fn uid(&self) -> u32 {
        self.uid
    }

    /// Whether it still runs. False also if this process cannot tell.
    pub fn is_alive(&self) -> bool {
        let Some((_, handle)) = &self.handle else { return false };
        let mut ended = [PollFd::new(handle, PollFlags::IN)];
        matches!(rustix::event::poll(&mut ended, Some(&Timespec { tv_sec: 0, tv_nsec: 0 })), Ok(0))
    }

    /// Copies the peer's bytes from `address` on over `to`; says how many came before memory ended that the peer has
    /// mapped. An error may have left some bytes in `to`. Two system calls.
    pub fn read(&self, address: u64, to: Span<'_>) -> Result<u64, ProcessError> {
        let Some((pid, _)) = &self.handle else { return Err(ProcessError::NotPermitted) };
        let bounds = usize::try_from(address).ok().zip(usize::try_from(to.len()).ok());
        let Some((from, len)) = bounds.filter(|(from, len)| from.checked_add(*len).is_some()) else {
            return Err(ProcessError::Unmapped);
        };
        if len == 0 {
            return Ok(0);
        }
        let local = libc::iovec { iov_base: to.address().as_ptr().cast(), iov_len: len };
        let remote = libc::iovec { iov_base: core::ptr::without_provenance_mut(from), iov_len: len };
        // SAFETY: `local` is `len` bytes inside a live block; the kernel checks `remote` against the peer's mappings.
        let read = unsafe {
            libc::process_vm_readv(pid.as_raw_nonzero().get(), &raw const local, 1, &raw const remote, 1, 0)
        };
        if read < 0 {
            return Err(last_error());
        }
        // The number was still this process's own if the process lives now.
        if self.is_alive() { Ok(read as u64) } else { Err(ProcessError::Gone) }
    }
}

fn last_error() -> ProcessError {
    let errno = std::io::Error::last_os_error().raw_os_error().unwrap_or(0);
    ProcessError::from(Errno::from_raw_os_error(errno))
}

#[cfg(test)]
mod tests {
    use super::*;
    use springtide_hal::Block;
    use std::os::fd::AsFd;
    use std::os::unix::net::UnixStream;

    fn myself() -> Process {
        let (ours, _theirs) = UnixStream::pair().unwrap();
        Process::of_peer(ours.as_fd()).unwrap()
    }

    #[test]
    fn reads_its_peer_and_nothing_beyond() {
        let process = myself();
        assert_eq!(process.uid(), rustix::process::geteuid().as_raw());
        assert!(process.is_alive());
        let source = Block::from((0..=255).collect::<Vec<u8>>());
        let target = Block::from(vec![0xee; 102]);
        let address = source.base().as_ptr().expose_provenance() as u64;
        assert_eq!(process.read(address + 50, target.span(1, 100).unwrap()), Ok(100));
        let got = target.to_vec();
        assert_eq!(got[1..101], (50..150).collect::<Vec<u8>>());
        assert_eq!((got[0], got[101]), (0xee, 0xee));
        assert_eq!(process.read(address, target.span(0, 0).unwrap()), Ok(0));
    }

    #[test]
    fn wild_addresses_are_errors() {
        let (process, target) = (myself(), Block::from(vec![0; 100]));
        let to = target.span(0, 100).unwrap();
        for address in [0, 8, u64::MAX - 50, u64::MAX, 1 << 63] {
            assert_eq!(process.read(address, to), Err(ProcessError::Unmapped), "{address:#x}");
        }
    }

    #[test]
    fn a_hidden_peer_is_not_read() {
        let process = Process { uid: 0, handle: None };
        let target = Block::from(vec![0; 1]);
        assert_eq!(process.read(8, target.span(0, 1).unwrap()), Err(ProcessError::NotPermitted));
        assert!(!process.is_alive());
    }

    #[test]
    fn an_ended_process_is_gone() {
        let mut child =
            std::process::Command::new("/bin/cat").stdin(std::process::Stdio::piped()).spawn().unwrap();
        let pid = Pid::from_raw(child.id() as i32).unwrap();
        let handle = rustix::process::pidfd_open(pid, PidfdFlags::empty()).unwrap();
        let process = Process { uid: 0, handle: Some((pid, handle)) };
        assert!(process.is_alive());
        child.kill().unwrap();
        child.wait().unwrap();
        assert!(!process.is_alive());
        let target = Block::from(vec![0; 1]);
        assert_eq!(process.read(8, target.span(0, 1).unwrap()), Err(ProcessError::Gone));
    }
}
