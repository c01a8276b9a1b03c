//! Serving: what an accepted connection asks for, and the answers.

use std::collections::VecDeque;

use springtide_core::id::{Incarnation, RegionId};
use springtide_core::range::Extent;
use springtide_core::time::Instant;
use springtide_core::transfer::{Status, Verb};

use crate::inbox::Landing;
use crate::memory::Regions;
use crate::outbox::Outbox;
use crate::stream::{Allowance, Broken, Stop, Stream};
use crate::wire::{GROUP, HELLO, Hello, Reply, Request, code};
use crate::{MAX_OP, QUEUED_BYTES, QUEUED_PIECES};

/// The serving side of one connection.
#[derive(Debug)]
pub(crate) struct Target {
    owner: Incarnation,
    greeted: bool,
    /// The number of the next operation to come.
    next: u64,
    /// Writes whose bytes are due: one for each landing of the stream, in the same order.
    stores: VecDeque<Store>,
    /// Operations that ended and were not answered.
    ended: Option<Reply>,
}

#[derive(Debug)]
struct Store {
    number: u64,
    region: Option<RegionId>,
    extent: Extent,
    serial: u64,
    verdict: Verdict,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Verdict {
    Lands,
    /// No byte lands; holds the code.
    Refused(i32),
    /// A fence came when so many bytes had landed.
    Cut(u64),
}

impl Target {
    pub(crate) fn new(owner: Incarnation) -> Self {
        Self { owner, greeted: false, next: 0, stores: VecDeque::with_capacity(GROUP), ended: None }
    }

    /// Whether the peer has said who it is and whom it means.
    pub(crate) const fn is_greeted(&self) -> bool {
        self.greeted
    }

    /// Does what can be done now.
    pub(crate) fn pump(
        &mut self,
        stream: &mut Stream,
        regions: &Regions,
        now: Instant,
        scratch: &mut [u8],
        allowance: &mut Allowance,
    ) -> Result<(), Broken> {
        loop {
            stream.stop = self.decode(stream, regions, allowance)?;
            self.answer(&mut stream.outbox);
            stream.flush(now, allowance)?;
            match stream.stop {
                Stop::Choked if !choked(stream) => {}
                Stop::Choked | Stop::Spent => return Ok(()),
                Stop::Starved if allowance.is_spent() || !stream.is_readable() => return Ok(()),
                Stop::Starved => {
                    let landed = stream.receive(now, scratch, allowance)?;
                    self.landed(landed, &mut stream.outbox);
                }
            }
        }
    }

    /// Takes in what has arrived.
    fn decode(
        &mut self,
        stream: &mut Stream,
        regions: &Regions,
        allowance: &mut Allowance,
    ) -> Result<Stop, Broken> {
        if !self.greeted && !self.greet(stream)? {
            return Ok(Stop::Starved);
        }
        while stream.inbox.landings().is_empty() {
            if choked(stream) {
                return Ok(Stop::Choked);
            }
            if allowance.is_spent() {
                return Ok(Stop::Spent);
            }
            let (unread, landings) = stream.inbox.parts();
            let Some((request, len)) = Request::decode(unread, MAX_OP)? else { break };
            if request.first != self.next {
                return Err(Broken::Protocol);
            }
            allowance.did(request.count);
            match request.verb {
                Verb::Read => self.read(&request, &mut stream.outbox, regions),
                Verb::Write => self.write(&request, landings, regions),
            }
            stream.inbox.consume(len);
            let landed = stream.inbox.settle();
            self.landed(landed, &mut stream.outbox);
        }
        Ok(Stop::Starved)
    }

    /// Takes the peer's hello and sends ours. A hello that means another life of this process is answered, so that
    /// the peer sees who we are, and nothing else is.
    fn greet(&mut self, stream: &mut Stream) -> Result<bool, Broken> {
        let Some(hello) = Hello::decode(stream.inbox.unread())? else { return Ok(false) };
        stream.inbox.consume(HELLO);
        stream.outbox.head(&Hello { from: self.owner, to: hello.from }.encode());
        self.greeted = true;
        if hello.to == self.owner { Ok(true) } else { Err(Broken::Protocol) }
    }

    /// Queues the bytes of a request's reads: one reply for each run of items that are alike.
    fn read(&mut self, request: &Request<'_>, outbox: &mut Outbox, regions: &Regions) {
        let bytes = |index| {
            let item = request.item(index);
            regions.find(item.region?)?.piece(item.at, item.len)
        };
        let mut index = 0;
        while index < request.count {
            let start = index;
            let mut sum = 0;
            while let Some((_, _, len)) = (index < request.count).then(|| bytes(index)).flatten() {
                sum += len;
                index += 1;
            }
            let first = self.next + start as u64;
            if index == start {
                self.end(Reply::refused(first, code::NO_MEMORY), outbox);
                index += 1;
                continue;
            }
            self.answer(outbox);
            let count = (index - start) as u16;
            outbox.head(&Reply { status: Status::Done, count, code: 0, first, bytes: sum }.encode());
            for (block, at, len) in (start..index).filter_map(bytes) {
                outbox.memory(block.clone(), at, len);
            }
        }
        self.next += request.count as u64;
    }

    /// Judges a request's writes and makes their bytes due.
    fn write(&mut self, request: &Request<'_>, landings: &mut VecDeque<Landing>, regions: &Regions) {
        for index in 0..request.count {
            let item = request.item(index);
            let permission = request.permission(index);
            let len = u64::from(item.len);
            let extent = Extent::new(item.at, len).unwrap_or_default();
            let place = match item.region.and_then(|region| regions.find(region)) {
                Some(region) => region.admit(self.owner, permission, item.at, item.len),
                None => Err(code::NO_MEMORY),
            };
            let (to, verdict) = match place {
                Ok(block) => (Some((block.clone(), item.at)), Verdict::Lands),
                Err(code) => (None, Verdict::Refused(code)),
            };
            landings.push_back(Landing { to, left: len });
            let serial = permission.map_or(0, |permission| permission.serial);
            let number = self.next;
            self.stores.push_back(Store { number, region: item.region, extent, serial, verdict });
            self.next += 1;
        }
    }

    /// Ends the first `count` writes, whose bytes are all here.
    fn landed(&mut self, count: usize, outbox: &mut Outbox) {
        for _ in 0..count {
            let Some(store) = self.stores.pop_front() else { return };
            let reply = match store.verdict {
                Verdict::Lands => Reply::done(store.number),
                Verdict::Refused(code) => Reply::refused(store.number, code),
                Verdict::Cut(bytes) => {
                    Reply { status: Status::Short, bytes, ..Reply::refused(store.number, code::FENCED) }
                }
            };
            self.end(reply, outbox);
        }
    }

    /// Adds one operation's end to the reply in the making, or begins another one.
    fn end(&mut self, reply: Reply, outbox: &mut Outbox) {
        match &mut self.ended {
            Some(last) if last.joins(&reply) => last.count += 1,
            _ => {
                self.answer(outbox);
                self.ended = Some(reply);
            }
        }
    }

    /// Queues the reply in the making.
    fn answer(&mut self, outbox: &mut Outbox) {
        if let Some(reply) = self.ended.take() {
            outbox.head(&reply.encode());
        }
    }

    /// Turns away what is still due of stores into `extent` of `region` with a serial below `below`: from now on
    /// none of their bytes lands.
    pub(crate) fn cut(
        &mut self,
        landings: &mut VecDeque<Landing>,
        region: RegionId,
        extent: Extent,
        below: u64,
        code: i32,
    ) {
        for (store, landing) in self.stores.iter_mut().zip(landings) {
            let meant = store.region == Some(region) && store.serial < below;
            if meant && store.extent.overlaps(extent) && store.verdict == Verdict::Lands {
                let landed = store.extent.len() - landing.left;
                store.verdict = if landed == 0 { Verdict::Refused(code) } else { Verdict::Cut(landed) };
                landing.to = None;
            }
        }
    }
}

/// Whether so much waits to be sent that no further request is taken: the peer reads too slowly.
fn choked(stream: &Stream) -> bool {
    stream.outbox.bytes() >= QUEUED_BYTES || stream.outbox.pieces() >= QUEUED_PIECES
}
