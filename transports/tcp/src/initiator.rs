//! Asking: the ops of a path, spread over its connections, and the replies.

use std::collections::VecDeque;

use springtide_core::id::{Incarnation, OpId, PathId, RegionId};
use springtide_core::ticket::Ticket;
use springtide_core::time::Instant;
use springtide_core::transfer::{Completion, Status, Verb};
use springtide_hal::Block;

use crate::connection::ConnectionId;
use crate::inbox::Landing;
use crate::outbox::Outbox;
use crate::stream::{Allowance, Broken, Stop, Stream};
use crate::wire::{self, GROUP, HELLO, Hello, REPLY, Reply};
use crate::{FRAME_BYTES, QUEUED_BYTES, WINDOW};

/// Finished ops that the caller has not seen, with the path that they count for.
pub(crate) type Finished = VecDeque<(PathId, Completion)>;

/// A way to one peer.
#[derive(Debug)]
pub(crate) struct Path {
    pub(crate) peer: Incarnation,
    pub(crate) lanes: Vec<ConnectionId>,
    /// How many lanes have heard the peer's hello.
    pub(crate) up: usize,
    /// Ops that no lane has taken.
    pub(crate) waiting: VecDeque<Waiting>,
    /// Ops that were accepted and whose completions the caller has not seen.
    pub(crate) outstanding: usize,
}

impl Path {
    /// Whether ops are taken.
    pub(crate) fn is_up(&self) -> bool {
        self.up == self.lanes.len()
    }
}

/// An op that is not on the wire yet.
#[derive(Debug)]
pub(crate) struct Waiting {
    pub(crate) id: OpId,
    pub(crate) verb: Verb,
    pub(crate) len: u32,
    pub(crate) block: Block,
    pub(crate) at: u64,
    pub(crate) region: RegionId,
    pub(crate) to: u64,
    /// Of a write.
    pub(crate) ticket: Option<Ticket>,
}

/// An op whose request was queued and whose reply has not come.
#[derive(Debug)]
struct Flight {
    /// `None` if it was cancelled and has completed.
    id: Option<OpId>,
    len: u32,
    /// Of a read: where its bytes go.
    into: Option<(Block, u64)>,
    verb: Verb,
    /// How much the connection has sent when the last byte of the op is.
    end: u64,
}

/// The asking side of one connection.
#[derive(Debug)]
pub(crate) struct Lane {
    pub(crate) path: PathId,
    me: Incarnation,
    peer: Incarnation,
    pub(crate) greeted: bool,
    /// The number of the next op to send, and of the first in flight.
    next: u64,
    front: u64,
    flights: VecDeque<Flight>,
    /// Bytes of the ops in flight.
    asked: u64,
}

/// What one lane's turn needs besides its stream.
#[derive(Debug)]
pub(crate) struct Turn<'a> {
    pub(crate) now: Instant,
    pub(crate) waiting: &'a mut VecDeque<Waiting>,
    pub(crate) finished: &'a mut Finished,
    pub(crate) scratch: &'a mut [u8],
    pub(crate) allowance: &'a mut Allowance,
}

impl Lane {
    /// A lane of `path` from `me` to `peer`; its hello is queued.
    pub(crate) fn new(
        path: PathId,
        me: Incarnation,
        peer: Incarnation,
        depth: usize,
        outbox: &mut Outbox,
    ) -> Self {
        outbox.head(&Hello { from: me, to: peer }.encode());
        let flights = VecDeque::with_capacity(depth);
        Self { path, me, peer, greeted: false, next: 0, front: 0, flights, asked: 0 }
    }

    /// Whether replies are due.
    pub(crate) fn waits(&self) -> bool {
        !self.flights.is_empty()
    }

    /// Does what can be done now.
    pub(crate) fn pump(&mut self, stream: &mut Stream, turn: &mut Turn<'_>) -> Result<(), Broken> {
        loop {
            if self.greeted {
                self.pull(turn.waiting, &mut stream.outbox);
            }
            stream.flush(turn.now, turn.allowance)?;
            stream.stop = self.decode(stream, turn)?;
            if turn.allowance.is_spent() {
                stream.stop = Stop::Spent;
                return Ok(());
            }
            if self.greeted && !turn.waiting.is_empty() && self.has_room(&stream.outbox) {
                continue;
            }
            if !stream.is_readable() {
                return Ok(());
            }
            let landed = stream.receive(turn.now, turn.scratch, turn.allowance)?;
            self.landed(landed, turn);
        }
    }

    /// Whether the lane would take another op.
    pub(crate) const fn has_room(&self, outbox: &Outbox) -> bool {
        outbox.bytes() < QUEUED_BYTES && self.asked < WINDOW
    }

    /// Queues requests for waiting ops, many in one where they are alike.
    fn pull(&mut self, waiting: &mut VecDeque<Waiting>, outbox: &mut Outbox) {
        while self.has_room(outbox) {
            let Some(verb) = waiting.front().map(|op| op.verb) else { return };
            let mut bytes = 0;
            let fits = |op: &&Waiting| {
                let first = bytes == 0;
                bytes += u64::from(op.len).max(1);
                op.verb == verb && (first || bytes <= FRAME_BYTES)
            };
            let count = waiting.iter().take(GROUP).take_while(fits).count();
            outbox.head(&wire::request(verb, count, self.next));
            for op in waiting.iter().take(count) {
                outbox.head(&wire::item(op.region, op.to, op.len));
                if let Some(ticket) = &op.ticket {
                    outbox.head(&wire::permission(ticket));
                }
            }
            for op in waiting.drain(..count) {
                self.asked += u64::from(op.len);
                let into = match verb {
                    Verb::Read => Some((op.block, op.at)),
                    Verb::Write => {
                        outbox.memory(op.block, op.at, op.len.into());
                        None
                    }
                };
                self.flights.push_back(Flight {
                    id: Some(op.id),
                    len: op.len,
                    into,
                    verb,
                    end: outbox.end(),
                });
            }
            self.next += count as u64;
        }
    }

    /// Takes in what has arrived.
    fn decode(&mut self, stream: &mut Stream, turn: &mut Turn<'_>) -> Result<Stop, Broken> {
        if !self.greeted && !self.greet(stream)? {
            return Ok(Stop::Starved);
        }
        while stream.inbox.landings().is_empty() {
            if turn.allowance.is_spent() {
                return Ok(Stop::Spent);
            }
            let (unread, landings) = stream.inbox.parts();
            let Some(reply) = Reply::decode(unread)? else { break };
            let count = usize::from(reply.count);
            if reply.first != self.front || !self.are_sent(count, stream.outbox.sent()) {
                return Err(Broken::Protocol);
            }
            turn.allowance.did(count);
            if reply.status == Status::Done {
                self.expect(count, reply.bytes, landings)?;
            } else {
                self.ended(count, reply, turn)?;
            }
            stream.inbox.consume(REPLY);
            let landed = stream.inbox.settle();
            self.landed(landed, turn);
        }
        Ok(Stop::Starved)
    }

    /// Whether there are `count` ops in flight of which every byte was sent. An answer to an op that is still being
    /// sent would end it while its memory is read.
    fn are_sent(&self, count: usize, sent: u64) -> bool {
        let last = count.checked_sub(1).and_then(|last| self.flights.get(last));
        last.is_some_and(|flight| flight.end <= sent)
    }

    fn greet(&mut self, stream: &mut Stream) -> Result<bool, Broken> {
        let Some(hello) = Hello::decode(stream.inbox.unread())? else { return Ok(false) };
        if (hello.from, hello.to) != (self.peer, self.me) {
            return Err(Broken::Protocol);
        }
        stream.inbox.consume(HELLO);
        self.greeted = true;
        Ok(true)
    }

    /// Makes the bytes of the first `count` ops due. An op without any (a write) gets a landing of none.
    fn expect(&self, count: usize, bytes: u64, landings: &mut VecDeque<Landing>) -> Result<(), Broken> {
        let due = |flight: &Flight| match flight.verb {
            Verb::Read => u64::from(flight.len),
            Verb::Write => 0,
        };
        if self.flights.iter().take(count).map(due).sum::<u64>() != bytes {
            return Err(Broken::Protocol);
        }
        for flight in self.flights.iter().take(count) {
            landings.push_back(Landing { to: flight.into.clone(), left: due(flight) });
        }
        Ok(())
    }

    /// Completes the first `count` ops, all of whose bytes are in place.
    fn landed(&mut self, count: usize, turn: &mut Turn<'_>) {
        for _ in 0..count {
            let Some(flight) = self.pop() else { return };
            self.finish(&flight, Status::Done, flight.len, 0, turn.finished);
        }
    }

    /// Completes the first `count` ops, which ended otherwise than done.
    fn ended(&mut self, count: usize, reply: Reply, turn: &mut Turn<'_>) -> Result<(), Broken> {
        if self.flights.iter().take(count).any(|flight| reply.bytes > flight.len.into()) {
            return Err(Broken::Protocol);
        }
        for _ in 0..count {
            let Some(flight) = self.pop() else { break };
            self.finish(&flight, reply.status, reply.bytes as u32, reply.code, turn.finished);
        }
        Ok(())
    }

    fn pop(&mut self) -> Option<Flight> {
        let flight = self.flights.pop_front()?;
        self.front += 1;
        self.asked -= u64::from(flight.len);
        Some(flight)
    }

    fn finish(&self, flight: &Flight, status: Status, bytes: u32, code: i32, finished: &mut Finished) {
        if let Some(id) = flight.id {
            finished.push_back((self.path, Completion { id, bytes, status, code }));
        }
    }

    /// Completes every op in flight as flushed: the connection is gone.
    pub(crate) fn flush(&mut self, finished: &mut Finished) {
        while let Some(flight) = self.pop() {
            self.finish(&flight, Status::Flushed, 0, 0, finished);
        }
    }

    /// Gives up the read `op`: its memory is not touched from now on, and what still comes is thrown away. A write
    /// goes on, since its bytes may be on their way. Whether the op is in flight here.
    pub(crate) fn cancel(
        &mut self,
        op: OpId,
        landings: &mut VecDeque<Landing>,
        finished: &mut Finished,
    ) -> bool {
        let Some(index) = self.flights.iter().position(|flight| flight.id == Some(op)) else { return false };
        let flight = &mut self.flights[index];
        if flight.into.take().is_some() {
            flight.id = None;
            if let Some(landing) = landings.get_mut(index) {
                landing.to = None;
            }
            finished
                .push_back((self.path, Completion { id: op, bytes: 0, status: Status::Flushed, code: 0 }));
        }
        true
    }
}
