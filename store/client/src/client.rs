//! A connected client.

use core::future::Future;
use core::time::Duration;
use std::sync::Arc;

use springtide_core::error::Code;
use springtide_core::id::Incarnation;
use springtide_core::node::Membership;
use springtide_core::time::Instant;
use springtide_driver::{Lane, Pause, Runtime, Seat, Shutdown, attend};
use springtide_hal::Block;
use springtide_hal_host::clock;
use springtide_rpc::{CallError, ClientConfig, Remote, WhileDown};
use springtide_transport::Transport;

use crate::ahead::Ahead;
use crate::member::{self, Identity, Shared};
use crate::memory::Scratch;
use crate::routes::Routes;
use crate::tally::{CallKind, CallTally, Tallies};
use crate::{Checksums, Config, Driving, Error, Greeting, Memory};

/// A connected client. A handle: cloning is cheap, and all clones share connections and memory.
///
/// Every call has a deadline ([`Config::timeout`] from its start), and ends by it.
pub struct Client<R: Runtime>(pub(crate) Arc<Inner<R>>);

impl<R: Runtime> Clone for Client<R> {
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}

pub(crate) struct Inner<R> {
    pub(crate) runtime: R,
    pub(crate) timeout: Duration,
    pub(crate) checksums: Checksums,
    /// For calls about objects.
    pub(crate) master: Remote,
    pub(crate) lane: Arc<Seat<Lane>>,
    pub(crate) scratch: Arc<Scratch>,
    pub(crate) routes: Routes<R>,
    pub(crate) ahead: Ahead,
    pub(crate) tallies: Tallies,
    pub(crate) incarnation: Incarnation,
    pub(crate) shutdown: Shutdown,
    left: Shutdown,
}

impl<R> Drop for Inner<R> {
    fn drop(&mut self) {
        self.shutdown.begin();
    }
}

impl<R: Runtime> Client<R> {
    /// Connects to the master (S0A-056, S0B-163) and registers, so that the master learns when this process dies.
    ///
    /// `transports` move the bytes; the facade opens those that its features name.
    ///
    /// # Errors
    /// When the master cannot be reached within [`Config::timeout`], or refuses; the line says why.
    pub async fn connect(
        config: Config,
        runtime: R,
        transports: Vec<Box<dyn Transport>>,
    ) -> Result<Self, Error> {
        let incarnation = clock::incarnation();
        Self::connect_as(incarnation, config, runtime, transports).await
    }

    /// [`connect`](Self::connect) as a life whose number is known already, because transports name it.
    ///
    /// # Errors
    /// As [`connect`](Self::connect).
    pub async fn connect_as(
        incarnation: Incarnation,
        config: Config,
        runtime: R,
        transports: Vec<Box<dyn Transport>>,
    ) -> Result<Self, Error> {
        let seed = incarnation.0 as u64;
        let lane =
            Arc::new(Seat::new(Lane::new(springtide_core::transfer::Config::default(), transports, seed)?)?);
        let greeting = Greeting::new(incarnation, &config.tenant, config.cluster);
        let settings = ClientConfig { while_down: WhileDown::Wait, seed, ..ClientConfig::default() };
        let remote = || Remote::new(config.master.clone(), settings, Some(Box::new(greeting.clone())));
        let (master, side) = (remote()?, remote()?);
        // Tasks run on when their handles go.
        drop(side.attend(&runtime, Pause::new(Duration::ZERO))?);
        if config.driving == Driving::Attended {
            drop(master.attend(&runtime, Pause::new(Duration::ZERO))?);
            drop(runtime.spawn(attend(&runtime, &lane, Pause::new(Duration::ZERO))?));
        }
        let shared = Shared::new(Membership::new(member::Config::default(), Vec::new(), seed));
        let (shutdown, left, watch) = (Shutdown::new(), Shutdown::new(), side.clone());
        let identity = Identity { name: config.name.clone(), address: String::new() };
        let stay = member::stay(runtime.clone(), side, identity, shared.clone(), shutdown.clone(), |_| {});
        let done = left.clone();
        drop(runtime.spawn(async move {
            stay.await;
            done.begin();
        }));
        let routes = Routes::new(runtime.clone(), Arc::clone(&lane), incarnation, config.tenant.clone());
        let client = Self(Arc::new(Inner {
            timeout: config.timeout,
            checksums: config.checksums,
            master,
            scratch: Arc::new(Scratch::new(Arc::clone(&lane))),
            lane,
            routes,
            ahead: Ahead::default(),
            tallies: Tallies::default(),
            incarnation,
            shutdown,
            left,
            runtime,
        }));
        let settled = member::unless(greeting.turned_away(), shared.settled());
        match client.in_time(client.deadline(), settled).await {
            Ok(Some(())) => Ok(client),
            Ok(None) => Err(why(&greeting, &shared, &watch, Code::RPC_FAIL.into())),
            Err(timeout) => Err(why(&greeting, &shared, &watch, timeout)),
        }
    }

    /// Takes leave of the master, and gives back what was granted ahead; takes two seconds at most. Calls that are
    /// under way fail; memory that is registered stays usable until dropped.
    pub async fn close(self) {
        self.log_calls();
        let abandoned = self.0.ahead.all(self.0.runtime.now());
        if !abandoned.is_empty() {
            // Before the leave: afterwards nobody may give them back. Where nobody drives the connection, as when a
            // blocking client's face is closed by a task, the time ends the wait.
            let deadline = self.0.runtime.now() + Duration::from_secs(1);
            let _ = self.in_time(deadline, self.abandon(&abandoned)).await;
        }
        self.0.shutdown.begin();
        let _ = self.in_time(self.0.runtime.now() + Duration::from_secs(1), self.0.left.begun()).await;
    }

    /// Tells the log what the calls came to.
    fn log_calls(&self) {
        for tally in self.calls().filter(|tally| tally.calls > 0) {
            let CallTally { kind, calls, items, failed, bytes, p50, p99, .. } = tally;
            tracing::debug!(
                kind = kind.name(),
                calls,
                items,
                failed,
                bytes,
                ?p50,
                ?p99,
                "calls of this client"
            );
        }
    }

    /// Fresh registered memory of `len` bytes, all zero.
    ///
    /// # Errors
    /// When there is none.
    pub fn allocate(&self, len: u64) -> Result<Memory, Error> {
        Memory::allocate(&self.0.lane, len)
    }

    /// Registers memory that the caller has.
    ///
    /// # Errors
    /// When no transport can use it.
    pub fn register(&self, block: Block) -> Result<Memory, Error> {
        Memory::register(&self.0.lane, block)
    }

    /// This client's life, as the master knows it.
    pub fn incarnation(&self) -> Incarnation {
        self.0.incarnation
    }

    /// What the calls of every kind came to since this client connected, for all its clones together.
    pub fn calls(&self) -> impl Iterator<Item = CallTally> {
        CallKind::ALL.iter().map(|&kind| self.0.tallies.of(kind))
    }

    /// Counts a call without batches or bytes.
    pub(crate) async fn counted<T>(
        &self,
        kind: CallKind,
        call: impl Future<Output = Result<T, Error>>,
    ) -> Result<T, Error> {
        let begun = self.0.runtime.now();
        let result = call.await;
        let failed = usize::from(result.is_err());
        self.0.tallies.count(kind, (begun, self.0.runtime.now()), [1, failed], 0);
        result
    }

    /// Counts a batch without bytes; none for no items.
    pub(crate) async fn counted_each<T>(
        &self,
        kind: CallKind,
        call: impl Future<Output = Vec<Result<T, Error>>>,
    ) -> Vec<Result<T, Error>> {
        let begun = self.0.runtime.now();
        let results = call.await;
        if !results.is_empty() {
            let failed = results.iter().filter(|result| result.is_err()).count();
            self.0.tallies.count(kind, (begun, self.0.runtime.now()), [results.len(), failed], 0);
        }
        results
    }

    pub(crate) fn deadline(&self) -> Instant {
        self.0.runtime.now() + self.0.timeout
    }

    /// `future`'s output, or [`Code::RPC_TIMEOUT`] at `deadline`.
    pub(crate) async fn in_time<T>(
        &self,
        deadline: Instant,
        future: impl Future<Output = T>,
    ) -> Result<T, Error> {
        let mut timer = core::pin::pin!(self.0.runtime.timer(deadline));
        let mut future = core::pin::pin!(future);
        core::future::poll_fn(|cx| {
            if let core::task::Poll::Ready(output) = future.as_mut().poll(cx) {
                return core::task::Poll::Ready(Ok(output));
            }
            timer.as_mut().poll(cx).map(|()| Err(Code::RPC_TIMEOUT.into()))
        })
        .await
    }
}

/// The best reason there is for a connection that did not come about.
fn why(greeting: &Greeting, shared: &Shared, master: &Remote, timeout: Error) -> Error {
    if let Some((code, text)) = greeting.refusal() {
        return Error::new(code, text);
    }
    match (master.trouble(), shared.refusal()) {
        (Some(reason), _) => Error::from(CallError::Down(reason)),
        (None, Some((code, text))) => Error::new(code, text),
        (None, None) => timeout,
    }
}
