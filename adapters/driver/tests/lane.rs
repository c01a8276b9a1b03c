//! Lanes over the simulated transport, driven by the callers that block on them.

use core::ops::Range;
use core::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use core::task::{Poll, Waker};
use core::time::Duration;
use std::os::fd::BorrowedFd;
use std::sync::Arc;

use springtide_core::id::{Incarnation, OpId, PathId, RegionId, RemoteId, SegmentId, TargetId, TicketId};
use springtide_core::range::Extent;
use springtide_core::ticket::{Ticket, TicketKey};
use springtide_core::time::Instant;
use springtide_core::transfer::{
    Completion, Config, Failure, Op, Outcome, PathHealth, Quiet, Transfer, Verb,
};
use springtide_driver::{Armed, Card, Drive, Ended, Lane, Seat, TargetError, Wakes, block_on, now};
use springtide_hal::Block;
use springtide_transport::{Budget, Capabilities, ControlError, Event, Exposure, SubmitError, Transport};
use springtide_transport_sim::{Shape, SimNet, SimTransport};

const KEY: TicketKey = TicketKey([3; 16]);
const OWNER: Incarnation = Incarnation(5);
const LEN: u64 = 1 << 20;

fn segment() -> SegmentId {
    SegmentId::from_bits(1 << 32).unwrap()
}

fn lane(ends: Vec<SimTransport>) -> Arc<Seat<Lane>> {
    let transports = ends.into_iter().map(|end| Box::new(end) as Box<dyn Transport>).collect();
    Arc::new(Seat::new(Lane::new(Config::default(), transports, 1).unwrap()).unwrap())
}

fn soon() -> Instant {
    now() + Duration::from_secs(20)
}

fn pattern(seed: u64) -> Vec<u8> {
    (0..LEN).map(|i| ((i * 7 + seed) / 3) as u8).collect()
}

fn ticket(serial: u64) -> Ticket {
    let extent = Extent::new(0, LEN).unwrap();
    KEY.sign(Ticket { owner: OWNER, segment: segment(), extent, serial, term: Default::default(), tag: 0 })
}

/// A segment on one lane, a buffer on the other, and the way between.
struct World {
    ours: Arc<Seat<Lane>>,
    theirs: Arc<Seat<Lane>>,
    buffer: Block,
    owned: Block,
    local: RegionId,
    exposed: RegionId,
    cards: Vec<Card>,
    target: TargetId,
    ticket: TicketId,
}

impl World {
    fn new(rails: usize, shape: Shape) -> Self {
        let nets: Vec<_> = (0..rails).map(|_| SimNet::new(shape)).collect();
        let ours = lane(nets.iter().map(SimNet::endpoint).collect());
        let theirs = lane(nets.iter().map(SimNet::endpoint).collect());
        let (buffer, owned) = (Block::from(pattern(1)), Block::from(pattern(2)));
        let exposure = Exposure::Segment { owner: OWNER, segment: segment(), key: KEY };
        let local = ours.with(now(), |lane, _| lane.expose(&buffer, Exposure::Source)).unwrap();
        let exposed = theirs.with(now(), |lane, _| lane.expose(&owned, exposure)).unwrap();
        let cards = theirs.with(now(), |lane, _| lane.cards(exposed)).unwrap();
        assert_eq!(cards.len(), rails);
        let target = ours.with(now(), |lane, _| lane.target(now(), &cards)).unwrap();
        let ticket = ours.with(now(), |lane, _| lane.admit(&ticket(10))).unwrap();
        Self { ours, theirs, buffer, owned, local, exposed, cards, target, ticket }
    }

    fn transfer(&self, verb: Verb, at: u64, len: u64) -> Transfer {
        let ticket = (verb == Verb::Write).then_some(self.ticket);
        Transfer { verb, local: self.local, at, target: self.target, to: at, ticket, len }
    }

    /// Blocks on a batch; this thread drives both sides.
    fn run(&self, batch: &[Transfer]) -> Ended {
        let moving = self.ours.transfer(batch, soon());
        block_on(&[&*self.ours, &*self.theirs], soon(), moving).unwrap().unwrap()
    }
}

/// Counts how often a transport is asked for progress.
struct Counted(SimTransport, Arc<AtomicUsize>);

impl Transport for Counted {
    fn capabilities(&self) -> &Capabilities {
        self.0.capabilities()
    }
    fn expose(&mut self, region: RegionId, block: &Block, exposure: Exposure) -> Result<(), ControlError> {
        self.0.expose(region, block, exposure)
    }
    fn withdraw(&mut self, region: RegionId) {
        self.0.withdraw(region);
    }
    fn describe(&self, region: RegionId, out: &mut Vec<u8>) -> Result<(), ControlError> {
        self.0.describe(region, out)
    }
    fn address(&self, out: &mut Vec<u8>) {
        self.0.address(out);
    }
    fn open(&mut self, now: Instant, path: PathId, address: &[u8]) -> Result<(), ControlError> {
        self.0.open(now, path, address)
    }
    fn import(&mut self, path: PathId, remote: RemoteId, description: &[u8]) -> Result<(), ControlError> {
        self.0.import(path, remote, description)
    }
    fn forget(&mut self, remote: RemoteId) {
        self.0.forget(remote);
    }
    fn admit(&mut self, id: TicketId, ticket: &Ticket) -> Result<(), ControlError> {
        self.0.admit(id, ticket)
    }
    fn retire(&mut self, id: TicketId) {
        self.0.retire(id);
    }
    fn fence(
        &mut self,
        region: RegionId,
        extent: Extent,
        below: u64,
        fence: u64,
    ) -> Result<(), ControlError> {
        self.0.fence(region, extent, below, fence)
    }
    fn close(&mut self, path: PathId) {
        self.0.close(path);
    }
    fn room(&self, path: PathId) -> usize {
        self.0.room(path)
    }
    fn submit(&mut self, path: PathId, ops: &[Op]) -> Result<(), SubmitError> {
        self.0.submit(path, ops)
    }
    fn cancel(&mut self, op: OpId) {
        self.0.cancel(op);
    }
    fn progress(&mut self, now: Instant, budget: Budget, done: &mut [Completion]) -> usize {
        self.1.fetch_add(1, Ordering::Relaxed);
        self.0.progress(now, budget, done)
    }
    fn event(&mut self) -> Option<Event> {
        self.0.event()
    }
    fn wake_fd(&self) -> Option<BorrowedFd<'_>> {
        self.0.wake_fd()
    }
    fn arm(&mut self) -> Armed {
        self.0.arm()
    }
}

/// Asking a transport may cost a system call: who is awake does so only where something is awaited, and now and then.
#[test]
fn only_transports_with_something_in_flight_are_asked_again_and_again() {
    let (net, asked) = (SimNet::new(Shape::default()), Arc::new(AtomicUsize::new(0)));
    let transport: Box<dyn Transport> = Box::new(Counted(net.endpoint(), Arc::clone(&asked)));
    let mut ours = Lane::new(Config::default(), vec![transport], 1).unwrap();
    let mut theirs = Lane::new(Config::default(), vec![Box::new(net.endpoint())], 1).unwrap();
    let exposure = Exposure::Segment { owner: OWNER, segment: segment(), key: KEY };
    let exposed = theirs.expose(&Block::from(pattern(2)), exposure).unwrap();
    let cards = theirs.cards(exposed).unwrap();
    let mut wakes = Wakes::new();
    let at = |micros: u64| Instant::ORIGIN + Duration::from_micros(micros);
    let local = ours.expose(&Block::from(pattern(1)), Exposure::Source).unwrap();
    let target = ours.target(at(0), &cards).unwrap();
    // Until the way there is open and nothing is left to do.
    for micros in 0..1_000 {
        let _ = (ours.drive(at(micros), &mut wakes), theirs.drive(at(micros), &mut wakes));
    }
    let count = || asked.load(Ordering::Relaxed);
    let glances = |lane: &mut Lane, times: Range<u64>| {
        for micros in times {
            let _ = lane.glance(at(micros), &mut Wakes::new());
        }
    };

    let before = count();
    glances(&mut ours, 1_000..11_000);
    assert!(count() - before <= 11, "once a millisecond: {}", count() - before);

    // One turn both posts what was asked for and asks for its progress; then every turn asks.
    let transfer = Transfer { verb: Verb::Read, local, at: 0, target, to: 0, ticket: None, len: 64 };
    let before = count();
    let batch = ours.submit(at(11_000), &[transfer], at(1 << 30)).unwrap();
    let _ = ours.glance(at(11_000), &mut wakes);
    assert_eq!(count() - before, 1);
    let _ = ours.glance(at(11_001), &mut wakes);
    assert_eq!(count() - before, 2);
    for micros in 11_002..12_000 {
        let _ = (ours.glance(at(micros), &mut wakes), theirs.drive(at(micros), &mut wakes));
    }
    assert!(
        matches!(ours.poll_batch(at(12_000), batch, Waker::noop()), Poll::Ready(Some(ended)) if ended == DONE)
    );
    let before = count();
    glances(&mut ours, 12_000..22_000);
    assert!(count() - before <= 11, "its end is seen: {}", count() - before);

    // Who serves peers hears all of them at once.
    let _ = ours.expose(&Block::from(pattern(3)), exposure).unwrap();
    let before = count();
    glances(&mut ours, 22_000..22_010);
    assert_eq!(count() - before, 10);
}

const DONE: Ended = Ended { outcome: Outcome::Done, failed: Vec::new() };

#[test]
fn bytes_go_both_ways() {
    let world = World::new(1, Shape::default());
    let batch: Vec<_> = (0..16).map(|i| world.transfer(Verb::Read, i * (LEN / 16), LEN / 16)).collect();
    assert_eq!(world.run(&batch), DONE);
    assert!(world.buffer.to_vec() == pattern(2));
    world.buffer.write(0, &pattern(9)).unwrap();
    assert_eq!(world.run(&[world.transfer(Verb::Write, 0, LEN)]), DONE);
    assert!(world.owned.to_vec() == pattern(9));
    assert_eq!(world.run(&[]), DONE);
}

#[test]
fn a_write_without_permission_is_told_apart() {
    let world = World::new(1, Shape::default());
    let bare = Transfer { ticket: None, ..world.transfer(Verb::Write, 0, 64) };
    let ended = world.run(&[world.transfer(Verb::Read, 0, 64), bare]);
    let first = Failure::Refused;
    assert_eq!(ended.outcome, Outcome::Failed { first, quiet: Quiet::Yes });
    assert_eq!(ended.failed, [(1, first)]);
    assert!(world.owned.to_vec() == pattern(2));
}

#[test]
fn a_fence_ends_old_tickets_and_no_new_ones() {
    let world = World::new(2, Shape::default());
    let fence = world.theirs.fence(world.exposed, Extent::new(0, LEN).unwrap(), 11);
    assert_eq!(block_on(&[&*world.theirs], soon(), fence).unwrap(), Ok(()));
    let write = world.transfer(Verb::Write, 0, 4_096);
    assert_eq!(world.run(&[write]).failed, [(0, Failure::Refused)]);
    let newer = world.ours.with(now(), |lane, _| lane.admit(&ticket(11))).unwrap();
    assert_eq!(world.run(&[Transfer { ticket: Some(newer), ..write }]), DONE);
    let unknown = world.ours.fence(world.exposed, Extent::new(0, 1).unwrap(), 1);
    drop(unknown);
}

#[test]
fn cards_that_lead_nowhere_are_skipped_or_refused() {
    let world = World::new(1, Shape::default());
    let mut foreign = world.cards[0].clone();
    foreign.transport = "pigeon".into();
    let mut garbled = world.cards[0].clone();
    garbled.address = vec![1, 2, 3];
    let target = |cards: &[Card]| world.ours.with(now(), |lane, _| lane.target(now(), cards));
    assert_eq!(target(&[]), Err(TargetError::NoWay));
    assert_eq!(target(core::slice::from_ref(&foreign)), Err(TargetError::NoWay));
    assert_eq!(target(core::slice::from_ref(&garbled)), Err(TargetError::Refused(ControlError::Malformed)));
    let mut stale = world.cards[0].clone();
    stale.description.fill(0);
    assert!(matches!(target(&[stale]), Err(TargetError::Refused(_))));
    let found = target(&[foreign, garbled, world.cards[0].clone(), world.cards[0].clone()]).unwrap();
    let read = Transfer { target: found, ..world.transfer(Verb::Read, 0, LEN) };
    assert_eq!(world.run(&[read]), DONE);
    // All of that went over the one path to the one address.
    assert_eq!(world.ours.with(now(), |lane, _| lane.paths().count()), 1);
}

#[test]
fn a_path_closes_with_its_last_target_and_opens_again_for_the_next() {
    let world = World::new(1, Shape::default());
    let count = || world.ours.with(now(), |lane, _| lane.paths().count());
    let other = world.ours.with(now(), |lane, _| lane.target(now(), &world.cards)).unwrap();
    assert_eq!(world.run(&[world.transfer(Verb::Read, 0, 64)]), DONE);
    world.ours.with(now(), |lane, _| lane.drop_target(now(), other));
    assert_eq!(world.run(&[world.transfer(Verb::Read, 0, 64)]), DONE);
    assert_eq!(count(), 1);
    world.ours.with(now(), |lane, _| lane.drop_target(now(), world.target));
    let again = world.ours.with(now(), |lane, _| lane.target(now(), &world.cards)).unwrap();
    let read = Transfer { target: again, ..world.transfer(Verb::Read, 0, LEN) };
    assert_eq!(world.run(&[read]), DONE);
    assert_eq!(count(), 1);
    let gone = world.run(&[]);
    assert_eq!(gone, DONE);
}

#[test]
fn dropping_the_future_cancels_and_a_deadline_ends() {
    let slow = Shape { bandwidth: 1 << 20, ..Shape::default() };
    let world = World::new(1, slow);
    let all = world.transfer(Verb::Read, 0, LEN);
    let moving = world.ours.transfer(&[all], soon());
    let brief = now() + Duration::from_millis(5);
    assert!(block_on(&[&*world.ours, &*world.theirs], brief, moving).is_err());
    let moving = world.ours.transfer(&[all], now() + Duration::from_millis(5));
    let ended = block_on(&[&*world.ours, &*world.theirs], soon(), moving).unwrap().unwrap();
    assert_eq!(ended.failed, [(0, Failure::Deadline)]);
}

#[test]
fn a_peer_that_dies_fails_its_transfers_and_its_next_life_is_another_target() {
    let net = SimNet::new(Shape::default());
    let ours = lane(vec![net.endpoint()]);
    let life = |owner: u128| {
        let theirs = lane(vec![net.endpoint_at(7)]);
        let owned = Block::from(pattern(owner as u64));
        let exposure = Exposure::Segment { owner: Incarnation(owner), segment: segment(), key: KEY };
        let exposed = theirs.with(now(), |lane, _| lane.expose(&owned, exposure)).unwrap();
        let cards = theirs.with(now(), |lane, _| lane.cards(exposed)).unwrap();
        (theirs, cards)
    };
    let buffer = Block::from(pattern(0));
    let local = ours.with(now(), |lane, _| lane.expose(&buffer, Exposure::Source)).unwrap();
    let target = |cards: &[Card]| ours.with(now(), |lane, _| lane.target(now(), cards)).unwrap();
    let read = |target| Transfer { verb: Verb::Read, local, at: 0, target, to: 0, ticket: None, len: LEN };

    let (theirs, cards) = life(1);
    let first = target(&cards);
    let moving = ours.transfer(&[read(first)], soon());
    assert_eq!(block_on(&[&*ours, &*theirs], soon(), moving).unwrap().unwrap(), DONE);
    drop(theirs);
    let moving = ours.transfer(&[read(first)], now() + Duration::from_millis(300));
    let ended = block_on(&[&*ours], soon(), moving).unwrap().unwrap();
    assert_eq!(ended.failed.len(), 1);
    let health = ours.with(now(), |lane, _| lane.paths().map(|(_, stats)| stats.health).next());
    assert_ne!(health, Some(PathHealth::Up));

    let (theirs, cards) = life(2);
    let second = target(&cards);
    // The path to that address is tried again after a pause; until then work fails at once.
    let ended = loop {
        let moving = ours.transfer(&[read(second)], soon());
        let ended = block_on(&[&*ours, &*theirs], soon(), moving).unwrap().unwrap();
        if ended.failed != [(0, Failure::Unreachable)] {
            break ended;
        }
        let brief = now() + Duration::from_millis(5);
        let _ = block_on(&[&*ours, &*theirs], brief, core::future::pending::<()>());
    };
    assert_eq!(ended, DONE);
    assert!(buffer.to_vec() == pattern(2));
    // The first life's memory is never found in the second.
    let moving = ours.transfer(&[read(first)], now() + Duration::from_millis(300));
    assert_eq!(block_on(&[&*ours, &*theirs], soon(), moving).unwrap().unwrap().failed.len(), 1);
}

#[test]
fn withdrawn_memory_is_refused() {
    let world = World::new(1, Shape::default());
    world.theirs.with(now(), |lane, _| lane.withdraw(world.exposed));
    assert_eq!(world.run(&[world.transfer(Verb::Read, 0, 64)]).failed.len(), 1);
    assert_eq!(world.theirs.with(now(), |lane, _| lane.cards(world.exposed)), Err(ControlError::Unknown));
    assert_eq!(world.owned.shares(), 1);
}

#[test]
fn threads_share_a_lane_while_another_serves() {
    let world = World::new(2, Shape::default());
    let stop = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let serving = scope.spawn(|| {
            while !stop.load(Ordering::Acquire) {
                let turn = now() + Duration::from_millis(5);
                let _ = block_on(&[&*world.theirs], turn, core::future::pending::<()>());
            }
        });
        let readers: Vec<_> = (0..4u64)
            .map(|thread| {
                let world = &world;
                scope.spawn(move || {
                    for n in 0..200 {
                        let at = (thread * 200 + n) * 1_024;
                        let moving = world.ours.transfer(&[world.transfer(Verb::Read, at, 1_024)], soon());
                        assert_eq!(block_on(&[&*world.ours], soon(), moving).unwrap().unwrap(), DONE);
                    }
                })
            })
            .collect();
        let ended: Vec<_> = readers.into_iter().map(|reader| reader.join()).collect();
        stop.store(true, Ordering::Release);
        serving.join().unwrap();
        ended.into_iter().for_each(|reader| reader.unwrap());
    });
    let read = 800 * 1_024;
    assert!(world.buffer.to_vec()[..read] == pattern(2)[..read]);
}
