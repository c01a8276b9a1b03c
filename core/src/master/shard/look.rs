//! Looking into a shard.

use core::hash::Hasher;

use siphasher::sip::SipHasher13;

use super::super::{Held, Holder};
use super::{SeatState, Shard};
use crate::checksum::Checksum;
use crate::id::{ObjectId, TenantId};
use crate::object::{Object, Phase, ReplicaState};
use crate::space::Grant;

impl Shard {
    /// The object in slot `slot`, if it is `tenant`'s and has a key.
    pub(in crate::master) fn listed(&self, slot: u32, tenant: TenantId) -> Option<(ObjectId, &Object)> {
        let found = self.objects.at(slot)?;
        let object = found.1;
        (object.tenant == tenant && !object.key.is_empty() && self.is_alive(object)).then_some(found)
    }

    /// As [`listed`](Self::listed), if it can be read.
    pub(in crate::master) fn finished(&self, slot: u32, tenant: TenantId) -> Option<(ObjectId, &Object)> {
        self.listed(slot, tenant).filter(|(_, object)| object.is_complete())
    }

    /// What the first replica of the object in `slot` was granted.
    #[inline]
    pub(in crate::master) fn first_grant(&self, slot: u32) -> Option<Grant> {
        let replica = self.replicas.get(self.objects.at(slot)?.1.replicas)?;
        let segment = self.seats.at(replica.seat).segment;
        Some(Grant { segment, extent: replica.extent(), handle: replica.handle })
    }

    /// Every extent that is granted on a segment of the pool.
    pub(in crate::master) fn extents(&self, visit: &mut dyn FnMut(Held)) {
        for (_, replica) in self.replicas.iter() {
            let seat = self.seats.at(replica.seat);
            let object = || self.objects.at(replica.object).map(|(id, _)| id);
            let by = match replica.state() {
                ReplicaState::Complete => object().map(Holder::Complete),
                ReplicaState::Reserved => object().map(Holder::Reserved),
                ReplicaState::Draining => Some(Holder::Draining),
                ReplicaState::Vacant => None,
            };
            if let (Some(by), true) = (by, seat.state != SeatState::Gone) {
                visit(Held { segment: seat.segment, extent: replica.extent(), by });
            }
        }
    }

    /// Folds all that there is, in the order of slots.
    pub(in crate::master) fn digest(&self, hasher: &mut SipHasher13) {
        for slot in 0..self.objects.slots() {
            if let Some((id, object)) = self.objects.at(slot) {
                hasher.write_u64(id.to_bits());
                fold(object, hasher);
            }
        }
        for (number, replica) in self.replicas.iter() {
            let segment = self.seats.at(replica.seat).segment;
            let words = [
                u64::from(number),
                segment.to_bits(),
                replica.extent().offset(),
                replica.extent().len(),
                u64::from(replica.object),
                replica.state() as u64,
                u64::from(replica.is_copied()),
            ];
            words.into_iter().for_each(|word| hasher.write_u64(word));
        }
        for (_, drain) in self.drains.iter() {
            drain.words().into_iter().for_each(|word| hasher.write_u64(word));
        }
        for (id, copy) in &self.copies {
            hasher.write_u64(id.to_bits());
            copy.words().into_iter().for_each(|word| hasher.write_u64(word));
        }
    }
}

fn fold(object: &Object, hasher: &mut SipHasher13) {
    hasher.write_u64(object.key.len() as u64);
    hasher.write(&object.key);
    let (when, what) = match object.phase {
        Phase::Writing { deadline, request, .. } => (deadline, request),
        Phase::Complete { lease, checksum: Checksum::Crc32c(sum), .. } => (lease, 1 << 32 | u64::from(sum)),
        Phase::Complete { lease, checksum: Checksum::None, .. } => (lease, 0),
    };
    let words = [
        u64::from(object.tenant.0),
        object.len,
        u64::from(object.is_complete()),
        when.nanos(),
        what,
        object.pin.nanos(),
        object.writer.to_bits(),
    ];
    words.into_iter().for_each(|word| hasher.write_u64(word));
}
