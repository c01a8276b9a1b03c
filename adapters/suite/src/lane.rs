//! Lanes that tasks of the runtime attend: for callers that are tasks, and for peers that only want to be served.

use core::time::Duration;
use std::sync::Arc;

use springtide_core::id::{Incarnation, RegionId, SegmentId, TargetId};
use springtide_core::range::Extent;
use springtide_core::ticket::TicketKey;
use springtide_core::time::Instant;
use springtide_core::transfer::{Config, Outcome, Transfer, Verb};
use springtide_driver::{Lane, Pause, Runtime, Seat, Shutdown, attend, block_on, now};
use springtide_hal::Block;
use springtide_transport::{Exposure, Transport};
use springtide_transport_sim::{Shape, SimNet};

const LEN: u64 = 1 << 18;

fn soon() -> Instant {
    now() + Duration::from_secs(20)
}

struct World {
    ours: Arc<Seat<Lane>>,
    theirs: Arc<Seat<Lane>>,
    buffer: Block,
    local: RegionId,
    exposed: RegionId,
    target: TargetId,
}

impl World {
    fn new() -> Self {
        let net = SimNet::new(Shape::default());
        let lane = || {
            let transports = vec![Box::new(net.endpoint()) as Box<dyn Transport>];
            Arc::new(
                Seat::new(Lane::new(Config::default(), transports, 1).expect("descriptors are free"))
                    .expect("descriptors are free"),
            )
        };
        let (ours, theirs) = (lane(), lane());
        let (buffer, owned) = (Block::from(vec![0; LEN as usize]), Block::from(vec![8; LEN as usize]));
        let segment = SegmentId::from_bits(1 << 32).expect("a generation");
        let exposure = Exposure::Segment { owner: Incarnation(5), segment, key: TicketKey([3; 16]) };
        let local = ours
            .with(now(), |lane, _| lane.expose(&buffer, Exposure::Source))
            .expect("memory can be exposed");
        let exposed =
            theirs.with(now(), |lane, _| lane.expose(&owned, exposure)).expect("memory can be exposed");
        let cards = theirs.with(now(), |lane, _| lane.cards(exposed)).expect("it is exposed");
        let target = ours.with(now(), |lane, _| lane.target(now(), &cards)).expect("the cards are good");
        Self { ours, theirs, buffer, local, exposed, target }
    }

    fn read(&self, at: u64, len: u64) -> Transfer {
        let Self { local, target, .. } = *self;
        Transfer { verb: Verb::Read, local, at, target, to: at, ticket: None, len }
    }
}

/// Tasks move bytes over lanes that other tasks drive, and those end when nobody owns the lanes any more.
pub fn tasks_transfer_over_attended_lanes<R: Runtime>(make: impl Fn() -> R) {
    for pause in [Pause::new(Duration::ZERO), Pause::default()] {
        let runtime = make();
        let world = World::new();
        let ours = runtime.spawn(attend(&runtime, &world.ours, pause).expect("a descriptor is free"));
        let theirs = runtime.spawn(attend(&runtime, &world.theirs, pause).expect("a descriptor is free"));
        let tasks: Vec<_> = (0..8)
            .map(|task| {
                let (seat, part) = (Arc::clone(&world.ours), LEN / 8);
                let batch: Vec<_> =
                    (0..32).map(|n| world.read(task * part + n * part / 32, part / 32)).collect();
                runtime.spawn(async move {
                    for transfer in batch {
                        let ended =
                            seat.transfer(&[transfer], soon()).await.expect("the transfer is possible");
                        assert_eq!(ended.outcome, Outcome::Done);
                    }
                })
            })
            .collect();
        runtime.block_on(async {
            for task in tasks {
                task.await;
            }
        });
        assert!(world.buffer.to_vec() == vec![8; LEN as usize]);
        drop(world);
        // Nobody owns the lanes any more: who attends them ends.
        runtime.block_on(async {
            ours.await;
            theirs.await;
        });
    }
}

/// A lane that a task attends also serves callers that block on it, and peers that fence.
pub fn an_attended_lane_serves_blocked_callers_and_fences<R: Runtime>(make: impl Fn() -> R) {
    let (runtime, world, done) = (make(), World::new(), Shutdown::new());
    let attending = [&world.ours, &world.theirs]
        .map(|seat| runtime.spawn(attend(&runtime, seat, Pause::default()).expect("a descriptor is free")));
    std::thread::scope(|scope| {
        scope.spawn(|| {
            for n in 0..100 {
                let moving = world.ours.transfer(&[world.read(n * 64, 64)], soon());
                let ended = block_on(&[&*world.ours], soon(), moving)
                    .expect("in time")
                    .expect("the transfer is possible");
                assert_eq!(ended.outcome, Outcome::Done);
            }
            done.begin();
        });
        // The lanes are attended meanwhile, also where tasks run on this thread.
        runtime.block_on(done.begun());
    });
    let fence = world.theirs.fence(world.exposed, Extent::new(0, LEN).expect("an extent"), 1);
    assert_eq!(runtime.block_on(fence), Ok(()));
    drop(world);
    for task in attending {
        runtime.block_on(task);
    }
}
