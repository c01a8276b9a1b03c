//! Lanes that tasks attend: for callers that are tasks, and for peers that only want to be served.

use core::time::Duration;
use std::sync::Arc;

use springtide_core::id::{Incarnation, RegionId, SegmentId, TargetId};
use springtide_core::range::Extent;
use springtide_core::ticket::TicketKey;
use springtide_core::time::Instant;
use springtide_core::transfer::{Config, Outcome, Transfer, Verb};
use springtide_driver::{Lane, Pause, Runtime, Seat, attend, block_on, now};
use springtide_hal::Block;
use springtide_tokio::Tokio;
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
            Arc::new(Seat::new(Lane::new(Config::default(), transports, 1).unwrap()).unwrap())
        };
        let (ours, theirs) = (lane(), lane());
        let (buffer, owned) = (Block::from(vec![0; LEN as usize]), Block::from(vec![8; LEN as usize]));
        let segment = SegmentId::from_bits(1 << 32).unwrap();
        let exposure = Exposure::Segment { owner: Incarnation(5), segment, key: TicketKey([3; 16]) };
        let local = ours.with(now(), |lane, _| lane.expose(&buffer, Exposure::Source)).unwrap();
        let exposed = theirs.with(now(), |lane, _| lane.expose(&owned, exposure)).unwrap();
        let cards = theirs.with(now(), |lane, _| lane.cards(exposed)).unwrap();
        let target = ours.with(now(), |lane, _| lane.target(now(), &cards)).unwrap();
        Self { ours, theirs, buffer, local, exposed, target }
    }

    fn read(&self, at: u64, len: u64) -> Transfer {
        let Self { local, target, .. } = *self;
        Transfer { verb: Verb::Read, local, at, target, to: at, ticket: None, len }
    }
}

#[test]
fn tasks_transfer_over_attended_lanes() {
    for pause in [Pause::new(Duration::ZERO), Pause::default()] {
        let tokio = Tokio::new_multi(2).unwrap();
        let world = World::new();
        let ours = tokio.spawn(attend(&tokio, &world.ours, pause).unwrap());
        let theirs = tokio.spawn(attend(&tokio, &world.theirs, pause).unwrap());
        let tasks: Vec<_> = (0..8)
            .map(|task| {
                let (seat, part) = (Arc::clone(&world.ours), LEN / 8);
                let batch: Vec<_> =
                    (0..32).map(|n| world.read(task * part + n * part / 32, part / 32)).collect();
                tokio.spawn(async move {
                    for transfer in batch {
                        let ended = seat.transfer(&[transfer], soon()).await.unwrap();
                        assert_eq!(ended.outcome, Outcome::Done);
                    }
                })
            })
            .collect();
        tokio.block_on(async {
            for task in tasks {
                task.await;
            }
        });
        assert!(world.buffer.to_vec() == vec![8; LEN as usize]);
        drop(world);
        // Nobody owns the lanes any more: who attends them ends.
        tokio.block_on(async {
            ours.await;
            theirs.await;
        });
    }
}

#[test]
fn an_attended_lane_serves_blocked_callers_and_fences() {
    let tokio = Tokio::new_multi(1).unwrap();
    let world = World::new();
    let attending =
        [&world.ours, &world.theirs].map(|seat| tokio.spawn(attend(&tokio, seat, Pause::default()).unwrap()));
    for n in 0..100 {
        let moving = world.ours.transfer(&[world.read(n * 64, 64)], soon());
        let ended = block_on(&[&*world.ours], soon(), moving).unwrap().unwrap();
        assert_eq!(ended.outcome, Outcome::Done);
    }
    let fence = world.theirs.fence(world.exposed, Extent::new(0, LEN).unwrap(), 1);
    assert_eq!(tokio.block_on(fence), Ok(()));
    drop(world);
    for task in attending {
        tokio.block_on(task);
    }
}
