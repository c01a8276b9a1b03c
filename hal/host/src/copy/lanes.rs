//! CRC32C with the processor's own instruction, over raw memory, copying in the same pass if asked to.
//!
//! The instruction takes three times as long as it can be started, so three neighbouring lanes are summed side by side
//! and joined by a table. Loads, sums and stores of one word overlap with those of others, so that a copy with its sum
//! takes little longer than the copy.

use core::arch::x86_64::{_mm_crc32_u8, _mm_crc32_u64};

use super::{times, zeros};

/// Bytes of one lane where there is much to do. No power of two: the lanes' words must not compete for the same places
/// in the cache.
const LONG: usize = 4_160;
/// Bytes of one lane otherwise.
const SHORT: usize = 256;

/// What a sum becomes when so many bytes follow, by its four bytes.
type Shift = [[u32; 256]; 4];

static LONG_SHIFT: Shift = shift(LONG as u64);
static SHORT_SHIFT: Shift = shift(SHORT as u64);

const fn shift(bytes: u64) -> Shift {
    let power = zeros(bytes);
    let mut table = [[0; 256]; 4];
    let mut place = 0;
    while place < 4 {
        let mut value = 0;
        while value < 256 {
            table[place][value] = times((value as u32) << (8 * place), power);
            value += 1;
        }
        place += 1;
    }
    table
}

fn shifted(table: &Shift, sum: u32) -> u32 {
    let [a, b, c, d] = sum.to_le_bytes();
    table[0][a as usize] ^ table[1][b as usize] ^ table[2][c as usize] ^ table[3][d as usize]
}

/// Whether this processor has the instruction.
pub(super) fn are_here() -> bool {
    std::arch::is_x86_feature_detected!("sse4.2")
}

/// What is done with the bytes besides summing them.
pub(super) trait Then {
    /// Takes the `word` that stands at `at`.
    ///
    /// # Safety
    /// `at .. at + 8` lies inside the range that is summed.
    unsafe fn word(&self, at: usize, word: u64);
    /// Takes the `byte` that stands at `at`.
    ///
    /// # Safety
    /// `at` lies inside the range that is summed.
    unsafe fn byte(&self, at: usize, byte: u8);
}

/// Nothing.
pub(super) struct Leave;

impl Then for Leave {
    unsafe fn word(&self, _: usize, _: u64) {}
    unsafe fn byte(&self, _: usize, _: u8) {}
}

/// They are stored from this address on, where there is room for all of them.
pub(super) struct Store(pub(super) *mut u8);

impl Then for Store {
    #[inline(always)]
    unsafe fn word(&self, at: usize, word: u64) {
        // SAFETY: `at` lies inside the range, for all of which there is room.
        let to = unsafe { self.0.add(at) };
        // SAFETY: as above, for the word's eight bytes.
        unsafe { to.cast::<u64>().write_unaligned(word) };
    }
    #[inline(always)]
    unsafe fn byte(&self, at: usize, byte: u8) {
        // SAFETY: `at` lies inside the range, for all of which there is room.
        let to = unsafe { self.0.add(at) };
        // SAFETY: as above.
        unsafe { to.write(byte) };
    }
}

/// CRC32C of bytes whose sum is `sum`, followed by `len` bytes from `from` on, each of which is loaded once.
///
/// # Safety
/// The instruction must be here ([`are_here`]); `from` has `len` readable bytes; so has `then`'s memory, writable.
#[target_feature(enable = "sse4.2")]
pub(super) unsafe fn sum(sum: u32, from: *const u8, len: usize, then: &impl Then) -> u32 {
    let (mut state, mut at) = (!sum, 0);
    while len - at >= 3 * LONG {
        // SAFETY: three long lanes are left, and the caller keeps the rest of the contract.
        state = unsafe { three::<LONG>(state, from, at, then, &LONG_SHIFT) };
        at += 3 * LONG;
    }
    while len - at >= 3 * SHORT {
        // SAFETY: three short lanes are left, and the caller keeps the rest of the contract.
        state = unsafe { three::<SHORT>(state, from, at, then, &SHORT_SHIFT) };
        at += 3 * SHORT;
    }
    while len - at >= 8 {
        // SAFETY: eight bytes are left.
        let word = unsafe { load(from, at) };
        state = _mm_crc32_u64(state.into(), word) as u32;
        // SAFETY: the same bytes.
        unsafe { then.word(at, word) };
        at += 8;
    }
    while at < len {
        // SAFETY: one byte is left.
        let place = unsafe { from.add(at) };
        // SAFETY: as above.
        let byte = unsafe { place.read() };
        state = _mm_crc32_u8(state, byte);
        // SAFETY: the same byte.
        unsafe { then.byte(at, byte) };
        at += 1;
    }
    !state
}

/// The state after three lanes of `LANE` bytes from `start` on.
///
/// # Safety
/// As for [`sum`], with the three lanes inside its range.
#[target_feature(enable = "sse4.2")]
unsafe fn three<const LANE: usize>(
    state: u32,
    from: *const u8,
    start: usize,
    then: &impl Then,
    table: &Shift,
) -> u32 {
    let mut states = [u64::from(state), 0, 0];
    for at in (start..start + LANE).step_by(8) {
        for (lane, state) in states.iter_mut().enumerate() {
            let at = at + lane * LANE;
            // SAFETY: the word lies inside its lane, whose length is a multiple of eight.
            let word = unsafe { load(from, at) };
            *state = _mm_crc32_u64(*state, word);
            // SAFETY: the same bytes.
            unsafe { then.word(at, word) };
        }
    }
    let [first, second, third] = states.map(|state| state as u32);
    shifted(table, shifted(table, first) ^ second) ^ third
}

const _: () = assert!(LONG.is_multiple_of(8) && SHORT.is_multiple_of(8));

/// # Safety
/// `from + at` has eight readable bytes.
#[inline(always)]
unsafe fn load(from: *const u8, at: usize) -> u64 {
    // SAFETY: the caller's promise.
    let place = unsafe { from.add(at) };
    // SAFETY: the caller's promise.
    unsafe { place.cast::<u64>().read_unaligned() }
}
