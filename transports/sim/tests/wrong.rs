//! One deliberately wrong transport for each rule: it fails its rule, and no other.

mod world;

use core::num::NonZeroU32;
use core::time::Duration;
use std::collections::HashMap;
use std::os::fd::BorrowedFd;
use std::sync::{Arc, Mutex};

use springtide_core::id::{Id, OpId, PathId, RegionId, RemoteId, TicketId};
use springtide_core::range::Extent;
use springtide_core::ticket::Ticket;
use springtide_core::time::Instant;
use springtide_hal::Block;
use springtide_transport::conformance::{RULES, Side, World, run_all};
use springtide_transport::{
    Armed, Budget, Capabilities, Completion, ControlError, Event, Exposure, Op, Status, SubmitError,
    Transport, Verb,
};
use springtide_transport_sim::{Shape, SimTransport};
use world::SimWorld;

/// A simulated end that breaks the rule of this number.
struct Wrong {
    inner: SimTransport,
    rule: usize,
    side: Side,
    /// Both ends of a world share this, across a restart too: a defect may need what no right transport knows.
    known: Arc<Mutex<Known>>,
    blocks: HashMap<RegionId, Block>,
    bounces: HashMap<RegionId, Block>,
    flying: HashMap<OpId, Op>,
    /// Completions that are made up, and those that are swallowed instead.
    made_up: Vec<Completion>,
    swallow: Vec<OpId>,
    hold: Vec<PathId>,
    asked: bool,
    waste: Vec<u8>,
    twisted: Vec<Op>,
    scratch: Vec<u8>,
}

#[derive(Default)]
struct Known {
    segment: Option<(Exposure, u64)>,
}

impl Wrong {
    fn new(inner: SimTransport, rule: usize, side: Side, known: Arc<Mutex<Known>>) -> Self {
        Self {
            inner,
            rule,
            side,
            known,
            blocks: HashMap::new(),
            bounces: HashMap::new(),
            flying: HashMap::new(),
            made_up: Vec::new(),
            swallow: Vec::new(),
            hold: Vec::new(),
            asked: true,
            waste: Vec::new(),
            twisted: Vec::with_capacity(4_096),
            scratch: vec![0; 1 << 20],
        }
    }

    /// Rule 7: a ticket that opens everything, for whoever has none that does.
    fn master_ticket(&self) -> Option<Ticket> {
        let Some((Exposure::Segment { owner, segment, key }, len)) = self.known.lock().unwrap().segment
        else {
            return None;
        };
        let extent = Extent::new(0, len)?;
        Some(key.sign(Ticket { owner, segment, extent, serial: 1_000, term: Default::default(), tag: 0 }))
    }

    /// What this end makes of an op before it submits it.
    fn twist(&mut self, op: &Op) -> Op {
        let mut op = *op;
        match self.rule {
            // Cuts what reaches outside instead of refusing it.
            5 => {
                let here = self.blocks.get(&op.local).map_or(0, Block::len);
                let there = self.known.lock().unwrap().segment.map_or(0, |(_, len)| len);
                let most = here.saturating_sub(op.at).min(there.saturating_sub(op.to));
                op.len = op.len.min(u32::try_from(most).unwrap_or(u32::MAX).max(1));
            }
            // Looks at the slot only.
            6 => {
                let current = self.blocks.keys().find(|region| region.index() == op.local.index());
                op.local = current.copied().unwrap_or(op.local);
            }
            // Helps out whoever has no ticket.
            7 if op.verb == Verb::Write && op.ticket.is_none() => {
                if let Some(ticket) = self.master_ticket() {
                    let id = TicketId::new(u32::MAX, NonZeroU32::MIN);
                    self.inner.admit(id, &ticket).unwrap();
                    op.ticket = Some(id);
                }
            }
            // Works on a copy of the memory.
            10 if self.side == Side::Initiator => {
                if let (Some(block), Some(bounce)) = (self.blocks.get(&op.local), self.bounces.get(&op.local))
                {
                    let bytes = &mut self.scratch[..op.len as usize];
                    if block.read(op.at, bytes).is_ok() {
                        bounce.write(op.at, bytes).unwrap();
                    }
                }
            }
            _ => {}
        }
        op
    }
}

impl Transport for Wrong {
    fn capabilities(&self) -> &Capabilities {
        self.inner.capabilities()
    }
    fn expose(&mut self, region: RegionId, block: &Block, exposure: Exposure) -> Result<(), ControlError> {
        let mut exposure = exposure;
        if let Exposure::Segment { .. } = exposure
            && self.side == Side::Target
        {
            let mut known = self.known.lock().unwrap();
            // Rule 13: a restarted process goes by its first life's name.
            if let (13, Some((first, _))) = (self.rule, known.segment) {
                exposure = first;
            }
            known.segment.get_or_insert((exposure, block.len()));
        }
        if self.rule == 10 && self.side == Side::Initiator {
            // Works on a copy, and so does not hold the real memory.
            let bounce = Block::from(block.to_vec());
            self.inner.expose(region, &bounce, exposure)?;
            self.bounces.insert(region, bounce);
            self.blocks.insert(region, block.clone());
            return Ok(());
        }
        self.inner.expose(region, block, exposure)?;
        if matches!(self.rule, 5 | 6 | 11) {
            self.blocks.insert(region, block.clone());
        }
        Ok(())
    }
    fn withdraw(&mut self, region: RegionId) {
        self.blocks.remove(&region);
        self.inner.withdraw(region);
    }
    fn describe(&self, region: RegionId, out: &mut Vec<u8>) -> Result<(), ControlError> {
        self.inner.describe(region, out)
    }
    fn address(&self, out: &mut Vec<u8>) {
        self.inner.address(out);
    }
    fn open(&mut self, now: Instant, path: PathId, address: &[u8]) -> Result<(), ControlError> {
        self.inner.open(now, path, address)
    }
    fn import(&mut self, path: PathId, remote: RemoteId, description: &[u8]) -> Result<(), ControlError> {
        self.inner.import(path, remote, description)
    }
    fn forget(&mut self, remote: RemoteId) {
        self.inner.forget(remote);
    }
    fn admit(&mut self, id: TicketId, ticket: &Ticket) -> Result<(), ControlError> {
        self.inner.admit(id, ticket)
    }
    fn retire(&mut self, id: TicketId) {
        self.inner.retire(id);
    }
    fn fence(
        &mut self,
        region: RegionId,
        extent: Extent,
        below: u64,
        fence: u64,
    ) -> Result<(), ControlError> {
        // Rule 8: says that the fence stands, and lets old tickets through.
        self.inner.fence(region, extent, if self.rule == 8 { 0 } else { below }, fence)
    }
    fn close(&mut self, path: PathId) {
        // Rule 16: waits for its peer first.
        if self.rule == 16 && !self.flying.is_empty() {
            self.hold.push(path);
            return;
        }
        self.inner.close(path);
    }
    fn room(&self, path: PathId) -> usize {
        match self.inner.room(path) {
            // Rule 4: counts on what will have ended by then.
            room if self.rule == 4 && room > 0 => room + 3,
            room => room,
        }
    }
    fn submit(&mut self, path: PathId, ops: &[Op]) -> Result<(), SubmitError> {
        if self.hold.contains(&path) {
            return Err(SubmitError { accepted: 0, reason: springtide_transport::Reason::PathDown });
        }
        if self.rule == 15 {
            self.waste = vec![0; 100];
        }
        let mut twisted = core::mem::take(&mut self.twisted);
        twisted.clear();
        for op in ops {
            let op = self.twist(op);
            twisted.push(op);
        }
        let result = self.inner.submit(path, &twisted);
        self.twisted = twisted;
        let accepted = result.map_or_else(|error| error.accepted, |()| ops.len());
        if matches!(self.rule, 2 | 3 | 10 | 11 | 16) {
            self.flying.extend(ops[..accepted].iter().map(|op| (op.id, *op)));
        }
        if self.rule == 3 {
            // Long ops are reported when they are on their way.
            for op in ops[..accepted].iter().filter(|op| op.len > 300_000) {
                self.made_up.push(Completion { id: op.id, bytes: op.len, status: Status::Done, code: 0 });
                self.swallow.push(op.id);
            }
        }
        match result {
            // Rule 1: takes some, and says that it took fewer.
            Err(error) if self.rule == 1 => {
                Err(SubmitError { accepted: error.accepted.saturating_sub(1), ..error })
            }
            other => other,
        }
    }
    fn cancel(&mut self, op: OpId) {
        // Rule 2: says at once that it ended, and again when it has.
        if self.rule == 2 && self.flying.contains_key(&op) {
            self.made_up.push(Completion { id: op, bytes: 0, status: Status::Flushed, code: 0 });
        }
        self.inner.cancel(op);
    }
    fn progress(&mut self, now: Instant, budget: Budget, done: &mut [Completion]) -> usize {
        // Rule 9: serves only if somebody looked after it.
        if self.rule == 9 && self.side == Side::Target && !core::mem::take(&mut self.asked) {
            return 0;
        }
        if self.rule == 15 {
            self.waste = vec![1; 100];
        }
        let budget = if self.rule == 14 { Budget { ops: u32::MAX, bytes: u64::MAX } } else { budget };
        let mut made_up = 0;
        while made_up < done.len() && !self.made_up.is_empty() {
            done[made_up] = self.made_up.remove(0);
            made_up += 1;
        }
        let rest = &mut done[made_up..];
        let count = self.inner.progress(now, budget, rest);
        let mut kept = 0;
        for i in 0..count {
            let completion = rest[i];
            let op = self.flying.remove(&completion.id);
            self.after(op, completion);
            if self.swallow.contains(&completion.id) {
                self.swallow.retain(|id| *id != completion.id);
                continue;
            }
            rest[kept] = completion;
            kept += 1;
        }
        if self.flying.is_empty() {
            for path in core::mem::take(&mut self.hold) {
                self.inner.close(path);
            }
        }
        made_up + kept
    }
    fn event(&mut self) -> Option<Event> {
        self.asked = true;
        self.inner.event()
    }
    fn wake_fd(&self) -> Option<BorrowedFd<'_>> {
        None
    }
    fn arm(&mut self) -> Armed {
        let armed = self.inner.arm();
        if self.rule == 12 { Armed::Asleep } else { armed }
    }
}

impl Wrong {
    /// What this end does when an op has ended.
    fn after(&mut self, op: Option<Op>, completion: Completion) {
        let Some(op) = op else { return };
        let block = self.blocks.get(&op.local);
        match (self.rule, op.verb, block) {
            // Rule 11: clears a word too many.
            (11, Verb::Read, Some(block)) if completion.status == Status::Flushed => {
                let _ = block.write(op.at + u64::from(op.len), &[0xee; 8]);
            }
            (10, Verb::Read, Some(block)) if completion.status == Status::Done => {
                let bytes = &mut self.scratch[..op.len as usize];
                self.bounces[&op.local].read(op.at, bytes).unwrap();
                block.write(op.at, bytes).unwrap();
            }
            _ => {}
        }
    }
}

fn wrong_world(rule: usize) -> SimWorld {
    let known = Arc::new(Mutex::new(Known::default()));
    let shape = Shape { latency: Duration::from_micros(15), ..Shape::default() };
    SimWorld::new(shape, Box::new(move |end, side| Box::new(Wrong::new(end, rule, side, known.clone()))))
}

#[test]
fn each_defect_breaks_its_own_rule_and_no_other() {
    let mut table = Vec::new();
    for rule in 1..=RULES.len() {
        let mut factory = || -> Box<dyn World> { Box::new(wrong_world(rule)) };
        let broken: Vec<u8> = run_all(&mut factory).iter().map(|violation| violation.rule).collect();
        table.push((rule, broken));
    }
    let want: Vec<_> = (1..=RULES.len()).map(|rule| (rule, vec![rule as u8])).collect();
    assert_eq!(table, want);
}

#[test]
fn without_a_defect_it_keeps_them_all() {
    let mut factory = || -> Box<dyn World> { Box::new(wrong_world(0)) };
    assert_eq!(run_all(&mut factory), []);
}
