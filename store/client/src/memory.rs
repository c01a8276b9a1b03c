//! Memory that transfers may use.

use core::fmt;
use std::sync::{Arc, Mutex, PoisonError};

use springtide_core::error::Code;
use springtide_core::id::RegionId;
use springtide_driver::{Lane, Seat, now};
use springtide_hal::{Block, OutOfBounds, Span};
use springtide_hal_host::memory::{self, Options, Pages, Sharing};
use springtide_transport::Exposure;

use crate::Error;

/// Registered memory: reads and writes move its bytes without a copy. Cloning shares it; it is deregistered, and given
/// back once no transfer uses it, when the last clone goes.
#[derive(Clone)]
pub struct Memory(Arc<Registered>);

struct Registered {
    lane: Arc<Seat<Lane>>,
    region: RegionId,
    block: Block,
}

impl Drop for Registered {
    fn drop(&mut self) {
        self.lane.with(now(), |lane, _| lane.withdraw(self.region));
    }
}

impl fmt::Debug for Memory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Memory({:?}, {:?})", self.0.region, self.0.block)
    }
}

/// A piece of registered memory.
#[derive(Clone, Copy, Debug)]
pub struct Slice<'a> {
    pub(crate) memory: &'a Memory,
    pub(crate) at: u64,
    pub(crate) len: u64,
}

impl<'a> Slice<'a> {
    pub(crate) fn span(self) -> Span<'a> {
        let span = self.memory.0.block.span(self.at, self.len);
        span.expect("slices are made inside their memory")
    }

    /// How many bytes.
    pub const fn len(self) -> u64 {
        self.len
    }

    /// Whether there are none.
    pub const fn is_empty(self) -> bool {
        self.len == 0
    }

    pub(crate) fn region(self) -> RegionId {
        self.memory.0.region
    }
}

impl Memory {
    pub(crate) fn register(lane: &Arc<Seat<Lane>>, block: Block) -> Result<Self, Error> {
        let exposed = lane.with(now(), |lane, _| lane.expose(&block, Exposure::Source));
        let region = exposed.map_err(|error| Error::new(Code::INVALID_PARAMS, error))?;
        Ok(Self(Arc::new(Registered { lane: Arc::clone(lane), region, block })))
    }

    /// Fresh memory that processes of this host can read directly.
    pub(crate) fn allocate(lane: &Arc<Seat<Lane>>, len: u64) -> Result<Self, Error> {
        let options = Options { sharing: Sharing::Shared, pages: Pages::Transparent, ..Options::default() };
        let allocation = memory::allocate(len, options).map_err(|error| Error::new(error.code(), error))?;
        Self::register(lane, allocation.block)
    }

    /// How many bytes.
    pub fn len(&self) -> u64 {
        self.0.block.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    #[cfg(test)]
    pub(crate) fn lane(&self) -> &Arc<Seat<Lane>> {
        &self.0.lane
    }

    pub(crate) fn is_registered_with(&self, lane: &Arc<Seat<Lane>>) -> bool {
        Arc::ptr_eq(&self.0.lane, lane)
    }

    /// The bytes `at .. at + len` (S0A-092).
    ///
    /// # Errors
    /// When they do not all lie inside.
    pub fn slice(&self, at: u64, len: u64) -> Result<Slice<'_>, Error> {
        self.0.block.span(at, len).map_err(outside)?;
        Ok(Slice { memory: self, at, len })
    }

    /// All bytes.
    pub fn whole(&self) -> Slice<'_> {
        Slice { memory: self, at: 0, len: self.len() }
    }

    /// Copies `bytes` to `at`.
    ///
    /// # Errors
    /// When they do not fit.
    pub fn write(&self, at: u64, bytes: &[u8]) -> Result<(), Error> {
        self.0.block.write(at, bytes).map_err(outside)
    }

    /// Copies the bytes from `at` on into `bytes`.
    ///
    /// # Errors
    /// When there are not as many.
    pub fn read(&self, at: u64, bytes: &mut [u8]) -> Result<(), Error> {
        self.0.block.read(at, bytes).map_err(outside)
    }
}

fn outside(error: OutOfBounds) -> Error {
    Error::new(Code::INVALID_PARAMS, error)
}

/// Registered memory for values that their callers hold elsewhere, used again and again.
pub(crate) struct Scratch {
    lane: Arc<Seat<Lane>>,
    /// Free memory by size class: `SMALLEST << index` bytes.
    free: Mutex<[Vec<Memory>; CLASSES]>,
}

const SMALLEST: u64 = 4 << 10;
/// Classes of 4 KiB to 64 MiB; larger memory is not kept.
const CLASSES: usize = 15;
/// How much free memory of one class is kept, in bytes, and at least one piece.
const KEPT: u64 = 64 << 20;

impl Scratch {
    pub(crate) fn new(lane: Arc<Seat<Lane>>) -> Self {
        Self { lane, free: Mutex::default() }
    }

    /// At least `len` bytes, holding anything.
    pub(crate) fn take(self: &Arc<Self>, len: u64) -> Result<Lease, Error> {
        let size = len.max(SMALLEST).checked_next_power_of_two().unwrap_or(len);
        let class = (size / SMALLEST).trailing_zeros() as usize;
        let pool = (class < CLASSES).then(|| (Arc::clone(self), class));
        let kept = pool.as_ref().and_then(|_| self.lock()[class].pop());
        let memory = match kept {
            Some(memory) => memory,
            None => Memory::allocate(&self.lane, if pool.is_some() { size } else { len })?,
        };
        Ok(Lease { memory, pool, in_flight: false })
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, [Vec<Memory>; CLASSES]> {
        self.free.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Scratch memory in use; it goes back when dropped, unless something may still store into it.
pub(crate) struct Lease {
    memory: Memory,
    pool: Option<(Arc<Scratch>, usize)>,
    in_flight: bool,
}

impl Lease {
    pub(crate) const fn memory(&self) -> &Memory {
        &self.memory
    }

    /// The first `len` bytes.
    pub(crate) fn slice(&self, at: u64, len: u64) -> Slice<'_> {
        self.memory.slice(at, len).expect("scratch memory is as long as was asked for")
    }

    /// Never to be used again: a transfer may still touch it.
    pub(crate) fn spoil(&mut self) {
        self.pool = None;
    }

    /// From now on something stores into it. If its user goes away before [`land`](Self::land), it is not used again.
    pub(crate) const fn take_off(&mut self) {
        self.in_flight = true;
    }

    /// Nothing stores into it any more, unless it is spoilt.
    pub(crate) const fn land(&mut self) {
        self.in_flight = false;
    }
}

impl Drop for Lease {
    fn drop(&mut self) {
        let Some((scratch, class)) = self.pool.take().filter(|_| !self.in_flight) else { return };
        let mut free = scratch.lock();
        if free[class].is_empty() || (free[class].len() as u64) < KEPT / (SMALLEST << class) {
            free[class].push(self.memory.clone());
        }
    }
}
