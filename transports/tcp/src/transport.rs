//! The transport: its tables, and the trait's methods in terms of them.

use std::collections::VecDeque;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use core::net::SocketAddr;
use core::time::Duration;

use rustix::event::epoll::{self, CreateFlags, EventData, EventFlags};
use springtide_core::id::{OpId, PathId, RegionId, RemoteId, TicketId};
use springtide_core::range::Extent;
use springtide_core::slab::Slab;
use springtide_core::ticket::Ticket;
use springtide_core::time::Instant;
use springtide_core::transfer::{Completion, Op, Status, Verb};
use springtide_hal::Block;
use springtide_transport::{
    Armed, Budget, Capabilities, ControlError, DownReason, Event, Exposure, Reason, SubmitError, Transport,
};

use crate::connection::{Connection, ConnectionId, Role};
use crate::initiator::{Finished, Path, Waiting};
use crate::memory::{Memory, Remote};
use crate::table::Table;
use crate::wire::code;
use crate::{Config, ListenError, MAX_OP, address, listen};

/// Bytes that arrive for nobody go here.
const SCRATCH: usize = 64 << 10;

/// Moves bytes over TCP; see the crate's documentation.
#[derive(Debug)]
pub struct TcpTransport {
    pub(crate) config: Config,
    capabilities: Capabilities,
    pub(crate) epoll: OwnedFd,
    pub(crate) listener: Option<Listener>,
    pub(crate) connections: Slab<ConnectionId, Connection>,
    pub(crate) accepted: usize,
    pub(crate) paths: Table<PathId, Path>,
    pub(crate) memory: Memory,
    /// Connections that have something to do, each once.
    pub(crate) ready: VecDeque<ConnectionId>,
    pub(crate) finished: Finished,
    pub(crate) events: VecDeque<Event>,
    pub(crate) scratch: Box<[u8]>,
    /// The latest moment that we were told.
    pub(crate) now: Instant,
    /// When to look for peers that keep still.
    pub(crate) check: Instant,
}

/// The listening socket.
#[derive(Debug)]
pub(crate) struct Listener {
    pub(crate) socket: OwnedFd,
    pub(crate) address: SocketAddr,
    /// Whether somebody may be waiting to be accepted.
    pub(crate) ready: bool,
    /// Not to be tried before; the system had no descriptor to give.
    pub(crate) pause: Instant,
}

impl TcpTransport {
    /// A transport that listens if `config` says so. Three to five system calls.
    ///
    /// # Errors
    /// See [`ListenError`].
    pub fn new(config: Config) -> Result<Self, ListenError> {
        let config = Config { lanes: config.lanes.max(1), depth: config.depth.max(1), ..config };
        let system = |errno: rustix::io::Errno| ListenError::System(errno.raw_os_error());
        let epoll = epoll::create(CreateFlags::CLOEXEC).map_err(system)?;
        let listener = config.listen.map(|address| Listener::new(address, &config)).transpose()?;
        if let Some(listener) = &listener {
            let edge = EventFlags::IN | EventFlags::ET;
            epoll::add(&epoll, &listener.socket, EventData::new_u64(0), edge).map_err(system)?;
        }
        let mut capabilities = Capabilities::new("tcp");
        capabilities.max_op = MAX_OP;
        capabilities.depth = config.depth;
        Ok(Self {
            config,
            capabilities,
            epoll,
            listener,
            connections: Slab::default(),
            accepted: 0,
            paths: Table::default(),
            memory: Memory::default(),
            ready: VecDeque::new(),
            finished: VecDeque::new(),
            events: VecDeque::new(),
            scratch: vec![0; SCRATCH].into_boxed_slice(),
            now: Instant::ORIGIN,
            check: Instant::ORIGIN,
        })
    }

    /// The socket address that peers connect to; `None` if this transport does not listen.
    pub fn local_address(&self) -> Option<SocketAddr> {
        self.listener.as_ref().map(|listener| listener.address)
    }

    /// What `op` means on `path`; else the code that says why it means nothing.
    fn resolve(&self, path: &Path, op: &Op) -> Result<Waiting, i32> {
        let local = self.memory.local(op.local, op.at, op.len);
        let block = local.filter(|_| op.len <= MAX_OP).ok_or(code::NO_REGION)?;
        let remote = self.memory.remote(op.remote);
        let remote = remote.filter(|remote| remote.owner == path.peer).ok_or(code::NO_MEMORY)?;
        let end = op.to.checked_add(op.len.into());
        end.filter(|&end| end <= remote.len).ok_or(code::NO_MEMORY)?;
        let ticket = match op.verb {
            Verb::Read => None,
            Verb::Write => {
                let ticket = op.ticket.and_then(|id| self.memory.tickets.get(id));
                let meant =
                    |ticket: &&Ticket| ticket.owner == remote.owner && ticket.segment == remote.segment;
                Some(*ticket.filter(meant).ok_or(code::NO_TICKET)?)
            }
        };
        Ok(Waiting {
            id: op.id,
            verb: op.verb,
            len: op.len,
            block: block.clone(),
            at: op.at,
            region: remote.region,
            to: op.to,
            ticket,
        })
    }

    /// Whether completions of `path` were not handed out yet; they come before the word that it is down.
    fn owes(&self, path: PathId) -> bool {
        self.finished.iter().any(|(finished, _)| *finished == path)
    }

    /// Turns away what is still due of stores into `extent` of `region` under serials below `below`.
    fn cut(&mut self, region: RegionId, extent: Extent, below: u64, code: i32) {
        for (_, connection) in self.connections.iter_mut() {
            if let Role::Target(target) = &mut connection.role {
                target.cut(connection.stream.inbox.landings_mut(), region, extent, below, code);
            }
        }
    }
}

impl Listener {
    fn new(address: SocketAddr, config: &Config) -> Result<Self, ListenError> {
        if address.ip().is_unspecified() && config.advertise.is_none() {
            return Err(ListenError::Unadvertised(address));
        }
        let (socket, mut bound) =
            listen::listen(address).map_err(|errno| ListenError::Bind(address, errno.raw_os_error()))?;
        if let Some(host) = config.advertise {
            bound.set_ip(host);
        }
        Ok(Self { socket, address: bound, ready: true, pause: Instant::ORIGIN })
    }
}

impl Transport for TcpTransport {
    fn capabilities(&self) -> &Capabilities {
        &self.capabilities
    }

    fn expose(&mut self, region: RegionId, block: &Block, exposure: Exposure) -> Result<(), ControlError> {
        self.memory.expose(self.config.owner, region, block, exposure)
    }

    fn withdraw(&mut self, region: RegionId) {
        self.memory.withdraw(region);
        let everything = Extent::new(0, u64::MAX).unwrap_or_default();
        self.cut(region, everything, u64::MAX, code::WITHDRAWN);
    }

    fn describe(&self, region: RegionId, out: &mut Vec<u8>) -> Result<(), ControlError> {
        self.memory.describe(self.config.owner, region, out)
    }

    fn address(&self, out: &mut Vec<u8>) {
        if let Some(listener) = &self.listener {
            address::encode(listener.address, self.config.owner, out);
        }
    }

    fn open(&mut self, now: Instant, path: PathId, address: &[u8]) -> Result<(), ControlError> {
        let (socket, peer) = address::decode(address).ok_or(ControlError::Malformed)?;
        if self.paths.is_taken(path) || self.owes(path) {
            return Err(ControlError::Unknown);
        }
        if socket.port() == 0 || socket.ip().is_unspecified() {
            return Err(ControlError::Unreachable);
        }
        self.connect(now.max(self.now), path, socket, peer)
    }

    fn import(&mut self, path: PathId, remote: RemoteId, description: &[u8]) -> Result<(), ControlError> {
        let described = Remote::decode(description).ok_or(ControlError::Malformed)?;
        let peer = self.paths.get(path).ok_or(ControlError::Unknown)?.peer;
        if described.owner != peer {
            return Err(ControlError::Stale);
        }
        self.memory.import(path, remote, described, |path| self.paths.get(path).is_some())
    }

    fn forget(&mut self, remote: RemoteId) {
        self.memory.forget(remote);
    }

    fn admit(&mut self, id: TicketId, ticket: &Ticket) -> Result<(), ControlError> {
        if self.memory.tickets.is_taken(id) {
            return Err(ControlError::Unknown);
        }
        self.memory.tickets.insert(id, *ticket);
        Ok(())
    }

    fn retire(&mut self, id: TicketId) {
        self.memory.tickets.remove(id);
    }

    fn fence(
        &mut self,
        region: RegionId,
        extent: Extent,
        below: u64,
        fence: u64,
    ) -> Result<(), ControlError> {
        self.memory.fence(region, extent, below)?;
        self.cut(region, extent, below, code::FENCED);
        self.events.push_back(Event::Fenced(fence));
        Ok(())
    }

    fn close(&mut self, path: PathId) {
        self.down(path, DownReason::Closed);
    }

    fn room(&self, path: PathId) -> usize {
        match self.paths.get(path) {
            Some(path) if path.is_up() => (self.config.depth as usize).saturating_sub(path.outstanding),
            _ => 0,
        }
    }

    fn submit(&mut self, path: PathId, ops: &[Op]) -> Result<(), SubmitError> {
        let room = self.room(path);
        for op in ops.iter().take(room) {
            let Some(entry) = self.paths.get(path) else { break };
            let resolved = self.resolve(entry, op);
            let Some(entry) = self.paths.get_mut(path) else { break };
            entry.outstanding += 1;
            match resolved {
                Ok(op) => entry.waiting.push_back(op),
                Err(code) => {
                    let refused = Completion { id: op.id, bytes: 0, status: Status::Refused, code };
                    self.finished.push_back((path, refused));
                }
            }
        }
        self.wake_lanes(path);
        if ops.len() <= room {
            return Ok(());
        }
        let up = self.paths.get(path).is_some_and(Path::is_up);
        Err(SubmitError { accepted: room, reason: if up { Reason::Full } else { Reason::PathDown } })
    }

    fn cancel(&mut self, op: OpId) {
        self.give_up(op);
    }

    fn progress(&mut self, now: Instant, budget: Budget, done: &mut [Completion]) -> usize {
        self.now = self.now.max(now);
        self.collect();
        self.expire();
        self.turns(budget);
        self.deliver(done)
    }

    fn event(&mut self) -> Option<Event> {
        if let Some(Event::Down(path, _)) = self.events.front()
            && self.owes(*path)
        {
            return None;
        }
        self.events.pop_front()
    }

    fn wake_fd(&self) -> Option<BorrowedFd<'_>> {
        Some(self.epoll.as_fd())
    }

    fn arm(&mut self) -> Armed {
        let accepts = self.may_accept();
        if !self.ready.is_empty() || !self.finished.is_empty() || !self.events.is_empty() || accepts {
            return Armed::Again;
        }
        let paused = self.listener.as_ref().is_some_and(|listener| listener.ready);
        if paused || self.connections.iter().any(|(_, c)| !c.is_greeted() || c.waits()) {
            return Armed::Poll(self.check.since(self.now).max(Duration::from_millis(1)));
        }
        Armed::Asleep
    }
}
