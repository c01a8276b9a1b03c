//! This process's memory, and who may write to it.

use core::task::{Poll, Waker};

use springtide_core::id::{RegionId, TicketId};
use springtide_core::range::Extent;
use springtide_core::ticket::Ticket;
use springtide_hal::Block;
use springtide_transport::{ControlError, Exposure, Transport};

use super::{Card, Lane, register};
use crate::wakes::Wakes;

/// Some of a lane's transports: a bit each.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(super) struct Rails(u64);

impl Rails {
    /// Those of `transports` for which `call` succeeds; the last error if it does for none.
    fn of(
        transports: &mut [Box<dyn Transport>],
        mut call: impl FnMut(&mut dyn Transport) -> Result<(), ControlError>,
    ) -> Result<Self, ControlError> {
        let (mut rails, mut last) = (Self::default(), ControlError::Unsuitable);
        for (index, transport) in transports.iter_mut().enumerate().take(64) {
            match call(transport.as_mut()) {
                Ok(()) => rails.0 |= 1 << index,
                Err(error) => last = error,
            }
        }
        if rails == Self::default() { Err(last) } else { Ok(rails) }
    }

    fn indices(self) -> impl Iterator<Item = usize> {
        (0..64).filter(move |index| self.0 & 1 << index != 0)
    }
}

/// A fence that does not stand yet, or was not looked at since.
#[derive(Debug)]
pub(super) struct Fence {
    /// Transports that have not answered.
    left: usize,
    waker: Option<Waker>,
    /// Nobody waits for it: it is forgotten when it stands.
    unwatched: bool,
}

impl Lane {
    /// Lets transfers use `block` and, if `exposure` says so, lets peers reach it: with every transport that can.
    ///
    /// # Errors
    /// The last transport's, if none can.
    pub fn expose(&mut self, block: &Block, exposure: Exposure) -> Result<RegionId, ControlError> {
        self.told = true;
        self.serves |= matches!(exposure, Exposure::Segment { .. });
        let region = self.memory.regions.next_id();
        let rails = Rails::of(&mut self.transports, |transport| transport.expose(region, block, exposure))?;
        Ok(self.memory.regions.insert(rails))
    }

    /// Ends [`expose`](Self::expose). The memory is let go when the last op that uses it has ended.
    pub fn withdraw(&mut self, region: RegionId) {
        self.told = true;
        let Some(rails) = self.memory.regions.remove(region) else { return };
        rails.indices().for_each(|index| self.transports[index].withdraw(region));
    }

    /// What a peer needs in order to reach `region`: one card for each transport that exposes it and can be reached.
    ///
    /// # Errors
    /// [`ControlError::Unknown`] when there is no such region or peers can reach it over no transport.
    pub fn cards(&self, region: RegionId) -> Result<Vec<Card>, ControlError> {
        let rails = self.memory.regions.get(region).ok_or(ControlError::Unknown)?;
        let cards = rails.indices().filter_map(|index| {
            let transport = &self.transports[index];
            let (mut address, mut description) = (Vec::new(), Vec::new());
            transport.address(&mut address);
            transport.describe(region, &mut description).ok()?;
            let name = transport.capabilities().name;
            (!address.is_empty()).then(|| Card { transport: name.into(), address, description })
        });
        let cards: Vec<_> = cards.collect();
        if cards.is_empty() { Err(ControlError::Unknown) } else { Ok(cards) }
    }

    /// Makes a write permission known to all transports.
    ///
    /// # Errors
    /// The last transport's, if none takes it.
    pub fn admit(&mut self, ticket: &Ticket) -> Result<TicketId, ControlError> {
        let id = self.memory.tickets.next_id();
        let rails = Rails::of(&mut self.transports, |transport| transport.admit(id, ticket))?;
        Ok(self.memory.tickets.insert(rails))
    }

    /// Ends [`admit`](Self::admit).
    pub fn retire(&mut self, ticket: TicketId) {
        let Some(rails) = self.memory.tickets.remove(ticket) else { return };
        rails.indices().for_each(|index| self.transports[index].retire(ticket));
    }

    /// As owner of `region`: ends every write permission for `extent` with a serial below `below`. Gives back the
    /// number under which [`poll_fence`](Self::poll_fence) tells when none can land any more.
    ///
    /// # Errors
    /// [`ControlError::Unknown`] when there is no such region; else that of the transport that cannot fence. Bytes
    /// may still land then.
    pub fn fence(&mut self, region: RegionId, extent: Extent, below: u64) -> Result<u64, ControlError> {
        self.told = true;
        let rails = *self.memory.regions.get(region).ok_or(ControlError::Unknown)?;
        self.memory.last_fence += 1;
        let number = self.memory.last_fence;
        for index in rails.indices() {
            self.transports[index].fence(region, extent, below, number)?;
        }
        let left = rails.indices().count();
        self.memory.fences.insert(number, Fence { left, waker: None, unwatched: false });
        Ok(number)
    }

    /// Whether a fence stands: ready once, then the number is forgotten. Registers `waker` if it does not.
    pub fn poll_fence(&mut self, number: u64, waker: &Waker) -> Poll<()> {
        let Some(fence) = self.memory.fences.get_mut(&number) else { return Poll::Ready(()) };
        if fence.left > 0 {
            register(&mut fence.waker, waker);
            return Poll::Pending;
        }
        self.memory.fences.remove(&number);
        Poll::Ready(())
    }

    /// Nobody waits for a fence any more; it stands all the same.
    pub(super) fn leave_fence(&mut self, number: u64) -> Option<Waker> {
        let fence = self.memory.fences.get_mut(&number)?;
        if fence.left == 0 {
            return self.memory.fences.remove(&number)?.waker;
        }
        fence.unwatched = true;
        fence.waker.take()
    }

    pub(super) fn fenced(&mut self, number: u64, wakes: &mut Wakes) {
        let Some(fence) = self.memory.fences.get_mut(&number) else { return };
        fence.left = fence.left.saturating_sub(1);
        if fence.left > 0 {
            return;
        }
        fence.waker.take().into_iter().for_each(|waker| wakes.push(waker));
        if fence.unwatched {
            self.memory.fences.remove(&number);
        }
    }
}
