//! What one `progress` does: hear epoll, accept, give each busy connection its turn, find the dead.

use core::net::SocketAddr;
use core::time::Duration;
use std::collections::VecDeque;

use rustix::event::Timespec;
use rustix::event::epoll::{self, Event as Ready, EventData, EventFlags};
use rustix::io::Errno;
use springtide_core::id::{Incarnation, OpId, PathId};
use springtide_core::slab::Slab;
use springtide_core::time::Instant;
use springtide_core::transfer::{Completion, Status};
use springtide_transport::{Budget, ControlError, DownReason, Event};

use crate::connection::{Connection, ConnectionId, Role};
use crate::inbox::Inbox;
use crate::initiator::{Lane, Path, Turn};
use crate::outbox::Outbox;
use crate::stream::{Allowance, Broken, Stream};
use crate::target::Target;
use crate::transport::{Listener, TcpTransport};
use crate::wire::{MAX_REQUEST, REPLY};
use crate::{MAX_CONNECTIONS, listen};

/// Most bytes that one connection moves before the next has its turn.
const TURN: u64 = 1 << 20;
/// Events taken from epoll at once.
const EVENTS: usize = 64;
/// Connections accepted at once.
const ACCEPTS: usize = 16;
/// How often to look for peers that keep still, and to try again to accept after the system refused.
const CHECK: Duration = Duration::from_millis(250);
/// Bytes of requests that a target takes in at once.
const REQUESTS: usize = 16 << 10;
/// Bytes of replies, and of the payloads behind them, that an initiator takes in at once.
const REPLIES: usize = 8 << 10;
/// Bytes that a connection may still send when it is ended.
const PARTING: u64 = 4 << 10;

impl TcpTransport {
    /// Takes in what epoll has to say and accepts peers.
    pub(crate) fn collect(&mut self) {
        let mut events = [Ready { flags: EventFlags::empty(), data: EventData::new_u64(0) }; EVENTS];
        let now = Timespec { tv_sec: 0, tv_nsec: 0 };
        let count = epoll::wait(&self.epoll, &mut events, Some(&now)).unwrap_or(0);
        for event in &events[..count] {
            // A copy, since the kernel's struct is packed.
            let (bits, flags) = (event.data.u64(), event.flags);
            match ConnectionId::from_bits(bits) {
                None => self.listener.iter_mut().for_each(|listener| listener.ready = true),
                Some(id) => {
                    if let Some(connection) = self.connections.get_mut(id) {
                        connection.stream.notice(flags);
                        enqueue(&mut self.connections, &mut self.ready, id);
                    }
                }
            }
        }
        if self.may_accept() {
            self.accept();
        }
    }

    /// Whether somebody may wait to be accepted, and we may.
    pub(crate) fn may_accept(&self) -> bool {
        let ready = |listener: &Listener| listener.ready && listener.pause.reached(self.now);
        self.accepted < MAX_CONNECTIONS && self.listener.as_ref().is_some_and(ready)
    }

    fn accept(&mut self) {
        for _ in 0..ACCEPTS {
            if self.accepted >= MAX_CONNECTIONS {
                return;
            }
            let Some(listener) = &mut self.listener else { return };
            match listen::accept(&listener.socket, &self.config) {
                Ok(Some(socket)) => {
                    let (inbox, outbox) = (Inbox::new(REQUESTS, MAX_REQUEST), Outbox::default());
                    let stream = Stream::new(socket, inbox, outbox, self.now);
                    if self.add(stream, Role::Target(Target::new(self.config.owner))).is_ok() {
                        self.accepted += 1;
                    }
                }
                Ok(None) => {
                    listener.ready = false;
                    return;
                }
                Err(Errno::CONNABORTED | Errno::INTR) => {}
                Err(_) => {
                    // Out of descriptors or memory. Who waits goes on waiting; trying at once would spin.
                    listener.pause = self.now + CHECK;
                    return;
                }
            }
        }
    }

    fn add(&mut self, stream: Stream, role: Role) -> Result<ConnectionId, Errno> {
        let id = self.connections.next_id();
        let edge = EventFlags::IN | EventFlags::OUT | EventFlags::RDHUP | EventFlags::ET;
        epoll::add(&self.epoll, &stream, EventData::new_u64(id.to_bits()), edge)?;
        self.connections.insert(Connection { began: stream.moved, stream, role, queued: false });
        Ok(id)
    }

    /// Starts the lanes of a new path.
    pub(crate) fn connect(
        &mut self,
        now: Instant,
        path: PathId,
        address: SocketAddr,
        peer: Incarnation,
    ) -> Result<(), ControlError> {
        let depth = self.config.depth as usize;
        let mut lanes = Vec::new();
        for _ in 0..self.config.lanes.max(1) {
            let lane = listen::connect(address, &self.config).and_then(|socket| {
                let mut outbox = Outbox::default();
                let lane = Lane::new(path, self.config.owner, peer, depth, &mut outbox);
                self.add(Stream::new(socket, Inbox::new(REPLIES, REPLY), outbox, now), Role::Initiator(lane))
            });
            match lane {
                Ok(id) => lanes.push(id),
                Err(errno) => {
                    lanes.into_iter().for_each(|id| drop(self.connections.remove(id)));
                    return Err(match errno {
                        Errno::NETUNREACH | Errno::HOSTUNREACH | Errno::AFNOSUPPORT | Errno::ADDRNOTAVAIL => {
                            ControlError::Unreachable
                        }
                        errno => ControlError::System(errno.raw_os_error()),
                    });
                }
            }
        }
        let waiting = VecDeque::with_capacity(depth);
        self.finished.reserve(depth);
        self.paths.insert(path, Path { peer, lanes, up: 0, waiting, outstanding: 0 });
        Ok(())
    }

    /// Lets the lanes of `path` look for ops.
    pub(crate) fn wake_lanes(&mut self, path: PathId) {
        let Some(path) = self.paths.get(path) else { return };
        if !path.waiting.is_empty() {
            for &id in &path.lanes {
                enqueue(&mut self.connections, &mut self.ready, id);
            }
        }
    }

    /// Gives each connection that has something to do its turn, round and round, within `budget`.
    pub(crate) fn turns(&mut self, budget: Budget) {
        let mut left = Allowance { bytes: budget.bytes, ops: budget.ops };
        while !left.is_spent() {
            let Some(id) = self.ready.pop_front() else { return };
            let mut turn = Allowance { bytes: left.bytes.min(TURN), ops: left.ops };
            let given = turn.bytes;
            self.turn(id, &mut turn);
            left.moved(given - turn.bytes);
            left.ops = turn.ops;
        }
    }

    fn turn(&mut self, id: ConnectionId, allowance: &mut Allowance) {
        let Some(connection) = self.connections.get_mut(id) else { return };
        connection.queued = false;
        let stream = &mut connection.stream;
        let (now, scratch) = (self.now, &mut *self.scratch);
        let result = match &mut connection.role {
            Role::Target(target) => target.pump(stream, &self.memory.regions, now, scratch, allowance),
            Role::Initiator(lane) => {
                let Some(path) = self.paths.get_mut(lane.path) else { return };
                let (waiting, finished) = (&mut path.waiting, &mut self.finished);
                let greeted = lane.greeted;
                let result = lane.pump(stream, &mut Turn { now, waiting, finished, scratch, allowance });
                if lane.greeted && !greeted {
                    path.up += 1;
                    if path.is_up() {
                        self.events.push_back(Event::Up(lane.path));
                    }
                }
                result
            }
        };
        match result {
            Ok(()) if connection.stream.has_work() => enqueue(&mut self.connections, &mut self.ready, id),
            Ok(()) => {}
            Err(broken) => self.broken(id, broken),
        }
    }

    /// Ends a connection, and with one of ours its path.
    fn broken(&mut self, id: ConnectionId, broken: Broken) {
        let Some(connection) = self.connections.get_mut(id) else { return };
        match &connection.role {
            Role::Initiator(lane) => {
                let unsent = !lane.greeted && !connection.stream.outbox.is_empty();
                let reason = match broken {
                    _ if unsent => DownReason::Unreachable,
                    Broken::Gone => DownReason::PeerGone,
                    Broken::Silent => DownReason::Silent,
                    Broken::Protocol => DownReason::Protocol,
                };
                let path = lane.path;
                self.down(path, reason);
            }
            Role::Target(_) => {
                // What was said last, our hello above all, tells the peer why.
                let mut allowance = Allowance { bytes: PARTING, ops: 1 };
                let _ = connection.stream.flush(self.now, &mut allowance);
                self.connections.remove(id);
                self.accepted -= 1;
            }
        }
    }

    /// Ends a path: its ops complete as flushed.
    pub(crate) fn down(&mut self, id: PathId, reason: DownReason) {
        let Some(path) = self.paths.remove(id) else { return };
        for lane in path.lanes {
            if let Some(Connection { role: Role::Initiator(mut lane), .. }) = self.connections.remove(lane) {
                lane.flush(&mut self.finished);
            }
        }
        for op in path.waiting {
            self.finished.push_back((id, flushed(op.id)));
        }
        self.events.push_back(Event::Down(id, reason));
    }

    /// Ends connections whose peers have kept still for too long.
    pub(crate) fn expire(&mut self) {
        if !self.check.reached(self.now) {
            return;
        }
        self.check = self.now + CHECK;
        for index in 0..self.connections.slots() {
            let Some(id) = self.connections.id_at(index) else { continue };
            let Some(connection) = self.connections.get_mut(id) else { continue };
            // Who has something to say was not silent, however long nobody listened.
            let late = match (connection.queued, connection.is_greeted()) {
                (true, _) => false,
                (false, false) => (connection.began + self.config.hello).reached(self.now),
                (false, true) => (connection.stream.moved + self.config.stall).reached(self.now),
            };
            if connection.is_greeted() && (connection.queued || !connection.waits()) {
                connection.stream.moved = self.now;
            } else if late {
                self.broken(id, Broken::Silent);
            }
        }
    }

    /// Asks to give up `op`.
    pub(crate) fn give_up(&mut self, op: OpId) {
        for (_, connection) in self.connections.iter_mut() {
            let Role::Initiator(lane) = &mut connection.role else { continue };
            let landings = connection.stream.inbox.landings_mut();
            if lane.cancel(op, landings, &mut self.finished) {
                return;
            }
            let Some(path) = self.paths.get_mut(lane.path) else { continue };
            if let Some(index) = path.waiting.iter().position(|waiting| waiting.id == op) {
                path.waiting.remove(index);
                self.finished.push_back((lane.path, flushed(op)));
                return;
            }
        }
    }

    /// Hands out completions.
    pub(crate) fn deliver(&mut self, done: &mut [Completion]) -> usize {
        let count = done.len().min(self.finished.len());
        for (slot, (path, completion)) in done.iter_mut().zip(self.finished.drain(..count)) {
            *slot = completion;
            if let Some(path) = self.paths.get_mut(path) {
                path.outstanding -= 1;
            }
        }
        count
    }
}

const fn flushed(id: OpId) -> Completion {
    Completion { id, bytes: 0, status: Status::Flushed, code: 0 }
}

fn enqueue(
    connections: &mut Slab<ConnectionId, Connection>,
    ready: &mut VecDeque<ConnectionId>,
    id: ConnectionId,
) {
    if let Some(connection) = connections.get_mut(id)
        && !connection.queued
    {
        connection.queued = true;
        ready.push_back(id);
    }
}
