//! What stands on the wire: hello, requests, replies. Bytes in, bytes out; every field is checked.
//!
//! ```text
//! hello    0 magic F5 'T' 'C' 'P'   4 version u16   6 zero u16   8 from u128   24 to u128                   40 bytes
//! request  0 kind (1 read, 2 write)   1 zero   2 count u16   4 zero u32   8 first u64                       16 bytes
//!          then `count` items, then of writes the bytes of all items, one after the other
//! item     0 region u64    8 offset u64   16 len u32   20 zero u32                                          24 bytes
//!          of writes also 24 extent offset u64   32 extent len u64   40 serial u64   48 term u64   56 tag   64 bytes
//! reply    0 kind (3)   1 status   2 count u16   4 code i32   8 first u64   16 bytes u64                    24 bytes
//!          then, if the status is done, the bytes of its reads, one after the other               little endian
//! ```
//! Operations are numbered from 0 on each connection, in the order of their requests; replies come in that order, one
//! for a run of operations that ended alike. A ticket's owner is the process that the hello named, and its segment that
//! of the region, so neither is sent. A region is what its owner calls the memory; descriptions tell it to peers. The first byte of a hello is one that no other protocol on these ports begins with.

use springtide_core::id::{Incarnation, RegionId, Term};
use springtide_core::range::Extent;
use springtide_core::ticket::{Denied, Ticket};
use springtide_core::transfer::{Status, Verb};

use crate::stream::Broken;

/// What a connection begins with, both ways.
pub(crate) const MAGIC: [u8; 4] = [0xF5, b'T', b'C', b'P'];
/// The version that this code speaks, and the only one.
pub(crate) const VERSION: u16 = 1;
/// Length of a hello.
pub(crate) const HELLO: usize = 40;
/// Length of the fixed part of a request.
pub(crate) const REQUEST: usize = 16;
/// Length of a reply without its bytes.
pub(crate) const REPLY: usize = 24;
/// Most operations in one request.
pub(crate) const GROUP: usize = 32;
/// Longest request, without the bytes of its writes.
pub(crate) const MAX_REQUEST: usize = REQUEST + GROUP * 64;

/// Who speaks, and who is meant.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Hello {
    pub(crate) from: Incarnation,
    pub(crate) to: Incarnation,
}

fn word<const N: usize>(bytes: &[u8], at: usize) -> [u8; N] {
    let mut word = [0; N];
    word.copy_from_slice(&bytes[at..at + N]);
    word
}

fn u16_at(bytes: &[u8], at: usize) -> u16 {
    u16::from_le_bytes(word(bytes, at))
}

fn u32_at(bytes: &[u8], at: usize) -> u32 {
    u32::from_le_bytes(word(bytes, at))
}

fn u64_at(bytes: &[u8], at: usize) -> u64 {
    u64::from_le_bytes(word(bytes, at))
}

impl Hello {
    pub(crate) fn encode(self) -> [u8; HELLO] {
        let mut out = [0; HELLO];
        out[..4].copy_from_slice(&MAGIC);
        out[4..6].copy_from_slice(&VERSION.to_le_bytes());
        out[8..24].copy_from_slice(&self.from.0.to_le_bytes());
        out[24..].copy_from_slice(&self.to.0.to_le_bytes());
        out
    }

    /// The hello at the front of `bytes`, or `None` if more are needed. Garbage is refused at its first byte.
    pub(crate) fn decode(bytes: &[u8]) -> Result<Option<Self>, Broken> {
        let magic = MAGIC.len().min(bytes.len());
        if bytes[..magic] != MAGIC[..magic] {
            return Err(Broken::Protocol);
        }
        if bytes.len() < HELLO {
            return Ok(None);
        }
        if u16_at(bytes, 4) != VERSION || u16_at(bytes, 6) != 0 {
            return Err(Broken::Protocol);
        }
        let side = |at| Incarnation(u128::from_le_bytes(word(bytes, at)));
        Ok(Some(Self { from: side(8), to: side(24) }))
    }
}

/// The front of a request whose items are all there.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Request<'a> {
    pub(crate) verb: Verb,
    pub(crate) first: u64,
    pub(crate) count: usize,
    items: &'a [u8],
}

/// Which bytes of which region.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Item {
    /// `None` if the peer named no possible region.
    pub(crate) region: Option<RegionId>,
    pub(crate) at: u64,
    pub(crate) len: u32,
}

const fn item_len(verb: Verb) -> usize {
    match verb {
        Verb::Read => 24,
        Verb::Write => 64,
    }
}

impl<'a> Request<'a> {
    /// The request at the front of `bytes` and its length, or `None` if more bytes are needed.
    pub(crate) fn decode(bytes: &'a [u8], max_op: u32) -> Result<Option<(Self, usize)>, Broken> {
        let verb = match bytes.first() {
            None => return Ok(None),
            Some(1) => Verb::Read,
            Some(2) => Verb::Write,
            Some(_) => return Err(Broken::Protocol),
        };
        if bytes.len() < REQUEST {
            return Ok(None);
        }
        let count = usize::from(u16_at(bytes, 2));
        if bytes[1] != 0 || u32_at(bytes, 4) != 0 || count == 0 || count > GROUP {
            return Err(Broken::Protocol);
        }
        let end = REQUEST + count * item_len(verb);
        let Some(items) = bytes.get(REQUEST..end) else { return Ok(None) };
        let fits = |item: &[u8]| u32_at(item, 16) <= max_op && u32_at(item, 20) == 0;
        if !items.chunks_exact(item_len(verb)).all(fits) {
            return Err(Broken::Protocol);
        }
        Ok(Some((Self { verb, first: u64_at(bytes, 8), count, items }, end)))
    }

    fn bytes(&self, index: usize) -> &'a [u8] {
        &self.items[index * item_len(self.verb)..][..item_len(self.verb)]
    }

    /// Item `index`.
    pub(crate) fn item(&self, index: usize) -> Item {
        let bytes = self.bytes(index);
        Item { region: RegionId::from_bits(u64_at(bytes, 0)), at: u64_at(bytes, 8), len: u32_at(bytes, 16) }
    }

    /// What item `index` of a write may do; `None` if no ticket says that.
    pub(crate) fn permission(&self, index: usize) -> Option<Permission> {
        let bytes = self.bytes(index);
        Some(Permission {
            extent: Extent::new(u64_at(bytes, 24), u64_at(bytes, 32))?,
            serial: u64_at(bytes, 40),
            term: Term(u64_at(bytes, 48)),
            tag: u64_at(bytes, 56),
        })
    }
}

/// A ticket without what both sides know.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Permission {
    pub(crate) extent: Extent,
    pub(crate) serial: u64,
    pub(crate) term: Term,
    pub(crate) tag: u64,
}

/// The fixed part of a request.
pub(crate) fn request(verb: Verb, count: usize, first: u64) -> [u8; REQUEST] {
    debug_assert!((1..=GROUP).contains(&count));
    let mut out = [0; REQUEST];
    out[0] = match verb {
        Verb::Read => 1,
        Verb::Write => 2,
    };
    out[2..4].copy_from_slice(&(count as u16).to_le_bytes());
    out[8..].copy_from_slice(&first.to_le_bytes());
    out
}

/// An item of a read.
pub(crate) fn item(region: RegionId, at: u64, len: u32) -> [u8; 24] {
    let mut out = [0; 24];
    out[..8].copy_from_slice(&region.to_bits().to_le_bytes());
    out[8..16].copy_from_slice(&at.to_le_bytes());
    out[16..20].copy_from_slice(&len.to_le_bytes());
    out
}

/// What an item of a write has behind that.
pub(crate) fn permission(ticket: &Ticket) -> [u8; 40] {
    let mut out = [0; 40];
    let words = [ticket.extent.offset(), ticket.extent.len(), ticket.serial, ticket.term.0, ticket.tag];
    for (slot, word) in out.chunks_exact_mut(8).zip(words) {
        slot.copy_from_slice(&word.to_le_bytes());
    }
    out
}

/// How `count` operations from `first` on ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Reply {
    pub(crate) status: Status,
    pub(crate) count: u16,
    /// Why refused ([`code`]); else 0.
    pub(crate) code: i32,
    pub(crate) first: u64,
    /// `Done`: how many bytes of reads follow. `Short`: how many bytes landed.
    pub(crate) bytes: u64,
}

impl Reply {
    /// Operation `number` was done and has no bytes to give.
    pub(crate) const fn done(number: u64) -> Self {
        Self { status: Status::Done, count: 1, code: 0, first: number, bytes: 0 }
    }

    /// Operation `number` was refused.
    pub(crate) const fn refused(number: u64, code: i32) -> Self {
        Self { status: Status::Refused, count: 1, code, first: number, bytes: 0 }
    }

    /// Whether the end of one more operation, `next`, can be said in the same reply.
    pub(crate) fn joins(&self, next: &Self) -> bool {
        let alike = (self.status, self.code, self.bytes) == (next.status, next.code, 0);
        alike
            && self.status != Status::Short
            && self.count < u16::MAX
            && self.first + u64::from(self.count) == next.first
    }

    pub(crate) fn encode(&self) -> [u8; REPLY] {
        let mut out = [0; REPLY];
        out[0] = 3;
        out[1] = match self.status {
            Status::Done => 0,
            Status::Refused => 1,
            Status::Short => 2,
            Status::Flushed | Status::Lost => 3,
        };
        out[2..4].copy_from_slice(&self.count.to_le_bytes());
        out[4..8].copy_from_slice(&self.code.to_le_bytes());
        out[8..16].copy_from_slice(&self.first.to_le_bytes());
        out[16..].copy_from_slice(&self.bytes.to_le_bytes());
        out
    }

    /// The reply at the front of `bytes`, or `None` if more are needed.
    pub(crate) fn decode(bytes: &[u8]) -> Result<Option<Self>, Broken> {
        if bytes.first().is_some_and(|&kind| kind != 3) {
            return Err(Broken::Protocol);
        }
        if bytes.len() < REPLY {
            return Ok(None);
        }
        let status = match bytes[1] {
            0 => Status::Done,
            1 => Status::Refused,
            2 => Status::Short,
            _ => return Err(Broken::Protocol),
        };
        let code = i32::from_le_bytes(word(bytes, 4));
        let reply =
            Self { status, count: u16_at(bytes, 2), code, first: u64_at(bytes, 8), bytes: u64_at(bytes, 16) };
        let sound = match status {
            Status::Done => reply.code == 0,
            Status::Short => reply.count == 1,
            _ => reply.bytes == 0,
        };
        if reply.count == 0 || !sound { Err(Broken::Protocol) } else { Ok(Some(reply)) }
    }
}

/// The number that tells people why an operation was refused.
pub(crate) mod code {
    use super::Denied;

    /// The bytes are not all inside memory that this process exposes.
    pub(crate) const NO_MEMORY: i32 = 1;
    /// The write came without a sound ticket.
    pub(crate) const NO_TICKET: i32 = 2;
    /// The operation names memory of ours that is not there.
    pub(crate) const NO_REGION: i32 = 3;
    /// The memory was withdrawn while bytes arrived.
    pub(crate) const WITHDRAWN: i32 = 4;
    /// The ticket was fenced.
    pub(crate) const FENCED: i32 = 13;

    /// The number for a ticket that was not admitted.
    pub(crate) const fn denied(denied: Denied) -> i32 {
        match denied {
            Denied::Owner => 10,
            Denied::Range => 11,
            Denied::Forged => 12,
            Denied::Fenced => FENCED,
        }
    }
}
