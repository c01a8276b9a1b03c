//! `springtide replay`.

mod content;
mod report;
mod worker;

use core::sync::atomic::{AtomicBool, Ordering};
use core::time::Duration;
use std::sync::{Arc, Mutex, PoisonError};

use springtide::core::checksum::stored_len;
use springtide::core::evict::Kind;
use springtide::core::range::granules;
use springtide::core::time::Instant;
use springtide::{Client, Runtime, Tokio};

use self::report::Around;
pub use self::report::Replayed;
pub(crate) use self::report::ratio;
use self::worker::{Tally, Worker};
use super::pool::{Pool, failed};
use super::serve;
use crate::args;
use crate::cluster::{Cluster, Plan};
use crate::exit::Failure;
use crate::output::Out;
use crate::progress::{Progress, Unit};
use crate::signals::Stop;
use crate::workload::{self, Record};

/// A pool that is started for a replay leases for so long: long enough for any read here, and short enough that a
/// workload which runs much faster than life can evict what it has just read.
const LEASE: &str = "200ms";
/// How long one call may take.
const TIMEOUT: Duration = Duration::from_secs(30);

/// Replays a workload, and prints how the pool did.
pub fn run(args: &args::Replay) -> Result<(), Failure> {
    let stop = Stop::install()?;
    let policy = args.policy.as_deref().map(serve::policy).transpose()?;
    let requests = load(args)?;
    let cluster = match &args.master {
        Some(_) => None,
        None => Some(start(args, policy)?),
    };
    let master = match (&args.master, &cluster) {
        (Some(master), _) => master.resolve()?[0],
        (None, Some(cluster)) => cluster.master(),
        (None, None) => return Err(Failure::new("there is no master")),
    };
    let lru = cluster.as_ref().map(|_| lru(args, &requests));
    let pool = Pool::at(master, TIMEOUT)?;
    let before = pool.run(pool.client().figures()).map_err(|error| failed("status", &error))?;
    let progress = Progress::new("requests", requests.len() as u64, Unit::Items, args.json.format());
    let begun = pool.runtime().now();
    let tally = drive(&pool, args, requests, stop.flag(), &progress)?;
    let seconds = pool.runtime().now().since(begun).as_secs_f64();
    let after = pool.run(pool.client().figures()).map_err(|error| failed("status", &error))?;
    pool.close();
    let evicted = after.evicted.saturating_sub(before.evicted);
    let around = Around { block: args.block.0, workers: args.concurrency, lru, evicted, seconds };
    let replayed = Replayed::new(tally, &around);
    drop(progress);
    cluster.map_or(Ok(()), Cluster::stop)?;
    Out::stdout(args.json.format()).report(&replayed)?;
    match replayed {
        _ if stop.asked() => Err(Failure::interrupted()),
        Replayed { verify_errors: 1.., .. } => Err(Failure::new("blocks with wrong bytes were read")),
        Replayed { errors: 1.., first_error: Some(error), .. } => Err(Failure::new(error)),
        _ => Ok(()),
    }
}

fn load(args: &args::Replay) -> Result<Vec<Record>, Failure> {
    let most = args.requests.map(|most| usize::try_from(most).unwrap_or(usize::MAX));
    match &args.trace {
        Some(file) => workload::read(file, most).map_err(Failure::new),
        None => Ok(workload::generate(args.seed, most.unwrap_or(args::Replay::GENERATED as usize))),
    }
}

fn start(args: &args::Replay, policy: Option<Kind>) -> Result<Cluster, Failure> {
    let mut plan = Plan::new(args.nodes, args.memory)?;
    plan.master = vec!["--lease".into(), LEASE.into()];
    if let Some(policy) = policy {
        plan.master.extend(["--policy".into(), policy.to_string()]);
    }
    Cluster::start(plan)
}

/// What the same requests would hit in a pool of this size under LRU.
fn lru(args: &args::Replay, requests: &[Record]) -> f64 {
    let each = stored_len(args.block.0).and_then(granules).unwrap_or(u64::MAX);
    let blocks = u64::from(args.nodes) * (args.memory.0 / each);
    let blocks = usize::try_from(blocks).unwrap_or(usize::MAX);
    let hits = workload::prefix_hits(Kind::Lru, blocks, requests);
    ratio(hits.hits, hits.references)
}

/// What the workers share: the requests that are left.
struct Queue {
    requests: Mutex<std::vec::IntoIter<Record>>,
    stop: Arc<AtomicBool>,
    begun: Instant,
    speed: Option<f64>,
}

impl Queue {
    /// The next request, and when it is due.
    fn next(&self) -> Option<(Record, Instant)> {
        if self.stop.load(Ordering::Relaxed) {
            return None;
        }
        let record = self.requests.lock().unwrap_or_else(PoisonError::into_inner).next()?;
        let due = match self.speed {
            None => self.begun,
            Some(speed) => self.begun + Duration::from_secs_f64(record.timestamp as f64 / 1_000.0 / speed),
        };
        Some((record, due))
    }
}

fn drive(
    pool: &Pool,
    args: &args::Replay,
    requests: Vec<Record>,
    stop: Arc<AtomicBool>,
    progress: &Progress,
) -> Result<Tally, Failure> {
    let runtime = pool.runtime().clone();
    let requests = Mutex::new(requests.into_iter());
    let queue = Arc::new(Queue { requests, stop, begun: runtime.now(), speed: args.speed });
    let total = Arc::new(Mutex::new(Tally::default()));
    let mut tasks = Vec::new();
    for _ in 0..args.concurrency {
        let worker = Worker::new(pool.client().clone(), runtime.clone(), args.block.0);
        let worker = worker.map_err(|error| failed("memory for a worker", &error))?;
        let work = serve_queue(worker, runtime.clone(), Arc::clone(&queue), progress.clone());
        let total = Arc::clone(&total);
        tasks.push(runtime.spawn(async move {
            let tally = work.await;
            total.lock().unwrap_or_else(PoisonError::into_inner).merge(tally);
        }));
    }
    runtime.block_on(async {
        for task in tasks {
            task.await;
        }
    });
    let tally = core::mem::take(&mut *total.lock().unwrap_or_else(PoisonError::into_inner));
    Ok(tally)
}

async fn serve_queue(mut worker: Worker, runtime: Tokio, queue: Arc<Queue>, progress: Progress) -> Tally {
    while let Some((record, due)) = queue.next() {
        if queue.speed.is_some() {
            runtime.timer(due).await;
        }
        worker.request(&record.hash_ids).await;
        progress.advance(1);
    }
    worker.tally
}
