//! The transfer engine, driven by hand.

use core::num::NonZeroU32;
use core::time::Duration;

use springtide_core::id::{BatchId, Id, OpId, PathId, RegionId, TargetId, TicketId};
use springtide_core::time::Instant;
use springtide_core::transfer::{
    Completion, Config, Engine, Failure, Next, Op, Outcome, PathHealth, PathShape, PathState, Quiet, Reject,
    Status, SubmitError, Transfer, TransferStatus, Verb,
};

const SHAPE: PathShape = PathShape {
    max_op: 1 << 20,
    chunk: 0,
    depth: 64,
    latency: Duration::from_micros(50),
    bandwidth: 1 << 30,
};

fn id<I: Id>(index: u32) -> I {
    I::new(index, NonZeroU32::MIN)
}

fn at(millis: u64) -> Instant {
    Instant::from_nanos(millis * 1_000_000)
}

fn read(target: TargetId, to: u64, len: u64) -> Transfer {
    Transfer { verb: Verb::Read, local: id::<RegionId>(0), at: to, target, to, ticket: None, len }
}

fn write(target: TargetId, to: u64, len: u64) -> Transfer {
    Transfer { verb: Verb::Write, ticket: Some(id::<TicketId>(0)), ..read(target, to, len) }
}

/// An engine with `paths` equal paths to one target, all up.
fn rig(config: Config, paths: usize) -> (Engine, TargetId, Vec<PathId>) {
    let mut engine = Engine::new(config, 1);
    let target = engine.add_target(at(0));
    let paths = (0..paths)
        .map(|_| {
            let path = engine.add_path(at(0), SHAPE);
            engine.attach(target, path).unwrap();
            engine.handle_path(at(0), path, PathState::Up);
            path
        })
        .collect();
    (engine, target, paths)
}

fn take(engine: &mut Engine, now: Instant, path: PathId, room: usize) -> Vec<Op> {
    let nothing =
        Op { id: id(0), local: id(0), at: 0, remote: id(0), to: 0, ticket: None, len: 0, verb: Verb::Read };
    let mut ops = vec![nothing; room.max(1)];
    let count = engine.take_ops(now, path, room, &mut ops);
    ops.truncate(count);
    ops
}

fn end(engine: &mut Engine, now: Instant, path: PathId, ops: &[Op], status: Status) {
    for op in ops {
        let bytes = if status == Status::Done { op.len } else { 0 };
        engine.handle_completions(now, path, &[Completion { id: op.id, bytes, status, code: 0 }]);
    }
}

/// All that the engine wants now, but for takes and the last wait.
fn wants(engine: &mut Engine, now: Instant) -> Vec<Next> {
    let mut all = Vec::new();
    loop {
        match engine.poll(now) {
            Next::Wait(_) => return all,
            Next::Take(_) => {}
            next => all.push(next),
        }
    }
}

fn ended(engine: &mut Engine, now: Instant) -> Vec<(BatchId, Outcome)> {
    let batches = wants(engine, now).into_iter().filter_map(|next| match next {
        Next::Batch(batch, outcome) => Some((batch, outcome)),
        _ => None,
    });
    batches.collect()
}

fn failed(first: Failure, quiet: Quiet) -> Outcome {
    Outcome::Failed { first, quiet }
}

#[test]
fn a_batch_is_cut_posted_and_done() {
    let (mut engine, target, paths) = rig(Config::default(), 1);
    let remote = engine.remote(target, paths[0]).unwrap();
    let batch = engine.submit(at(0), &[read(target, 5, 2_500_000), write(target, 0, 10)], at(100)).unwrap();
    assert_eq!(engine.poll(at(0)), Next::Take(paths[0]));
    let ops = take(&mut engine, at(0), paths[0], 10);
    let cuts: Vec<_> = ops.iter().map(|op| (op.at, op.to, op.len, op.verb)).collect();
    let mib = 1 << 20;
    assert_eq!(
        cuts,
        [
            (5, 5, mib, Verb::Read),
            (5 + u64::from(mib), 5 + u64::from(mib), mib, Verb::Read),
            (5 + 2 * u64::from(mib), 5 + 2 * u64::from(mib), 2_500_000 - 2 * mib, Verb::Read),
            (0, 0, 10, Verb::Write),
        ]
    );
    assert!(ops.iter().all(|op| op.remote == remote));
    assert_eq!(engine.transfer_status(batch, 0), Some(TransferStatus::Pending));
    end(&mut engine, at(1), paths[0], &ops, Status::Done);
    assert_eq!(ended(&mut engine, at(1)), [(batch, Outcome::Done)]);
    assert_eq!(engine.transfer_status(batch, 1), Some(TransferStatus::Done));
    engine.release(at(1), batch);
    assert_eq!(engine.transfer_status(batch, 0), None);
    assert_eq!((engine.live(), engine.flying(), engine.strange()), (0, 0, 0));
}

#[test]
fn slices_respect_the_seams_of_both_sides() {
    let (mut engine, target, _) = rig(Config::default(), 0);
    let path = engine.add_path(at(0), PathShape { chunk: 4_096, ..SHAPE });
    engine.attach(target, path).unwrap();
    engine.handle_path(at(0), path, PathState::Up);
    let transfer = Transfer { at: 1_000, ..read(target, 3_000, 10_000) };
    engine.submit(at(0), &[transfer], at(100)).unwrap();
    let ops = take(&mut engine, at(0), path, 64);
    let mut next = (1_000, 3_000);
    for op in &ops {
        assert_eq!((op.at, op.to), next);
        for start in [op.at, op.to] {
            assert_eq!(start / 4_096, (start + u64::from(op.len) - 1) / 4_096, "{op:?} crosses a seam");
        }
        next = (op.at + u64::from(op.len), op.to + u64::from(op.len));
    }
    assert_eq!(next, (11_000, 13_000));
}

#[test]
fn an_empty_batch_ends_at_once() {
    let (mut engine, target, _) = rig(Config::default(), 1);
    let empty = engine.submit(at(0), &[], at(100)).unwrap();
    let nothing = engine.submit(at(0), &[read(target, 0, 0)], at(100)).unwrap();
    assert_eq!(ended(&mut engine, at(0)), [(empty, Outcome::Done), (nothing, Outcome::Done)]);
}

#[test]
fn what_is_wrong_with_a_batch_is_said_and_nothing_starts() {
    let config = Config { batches: 2, transfers: 3, ..Config::default() };
    let (mut engine, target, paths) = rig(config, 1);
    let good = read(target, 0, 10);
    let unknown = read(id(9), 0, 10);
    let wraps = read(target, u64::MAX - 3, 10);
    assert_eq!(engine.submit(at(0), &[good, unknown], at(9)), Err(SubmitError::UnknownTarget(1)));
    assert_eq!(engine.submit(at(0), &[good, good, wraps], at(9)), Err(SubmitError::OutOfRange(2)));
    assert_eq!(engine.submit(at(0), &[good; 4], at(9)), Err(SubmitError::TooLarge));
    assert!(take(&mut engine, at(0), paths[0], 9).is_empty());
    let first = engine.submit(at(0), &[good; 2], at(9)).unwrap();
    assert_eq!(engine.submit(at(0), &[good; 2], at(9)), Err(SubmitError::Full));
    engine.submit(at(0), &[good], at(9)).unwrap();
    assert_eq!(engine.submit(at(0), &[], at(9)), Err(SubmitError::Full));
    let ops = take(&mut engine, at(0), paths[0], 9);
    end(&mut engine, at(1), paths[0], &ops, Status::Done);
    engine.release(at(1), first);
    assert!(engine.submit(at(1), &[good; 2], at(9)).is_ok());
}

#[test]
fn never_more_than_fits() {
    let config = Config { ops: 10, ..Config::default() };
    let (mut engine, target, paths) = rig(config, 1);
    engine.submit(at(0), &[read(target, 0, 100); 20], at(100)).unwrap();
    assert_eq!(take(&mut engine, at(0), paths[0], 0).len(), 0);
    let two = take(&mut engine, at(0), paths[0], 2);
    assert_eq!(two.len(), 2);
    assert_eq!(take(&mut engine, at(0), paths[0], 50).len(), 3);
    assert_eq!(take(&mut engine, at(0), paths[0], 50).len(), 0);
    end(&mut engine, at(0), paths[0], &two, Status::Done);
    assert_eq!(take(&mut engine, at(0), paths[0], 50).len(), 2);
}

#[test]
fn what_was_not_posted_is_posted_later() {
    let (mut engine, target, paths) = rig(Config::default(), 1);
    let batch = engine.submit(at(0), &[read(target, 0, 100); 6], at(100)).unwrap();
    assert_eq!(engine.poll(at(0)), Next::Take(paths[0]));
    let ops = take(&mut engine, at(0), paths[0], 6);
    engine.handle_refused(at(0), paths[0], &ops[2..], Reject::Full);
    // Not at once: it would be refused again. But soon, whatever happens.
    assert_eq!(engine.poll(at(0)), Next::Wait(Some(at(1))));
    end(&mut engine, at(1), paths[0], &ops[..2], Status::Done);
    assert_eq!(engine.poll(at(1)), Next::Take(paths[0]));
    let again = take(&mut engine, at(1), paths[0], 6);
    assert_eq!(again.len(), 4);
    end(&mut engine, at(2), paths[0], &again, Status::Done);
    assert_eq!(ended(&mut engine, at(2)), [(batch, Outcome::Done)]);
}

#[test]
fn a_path_that_is_down_before_it_is_told_is_left_alone() {
    let (mut engine, target, paths) = rig(Config::default(), 1);
    engine.submit(at(0), &[read(target, 0, 100); 6], at(100)).unwrap();
    let ops = take(&mut engine, at(0), paths[0], 6);
    assert_eq!(engine.path_of(ops[5].id), Some(paths[0]));
    engine.handle_refused(at(0), paths[0], &ops, Reject::PathDown);
    assert!(take(&mut engine, at(0), paths[0], 6).is_empty());
    assert_eq!((engine.flying(), engine.path_of(ops[5].id)), (0, None));
    engine.handle_path(at(0), paths[0], PathState::Down);
    engine.handle_path(at(1), paths[0], PathState::Up);
    assert_eq!(take(&mut engine, at(1), paths[0], 6).len(), 6);
}

#[test]
fn a_path_that_lacks_the_memory_leaves_it_to_another() {
    let (mut engine, target, paths) = rig(Config::default(), 2);
    let batch = engine.submit(at(0), &[read(target, 0, 100)], at(100)).unwrap();
    let ops = take(&mut engine, at(0), paths[0], 6);
    engine.handle_refused(at(0), paths[0], &ops, Reject::BadRegion);
    assert!(take(&mut engine, at(0), paths[0], 6).is_empty(), "not the same path again");
    let ops = take(&mut engine, at(0), paths[1], 6);
    end(&mut engine, at(1), paths[1], &ops, Status::Done);
    assert_eq!(ended(&mut engine, at(1)), [(batch, Outcome::Done)]);

    let (mut engine, target, paths) = rig(Config::default(), 1);
    let batch = engine.submit(at(0), &[read(target, 0, 100)], at(100)).unwrap();
    let ops = take(&mut engine, at(0), paths[0], 6);
    engine.handle_refused(at(0), paths[0], &ops, Reject::BadRegion);
    assert_eq!(ended(&mut engine, at(0)), [(batch, failed(Failure::Refused, Quiet::Yes))]);
}

#[test]
fn each_transfer_says_how_it_ended() {
    let (mut engine, target, paths) = rig(Config::default(), 1);
    let batch = engine.submit(at(0), &[read(target, 0, 10), read(target, 50, 10)], at(100)).unwrap();
    let ops = take(&mut engine, at(0), paths[0], 6);
    end(&mut engine, at(1), paths[0], &ops[..1], Status::Refused);
    assert_eq!(ended(&mut engine, at(1)), [], "the other one goes on");
    end(&mut engine, at(1), paths[0], &ops[1..], Status::Done);
    assert_eq!(ended(&mut engine, at(1)), [(batch, failed(Failure::Refused, Quiet::Yes))]);
    assert_eq!(engine.transfer_status(batch, 0), Some(TransferStatus::Failed(Failure::Refused)));
    assert_eq!(engine.transfer_status(batch, 1), Some(TransferStatus::Done));
}

#[test]
fn a_flushed_op_goes_to_the_other_path() {
    let (mut engine, target, paths) = rig(Config::default(), 2);
    let batch = engine.submit(at(0), &[write(target, 0, 100)], at(100)).unwrap();
    let ops = take(&mut engine, at(0), paths[0], 6);
    end(&mut engine, at(0), paths[0], &ops, Status::Flushed);
    assert!(take(&mut engine, at(0), paths[0], 6).is_empty());
    let ops = take(&mut engine, at(0), paths[1], 6);
    assert_eq!(ops.len(), 1);
    end(&mut engine, at(0), paths[1], &ops, Status::Short);
    // Both failed once: the first one's turn again.
    let ops = take(&mut engine, at(0), paths[0], 6);
    end(&mut engine, at(0), paths[0], &ops, Status::Done);
    assert_eq!(ended(&mut engine, at(1)), [(batch, Outcome::Done)]);
}

#[test]
fn a_write_without_a_ticket_is_not_tried_twice() {
    let (mut engine, target, paths) = rig(Config::default(), 1);
    let naked = Transfer { ticket: None, ..write(target, 0, 100) };
    let batch = engine.submit(at(0), &[naked], at(100)).unwrap();
    let ops = take(&mut engine, at(0), paths[0], 6);
    end(&mut engine, at(0), paths[0], &ops, Status::Flushed);
    assert_eq!(ended(&mut engine, at(1)), [(batch, failed(Failure::Interrupted, Quiet::Yes))]);
}

#[test]
fn nothing_is_tried_for_ever() {
    let config = Config { trip: u32::MAX, ..Config::default() };
    let (mut engine, target, paths) = rig(config, 1);
    let batch = engine.submit(at(0), &[read(target, 0, 100)], at(100)).unwrap();
    for n in 0.. {
        let ops = take(&mut engine, at(0), paths[0], 6);
        if ops.is_empty() {
            assert_eq!(n, usize::from(config.tries));
            break;
        }
        end(&mut engine, at(0), paths[0], &ops, Status::Flushed);
    }
    assert_eq!(ended(&mut engine, at(1)), [(batch, failed(Failure::Interrupted, Quiet::Yes))]);
}

#[test]
fn a_lost_write_ends_its_batch_loudly() {
    let (mut engine, target, paths) = rig(Config::default(), 1);
    let batch = engine.submit(at(0), &[write(target, 0, 100)], at(100)).unwrap();
    let ops = take(&mut engine, at(0), paths[0], 6);
    end(&mut engine, at(0), paths[0], &ops, Status::Lost);
    assert_eq!(
        wants(&mut engine, at(0)),
        [Next::Batch(batch, failed(Failure::Lost, Quiet::No)), Next::Close(paths[0])]
    );
}

#[test]
fn a_lost_read_is_read_again_when_its_path_is_closed() {
    let (mut engine, target, paths) = rig(Config::default(), 2);
    let batch = engine.submit(at(0), &[read(target, 0, 100)], at(100)).unwrap();
    let ops = take(&mut engine, at(0), paths[0], 6);
    end(&mut engine, at(0), paths[0], &ops, Status::Lost);
    assert_eq!(wants(&mut engine, at(0)), [Next::Close(paths[0])]);
    assert!(take(&mut engine, at(0), paths[1], 6).is_empty(), "its memory may still be written");
    assert_eq!(engine.quiet(batch), Some(Quiet::No));
    engine.handle_path(at(1), paths[0], PathState::Down);
    let ops = take(&mut engine, at(1), paths[1], 6);
    end(&mut engine, at(2), paths[1], &ops, Status::Done);
    assert_eq!(ended(&mut engine, at(2)), [(batch, Outcome::Done)]);
}

#[test]
fn the_deadline_cancels_then_closes_then_gives_up() {
    let (mut engine, target, paths) = rig(Config::default(), 1);
    let batch = engine.submit(at(0), &[read(target, 0, 100); 2], at(100)).unwrap();
    let ops = take(&mut engine, at(0), paths[0], 1);
    assert_eq!(wants(&mut engine, at(0)), []);
    engine.handle_timeout(at(99));
    assert_eq!(wants(&mut engine, at(99)), []);
    engine.handle_timeout(at(100));
    assert_eq!(wants(&mut engine, at(100)), [Next::Cancel(paths[0], ops[0].id)]);
    assert!(take(&mut engine, at(100), paths[0], 9).is_empty(), "nothing new of a batch that is over");
    engine.handle_timeout(at(200));
    assert_eq!(wants(&mut engine, at(200)), [Next::Close(paths[0])]);
    engine.handle_timeout(at(300));
    assert_eq!(ended(&mut engine, at(300)), [(batch, failed(Failure::Deadline, Quiet::No))]);
    assert_eq!(engine.quiet(batch), Some(Quiet::No));
    end(&mut engine, at(301), paths[0], &ops, Status::Flushed);
    assert_eq!(engine.quiet(batch), Some(Quiet::Yes));
    assert_eq!(ended(&mut engine, at(301)), [], "only once");
}

#[test]
fn a_cancelled_batch_is_quiet_when_its_ops_have_ended() {
    let (mut engine, target, paths) = rig(Config::default(), 1);
    let batch = engine.submit(at(0), &[write(target, 0, 100); 2], at(100)).unwrap();
    let ops = take(&mut engine, at(0), paths[0], 1);
    engine.cancel(at(1), batch);
    assert_eq!(wants(&mut engine, at(1)), [Next::Cancel(paths[0], ops[0].id)]);
    end(&mut engine, at(1), paths[0], &ops, Status::Done);
    assert_eq!(ended(&mut engine, at(1)), [(batch, failed(Failure::Cancelled, Quiet::Yes))]);
    engine.cancel(at(2), batch);
    assert_eq!(ended(&mut engine, at(2)), []);
}

#[test]
fn a_batch_released_early_ends_silently() {
    let (mut engine, target, paths) = rig(Config::default(), 1);
    let batch = engine.submit(at(0), &[write(target, 0, 100); 2], at(100)).unwrap();
    let ops = take(&mut engine, at(0), paths[0], 1);
    engine.release(at(1), batch);
    end(&mut engine, at(1), paths[0], &ops, Status::Flushed);
    assert_eq!(ended(&mut engine, at(1)), []);
    assert_eq!((engine.live(), engine.transfer_status(batch, 0)), (0, None));
}

#[test]
fn a_dead_peer_is_left_alone_for_longer_and_longer() {
    let (mut engine, target, paths) = rig(Config::default(), 1);
    engine.handle_path(at(0), paths[0], PathState::Down);
    let mut openings = Vec::new();
    let mut now = at(0);
    for _ in 0..12 {
        while let next = engine.poll(now)
            && next != Next::Reopen(paths[0])
        {
            let Next::Wait(Some(until)) = next else { panic!("{next:?}") };
            now = until;
            engine.handle_timeout(now);
        }
        openings.push(now);
        engine.handle_path(now, paths[0], PathState::Down);
    }
    let pauses: Vec<_> = openings.windows(2).map(|pair| pair[1].since(pair[0])).collect();
    assert!(pauses[0] < Duration::from_millis(30), "{pauses:?}");
    let last = pauses[pauses.len() - 1];
    assert!(last > Duration::from_secs(3) && last < Duration::from_secs(7), "{pauses:?}");
    // By now nobody waits for it.
    let batch = engine.submit(now, &[read(target, 0, 9)], now + Duration::from_secs(60)).unwrap();
    assert_eq!(ended(&mut engine, now), [(batch, failed(Failure::Unreachable, Quiet::Yes))]);
    // When it is back, it serves.
    engine.handle_path(now, paths[0], PathState::Up);
    let batch = engine.submit(now, &[read(target, 0, 9)], now + Duration::from_secs(60)).unwrap();
    let ops = take(&mut engine, now, paths[0], 9);
    end(&mut engine, now, paths[0], &ops, Status::Done);
    assert_eq!(ended(&mut engine, now), [(batch, Outcome::Done)]);
}

#[test]
fn work_that_waits_for_a_dead_peer_fails_when_nothing_opens() {
    let config = Config { attempts: 2, ..Config::default() };
    let (mut engine, target, paths) = rig(config, 1);
    let batch = engine.submit(at(0), &[read(target, 0, 9); 3], at(60_000)).unwrap();
    let ops = take(&mut engine, at(0), paths[0], 1);
    engine.handle_path(at(1), paths[0], PathState::Down);
    end(&mut engine, at(1), paths[0], &ops, Status::Flushed);
    assert_eq!(ended(&mut engine, at(1)), [], "it may come back");
    for n in 0..2 {
        let now = at(1_000 * (n + 1));
        engine.handle_timeout(now);
        assert_eq!(wants(&mut engine, now), [Next::Reopen(paths[0])]);
        engine.handle_path(now, paths[0], PathState::Down);
    }
    assert_eq!(ended(&mut engine, at(3_000)), [(batch, failed(Failure::Unreachable, Quiet::Yes))]);
}

#[test]
fn a_failing_path_is_on_trial_with_one_op_at_a_time() {
    let (mut engine, target, paths) = rig(Config { tries: 50, ..Config::default() }, 1);
    engine.submit(at(0), &[read(target, 0, 9); 20], at(60_000)).unwrap();
    assert_eq!(engine.poll(at(0)), Next::Take(paths[0]));
    let ops = take(&mut engine, at(0), paths[0], 4);
    end(&mut engine, at(0), paths[0], &ops, Status::Flushed);
    assert_eq!(engine.path_stats(paths[0]).unwrap().health, PathHealth::Suspect);
    assert_eq!(wants(&mut engine, at(0)), []);
    assert!(take(&mut engine, at(0), paths[0], 9).is_empty());
    engine.handle_timeout(at(20));
    assert_eq!(engine.poll(at(20)), Next::Take(paths[0]));
    let trial = take(&mut engine, at(20), paths[0], 9);
    assert_eq!(trial.len(), 1);
    end(&mut engine, at(20), paths[0], &trial, Status::Done);
    assert_eq!(engine.path_stats(paths[0]).unwrap().health, PathHealth::Up);
    assert_eq!(take(&mut engine, at(20), paths[0], 9).len(), 9);
}

#[test]
fn a_stalled_path_is_closed_and_its_reads_go_elsewhere() {
    let (mut engine, target, paths) = rig(Config::default(), 2);
    let batch = engine.submit(at(0), &[read(target, 0, 9)], at(60_000)).unwrap();
    let ops = take(&mut engine, at(0), paths[0], 9);
    engine.handle_timeout(at(4_999));
    assert_eq!(wants(&mut engine, at(4_999)), []);
    engine.handle_timeout(at(5_001));
    assert_eq!(wants(&mut engine, at(5_001)), [Next::Close(paths[0])]);
    end(&mut engine, at(5_001), paths[0], &ops, Status::Flushed);
    engine.handle_path(at(5_001), paths[0], PathState::Down);
    let ops = take(&mut engine, at(5_002), paths[1], 9);
    end(&mut engine, at(5_002), paths[1], &ops, Status::Done);
    assert_eq!(ended(&mut engine, at(5_002)), [(batch, Outcome::Done)]);
}

#[test]
fn removed_targets_and_paths_take_their_work_along() {
    let (mut engine, target, paths) = rig(Config::default(), 1);
    let batch = engine.submit(at(0), &[read(target, 0, 9); 3], at(60_000)).unwrap();
    let ops = take(&mut engine, at(0), paths[0], 1);
    engine.remove_target(at(1), target);
    assert_eq!(ended(&mut engine, at(1)), [], "one op is still out");
    end(&mut engine, at(1), paths[0], &ops, Status::Flushed);
    assert_eq!(ended(&mut engine, at(1)), [(batch, failed(Failure::Removed, Quiet::Yes))]);

    let (mut engine, target, paths) = rig(Config::default(), 1);
    let batch = engine.submit(at(0), &[read(target, 0, 9)], at(60_000)).unwrap();
    let ops = take(&mut engine, at(0), paths[0], 1);
    engine.remove_path(at(1), paths[0]);
    assert_eq!(ended(&mut engine, at(1)), [(batch, failed(Failure::Lost, Quiet::No))]);
    end(&mut engine, at(1), paths[0], &ops, Status::Done);
    assert_eq!(engine.strange(), 1);
    assert_eq!(engine.imports(paths[0]).count(), 0);
}

#[test]
fn a_big_batch_does_not_starve_a_small_one() {
    let (mut engine, target, paths) = rig(Config::default(), 1);
    engine.submit(at(0), &[read(target, 0, 1 << 30)], at(60_000)).unwrap();
    let flying = take(&mut engine, at(0), paths[0], 64);
    let small = engine.submit(at(0), &[read(target, 0, 4_096)], at(60_000)).unwrap();
    end(&mut engine, at(1), paths[0], &flying[..2], Status::Done);
    let next = take(&mut engine, at(1), paths[0], 64);
    assert!(next.iter().take(2).any(|op| op.len == 4_096), "{next:?}");
    end(&mut engine, at(2), paths[0], &next, Status::Done);
    assert_eq!(ended(&mut engine, at(2)), [(small, Outcome::Done)]);
}

#[test]
fn targets_on_one_path_take_turns() {
    let (mut engine, first, paths) = rig(Config::default(), 1);
    let second = engine.add_target(at(0));
    engine.attach(second, paths[0]).unwrap();
    // A stream of small batches to the first target never ends.
    engine.submit(at(0), &[read(first, 0, 100)], at(60_000)).unwrap();
    let waiting = engine.submit(at(0), &[read(second, 7, 100)], at(60_000)).unwrap();
    let mut done = Vec::new();
    for _ in 0..3 {
        engine.submit(at(0), &[read(first, 0, 100)], at(60_000)).unwrap();
        let ops = take(&mut engine, at(0), paths[0], 1);
        end(&mut engine, at(0), paths[0], &ops, Status::Done);
        done.extend(ended(&mut engine, at(0)));
    }
    assert!(done.iter().any(|(batch, _)| *batch == waiting), "{done:?}");
}

#[test]
fn strange_completions_are_counted_and_ignored() {
    let (mut engine, target, paths) = rig(Config::default(), 2);
    engine.submit(at(0), &[read(target, 0, 9)], at(60_000)).unwrap();
    let ops = take(&mut engine, at(0), paths[0], 1);
    end(&mut engine, at(0), paths[1], &ops, Status::Done);
    let made_up = Completion { id: id::<OpId>(77), bytes: 9, status: Status::Done, code: 0 };
    engine.handle_completions(at(0), paths[0], &[made_up]);
    assert_eq!((engine.strange(), engine.flying()), (2, 1));
    end(&mut engine, at(0), paths[0], &ops, Status::Done);
    end(&mut engine, at(0), paths[0], &ops, Status::Done);
    assert_eq!((engine.strange(), engine.flying()), (3, 0));
}

#[test]
fn idle_targets_cost_nothing() {
    let mut engine = Engine::new(Config::default(), 1);
    let paths: Vec<_> = (0..1_000)
        .map(|_| {
            let (target, path) = (engine.add_target(at(0)), engine.add_path(at(0), SHAPE));
            engine.attach(target, path).unwrap();
            engine.handle_path(at(0), path, PathState::Up);
            (target, path)
        })
        .collect();
    assert_eq!(engine.poll(at(0)), Next::Wait(None), "no timers, no calls");
    let (target, path) = paths[500];
    engine.submit(at(0), &[read(target, 0, 9)], at(1_000)).unwrap();
    assert_eq!(engine.poll(at(0)), Next::Take(path), "only who has work is called");
    assert_eq!(engine.poll(at(0)), Next::Wait(Some(at(1_000))));
}

#[test]
fn work_on_a_dead_peer_holds_up_nobody_else() {
    let (mut engine, dead, paths) = rig(Config::default(), 1);
    let (alive, path) = (engine.add_target(at(0)), engine.add_path(at(0), SHAPE));
    engine.attach(alive, path).unwrap();
    engine.handle_path(at(0), path, PathState::Up);
    engine.handle_path(at(0), paths[0], PathState::Down);
    engine.submit(at(0), &[read(dead, 0, 1 << 20); 100], at(60_000)).unwrap();
    let batch = engine.submit(at(0), &[read(alive, 0, 9)], at(60_000)).unwrap();
    let ops = take(&mut engine, at(0), path, 9);
    end(&mut engine, at(0), path, &ops, Status::Done);
    assert_eq!(ended(&mut engine, at(0)), [(batch, Outcome::Done)]);
}

#[test]
fn peers_that_hang_use_up_neither_ops_nor_batches() {
    let config = Config { batches: 128, ops: 64, ..Config::default() };
    let (mut engine, target, paths) = rig(config, 1);
    let mut peers = vec![(target, paths[0])];
    for _ in 0..4 {
        let (target, path) = (engine.add_target(at(0)), engine.add_path(at(0), SHAPE));
        engine.attach(target, path).unwrap();
        engine.handle_path(at(0), path, PathState::Up);
        peers.push((target, path));
    }
    let (last, hanging) = peers.split_last().unwrap();
    let batch = [read(target, 0, 9); 3];
    for (target, path) in hanging {
        let to_it = batch.map(|transfer| Transfer { target: *target, ..transfer });
        let refused = (0..).find_map(|_| engine.submit(at(0), &to_it, at(60_000)).err());
        assert_eq!(refused, Some(SubmitError::TargetBusy(0)));
        take(&mut engine, at(0), *path, 64);
    }
    let good = engine.submit(at(0), &[read(last.0, 0, 9)], at(60_000)).unwrap();
    let ops = take(&mut engine, at(0), last.1, 64);
    end(&mut engine, at(0), last.1, &ops, Status::Done);
    assert_eq!(ended(&mut engine, at(0)), [(good, Outcome::Done)]);
}

/// Case 29: the peer lives again with other memory, so that its last way is taken away: what waits for it fails now, and
/// what comes later at once, instead of waiting for its deadline.
#[test]
fn work_for_a_target_without_a_way_fails_at_once() {
    let (mut engine, target, paths) = rig(Config::default(), 2);
    paths.iter().for_each(|path| engine.handle_path(at(1), *path, PathState::Down));
    let waiting = engine.submit(at(1), &[read(target, 0, 100), write(target, 0, 100)], at(30_000)).unwrap();
    assert!(engine.detach(target, paths[0]).is_some());
    assert_eq!(ended(&mut engine, at(2)), []);
    assert!(engine.detach(target, paths[1]).is_some());
    assert_eq!(ended(&mut engine, at(2)), [(waiting, failed(Failure::Unreachable, Quiet::Yes))]);
    let late = engine.submit(at(3), &[read(target, 0, 100)], at(30_000)).unwrap();
    assert_eq!(ended(&mut engine, at(3)), [(late, failed(Failure::Unreachable, Quiet::Yes))]);
    // A way that comes later is used.
    let path = engine.add_path(at(4), SHAPE);
    engine.attach(target, path).unwrap();
    engine.submit(at(4), &[read(target, 0, 100)], at(30_000)).unwrap();
    engine.handle_path(at(5), path, PathState::Up);
    assert_eq!(take(&mut engine, at(5), path, 9).len(), 1);
}
