//! Writes: the owner is asked to pull our bytes, and answers in the order of asking.

use std::collections::VecDeque;

use springtide_hal_host::copy::copy;
use springtide_transport::{DownReason, Status};

use crate::entry::{Outcome, PIECE, PIECES, Reply, Request, SLOTS, Source};
use crate::flight::{Flight, Meter, Route};
use crate::path::{Path, State};
use crate::region::address;

/// One request under way.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Asked {
    number: u64,
    flight: u16,
    len: u32,
    /// The piece of our board that holds its bytes.
    piece: Option<u32>,
}

/// The writes of one path.
#[derive(Debug)]
pub(crate) struct Asking {
    /// Flights with bytes that the owner was not asked to store yet.
    pub(crate) waiting: VecDeque<u16>,
    /// Requests under way, oldest first.
    pub(crate) asked: VecDeque<Asked>,
    /// The next request's number.
    next: u64,
    /// Replies that were read.
    pub(crate) seen: u64,
    /// Pieces of our board that are free, a bit each.
    free: u32,
    /// Whether the owner may read our private memory, as far as we know.
    private: Private,
}

/// Whether an owner reads our private memory.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Private {
    /// It may.
    Try,
    /// It could not once.
    Refused,
}

impl Default for Asking {
    fn default() -> Self {
        Self {
            waiting: VecDeque::with_capacity(crate::flight::DEPTH),
            asked: VecDeque::with_capacity(SLOTS as usize),
            next: 0,
            seen: 0,
            free: (1 << PIECES) - 1,
            private: Private::Try,
        }
    }
}

impl Asking {
    /// The better of the routes that `Route::Private` may mean now.
    pub(crate) const fn private_route(&self) -> Route {
        match self.private {
            Private::Try => Route::Private,
            Private::Refused => Route::Pieces,
        }
    }
}

impl Path {
    /// Whether [`ask`](Self::ask) could ask for something.
    pub(crate) fn can_ask(&self) -> bool {
        self.state == State::Up
            && self.asking.free != 0
            && !self.asking.waiting.is_empty()
            && self.asking.asked.len() < SLOTS as usize
    }

    /// Asks the owner for as much as there is room for; bytes that we must copy ourselves only within `meter`.
    pub(crate) fn ask(&mut self, meter: &mut Meter) -> bool {
        let mut any = false;
        while let Some(&slot) = self.asking.waiting.front() {
            if self.asking.asked.len() >= SLOTS as usize || !self.ask_one(slot, meter) {
                break;
            }
            any = true;
            let flight = self.flights.at(slot);
            if flight.asked == flight.op.len {
                self.asking.waiting.pop_front();
            }
        }
        if any && let Some(link) = &self.link {
            link.publish();
        }
        any
    }

    /// Posts the next request of the flight in `slot`; false if it must wait.
    fn ask_one(&mut self, slot: u16, meter: &mut Meter) -> bool {
        let (Some(link), flight) = (&mut self.link, self.flights.at(slot)) else { return false };
        let Some(ticket) = flight.ticket else { return false };
        let (mut len, mut piece) = (flight.op.len - flight.asked, None);
        let at = flight.op.at + u64::from(flight.asked);
        let source = match flight.route {
            Route::Mapped => Source::Region { region: flight.op.local.to_bits(), at },
            Route::Private => Source::Memory { address: address(&flight.block) + at },
            Route::Pieces => {
                if self.asking.free == 0 || meter.is_spent() {
                    return false;
                }
                let free = self.asking.free.trailing_zeros();
                len = len.min(PIECE as u32);
                let start = u64::from(free) * PIECE;
                let spans = (flight.block.span(at, len.into()), link.board.bulk(start, len.into()));
                let (Ok(from), Ok(to)) = spans else { return false };
                meter.moved(copy(from, to));
                self.asking.free &= !(1 << free);
                piece = Some(free);
                Source::Board { at: start }
            }
        };
        let to = flight.op.to + u64::from(flight.asked);
        let number = self.asking.next;
        let request = Request { number, source, target: flight.region, to, len, ticket };
        link.board.push(&request.encode());
        flight.asked += len;
        flight.pieces += 1;
        self.asking.asked.push_back(Asked { number, flight: slot, len, piece });
        self.asking.next += 1;
        true
    }

    /// Reads the owner's replies.
    pub(crate) fn take_replies(&mut self, meter: &mut Meter) -> Result<bool, DownReason> {
        let Some(peer) = self.link.as_ref().and_then(|link| link.peer.as_ref()) else { return Ok(false) };
        let news = peer.board.published().wrapping_sub(self.asking.seen);
        if news > self.asking.asked.len() as u64 {
            return Err(DownReason::Protocol);
        }
        for _ in 0..news {
            let Some(peer) = self.link.as_ref().and_then(|link| link.peer.as_ref()) else { break };
            let reply = Reply::decode(&peer.board.entry(self.asking.seen));
            let (Some(reply), Some(asked)) = (reply, self.asking.asked.pop_front()) else {
                return Err(DownReason::Protocol);
            };
            self.asking.seen += 1;
            self.settle(asked, reply)?;
            meter.ended();
        }
        Ok(news > 0)
    }

    fn settle(&mut self, asked: Asked, reply: Reply) -> Result<(), DownReason> {
        if let Some(piece) = asked.piece {
            self.asking.free |= 1 << piece;
        }
        let flight = self.flights.at(asked.flight);
        flight.pieces -= 1;
        if reply.number != asked.number || reply.bytes > asked.len {
            return Err(DownReason::Protocol);
        }
        match reply.outcome {
            Outcome::Done if reply.bytes == asked.len => flight.moved += reply.bytes,
            Outcome::Done => return Err(DownReason::Protocol),
            Outcome::Unreadable if flight.route != Route::Pieces && flight.failed.is_none() => {
                self.reroute(asked.flight);
                return Ok(());
            }
            Outcome::Refused | Outcome::Unreadable => {
                flight.failed.get_or_insert((Status::Refused, reply.code));
            }
            Outcome::Short => {
                flight.moved += reply.bytes;
                flight.failed.get_or_insert((Status::Short, reply.code));
            }
        }
        self.settled(asked.flight);
        Ok(())
    }

    /// Ends the flight in `slot` if nothing of it is under way and nothing more will be.
    fn settled(&mut self, slot: u16) {
        let flight = self.flights.at(slot);
        let ending = match flight.failed {
            // Nothing moved, or an earlier piece did.
            Some((Status::Refused, code)) if flight.moved > 0 => Some((Status::Short, code)),
            Some((Status::Short, code)) if flight.moved == 0 => Some((Status::Refused, code)),
            Some(failed) => Some(failed),
            None if flight.moved == flight.op.len => Some((Status::Done, 0)),
            None => None,
        };
        let pieces = flight.pieces;
        let Some((status, code)) = ending else { return };
        if status != Status::Done {
            self.asking.waiting.retain(|&other| other != slot);
        }
        if pieces == 0 {
            self.finish(slot, status, code);
        }
    }

    /// The owner cannot read where the flight in `slot` sent it: the next best way, from the start.
    fn reroute(&mut self, slot: u16) {
        let flight: &mut Flight = self.flights.at(slot);
        if flight.route == Route::Private {
            self.asking.private = Private::Refused;
        }
        flight.route =
            if flight.route == Route::Mapped { self.asking.private_route() } else { Route::Pieces };
        flight.asked = 0;
        self.asking.waiting.push_front(slot);
    }
}
