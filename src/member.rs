//! One handle for a process that both uses the pool and lends it memory.

use core::future::Future;
use core::ops::Deref;
use core::pin::pin;
use core::task::Poll;
use std::sync::{Arc, OnceLock};

use springtide_client::{Client, Error};
use springtide_core::error::Code;
use springtide_driver::{Runtime, Shutdown};

use crate::{Block, ClientConfig, NodeConfig, Standing, connect, lend};

/// A process that uses the pool and lends it memory, in one handle (S0A-056, S0A-062): a [`Client`], which it derefs to,
/// and a node of its own for each piece of memory that it has [`mount`](Self::mount)ed.
///
/// Dropped without [`close`](Self::close), it takes leave in the background as long as its runtime runs.
pub struct Member<R: Runtime> {
    client: Client<R>,
    config: ClientConfig,
    runtime: R,
    mounted: Vec<Mounted>,
}

/// One piece of memory that is lent, by a task of its own.
struct Mounted {
    name: String,
    stop: Shutdown,
    /// Begins when the task has ended, also by a panic.
    over: Shutdown,
}

/// Says at its end that a task is over.
struct Over(Shutdown);

impl Drop for Over {
    fn drop(&mut self) {
        self.0.begin();
    }
}

impl Mounted {
    async fn end(self) {
        self.stop.begin();
        self.over.begun().await;
    }
}

impl<R: Runtime> Deref for Member<R> {
    type Target = Client<R>;

    fn deref(&self) -> &Client<R> {
        &self.client
    }
}

impl<R: Runtime> Member<R> {
    /// Connects; nothing is lent yet.
    ///
    /// # Errors
    /// As [`connect`].
    pub async fn join(config: ClientConfig, runtime: R) -> Result<Self, Error> {
        let client = connect(config.clone(), runtime.clone()).await?;
        Ok(Self { client, config, runtime, mounted: Vec::new() })
    }

    /// Lends `memory` fresh bytes on a loopback address, and gives back the name to [`unmount`](Self::unmount) them by;
    /// their segment is called that name and `/0`. Returns once the master knows them.
    ///
    /// # Errors
    /// As [`mount_as`](Self::mount_as).
    pub async fn mount(&mut self, memory: u64) -> Result<String, Error> {
        let config = NodeConfig::new(self.config.master.iter().copied(), memory);
        self.mount_as(&NodeConfig { cluster: self.config.cluster, ..config }).await
    }

    /// Lends memory of the caller's own; as [`mount`](Self::mount). Peers write it from now on; the caller may look at it
    /// with [`Block::read`].
    ///
    /// # Errors
    /// As [`mount_as`](Self::mount_as).
    pub async fn mount_block(&mut self, block: Block) -> Result<String, Error> {
        let config = NodeConfig::of(self.config.master.iter().copied(), block);
        self.mount_as(&NodeConfig { cluster: self.config.cluster, ..config }).await
    }

    /// [`mount`](Self::mount) with an address, a name and kinds of pages of one's own.
    ///
    /// # Errors
    /// [`Code::INVALID_PARAMS`] when memory, port or descriptors cannot be had; when the master does not take the memory
    /// within the client's time-out, what it said last. Nothing is lent then.
    pub async fn mount_as(&mut self, config: &NodeConfig) -> Result<String, Error> {
        let node =
            lend(config, self.runtime.clone()).map_err(|error| Error::new(Code::INVALID_PARAMS, error))?;
        let name = config.name.clone().unwrap_or_else(|| node.advertised().to_owned());
        let (standing, failed) = (node.standing(), Arc::new(OnceLock::new()));
        let mounted = Mounted { name: name.clone(), stop: Shutdown::new(), over: Shutdown::new() };
        let (stopping, over) = (mounted.stop.clone(), Over(mounted.over.clone()));
        let failure = Arc::clone(&failed);
        drop(self.runtime.spawn(async move {
            if let Err(error) = node.run(stopping).await {
                let _ = failure.set(error.to_string());
            }
            drop(over);
        }));
        if self.settles(&standing, &mounted.over).await {
            self.mounted.push(mounted);
            return Ok(name);
        }
        mounted.end().await;
        match failed.get().cloned().or_else(|| standing.refusal()) {
            Some(text) => Err(Error::new(Code::RPC_FAIL, text)),
            None => Err(Code::RPC_TIMEOUT.into()),
        }
    }

    /// The names of what is lent, in the order in which it was mounted.
    pub fn mounted(&self) -> impl Iterator<Item = &str> {
        self.mounted.iter().map(|mounted| &*mounted.name)
    }

    /// Takes back what was lent under `name`. Objects that have no replica elsewhere are lost.
    ///
    /// # Errors
    /// [`Code::SEGMENT_NOT_FOUND`] when nothing is lent under that name.
    pub async fn unmount(&mut self, name: &str) -> Result<(), Error> {
        let at = self.mounted.iter().position(|mounted| mounted.name == name);
        let mounted = self.mounted.remove(at.ok_or(Code::SEGMENT_NOT_FOUND)?);
        mounted.end().await;
        Ok(())
    }

    /// Takes back all that is lent, and takes leave of the master; takes a few seconds at most.
    pub async fn close(mut self) {
        self.mounted.iter().for_each(|mounted| mounted.stop.begin());
        for mounted in self.mounted.drain(..) {
            mounted.end().await;
        }
        self.client.clone().close().await;
    }

    /// Whether the master knows a node before the client's time-out comes or the node is over.
    async fn settles(&self, standing: &Standing, over: &Shutdown) -> bool {
        let mut timer = pin!(self.runtime.timer(self.runtime.now() + self.config.timeout));
        let (mut settled, mut over) = (pin!(standing.settled()), pin!(over.begun()));
        core::future::poll_fn(|cx| {
            if settled.as_mut().poll(cx).is_ready() {
                return Poll::Ready(true);
            }
            let failed = over.as_mut().poll(cx).is_ready() || timer.as_mut().poll(cx).is_ready();
            if failed { Poll::Ready(false) } else { Poll::Pending }
        })
        .await
    }
}

impl<R: Runtime> Drop for Member<R> {
    fn drop(&mut self) {
        self.mounted.iter().for_each(|mounted| mounted.stop.begin());
    }
}
