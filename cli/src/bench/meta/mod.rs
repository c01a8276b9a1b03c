//! `springtide bench meta`: what a master answers in a second, and how fast it answers one (S0A-008, S0A-010).

mod keys;
mod puts;
mod reads;

use core::net::SocketAddr;
use std::thread;

use springtide_core::id::Incarnation;
use springtide_core::range::GRANULE;

use self::keys::Keys;
use self::reads::Kind;
use super::load::{Load, Target, report};
use super::wire::Wire;
use crate::args::Meta;
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
    // Nothing is written into it, so that it takes no memory; a quarter stays free, so that nothing is evicted.
    let most = args.objects.iter().copied().max().unwrap_or(0) + ADDED;
    let target = Target::new(args.master.as_ref(), 1, Size(most / 3 * 4 * GRANULE), &[])?;
    let master = target.master().resolve()?;
    let master = *master.first().ok_or_else(|| Failure::new("the master has no address"))?;
    let pool = target.connect()?;
    let caller = pool.client().incarnation();
    let mut meter =
        Meter { args, load: Load::new(stop, args.duration), master, caller, keys: Keys::new(caller) };
    let measured = meter.all(stop);
    let removed = meter.clear();
    pool.close();
    target.stop()?;
    removed?;
    measured.map(Measurements)
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
        for kind in [Kind::Exists, Kind::Get] {
            rows.push(self.one_by_one(kind)?);
            rows.push(self.many(kind, 1, self.args.pipeline.into())?);
            rows.push(self.many(kind, batch, 2)?);
        }
        rows.extend(self.put_and_remove()?);
        Ok(rows)
    }

    fn connect(&self) -> Result<Wire, Failure> {
        Wire::connect(self.master, self.caller)
    }

    /// What a row is called that measured `what`.
    fn name(&self, what: &str) -> String {
        format!("{what}, {} objects", crate::output::grouped(self.keys.count()))
    }

    /// Runs `work` on every connection at once, each in a thread that is given its number.
    fn everywhere<T: Send>(
        &self,
        work: impl Fn(u64, Wire) -> Result<T, Failure> + Sync,
    ) -> Result<Vec<T>, Failure> {
        let wires: Vec<Wire> =
            (0..self.args.connections).map(|_| self.connect()).collect::<Result<_, _>>()?;
        let work = &work;
        thread::scope(|scope| {
            let numbered = (0..).zip(wires);
            let threads: Vec<_> =
                numbered.map(|(number, wire)| scope.spawn(move || work(number, wire))).collect();
            let join = |thread: thread::ScopedJoinHandle<'_, _>| {
                thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
            };
            threads.into_iter().map(join).collect()
        })
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
            puts::put(&mut wire, &self.keys, at..end)?;
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
