//! The initiator's end of a connection, or a path to this very transport.
//!
//! Reads are copied by us out of the owner's mapped memory ([`load`](crate::load)); for writes the owner is asked to
//! pull ([`ask`](crate::ask)).

use std::collections::VecDeque;
use std::os::fd::OwnedFd;

use springtide_core::id::{OpId, RegionId};
use springtide_hal_host::ring::Flag;
use springtide_transport::{Completion, DownReason, Status, Verb};

use crate::ask::Asking;
use crate::entry::REPLIES;
use crate::flight::{DEPTH, Flight, Flights, Meter};
use crate::link::Link;
use crate::load::Sights;
use crate::message::Message;
use crate::region::Regions;
use crate::socket::Received;

/// How far a path is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum State {
    /// The owner has not answered yet.
    Opening,
    /// Usable.
    Up,
}

/// One path.
#[derive(Debug)]
pub(crate) struct Path {
    /// The life at the other end.
    pub(crate) life: u128,
    pub(crate) state: State,
    /// `None`: the other end is this very transport.
    pub(crate) link: Option<Link>,
    pub(crate) flights: Flights,
    /// Flights whose bytes we move ourselves, in order of submission.
    pub(crate) loads: VecDeque<u16>,
    pub(crate) asking: Asking,
    pub(crate) sights: Sights,
    /// Regions whose files the owner was given.
    passed: Vec<RegionId>,
    /// Regions that were withdrawn, whose files the owner still has.
    dropping: Vec<RegionId>,
    pub(crate) done: VecDeque<Completion>,
}

impl Path {
    /// A path to `life` over `link`, or to this very transport.
    pub(crate) fn new(life: u128, link: Option<Link>) -> Self {
        Self {
            life,
            state: if link.is_some() { State::Opening } else { State::Up },
            link,
            flights: Flights::default(),
            loads: VecDeque::with_capacity(DEPTH),
            asking: Asking::default(),
            sights: Sights::default(),
            passed: Vec::new(),
            dropping: Vec::new(),
            done: VecDeque::with_capacity(DEPTH),
        }
    }

    /// How many ops may still be accepted.
    pub(crate) fn room(&self) -> usize {
        if self.state == State::Up { DEPTH - self.flights.len() - self.done.len() } else { 0 }
    }

    /// Whether the owner can map `region` as the source of a write.
    pub(crate) fn has_passed(&self, region: RegionId) -> bool {
        self.passed.contains(&region)
    }

    /// Puts `flight` under way; `submit` checked the room and all that is known here.
    pub(crate) fn accept(&mut self, flight: Flight) {
        let asks = flight.op.verb == Verb::Write && self.link.is_some();
        let slot = self.flights.insert(flight);
        if asks { self.asking.waiting.push_back(slot) } else { self.loads.push_back(slot) }
    }

    /// Ends the flight in `slot`.
    pub(crate) fn finish(&mut self, slot: u16, status: Status, code: i32) {
        if let Some(flight) = self.flights.remove(slot) {
            self.done.push_back(Completion { id: flight.op.id, bytes: flight.moved, status, code });
        }
    }

    /// Gives `op` up where nobody touches its memory yet; otherwise it ends by itself.
    pub(crate) fn cancel(&mut self, op: OpId) {
        let Some(slot) = self.flights.iter().find(|(_, flight)| flight.op.id == op).map(|(slot, _)| slot)
        else {
            return;
        };
        self.loads.retain(|&other| other != slot);
        self.asking.waiting.retain(|&other| other != slot);
        let flight = self.flights.at(slot);
        if flight.pieces == 0 {
            self.finish(slot, Status::Flushed, 0);
        } else if u64::from(flight.asked) < u64::from(flight.op.len) {
            flight.failed = Some((Status::Flushed, 0));
        }
    }

    /// Does what can be done now, a step's worth at most; says whether that was anything.
    pub(crate) fn turn(
        &mut self,
        epoll: &OwnedFd,
        regions: &Regions,
        meter: &mut Meter,
    ) -> Result<bool, DownReason> {
        if self.state != State::Up {
            return Ok(false);
        }
        let mut turn = meter.turn();
        let result = if self.link.is_none() {
            Ok(self.move_own(regions, &mut turn))
        } else {
            let replied = self.take_replies(&mut turn)?;
            self.drop_idle(epoll)?;
            let asked = self.ask(&mut turn);
            self.load(epoll, regions, &mut turn).map(|loaded| replied || asked || loaded)
        };
        meter.give_back(turn);
        result
    }

    /// Whether `turn` would find something to do.
    pub(crate) fn has_work(&self) -> bool {
        if !self.done.is_empty() {
            return true;
        }
        let Some(peer) = self.link.as_ref().and_then(|link| link.peer.as_ref()) else {
            return !self.loads.is_empty();
        };
        peer.board.published() != self.asking.seen || self.is_behind() || self.can_ask() || self.can_load()
    }

    /// Reads what the owner says. `Ok(true)`: the path came up.
    pub(crate) fn listen(&mut self, epoll: &OwnedFd, regions: &Regions) -> Result<bool, DownReason> {
        let before = self.state;
        while let Some(link) = &mut self.link {
            let (message, files) = match link.receive() {
                Received::Message(message, files) => (message, files),
                Received::Nothing => break,
                Received::Garbage => return Err(DownReason::Protocol),
                Received::End => return Err(DownReason::PeerGone),
            };
            match (self.state, message) {
                (State::Opening, Message::Welcome) => {
                    link.meet(files, REPLIES)?;
                    self.state = State::Up;
                    self.greet(epoll, regions)?;
                }
                (State::Up, message) => self.sights.hear(message, files)?,
                // A refusal, or nonsense.
                (State::Opening, _) => return Err(DownReason::Protocol),
            }
        }
        Ok(self.state != before)
    }

    /// Tells the owner all that piled up while the path was opening.
    fn greet(&mut self, epoll: &OwnedFd, regions: &Regions) -> Result<(), DownReason> {
        for (id, _) in regions.iter() {
            self.pass(epoll, regions, id)?;
        }
        let Some(link) = &mut self.link else { return Ok(()) };
        for region in self.sights.wanted() {
            link.tell(epoll, Message::Want { region }, None)?;
        }
        Ok(())
    }

    /// Gives the owner the file of `region`, if our writes may come from there by mapping.
    pub(crate) fn pass(
        &mut self,
        epoll: &OwnedFd,
        regions: &Regions,
        region: RegionId,
    ) -> Result<(), DownReason> {
        let (Some(link), State::Up) = (&mut self.link, self.state) else { return Ok(()) };
        let Some(source) = regions.get(region) else { return Ok(()) };
        if self.dropping.contains(&region) {
            // The owner still has another file under this id: writes from here go another way.
            return Ok(());
        }
        if let Some(message) = source.as_source(region) {
            link.tell(epoll, message, source.shared())?;
            self.passed.push(region);
        }
        Ok(())
    }

    /// Takes back the file of `region`, once no write that was submitted comes from there any more.
    pub(crate) fn unpass(&mut self, epoll: &OwnedFd, region: RegionId) -> Result<(), DownReason> {
        if let Some(at) = self.passed.iter().position(|&passed| passed == region) {
            self.dropping.push(self.passed.swap_remove(at));
        }
        self.drop_idle(epoll)
    }

    fn drop_idle(&mut self, epoll: &OwnedFd) -> Result<(), DownReason> {
        for at in (0..self.dropping.len()).rev() {
            let region = self.dropping[at];
            if self.flights.iter().any(|(_, flight)| flight.op.local == region) {
                continue;
            }
            self.dropping.swap_remove(at);
            if let Some(link) = &mut self.link {
                link.tell(epoll, Message::Drop { region: region.to_bits() }, None)?;
            }
        }
        Ok(())
    }

    /// Forbids the owner to act on any more of our requests, and ends all that nobody else touches. Says whether that
    /// was everything: if the owner is in the midst of a step, the rest must wait until it is not.
    pub(crate) fn revoke(&mut self) -> bool {
        self.loads.clear();
        self.asking.waiting.clear();
        if let Some(link) = &self.link {
            link.board.set(Flag::Closed, 1);
        }
        let slots: Vec<u16> =
            self.flights.iter().filter(|(_, flight)| flight.pieces == 0).map(|(slot, _)| slot).collect();
        for slot in slots {
            self.finish(slot, Status::Flushed, 0);
        }
        self.is_quiet() && {
            self.flush();
            true
        }
    }

    /// Whether nobody acts on our requests any more, after [`revoke`](Self::revoke) or the peer's death.
    pub(crate) fn is_quiet(&self) -> bool {
        let Some(link) = &self.link else { return true };
        let Some(peer) = &link.peer else { return true };
        if self.asking.asked.is_empty() || peer.board.flag(Flag::Busy) == 0 {
            return true;
        }
        loop {
            match link.receive() {
                Received::End => return true,
                Received::Nothing => return false,
                Received::Message(..) | Received::Garbage => {}
            }
        }
    }

    /// Ends every flight, first those whose replies have come. Only once the path is quiet.
    pub(crate) fn flush(&mut self) {
        if self.link.is_some() {
            // Garbage ends as if it had not come.
            let _ = self.take_replies(&mut Meter::new(springtide_transport::Budget { ops: 0, bytes: 0 }));
        }
        self.loads.clear();
        self.asking.waiting.clear();
        self.asking.asked.clear();
        for slot in 0..DEPTH as u16 {
            self.finish(slot, Status::Flushed, 0);
        }
    }
}
