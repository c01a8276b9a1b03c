//! Memory of ours that this transport may use, and who else may.

use rustix::fs::SealFlags;
use springtide_core::id::RegionId;
use springtide_core::range::Extent;
use springtide_core::ticket::{Denied, Gate, Ticket};
use springtide_hal::{Block, Span};
use springtide_transport::Exposure;

use crate::message::Message;
use crate::table::Table;

/// All regions of a transport.
pub(crate) type Regions = Table<RegionId, Region>;

/// Who may reach a region.
#[derive(Debug)]
pub(crate) enum Reach {
    /// Our own ops.
    Local,
    /// Our own ops, and owners that serve our writes.
    Source,
    /// Everybody, who stores under tickets.
    Segment(Gate),
}

/// How another process gets at a region's bytes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Place {
    /// It maps the block's file; the bytes begin at this offset.
    File(u64),
    /// It reads our memory at this address.
    Memory(u64),
}

/// One region.
#[derive(Debug)]
pub(crate) struct Region {
    pub(crate) block: Block,
    pub(crate) reach: Reach,
    pub(crate) place: Place,
}

/// The address of a block's first byte, for a system call.
pub(crate) fn address(block: &Block) -> u64 {
    block.base().as_ptr().expose_provenance() as u64
}

impl Region {
    pub(crate) fn new(block: &Block, exposure: Exposure) -> Self {
        let reach = match exposure {
            Exposure::Local => Reach::Local,
            Exposure::Source => Reach::Source,
            Exposure::Segment { owner, segment, key } => Reach::Segment(Gate::new(owner, segment, key)),
        };
        // A file that may shrink would not be mapped by peers: their process would be at its holder's mercy.
        let sealed =
            |file| rustix::fs::fcntl_get_seals(file).is_ok_and(|seals| seals.contains(SealFlags::SHRINK));
        let place = match block.file() {
            Some((file, offset)) if sealed(file) => Place::File(offset),
            _ => Place::Memory(address(block)),
        };
        Self { block: block.clone(), reach, place }
    }

    /// The file that peers map, if the region has one.
    pub(crate) fn shared(&self) -> Option<Block> {
        matches!(self.place, Place::File(_)).then(|| self.block.clone())
    }

    /// What tells an owner that our writes may come from here; `None` if they may not, or not by mapping.
    pub(crate) fn as_source(&self, id: RegionId) -> Option<Message> {
        match (&self.reach, self.place) {
            (Reach::Source | Reach::Segment(_), Place::File(offset)) => {
                Some(Message::Source { region: id.to_bits(), offset, len: self.block.len() })
            }
            _ => None,
        }
    }

    /// What tells a peer where this segment is; `None` if it is none.
    pub(crate) fn as_segment(&self, id: RegionId) -> Option<Message> {
        let (region, len) = (id.to_bits(), self.block.len());
        match (&self.reach, self.place) {
            (Reach::Segment(_), Place::File(offset)) => Some(Message::Mapped { region, offset, len }),
            (Reach::Segment(_), Place::Memory(address)) => Some(Message::Private { region, address, len }),
            _ => None,
        }
    }

    /// The bytes `at .. at + len` for a peer to load; `None` outside a segment.
    pub(crate) fn load(&self, at: u64, len: u64) -> Option<Span<'_>> {
        if matches!(self.reach, Reach::Segment(_)) { self.block.span(at, len).ok() } else { None }
    }

    /// The bytes `at .. at + len` for a store under `ticket`. Asked anew before every step of a copy, so that nothing is
    /// stored under a ticket once it is fenced.
    pub(crate) fn store(&self, ticket: &Ticket, at: u64, len: u64) -> Result<Span<'_>, Refusal> {
        let Reach::Segment(gate) = &self.reach else { return Err(Refusal::NoTarget) };
        let span = self.block.span(at, len).map_err(|_| Refusal::NoTarget)?;
        let extent = Extent::new(at, len).ok_or(Refusal::NoTarget)?;
        gate.admit(ticket, extent).map_err(Refusal::Denied)?;
        Ok(span)
    }
}

/// Why a store does not land.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Refusal {
    /// There is no such segment, or it is shorter.
    NoTarget,
    /// The ticket does not allow it.
    Denied(Denied),
}

impl Refusal {
    /// As a completion's code shows it.
    pub(crate) const fn code(self) -> i32 {
        match self {
            Self::NoTarget => crate::entry::NO_TARGET,
            Self::Denied(denied) => crate::entry::denied_code(denied),
        }
    }
}
