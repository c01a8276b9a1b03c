//! One number for the whole state, for replay and simulation.

use core::hash::Hasher;

use siphasher::sip::SipHasher13;

use super::Master;
use super::control::Control;

impl Master {
    /// A number that is equal for equal histories. O(everything).
    pub fn digest(&self) -> u64 {
        let mut hasher = SipHasher13::new();
        self.control.digest(&mut hasher);
        self.shard.digest(&mut hasher);
        for number in
            [self.no_room, self.blocked_by_leases, self.round_due().nanos(), self.control.due().nanos()]
        {
            hasher.write_u64(number);
        }
        hasher.finish()
    }
}

impl Control {
    fn digest(&self, hasher: &mut SipHasher13) {
        hasher.write_u64(self.term.0);
        hasher.write_u64(self.serial);
        for (id, record) in self.members.iter() {
            hasher.write_u64(id.to_bits());
            hasher.write_u128(record.incarnation.0);
            hasher.write_u64(record.status as u64);
            record.duties.keys().for_each(|&number| hasher.write_u64(number));
        }
        for (id, segment) in self.space.iter() {
            hasher.write_u64(id.to_bits());
            hasher.write_u64(segment.owner().to_bits());
            hasher.write_u64(segment.used());
            hasher.write_u64(segment.visibility() as u64);
        }
    }
}
