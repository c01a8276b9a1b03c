//! One round of reads: where the bytes of every item go, and what is done with them once they are there.

use std::sync::Arc;

use springtide_core::client::{Cover, Gets, ReadEnd};
use springtide_core::transfer::{Transfer, Verb};
use springtide_core::wire::message::Location;
use springtide_driver::{Lane, Seat};
use springtide_hal_host::copy::copy;

use crate::memory::{Lease, Slice};
use crate::parts::{FOREIGN, Parts};
use crate::routes::Route;
use crate::{Error, verify};

/// Where an item's bytes go.
pub(crate) enum Place<'a> {
    /// To where the caller wants them.
    Into { at: u64, len: Option<u64>, into: Parts<'a> },
    /// To scratch memory, as long as the value is. Longer values than `room` are refused.
    Owned { lease: Option<Lease>, room: Option<u64> },
    /// Nowhere, and why.
    Unusable(&'static str),
}

impl<'a> Place<'a> {
    pub(crate) const fn owned() -> Self {
        Self::Owned { lease: None, room: None }
    }

    /// All of a value into a list of parts.
    pub(crate) fn list(parts: &'a [Slice<'a>]) -> Self {
        let too_many = Self::Unusable("the parts hold more bytes than can be counted");
        Parts::many(parts).map_or(too_many, |into| Self::Into { at: 0, len: None, into })
    }
}

/// What one round of reads moves.
#[derive(Default)]
pub(crate) struct Trip {
    pub(crate) transfers: Vec<Transfer>,
    pub(crate) under_way: Vec<Reading>,
    /// Items that have ended before anything moved.
    pub(crate) ended: Vec<(usize, ReadEnd)>,
    /// Most replicas that are left to any of the items.
    pub(crate) alternatives: u32,
}

/// One item's read under way.
pub(crate) struct Reading {
    pub(crate) item: usize,
    pub(crate) from: Location,
    pub(crate) route: Route,
    pub(crate) cover: Cover,
    /// How many bytes are wanted of the cover.
    pub(crate) len: u64,
    /// Where the cover goes if not straight to its place.
    pub(crate) aside: Aside,
    /// First transfer in the batch, and how many.
    pub(crate) transfers: (u32, u32),
}

/// Where a read goes that cannot go straight to its place.
pub(crate) enum Aside {
    /// It can.
    No,
    /// To memory of its own.
    Own(Lease),
    /// Another read of the trip, at this index, has the same cover of the same replica.
    As(usize),
}

fn read_transfer(route: Route, to: Slice<'_>, from: u64) -> Transfer {
    Transfer {
        verb: Verb::Read,
        local: to.region(),
        at: to.at,
        target: route.target,
        to: from,
        ticket: None,
        len: to.len,
    }
}

impl Place<'_> {
    /// Memory that another client registered is of no use: its number means something else here.
    pub(crate) fn check(&mut self, lane: &Arc<Seat<Lane>>) {
        if let Self::Into { into, .. } = self
            && !into.belong_to(lane)
        {
            *self = Self::Unusable(FOREIGN);
        }
    }

    /// The scratch memory of its own.
    const fn lease(&mut self) -> Option<&mut Lease> {
        match self {
            Self::Owned { lease, .. } => lease.as_mut(),
            Self::Into { .. } | Self::Unusable(_) => None,
        }
    }

    /// Copies what was read to scratch memory to `parts`, which together are as long as the value.
    pub(crate) fn copy_out(&self, parts: &mut [&mut [u8]]) -> Result<(), Error> {
        let Self::Owned { lease: Some(lease), .. } = self else { return Ok(()) };
        let mut at = 0;
        for part in parts {
            lease.memory().read(at, part)?;
            at += part.len() as u64;
        }
        Ok(())
    }

    /// The first `len` bytes of it.
    fn first(&self, len: u64) -> Option<Parts<'_>> {
        match self {
            Self::Into { into, .. } => Some(into.first(len)),
            Self::Owned { lease, .. } => lease.as_ref().map(|lease| Parts::one(lease.slice(0, len))),
            Self::Unusable(_) => None,
        }
    }
}

impl Aside {
    pub(crate) const fn is_own(&self) -> bool {
        matches!(self, Self::Own(_))
    }
}

impl Trip {
    /// Adds what moves for `reading`.
    pub(crate) fn add(&mut self, mut reading: Reading, place: &Place<'_>) {
        let Cover { data, sums, .. } = reading.cover;
        let first = self.transfers.len() as u32;
        let data_to = match &reading.aside {
            Aside::No => place.first(data.len()),
            Aside::Own(lease) => Some(Parts::one(lease.slice(0, data.len()))),
            Aside::As(_) => None,
        };
        let sums_to = match &reading.aside {
            Aside::Own(lease) => Some(Parts::one(lease.slice(data.len(), sums.len()))),
            Aside::No | Aside::As(_) => None,
        };
        for (to, from) in [(data_to, data), (sums_to, sums)] {
            // What the master says is not trusted to add up; the engine refuses what reaches past the last address.
            let mut from = reading.from.offset.saturating_add(from.offset());
            for to in to.iter().flat_map(Parts::slices) {
                self.transfers.push(read_transfer(reading.route, to, from));
                from = from.saturating_add(to.len);
            }
        }
        reading.transfers = (first, self.transfers.len() as u32 - first);
        self.under_way.push(reading);
    }
}

impl Reading {
    pub(crate) const fn has(&self, transfer: u32) -> bool {
        let (first, count) = self.transfers;
        first <= transfer && transfer < first + count
    }

    /// Scratch memory that may still be stored into is not used again.
    pub(crate) fn spoil(&mut self, place: &mut Place<'_>) {
        self.leases(place).for_each(Lease::spoil);
    }

    /// The scratch memory that it reads to.
    pub(crate) fn leases<'a>(&'a mut self, place: &'a mut Place<'_>) -> impl Iterator<Item = &'a mut Lease> {
        let aside = match &mut self.aside {
            Aside::Own(lease) => Some(lease),
            Aside::No | Aside::As(_) => None,
        };
        aside.into_iter().chain(place.lease())
    }

    /// Copies what was read to `aside` to its place.
    fn bring(&self, aside: &Lease, place: &Place<'_>) -> ReadEnd {
        let mut from = aside.slice(0, self.cover.data.len()).span().skip(self.cover.skip).take(self.len);
        let Some(into) = place.first(self.len) else { return ReadEnd::Failed };
        for to in into.spans() {
            from = from.skip(copy(from, to));
        }
        ReadEnd::Good(self.len)
    }
}

/// Checks what was read, and copies it to its place if it was read aside.
pub(crate) fn finish(reading: &Reading, gets: &Gets, place: &Place<'_>) -> ReadEnd {
    let Some(found) = gets.found(reading.item) else { return ReadEnd::Failed };
    let Reading { cover, len, aside, .. } = reading;
    let data = cover.data.len();
    let Aside::Own(aside) = aside else {
        let Some(at) = place.first(data) else { return ReadEnd::Failed };
        let good = !verify::is_all(cover, found.len) || verify::is_whole(&at, found.checksum);
        return if good { ReadEnd::Good(*len) } else { ReadEnd::Corrupt };
    };
    let at = aside.slice(0, data);
    let good = if cover.sums.is_empty() {
        !verify::is_all(cover, found.len) || verify::is_whole(&Parts::one(at), found.checksum)
    } else {
        let mut sums = vec![0; cover.sums.len() as usize];
        aside.memory().read(data, &mut sums).is_ok() && verify::are_blocks(at.span(), &sums)
    };
    if good { reading.bring(aside, place) } else { ReadEnd::Corrupt }
}

/// The end of a read that shares what `other` read, which ended so.
pub(crate) fn follow(reading: &Reading, end: ReadEnd, other: &Reading, place: &Place<'_>) -> ReadEnd {
    match (end, &other.aside) {
        (ReadEnd::Good(_), Aside::Own(aside)) => reading.bring(aside, place),
        _ => end,
    }
}
