//! Moving time and bytes: what one end's `progress` does.

use core::time::Duration;

use springtide_core::range::Extent;
use springtide_core::time::{Instant, nanos};
use springtide_hal::Block;
use springtide_transport::{Budget, Completion, DownReason, Event, Status, Verb};

use crate::net::{Flight, LinkState, Net, Region, Shape, Stage};

/// Bytes that are copied between two looks at the fence.
const STEP: u32 = 16 << 10;

impl Net {
    /// Puts what `end` posted on the wire, and lets its paths come up or go down.
    pub(crate) fn send(&mut self, end: usize, now: Instant) {
        for i in 0..self.ends[end].outgoing.len() {
            let link = self.ends[end].outgoing[i];
            self.advance(link, now);
            let (shape, link) = (self.shape, &mut self.links[link]);
            for flight in &mut link.flights {
                if flight.stage == Stage::Posted {
                    let start = link.free.max(now);
                    link.free = start + on_wire(&shape, flight.op.len);
                    flight.stage = Stage::Travelling(link.free + shape.latency);
                }
            }
        }
    }

    /// Lets `link` come up, or begin to go down.
    fn advance(&mut self, link: usize, now: Instant) {
        let latency = self.shape.latency;
        let peer_gone = self.ends[self.links[link].to].gone;
        let link = &mut self.links[link];
        let event = match link.state {
            LinkState::Opening(None) => {
                link.state = LinkState::Opening(Some(now + latency * 2));
                return;
            }
            LinkState::Opening(Some(at)) if at.reached(now) => {
                if peer_gone {
                    link.state = LinkState::Closing(DownReason::Unreachable);
                    return;
                }
                link.state = LinkState::Up;
                Event::Up(link.path)
            }
            LinkState::Up if peer_gone => {
                link.close(DownReason::PeerGone, now);
                return;
            }
            _ => return,
        };
        let from = link.from;
        self.ends[from].events.push_back(event);
    }

    /// Serves what has arrived at `end`, within `budget`.
    pub(crate) fn serve(&mut self, end: usize, now: Instant, budget: &mut Budget) {
        let links = self.ends[end].incoming.len();
        let turn = self.ends[end].turn;
        for i in 0..links {
            let link = self.ends[end].incoming[(turn + i) % links];
            if budget.ops == 0 || budget.bytes == 0 {
                break;
            }
            let Self { links, ends, shape, .. } = self;
            for flight in &mut links[link].flights {
                if budget.ops == 0 || budget.bytes == 0 {
                    break;
                }
                let Stage::Travelling(at) = flight.stage else { continue };
                if !at.reached(now) {
                    break;
                }
                if let Some(status) = execute(flight, ends[end].regions.get(&flight.region), budget) {
                    flight.stage = Stage::Ended(status, now + shape.latency);
                }
            }
        }
        self.ends[end].turn = turn.wrapping_add(1);
    }

    /// Reports what has ended for `end`; tells of paths that are gone when their last op was reported.
    pub(crate) fn reap(
        &mut self,
        end: usize,
        now: Instant,
        budget: &mut Budget,
        done: &mut [Completion],
    ) -> usize {
        let mut count = 0;
        for i in 0..self.ends[end].outgoing.len() {
            let link = self.ends[end].outgoing[i];
            let link = &mut self.links[link];
            while let Some(flight) = link.flights.front()
                && let Stage::Ended(status, at) = flight.stage
                && at.reached(now)
                && count < done.len()
                && budget.ops > 0
            {
                done[count] = Completion { id: flight.op.id, bytes: flight.moved, status, code: 0 };
                count += 1;
                budget.ops -= 1;
                link.flights.pop_front();
            }
            if let LinkState::Closing(reason) = link.state
                && link.flights.is_empty()
            {
                link.state = LinkState::Gone;
                let (path, to) = (link.path, link.to);
                self.ends[end].paths.remove(&path);
                self.ends[end].events.push_back(Event::Down(path, reason));
                let gone = self.ends[end].outgoing[i];
                self.ends[to].incoming.retain(|&other| other != gone);
            }
        }
        let links = &self.links;
        self.ends[end].outgoing.retain(|&link| links[link].state != LinkState::Gone);
        count
    }

    /// When `end` has something to do next.
    pub(crate) fn due(&self, end: usize) -> Option<Instant> {
        let here = self.ends[end].now;
        let outgoing = self.ends[end].outgoing.iter().filter_map(|&link| {
            let link = &self.links[link];
            let peer_gone = self.ends[link.to].gone;
            match link.state {
                LinkState::Opening(None) | LinkState::Closing(_) => Some(here),
                LinkState::Opening(Some(at)) => Some(at),
                LinkState::Up if peer_gone || link.flights.back().is_some_and(Flight::is_posted) => {
                    Some(here)
                }
                _ => link.flights.front().and_then(|flight| match flight.stage {
                    Stage::Ended(_, at) => Some(at),
                    _ => None,
                }),
            }
        });
        let incoming = self.ends[end].incoming.iter().filter_map(|&link| {
            self.links[link].flights.iter().find_map(|flight| match flight.stage {
                Stage::Travelling(at) => Some(at),
                _ => None,
            })
        });
        let events = (!self.ends[end].events.is_empty()).then_some(here);
        outgoing.chain(incoming).chain(events).min()
    }
}

/// How long `len` bytes occupy the wire.
fn on_wire(shape: &Shape, len: u32) -> Duration {
    let nanos = u128::from(len) * 1_000_000_000 / u128::from(shape.bandwidth.max(1));
    Duration::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX))
}

/// Moves bytes of one op until it ends (its status) or the budget does.
fn execute(flight: &mut Flight, region: Option<&Region>, budget: &mut Budget) -> Option<Status> {
    let op = flight.op;
    let Some(Region { block, gate: Some((_, gate)) }) = region else { return Some(flight.refused()) };
    let inside = op.to.checked_add(u64::from(op.len)).is_some_and(|end| end <= block.len());
    if !inside {
        return Some(Status::Refused);
    }
    while flight.moved < op.len {
        let admitted = match (op.verb, flight.ticket) {
            (Verb::Read, _) => true,
            (Verb::Write, Some(ticket)) => {
                Extent::new(op.to, u64::from(op.len)).is_some_and(|store| gate.admit(&ticket, store).is_ok())
            }
            (Verb::Write, None) => false,
        };
        if !admitted {
            return Some(flight.refused());
        }
        if budget.bytes == 0 {
            return None;
        }
        let step = (op.len - flight.moved).min(STEP);
        let (at, to) = (op.at + u64::from(flight.moved), op.to + u64::from(flight.moved));
        let copied = match op.verb {
            Verb::Read => copy(block, to, &flight.local, at, step),
            Verb::Write => copy(&flight.local, at, block, to, step),
        };
        if !copied {
            return Some(flight.refused());
        }
        flight.moved += step;
        budget.bytes = budget.bytes.saturating_sub(u64::from(step));
    }
    budget.ops -= 1;
    Some(Status::Done)
}

/// Copies through the stack; false if it would leave a block.
fn copy(from: &Block, at: u64, into: &Block, to: u64, len: u32) -> bool {
    let mut scratch = [0; STEP as usize];
    let bytes = &mut scratch[..len as usize];
    from.read(at, bytes).is_ok() && into.write(to, bytes).is_ok()
}

impl Flight {
    const fn is_posted(&self) -> bool {
        matches!(self.stage, Stage::Posted)
    }

    /// How it ends when the owner does not go on.
    const fn refused(&self) -> Status {
        if self.moved == 0 { Status::Refused } else { Status::Short }
    }
}

impl crate::net::Link {
    /// Ends what is under way, and then the link.
    pub(crate) fn close(&mut self, reason: DownReason, now: Instant) {
        for flight in &mut self.flights {
            if !matches!(flight.stage, Stage::Ended(..)) {
                flight.stage = Stage::Ended(Status::Flushed, now);
            }
        }
        self.state = LinkState::Closing(reason);
    }
}

/// The time from `now` to `at`.
pub(crate) fn until(now: Instant, at: Instant) -> Duration {
    Duration::from_nanos(nanos(at.since(now)))
}
