//! Memory, who may reach it, and the one-sided operations on their way to it.

use core::time::Duration;

use springtide_core::id::{Id, OpId, PathId, RegionId, SegmentId};
use springtide_core::range::Extent;
use springtide_core::slab::Slab;
use springtide_core::ticket::{Gate, Ticket};
use springtide_core::transfer::{Op, Status, Verb};

use crate::env::Env;
use crate::queue::{Event, Pid};

/// A segment that peers can reach.
#[derive(Debug)]
pub struct Region {
    /// Whose memory.
    pub pid: Pid,
    /// Under which master.
    pub master: Pid,
    /// Its number there.
    pub segment: SegmentId,
    /// What admits stores.
    pub gate: Gate,
    /// Where in its owner's memory it begins, and how long it is.
    pub base: usize,
    /// Its length.
    pub len: usize,
}

/// One operation on its way.
#[derive(Debug)]
pub struct Flight {
    /// Who began it, in which life, on which path and of its openings which.
    pub by: (Pid, u32),
    /// The path.
    pub path: PathId,
    /// Which opening of the path.
    pub opening: u32,
    /// The operation.
    pub op: Op,
    /// Where it goes.
    pub region: RegionId,
    /// The permission of a write.
    pub ticket: Option<Ticket>,
    /// How it goes on.
    pub stage: Stage,
    moved: u32,
    /// The bytes of a write.
    pub data: Vec<u8>,
}

/// How an operation goes on.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Stage {
    /// Towards its memory.
    Out,
    /// It ended so; who began it hears of it.
    Back(Status),
    /// Nobody waits for it any more, but it may still store.
    Adrift,
    /// Nothing comes of it.
    Void,
}

/// All memory and all operations.
#[derive(Debug, Default)]
pub struct Fabric {
    /// What can be reached.
    pub regions: Slab<RegionId, Region>,
    /// The memory of every process.
    pub homes: Vec<Vec<u8>>,
    flights: Vec<Flight>,
    vacant: Vec<u32>,
    /// Operations that have not come to their end.
    pub aloft: usize,
}

impl Fabric {
    /// The operation with this number.
    pub fn flight(&mut self, number: u32) -> &mut Flight {
        &mut self.flights[number as usize]
    }

    /// Writes that may still land.
    pub fn writes(&self) -> impl Iterator<Item = &Flight> {
        let may_land = |flight: &&Flight| {
            flight.op.verb == Verb::Write && matches!(flight.stage, Stage::Out | Stage::Adrift)
        };
        self.flights.iter().filter(may_land)
    }

    /// Takes an operation in; gives back its number and where to put the bytes of a write.
    pub fn add(&mut self, flight: Flight) -> (u32, &mut Vec<u8>) {
        self.aloft += 1;
        let number = match self.vacant.pop() {
            Some(number) => {
                let data = core::mem::take(&mut self.flights[number as usize].data);
                self.flights[number as usize] = Flight { data, ..flight };
                number
            }
            None => {
                self.flights.push(flight);
                self.flights.len() as u32 - 1
            }
        };
        let data = &mut self.flights[number as usize].data;
        data.clear();
        (number, data)
    }

    /// An operation has come to its end.
    pub fn remove(&mut self, number: u32) {
        self.flights[number as usize].stage = Stage::Void;
        self.vacant.push(number);
        self.aloft -= 1;
    }

    /// The region of a segment, while it is served.
    pub fn region_of(&self, master: Pid, segment: SegmentId) -> Option<(RegionId, &Region)> {
        self.regions.iter().find(|(_, region)| region.master == master && region.segment == segment)
    }

    /// A segment's bytes, while they are served.
    pub fn bytes(&self, master: Pid, segment: SegmentId, extent: Extent) -> Option<&[u8]> {
        let (_, region) = self.region_of(master, segment)?;
        let start = region.base + extent.offset() as usize;
        self.homes[region.pid.index()].get(start..start + extent.len() as usize)
    }
}

impl Flight {
    /// An operation that sets out.
    pub const fn new(
        by: (Pid, u32),
        path: (PathId, u32),
        op: Op,
        region: RegionId,
        ticket: Option<Ticket>,
    ) -> Self {
        Self {
            by,
            path: path.0,
            opening: path.1,
            op,
            region,
            ticket,
            stage: Stage::Out,
            moved: 0,
            data: Vec::new(),
        }
    }

    fn cut_off(&self) -> Status {
        if self.moved == 0 { Status::Refused } else { Status::Short }
    }
}

/// What came of an arrival.
enum Landing {
    Ended(Status),
    /// It goes on after a pause.
    Pauses(Duration),
}

impl Env {
    /// An operation arrives at its memory, or goes on there.
    pub fn land(&mut self, number: u32) {
        let flight = &self.fabric.flights[number as usize];
        if flight.stage == Stage::Void {
            return self.fabric.remove(number);
        }
        if self.tells() {
            let Flight { by, op, ticket, region, .. } = &self.fabric.flights[number as usize];
            let (by, serial, to) =
                (by.0, ticket.map(|ticket| ticket.serial), op.to..op.to + u64::from(op.len));
            self.say(by, format_args!("{:?} lands at {to:?} of {region:?} by ticket {serial:?}", op.verb));
        }
        let status = match self.touch(number) {
            Landing::Ended(status) => status,
            Landing::Pauses(pause) => return self.queue.push(self.now + pause, Event::Land(number)),
        };
        let flight = &mut self.fabric.flights[number as usize];
        if flight.stage == Stage::Adrift {
            return self.fabric.remove(number);
        }
        flight.stage = Stage::Back(status);
        let (by, owner) = (flight.by.0, self.fabric.regions.get(flight.region).map(|region| region.pid));
        let healed = owner.map_or(self.now, |owner| self.weather.cut(owner, by)).max(self.now);
        let at = healed + self.op_time();
        self.queue.push(at, Event::Reap(number));
    }

    /// Moves the bytes of one step.
    fn touch(&mut self, number: u32) -> Landing {
        let (tear, until) = self.weather.tear;
        let torn = until > self.now;
        let flight = &mut self.fabric.flights[number as usize];
        let op = flight.op;
        let Some(region) = self.fabric.regions.get(flight.region) else {
            return Landing::Ended(flight.cut_off());
        };
        if op.to.checked_add(u64::from(op.len)).is_none_or(|end| end > region.len as u64) {
            return Landing::Ended(Status::Refused);
        }
        if op.verb == Verb::Write {
            let store = Extent::new(op.to, u64::from(op.len));
            let admitted = store
                .zip(flight.ticket)
                .is_some_and(|(store, ticket)| region.gate.admit(&ticket, store).is_ok());
            if !admitted {
                return Landing::Ended(flight.cut_off());
            }
        }
        let rest = op.len - flight.moved;
        let step = if torn && flight.moved == 0 { rest / 2 } else { rest };
        let there = region.base + op.to as usize + flight.moved as usize;
        let (here, len) = (op.at as usize + flight.moved as usize, step as usize);
        match op.verb {
            Verb::Write => {
                let from = flight.moved as usize;
                self.fabric.homes[region.pid.index()][there..there + len]
                    .copy_from_slice(&flight.data[from..from + len]);
                if let Some(ticket) = flight.ticket {
                    self.oracle.stored(self.now, region, &ticket, op.to);
                }
            }
            Verb::Read if self.lives[flight.by.0.index()].life == flight.by.1 => {
                let (from, to) = (region.pid.index(), flight.by.0.index());
                if let Ok([from, to]) = self.fabric.homes.get_disjoint_mut([from, to]) {
                    to[here..here + len].copy_from_slice(&from[there..there + len]);
                }
            }
            Verb::Read => {}
        }
        flight.moved += step;
        if flight.moved < op.len { Landing::Pauses(tear) } else { Landing::Ended(Status::Done) }
    }

    /// How long an operation takes one way.
    pub fn op_time(&mut self) -> Duration {
        let usual = 2_000 + self.rng.below(8_000);
        let (most, until) = self.weather.late;
        let late = until > self.now && self.rng.below(8) == 0;
        let more = if late { self.rng.below(most.as_nanos() as u64) } else { 0 };
        Duration::from_nanos(usual + more)
    }
}

/// An id for what has none of its own.
pub fn id<I: Id>(index: u32) -> I {
    I::new(index, core::num::NonZeroU32::MIN)
}

/// An operation for tables that are not filled yet.
pub fn no_op() -> Op {
    Op {
        id: id::<OpId>(0),
        local: id(0),
        at: 0,
        remote: id(0),
        to: 0,
        ticket: None,
        len: 0,
        verb: Verb::Read,
    }
}
