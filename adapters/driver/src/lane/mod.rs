//! One engine with its transports: what moves bytes between this process and its peers.

mod card;
mod error;
mod transfer;

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::event::epoll;
use springtide_core::id::{BatchId, RegionId, TargetId, TicketId};
use springtide_core::range::Extent;
use springtide_core::ticket::Ticket;
use springtide_core::time::Instant;
use springtide_core::transfer::{Config, Engine, SubmitError, Transfer};
use springtide_hal::Block;
use springtide_transport::{Armed, ControlError, Exposure, Transport};

use crate::seat::{Drive, Drove};
use crate::wakes::Wakes;

pub use card::Card;
pub use error::TargetError;
pub use transfer::{Ended, Fencing, Moving};

/// One engine and its transports, driven from a [`Seat`](crate::Seat).
///
/// Commands lock the seat for a moment ([`Seat::with`](crate::Seat::with)); what takes time is a future of the seat:
/// [`Seat::transfer`](crate::Seat::transfer), [`Seat::fence`](crate::Seat::fence).
pub struct Lane {
    engine: Engine,
    transports: Vec<Box<dyn Transport>>,
    epoll: OwnedFd,
}

impl Lane {
    /// A lane over `transports`, in order of preference while nothing is measured. `seed` decides how the engine's
    /// pauses are jittered.
    ///
    /// # Errors
    /// The system's, when it has no descriptors left.
    pub fn new(config: Config, transports: Vec<Box<dyn Transport>>, seed: u64) -> io::Result<Self> {
        let epoll = epoll::create(epoll::CreateFlags::CLOEXEC)?;
        Ok(Self { engine: Engine::new(config, seed), transports, epoll })
    }

    /// Lets transfers use `block` and, if `exposure` says so, lets peers reach it: with every transport that can.
    ///
    /// # Errors
    /// The last transport's, if none can.
    pub fn expose(&mut self, _block: &Block, _exposure: Exposure) -> Result<RegionId, ControlError> {
        Err(ControlError::Unsuitable)
    }

    /// Ends [`expose`](Self::expose). The memory is let go when the last op that uses it has ended.
    pub fn withdraw(&mut self, _region: RegionId) {}

    /// What a peer needs in order to reach `region`: one card for each transport that exposes it and can be reached.
    ///
    /// # Errors
    /// [`ControlError::Unknown`] when no transport exposes it.
    pub fn cards(&self, _region: RegionId) -> Result<Vec<Card>, ControlError> {
        Err(ControlError::Unknown)
    }

    /// Makes a peer's memory known: opens a path for each card, or shares the one that leads to the same address.
    /// Cards of unknown transports and of addresses that cannot be reached from here are skipped.
    ///
    /// # Errors
    /// When no card is left.
    pub fn target(&mut self, _now: Instant, _cards: &[Card]) -> Result<TargetId, TargetError> {
        Err(TargetError::NoWay)
    }

    /// Forgets a peer's memory; its transfers that have not ended fail. Paths that nobody uses any more are closed.
    pub fn drop_target(&mut self, now: Instant, target: TargetId) {
        self.engine.remove_target(now, target);
    }

    /// Makes a write permission known to all transports.
    ///
    /// # Errors
    /// The last transport's, if none takes it.
    pub fn admit(&mut self, _ticket: &Ticket) -> Result<TicketId, ControlError> {
        Err(ControlError::Unsuitable)
    }

    /// Ends [`admit`](Self::admit).
    pub fn retire(&mut self, _ticket: TicketId) {}

    /// As owner of `region`: ends every write permission for `extent` with a serial below `below`. Gives back the
    /// number under which [`fence_status`](Self::fence_status) tells when none can land any more.
    ///
    /// # Errors
    /// [`ControlError::Unknown`] when no transport exposes it.
    pub fn fence(&mut self, _region: RegionId, _extent: Extent, _below: u64) -> Result<u64, ControlError> {
        Err(ControlError::Unknown)
    }

    /// Starts transfers; they end by `deadline`. See [`Seat::transfer`](crate::Seat::transfer) for their end.
    ///
    /// # Errors
    /// The engine's; nothing was started then.
    pub fn submit(
        &mut self,
        now: Instant,
        transfers: &[Transfer],
        deadline: Instant,
    ) -> Result<BatchId, SubmitError> {
        self.engine.submit(now, transfers, deadline)
    }
}

impl Drive for Lane {
    fn drive(&mut self, now: Instant, _wakes: &mut Wakes) -> Drove {
        self.engine.handle_timeout(now);
        Drove::Idle
    }

    fn arm(&mut self) -> Armed {
        Armed::Asleep
    }

    fn fd(&self) -> BorrowedFd<'_> {
        self.epoll.as_fd()
    }

    fn deadline(&self) -> Option<Instant> {
        None
    }
}
