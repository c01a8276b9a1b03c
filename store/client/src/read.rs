//! One batch of reads, from the question to the checked bytes.

use core::time::Duration;

use springtide_core::client::patience::{Share, attempt};
use springtide_core::client::{Cover, Gets, NextGet, Read, ReadEnd, cover};
use springtide_core::error::Code;
use springtide_core::id::SegmentId;
use springtide_core::time::Instant;
use springtide_core::transfer::{Failure, Quiet};
use springtide_core::wire::codec;
use springtide_core::wire::message::{self, Found, Leased, Location, Refusal};
use springtide_driver::Runtime;

use crate::memory::Lease;
use crate::tally::CallKind;
use crate::trip::{Aside, Place, Reading, Trip, finish, follow};
use crate::{Checksums, Client, Error, same};

/// How many reads before it are looked at for one that a read can share.
const NEAR: usize = 64;

impl<R: Runtime> Client<R> {
    /// Reads and counts a batch.
    pub(crate) async fn read(
        &self,
        keys: &[&[u8]],
        places: &mut [Place<'_>],
        deadline: Instant,
    ) -> Vec<Result<u64, Error>> {
        if keys.is_empty() {
            return Vec::new();
        }
        let begun = self.0.runtime.now();
        let results = self.read_all(keys, places, deadline).await;
        let bytes = results.iter().flatten().fold(0u64, |sum, len| sum.saturating_add(*len));
        let failed = results.iter().filter(|result| result.is_err()).count();
        let time = (begun, self.0.runtime.now());
        self.0.tallies.count(CallKind::Get, time, [results.len(), failed], bytes);
        results
    }

    async fn read_all(
        &self,
        keys: &[&[u8]],
        places: &mut [Place<'_>],
        deadline: Instant,
    ) -> Vec<Result<u64, Error>> {
        let mut gets = Gets::new(keys.len());
        for (item, first) in same::firsts(keys).into_iter().flatten().enumerate() {
            if first != item {
                gets.same(item, first);
            }
        }
        for (item, place) in places.iter_mut().enumerate() {
            place.check(&self.0.lane);
            if let Place::Unusable(_) = place {
                gets.give_up(item, Code::INVALID_PARAMS);
            }
        }
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
        let mut ends: Vec<ReadEnd> = Vec::with_capacity(under_way.len());
        for at in 0..under_way.len() {
            let reading = &mut under_way[at];
            reading.leases(&mut places[reading.item]).for_each(Lease::land);
            let place = &mut places[reading.item];
            let end = match (&moved, &reading.aside) {
                (_, &Aside::As(other)) => follow(&under_way[at], ends[other], &under_way[other], place),
                (Err(error), _) => ReadEnd::Refused(error.code()),
                (Ok(moved), _) => {
                    let failure =
                        moved.failed.iter().find(|(at, _)| reading.has(*at)).map(|(_, failure)| *failure);
                    if moved.outcome.quiet() == Quiet::No && failure.is_some() {
                        reading.spoil(place);
                    }
                    match failure {
                        Some(failure) => self.failed(reading, failure, deadline.reached(now)),
                        None => finish(reading, gets, place),
                    }
                }
            };
            ends.push(end);
            ended.push((under_way[at].item, end));
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
            let Plan { cover, len, straight } = match self.plan(read.found, &mut places[item]) {
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
            let aside = match straight {
                Straight::Yes => Ok(Aside::No),
                Straight::No => self.aside(&trip.under_way, gets, &read, cover),
            };
            let aside = match aside {
                Ok(aside) => aside,
                Err(error) => {
                    trip.ended.push((item, ReadEnd::Refused(error.code())));
                    continue;
                }
            };
            trip.alternatives = trip.alternatives.max(read.others);
            let reading = Reading { item, from: read.from, route, cover, len, aside, transfers: (0, 0) };
            trip.add(reading, &places[item]);
        }
        trip
    }

    /// Memory aside for `cover`, or another read of it that is under way (S3A-112).
    fn aside(
        &self,
        under_way: &[Reading],
        gets: &Gets,
        read: &Read<'_>,
        cover: Cover,
    ) -> Result<Aside, Error> {
        let same = |reading: &Reading| {
            let object = gets.found(reading.item).map(|found| found.object);
            reading.aside.is_own()
                && (reading.cover, reading.from) == (cover, read.from)
                && object == Some(read.found.object)
        };
        let near = under_way.iter().enumerate().rev().take(NEAR);
        match near.into_iter().find(|(_, reading)| same(reading)) {
            Some((other, _)) => Ok(Aside::As(other)),
            None => self.0.scratch.take(cover.data.len() + cover.sums.len()).map(Aside::Own),
        }
    }

    /// How long an attempt to move `bytes` may take where as many `alternatives` are left.
    fn until(&self, deadline: Instant, bytes: u64, alternatives: u32) -> Instant {
        match alternatives {
            0 => deadline,
            _ => attempt(self.0.runtime.now(), deadline, bytes, Share::Eighth),
        }
    }

    fn failed(&self, reading: &Reading, failure: Failure, too_late: bool) -> ReadEnd {
        tracing::debug!(segment = %reading.from.segment, %failure, "a read failed");
        if too_late {
            return ReadEnd::Refused(Code::RPC_TIMEOUT);
        }
        self.0.routes.forget(reading.from.segment, reading.route);
        ReadEnd::Failed
    }

    /// Which bytes to read for an item, how many of them are wanted, and whether they go straight to their place.
    fn plan(&self, found: &Found, place: &mut Place<'_>) -> Result<Plan, Code> {
        let checksum = match self.0.checksums {
            Checksums::Verify => found.checksum,
            Checksums::Off => springtide_core::checksum::Checksum::None,
        };
        match place {
            Place::Unusable(_) => Err(Code::INVALID_PARAMS),
            Place::Owned { room: Some(room), .. } if *room < found.len => Err(Code::INVALID_PARAMS),
            Place::Owned { lease, .. } => {
                let cover = cover(found.len, checksum, 0, found.len).ok_or(Code::INVALID_REPLICA)?;
                *lease = Some(self.0.scratch.take(found.len).map_err(|error| error.code())?);
                let cover = Cover { sums: Default::default(), ..cover_all(cover, found.len) };
                Ok(Plan { cover, len: found.len, straight: Straight::Yes })
            }
            Place::Into { at, len, into } => {
                let rest = found.len.checked_sub(*at).ok_or(Code::INVALID_PARAMS)?;
                let len = len.unwrap_or(rest);
                let cover = cover(found.len, checksum, *at, len).ok_or(Code::INVALID_PARAMS)?;
                if len > into.len() {
                    return Err(if into.is_list() { Code::INVALID_PARAMS } else { Code::BUFFER_OVERFLOW });
                }
                if len == found.len || (cover.skip == 0 && cover.sums.is_empty() && cover.data.len() == len) {
                    return Ok(Plan { cover: cover_all(cover, len), len, straight: Straight::Yes });
                }
                Ok(Plan { cover, len, straight: Straight::No })
            }
        }
    }
}

/// What to read for one item.
struct Plan {
    cover: Cover,
    /// How many bytes are wanted of the cover.
    len: u64,
    straight: Straight,
}

/// Whether bytes go straight to their place, or aside first, to be checked and cut.
enum Straight {
    Yes,
    No,
}

/// The error with `code`, and a line that says what does not fit where that is known.
fn explain(code: Code, found: Option<&Found>, place: &Place<'_>) -> Error {
    let too_small = |held: u64, wanted: u64| {
        Error::new(code, format_args!("the parts hold {held} bytes, the value has {wanted} ({code:?})"))
    };
    match (code, place, found) {
        (Code::INVALID_PARAMS, Place::Unusable(why), _) => Error::new(code, format_args!("{why} ({code:?})")),
        (Code::INVALID_PARAMS, Place::Owned { room: Some(room), .. }, Some(found)) if *room < found.len => {
            too_small(*room, found.len)
        }
        (Code::INVALID_PARAMS, Place::Into { at: 0, len: None, into }, Some(found))
            if into.len() < found.len =>
        {
            too_small(into.len(), found.len)
        }
        (Code::BUFFER_OVERFLOW, Place::Into { at, len, into }, Some(found)) => {
            let wanted = len.unwrap_or(found.len.saturating_sub(*at));
            let text = format_args!("the buffer is too small: {} bytes for {wanted} ({code:?})", into.len());
            Error::new(code, text)
        }
        (Code::INVALID_PARAMS, Place::Into { at, len: None, .. }, Some(Found { len: whole, .. })) => {
            let text = format_args!("the value has {whole} bytes, nothing begins at {at} ({code:?})");
            Error::new(code, text)
        }
        (Code::INVALID_PARAMS, Place::Into { at, len: Some(len), .. }, Some(Found { len: whole, .. })) => {
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
