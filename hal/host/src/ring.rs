//! Boards: memory that one process writes and another reads, with a ring of entries and a few flags.
//!
//! Each of two processes owns a [`Board`], a sealed memory file, and maps the other's as a [`PeerBoard`], read only.
//! So neither can disturb the other's words, whatever it does. What comes from a peer's board is a number that may be
//! anything: users check it every time.
//!
//! ```text
//! word  0 published   8 asleep   16 busy   17 closed   18 changed   32 entries …   page-aligned: bytes …
//! ```

mod words;

#[cfg(not(loom))]
mod files;
#[cfg(all(test, loom))]
mod orders;

use words::{AtomicU64, Ordering, Own, Theirs, fence};

const PUBLISHED: usize = 0;
const ENTRIES: usize = 32;
const PAGE: u64 = 4096;

/// What both sides must agree on.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Shape {
    /// Entries in the ring; a power of two.
    pub slots: u32,
    /// Words of 8 bytes in an entry.
    pub words: u32,
    /// Bytes of bulk data behind the ring.
    pub bytes: u64,
}

impl Shape {
    /// Where the bulk data begins.
    const fn bulk(self) -> u64 {
        let words = ENTRIES as u64 + self.slots as u64 * self.words as u64;
        (words * 8).next_multiple_of(PAGE)
    }

    const fn total(self) -> u64 {
        self.bulk() + self.bytes
    }

    /// The first word of entry number `entry`.
    const fn entry(self, entry: u64) -> usize {
        ENTRIES + (entry & (self.slots as u64 - 1)) as usize * self.words as usize
    }
}

/// A word that says something about its board's owner.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Flag {
    /// Not zero: ring the owner's bell after publishing.
    Asleep,
    /// Not zero: the owner is acting on the peer's entries.
    Busy,
    /// Not zero: the owner wants none of its entries acted on any more.
    Closed,
    /// Counts the owner's notices on the socket that the peer must read before it goes on.
    Changed,
}

impl Flag {
    const fn word(self) -> usize {
        match self {
            Self::Asleep => 8,
            Self::Busy => 16,
            Self::Closed => 17,
            Self::Changed => 18,
        }
    }
}

/// A board of our own: this process alone stores there.
#[derive(Debug)]
pub struct Board {
    words: Own,
    shape: Shape,
    pushed: u64,
}

impl Board {
    /// Stores `entry` into the ring's next slot, unseen until [`publish`](Self::publish). The caller knows that the
    /// peer is done with what was there. Words beyond the shape's are left out.
    pub fn push(&mut self, entry: &[u64]) {
        let first = self.shape.entry(self.pushed);
        for (at, &value) in entry.iter().take(self.shape.words as usize).enumerate() {
            self.word(first + at).store(value, Ordering::Relaxed);
        }
        self.pushed = self.pushed.wrapping_add(1);
    }

    /// Shows the peer everything that was pushed.
    pub fn publish(&self) {
        self.word(PUBLISHED).store(self.pushed, Ordering::Release);
    }

    /// Sets `flag`. What this thread reads from the peer's board afterwards is at least as new as what the peer saw
    /// before this value.
    pub fn set(&self, flag: Flag, value: u64) {
        self.word(flag.word()).store(value, Ordering::SeqCst);
        fence(Ordering::SeqCst);
    }

    /// Our own `flag`.
    pub fn flag(&self, flag: Flag) -> u64 {
        self.word(flag.word()).load(Ordering::Relaxed)
    }

    fn word(&self, index: usize) -> &AtomicU64 {
        self.words.word(index)
    }
}

/// A peer's board: the peer alone stores there. Every number may be garbage.
#[derive(Debug)]
pub struct PeerBoard {
    words: Theirs,
    shape: Shape,
}

impl PeerBoard {
    /// How many entries the peer published since it began. The entries below are visible.
    pub fn published(&self) -> u64 {
        self.word(PUBLISHED).load(Ordering::Acquire)
    }

    /// Entry number `entry`; words beyond the shape's are zero. A peer that breaks the rules may change it at any time,
    /// so it is copied once, then checked.
    pub fn entry<const WORDS: usize>(&self, entry: u64) -> [u64; WORDS] {
        let first = self.shape.entry(entry);
        core::array::from_fn(|at| {
            if at < self.shape.words as usize { self.word(first + at).load(Ordering::Relaxed) } else { 0 }
        })
    }

    /// The peer's `flag`.
    pub fn flag(&self, flag: Flag) -> u64 {
        self.word(flag.word()).load(Ordering::Acquire)
    }

    /// Whether the peer sleeps and must be woken for what was just published. A full fence.
    pub fn sleeps(&self) -> bool {
        fence(Ordering::SeqCst);
        self.flag(Flag::Asleep) != 0
    }

    fn word(&self, index: usize) -> &AtomicU64 {
        self.words.word(index)
    }
}

#[cfg(loom)]
impl Board {
    /// A board and what its peer sees of it, in words of loom's.
    fn pair(shape: Shape) -> (Self, PeerBoard) {
        let (own, theirs) = words::pair((shape.total() / 8) as usize);
        (Self { words: own, shape, pushed: 0 }, PeerBoard { words: theirs, shape })
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use springtide_hal::Block;

    use super::*;
    use crate::map::MapError;

    const SHAPE: Shape = Shape { slots: 8, words: 3, bytes: 1000 };

    fn pair() -> (Board, PeerBoard) {
        let board = Board::create(SHAPE).unwrap();
        let peer = PeerBoard::map(board.file(), SHAPE).unwrap();
        (board, peer)
    }

    #[test]
    fn entries_are_seen_once_published() {
        let (mut board, peer) = pair();
        board.push(&[1, 2, 3, 4]);
        assert_eq!(peer.published(), 0);
        board.publish();
        assert_eq!(peer.published(), 1);
        assert_eq!(peer.entry(0), [1, 2, 3, 0]);
    }

    #[test]
    fn slots_are_used_again() {
        let (mut board, peer) = pair();
        for n in 0..20 {
            board.push(&[n, n + 1, n + 2]);
        }
        board.publish();
        assert_eq!(peer.published(), 20);
        assert_eq!(peer.entry(19), [19, 20, 21]);
        assert_eq!(peer.entry(12), [12, 13, 14]);
        // An entry number that is garbage finds some slot, inside the board.
        let _: [u64; 3] = peer.entry(u64::MAX);
    }

    #[test]
    fn flags_do_not_share_words() {
        let (board, peer) = pair();
        for flag in [Flag::Asleep, Flag::Busy, Flag::Closed, Flag::Changed] {
            board.set(flag, flag.word() as u64);
        }
        for flag in [Flag::Asleep, Flag::Busy, Flag::Closed, Flag::Changed] {
            assert_eq!((peer.flag(flag), board.flag(flag)), (flag.word() as u64, flag.word() as u64));
        }
        assert_eq!(peer.published(), 0);
        assert!(peer.sleeps());
    }

    #[test]
    fn bulk_bytes_stay_in_their_area() {
        let (mut board, peer) = pair();
        board.bulk(990, 10).unwrap().block().write(SHAPE.bulk() + 990, b"0123456789").unwrap();
        let mine = Block::from(vec![0; 10]);
        peer.copy_bulk(990, mine.span(0, 10).unwrap()).unwrap();
        assert_eq!(mine.to_vec(), b"0123456789");
        assert!(board.bulk(991, 10).is_err() && board.bulk(u64::MAX, 1).is_err());
        assert!(peer.copy_bulk(991, mine.span(0, 10).unwrap()).is_err());
        board.push(&[7, 7, 7]);
        peer.copy_bulk(990, mine.span(0, 10).unwrap()).unwrap();
        assert_eq!(mine.to_vec(), b"0123456789");
    }

    #[test]
    fn a_board_of_another_shape_is_refused() {
        let board = Board::create(SHAPE).unwrap();
        let larger = Shape { bytes: 1 << 20, ..SHAPE };
        assert_eq!(PeerBoard::map(board.file(), larger).unwrap_err(), MapError::TooShort);
    }

    /// Two threads pass numbers to and fro; each sleeps whenever it has nothing to do. A lost wake-up hangs here.
    #[test]
    fn no_wake_up_is_lost() {
        const ROUNDS: u64 = 20_000;
        let (a, b) = (pair(), pair());
        let bells: [_; 2] = core::array::from_fn(|_| {
            rustix::event::eventfd(0, rustix::event::EventfdFlags::CLOEXEC).unwrap()
        });
        let run = |mut mine: Board, theirs: PeerBoard, my_bell: usize, first: bool| {
            let (mut sent, mut seen) = (0, 0);
            if first {
                mine.push(&[0, 0, 5]);
                sent = 1;
                mine.publish();
                if theirs.sleeps() {
                    rustix::io::write(&bells[1 - my_bell], &1u64.to_ne_bytes()).unwrap();
                }
            }
            while seen < ROUNDS {
                if theirs.published() == seen {
                    mine.set(Flag::Asleep, 1);
                    if theirs.published() == seen {
                        rustix::io::read(&bells[my_bell], &mut [0; 8]).unwrap();
                    }
                    mine.set(Flag::Asleep, 0);
                    continue;
                }
                assert_eq!(theirs.entry(seen), [seen, seen * 3, seen ^ 5]);
                seen += 1;
                if sent < ROUNDS {
                    mine.push(&[sent, sent * 3, sent ^ 5]);
                    sent += 1;
                    mine.publish();
                    if theirs.sleeps() {
                        rustix::io::write(&bells[1 - my_bell], &1u64.to_ne_bytes()).unwrap();
                    }
                }
            }
        };
        std::thread::scope(|scope| {
            scope.spawn(|| run(a.0, b.1, 0, true));
            scope.spawn(|| run(b.0, a.1, 1, false));
        });
    }
}
