//! One batch of reads, from the question to the checked bytes.

use core::time::Duration;

use springtide_core::client::{Cover, Gets, NextGet, ReadEnd, cover};
use springtide_core::error::Code;
use springtide_core::id::SegmentId;
use springtide_core::time::Instant;
use springtide_core::transfer::{Failure, Quiet, Transfer, Verb};
use springtide_core::wire::codec;
use springtide_core::wire::message::{self, Found, Leased, Location, Refusal};
use springtide_driver::Runtime;
use springtide_hal_host::copy::copy;

use crate::memory::{Lease, Slice};
use crate::patience::{Share, attempt};
use crate::routes::Route;
use crate::{Checksums, Client, Error, verify};

/// Where an item's bytes go.
pub(crate) enum Place<'a> {
    /// To where the caller wants them.
    Into { at: u64, len: Option<u64>, into: Slice<'a> },
    /// To scratch memory, as long as the value is.
    Owned(Option<Lease>),
}

/// What one round of reads moves.
#[derive(Default)]
struct Trip {
    transfers: Vec<Transfer>,
    under_way: Vec<Reading>,
    /// Items that have ended before anything moved.
    ended: Vec<(usize, ReadEnd)>,
    /// Most replicas that are left to any of the items.
    alternatives: u32,
}

/// One item's read under way.
struct Reading {
    item: usize,
    segment: SegmentId,
    route: Route,
    cover: Cover,
    /// How many bytes are wanted of the cover.
    len: u64,
    /// Where the cover goes if not straight to its place.
    aside: Option<Lease>,
    /// First transfer in the batch, and how many.
    transfers: (u32, u32),
}
impl<R: Runtime> Client<R> {
    pub(crate) async fn read(
        &self,
        keys: &[&[u8]],
        places: &mut [Place<'_>],
        deadline: Instant,
    ) -> Vec<Result<u64, Error>> {
        let mut gets = Gets::new(keys.len());
        loop {
            match gets.next() {
                NextGet::Ask => self.ask_for(&mut gets, keys, deadline).await,
                NextGet::Read => self.move_in(&mut gets, places, deadline).await,
                NextGet::Done => break,
            }
        }
        let result = |item| gets.result(item).unwrap_or(Err(Code::INTERNAL_ERROR));
        let explained = |item| result(item).map_err(|code| explain(code, gets.found(item), &places[item]));
        (0..keys.len()).map(explained).collect()
    }

    async fn ask_for(&self, gets: &mut Gets, keys: &[&[u8]], deadline: Instant) {
        let asked = self.0.runtime.now();
        if deadline.reached(asked) {
            return gets.handle_no_answer(Code::RPC_TIMEOUT);
        }
        let items: Vec<usize> = gets.asking().collect();
        let call = self.0.master.call(message::GET, deadline, |body| {
            codec::put(body, &());
            items.iter().for_each(|&item| codec::put(body, &keys[item]));
        });
        let reply = match call.await {
            Ok(reply) => reply,
            Err(error) => return gets.handle_no_answer(error.code()),
        };
        let Ok((head, tail)) = codec::split::<Leased, Result<Found, Refusal>>(&reply.body) else {
            return gets.handle_no_answer(Code::INVALID_VERSION);
        };
        let lease = Duration::from_millis(head.lease_ms.into());
        for (&item, answer) in items.iter().zip(tail) {
            let answer = answer.unwrap_or(Err(Refusal::new(Code::INVALID_VERSION)));
            gets.handle_found(item, asked, lease, answer, |location| self.rank(location));
        }
        // A reply with too few answers leaves nobody asking for ever.
        gets.handle_no_answer(Code::INVALID_VERSION);
    }

    /// Orders replicas; spreads equal ones by this client's number.
    fn rank(&self, location: &Location) -> u32 {
        let far = !self.0.routes.is_near(location.segment);
        let spread = springtide_core::rng::mix(self.0.incarnation.0 as u64 ^ location.segment.to_bits());
        u32::from(far) << 31 | (spread >> 33) as u32
    }

    /// Moves one replica of every item that is to be read, in one batch.
    async fn move_in(&self, gets: &mut Gets, places: &mut [Place<'_>], deadline: Instant) {
        let Trip { transfers, mut under_way, mut ended, alternatives } =
            self.prepare(gets, places, deadline).await;
        let bytes = transfers.iter().fold(0u64, |sum, transfer| sum.saturating_add(transfer.len));
        let until = self.until(deadline, bytes, alternatives);
        for reading in &mut under_way {
            reading.leases(&mut places[reading.item]).for_each(Lease::take_off);
        }
        let moved = self.0.lane.transfer(&transfers, until).await;
        let now = self.0.runtime.now();
        for mut reading in under_way {
            reading.leases(&mut places[reading.item]).for_each(Lease::land);
            let end = match &moved {
                Ok(moved) => {
                    let failure =
                        moved.failed.iter().find(|(at, _)| reading.has(*at)).map(|(_, failure)| *failure);
                    if moved.outcome.quiet() == Quiet::No && failure.is_some() {
                        reading.spoil(&mut places[reading.item]);
                    }
                    match failure {
                        Some(failure) => self.failed(&reading, failure, deadline.reached(now)),
                        None => finish(&reading, gets, &places[reading.item]),
                    }
                }
                Err(error) => ReadEnd::Refused(error.code()),
            };
            ended.push((reading.item, end));
        }
        for (item, end) in ended {
            gets.handle_read(now, item, end, |location| self.rank(location));
        }
    }

    /// Settles from where to where the bytes of every item go.
    async fn prepare(&self, gets: &Gets, places: &mut [Place<'_>], deadline: Instant) -> Trip {
        let mut trip = Trip::default();
        let mut unreachable: Vec<SegmentId> = Vec::new();
        for read in gets.reading() {
            let item = read.item;
            let (cover, len, aside) = match self.plan(read.found, &mut places[item]) {
                Ok(plan) => plan,
                Err(code) => {
                    trip.ended.push((item, ReadEnd::Refused(code)));
                    continue;
                }
            };
            if cover.data.is_empty() {
                trip.ended.push((item, ReadEnd::Good(0)));
                continue;
            }
            let segment = read.from.segment;
            let route = match unreachable.contains(&segment) {
                true => None,
                false => {
                    let patience = self.until(deadline, 0, read.others);
                    self.0.routes.find(&self.0.master, segment, patience).await.ok()
                }
            };
            let Some(route) = route else {
                unreachable.push(segment);
                trip.ended.push((item, ReadEnd::Failed));
                continue;
            };
            let to = match (&aside, &places[item]) {
                (Some(aside), _) | (None, Place::Owned(Some(aside))) => aside.slice(0, cover.data.len()),
                (None, Place::Into { into, .. }) => Slice { len: cover.data.len(), ..*into },
                (None, Place::Owned(None)) => continue,
            };
            let first = trip.transfers.len() as u32;
            trip.alternatives = trip.alternatives.max(read.others);
            trip.transfers.push(read_transfer(route, to, read.from.offset + cover.data.offset()));
            if let (Some(aside), false) = (&aside, cover.sums.is_empty()) {
                let to = aside.slice(cover.data.len(), cover.sums.len());
                trip.transfers.push(read_transfer(route, to, read.from.offset + cover.sums.offset()));
            }
            let transfers = (first, trip.transfers.len() as u32 - first);
            trip.under_way.push(Reading { item, segment, route, cover, len, aside, transfers });
        }
        trip
    }

    /// How long an attempt to move `bytes` may take where as many `alternatives` are left.
    fn until(&self, deadline: Instant, bytes: u64, alternatives: u32) -> Instant {
        match alternatives {
            0 => deadline,
            _ => attempt(self.0.runtime.now(), deadline, bytes, Share::Eighth),
        }
    }

    fn failed(&self, reading: &Reading, failure: Failure, too_late: bool) -> ReadEnd {
        tracing::debug!(segment = %reading.segment, %failure, "a read failed");
        if too_late {
            return ReadEnd::Refused(Code::RPC_TIMEOUT);
        }
        self.0.routes.forget(reading.segment, reading.route);
        ReadEnd::Failed
    }

    /// Which bytes to read for an item, how many of them are wanted, and scratch memory if they cannot go straight to
    /// their place.
    fn plan(&self, found: &Found, place: &mut Place<'_>) -> Result<(Cover, u64, Option<Lease>), Code> {
        let checksum = match self.0.checksums {
            Checksums::Verify => found.checksum,
            Checksums::Off => springtide_core::checksum::Checksum::None,
        };
        match place {
            Place::Owned(lease) => {
                let cover = cover(found.len, checksum, 0, found.len).ok_or(Code::INVALID_REPLICA)?;
                *lease = Some(self.0.scratch.take(found.len).map_err(|error| error.code())?);
                Ok((Cover { sums: Default::default(), ..cover_all(cover, found.len) }, found.len, None))
            }
            Place::Into { at, len, into } => {
                let rest = found.len.checked_sub(*at).ok_or(Code::INVALID_PARAMS)?;
                let len = len.unwrap_or(rest);
                let cover = cover(found.len, checksum, *at, len).ok_or(Code::INVALID_PARAMS)?;
                if len > into.len {
                    return Err(Code::BUFFER_OVERFLOW);
                }
                if len == found.len || (cover.skip == 0 && cover.sums.is_empty() && cover.data.len() == len) {
                    return Ok((cover_all(cover, len), len, None));
                }
                let aside =
                    self.0.scratch.take(cover.data.len() + cover.sums.len()).map_err(|error| error.code())?;
                Ok((cover, len, Some(aside)))
            }
        }
    }
}

/// The error with `code`, and a line that says what does not fit where that is known.
fn explain(code: Code, found: Option<&Found>, place: &Place<'_>) -> Error {
    let (Some(Found { len: whole, .. }), Place::Into { at, len, into }) = (found, place) else {
        return code.into();
    };
    match (code, len) {
        (Code::BUFFER_OVERFLOW, _) => {
            let wanted = len.unwrap_or(whole.saturating_sub(*at));
            let text = format_args!("the buffer is too small: {} bytes for {wanted} ({code:?})", into.len);
            Error::new(code, text)
        }
        (Code::INVALID_PARAMS, None) => {
            let text = format_args!("the value has {whole} bytes, nothing begins at {at} ({code:?})");
            Error::new(code, text)
        }
        (Code::INVALID_PARAMS, Some(len)) => {
            let text = format_args!("the value has {whole} bytes, not {len} from {at} on ({code:?})");
            Error::new(code, text)
        }
        _ => code.into(),
    }
}

/// A read of the whole value needs no block sums: the sum of the whole is known.
fn cover_all(cover: Cover, len: u64) -> Cover {
    if cover.data.len() == len { Cover { sums: Default::default(), ..cover } } else { cover }
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

impl Reading {
    const fn has(&self, transfer: u32) -> bool {
        let (first, count) = self.transfers;
        first <= transfer && transfer < first + count
    }

    /// Scratch memory that may still be stored into is not used again.
    fn spoil(&mut self, place: &mut Place<'_>) {
        self.leases(place).for_each(Lease::spoil);
    }

    /// The scratch memory that it reads to.
    fn leases<'a>(&'a mut self, place: &'a mut Place<'_>) -> impl Iterator<Item = &'a mut Lease> {
        let owned = match place {
            Place::Owned(lease) => lease.as_mut(),
            Place::Into { .. } => None,
        };
        self.aside.iter_mut().chain(owned)
    }
}

/// Checks what was read, and copies it to its place if it was read aside.
fn finish(reading: &Reading, gets: &Gets, place: &Place<'_>) -> ReadEnd {
    let Some(found) = gets.found(reading.item) else { return ReadEnd::Failed };
    let Reading { cover, len, aside, .. } = reading;
    let data = cover.data.len();
    let at = match (aside, place) {
        (Some(aside), _) | (None, Place::Owned(Some(aside))) => aside.slice(0, data),
        (None, Place::Into { into, .. }) => Slice { len: data, ..*into },
        (None, Place::Owned(None)) => return ReadEnd::Failed,
    };
    let good = match aside {
        Some(aside) if !cover.sums.is_empty() => {
            let mut sums = vec![0; cover.sums.len() as usize];
            aside.memory().read(data, &mut sums).is_ok() && verify::are_blocks(at.span(), &sums)
        }
        _ => !verify::is_all(cover, found.len) || verify::is_whole(at.span(), found.checksum),
    };
    if !good {
        return ReadEnd::Corrupt;
    }
    if let (Some(_), Place::Into { into, .. }) = (aside, place) {
        copy(at.span().skip(cover.skip).take(*len), into.span());
    }
    ReadEnd::Good(*len)
}
