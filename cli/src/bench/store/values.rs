//! The values of one size: those that are read again and again, and fresh keys for those that are only put.

use core::sync::atomic::{AtomicU64, Ordering};

use springtide::{Client, Error, Forcing, Incarnation, Pattern, PutOptions, Tokio};
use springtide_core::checksum::stored_len;

use super::super::load::{check, fill};
use crate::commands::pool::failed;
use crate::exit::Failure;
use crate::size::Size;

/// How many bytes are read in turn, at least one value.
const SET: u64 = 64 << 20;
/// How many values are read in turn at most.
const MOST: u64 = 4_096;
/// How many bytes a batch has, at least one value, and how many values at most.
const BATCH: (u64, u64) = (4 << 20, 16);

/// The values of one size.
#[derive(Debug)]
pub(super) struct Values {
    size: u64,
    prefix: String,
    keys: Vec<Vec<u8>>,
    fresh: AtomicU64,
}

impl Values {
    /// Values of `size` bytes in a pool of `memory` bytes, if that is known. `run` tells them from those of others.
    pub(super) fn new(size: u64, run: Incarnation, memory: Option<u64>) -> Result<Self, Failure> {
        let stored = stored_len(size).unwrap_or(u64::MAX);
        let room = memory.map_or(SET, |memory| SET.min(memory / 4));
        if stored > room.max(memory.map_or(u64::MAX, |memory| memory / 4)) {
            let why =
                format_args!("values of {} bytes and a pool of {}", Size(size), Size(memory.unwrap_or(0)));
            return Err(Failure::usage(why).advise("give --memory four times the largest size at least"));
        }
        let prefix = format!("bench/{:016x}/{size}/", run.0 as u64);
        let count = (room / stored).clamp(1, MOST);
        let keys = (0..count).map(|number| format!("{prefix}read/{number}").into_bytes()).collect();
        Ok(Self { size, prefix, keys, fresh: AtomicU64::new(0) })
    }

    /// Bytes of one value.
    pub(super) const fn size(&self) -> u64 {
        self.size
    }

    /// Bytes of all values that are read.
    pub(super) const fn bytes(&self) -> u64 {
        self.size * self.keys.len() as u64
    }

    /// How many values a batch has.
    pub(super) fn batch(&self) -> usize {
        let (bytes, most) = BATCH;
        (bytes / self.size).clamp(1, most) as usize
    }

    /// The `number`th key to read, in a circle.
    pub(super) fn key(&self, number: u64) -> &[u8] {
        &self.keys[(number % self.keys.len() as u64) as usize]
    }

    /// A key that nobody has put yet.
    pub(super) fn fresh(&self) -> Vec<u8> {
        let number = self.fresh.fetch_add(1, Ordering::Relaxed);
        format!("{}put/{number}", self.prefix).into_bytes()
    }

    /// Stores what is read later; puts do not push it out.
    pub(super) async fn store(&self, client: &Client<Tokio>) -> Result<(), Error> {
        let options = PutOptions { hard_pin: true, ..PutOptions::default() };
        let mut value = vec![0; self.size as usize];
        for (seed, key) in (0..).zip(&self.keys) {
            fill(seed, &mut value);
            client.put(key, &value, &options).await?;
        }
        Ok(())
    }

    /// Reads all of it, and compares every byte.
    pub(super) async fn verify(&self, client: &Client<Tokio>) -> Result<(), Failure> {
        for (seed, key) in (0..).zip(&self.keys) {
            let value = client.get(key).await.map_err(|error| failed("get", &error))?;
            if value.len() as u64 != self.size {
                return Err(Failure::new(format_args!("a value of {} bytes came back", value.len())));
            }
            check("get", seed, &value)?;
        }
        Ok(())
    }

    /// Removes all values of this size and run.
    pub(super) async fn remove(&self, client: &Client<Tokio>) -> Result<(), Error> {
        client.remove_matching(Pattern::Prefix(self.prefix.as_bytes()), Forcing::Yes).await.map(drop)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_set_fits_into_a_quarter_of_the_pool() {
        let values = |size, memory| Values::new(size, Incarnation(1), memory);
        assert_eq!(values(1 << 20, Some(16 << 20)).unwrap().keys.len(), 3);
        assert_eq!(values(64, None).unwrap().keys.len() as u64, MOST);
        assert_eq!(values(1 << 30, None).unwrap().keys.len(), 1);
        assert!(values(8 << 20, Some(16 << 20)).unwrap_err().to_string().contains("--memory"));
    }

    #[test]
    fn batches_have_a_bound() {
        let batch = |size| Values::new(size, Incarnation(1), None).unwrap().batch();
        assert_eq!((batch(64), batch(1 << 20), batch(64 << 20)), (16, 4, 1));
    }

    #[test]
    fn fresh_keys_are_fresh_and_ours() {
        let values = Values::new(64, Incarnation(7), None).unwrap();
        let (a, b) = (values.fresh(), values.fresh());
        assert_ne!(a, b);
        assert!(
            a.starts_with(values.prefix.as_bytes()) && values.key(3).starts_with(values.prefix.as_bytes())
        );
        assert_eq!(values.key(0), values.key(MOST));
    }
}
