//! `springtide bench store`: whole values through a client, beside copies in memory.

mod values;
mod worker;

use std::sync::{Arc, Mutex, PoisonError};

use springtide::{Blocking, Client, ClientConfig, Runtime, Tokio, Transports, transports};

use self::values::Values;
use self::worker::{Done, Op, Worker};
use super::load::{Load, Target, report};
use super::plain;
use crate::args;
use crate::commands::pool::{Pool, failed};
use crate::exit::Failure;
use crate::reports::measure::{Measurement, Measurements};
use crate::signals::Stop;

/// Measures and prints.
pub fn run(args: &args::Store) -> Result<(), Failure> {
    report(args.json.format(), |stop| measure(args, stop))
}

fn measure(args: &args::Store, stop: &Stop) -> Result<Measurements, Failure> {
    let target = Target::new(args.master.as_ref(), args.nodes.into(), args.memory, &[])?;
    let pool = target.connect()?;
    let mut rows = Vec::new();
    let meter = Meter { args, load: Load::new(stop, args.duration), target: &target, pool: &pool };
    let measured = args.sizes.iter().try_for_each(|size| {
        rows.extend(meter.size(size.0)?);
        Ok(())
    });
    pool.close();
    target.stop()?;
    measured.map(|()| Measurements(rows))
}

/// A pool, and how to load it.
struct Meter<'a> {
    args: &'a args::Store,
    load: Load,
    target: &'a Target,
    pool: &'a Pool,
}

impl Meter<'_> {
    fn size(&self, size: u64) -> Result<Vec<Measurement>, Failure> {
        let most = self.args.master.is_none().then(|| self.args.memory.0 * u64::from(self.args.nodes));
        let values = Arc::new(Values::new(size, self.pool.client().incarnation(), most)?);
        let measured = self.rows(&values);
        // What was stored goes also when something failed.
        let removed = self.pool.run(values.remove(self.pool.client()));
        removed.map_err(|error| failed("remove", &error))?;
        measured
    }

    fn rows(&self, values: &Arc<Values>) -> Result<Vec<Measurement>, Failure> {
        let (client, size) = (self.pool.client(), values.size());
        let memcpy = plain::memcpy(size, values.bytes(), &self.load)?;
        self.pool.run(values.store(client)).map_err(|error| failed("put", &error))?;
        self.pool.runtime().block_on(values.verify(client))?;
        let (many, batch) = (self.args.concurrency.into(), values.batch());
        let mut rows = Vec::new();
        for op in [Op::Put, Op::PutFrom, Op::Get, Op::GetInto] {
            rows.push(self.attended(values, op, 1, many)?);
            if op.has_batches() && batch > 1 {
                rows.push(self.attended(values, op, batch, many.div_ceil(batch))?);
            }
            rows.push(self.attended(values, op, 1, 1)?);
        }
        rows.extend(self.blocking(values)?);
        let compared = rows.into_iter().map(|row| row.compared(&memcpy));
        Ok(core::iter::once(memcpy.clone()).chain(compared).collect())
    }

    /// `tasks` tasks, each with one call under way.
    fn attended(
        &self,
        values: &Arc<Values>,
        op: Op,
        batch: usize,
        tasks: usize,
    ) -> Result<Measurement, Failure> {
        let runtime = self.pool.runtime();
        let mut workers = Vec::new();
        for number in 0..tasks {
            workers.push(self.worker(self.pool.client(), runtime, values, op, batch, number)?);
        }
        let total = Arc::new(Mutex::new(Done::default()));
        let window = self.load.begin();
        let spawn = |worker: Worker| {
            let (window, total) = (window.clone(), Arc::clone(&total));
            runtime.spawn(async move {
                let done = worker.work(&window).await;
                total.lock().unwrap_or_else(PoisonError::into_inner).merge(done);
            })
        };
        let tasks: Vec<_> = workers.into_iter().map(spawn).collect();
        let count = tasks.len();
        runtime.block_on(async {
            for task in tasks {
                task.await;
            }
        });
        let took = window.took();
        let done = core::mem::take(&mut *total.lock().unwrap_or_else(PoisonError::into_inner));
        done.row(op.name(batch, count), values.size(), took)
    }

    /// One thread that drives all it needs itself.
    fn blocking(&self, values: &Arc<Values>) -> Result<Vec<Measurement>, Failure> {
        let runtime = Tokio::new_multi(1).map_err(Failure::new)?;
        let to = self.target.to_connect();
        let (_, opened) = transports(&Transports::default()).map_err(Failure::new)?;
        let config = ClientConfig { timeout: to.timeout, ..ClientConfig::new(to.master.resolve()?) };
        let blocking = Blocking::connect(config, runtime.clone(), opened)
            .map_err(|error| failed("a blocking client", &error))?;
        let mut rows = Vec::new();
        for op in [Op::PutFrom, Op::GetInto] {
            let worker = self.worker(blocking.client(), &runtime, values, op, 1, 0)?;
            let window = self.load.begin();
            let done = worker.block(&blocking, &window);
            rows.push(done.row(format!("{}, blocking", op.name(1, 1)), values.size(), window.took())?);
        }
        blocking.close();
        Ok(rows)
    }

    fn worker(
        &self,
        client: &Client<Tokio>,
        runtime: &Tokio,
        values: &Arc<Values>,
        op: Op,
        batch: usize,
        number: usize,
    ) -> Result<Worker, Failure> {
        Worker::new(client.clone(), runtime.clone(), Arc::clone(values), op, batch, number)
            .map_err(|error| failed("memory for values", &error))
    }
}
