//! The [`Transport`] trait: bytes from here to there, whoever carries them.
//!
//! # The contract
//! Each rule has a check of the same number in the [`conformance`] suite, and a deliberately wrong
//! transport that fails it.
//!
//! 1. **Exact prefix.** When `submit` fails, exactly `ops[..accepted]` are in flight; the rest were not touched.
//! 2. **Once.** Every accepted op completes exactly once, also after `cancel`, `close` and a peer's death.
//! 3. **Done means there.** After `Done` a read by anybody sees a write's bytes, and a read's bytes are in place.
//! 4. **Room.** `submit` accepts at least `room(path)` ops; a closed or unknown path has no room.
//! 5. **Bounds.** An op outside its local or remote memory is `Refused` or rejected; no byte moves.
//! 6. **Stale ids.** Withdrawn regions, forgotten remotes and retired tickets are `Refused`, never somebody else's.
//! 7. **Tickets.** A write without a valid ticket for its bytes is `Refused` by the owner; no byte moves.
//! 8. **Fence.** After `Event::Fenced`, no store of a fenced ticket lands, not even one posted before.
//! 9. **Idle targets serve.** A target that only calls `progress` serves its peers.
//! 10. **Lost keeps memory.** While an op may still touch memory its region's block stays alive; an op whose outcome
//!     cannot be known is `Lost`, and its memory is kept until its path is down. After `Event::Down` nothing of the
//!     path touches memory.
//! 11. **No stray bytes.** An op that ends other than `Done` may have stored some of its own bytes, none elsewhere.
//! 12. **Arm.** After `arm` said `Asleep`, whatever happens next makes `wake_fd` readable.
//! 13. **Incarnation.** Memory of an earlier life of a peer is refused.
//! 14. **Budget.** One `progress` moves at most about its budget, so that no peer holds a lane.
//! 15. **No allocation** in `submit` and `progress` once warm.
//! 16. **Closed paths end.** After `close` the path's ops complete and then `Event::Down` is told, without any help of
//!     the peer; a peer's death ends in `Event::Down` too. From then on the same path id can be opened again, and the
//!     same remote ids imported on it.
#![forbid(unsafe_code)]

pub mod conformance;

use core::fmt;
use core::time::Duration;
use std::os::fd::BorrowedFd;

pub use springtide_core::transfer::{Completion, Op, Status, Verb};

use springtide_core::id::{Incarnation, OpId, PathId, RegionId, RemoteId, SegmentId, TicketId};
use springtide_core::range::Extent;
use springtide_core::ticket::{Ticket, TicketKey};
use springtide_core::time::Instant;
use springtide_hal::Block;

/// Moves bytes. One owner at a time; never blocks; never retries; has no clock of its own.
///
/// Ids come from the caller, so that one id means one thing in every transport of a lane.
pub trait Transport: Send {
    /// What this transport is and can do.
    fn capabilities(&self) -> &Capabilities;

    // Control. May allocate; what takes time ends in an `Event`.

    /// Lets this transport's ops use `block` as `region` and, if `exposure` says so, lets peers reach it.
    fn expose(&mut self, region: RegionId, block: &Block, exposure: Exposure) -> Result<(), ControlError>;
    /// Ends [`expose`](Self::expose): later ops that name the region are refused. Its block is let go when the last
    /// op that uses it has ended.
    fn withdraw(&mut self, region: RegionId);
    /// Appends what a peer needs in order to [`import`](Self::import) `region`.
    fn describe(&self, region: RegionId, out: &mut Vec<u8>) -> Result<(), ControlError>;
    /// Appends the address at which peers can [`open`](Self::open) a path to this transport; empty if they cannot.
    fn address(&self, out: &mut Vec<u8>);
    /// Starts a path to the transport at `address`; ends in `Event::Up` or `Event::Down`. An address that this
    /// transport can never reach (shared memory of another host, say) is an error at once. The id is free for a new
    /// path once `Event::Down` was told; what was imported on the old one is forgotten.
    fn open(&mut self, now: Instant, path: PathId, address: &[u8]) -> Result<(), ControlError>;
    /// Makes memory that a peer described known as `remote` on `path`.
    fn import(&mut self, path: PathId, remote: RemoteId, description: &[u8]) -> Result<(), ControlError>;
    /// Ends [`import`](Self::import).
    fn forget(&mut self, remote: RemoteId);
    /// Makes a write permission known as `id`.
    fn admit(&mut self, id: TicketId, ticket: &Ticket) -> Result<(), ControlError>;
    /// Ends [`admit`](Self::admit) on this side only.
    fn retire(&mut self, id: TicketId);
    /// As owner of `region`: refuse every store into `extent` under a ticket with a serial below `below`. Ends in
    /// `Event::Fenced` with `fence`, once none can land any more.
    fn fence(&mut self, region: RegionId, extent: Extent, below: u64, fence: u64)
    -> Result<(), ControlError>;
    /// Ends a path. Its ops complete as `Flushed`, or as `Lost` where they may still touch memory.
    fn close(&mut self, path: PathId);

    // Data. No allocation once warm, no waiting.

    /// How many ops `submit` would take on `path` now.
    fn room(&self, path: PathId) -> usize;
    /// Puts `ops` in flight on `path`. On an error exactly `ops[..accepted]` are in flight.
    fn submit(&mut self, path: PathId, ops: &[Op]) -> Result<(), SubmitError>;
    /// Asks to give up `op`; it still completes, exactly once.
    fn cancel(&mut self, op: OpId);
    /// Does what can be done now within `budget`, for our own ops and for peers, and puts finished ops into `done`.
    /// Gives back how many. Call again at once when it fills `done` or uses up the budget.
    fn progress(&mut self, now: Instant, budget: Budget, done: &mut [Completion]) -> usize;
    /// What happened on the control side, oldest first.
    fn event(&mut self) -> Option<Event>;
    /// Readable when there is something to do. One descriptor a transport, whatever is behind it.
    fn wake_fd(&self) -> Option<BorrowedFd<'_>>;
    /// Asks to be woken. Call it before sleeping on [`wake_fd`](Self::wake_fd).
    fn arm(&mut self) -> Armed;
}

const _: fn(&mut dyn Transport) = |_| {};

/// What a transport is and can do.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct Capabilities {
    /// Its name on the wire and in figures: `tcp`, `shm`.
    pub name: &'static str,
    /// How an owner ends write permissions.
    pub fence: FenceKind,
    /// Longest op, in bytes; the engine cuts longer transfers.
    pub max_op: u32,
    /// Ops must not cross a multiple of this many bytes on either side; a power of two, 0 for none.
    pub chunk: u64,
    /// Most ops in flight on one path.
    pub depth: u32,
    /// A first guess at one op's latency, before any was measured.
    pub latency: Duration,
    /// A first guess at throughput, in bytes per second, before any was measured.
    pub bandwidth: u64,
}

impl Capabilities {
    /// Capabilities of a transport named `name` with the defaults: ticket fence, 1 MiB ops, 256 deep, no chunks.
    pub const fn new(name: &'static str) -> Self {
        Self {
            name,
            fence: FenceKind::Ticket,
            max_op: 1 << 20,
            chunk: 0,
            depth: 256,
            latency: Duration::from_micros(50),
            bandwidth: 1 << 30,
        }
    }
}

/// How an owner ends write permissions.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum FenceKind {
    /// The owner's CPU makes or admits every store, and refuses old tickets.
    Ticket,
    /// The owner closes the writer's queue pair or jetty.
    Path,
    /// The owner gives the chunk a new key.
    Chunk,
    /// Not at all: what was granted is held back for the release time-out.
    Time,
}

/// Who may reach a region, and how.
#[derive(Clone, Copy, Debug)]
pub enum Exposure {
    /// Only our own ops use it.
    Local,
    /// Our own ops use it, and a peer that serves one of them may load from it.
    Source,
    /// It is a segment: peers load freely and store under tickets.
    Segment {
        /// This process, as tickets and descriptions name it.
        owner: Incarnation,
        /// The segment, as the master numbers it.
        segment: SegmentId,
        /// The secret that tickets are checked with.
        key: TicketKey,
    },
}

/// How much one `progress` may do.
#[derive(Clone, Copy, Debug)]
pub struct Budget {
    /// Most ops to start or finish.
    pub ops: u32,
    /// Most bytes to move, give or take one step.
    pub bytes: u64,
}

/// What happened on the control side.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum Event {
    /// The path is usable.
    Up(PathId),
    /// The path is gone; its ops have completed or will. Open another one.
    Down(PathId, DownReason),
    /// The fence with this number stands.
    Fenced(u64),
}

/// Why a path went down.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum DownReason {
    /// Nobody listens there, or the network does not get there.
    Unreachable,
    /// The peer closed or died.
    PeerGone,
    /// The peer does not answer any more.
    Silent,
    /// The peer broke the protocol, or speaks another version of it.
    Protocol,
    /// We closed it.
    Closed,
}

/// Whether it is safe to sleep.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[must_use]
pub enum Armed {
    /// Something is there already: progress before sleeping.
    Again,
    /// Sleep on the descriptor.
    Asleep,
    /// Sleep on the descriptor, but look again after this long.
    Poll(Duration),
}

/// Why ops were not taken.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct SubmitError {
    /// How many of the ops are in flight all the same.
    pub accepted: usize,
    /// Why the next one is not.
    pub reason: Reason,
}

/// Why an op was not taken.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum Reason {
    /// No room now; reap and try again.
    Full,
    /// The path is not up.
    PathDown,
    /// The op names memory that is not there, or reaches outside it.
    BadRegion,
}

/// Why a control call failed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum ControlError {
    /// This memory cannot be used by this transport.
    Unsuitable,
    /// No such region, remote, ticket or path, or it exists already.
    Unknown,
    /// The address or description is not one of this transport's.
    Malformed,
    /// The address can never be reached from here.
    Unreachable,
    /// The description is of an earlier life of the peer.
    Stale,
    /// The system refused (out of descriptors, memory or permission); its error number.
    System(i32),
}

impl fmt::Display for ControlError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unsuitable => f.write_str("this transport cannot use that memory"),
            Self::Unknown => f.write_str("no such region, remote, ticket or path"),
            Self::Malformed => f.write_str("not an address or description of this transport"),
            Self::Unreachable => f.write_str("that address cannot be reached from here"),
            Self::Stale => f.write_str("the description is of an earlier life of the peer"),
            Self::System(errno) => {
                write!(f, "the system refused: {}", std::io::Error::from_raw_os_error(*errno))
            }
        }
    }
}

impl core::error::Error for ControlError {}

impl<T: Transport + ?Sized> Transport for Box<T> {
    fn capabilities(&self) -> &Capabilities {
        (**self).capabilities()
    }
    fn expose(&mut self, region: RegionId, block: &Block, exposure: Exposure) -> Result<(), ControlError> {
        (**self).expose(region, block, exposure)
    }
    fn withdraw(&mut self, region: RegionId) {
        (**self).withdraw(region);
    }
    fn describe(&self, region: RegionId, out: &mut Vec<u8>) -> Result<(), ControlError> {
        (**self).describe(region, out)
    }
    fn address(&self, out: &mut Vec<u8>) {
        (**self).address(out);
    }
    fn open(&mut self, now: Instant, path: PathId, address: &[u8]) -> Result<(), ControlError> {
        (**self).open(now, path, address)
    }
    fn import(&mut self, path: PathId, remote: RemoteId, description: &[u8]) -> Result<(), ControlError> {
        (**self).import(path, remote, description)
    }
    fn forget(&mut self, remote: RemoteId) {
        (**self).forget(remote);
    }
    fn admit(&mut self, id: TicketId, ticket: &Ticket) -> Result<(), ControlError> {
        (**self).admit(id, ticket)
    }
    fn retire(&mut self, id: TicketId) {
        (**self).retire(id);
    }
    fn fence(
        &mut self,
        region: RegionId,
        extent: Extent,
        below: u64,
        fence: u64,
    ) -> Result<(), ControlError> {
        (**self).fence(region, extent, below, fence)
    }
    fn close(&mut self, path: PathId) {
        (**self).close(path);
    }
    fn room(&self, path: PathId) -> usize {
        (**self).room(path)
    }
    fn submit(&mut self, path: PathId, ops: &[Op]) -> Result<(), SubmitError> {
        (**self).submit(path, ops)
    }
    fn cancel(&mut self, op: OpId) {
        (**self).cancel(op);
    }
    fn progress(&mut self, now: Instant, budget: Budget, done: &mut [Completion]) -> usize {
        (**self).progress(now, budget, done)
    }
    fn event(&mut self) -> Option<Event> {
        (**self).event()
    }
    fn wake_fd(&self) -> Option<BorrowedFd<'_>> {
        (**self).wake_fd()
    }
    fn arm(&mut self) -> Armed {
        (**self).arm()
    }
}
