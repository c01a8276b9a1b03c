//! What a transport knows of memory: our regions and segments, peers' segments, tickets.

use springtide_core::id::{Incarnation, RegionId, RemoteId, SegmentId, TicketId};
use springtide_core::range::Extent;
use springtide_core::ticket::{Gate, Ticket};
use springtide_hal::Block;
use springtide_transport::{ControlError, Exposure};

use crate::table::Table;
use crate::wire::code;

/// First byte of a description.
const DESCRIPTION: u8 = 1;
/// Length of a description.
const DESCRIPTION_LEN: usize = 33;

/// Memory of ours.
#[derive(Debug)]
pub(crate) struct Region {
    pub(crate) block: Block,
    /// The segment that peers know it as.
    pub(crate) segment: Option<SegmentId>,
}

/// Memory of ours that peers reach.
#[derive(Debug)]
pub(crate) struct Segment {
    block: Block,
    gate: Gate,
}

impl Segment {
    /// The bytes `at .. at + len`, if they all lie inside.
    pub(crate) fn piece(&self, at: u64, len: u32) -> Option<(&Block, u64, u64)> {
        self.block.span(at, len.into()).ok()?;
        Some((&self.block, at, len.into()))
    }

    /// Where a store may go; else the code that says why it may not.
    pub(crate) fn admit(&self, ticket: Option<&Ticket>, at: u64, len: u32) -> Result<&Block, i32> {
        let (block, at, len) = self.piece(at, len).ok_or(code::NO_MEMORY)?;
        let store = Extent::new(at, len).ok_or(code::NO_MEMORY)?;
        let ticket = ticket.ok_or(code::NO_TICKET)?;
        self.gate.admit(ticket, store).map_err(code::denied)?;
        Ok(block)
    }
}

/// Segments that peers reach.
#[derive(Debug, Default)]
pub(crate) struct Segments(Table<SegmentId, Segment>);

impl Segments {
    pub(crate) fn find(&self, segment: SegmentId) -> Option<&Segment> {
        self.0.get(segment)
    }
}

/// Memory of a peer.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Remote {
    pub(crate) owner: Incarnation,
    pub(crate) segment: SegmentId,
    pub(crate) len: u64,
}

impl Remote {
    fn encode(self, out: &mut Vec<u8>) {
        out.push(DESCRIPTION);
        out.extend_from_slice(&self.owner.0.to_le_bytes());
        out.extend_from_slice(&self.segment.to_bits().to_le_bytes());
        out.extend_from_slice(&self.len.to_le_bytes());
    }

    /// The memory that `description` names.
    pub(crate) fn decode(description: &[u8]) -> Option<Self> {
        let description: &[u8; DESCRIPTION_LEN] = description.try_into().ok()?;
        let (version, rest) = description.split_first()?;
        let (owner, rest) = rest.split_first_chunk()?;
        let (segment, rest) = rest.split_first_chunk()?;
        let len = rest.first_chunk()?;
        (*version == DESCRIPTION).then_some(())?;
        Some(Self {
            owner: Incarnation(u128::from_le_bytes(*owner)),
            segment: SegmentId::from_bits(u64::from_le_bytes(*segment))?,
            len: u64::from_le_bytes(*len),
        })
    }
}

/// All of it.
#[derive(Debug, Default)]
pub(crate) struct Memory {
    regions: Table<RegionId, Region>,
    pub(crate) segments: Segments,
    pub(crate) remotes: Table<RemoteId, Remote>,
    pub(crate) tickets: Table<TicketId, Ticket>,
}

impl Memory {
    pub(crate) fn expose(
        &mut self,
        me: Incarnation,
        id: RegionId,
        block: &Block,
        exposure: Exposure,
    ) -> Result<(), ControlError> {
        if self.regions.is_taken(id) {
            return Err(ControlError::Unknown);
        }
        let block = block.clone();
        let segment = match exposure {
            Exposure::Local | Exposure::Source => None,
            Exposure::Segment { owner, segment, key } => {
                if owner != me {
                    return Err(ControlError::Unsuitable);
                }
                if self.segments.0.is_taken(segment) {
                    return Err(ControlError::Unknown);
                }
                let gate = Gate::new(owner, segment, key);
                self.segments.0.insert(segment, Segment { block: block.clone(), gate });
                Some(segment)
            }
        };
        self.regions.insert(id, Region { block, segment });
        Ok(())
    }

    /// Ends [`expose`](Self::expose): the region, if there was one.
    pub(crate) fn withdraw(&mut self, id: RegionId) -> Option<Region> {
        let region = self.regions.remove(id)?;
        if let Some(segment) = region.segment {
            self.segments.0.remove(segment);
        }
        Some(region)
    }

    pub(crate) fn describe(
        &self,
        owner: Incarnation,
        id: RegionId,
        out: &mut Vec<u8>,
    ) -> Result<(), ControlError> {
        let region = self.regions.get(id).ok_or(ControlError::Unknown)?;
        let segment = region.segment.ok_or(ControlError::Unsuitable)?;
        Remote { owner, segment, len: region.block.len() }.encode(out);
        Ok(())
    }

    /// Refuses stores into `extent` of `region` whose serial is below `below`: which segment it is.
    pub(crate) fn fence(
        &mut self,
        region: RegionId,
        extent: Extent,
        below: u64,
    ) -> Result<SegmentId, ControlError> {
        let region = self.regions.get(region).ok_or(ControlError::Unknown)?;
        let segment = region.segment.ok_or(ControlError::Unsuitable)?;
        self.segments.0.get_mut(segment).ok_or(ControlError::Unknown)?.gate.fence(extent, below);
        Ok(segment)
    }

    /// The bytes `at .. at + len` of a region of ours, if they all lie inside.
    pub(crate) fn local(&self, region: RegionId, at: u64, len: u32) -> Option<&Block> {
        let region = self.regions.get(region)?;
        region.block.span(at, len.into()).ok().map(|_| &region.block)
    }
}
