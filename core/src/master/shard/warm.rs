//! Reading ahead for many commands.

use super::super::Ahead;
use super::Shard;
use crate::evict::Policy;
use crate::id::TenantId;
use crate::key::Key;
use crate::object::NONE;
use crate::space::Grant;

/// Keys that are read ahead together: more than a core has reads in flight, little enough to stay in its first cache.
const TOGETHER: usize = 32;

impl Shard {
    /// Reads what commands on `keys` will read, table by table, so that the reads of different keys overlap instead of
    /// waiting for each other; `space` does the same for the allocator. The result has no meaning; it depends on all that
    /// was read.
    pub(in crate::master) fn warm(
        &self,
        tenant: TenantId,
        keys: &[Key<'_>],
        ahead: Ahead,
        space: impl Fn(&Grant) -> u64,
    ) -> u64 {
        let mut seen = 0_u64;
        for keys in keys.chunks(TOGETHER) {
            let mut slots = [NONE; TOGETHER];
            let slots = &mut slots[..keys.len()];
            seen ^= self.warm_index(tenant, keys, slots);
            for &slot in &*slots {
                let object = self.objects.at(slot).map(|(_, object)| object);
                let byte = object.and_then(|object| object.key.first()).copied();
                seen ^= u64::from(byte.unwrap_or(0)) ^ object.map_or(0, |object| object.lease().nanos());
            }
            if ahead >= Ahead::Read {
                for &slot in &*slots {
                    seen ^= self.evictor.warm(slot)
                        ^ self.first_grant(slot).map_or(0, |grant| grant.extent.offset());
                }
            }
            if ahead == Ahead::Remove {
                for &slot in &*slots {
                    seen ^= self.first_grant(slot).map_or(0, |grant| space(&grant));
                }
            }
        }
        seen
    }

    /// Looks for `keys` without comparing them, and notes in which slots they would be.
    fn warm_index(&self, tenant: TenantId, keys: &[Key<'_>], slots: &mut [u32]) -> u64 {
        let mut hashes = [0; TOGETHER];
        for (hash, key) in hashes.iter_mut().zip(keys) {
            *hash = self.hasher.hash(tenant, key.bytes());
        }
        let seen = hashes[..keys.len()].iter().fold(0, |seen, &hash| seen ^ self.index.first(hash));
        for (slot, &hash) in slots.iter_mut().zip(&hashes) {
            *slot = self.index.find(hash, |_| true).unwrap_or(NONE);
        }
        seen
    }
}
