//! Reading ahead for a batch.

use super::Shard;
use crate::id::TenantId;
use crate::key::Key;
use crate::object::{NONE, Replica, ReplicaState};

/// Keys that are read ahead together: more than a core has reads in flight, little enough to stay in its first cache.
const TOGETHER: usize = 32;

impl Shard {
    /// Reads what look-ups of `keys` will read, table by table, so that the reads of different keys overlap instead of
    /// waiting for each other. The result has no meaning; it depends on all that was read.
    pub(in crate::master) fn warm(&self, tenant: TenantId, keys: &[Key<'_>]) -> u64 {
        let mut seen = 0_u64;
        for keys in keys.chunks(TOGETHER) {
            let mut hashes = [0; TOGETHER];
            let mut slots = [NONE; TOGETHER];
            let mut replicas = [NONE; TOGETHER];
            for (hash, key) in hashes.iter_mut().zip(keys) {
                *hash = self.hasher.hash(tenant, key.bytes());
            }
            let hashes = &hashes[..keys.len()];
            for &hash in hashes {
                seen ^= self.index.first(hash);
            }
            for (slot, &hash) in slots.iter_mut().zip(hashes) {
                *slot = self.index.find(hash, |_| true).unwrap_or(NONE);
            }
            for (first, &slot) in replicas.iter_mut().zip(&slots) {
                *first = self.objects.at(slot).map_or(NONE, |(_, object)| object.replicas);
            }
            for (&slot, &first) in slots.iter().zip(&replicas) {
                let byte = self.objects.at(slot).and_then(|(_, object)| object.key.first());
                let state = self.replicas.get(first).map_or(ReplicaState::Vacant, Replica::state);
                seen ^= u64::from(byte.copied().unwrap_or(0)) << 8 ^ state as u64;
            }
        }
        seen
    }
}
