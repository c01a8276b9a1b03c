//! The transfer engine over simulated rails that misbehave.

use core::time::Duration;

use springtide_core::id::BatchId;
use springtide_core::time::Instant;
use springtide_core::transfer::{Config, Outcome, Quiet, SubmitError, Transfer, TransferStatus, Verb};
use springtide_transport_sim::{Faults, Order, Shape};

use crate::Input;
use lane::{Lane, pattern};

#[path = "../../transports/sim/tests/lane/mod.rs"]
mod lane;

const STEPS: usize = 120;
/// Every transfer has a destination of its own, of this many bytes at most.
const PIECE: u64 = 6 << 10;
const PIECES: u64 = 96;
const BYTES: usize = (PIECE * PIECES) as usize;
const GRACE: Duration = Duration::from_millis(5);
/// The longest deadline.
const LONGEST: u64 = 20_000;

/// Batches over two rails to two peers while rails refuse, fail, lose, delay, reorder and flap, peers die on one rail or
/// freeze, and callers cancel. Each batch ends once and in time; what is done has the right bytes; what reaches outside
/// of memory is not done; and once a batch is quiet no byte of its destinations changes any more.
pub fn engine_ops(data: &[u8]) {
    let mut input = Input::new(data);
    let mut world = World::new(input.byte());
    for _ in 0..STEPS {
        if input.is_empty() {
            break;
        }
        world.step(&mut input);
        world.look();
    }
    world.wind_up();
}

/// A batch, and what became of it.
struct Watched {
    batch: BatchId,
    transfers: Vec<(Transfer, usize)>,
    deadline: Instant,
    ended: u32,
    /// It ended quietly, and its destinations were painted over.
    painted: bool,
}

struct World {
    lane: Lane,
    watched: Vec<Watched>,
    originals: Vec<Vec<u8>>,
    sources: Vec<u8>,
    place: u64,
}

impl World {
    fn new(seed: u8) -> Self {
        let config = Config { grace: GRACE, stall: Duration::from_millis(40), ..Config::default() };
        let rail = Shape { bandwidth: 128 << 20, max_op: 4 << 10, ..Shape::default() };
        let shapes = [rail, Shape { max_op: 3_000, chunk: 4 << 10, ..rail }];
        let mut lane = Lane::new(config, &shapes, seed.into(), BYTES);
        let (sources, originals) =
            (pattern(100, BYTES), (0..2).map(|n| pattern(n, BYTES)).collect::<Vec<_>>());
        lane.local.write(0, &sources).expect("as long as the memory");
        for bytes in &originals {
            lane.peer(bytes.clone());
        }
        Self { lane, watched: Vec::new(), originals, sources, place: 0 }
    }

    fn step(&mut self, input: &mut Input<'_>) {
        let (kind, rail, peer) = (input.below(16), input.below(2), input.below(2));
        let micros = |input: &mut Input<'_>, most| Duration::from_micros(u64::from(input.short()) % most);
        match kind {
            0..6 => self.submit(input),
            6 if !self.watched.is_empty() => {
                let batch = self.watched[input.below(self.watched.len())].batch;
                self.lane.engine.cancel(self.lane.now, batch);
            }
            7 | 8 => self.lane.rails[rail].set(faults(input)),
            9 => self.lane.rails[rail].set(Faults::default()),
            10 => self.lane.peers[peer].ends[rail] = None,
            11 => self.lane.peers[peer].frozen = self.lane.now + micros(input, 60_000),
            12 => self.lane.nets[rail].set_speed(micros(input, 2_000), 1 << (10 + input.below(20))),
            _ => (0..1 + input.below(100)).for_each(|_| self.lane.turn()),
        }
    }

    fn submit(&mut self, input: &mut Input<'_>) {
        let count = (1 + input.below(4) as u64).min(PIECES - self.place);
        if count == 0 {
            return;
        }
        let transfers: Vec<_> = (0..count).map(|_| self.transfer(input)).collect();
        let within = Duration::from_micros(200 + u64::from(input.short()) % (LONGEST - 200));
        let list: Vec<Transfer> = transfers.iter().map(|(transfer, _)| *transfer).collect();
        let deadline = self.lane.now + within;
        let wraps = |transfer: &Transfer| transfer.to.checked_add(transfer.len).is_none();
        let first = list.iter().position(wraps).map(|index| SubmitError::OutOfRange(index as u32));
        let batch = match self.lane.engine.submit(self.lane.now, &list, deadline) {
            Ok(batch) if first.is_none() => batch,
            refused => return assert_eq!(refused.err(), first),
        };
        self.watched.push(Watched { batch, transfers, deadline, ended: 0, painted: false });
    }

    /// A transfer whose destination is a piece of its own; now and then one that reaches outside of the memory.
    fn transfer(&mut self, input: &mut Input<'_>) -> (Transfer, usize) {
        let kind = input.byte();
        let (peer, place) = (usize::from(kind & 1), self.place * PIECE);
        let (len, source) =
            (1 + u64::from(input.short()) % PIECE, input.below(PIECES as usize - 1) as u64 * PIECE);
        self.place += 1;
        let transfer = match kind >> 1 & 15 {
            0 => self.lane.read(peer, place, BYTES as u64 - len / 2, len),
            1 => self.lane.read(peer, place, u64::MAX - len / 2, len),
            2..9 => self.lane.read(peer, place, source, len),
            // No read goes to this place, so the source stays what it is.
            _ => self.lane.write(peer, place, place, len),
        };
        (transfer, peer)
    }

    /// Looks at the batches that have just ended.
    fn look(&mut self) {
        for (id, outcome, when) in core::mem::take(&mut self.lane.ended) {
            let n = self.watched.iter().position(|batch| batch.batch == id).expect("only batches end");
            self.watched[n].ended += 1;
            let latest = self.watched[n].deadline + GRACE * 2 + Duration::from_millis(1);
            assert!(when <= latest, "{id:?} ended {:?} late", when.since(latest));
            self.check(n, outcome);
            if outcome.quiet() == Quiet::Yes {
                self.paint(n);
            }
            self.lane.engine.release(self.lane.now, id);
        }
    }

    fn check(&self, n: usize, outcome: Outcome) {
        let batch = &self.watched[n];
        for (index, (transfer, peer)) in batch.transfers.iter().enumerate() {
            let status =
                self.lane.engine.transfer_status(batch.batch, index).expect("it is not released yet");
            assert_ne!(status, TransferStatus::Pending);
            assert!(outcome != Outcome::Done || status == TransferStatus::Done);
            if status != TransferStatus::Done {
                continue;
            }
            let range = |from: u64| from as usize..(from + transfer.len) as usize;
            let (from, range) = match transfer.verb {
                Verb::Read => (&self.originals[*peer], range(transfer.to)),
                Verb::Write => (&self.sources, range(transfer.at)),
            };
            let from = from.get(range).expect("what reaches outside is never done");
            let right = self.destination(transfer, *peer) == from;
            // A source that was itself written to or painted says nothing.
            assert!(
                right || !self.is_fresh(transfer, *peer),
                "{transfer:?} is done, but its bytes are wrong"
            );
        }
    }

    fn is_fresh(&self, transfer: &Transfer, peer: usize) -> bool {
        let range = transfer.to as usize..(transfer.to + transfer.len) as usize;
        let mut bytes = vec![0; range.len()];
        let block = &self.lane.peers[peer].block;
        transfer.verb == Verb::Write
            || block.read(transfer.to, &mut bytes).is_ok() && bytes == self.originals[peer][range]
    }

    fn destination(&self, transfer: &Transfer, peer: usize) -> Vec<u8> {
        let mut bytes = vec![0; transfer.len as usize];
        let read = match transfer.verb {
            Verb::Read => self.lane.local.read(transfer.at, &mut bytes),
            Verb::Write => self.lane.peers[peer].block.read(transfer.to, &mut bytes),
        };
        read.expect("destinations lie inside");
        bytes
    }

    fn paint(&mut self, n: usize) {
        self.watched[n].painted = true;
        for (transfer, peer) in &self.watched[n].transfers {
            let painted = match transfer.verb {
                Verb::Read => self.lane.local.write(transfer.at, &paint(transfer.len)),
                Verb::Write => self.lane.peers[*peer].block.write(transfer.to, &paint(transfer.len)),
            };
            painted.expect("destinations lie inside");
        }
    }

    fn wind_up(mut self) {
        self.lane.run(Duration::from_micros(LONGEST) + GRACE * 3);
        self.look();
        for batch in &self.watched {
            assert_eq!(batch.ended, 1, "{:?} ended {} times", batch.batch, batch.ended);
            for (transfer, peer) in batch.transfers.iter().filter(|_| batch.painted) {
                let intact = self.destination(transfer, *peer) == paint(transfer.len);
                assert!(intact, "{:?} was quiet, but moved bytes later", batch.batch);
            }
        }
        assert_eq!((self.lane.engine.live(), self.lane.engine.strange()), (0, 0));
    }
}

fn paint(len: u64) -> Vec<u8> {
    vec![0x5a; len as usize]
}

fn faults(input: &mut Input<'_>) -> Faults {
    let mut share = |most: u32| if input.flag() { u32::from(input.byte()) * most / 255 } else { 0 };
    let (refuse, fail, lose, delay) = (share(500_000), share(400_000), share(30_000), share(300_000));
    let (flap, cut_after) = (Duration::from_micros(share(6_000).into()), share(200).into());
    let order = if share(255) > 127 { Order::Shuffled } else { Order::Kept };
    let delay_by = Duration::from_micros(1 + u64::from(share(4_000)));
    Faults { refuse, fail, lose, delay, delay_by, order, flap, cut_after }
}
