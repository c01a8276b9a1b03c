//! `springtide replay`.

mod content;
mod worker;

use core::sync::atomic::{AtomicBool, Ordering};
use core::time::Duration;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use springtide::core::checksum::stored_len;
use springtide::core::evict::Kind;
use springtide::core::range::granules;
use springtide::core::time::Instant;
use springtide::{Runtime, Tokio};

use self::worker::Worker;
use super::pool::{Pool, failed};
use super::serve;
use crate::args::{self, Connect};
use crate::cluster::{Cluster, Plan};
use crate::exit::Failure;
use crate::output::Out;
use crate::progress::{Progress, Unit};
use crate::reports::replay::{Circumstances, ReplayReport, Tally};
use crate::signals::Stop;
use crate::workload::{self, PrefixCache, Record};

/// The rules of a pool that is started for a replay. It leases long enough for any read here, and shortly enough that a
/// workload which runs much faster than life can evict what it has just read; and it fills its memory nearly, as LRU of
/// the same size does beside it.
const RULES: [&str; 6] = ["--lease", "200ms", "--high-watermark", "0.98", "--eviction-ratio", "0.01"];
/// How long one call may take.
const TIMEOUT: Duration = Duration::from_secs(30);

/// Replays a workload, and prints how the pool did.
pub fn run(args: &args::Replay) -> Result<(), Failure> {
    let stop = Stop::install()?;
    let policy = args.policy.as_deref().map(serve::policy).transpose()?;
    let requests = load(args)?;
    let cluster = match args.master {
        Some(_) => None,
        None => Some(start(args, policy)?),
    };
    let master = args.master.as_ref().or_else(|| cluster.as_ref().map(Cluster::master));
    let Some(master) = master.cloned() else { return Err(Failure::new("there is no master")) };
    let tenant = springtide::core::key::DEFAULT_TENANT.to_owned();
    let pool = Pool::connect(&Connect { master, tenant, timeout: TIMEOUT })?;
    let evicted = || pool.run(pool.client().figures()).map(|figures| figures.evicted);
    let before = evicted().map_err(|error| failed("status", &error))?;
    let begun = pool.runtime().now();
    let (tally, lru_hits) = drive(&pool, args, requests, &stop)?;
    let took = pool.runtime().now().since(begun);
    let evicted = evicted().map_err(|error| failed("status", &error))?.saturating_sub(before);
    pool.close();
    cluster.map_or(Ok(()), Cluster::stop)?;
    let policy = cluster_policy(args, policy);
    let report = ReplayReport::new(
        &tally,
        Circumstances { took, lru_hits, evicted, policy, workers: args.concurrency },
    );
    Out::stdout(args.json.format()).report(&report)?;
    match report {
        _ if stop.asked() => Err(Failure::interrupted()),
        ReplayReport { verify_errors: 1.., .. } => Err(Failure::new("blocks with wrong bytes were read")),
        ReplayReport { first_error: Some(error), .. } => Err(Failure::new(error)),
        _ => Ok(()),
    }
}

fn cluster_policy(args: &args::Replay, policy: Option<Kind>) -> Option<String> {
    args.master.is_none().then(|| policy.unwrap_or_default().to_string())
}

fn load(args: &args::Replay) -> Result<Vec<Record>, Failure> {
    let most = args.requests.map(|most| usize::try_from(most).unwrap_or(usize::MAX));
    match &args.trace {
        Some(file) => workload::read(file, most).map_err(Failure::new),
        None => Ok(workload::generate(args.seed, most.unwrap_or(args::Replay::GENERATED as usize))),
    }
}

fn start(args: &args::Replay, policy: Option<Kind>) -> Result<Cluster, Failure> {
    let mut plan = Plan::new(args.nodes.into(), args.memory)?;
    plan.master = RULES.map(String::from).into();
    if let Some(policy) = policy {
        plan.master.extend(["--policy".into(), policy.to_string()]);
    }
    Cluster::start(plan)
}

/// An LRU list of as many blocks as fit into the memory. The requests go through it beside the pool, where they begin
/// and end at the same times: what overlaps in the pool overlaps there, too.
fn beside(args: &args::Replay) -> PrefixCache {
    let each = stored_len(args.block.0).and_then(granules).unwrap_or(u64::MAX);
    let blocks = u64::from(args.nodes).saturating_mul(args.memory.0 / each);
    PrefixCache::new(Kind::Lru, usize::try_from(blocks).unwrap_or(usize::MAX))
}

/// What the workers share: the requests that are left, and the cache for comparison.
struct Queue {
    requests: Mutex<std::vec::IntoIter<Record>>,
    beside: Mutex<PrefixCache>,
    stop: Arc<AtomicBool>,
    begun: Instant,
    speed: Option<f64>,
    progress: Progress,
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

    /// The cache for comparison.
    fn beside(&self) -> MutexGuard<'_, PrefixCache> {
        self.beside.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Serves all requests. Gives back what was counted, and how many blocks LRU would have read.
fn drive(
    pool: &Pool,
    args: &args::Replay,
    requests: Vec<Record>,
    stop: &Stop,
) -> Result<(Tally, u64), Failure> {
    let runtime = pool.runtime().clone();
    let progress = Progress::new("requests", requests.len() as u64, Unit::Items, args.json.format());
    let requests = Mutex::new(requests.into_iter());
    let (stop, begun, beside) = (stop.flag(), runtime.now(), Mutex::new(beside(args)));
    let queue = Arc::new(Queue { requests, beside, stop, begun, speed: args.speed, progress });
    let total = Arc::new(Mutex::new(Tally::default()));
    let mut tasks = Vec::new();
    for _ in 0..args.concurrency {
        let worker = Worker::new(pool.client().clone(), runtime.clone(), args.block.0);
        let worker = worker.map_err(|error| failed("memory for a worker", &error))?;
        let work = serve_queue(worker, runtime.clone(), Arc::clone(&queue));
        let total = Arc::clone(&total);
        tasks.push(runtime.spawn(async move {
            let tally = work.await;
            total.lock().unwrap_or_else(PoisonError::into_inner).merge(&tally);
        }));
    }
    runtime.block_on(async {
        for task in tasks {
            task.await;
        }
    });
    let tally = core::mem::take(&mut *total.lock().unwrap_or_else(PoisonError::into_inner));
    Ok((tally, queue.beside().hits().hits))
}

async fn serve_queue(mut worker: Worker, runtime: Tokio, queue: Arc<Queue>) -> Tally {
    while let Some((record, due)) = queue.next() {
        if queue.speed.is_some() {
            runtime.timer(due).await;
        }
        let prefix = queue.beside().read(&record.hash_ids);
        worker.request(&record.hash_ids).await;
        queue.beside().store(&record.hash_ids[prefix..]);
        queue.progress.add(1);
    }
    worker.tally
}
