//! Writing.

use core::time::Duration;

use springtide_core::error::Code;
use springtide_core::transfer::Quiet;
use springtide_core::wire::message::{self, Options};
use springtide_driver::Runtime;

use crate::memory::Slice;
use crate::parts::Parts;
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
        let items = items.iter().map(|(key, value)| (*key, core::slice::from_ref(value)));
        self.gather(items, options).await
    }

    /// Stores `parts`, one after the other, as one value under `key`. They are copied to registered memory first.
    ///
    /// # Errors
    /// As [`put`](Self::put).
    pub async fn put_parts(
        &self,
        key: &[u8],
        parts: &[&[u8]],
        options: &PutOptions<'_>,
    ) -> Result<(), Error> {
        let mut results = self.put_parts_batch(&[(key, parts)], options).await;
        results.pop().unwrap_or_else(|| Err(Code::INTERNAL_ERROR.into()))
    }

    /// [`put_parts`](Self::put_parts) for many values, each with its own result.
    pub async fn put_parts_batch(
        &self,
        items: &[(&[u8], &[&[u8]])],
        options: &PutOptions<'_>,
    ) -> Vec<Result<(), Error>> {
        self.gather(items.iter().copied(), options).await
    }

    /// Copies values to registered memory, and stores them.
    async fn gather<'a>(
        &self,
        items: impl ExactSizeIterator<Item = (&'a [u8], &'a [&'a [u8]])> + Clone,
        options: &PutOptions<'_>,
    ) -> Vec<Result<(), Error>> {
        let count = items.len();
        let refuse = |error: Error| (0..count).map(|_| Err(error.clone())).collect();
        let mut parts = items.clone().flat_map(|(_, parts)| parts);
        let total = parts.try_fold(0u64, |sum, part| sum.checked_add(part.len() as u64));
        let lease =
            total.ok_or_else(|| Code::INVALID_PARAMS.into()).and_then(|total| self.0.scratch.take(total));
        let mut lease = match lease {
            Ok(lease) => lease,
            Err(error) => return refuse(error),
        };
        let mut at = 0;
        let mut sources = Vec::with_capacity(count);
        for (key, parts) in items {
            let start = at;
            for part in parts {
                if let Err(error) = lease.memory().write(at, part) {
                    return refuse(error);
                }
                at += part.len() as u64;
            }
            sources.push((key, Some(Parts::one(lease.slice(start, at - start)))));
        }
        let (results, quiet) = self.write(sources.iter().copied(), options, self.deadline()).await;
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
        let items = items.iter().map(|&(key, value)| (key, Some(Parts::one(value))));
        self.write(items, options, self.deadline()).await.0
    }

    /// Stores pieces of registered memory, one after the other, as one value under `key`, without a copy. Pieces may be
    /// empty. Nobody may change them meanwhile.
    ///
    /// # Errors
    /// As [`put`](Self::put), and [`Code::INVALID_PARAMS`] when the lengths do not add up to a `u64`, or a piece was
    /// registered with another client; no byte is moved then.
    pub async fn put_from_parts(
        &self,
        key: &[u8],
        parts: &[Slice<'_>],
        options: &PutOptions<'_>,
    ) -> Result<(), Error> {
        let mut results = self.put_from_parts_batch(&[(key, parts)], options).await;
        results.pop().unwrap_or_else(|| Err(Code::INTERNAL_ERROR.into()))
    }

    /// [`put_from_parts`](Self::put_from_parts) for many values, each with its own result. All pieces of all values
    /// move in one batch.
    pub async fn put_from_parts_batch(
        &self,
        items: &[(&[u8], &[Slice<'_>])],
        options: &PutOptions<'_>,
    ) -> Vec<Result<(), Error>> {
        let items = items.iter().map(|&(key, parts)| (key, Parts::many(parts)));
        self.write(items, options, self.deadline()).await.0
    }
}
