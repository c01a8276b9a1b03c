//! What is known about entries that were given up: four bytes each, in a table that grows one bucket at a time.

use super::chunks::Chunks;

/// Notes in a bucket: one cache line.
const WAYS: usize = 16;
/// Entries for which the table keeps notes on average, for each resident one.
const PER_RESIDENT: u32 = 5;
/// Buckets from the start, 256 KiB: small pools need to look back further, and can.
const LEAST_BUCKETS: u32 = 1 << 12;
/// Bits of the fingerprint that a note keeps. An unknown entry is taken for a known one in `WAYS` of 2¹³ cases.
const MARK_BITS: u32 = 13;
const MARK: u16 = (1 << MARK_BITS) - 1;
/// From this class on, entries were used more than once: they are remembered twice (one bit) as long.
const PROVEN: u8 = 3;
const PROVEN_STAYS: u32 = 1;
/// A table of two to so many buckets keeps times exactly; one twice as long, in units of two, and so on. So 16 bits hold
/// eight calls for each note of the table before they wrap.
const EXACT_BITS: u32 = 9;

/// Approximate and bounded: a full bucket forgets its oldest note.
///
/// Buckets follow linear hashing. A split copies the bucket, as a note is too short to tell where it belongs; the copy
/// in the wrong place is never found and is forgotten as the oldest.
#[derive(Clone, Debug, Default)]
pub(super) struct Memory {
    buckets: Chunks<Bucket>,
    count: u32,
}

#[derive(Clone, Copy, Debug, Default)]
#[repr(align(64))]
struct Bucket {
    /// [`MARK_BITS`] of the fingerprint and the entry's class above them; zero: nothing.
    names: [u16; WAYS],
    /// When it was last used, in units of two to the bucket's shift.
    used: [u16; WAYS],
}

/// What is known of an entry.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Note {
    /// A number below eight.
    pub(super) class: u8,
    /// Calls since it was last used, as exactly as the table knows.
    pub(super) age: u64,
}

impl Memory {
    /// What is kept for each resident entry.
    pub(super) const BYTES_PER_RESIDENT: usize = size_of::<Bucket>() * PER_RESIDENT as usize / WAYS;

    /// Makes room for the notes that go with `residents` entries, by one bucket a call after the first.
    pub(super) fn grow_for(&mut self, residents: u32) {
        if self.count == 0 {
            self.buckets.reach(LEAST_BUCKETS - 1);
            self.count = LEAST_BUCKETS;
        } else if u64::from(self.count) * WAYS as u64 <= u64::from(residents) * u64::from(PER_RESIDENT) {
            self.split();
        }
    }

    /// Notes that the entry `tag`, used at `used`, was given up in `class`.
    pub(super) fn add(&mut self, tag: u32, class: u8, used: u64, now: u64) {
        let Some((at, shift)) = self.find(tag) else { return };
        let (name, now) = (name(tag), (now >> shift) as u16);
        let Bucket { names, used: times } = &mut self.buckets[at];
        let same = names.iter().position(|&n| n == 0 || n & MARK == name);
        let staleness =
            |i: usize| now.wrapping_sub(times[i]) >> if proven(names[i]) { PROVEN_STAYS } else { 0 };
        let oldest = || (0..WAYS).max_by_key(|&i| staleness(i)).unwrap_or(0);
        let way = same.unwrap_or_else(oldest);
        names[way] = name | u16::from(class) << MARK_BITS;
        times[way] = (used >> shift) as u16;
    }

    /// Takes the note of the entry `tag`, if there is one.
    pub(super) fn take(&mut self, tag: u32, now: u64) -> Option<Note> {
        let (at, shift) = self.find(tag)?;
        let name = name(tag);
        let bucket = &mut self.buckets[at];
        let way = bucket.names.iter().position(|&n| n != 0 && n & MARK == name)?;
        let class = (bucket.names[way] >> MARK_BITS) as u8;
        bucket.names[way] = 0;
        let age = ((now >> shift) as u16).wrapping_sub(bucket.used[way]);
        Some(Note { class, age: u64::from(age) << shift })
    }

    /// The bucket of `tag` and its shift, which the last split that it was part of gave it.
    fn find(&self, tag: u32) -> Option<(u32, u32)> {
        if self.count == 0 {
            return None;
        }
        let bits = self.count.next_power_of_two().trailing_zeros();
        let long = tag & ((1 << bits) - 1);
        let short = tag & ((1 << bits) - 1) >> 1;
        let bucket = if long < self.count { long } else { short };
        Some((bucket, self.shift(bucket, bits)))
    }

    /// A bucket has the longer table's units once it was split, or came from a split, in this doubling.
    fn shift(&self, bucket: u32, bits: u32) -> u32 {
        let half = (1 << bits) >> 1;
        let done = bucket >= half || bucket + half < self.count;
        (if done { bits } else { bits - 1 }).saturating_sub(EXACT_BITS)
    }

    fn split(&mut self) {
        let new = self.count;
        self.buckets.reach(new);
        self.count += 1;
        let bits = self.count.next_power_of_two().trailing_zeros();
        let old = new - ((1 << bits) >> 1);
        let mut bucket = self.buckets[old];
        if bits > EXACT_BITS {
            bucket.used.iter_mut().for_each(|used| *used >>= 1);
        }
        self.buckets[old] = bucket;
        self.buckets[new] = bucket;
    }
}

/// Whether the note `name` is of an entry that was used more than once.
const fn proven(name: u16) -> bool {
    (name >> MARK_BITS) as u8 >= PROVEN
}

/// The part of `tag` that a note keeps: from the top, as the bucket is chosen by the bottom. Never zero.
const fn name(tag: u32) -> u16 {
    let mark = (tag >> (32 - MARK_BITS)) as u16;
    if mark == 0 { 1 } else { mark }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rng::mix;

    fn name_of(n: u64) -> u32 {
        mix(n) as u32
    }

    #[test]
    fn notes_survive_growth_with_their_age() {
        let mut memory = Memory::default();
        memory.grow_for(1);
        (0..1_000).for_each(|n| memory.add(name_of(n), (n % 8) as u8, 1_000, 2_000));
        (0..10_000).for_each(|_| memory.grow_for(30_000));
        assert!(memory.count > 2 * LEAST_BUCKETS);
        for n in 0..1_000 {
            let note = memory.take(name_of(n), 9_000).expect("the table is nearly empty");
            assert_eq!(note.class, (n % 8) as u8);
            assert!(note.age.abs_diff(8_000) <= 64, "{note:?}");
        }
        let ghosts = (0..1_000).filter(|&n| memory.take(name_of(n), 9_000).is_some()).count();
        assert!(ghosts < 20, "{ghosts} were taken and are still there");
    }
}
