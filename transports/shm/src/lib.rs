//! Bytes between processes of one host over shared memory.
//!
//! Anyone loads, only the owner stores. A **read** is a copy that the initiator makes itself, out of the owner's sealed
//! memory file; the owner does nothing. For a **write** the owner is asked, over a ring in shared memory, to pull: it
//! checks the ticket, then copies from the initiator's mapped memory, or reads its private memory, or takes the bytes
//! piece by piece from the initiator's board. So nobody ever stores into memory that is not its own, and a process
//! that dies, freezes or goes mad in the midst of a write can neither corrupt a segment nor store late.
//!
//! - [`Shm`] is the transport; one listening socket in the abstract name space, one epoll
//! - `path`: our end of a connection that we opened, with `load` (reads) and `ask` (writes)
//! - `guest`: our end of a connection that a peer opened
//! - `link`: what both have: a socket for descriptors, two boards, two bells; `message`, `entry`: what is said there
//! - `drive`: one turn for everybody, and sleep without a lost wake-up
//!
//! A completion's `code` says why an owner refused: 1 to 4 are the reasons of `Denied` (other owner, out of range,
//! forged, fenced), 5 is "no such memory".
#![forbid(unsafe_code)]

mod address;
mod ask;
mod drive;
mod entry;
mod flight;
#[cfg(feature = "fuzz")]
pub mod fuzz;
mod guest;
mod link;
mod load;
mod message;
mod path;
mod region;
mod socket;
mod table;

use core::time::Duration;
use std::collections::VecDeque;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::event::epoll;
use rustix::io::Errno;
use springtide_core::id::{OpId, PathId, RegionId, RemoteId, TicketId};
use springtide_core::range::Extent;
use springtide_core::ticket::Ticket;
use springtide_core::time::Instant;
use springtide_hal::Block;
use springtide_hal_host::clock;
use springtide_transport::{
    Armed, Budget, Capabilities, Completion, ControlError, DownReason, Event, Exposure, Op, Reason, Status,
    SubmitError, Transport, Verb,
};

use crate::address::{Address, Description, Host};
use crate::drive::Leaving;
use crate::entry::REQUESTS;
use crate::flight::{DEPTH, Flight, Meter, Route};
use crate::guest::Guest;
use crate::link::{Link, Mark, Side, system};
use crate::load::Asked;
use crate::message::{Message, VERSION};
use crate::path::{Path, State};
use crate::region::{Place, Reach, Region, Regions};
use crate::table::Table;

/// Longest op, in bytes.
const MAX_OP: u32 = 4 << 20;

/// Memory of a peer.
#[derive(Clone, Copy, Debug)]
struct Remote {
    path: PathId,
    /// The peer's region, as bits.
    region: u64,
    len: u64,
    /// Where the path keeps its place.
    sight: usize,
}

/// The shared-memory transport.
#[derive(Debug)]
pub struct Shm {
    capabilities: Capabilities,
    address: Address,
    epoll: OwnedFd,
    listener: OwnedFd,
    regions: Regions,
    remotes: Table<RemoteId, Remote>,
    tickets: Table<TicketId, Ticket>,
    paths: Table<PathId, Path>,
    guests: Vec<Option<Guest>>,
    /// Closed paths whose owner was in the midst of a step.
    leaving: Vec<Leaving>,
    events: VecDeque<Event>,
    /// Completions of paths that are gone.
    ended: VecDeque<Completion>,
    watch: drive::Watch,
}

impl Shm {
    /// A transport that listens under a name of its own, new every time.
    ///
    /// # Errors
    /// `System` when the kernel has no descriptors left, or `/proc` is not mounted.
    pub fn new() -> Result<Self, ControlError> {
        let address = Address { host: Host::here()?, life: clock::incarnation().0 };
        let epoll = epoll::create(epoll::CreateFlags::CLOEXEC).map_err(system)?;
        let listener = socket::listen(address.life).map_err(system)?;
        let mark = Mark { side: Side::Listener, slot: 0 };
        epoll::add(&epoll, &listener, mark.data(), epoll::EventFlags::IN).map_err(system)?;
        let mut capabilities = Capabilities::new("shm");
        capabilities.max_op = MAX_OP;
        capabilities.depth = DEPTH as u32;
        capabilities.latency = Duration::from_micros(2);
        capabilities.bandwidth = 8 << 30;
        Ok(Self {
            capabilities,
            address,
            epoll,
            listener,
            regions: Table::default(),
            remotes: Table::default(),
            tickets: Table::default(),
            paths: Table::default(),
            guests: Vec::new(),
            leaving: Vec::new(),
            events: VecDeque::with_capacity(16),
            ended: VecDeque::with_capacity(DEPTH),
            watch: drive::Watch::default(),
        })
    }

    /// Checks `op` against all that is known here. `Ok(Err(…))` is an op that completes as refused.
    fn prepare(&self, path_id: PathId, path: &Path, op: &Op) -> Result<Result<Flight, Completion>, Reason> {
        let region = self.regions.get(op.local).ok_or(Reason::BadRegion)?;
        let remote = self.remotes.get(op.remote).filter(|remote| remote.path == path_id);
        let remote = remote.ok_or(Reason::BadRegion)?;
        let inside = |at: u64, len: u64| at.checked_add(op.len.into()).is_some_and(|end| end <= len);
        if !inside(op.at, region.block.len()) || !inside(op.to, remote.len) {
            return Err(Reason::BadRegion);
        }
        let ticket = op.ticket.and_then(|id| self.tickets.get(id)).copied();
        if op.verb == Verb::Write && ticket.is_none() {
            return Ok(Err(Completion { id: op.id, bytes: 0, status: Status::Refused, code: 0 }));
        }
        let route = match (&region.reach, region.place) {
            (Reach::Local, _) => Route::Pieces,
            (_, Place::File(_)) if path.has_passed(op.local) => Route::Mapped,
            _ => path.asking.private_route(),
        };
        Ok(Ok(Flight {
            op: *op,
            block: region.block.clone(),
            region: remote.region,
            sight: remote.sight,
            ticket,
            route,
            moved: 0,
            asked: 0,
            pieces: 0,
            failed: None,
        }))
    }

    /// Takes `ops` in as far as possible; says how many and why no more.
    fn take(&mut self, id: PathId, ops: &[Op]) -> (usize, Option<Reason>) {
        for (accepted, op) in ops.iter().enumerate() {
            let prepared = match self.paths.get(id) {
                Some(path) if path.state == State::Up => match path.room() {
                    0 => Err(Reason::Full),
                    _ => self.prepare(id, path, op),
                },
                _ => Err(Reason::PathDown),
            };
            match (prepared, self.paths.get_mut(id)) {
                (Ok(Ok(flight)), Some(path)) => path.accept(flight),
                (Ok(Err(refused)), Some(path)) => path.done.push_back(refused),
                (Err(reason), _) => return (accepted, Some(reason)),
                (_, None) => return (accepted, Some(Reason::PathDown)),
            }
        }
        (ops.len(), None)
    }

    /// Takes the path `id` out, with all that was imported on it.
    fn part(&mut self, id: PathId) -> Option<Path> {
        let path = self.paths.remove(id)?;
        self.remotes.purge(|remote| remote.path == id);
        Some(path)
    }

    /// Takes the path `id` down: its ops end, and everybody is told.
    fn down(&mut self, id: PathId, reason: DownReason) {
        if let Some(mut path) = self.part(id) {
            path.flush();
            self.ended.append(&mut path.done);
            self.events.push_back(Event::Down(id, reason));
        }
    }

    fn start(&mut self, id: PathId, life: u128) -> Result<(), ControlError> {
        let socket = match socket::connect(life) {
            Ok(socket) => socket,
            // Nobody of that life listens any more, or too many want to.
            Err(Errno::CONNREFUSED | Errno::AGAIN) => {
                self.events.push_back(Event::Down(id, DownReason::Unreachable));
                return Ok(());
            }
            Err(errno) => return Err(system(errno)),
        };
        let mark = Mark { side: Side::Path, slot: springtide_core::id::Id::index(id) as u32 };
        let link = Link::new(socket, REQUESTS, &self.epoll, mark)?;
        let hello = Message::Hello { version: VERSION, to: life };
        match link.introduce(&hello) {
            Ok(()) => self.paths.insert(id, Path::new(life, Some(link))).map_err(|_| ControlError::Unknown),
            Err(reason) => {
                self.events.push_back(Event::Down(id, reason));
                Ok(())
            }
        }
    }
}

impl Transport for Shm {
    fn capabilities(&self) -> &Capabilities {
        &self.capabilities
    }

    fn expose(&mut self, id: RegionId, block: &Block, exposure: Exposure) -> Result<(), ControlError> {
        self.regions.insert(id, Region::new(block, exposure)).map_err(|_| ControlError::Unknown)?;
        for slot in 0..self.paths.slots() {
            let Some((path_id, path)) = self.paths.at(slot) else { continue };
            if let Err(reason) = path.pass(&self.epoll, &self.regions, id) {
                self.down(path_id, reason);
            }
        }
        Ok(())
    }

    fn withdraw(&mut self, id: RegionId) {
        if self.regions.remove(id).is_none() {
            return;
        }
        for slot in 0..self.paths.slots() {
            let Some((path_id, path)) = self.paths.at(slot) else { continue };
            if let Err(reason) = path.unpass(&self.epoll, id) {
                self.down(path_id, reason);
            }
        }
        for slot in &mut self.guests {
            if slot.as_mut().is_some_and(|guest| guest.withdraw(&self.epoll, id).is_err()) {
                *slot = None;
            }
        }
    }

    fn describe(&self, id: RegionId, out: &mut Vec<u8>) -> Result<(), ControlError> {
        let region = self.regions.get(id).ok_or(ControlError::Unknown)?;
        if !matches!(region.reach, Reach::Segment(_)) {
            return Err(ControlError::Unsuitable);
        }
        let (life, len) = (self.address.life, region.block.len());
        Description { life, region: id.to_bits(), len }.encode(out);
        Ok(())
    }

    fn address(&self, out: &mut Vec<u8>) {
        self.address.encode(out);
    }

    fn open(&mut self, _now: Instant, id: PathId, address: &[u8]) -> Result<(), ControlError> {
        let address = Address::decode(address).ok_or(ControlError::Malformed)?;
        if address.host != self.address.host {
            return Err(ControlError::Unreachable);
        }
        if self.paths.get(id).is_some() {
            return Err(ControlError::Unknown);
        }
        if address.life != self.address.life {
            return self.start(id, address.life);
        }
        self.paths.insert(id, Path::new(address.life, None)).map_err(|_| ControlError::Unknown)?;
        self.events.push_back(Event::Up(id));
        Ok(())
    }

    fn import(&mut self, id: PathId, remote: RemoteId, description: &[u8]) -> Result<(), ControlError> {
        let Description { life, region, len } =
            Description::decode(description).ok_or(ControlError::Malformed)?;
        let path = self.paths.get_mut(id).ok_or(ControlError::Unknown)?;
        if life != path.life {
            return Err(ControlError::Stale);
        }
        let (sight, asked) = path.sights.hold(region);
        let new = Remote { path: id, region, len, sight };
        if self.remotes.insert(remote, new).is_err() {
            path.sights.release(sight);
            return Err(ControlError::Unknown);
        }
        if let (Some(link), State::Up, Asked::NotYet) = (&mut path.link, path.state, asked)
            && let Err(reason) = link.tell(&self.epoll, Message::Want { region }, None)
        {
            self.down(id, reason);
        }
        Ok(())
    }

    fn forget(&mut self, id: RemoteId) {
        if let Some(remote) = self.remotes.remove(id)
            && let Some(path) = self.paths.get_mut(remote.path)
        {
            path.sights.release(remote.sight);
        }
    }

    fn admit(&mut self, id: TicketId, ticket: &Ticket) -> Result<(), ControlError> {
        self.tickets.insert(id, *ticket).map_err(|_| ControlError::Unknown)
    }

    fn retire(&mut self, id: TicketId) {
        self.tickets.remove(id);
    }

    fn fence(&mut self, id: RegionId, extent: Extent, below: u64, fence: u64) -> Result<(), ControlError> {
        let region = self.regions.get_mut(id).ok_or(ControlError::Unknown)?;
        let Reach::Segment(gate) = &mut region.reach else { return Err(ControlError::Unknown) };
        gate.fence(extent, below);
        // Every step of every copy asks the gate, and all steps are made by whoever owns this transport.
        self.events.push_back(Event::Fenced(fence));
        Ok(())
    }

    fn close(&mut self, id: PathId) {
        let Some(mut path) = self.part(id) else { return };
        let quiet = path.revoke();
        self.ended.append(&mut path.done);
        if quiet {
            self.events.push_back(Event::Down(id, DownReason::Closed));
        } else {
            self.leaving.push(Leaving::new(id, path, &self.epoll));
        }
    }

    fn room(&self, id: PathId) -> usize {
        self.paths.get(id).map_or(0, Path::room)
    }

    fn submit(&mut self, id: PathId, ops: &[Op]) -> Result<(), SubmitError> {
        let (accepted, reason) = self.take(id, ops);
        if let Some(path) = self.paths.get_mut(id) {
            // What needs no copy of ours goes out now.
            path.ask(&mut Meter::new(Budget { ops: 0, bytes: 0 }));
        }
        match reason {
            None => Ok(()),
            Some(reason) => Err(SubmitError { accepted, reason }),
        }
    }

    fn cancel(&mut self, op: OpId) {
        for (_, path) in self.paths.iter_mut() {
            path.cancel(op);
        }
    }

    fn progress(&mut self, now: Instant, budget: Budget, done: &mut [Completion]) -> usize {
        self.drive(now, budget, done)
    }

    fn event(&mut self) -> Option<Event> {
        match self.events.front() {
            // First its ops complete, then a path is down.
            Some(Event::Down(..)) if !self.ended.is_empty() => None,
            _ => self.events.pop_front(),
        }
    }

    fn wake_fd(&self) -> Option<BorrowedFd<'_>> {
        Some(self.epoll.as_fd())
    }

    fn arm(&mut self) -> Armed {
        self.prepare_to_sleep()
    }
}

#[cfg(test)]
mod tests;
