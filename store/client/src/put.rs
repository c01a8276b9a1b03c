//! Writing.

use core::time::Duration;

use springtide_core::error::Code;
use springtide_core::transfer::Quiet;
use springtide_core::wire::message::{self, Options};
use springtide_driver::Runtime;

use crate::memory::Slice;
use crate::{Checksums, Client, Error};

/// How to place and keep what is put (S3A-102, S3A-103).
#[derive(Clone, Debug)]
pub struct PutOptions<'a> {
    /// How many replicas, on distinct segments, best effort: 1 to 8. Default 1.
    pub replicas: u8,
    /// Keep it as long as anything else can go, for this long; zero for the master's default. Default: do not.
    pub soft_pin: Option<Duration>,
    /// Never evict it. Default false.
    pub hard_pin: bool,
    /// Names of segments to use first, at most 8. Default none.
    pub preferred: &'a [&'a str],
    /// Objects of one group are evicted together, best effort. Default none.
    pub group: Option<&'a str>,
    /// Puts the values of a batch into the segment of the first, as far as there is room (S0A-090). Default false.
    pub together: bool,
}

impl Default for PutOptions<'_> {
    fn default() -> Self {
        Self { replicas: 1, soft_pin: None, hard_pin: false, preferred: &[], group: None, together: false }
    }
}

impl<'a> PutOptions<'a> {
    pub(crate) fn on_the_wire(&self, checksums: Checksums) -> Result<Options<'a>, Error> {
        let preferred = heapless::Vec::from_slice(self.preferred).map_err(|_| {
            Error::new(
                Code::INVALID_PARAMS,
                format_args!("at most {} preferred segments", message::MAX_PREFERRED),
            )
        })?;
        Ok(Options {
            replicas: self.replicas,
            soft_pin_ms: self.soft_pin.map(|time| u64::try_from(time.as_millis()).unwrap_or(u64::MAX)),
            hard_pin: self.hard_pin,
            preferred,
            group: self.group.unwrap_or(""),
            together: self.together,
            sums: checksums == Checksums::Verify,
        })
    }
}
impl<R: Runtime> Client<R> {
    /// Stores `value` under `key`.
    ///
    /// # Errors
    /// [`Code::OBJECT_ALREADY_EXISTS`] when the key is there or being written, [`Code::NEVER_FITS`],
    /// [`Code::NO_AVAILABLE_HANDLE`] when there is no room now, [`Code::INVALID_KEY`], [`Code::TRANSFER_FAIL`] when no
    /// replica could be written.
    pub async fn put(&self, key: &[u8], value: &[u8], options: &PutOptions<'_>) -> Result<(), Error> {
        self.put_batch(&[(key, value)], options)
            .await
            .pop()
            .unwrap_or_else(|| Err(Code::INTERNAL_ERROR.into()))
    }

    /// Stores many values, each with its own result. The bytes are copied to registered memory first.
    pub async fn put_batch(
        &self,
        items: &[(&[u8], &[u8])],
        options: &PutOptions<'_>,
    ) -> Vec<Result<(), Error>> {
        let total = items.iter().try_fold(0u64, |sum, (_, value)| sum.checked_add(value.len() as u64));
        let lease =
            total.ok_or_else(|| Code::INVALID_PARAMS.into()).and_then(|total| self.0.scratch.take(total));
        let mut lease = match lease {
            Ok(lease) => lease,
            Err(error) => return items.iter().map(|_| Err(error.clone())).collect(),
        };
        let mut at = 0;
        let mut sources = Vec::with_capacity(items.len());
        for (key, value) in items {
            let slice = lease.slice(at, value.len() as u64);
            if let Err(error) = lease.memory().write(at, value) {
                return items.iter().map(|_| Err(error.clone())).collect();
            }
            sources.push((*key, slice));
            at += value.len() as u64;
        }
        let (results, quiet) = self.write(&sources, options, self.deadline()).await;
        drop(sources);
        if quiet == Quiet::No {
            lease.spoil();
        }
        results
    }

    /// Stores `value`, which is registered memory, without a copy. Nobody may change it meanwhile.
    ///
    /// # Errors
    /// As [`put`](Self::put).
    pub async fn put_from(
        &self,
        key: &[u8],
        value: Slice<'_>,
        options: &PutOptions<'_>,
    ) -> Result<(), Error> {
        let mut results = self.put_from_batch(&[(key, value)], options).await;
        results.pop().unwrap_or_else(|| Err(Code::INTERNAL_ERROR.into()))
    }

    /// Stores many values from registered memory without a copy, each with its own result.
    pub async fn put_from_batch(
        &self,
        items: &[(&[u8], Slice<'_>)],
        options: &PutOptions<'_>,
    ) -> Vec<Result<(), Error>> {
        self.write(items, options, self.deadline()).await.0
    }
}
