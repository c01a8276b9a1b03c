//! What all loads need: a pool of their own, an end, and contents that can be checked.

use core::sync::atomic::{AtomicBool, Ordering};
use core::time::Duration;
use std::sync::Arc;

use springtide_core::key::DEFAULT_TENANT;
use springtide_core::rng::mix;
use springtide_core::time::Instant;
use springtide_hal_host::clock;

use crate::address::Address;
use crate::args::Connect;
use crate::cluster::{Cluster, Plan};
use crate::commands::pool::Pool;
use crate::exit::Failure;
use crate::output::{Format, Out};
use crate::reports::measure::Measurements;
use crate::signals::Stop;
use crate::size::Size;

/// How long one call may take.
const TIMEOUT: Duration = Duration::from_secs(30);

/// Runs a measurement that a signal may end, and prints it.
pub(super) fn report(
    format: Format,
    measure: impl FnOnce(&Stop) -> Result<Measurements, Failure>,
) -> Result<(), Failure> {
    let stop = Stop::install()?;
    let measured = measure(&stop);
    if stop.asked() {
        // A signal goes to the services too: what failed then failed because of it.
        return Err(Failure::interrupted());
    }
    Out::stdout(format).report(&measured?)
}

/// The pool that is loaded: somebody's, or one of our own that goes with us.
pub(super) struct Target {
    master: Address,
    cluster: Option<Cluster>,
}

impl Target {
    /// The running pool of `master`, or a new one of `nodes` nodes that lend `memory` each; `arguments` are for its
    /// master.
    pub(super) fn new(
        master: Option<&Address>,
        nodes: usize,
        memory: Size,
        arguments: &[&str],
    ) -> Result<Self, Failure> {
        if let Some(master) = master {
            return Ok(Self { master: master.clone(), cluster: None });
        }
        let mut plan = Plan::new(nodes, memory)?;
        plan.master = arguments.iter().map(|&argument| argument.to_owned()).collect();
        let cluster = Cluster::start(plan)?;
        Ok(Self { master: cluster.master().clone(), cluster: Some(cluster) })
    }

    /// Where the master serves.
    pub(super) const fn master(&self) -> &Address {
        &self.master
    }

    /// How to connect to it.
    pub(super) fn to_connect(&self) -> Connect {
        Connect { master: self.master.clone(), tenant: DEFAULT_TENANT.to_owned(), timeout: TIMEOUT }
    }

    /// A client of it.
    pub(super) fn connect(&self) -> Result<Pool, Failure> {
        Pool::connect(&self.to_connect())
    }

    /// Stops it, if it is ours.
    pub(super) fn stop(self) -> Result<(), Failure> {
        self.cluster.map_or(Ok(()), Cluster::stop)
    }
}

/// How long each measurement lasts, and who may end it before.
#[derive(Clone)]
pub(super) struct Load {
    stop: Arc<AtomicBool>,
    duration: Duration,
}

impl Load {
    pub(super) fn new(stop: &Stop, duration: Duration) -> Self {
        Self { stop: stop.flag(), duration }
    }

    /// One measurement's time, which begins now.
    pub(super) fn begin(&self) -> Window {
        let begun = clock::now();
        Window { begun, until: begun + self.duration, stop: Arc::clone(&self.stop) }
    }
}

/// The time of one measurement.
#[derive(Clone)]
pub(super) struct Window {
    begun: Instant,
    until: Instant,
    stop: Arc<AtomicBool>,
}

impl Window {
    /// Whether it still lasts at `now`.
    pub(super) fn is_open(&self, now: Instant) -> bool {
        !self.until.reached(now) && !self.stop.load(Ordering::Relaxed)
    }

    /// How long it has lasted.
    pub(super) fn took(&self) -> Duration {
        clock::now().since(self.begun)
    }
}

/// Fills `bytes` with what `seed` stands for, so that any other contents, also shifted ones, are seen.
pub(super) fn fill(seed: u64, bytes: &mut [u8]) {
    for (word, chunk) in (0u64..).zip(bytes.chunks_mut(8)) {
        chunk.copy_from_slice(&mix(mix(seed) ^ word).to_le_bytes()[..chunk.len()]);
    }
}

/// An error that says so if `got` is not what [`fill`] makes of `seed`. `what` was read.
pub(super) fn check(what: &str, seed: u64, got: &[u8]) -> Result<(), Failure> {
    let mut wanted = vec![0; got.len()];
    fill(seed, &mut wanted);
    if got == wanted {
        return Ok(());
    }
    Err(Failure::new(format_args!("{what}: the bytes read are not those that were written")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_window_closes_with_its_time_or_a_signal() {
        let stop = Arc::new(AtomicBool::new(false));
        let load = Load { stop: Arc::clone(&stop), duration: Duration::from_secs(3_600) };
        let window = load.begin();
        assert!(window.is_open(window.begun));
        assert!(!window.is_open(window.until));
        stop.store(true, Ordering::Relaxed);
        assert!(!window.is_open(window.begun));
    }

    #[test]
    fn other_contents_are_seen() {
        for len in [1, 7, 64, 1_000] {
            let mut bytes = vec![0; len];
            fill(5, &mut bytes);
            assert_eq!(check("x", 5, &bytes), Ok(()));
            bytes.rotate_left(len / 2);
            bytes[0] ^= 1;
            assert!(check("x", 5, &bytes).is_err(), "{len}");
        }
    }
}
