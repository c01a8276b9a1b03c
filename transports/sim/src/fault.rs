//! Makes another transport misbehave, by a seed.

use core::time::Duration;
use std::collections::{HashMap, VecDeque};
use std::os::fd::BorrowedFd;

use springtide_core::id::{OpId, PathId, RegionId, RemoteId, TicketId};
use springtide_core::range::Extent;
use springtide_core::rng::Rng;
use springtide_core::ticket::Ticket;
use springtide_core::time::{Instant, nanos};
use springtide_hal::Block;
use springtide_transport::{
    Armed, Budget, Capabilities, Completion, ControlError, DownReason, Event, Exposure, Op, Reason, Status,
    SubmitError, Transport,
};

/// What goes wrong, and how often. Shares are in parts per million; the default is that nothing does.
#[derive(Clone, Copy, Debug, Default)]
pub struct Faults {
    /// Submits that take only some of their ops, although there was room (against rule 4, on purpose).
    pub refuse: u32,
    /// Ops that end as `Flushed` or `Short` although they were served.
    pub fail: u32,
    /// Ops that are reported as `Lost` while they are under way.
    pub lose: u32,
    /// Completions that come late, by up to `delay_by`.
    pub delay: u32,
    /// How late at most.
    pub delay_by: Duration,
    /// Whether completions that are there come in any order.
    pub order: Order,
    /// Paths go down after being up this long, and cannot be opened for as long again; zero for never.
    pub flap: Duration,
    /// Every path goes down after this many ops; zero for never.
    pub cut_after: u64,
}

/// In which order completions come.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Order {
    /// As the transport gives them.
    #[default]
    Kept,
    /// In any.
    Shuffled,
}

/// A transport that does what `inner` does, except for its [`Faults`]. The same seed and calls give the same faults.
#[derive(Debug)]
pub struct Fault<T> {
    inner: T,
    faults: Faults,
    rng: Rng,
    now: Instant,
    paths: Vec<Path>,
    /// Completions that are not given out yet.
    held: VecDeque<Held>,
    /// Ops that were reported as lost: their real end is swallowed.
    lost: Vec<OpId>,
    /// Which path each op in flight is on.
    flying: Vec<Flying>,
    /// The memory of regions, and of lost ops until their path is closed.
    blocks: HashMap<RegionId, Block>,
    kept: Vec<(PathId, Block)>,
    events: VecDeque<Event>,
}

#[derive(Debug)]
struct Path {
    id: PathId,
    state: PathState,
    /// When it comes up or goes down next; `None` until the time is known.
    turn: Option<Instant>,
    ops: u64,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum PathState {
    Live,
    /// We closed it, for this reason; its event waits for its last completion.
    Broken,
    /// Cannot be opened before its turn.
    Resting,
}

#[derive(Clone, Copy, Debug)]
struct Held {
    completion: Completion,
    path: PathId,
    until: Instant,
}

#[derive(Clone, Copy, Debug)]
struct Flying {
    op: OpId,
    path: PathId,
    region: RegionId,
}

const MILLION: u64 = 1_000_000;
/// Room for ops in flight before anything is allocated.
const ROOM: usize = 4_096;

impl<T: Transport> Fault<T> {
    /// `inner` with these faults.
    pub fn new(inner: T, seed: u64, faults: Faults) -> Self {
        Self {
            inner,
            faults,
            rng: Rng::new(seed),
            now: Instant::ORIGIN,
            paths: Vec::new(),
            held: VecDeque::with_capacity(ROOM),
            lost: Vec::with_capacity(ROOM),
            flying: Vec::with_capacity(ROOM),
            blocks: HashMap::new(),
            kept: Vec::new(),
            events: VecDeque::with_capacity(64),
        }
    }

    /// Other faults from now on.
    pub fn set(&mut self, faults: Faults) {
        self.faults = faults;
    }

    /// The transport behind.
    pub const fn inner(&mut self) -> &mut T {
        &mut self.inner
    }

    fn happens(&mut self, share: u32) -> bool {
        share > 0 && self.rng.below(MILLION) < u64::from(share)
    }

    fn path(&mut self, id: PathId) -> Option<&mut Path> {
        self.paths.iter_mut().find(|path| path.id == id)
    }

    /// Lets paths flap.
    fn flap(&mut self) {
        let (flap, now) = (self.faults.flap, self.now);
        for path in &mut self.paths {
            let cut = self.faults.cut_after > 0 && path.ops >= self.faults.cut_after;
            let over = flap > Duration::ZERO && path.turn.get_or_insert(now + flap).reached(now);
            if path.state == PathState::Live && (cut || over) {
                path.state = PathState::Broken;
                self.inner.close(path.id);
            }
        }
        // Who has rested enough can be opened again.
        self.paths
            .retain(|path| path.state != PathState::Resting || path.turn.is_some_and(|at| !at.reached(now)));
    }

    /// Takes in what the inner transport finished, and decides what becomes of it.
    fn take_in(&mut self, completion: Completion) {
        let Some(at) = self.flying.iter().position(|flying| flying.op == completion.id) else { return };
        let Flying { path, .. } = self.flying.swap_remove(at);
        if let Some(at) = self.lost.iter().position(|op| *op == completion.id) {
            self.lost.swap_remove(at);
            return;
        }
        let mut completion = completion;
        if completion.status == Status::Done && self.happens(self.faults.fail) {
            completion.status = if self.rng.below(2) == 0 { Status::Flushed } else { Status::Short };
            completion.bytes = self.rng.below(u64::from(completion.bytes)) as u32;
        }
        let mut until = self.now;
        if self.happens(self.faults.delay) {
            until += Duration::from_nanos(self.rng.below(nanos(self.faults.delay_by)));
        }
        self.held.push_back(Held { completion, path, until });
    }

    /// Reports some ops as lost that are still under way.
    fn lose(&mut self) {
        for index in 0..self.flying.len() {
            let Flying { op, path, region } = self.flying[index];
            if !self.lost.contains(&op) && self.happens(self.faults.lose) {
                let completion = Completion { id: op, bytes: 0, status: Status::Lost, code: 0 };
                self.lost.push(op);
                self.kept.extend(self.blocks.get(&region).map(|block| (path, block.clone())));
                self.held.push_back(Held { completion, path, until: self.now });
            }
        }
    }

    /// Gives out what is due.
    fn give_out(&mut self, done: &mut [Completion]) -> usize {
        let mut count = 0;
        let mut index = 0;
        while count < done.len() && index < self.held.len() {
            if self.faults.order == Order::Shuffled {
                let other = index + self.rng.below((self.held.len() - index) as u64) as usize;
                self.held.swap(index, other);
            }
            // A path that goes down has its completions out first.
            let held = self.held[index];
            let hurry = self.path(held.path).is_none_or(|path| path.state != PathState::Live);
            if hurry || held.until.reached(self.now) {
                done[count] = held.completion;
                count += 1;
                let _ = self.held.remove(index);
            } else {
                index += 1;
            }
        }
        count
    }

    /// Takes in what the inner transport tells, and holds back the end of paths that have completions out.
    fn hear(&mut self) {
        while let Some(event) = self.inner.event() {
            self.events.push_back(event);
            if let Event::Down(path, _) = event
                && let Some(path) = self.path(path)
                && path.state == PathState::Live
            {
                path.state = PathState::Broken;
            }
        }
    }
}

impl<T: Transport> Transport for Fault<T> {
    fn capabilities(&self) -> &Capabilities {
        self.inner.capabilities()
    }
    fn expose(&mut self, region: RegionId, block: &Block, exposure: Exposure) -> Result<(), ControlError> {
        self.inner.expose(region, block, exposure)?;
        self.blocks.insert(region, block.clone());
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
        if self.path(path).is_some() {
            self.events.push_back(Event::Down(path, DownReason::Unreachable));
            return Ok(());
        }
        self.inner.open(now, path, address)?;
        self.paths.push(Path { id: path, state: PathState::Live, turn: None, ops: 0 });
        Ok(())
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
        self.inner.fence(region, extent, below, fence)
    }
    fn close(&mut self, path: PathId) {
        self.inner.close(path);
    }
    fn room(&self, path: PathId) -> usize {
        self.inner.room(path)
    }
    fn submit(&mut self, path: PathId, ops: &[Op]) -> Result<(), SubmitError> {
        let refuses = self.happens(self.faults.refuse);
        let take = if refuses { self.rng.below(ops.len() as u64 + 1) as usize } else { ops.len() };
        let result = self.inner.submit(path, &ops[..take]);
        let accepted = result.map_or_else(|error| error.accepted, |()| take);
        self.flying.extend(ops[..accepted].iter().map(|op| Flying { op: op.id, path, region: op.local }));
        if let Some(path) = self.path(path) {
            path.ops += accepted as u64;
        }
        result?;
        if take < ops.len() { Err(SubmitError { accepted: take, reason: Reason::Full }) } else { Ok(()) }
    }
    fn cancel(&mut self, op: OpId) {
        self.inner.cancel(op);
    }
    fn progress(&mut self, now: Instant, budget: Budget, done: &mut [Completion]) -> usize {
        self.now = self.now.max(now);
        self.flap();
        // What is taken in is what fits into `done`, so that nothing piles up here without need.
        let count = self.inner.progress(now, budget, done);
        for completion in &done[..count] {
            self.take_in(*completion);
        }
        self.lose();
        self.hear();
        self.give_out(done)
    }
    fn event(&mut self) -> Option<Event> {
        let event = *self.events.front()?;
        if let Event::Down(id, reason) = event {
            if self.held.iter().any(|held| held.path == id) {
                return None;
            }
            self.events.pop_front();
            self.kept.retain(|(path, _)| *path != id);
            let (now, flap) = (self.now, self.faults.flap);
            let rests = self.path(id).is_some_and(|path| {
                let ours =
                    path.state == PathState::Broken && reason == DownReason::Closed && path.turn.is_some();
                path.state = PathState::Resting;
                path.turn = Some(now + flap);
                ours && flap > Duration::ZERO
            });
            if !rests {
                self.paths.retain(|path| path.id != id);
            }
            return Some(event);
        }
        self.events.pop_front()
    }
    fn wake_fd(&self) -> Option<BorrowedFd<'_>> {
        self.inner.wake_fd()
    }
    fn arm(&mut self) -> Armed {
        if !self.events.is_empty() {
            return Armed::Again;
        }
        let inner = self.inner.arm();
        let Some(due) = self.held.iter().map(|held| held.until).min() else { return inner };
        let wait = due.since(self.now);
        match inner {
            Armed::Again => Armed::Again,
            _ if wait == Duration::ZERO => Armed::Again,
            Armed::Asleep => Armed::Poll(wait),
            Armed::Poll(after) => Armed::Poll(after.min(wait)),
        }
    }
}
