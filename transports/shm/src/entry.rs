//! What stands in the rings: requests of the initiator, replies of the owner. Decoding checks everything that can be
//! checked without knowing any memory.

use springtide_core::id::{Incarnation, SegmentId, Term};
use springtide_core::range::Extent;
use springtide_core::ticket::{Denied, Ticket};
use springtide_hal_host::ring::Shape;

/// Bytes of one piece of a write whose source the owner cannot read by itself.
pub(crate) const PIECE: u64 = 64 * 1024;
/// How many such pieces are under way at most on one path.
pub(crate) const PIECES: u32 = 8;
/// Requests under way at most on one path.
pub(crate) const SLOTS: u32 = 256;

/// The initiator's board: requests, and room for pieces.
pub(crate) const REQUESTS: Shape = Shape { slots: SLOTS, words: 16, bytes: PIECE * PIECES as u64 };
/// The owner's board: replies.
pub(crate) const REPLIES: Shape = Shape { slots: SLOTS, words: 4, bytes: 0 };

/// Where the owner finds a write's bytes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Source {
    /// From `at` on in the initiator's region of these bits, whose file the owner has.
    Region { region: u64, at: u64 },
    /// From `address` on in the initiator's private memory.
    Memory { address: u64 },
    /// From `at` on in the bulk area of the initiator's board.
    Board { at: u64 },
}

/// "Store these bytes of mine there."
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Request {
    /// Counts requests of one path; the reply repeats it.
    pub(crate) number: u64,
    pub(crate) source: Source,
    /// The owner's region, as bits.
    pub(crate) target: u64,
    /// The first byte in it.
    pub(crate) to: u64,
    pub(crate) len: u32,
    pub(crate) ticket: Ticket,
}

impl Request {
    pub(crate) fn encode(&self) -> [u64; 16] {
        let (kind, from, at) = match self.source {
            Source::Region { region, at } => (1, region, at),
            Source::Memory { address } => (2, 0, address),
            Source::Board { at } => (3, 0, at),
        };
        let t = &self.ticket;
        [
            self.number,
            u64::from(self.len) << 32 | kind,
            from,
            at,
            self.target,
            self.to,
            t.owner.0 as u64,
            (t.owner.0 >> 64) as u64,
            t.segment.to_bits(),
            t.extent.offset(),
            t.extent.len(),
            t.serial,
            t.term.0,
            t.tag,
            0,
            0,
        ]
    }

    /// The request in `words`; `None` if it is none.
    pub(crate) fn decode(words: &[u64; 16]) -> Option<Self> {
        let source = match words[1] & 0xffff_ffff {
            1 => Source::Region { region: words[2], at: words[3] },
            2 => Source::Memory { address: words[3] },
            3 => Source::Board { at: words[3] },
            _ => return None,
        };
        let ticket = Ticket {
            owner: Incarnation(u128::from(words[6]) | u128::from(words[7]) << 64),
            segment: SegmentId::from_bits(words[8])?,
            extent: Extent::new(words[9], words[10])?,
            serial: words[11],
            term: Term(words[12]),
            tag: words[13],
        };
        let len = (words[1] >> 32) as u32;
        Some(Self { number: words[0], source, target: words[4], to: words[5], len, ticket })
    }
}

/// How a request ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Outcome {
    /// All bytes are in place.
    Done,
    /// Not allowed; no byte was stored.
    Refused,
    /// Ended early; some bytes were stored.
    Short,
    /// The owner cannot read the source; another kind of source may do.
    Unreadable,
}

/// Why the owner refused, as the completion's code shows it.
pub(crate) const fn denied_code(denied: Denied) -> i32 {
    match denied {
        Denied::Owner => 1,
        Denied::Range => 2,
        Denied::Forged => 3,
        Denied::Fenced => 4,
    }
}

/// The owner has no such region, or the store reaches outside it.
pub(crate) const NO_TARGET: i32 = 5;

/// "That is how it ended."
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Reply {
    pub(crate) number: u64,
    pub(crate) outcome: Outcome,
    /// Bytes that were stored.
    pub(crate) bytes: u32,
    pub(crate) code: i32,
}

impl Reply {
    pub(crate) fn encode(&self) -> [u64; 4] {
        let outcome = match self.outcome {
            Outcome::Done => 1,
            Outcome::Refused => 2,
            Outcome::Short => 3,
            Outcome::Unreadable => 4,
        };
        [self.number, outcome, u64::from(self.bytes) | u64::from(self.code as u32) << 32, 0]
    }

    pub(crate) fn decode(words: &[u64; 4]) -> Option<Self> {
        let outcome = match words[1] {
            1 => Outcome::Done,
            2 => Outcome::Refused,
            3 => Outcome::Short,
            4 => Outcome::Unreadable,
            _ => return None,
        };
        let (bytes, code) = (words[2] as u32, (words[2] >> 32) as u32 as i32);
        Some(Self { number: words[0], outcome, bytes, code })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request(source: Source) -> Request {
        let segment = SegmentId::from_bits(5 << 32 | 6).unwrap();
        let extent = Extent::new(64, 1 << 40).unwrap();
        let owner = Incarnation(3 << 70 | 9);
        let ticket = Ticket { owner, segment, extent, serial: 8, term: Term(9), tag: u64::MAX };
        Request { number: 4, source, target: 1 << 32, to: 1 << 33, len: u32::MAX, ticket }
    }

    #[test]
    fn entries_come_back() {
        let sources = [
            Source::Region { region: 1 << 34, at: 7 },
            Source::Memory { address: u64::MAX },
            Source::Board { at: 65536 },
        ];
        for source in sources {
            assert_eq!(Request::decode(&request(source).encode()), Some(request(source)));
        }
        for outcome in [Outcome::Done, Outcome::Refused, Outcome::Short, Outcome::Unreadable] {
            let reply = Reply { number: u64::MAX, outcome, bytes: u32::MAX, code: -5 };
            assert_eq!(Reply::decode(&reply.encode()), Some(reply));
        }
    }

    #[test]
    fn garbage_is_no_entry() {
        let good = request(Source::Board { at: 0 }).encode();
        for (word, value) in [(1, 0), (1, 4), (8, 7), (9, u64::MAX)] {
            let mut bad = good;
            bad[word] = value;
            assert_eq!(Request::decode(&bad), None, "word {word}");
        }
        assert_eq!(Reply::decode(&[0; 4]), None);
        assert_eq!(Reply::decode(&[0, 5, 0, 0]), None);
    }
}
