//! `springtide bench meta`: what a master answers in a second, and how fast it answers one (S0A-008, S0A-010).

mod keys;
mod lenders;
mod pace;
mod puts;
mod reads;

use core::net::SocketAddr;
use std::sync::mpsc;
use std::thread;

use springtide_core::checksum::stored_len;
use springtide_core::id::Incarnation;
use springtide_core::range::{GRANULE, granules};

use self::keys::Keys;
use self::lenders::Lenders;
use self::pace::{Counter, Pace};
use self::reads::Kind;
use super::load::{Load, Target, report};
use super::wire::Wire;
use crate::args::{Meta, Operation};
use crate::exit::Failure;
use crate::progress::{Progress, Unit};
use crate::reports::measure::{Measurement, Measurements};
use crate::signals::Stop;
use crate::size::Size;

/// Most objects that the measurement of puts adds.
const ADDED: u64 = 1 << 20;

/// Measures and prints.
pub fn run(args: &Meta) -> Result<(), Failure> {
    report(args.json.format(), |stop| measure(args, stop))
}

/// A loaded master, and the objects there are.
struct Meter<'a> {
    args: &'a Meta,
    load: Load,
    master: SocketAddr,
    /// A client that stays registered meanwhile: only members may put.
    caller: Incarnation,
    keys: Keys,
}

fn measure(args: &Meta, stop: &Stop) -> Result<Measurements, Failure> {
    let target = Target::new(args.master.as_ref(), 0, Size(0), &[])?;
    let master = target.master().resolve()?;
    let master = *master.first().ok_or_else(|| Failure::new("the master has no address"))?;
    let pool = target.connect()?;
    let lenders = match args.master {
        Some(_) => None,
        None => Some(Lenders::new(pool.runtime(), master, args.segments, lent(args)?)?),
    };
    let caller = pool.client().incarnation();
    let mut meter =
        Meter { args, load: Load::new(stop, args.duration), master, caller, keys: Keys::new(caller) };
    let measured = meter.all(stop);
    let removed = meter.clear();
    lenders.into_iter().for_each(Lenders::close);
    pool.close();
    target.stop()?;
    removed?;
    measured.map(Measurements)
}

/// How much memory each segment needs so that a quarter stays free, and nothing is evicted.
fn lent(args: &Meta) -> Result<u64, Failure> {
    let most = args.objects.iter().copied().max().unwrap_or(0) + ADDED;
    let each = stored_len(args.size.0).and_then(granules);
    let all = each.and_then(|each| (most / 3 * 4).checked_mul(each));
    let too_much = || Failure::new(format_args!("{} objects of {} fit into no memory", most, args.size));
    // A segment that is nearly full is of little use to large objects: one more for each.
    let each = each.unwrap_or(GRANULE);
    Ok((all.ok_or_else(too_much)? / u64::from(args.segments) / each + 1).saturating_mul(each))
}

impl Meter<'_> {
    fn all(&mut self, stop: &Stop) -> Result<Vec<Measurement>, Failure> {
        let mut objects = self.args.objects.clone();
        objects.sort_unstable();
        let (mut rows, mut first) = (Vec::new(), Vec::new());
        for objects in objects {
            self.fill(objects, stop)?;
            let these = self.each()?;
            if first.is_empty() {
                first.clone_from(&these);
                rows.extend(these);
            } else {
                rows.extend(these.into_iter().zip(&first).map(|(row, first)| row.compared(first)));
            }
        }
        Ok(rows)
    }

    /// Everything that is measured while there are as many objects as now.
    fn each(&self) -> Result<Vec<Measurement>, Failure> {
        let batch = self.args.batch;
        let mut rows = Vec::new();
        for (operation, kind) in [(Operation::Exists, Kind::Exists), (Operation::Get, Kind::Get)] {
            if !self.args.operations.contains(&operation) {
                continue;
            }
            rows.push(self.one_by_one(kind)?);
            rows.push(self.many(kind, 1, self.args.pipeline.into())?);
            rows.push(self.many(kind, batch, 2)?);
        }
        if self.args.operations.contains(&Operation::Put) {
            rows.extend(self.put_and_remove()?);
        }
        Ok(rows)
    }

    fn connect(&self) -> Result<Wire, Failure> {
        Wire::connect(self.master, self.caller)
    }

    /// What a row is called that measured `what`.
    fn name(&self, what: &str) -> String {
        format!("{what}, {} objects", crate::output::grouped(self.keys.count()))
    }

    /// Runs `work` on every connection at once, each in a thread that is given its number, and tells from second to
    /// second what they count.
    fn everywhere<T: Send>(
        &self,
        name: &str,
        work: impl Fn(u64, Wire, &Counter) -> Result<T, Failure> + Sync,
    ) -> Result<(Vec<T>, Vec<u64>), Failure> {
        let wires: Vec<Wire> =
            (0..self.args.connections).map(|_| self.connect()).collect::<Result<_, _>>()?;
        let pace = Pace::new(name, self.args.connections, self.args.json.format());
        let (work, paced) = (&work, &pace);
        let done: Result<Vec<T>, Failure> = thread::scope(|scope| {
            let (measured, over) = mpsc::channel();
            scope.spawn(move || paced.tell(&over));
            let numbered = (0..).zip(wires);
            let threads: Vec<_> = numbered
                .map(|(number, wire)| scope.spawn(move || work(number, wire, paced.of(number))))
                .collect();
            let join = |thread: thread::ScopedJoinHandle<'_, _>| {
                thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
            };
            let done = threads.into_iter().map(join).collect();
            drop::<mpsc::Sender<()>>(measured);
            done
        });
        Ok((done?, pace.seconds()))
    }

    /// Puts objects until there are `objects` of them.
    fn fill(&mut self, objects: u64, stop: &Stop) -> Result<(), Failure> {
        let begin = self.keys.count();
        let progress = Progress::new("objects", objects, Unit::Items, self.args.json.format());
        progress.add(begin);
        let mut wire = self.connect()?;
        let mut at = begin;
        while at < objects && !stop.asked() {
            let end = objects.min(at + u64::from(puts::AT_ONCE));
            puts::put(&mut wire, &self.keys, self.args.size, at..end)?;
            self.keys.add(end - at);
            progress.add(end - at);
            at = end;
        }
        Ok(())
    }

    /// Removes every object of this run.
    fn clear(&self) -> Result<(), Failure> {
        puts::remove_matching(&mut self.connect()?, &self.keys)
    }
}
