//! A node's memory, as one lane of this process reaches it.

use core::time::Duration;
use std::sync::Arc;

use springtide::{Transports, Use, transports};
use springtide_core::id::{Incarnation, RegionId, TargetId, TicketId};
use springtide_core::ticket::Ticket;
use springtide_core::time::Instant;
use springtide_core::transfer::{Config, Transfer, Verb};
use springtide_core::wire::codec;
use springtide_core::wire::message::{
    self, Abandoned, Grant, Granted, Options, Refusal, SegmentInfo, Wanted,
};
use springtide_driver::{Card, Lane, Seat};
use springtide_hal::Block;
use springtide_hal_host::clock;
use springtide_hal_host::memory::Sharing;
use springtide_transport::Exposure;

use super::super::load::Target;
use super::super::plain;
use super::super::wire::Wire;
use crate::address::Address;
use crate::exit::Failure;

/// A time by which nothing that works is late.
pub(super) fn deadline() -> Instant {
    clock::now() + Duration::from_secs(3_600)
}

/// An extent of a node's memory, granted to us, and as much memory of our own.
pub(super) struct Peer {
    transport: String,
    master: Wire,
    seat: Arc<Seat<Lane>>,
    memory: Block,
    local: RegionId,
    target: TargetId,
    ticket: TicketId,
    granted: Grant,
    /// Where the extent begins.
    at: u64,
}

impl Peer {
    /// Has an extent of `len` bytes granted by `target`'s master to `caller`, and opens a way to it over `transport`.
    pub(super) fn connect(
        transport: &str,
        target: &Target,
        caller: Incarnation,
        len: u64,
    ) -> Result<Self, Failure> {
        let wanted = |name: &str| if name == transport { Use::Yes } else { Use::No };
        let which = Transports { tcp: wanted("tcp"), shm: wanted("shm"), ..Transports::default() };
        let (life, opened) = transports(&which).map_err(Failure::new)?;
        let lane = Lane::new(Config::default(), opened, life.0 as u64).map_err(Failure::new)?;
        let seat = Arc::new(Seat::new(lane).map_err(Failure::new)?);
        let mut master = connect(target.master(), caller)?;
        let (head, granted) = grant(&mut master, len)?;
        let place = granted.replicas.first().ok_or_else(|| Failure::new("a grant of no replicas"))?;
        let (owner, cards) = cards(&mut master, place.segment, caller)?;
        let ticket = Ticket {
            owner,
            segment: place.segment,
            extent: place.extent,
            serial: place.serial,
            term: head.term,
            tag: place.tag,
        };
        let memory = plain::block(len, Sharing::Shared)?;
        let (local, target, ticket) = seat.with(clock::now(), |lane, _| {
            let local = lane.expose(&memory, Exposure::Source).map_err(Failure::new)?;
            let target = lane.target(clock::now(), &cards).map_err(Failure::new)?;
            let ticket = lane.admit(&ticket).map_err(Failure::new)?;
            Ok::<_, Failure>((local, target, ticket))
        })?;
        let at = place.extent.offset();
        Ok(Self { transport: transport.to_owned(), master, seat, memory, local, target, ticket, granted, at })
    }

    /// The transport's name.
    pub(super) fn transport(&self) -> &str {
        &self.transport
    }

    /// What drives it.
    pub(super) const fn seat(&self) -> &Arc<Seat<Lane>> {
        &self.seat
    }

    /// Our own memory.
    pub(super) const fn memory(&self) -> &Block {
        &self.memory
    }

    /// Moves `len` bytes between our memory and the extent, at the same place in both.
    pub(super) fn transfer(&self, verb: Verb, at: u64, len: u64) -> Transfer {
        let ticket = (verb == Verb::Write).then_some(self.ticket);
        Transfer { verb, local: self.local, at, target: self.target, to: self.at + at, ticket, len }
    }

    /// Gives the extent back.
    pub(super) fn leave(mut self) -> Result<(), Failure> {
        let abandoned = Abandoned { object: self.granted.object, quiet: true };
        let begin = |body: &mut Vec<u8>| {
            codec::put(body, &());
            codec::put(body, &abandoned);
        };
        let read = |body: &[u8]| codec::split::<(), Result<(), Refusal>>(body).map(drop);
        self.master.call(message::PUT_ABORT, begin, read)
    }
}

fn connect(address: &Address, caller: Incarnation) -> Result<Wire, Failure> {
    let addresses = address.resolve()?;
    let first = addresses.first().ok_or_else(|| Failure::new(format_args!("{address} has no address")))?;
    Wire::connect(*first, caller)
}

fn grant(master: &mut Wire, len: u64) -> Result<(Granted, Grant), Failure> {
    let begin = |body: &mut Vec<u8>| {
        codec::put(body, &Options { sums: false, ..Options::default() });
        codec::put(body, &Wanted { key: b"bench/transfer", len });
    };
    let (head, grant) = master.call(message::PUT_START, begin, |body| {
        let (head, mut tail) = codec::split::<Granted, Result<Grant, Refusal>>(body)?;
        Ok((head, tail.next().ok_or(codec::Malformed)??))
    })?;
    let grant = grant.map_err(|refusal| Failure::refused("memory to move bytes to", refusal.code))?;
    Ok((head, grant))
}

/// Who owns `segment`, and how it is reached.
fn cards(
    master: &mut Wire,
    segment: springtide_core::id::SegmentId,
    caller: Incarnation,
) -> Result<(Incarnation, Vec<Card>), Failure> {
    let ask = |body: &mut Vec<u8>| codec::put(body, &segment);
    let (owner, address) = master.call(message::SEGMENT, ask, |body| {
        codec::whole::<SegmentInfo<'_>>(body).map(|info| (info.incarnation, info.address.to_owned()))
    })?;
    let address = Address::peer(&address).map_err(Failure::new)?;
    let cards = connect(&address, caller)?.call(message::DESCRIBE, ask, |body| {
        let ((), tail) = codec::split::<(), message::Card<'_>>(body)?;
        let card = |card: message::Card<'_>| Card {
            transport: card.transport.into(),
            address: card.address.into(),
            description: card.description.into(),
        };
        tail.map(|item| item.map(card)).collect::<Result<Vec<_>, _>>()
    })?;
    Ok((owner, cards))
}
