//! The transfer engine over simulated rails: fail-over, selection, fairness, and what holds under any faults.

mod lane;

use core::time::Duration;

use lane::{Lane, pattern};
use springtide_core::id::BatchId;
use springtide_core::rng::Rng;
use springtide_core::time::Instant;
use springtide_core::transfer::{Config, Failure, Outcome, Quiet, Transfer, TransferStatus, Verb};
use springtide_transport_sim::{Faults, Order, Shape};

const MIB: u64 = 1 << 20;
const SECOND: Duration = Duration::from_secs(1);

fn millis(n: u64) -> Duration {
    Duration::from_millis(n)
}

/// A rail that is slow enough for tests: 128 MiB/s.
fn rail() -> Shape {
    Shape { bandwidth: 128 << 20, max_op: 64 << 10, ..Shape::default() }
}

#[test]
fn bytes_arrive_over_two_rails_with_different_seams() {
    let shapes = [Shape { chunk: 4_096, ..rail() }, Shape { max_op: 10_000, ..rail() }];
    let mut lane = Lane::new(Config::default(), &shapes, 1, 4 << 20);
    let peer = lane.peer(pattern(7, 4 << 20));
    let (read, write) = (lane.read(peer, 33, 1_000_001, 1_234_567), lane.write(peer, 2_000_000, 5, 555_555));
    let source = pattern(8, 555_555);
    lane.local.write(2_000_000, &source).unwrap();
    let batch = lane.submit(&[read, write], SECOND);
    assert_eq!(lane.finish(batch, SECOND), Some(Outcome::Done));
    let mut got = vec![0; 1_234_567];
    lane.local.read(33, &mut got).unwrap();
    assert!(got == pattern(7, 4 << 20)[1_000_001..1_000_001 + 1_234_567]);
    let mut got = vec![0; 555_555];
    lane.peers[peer].block.read(5, &mut got).unwrap();
    assert!(got == source);
    assert!(lane.bytes_on(0, peer) > 300_000 && lane.bytes_on(1, peer) > 300_000, "both rails work");
}

#[test]
fn the_work_of_a_dead_path_moves_to_the_other() {
    let mut lane = Lane::new(Config::default(), &[rail(), rail()], 1, 16 << 20);
    let peer = lane.peer(pattern(7, 16 << 20));
    let batch = lane.submit(&[lane.read(peer, 0, 0, 16 * MIB)], SECOND);
    lane.run(millis(20));
    assert!(lane.engine.live() == 1 && lane.bytes_on(0, peer) > 0);
    lane.peers[peer].ends[0] = None;
    assert_eq!(lane.finish(batch, SECOND), Some(Outcome::Done));
    assert!(lane.local.to_vec() == pattern(7, 16 << 20));
}

#[test]
fn a_peer_that_is_dead_on_every_path_fails_soon_and_holds_up_nobody() {
    let mut lane = Lane::new(Config::default(), &[rail(), rail()], 1, 2 << 20);
    let (dead, alive) = (lane.peer(pattern(1, 1 << 20)), lane.peer(pattern(2, 1 << 20)));
    lane.run(millis(1));
    lane.peers[dead].ends = vec![None, None];
    let lost = lane.submit(&[lane.read(dead, 0, 0, MIB)], 100 * SECOND);
    let good = lane.submit(&[lane.read(alive, MIB, 0, MIB)], SECOND);
    assert_eq!(lane.finish(good, millis(20)), Some(Outcome::Done));
    let outcome = lane.finish(lost, SECOND);
    assert_eq!(outcome, Some(Outcome::Failed { first: Failure::Unreachable, quiet: Quiet::Yes }));
}

#[test]
fn a_frozen_peer_is_left_at_the_deadline_and_holds_up_nobody() {
    let mut lane = Lane::new(Config::default(), &[rail()], 1, 2 << 20);
    let (frozen, alive) = (lane.peer(pattern(1, 1 << 20)), lane.peer(pattern(2, 1 << 20)));
    lane.run(millis(1));
    lane.peers[frozen].frozen = Instant::NEVER;
    let stuck = lane.submit(&[lane.read(frozen, 0, 0, MIB)], millis(50));
    let good = lane.submit(&[lane.read(alive, MIB, 0, MIB)], SECOND);
    assert_eq!(lane.finish(good, millis(20)), Some(Outcome::Done));
    let outcome = lane.finish(stuck, millis(60));
    assert_eq!(outcome, Some(Outcome::Failed { first: Failure::Deadline, quiet: Quiet::Yes }));
}

/// Keeps both rails busy for `time`; gives back how many bytes each moved.
fn keep_busy(lane: &mut Lane, peer: usize, time: Duration) -> [u64; 2] {
    let before = [lane.bytes_on(0, peer), lane.bytes_on(1, peer)];
    let until = lane.now + time;
    while !until.reached(lane.now) {
        while lane.engine.live() < 4 {
            let batch = lane.read(peer, 0, 0, MIB);
            lane.submit(&[batch], SECOND);
        }
        lane.turn();
        for (batch, outcome, _) in core::mem::take(&mut lane.ended) {
            assert_eq!(outcome, Outcome::Done);
            lane.engine.release(lane.now, batch);
        }
    }
    [lane.bytes_on(0, peer) - before[0], lane.bytes_on(1, peer) - before[1]]
}

#[test]
fn a_slow_rail_loses_its_share_within_100_ms_and_gets_it_back() {
    let mut lane = Lane::new(Config::default(), &[rail(), rail()], 1, 1 << 20);
    let peer = lane.peer(pattern(7, 1 << 20));
    let percent = |[a, b]: [u64; 2]| a * 100 / (a + b);
    keep_busy(&mut lane, peer, millis(50));
    let share = percent(keep_busy(&mut lane, peer, millis(100)));
    assert!((40..=60).contains(&share), "equal rails, but the first has {share} %");
    lane.nets[0].set_speed(Duration::from_millis(1), 1 << 20);
    keep_busy(&mut lane, peer, millis(100));
    let share = percent(keep_busy(&mut lane, peer, millis(100)));
    assert!(share <= 3, "a rail 128 times slower still has {share} %");
    lane.nets[0].set_speed(Duration::from_micros(10), 128 << 20);
    keep_busy(&mut lane, peer, millis(100));
    let share = percent(keep_busy(&mut lane, peer, millis(100)));
    assert!((35..=65).contains(&share), "a rail that recovered has {share} %");
}

#[test]
fn the_faster_of_two_is_used_alone_when_the_other_would_only_hold_up() {
    let fast = Shape { latency: Duration::from_micros(1), bandwidth: 2 << 30, ..Shape::default() };
    let slow = Shape { latency: Duration::from_micros(50), bandwidth: 100 << 20, ..Shape::default() };
    let mut lane = Lane::new(Config::default(), &[slow, fast], 1, 1 << 20);
    let peer = lane.peer(pattern(7, 1 << 20));
    lane.run(millis(1));
    let [slow, fast] = keep_busy(&mut lane, peer, millis(100));
    assert!(slow * 50 < fast, "{slow} bytes on the slow one, {fast} on the fast one");
}

#[test]
fn a_small_batch_passes_a_big_one() {
    let mut lane = Lane::new(Config::default(), &[rail()], 1, 64 << 20);
    let peer = lane.peer(pattern(7, 64 << 20));
    let big = lane.submit(&[lane.read(peer, 0, 0, 64 * MIB)], 10 * SECOND);
    lane.run(millis(20));
    let small = lane.submit(&[lane.read(peer, 0, 0, 4_096)], SECOND);
    let start = lane.now;
    assert_eq!(lane.finish(small, SECOND), Some(Outcome::Done));
    assert!(lane.now.since(start) < millis(10), "it took {:?}", lane.now.since(start));
    assert_eq!(lane.finish(big, 2 * SECOND), Some(Outcome::Done));
}

/// A batch under faults, and where its bytes go: a place that nothing else uses.
struct Watched {
    batch: BatchId,
    transfers: Vec<(Transfer, usize)>,
    deadline: Instant,
    ended: u32,
    /// It ended quietly, and its destinations were painted over.
    painted: bool,
}

const PIECE: u64 = 48 << 10;

/// One life under faults. Every batch ends once and in time, what is done is right, and what is quiet stays quiet.
fn under_faults(seed: u64) -> u64 {
    let mut rng = Rng::new(seed);
    let config = Config { grace: millis(5), stall: millis(40), ..Config::default() };
    let shapes = [rail(), Shape { max_op: 16 << 10, chunk: 32 << 10, ..rail() }];
    let bytes = 400 * PIECE as usize;
    let mut lane = Lane::new(config, &shapes, seed, bytes);
    lane.local.write(0, &pattern(100, bytes)).unwrap();
    let peers: Vec<usize> = (0..2).map(|n| lane.peer(pattern(n, bytes))).collect();
    let originals: Vec<Vec<u8>> = (0..2).map(|n| pattern(n, bytes)).collect();
    let sources = pattern(100, bytes);
    let mut watched: Vec<Watched> = Vec::new();
    let mut place = 0;
    while lane.now < Instant::from_nanos(0) + millis(120) {
        if rng.below(150) == 0 {
            let faults = any_faults(&mut rng);
            lane.rails[rng.below(2) as usize].set(faults);
        }
        if rng.below(2_500) == 0 {
            lane.peers[peers[rng.below(2) as usize]].ends[rng.below(2) as usize] = None;
        }
        if rng.below(1_500) == 0 {
            let until = lane.now + Duration::from_micros(rng.below(60_000));
            lane.peers[peers[rng.below(2) as usize]].frozen = until;
        }
        if rng.below(60) == 0 && place < 390 {
            let count = 1 + rng.below(4);
            let transfers: Vec<(Transfer, usize)> = (0..count)
                .map(|_| {
                    place += 1;
                    any_transfer(&mut rng, &lane, place)
                })
                .collect();
            let within = Duration::from_micros(200 + rng.below(30_000));
            let list: Vec<Transfer> = transfers.iter().map(|(transfer, _)| *transfer).collect();
            let batch = lane.submit(&list, within);
            if rng.below(10) == 0 {
                lane.engine.cancel(lane.now, batch);
            }
            watched.push(Watched { batch, transfers, deadline: lane.now + within, ended: 0, painted: false });
        }
        lane.turn();
        look(&mut lane, &mut watched, &originals, &sources, config, seed);
    }
    lane.run(millis(70));
    look(&mut lane, &mut watched, &originals, &sources, config, seed);
    for batch in &watched {
        assert_eq!(batch.ended, 1, "seed {seed}: {:?} ended {} times", batch.batch, batch.ended);
        if batch.painted {
            let intact = batch.transfers.iter().all(|(t, peer)| destination(&lane, t, *peer) == paint(t.len));
            assert!(intact, "seed {seed}: {:?} was quiet, but moved bytes later", batch.batch);
        }
    }
    assert_eq!((lane.engine.live(), lane.engine.strange()), (0, 0), "seed {seed}");
    lane.engine.digest()
}

fn any_faults(rng: &mut Rng) -> Faults {
    let mut share = |most: u64| if rng.below(3) == 0 { rng.below(most) as u32 } else { 0 };
    let (refuse, fail, lose, delay) = (share(500_000), share(400_000), share(3_000), share(300_000));
    let flap = if share(2) == 1 { Duration::from_millis(3) } else { Duration::ZERO };
    let cut_after = u64::from(share(200));
    let order = if share(2) == 1 { Order::Shuffled } else { Order::Kept };
    let delay_by = Duration::from_micros(1 + u64::from(share(4_000)));
    Faults { refuse, fail, lose, delay, delay_by, order, flap, cut_after }
}

/// A transfer whose destination is piece `place` of its side.
fn any_transfer(rng: &mut Rng, lane: &Lane, place: u64) -> (Transfer, usize) {
    let (peer, len) = (rng.below(2) as usize, 1 + rng.below(PIECE));
    let other = rng.below(350) * PIECE;
    if rng.below(2) == 0 {
        (lane.read(peer, place * PIECE, other, len), peer)
    } else {
        // No read goes to this place, so the source stays what it is.
        (lane.write(peer, place * PIECE, place * PIECE, len), peer)
    }
}

fn destination(lane: &Lane, transfer: &Transfer, peer: usize) -> Vec<u8> {
    let mut bytes = vec![0; transfer.len as usize];
    match transfer.verb {
        Verb::Read => lane.local.read(transfer.at, &mut bytes).unwrap(),
        Verb::Write => lane.peers[peer].block.read(transfer.to, &mut bytes).unwrap(),
    }
    bytes
}

fn paint(len: u64) -> Vec<u8> {
    vec![0x5a; len as usize]
}

/// Looks at the batches that have just ended.
fn look(
    lane: &mut Lane,
    watched: &mut [Watched],
    originals: &[Vec<u8>],
    sources: &[u8],
    config: Config,
    seed: u64,
) {
    for (id, outcome, when) in core::mem::take(&mut lane.ended) {
        let batch = watched.iter_mut().find(|batch| batch.batch == id).unwrap();
        batch.ended += 1;
        let latest = batch.deadline + config.grace * 2 + millis(1);
        assert!(when <= latest, "seed {seed}: {id:?} ended {:?} late", when.since(latest));
        for (index, (transfer, peer)) in batch.transfers.iter().enumerate() {
            let status = lane.engine.transfer_status(id, index).unwrap();
            assert_ne!(status, TransferStatus::Pending, "seed {seed}");
            assert!(outcome != Outcome::Done || status == TransferStatus::Done, "seed {seed}");
            if status == TransferStatus::Done {
                let from = match transfer.verb {
                    Verb::Read => &originals[*peer][transfer.to as usize..],
                    Verb::Write => &sources[transfer.at as usize..],
                };
                // A source that was itself written to or painted says nothing.
                let fresh = transfer.verb == Verb::Write || source_is_fresh(lane, transfer, *peer, originals);
                let right = destination(lane, transfer, *peer) == from[..transfer.len as usize];
                assert!(right || !fresh, "seed {seed}: {transfer:?} is done, but its bytes are wrong");
            }
        }
        if outcome.quiet() == Quiet::Yes {
            batch.painted = true;
            for (transfer, peer) in &batch.transfers {
                match transfer.verb {
                    Verb::Read => lane.local.write(transfer.at, &paint(transfer.len)).unwrap(),
                    Verb::Write => {
                        lane.peers[*peer].block.write(transfer.to, &paint(transfer.len)).unwrap();
                    }
                }
            }
        }
        lane.engine.release(lane.now, id);
    }
}

fn source_is_fresh(lane: &Lane, transfer: &Transfer, peer: usize, originals: &[Vec<u8>]) -> bool {
    let range = transfer.to as usize..(transfer.to + transfer.len) as usize;
    let mut bytes = vec![0; range.len()];
    lane.peers[peer].block.read(transfer.to, &mut bytes).unwrap();
    bytes == originals[peer][range]
}

#[test]
fn any_faults_end_every_batch_once_in_time_and_truthfully() {
    for seed in 0..24 {
        under_faults(seed);
    }
}

#[test]
fn the_same_seed_takes_the_same_course() {
    assert_eq!(under_faults(1_000), under_faults(1_000));
}
