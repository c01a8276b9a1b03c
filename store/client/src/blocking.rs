//! The face for threads.

use core::future::Future;
use core::time::Duration;
use std::sync::Arc;

use springtide_core::error::Code;
use springtide_driver::{Runtime, block_on};
use springtide_transport::Transport;

use crate::get::Piece;
use crate::memory::{Memory, Slice};
use crate::put::PutOptions;
use crate::{CallTally, Client, Config, Driving, Error, Forcing, Page, Pattern, Presence, Stat};

/// How much longer than its call a caller drives.
const GRACE: Duration = Duration::from_secs(1);

/// A client for threads: a blocked caller drives sockets and transports itself, so a call costs no hand-over to another
/// thread. A handle; many threads may share it.
///
/// When the last handle is dropped the client is closed, if [`close`](Self::close) was not called before; that takes two
/// seconds at most, and a moment where the master answers.
pub struct Blocking<R: Runtime>(Arc<Face<R>>);

impl<R: Runtime> Clone for Blocking<R> {
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}

/// What all handles share. Its client goes with it, as nobody would drive what was begun in the background.
struct Face<R: Runtime>(Client<R>);

impl<R: Runtime> Drop for Face<R> {
    fn drop(&mut self) {
        let inner = &self.0.0;
        // Clones of the asynchronous face may live on; a thread that panics does not wait.
        if inner.shutdown.is_begun() || Arc::strong_count(inner) > 1 || std::thread::panicking() {
            return;
        }
        self.close();
    }
}

impl<R: Runtime> Face<R> {
    fn close(&self) {
        let client = self.0.clone();
        // It ends by itself in time.
        let _ = self.run(async {
            client.close().await;
            Ok(())
        });
    }

    fn run<T>(&self, future: impl Future<Output = Result<T, Error>>) -> Result<T, Error> {
        let inner = &self.0.0;
        // Calls end by their own deadline, each item with its own result; this one is for futures of others.
        let deadline = self.0.deadline() + GRACE;
        let done = block_on(&[inner.master.seat(), &*inner.lane], deadline, future);
        done.unwrap_or_else(|_| Err(Code::RPC_TIMEOUT.into()))
    }
}

impl<R: Runtime> Blocking<R> {
    /// Connects; `runtime` must have a thread of its own, which sends heartbeats.
    ///
    /// # Errors
    /// As [`Client::connect`].
    pub fn connect(config: Config, runtime: R, transports: Vec<Box<dyn Transport>>) -> Result<Self, Error> {
        let config = Config { driving: Driving::ByCaller, ..config };
        let handle = runtime.clone();
        let client = runtime.block_on(Client::connect(config, handle, transports))?;
        Ok(Self(Arc::new(Face(client))))
    }

    /// As [`Client::close`].
    pub fn close(self) {
        self.0.close();
    }

    /// The asynchronous face of the same client. Its futures make progress under [`run`](Self::run) only.
    pub fn client(&self) -> &Client<R> {
        &self.0.0
    }

    /// Runs a future of the asynchronous face on this thread, which drives all it needs.
    ///
    /// # Errors
    /// [`Code::RPC_TIMEOUT`] a little after the client's time-out, and the future's own.
    pub fn run<T>(&self, future: impl Future<Output = Result<T, Error>>) -> Result<T, Error> {
        self.0.run(future)
    }

    fn run_batch<T>(
        &self,
        items: usize,
        future: impl Future<Output = Vec<Result<T, Error>>>,
    ) -> Vec<Result<T, Error>> {
        let results = self.run(async { Ok(future.await) });
        results.unwrap_or_else(|error| (0..items).map(|_| Err(error.clone())).collect())
    }

    /// As [`Client::put`].
    ///
    /// # Errors
    /// As there.
    pub fn put(&self, key: &[u8], value: &[u8], options: &PutOptions<'_>) -> Result<(), Error> {
        self.run(self.client().put(key, value, options))
    }

    /// As [`Client::put_batch`].
    pub fn put_batch(&self, items: &[(&[u8], &[u8])], options: &PutOptions<'_>) -> Vec<Result<(), Error>> {
        self.run_batch(items.len(), self.client().put_batch(items, options))
    }

    /// As [`Client::put_from`].
    ///
    /// # Errors
    /// As there.
    pub fn put_from(&self, key: &[u8], value: Slice<'_>, options: &PutOptions<'_>) -> Result<(), Error> {
        self.run(self.client().put_from(key, value, options))
    }

    /// As [`Client::put_from_batch`].
    pub fn put_from_batch(
        &self,
        items: &[(&[u8], Slice<'_>)],
        options: &PutOptions<'_>,
    ) -> Vec<Result<(), Error>> {
        self.run_batch(items.len(), self.client().put_from_batch(items, options))
    }

    /// As [`Client::put_parts`].
    ///
    /// # Errors
    /// As there.
    pub fn put_parts(&self, key: &[u8], parts: &[&[u8]], options: &PutOptions<'_>) -> Result<(), Error> {
        self.run(self.client().put_parts(key, parts, options))
    }

    /// As [`Client::put_parts_batch`].
    pub fn put_parts_batch(
        &self,
        items: &[(&[u8], &[&[u8]])],
        options: &PutOptions<'_>,
    ) -> Vec<Result<(), Error>> {
        self.run_batch(items.len(), self.client().put_parts_batch(items, options))
    }

    /// As [`Client::put_from_parts`].
    ///
    /// # Errors
    /// As there.
    pub fn put_from_parts(
        &self,
        key: &[u8],
        parts: &[Slice<'_>],
        options: &PutOptions<'_>,
    ) -> Result<(), Error> {
        self.run(self.client().put_from_parts(key, parts, options))
    }

    /// As [`Client::put_from_parts_batch`].
    pub fn put_from_parts_batch(
        &self,
        items: &[(&[u8], &[Slice<'_>])],
        options: &PutOptions<'_>,
    ) -> Vec<Result<(), Error>> {
        self.run_batch(items.len(), self.client().put_from_parts_batch(items, options))
    }

    /// As [`Client::get`].
    ///
    /// # Errors
    /// As there.
    pub fn get(&self, key: &[u8]) -> Result<Vec<u8>, Error> {
        self.run(self.client().get(key))
    }

    /// As [`Client::get_batch`].
    pub fn get_batch(&self, keys: &[&[u8]]) -> Vec<Result<Vec<u8>, Error>> {
        self.run_batch(keys.len(), self.client().get_batch(keys))
    }

    /// As [`Client::get_into`].
    ///
    /// # Errors
    /// As there.
    pub fn get_into(&self, key: &[u8], into: Slice<'_>) -> Result<u64, Error> {
        self.run(self.client().get_into(key, into))
    }

    /// As [`Client::get_parts`].
    ///
    /// # Errors
    /// As there.
    pub fn get_parts(&self, key: &[u8], parts: &mut [&mut [u8]]) -> Result<u64, Error> {
        self.run(self.client().get_parts(key, parts))
    }

    /// As [`Client::get_parts_batch`].
    pub fn get_parts_batch(&self, items: &mut [(&[u8], &mut [&mut [u8]])]) -> Vec<Result<u64, Error>> {
        self.run_batch(items.len(), self.client().get_parts_batch(items))
    }

    /// As [`Client::get_into_parts`].
    ///
    /// # Errors
    /// As there.
    pub fn get_into_parts(&self, key: &[u8], parts: &[Slice<'_>]) -> Result<u64, Error> {
        self.run(self.client().get_into_parts(key, parts))
    }

    /// As [`Client::get_into_parts_batch`].
    pub fn get_into_parts_batch(&self, items: &[(&[u8], &[Slice<'_>])]) -> Vec<Result<u64, Error>> {
        self.run_batch(items.len(), self.client().get_into_parts_batch(items))
    }

    /// As [`Client::get_pieces`].
    pub fn get_pieces(&self, pieces: &[Piece<'_>]) -> Vec<Result<u64, Error>> {
        self.run_batch(pieces.len(), self.client().get_pieces(pieces))
    }

    /// As [`Client::exists`].
    ///
    /// # Errors
    /// As there.
    pub fn exists(&self, key: &[u8]) -> Result<bool, Error> {
        self.run(self.client().exists(key))
    }

    /// As [`Client::remove`].
    ///
    /// # Errors
    /// As there.
    pub fn remove(&self, key: &[u8], force: Forcing) -> Result<(), Error> {
        self.run(self.client().remove(key, force))
    }

    /// As [`Client::exists_batch`].
    pub fn exists_batch(&self, keys: &[&[u8]]) -> Vec<Result<Presence, Error>> {
        self.run_batch(keys.len(), self.client().exists_batch(keys))
    }

    /// As [`Client::stat`].
    ///
    /// # Errors
    /// As there.
    pub fn stat(&self, key: &[u8]) -> Result<Stat, Error> {
        self.run(self.client().stat(key))
    }

    /// As [`Client::remove_batch`].
    pub fn remove_batch(&self, keys: &[&[u8]], force: Forcing) -> Vec<Result<(), Error>> {
        self.run_batch(keys.len(), self.client().remove_batch(keys, force))
    }

    /// As [`Client::remove_matching`].
    ///
    /// # Errors
    /// As there.
    pub fn remove_matching(&self, pattern: Pattern<'_>, force: Forcing) -> Result<(u64, u64), Error> {
        self.run(self.client().remove_matching(pattern, force))
    }

    /// As [`Client::list`].
    ///
    /// # Errors
    /// As there.
    pub fn list(&self, pattern: Pattern<'_>, cursor: Option<u64>, limit: u32) -> Result<Page, Error> {
        self.run(self.client().list(pattern, cursor, limit))
    }

    /// As [`Client::copy`].
    ///
    /// # Errors
    /// As there.
    pub fn copy(&self, key: &[u8], to: &str) -> Result<(), Error> {
        self.run(self.client().copy(key, to))
    }

    /// As [`Client::allocate`].
    ///
    /// # Errors
    /// As there.
    pub fn allocate(&self, len: u64) -> Result<Memory, Error> {
        self.client().allocate(len)
    }

    /// As [`Client::calls`].
    pub fn calls(&self) -> impl Iterator<Item = CallTally> {
        self.client().calls()
    }
}
