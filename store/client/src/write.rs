//! One batch of writes, from the grant to its end.

use core::time::Duration;

use springtide_core::checksum::{Checksum, stored_len};
use springtide_core::client::patience::{Share, attempt};
use springtide_core::client::{self, Ending, NextPut, Puts, WriteEnd};
use springtide_core::error::Code;
use springtide_core::id::TicketId;
use springtide_core::key::Key;
use springtide_core::ticket::Ticket;
use springtide_core::time::Instant;
use springtide_core::transfer::{Failure, Quiet, Transfer, Verb};
use springtide_core::wire::codec;
use springtide_core::wire::message::{
    self, Abandoned, Finished, Grant, Granted, Options, Publish, Refusal, Wanted,
};
use springtide_driver::Runtime;
use springtide_rpc::Call;

use crate::ahead::{self, Extent};
use crate::memory::{Lease, Slice};
use crate::parts::{FOREIGN, Parts};
use crate::routes::Route;
use crate::tally::CallKind;
use crate::{Checksums, Client, Error, PutOptions, verify};

/// One item's bytes.
struct Source<'a> {
    key: &'a [u8],
    value: Parts<'a>,
    /// Why it cannot be written, if so.
    unusable: Option<&'static str>,
    checksum: Checksum,
    /// Where its block sums stand in the batch's trailer memory.
    trailer: (u64, u64),
}

/// One replica's write under way.
struct Writing {
    item: usize,
    replica: usize,
    segment: springtide_core::id::SegmentId,
    route: Route,
    ticket: TicketId,
    transfers: (u32, u32),
}

impl<R: Runtime> Client<R> {
    /// Stores values; `None` for one that holds more bytes than can be counted. Also says whether all writes have ended.
    pub(crate) async fn write<'a>(
        &self,
        items: impl ExactSizeIterator<Item = (&'a [u8], Option<Parts<'a>>)>,
        options: &PutOptions<'_>,
        deadline: Instant,
    ) -> (Vec<Result<(), Error>>, Quiet) {
        let count = items.len();
        if count == 0 {
            return (Vec::new(), Quiet::Yes);
        }
        let begun = self.0.runtime.now();
        let refuse = |error: Error| ((0..count).map(|_| Err(error.clone())).collect(), Quiet::Yes);
        let options = match options.on_the_wire(self.0.checksums) {
            Ok(options) => options,
            Err(error) => return refuse(error),
        };
        let mut trailer = Vec::new();
        let sources: Vec<Source<'_>> = items.map(|item| self.source(item, &mut trailer)).collect();
        let trailer = match self.trailer_memory(&trailer) {
            Ok(trailer) => trailer,
            Err(error) => return refuse(error),
        };
        let mut batch = Batch { sources, trailer, options, quiet: Quiet::Yes, ahead: None };
        let mut puts = Puts::new(count);
        for (item, source) in batch.sources.iter().enumerate() {
            if Key::new(source.key).is_err() {
                puts.give_up(item, Refusal::new(Code::INVALID_KEY));
            } else if source.unusable.is_some() {
                puts.give_up(item, Refusal::new(Code::INVALID_PARAMS));
            }
        }
        self.use_ahead(&mut puts, &mut batch, deadline);
        loop {
            match puts.next() {
                NextPut::Start => self.start(&mut puts, &batch, deadline).await,
                NextPut::Write => self.move_out(&mut puts, &mut batch, deadline).await,
                NextPut::End => self.end(&mut puts, &batch, deadline).await,
                NextPut::Abort => self.abort(&mut puts, deadline).await,
                NextPut::Done => break,
            }
        }
        if let (Quiet::No, Some(trailer)) = (batch.quiet, &mut batch.trailer) {
            trailer.spoil();
        }
        self.keep_ahead(&puts, batch.ahead.take());
        let result = |item| puts.result(item).unwrap_or(Err(Refusal::new(Code::INTERNAL_ERROR)));
        let explained = |(item, source): (usize, &Source<'_>)| match (result(item), source.unusable) {
            (Err(Refusal { code, .. }), Some(why)) if code == Code::INVALID_PARAMS => {
                Err(Error::new(code, format_args!("{why} ({code:?})")))
            }
            (result, _) => result.map_err(Error::from),
        };
        let results: Vec<_> = batch.sources.iter().enumerate().map(explained).collect();
        let stored = results.iter().zip(&batch.sources).filter(|(result, _)| result.is_ok());
        let (stored, bytes) = stored.fold((0, 0u64), |(count, bytes), (_, source)| {
            (count + 1, bytes.saturating_add(source.value.len()))
        });
        let time = (begun, self.0.runtime.now());
        self.0.tallies.count(CallKind::Put, time, [results.len(), results.len() - stored], bytes);
        (results, batch.quiet)
    }

    /// Takes an extent that was granted ahead for the only item, if it is an ordinary put.
    fn use_ahead(&self, puts: &mut Puts, batch: &mut Batch<'_>, deadline: Instant) {
        let (Some(len), true) = (batch.only_len(), batch.options == Options::default()) else { return };
        if len == 0 || len > ahead::LONGEST || puts.next() != NextPut::Start {
            return;
        }
        let now = self.0.runtime.now();
        let extent = self.0.ahead.take(now, len, &self.0.master, deadline);
        self.give_back(self.0.ahead.stale(now));
        if let Some(extent) = extent {
            puts.use_reserved(0, extent.grant.clone(), extent.term, extent.until);
            batch.ahead = Some(extent);
        }
    }

    /// An extent whose key was there already is as good as before.
    fn keep_ahead(&self, puts: &Puts, extent: Option<Extent>) {
        let Some(extent) = extent else { return };
        let exists =
            matches!(puts.result(0), Some(Err(refusal)) if refusal.code == Code::OBJECT_ALREADY_EXISTS);
        let same = puts.grant(0).is_some_and(|grant| grant.object == extent.grant.object);
        if exists && same {
            self.0.ahead.put_back(extent);
        }
    }

    fn source<'a>(&self, item: (&'a [u8], Option<Parts<'a>>), trailer: &mut Vec<u8>) -> Source<'a> {
        let (key, value) = item;
        let start = trailer.len() as u64;
        let (value, unusable) = match value {
            None => (Parts::NONE, Some("the parts hold more bytes than can be counted")),
            Some(value) if !value.belong_to(&self.0.lane) => (Parts::NONE, Some(FOREIGN)),
            Some(value) => (value, None),
        };
        let checksum = match self.0.checksums {
            Checksums::Verify => verify::sum(&value, trailer),
            Checksums::Off => Checksum::None,
        };
        Source { key, value, unusable, checksum, trailer: (start, trailer.len() as u64 - start) }
    }

    fn trailer_memory(&self, trailer: &[u8]) -> Result<Option<Lease>, Error> {
        if trailer.is_empty() {
            return Ok(None);
        }
        let lease = self.0.scratch.take(trailer.len() as u64)?;
        lease.memory().write(0, trailer)?;
        Ok(Some(lease))
    }

    async fn start(&self, puts: &mut Puts, batch: &Batch<'_>, deadline: Instant) {
        let items: Vec<usize> = puts.starting().collect();
        let call = self.start_again(deadline, |body| {
            codec::put(body, &batch.options);
            for &item in &items {
                let Source { key, value, .. } = &batch.sources[item];
                codec::put(body, &Wanted { key, len: value.len() });
            }
        });
        let (asked, reply) = match call.await {
            Ok(answered) => answered,
            Err(error) => return give_up(puts, &items, error.code()),
        };
        let Ok((head, tail)) = codec::split::<Granted, Result<Grant, Refusal>>(&reply.body) else {
            return give_up(puts, &items, Code::INVALID_VERSION);
        };
        let write = Duration::from_millis(head.write_ms.into());
        let mut answered = 0;
        for (&item, answer) in items.iter().zip(tail) {
            let answer = answer.unwrap_or(Err(Refusal::new(Code::INVALID_VERSION)));
            puts.handle_grant(item, asked, head.term, write, answer);
            answered += 1;
        }
        give_up(puts, &items[answered..], Code::INVALID_VERSION);
    }

    /// Writes every replica of every item that was granted, in one batch.
    async fn move_out(&self, puts: &mut Puts, batch: &mut Batch<'_>, deadline: Instant) {
        let mut transfers = Vec::new();
        let mut under_way: Vec<Writing> = Vec::new();
        let mut ended = Vec::new();
        let mut until = deadline;
        let mut unreachable = Vec::new();
        for write in puts.writing() {
            let source = &batch.sources[write.item];
            let len = source.value.len();
            let stored = if source.trailer.1 > 0 { stored_len(len) } else { Some(len) };
            if source.value.is_empty() {
                ended.push((write.item, write.replica, WriteEnd::Good));
                continue;
            }
            let fits = stored.is_some_and(|stored| stored <= write.to.extent.len());
            if !fits || unreachable.contains(&write.to.segment) {
                ended.push((write.item, write.replica, WriteEnd::Failed));
                continue;
            }
            let patience = attempt(self.0.runtime.now(), deadline, 0, Share::Third);
            let Ok(route) = self.0.routes.find(&self.0.master, write.to.segment, patience).await else {
                unreachable.push(write.to.segment);
                ended.push((write.item, write.replica, WriteEnd::Failed));
                continue;
            };
            let message::Placement { segment, extent, serial, tag } = write.to;
            let ticket = Ticket { owner: route.owner, segment, extent, serial, term: write.term, tag };
            let admitted = self.0.lane.with(self.0.runtime.now(), |lane, _| lane.admit(&ticket));
            let Ok(ticket) = admitted else {
                ended.push((write.item, write.replica, WriteEnd::Failed));
                continue;
            };
            until = until.min(write.until);
            let first = transfers.len() as u32;
            let sums = match (&batch.trailer, source.trailer) {
                (Some(trailer), (at, len @ 1..)) => Some(trailer.slice(at, len)),
                _ => None,
            };
            let mut to = extent.offset();
            for from in source.value.slices().chain(sums) {
                transfers.push(write_transfer(route, ticket, from, to));
                to = to.saturating_add(from.len);
            }
            let count = transfers.len() as u32 - first;
            let (item, replica) = (write.item, write.replica);
            under_way.push(Writing { item, replica, segment, route, ticket, transfers: (first, count) });
        }
        let bytes = transfers.iter().fold(0u64, |sum, transfer| sum.saturating_add(transfer.len));
        until = until.min(attempt(self.0.runtime.now(), deadline, bytes, Share::Third));
        let moved = self.0.lane.transfer(&transfers, until).await;
        let now = self.0.runtime.now();
        self.0.lane.with(now, |lane, _| under_way.iter().for_each(|writing| lane.retire(writing.ticket)));
        for writing in &under_way {
            let end = match &moved {
                Ok(moved) => {
                    let (first, count) = writing.transfers;
                    let failed = moved.failed.iter().find(|(at, _)| first <= *at && *at < first + count);
                    match failed {
                        None => WriteEnd::Good,
                        Some((_, failure)) => self.write_failed(writing, *failure, moved.outcome.quiet()),
                    }
                }
                Err(_) => WriteEnd::Failed,
            };
            ended.push((writing.item, writing.replica, end));
        }
        if let Ok(moved) = &moved
            && moved.outcome.quiet() == Quiet::No
        {
            batch.quiet = Quiet::No;
        }
        for (item, replica, end) in ended {
            puts.handle_write(now, item, replica, end);
        }
        if deadline.reached(now) {
            let late: Vec<usize> = puts.aborting().map(|(item, _)| item).collect();
            self.drop_puts(puts, &late, Code::RPC_TIMEOUT);
        }
    }

    fn write_failed(&self, writing: &Writing, failure: Failure, quiet: Quiet) -> WriteEnd {
        tracing::debug!(segment = %writing.segment, %failure, "a write failed");
        self.0.routes.forget(writing.segment, writing.route);
        WriteEnd::failed(failure, quiet)
    }

    /// Ends items with `code` and gives their extents back.
    fn drop_puts(&self, puts: &mut Puts, items: &[usize], code: Code) {
        self.give_back(items.iter().filter_map(|&item| puts.give_up(item, Refusal::new(code))).collect());
    }

    /// Tells the master, without waiting for it, to take extents back.
    pub(crate) fn give_back(&self, abandoned: Vec<Abandoned>) {
        if abandoned.is_empty() {
            return;
        }
        let call = self.abandon(&abandoned);
        drop(self.0.runtime.spawn(async move {
            // An abort that is lost is made good by the discard time-out.
            let _ = call.await;
        }));
    }

    /// Asks the master to take extents back.
    pub(crate) fn abandon(&self, abandoned: &[Abandoned]) -> Call {
        let deadline = self.0.runtime.now() + Duration::from_secs(1);
        self.0.master.call(message::PUT_ABORT, deadline, |body| {
            codec::put(body, &());
            abandoned.iter().for_each(|item| codec::put(body, item));
        })
    }

    async fn end(&self, puts: &mut Puts, batch: &Batch<'_>, deadline: Instant) {
        let (mut started, mut ahead) = (Vec::new(), Vec::new());
        for Ending { item, object, failed, granted } in puts.ending() {
            let Source { key, value, checksum, .. } = &batch.sources[item];
            let (checksum, len) = (*checksum, value.len());
            match granted {
                client::Granted::Ahead => ahead.push((item, Publish { object, key, len, checksum, failed })),
                client::Granted::ByStart => started.push((item, Finished { object, checksum, failed })),
            }
        }
        self.finish(puts, message::PUT_END, &started, deadline).await;
        self.finish(puts, message::PUBLISH, &ahead, deadline).await;
    }

    async fn finish<T: serde::Serialize>(
        &self,
        puts: &mut Puts,
        method: springtide_core::wire::frame::Method,
        items: &[(usize, T)],
        deadline: Instant,
    ) {
        if items.is_empty() {
            return;
        }
        let call = self.call_again(method, deadline, |body| {
            codec::put(body, &());
            items.iter().for_each(|(_, item)| codec::put(body, item));
        });
        let all: Vec<usize> = items.iter().map(|(item, _)| *item).collect();
        let reply = match call.await {
            Ok(reply) => reply,
            // The master may have heard it, or not: the put is undecided, and said to have failed.
            Err(error) => return give_up(puts, &all, error.code()),
        };
        let Ok(((), tail)) = codec::split::<(), Result<(), Refusal>>(&reply.body) else {
            return give_up(puts, &all, Code::INVALID_VERSION);
        };
        let mut answered = 0;
        for (&item, answer) in all.iter().zip(tail) {
            puts.handle_ended(item, answer.unwrap_or(Err(Refusal::new(Code::INVALID_VERSION))));
            answered += 1;
        }
        give_up(puts, &all[answered..], Code::INVALID_VERSION);
    }

    async fn abort(&self, puts: &mut Puts, deadline: Instant) {
        let items: Vec<(usize, Abandoned)> = puts.aborting().collect();
        let call = self.0.master.call(message::PUT_ABORT, deadline, |body| {
            codec::put(body, &());
            items.iter().for_each(|(_, item)| codec::put(body, item));
        });
        // Whether or not it was heard: what is lost here, the discard time-out makes good.
        let _ = call.await;
        items.iter().for_each(|(item, _)| puts.handle_aborted(*item));
    }
}

/// What all stages of one batch look at.
struct Batch<'a> {
    sources: Vec<Source<'a>>,
    trailer: Option<Lease>,
    options: Options<'a>,
    quiet: Quiet,
    /// The extent granted ahead that the only item uses.
    ahead: Option<Extent>,
}

impl Batch<'_> {
    /// The length of the only item's value.
    fn only_len(&self) -> Option<u64> {
        match &self.sources[..] {
            [only] => Some(only.value.len()),
            _ => None,
        }
    }
}

fn give_up(puts: &mut Puts, items: &[usize], code: Code) {
    for &item in items {
        puts.give_up(item, Refusal::new(code));
    }
}

fn write_transfer(route: Route, ticket: TicketId, from: Slice<'_>, to: u64) -> Transfer {
    Transfer {
        verb: Verb::Write,
        local: from.region(),
        at: from.at,
        target: route.target,
        to,
        ticket: Some(ticket),
        len: from.len,
    }
}
