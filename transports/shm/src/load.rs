//! Reads: our own copies out of memory that the owner lets us map. The owner does nothing.

use std::os::fd::OwnedFd;

use springtide_hal_host::map::View;
use springtide_hal_host::process::ProcessError;
use springtide_hal_host::ring::Flag;
use springtide_transport::{DownReason, Status, Verb};

use crate::flight::{Flight, Meter};
use crate::message::Message;
use crate::path::Path;
use crate::region::{Refusal, Regions};

/// Where a peer's region is.
#[derive(Debug)]
enum Place {
    /// The owner has not said yet.
    Wanted,
    /// Here.
    Mapped { view: View, offset: u64, len: u64 },
    /// In the owner's private memory.
    Private { address: u64, len: u64 },
    /// Nowhere, or not any more.
    Missing,
}

#[derive(Debug)]
struct Sight {
    /// The owner's region, as bits.
    region: u64,
    /// How many remotes mean it. Zero: the slot is free.
    users: u32,
    place: Place,
}

/// The peer's regions that a path knows, each mapped once.
#[derive(Debug, Default)]
pub(crate) struct Sights {
    slots: Vec<Sight>,
    /// The owner's count of changes up to which its socket was read.
    pub(crate) changed: u64,
}

/// How a step of a read went.
enum Step {
    /// It must wait for the owner's word.
    Wait,
    /// Some bytes more are in place, or all.
    Moved(u64),
    /// It is over.
    Failed(i32),
}

impl Sights {
    /// Where `region`'s place is kept from now on, and whether the owner must be asked for it.
    pub(crate) fn hold(&mut self, region: u64) -> (usize, Asked) {
        if let Some(at) = self.slots.iter().position(|sight| sight.users > 0 && sight.region == region) {
            self.slots[at].users += 1;
            return (at, Asked::Already);
        }
        let sight = Sight { region, users: 1, place: Place::Wanted };
        let at = self.slots.iter().position(|sight| sight.users == 0).unwrap_or(self.slots.len());
        if at == self.slots.len() {
            self.slots.push(sight);
        } else {
            self.slots[at] = sight;
        }
        (at, Asked::NotYet)
    }

    /// One remote less means what is kept at `at`; the last one unmaps it.
    pub(crate) fn release(&mut self, at: usize) {
        if let Some(sight) = self.slots.get_mut(at) {
            sight.users = sight.users.saturating_sub(1);
            if sight.users == 0 {
                sight.place = Place::Missing;
            }
        }
    }

    /// Regions that the owner has not placed yet.
    pub(crate) fn wanted(&self) -> impl Iterator<Item = u64> {
        let wanted = |sight: &&Sight| sight.users > 0 && matches!(sight.place, Place::Wanted);
        self.slots.iter().filter(wanted).map(|sight| sight.region)
    }

    /// Takes in what the owner says about a region.
    pub(crate) fn hear(&mut self, message: Message, files: [Option<OwnedFd>; 2]) -> Result<(), DownReason> {
        let (region, place) = match message {
            Message::Mapped { region, offset, len } => {
                let [Some(file), _] = files else { return Err(DownReason::Protocol) };
                let end = offset.checked_add(len).ok_or(DownReason::Protocol)?;
                // A file that cannot be mapped safely is as good as none.
                let place = match View::map(file, end) {
                    Ok(view) => Place::Mapped { view, offset, len },
                    Err(_) => Place::Missing,
                };
                (region, place)
            }
            Message::Private { region, address, len } => (region, Place::Private { address, len }),
            Message::Missing { region } => (region, Place::Missing),
            _ => return Err(DownReason::Protocol),
        };
        if let Some(sight) = self.slots.iter_mut().find(|s| s.users > 0 && s.region == region) {
            sight.place = place;
        }
        Ok(())
    }

    fn is_wanted(&self, at: usize) -> bool {
        matches!(self.slots.get(at), Some(Sight { place: Place::Wanted, .. }))
    }
}

/// Whether the owner knows already that we want a region.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Asked {
    /// It was asked before.
    Already,
    /// Ask it.
    NotYet,
}

impl Path {
    /// Whether [`load`](Self::load) could move something.
    pub(crate) fn can_load(&self) -> bool {
        let ready = |(_, flight): (u16, &Flight)| {
            flight.op.verb == Verb::Read && !self.sights.is_wanted(flight.sight)
        };
        !self.loads.is_empty() && self.flights.iter().any(ready)
    }

    /// Copies for our reads, oldest first; reads whose place is not known yet are passed over.
    pub(crate) fn load(
        &mut self,
        epoll: &OwnedFd,
        regions: &Regions,
        meter: &mut Meter,
    ) -> Result<bool, DownReason> {
        let mut any = false;
        for _ in 0..self.loads.len() {
            if meter.is_spent() {
                break;
            }
            self.keep_up(epoll, regions)?;
            let Some(slot) = self.loads.pop_front() else { break };
            match self.load_step(slot, meter)? {
                Step::Wait => self.loads.push_back(slot),
                // It may have been withdrawn under our hands: look, and copy again what is still there.
                Step::Moved(_) if self.is_behind() => self.loads.push_front(slot),
                Step::Moved(bytes) => {
                    any = true;
                    self.moved(slot, bytes, meter);
                }
                Step::Failed(code) => {
                    any = true;
                    let moved = self.flights.at(slot).moved;
                    self.finish(slot, if moved > 0 { Status::Short } else { Status::Refused }, code);
                    meter.ended();
                }
            }
        }
        Ok(any)
    }

    /// Reads the owner's socket if it withdrew something since: what it took away must not be read any more.
    fn keep_up(&mut self, epoll: &OwnedFd, regions: &Regions) -> Result<(), DownReason> {
        if self.is_behind() {
            self.sights.changed = self.owner_changes();
            self.listen(epoll, regions)?;
        }
        Ok(())
    }

    /// Whether the owner withdrew something since its socket was read.
    pub(crate) fn is_behind(&self) -> bool {
        self.owner_changes() != self.sights.changed
    }

    fn owner_changes(&self) -> u64 {
        let peer = self.link.as_ref().and_then(|link| link.peer.as_ref());
        peer.map_or(0, |peer| peer.board.flag(Flag::Changed))
    }

    fn moved(&mut self, slot: u16, bytes: u64, meter: &mut Meter) {
        meter.moved(bytes);
        let flight = self.flights.at(slot);
        flight.moved += bytes as u32;
        if flight.left() == 0 {
            self.finish(slot, Status::Done, 0);
            meter.ended();
        } else {
            self.loads.push_front(slot);
        }
    }

    fn load_step(&mut self, slot: u16, meter: &Meter) -> Result<Step, DownReason> {
        let flight = self.flights.at(slot);
        let step = meter.fit(flight.left());
        let from = flight.op.to + u64::from(flight.moved);
        let Ok(to) = flight.block.span(flight.op.at + u64::from(flight.moved), step) else {
            return Ok(Step::Failed(crate::entry::NO_TARGET));
        };
        // All that is left, not only this step: no byte of a read that reaches too far is moved.
        let left = flight.left();
        let inside = |len: u64| from.checked_add(left).is_some_and(|end| end <= len);
        // The slot may hold another region's place by now.
        let sight = self.sights.slots.get(flight.sight).filter(|sight| sight.region == flight.region);
        Ok(match sight.map(|sight| &sight.place) {
            Some(Place::Wanted) => Step::Wait,
            Some(Place::Mapped { view, offset, len }) if inside(*len) => {
                match view.copy_to(offset + from, to) {
                    Ok(()) => Step::Moved(step),
                    Err(_) => Step::Failed(crate::entry::NO_TARGET),
                }
            }
            Some(Place::Private { address, len }) if inside(*len) => {
                let Some(link) = &self.link else { return Ok(Step::Failed(crate::entry::NO_TARGET)) };
                match link.process.read(address.wrapping_add(from), to) {
                    Ok(0) if step > 0 => Step::Failed(crate::entry::NO_TARGET),
                    Ok(bytes) => Step::Moved(bytes),
                    Err(ProcessError::Gone) => return Err(DownReason::PeerGone),
                    Err(_) => Step::Failed(crate::entry::NO_TARGET),
                }
            }
            _ => Step::Failed(crate::entry::NO_TARGET),
        })
    }

    /// Moves the ops of a path to this very transport: one copy, in either direction.
    pub(crate) fn move_own(&mut self, regions: &Regions, meter: &mut Meter) -> bool {
        let mut any = false;
        while !meter.is_spent() {
            let Some(slot) = self.loads.pop_front() else { break };
            any = true;
            match own_step(self.flights.at(slot), regions, meter) {
                Ok(bytes) => self.moved(slot, bytes, meter),
                Err(refusal) => {
                    let moved = self.flights.at(slot).moved;
                    let status = if moved > 0 { Status::Short } else { Status::Refused };
                    self.finish(slot, status, refusal.code());
                    meter.ended();
                }
            }
        }
        any
    }
}

fn own_step(flight: &Flight, regions: &Regions, meter: &Meter) -> Result<u64, Refusal> {
    let (left, done) = (flight.left(), u64::from(flight.moved));
    let step = meter.fit(left);
    let region = springtide_core::id::RegionId::from_bits(flight.region).and_then(|id| regions.get(id));
    let region = region.ok_or(Refusal::NoTarget)?;
    let ours = flight.block.span(flight.op.at + done, step).map_err(|_| Refusal::NoTarget)?;
    let there = flight.op.to + done;
    Ok(match (flight.op.verb, flight.ticket) {
        (Verb::Read, _) => {
            springtide_hal_host::copy::copy(region.load(there, left).ok_or(Refusal::NoTarget)?, ours)
        }
        (Verb::Write, Some(ticket)) => {
            springtide_hal_host::copy::copy(ours, region.store(&ticket, there, left)?)
        }
        (Verb::Write, None) => return Err(Refusal::NoTarget),
    })
}
