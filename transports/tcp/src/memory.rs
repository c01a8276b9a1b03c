//! What a transport knows of memory: our regions and segments, peers' segments, tickets.

use springtide_core::id::{Incarnation, PathId, RegionId, RemoteId, SegmentId, TicketId};
use springtide_core::range::Extent;
use springtide_core::ticket::{Gate, Ticket};
use springtide_hal::Block;
use springtide_transport::{ControlError, Exposure};

use crate::table::Table;
use crate::wire::{Permission, code};

/// First byte of a description.
const DESCRIPTION: u8 = 1;
/// Length of a description.
const DESCRIPTION_LEN: usize = 41;

/// Memory of ours.
#[derive(Debug)]
pub(crate) struct Region {
    block: Block,
    /// Which segment it is for peers, and who may store; `None` if they do not reach it.
    segment: Option<(SegmentId, Gate)>,
}

impl Region {
    /// The segment that peers know it as.
    pub(crate) fn segment(&self) -> Option<SegmentId> {
        self.segment.as_ref().map(|(segment, _)| *segment)
    }

    /// For a peer: the bytes `at .. at + len`, if it reaches them and they all lie inside.
    pub(crate) fn piece(&self, at: u64, len: u32) -> Option<(&Block, u64, u64)> {
        self.segment.as_ref()?;
        self.block.span(at, len.into()).ok()?;
        Some((&self.block, at, len.into()))
    }

    /// For a peer: where its store may go; else the code that says why it may not.
    pub(crate) fn admit(
        &self,
        owner: Incarnation,
        permission: Option<Permission>,
        at: u64,
        len: u32,
    ) -> Result<&Block, i32> {
        let (block, at, len) = self.piece(at, len).ok_or(code::NO_MEMORY)?;
        let store = Extent::new(at, len).ok_or(code::NO_MEMORY)?;
        let (segment, gate) = self.segment.as_ref().ok_or(code::NO_MEMORY)?;
        let Permission { extent, serial, term, tag } = permission.ok_or(code::NO_TICKET)?;
        let ticket = Ticket { owner, segment: *segment, extent, serial, term, tag };
        gate.admit(&ticket, store).map_err(code::denied)?;
        Ok(block)
    }
}

/// Memory of ours by the ids that peers learn from descriptions. A region's id is never used twice, so that a
/// description of memory that was withdrawn finds nothing, though the same segment may be exposed again.
#[derive(Debug, Default)]
pub(crate) struct Regions(Table<RegionId, Region>);

impl Regions {
    pub(crate) fn find(&self, region: RegionId) -> Option<&Region> {
        self.0.get(region)
    }

    fn has(&self, segment: SegmentId) -> bool {
        self.0.iter().any(|region| region.segment() == Some(segment))
    }
}

/// Memory of a peer.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Remote {
    pub(crate) owner: Incarnation,
    /// What its tickets name.
    pub(crate) segment: SegmentId,
    /// What its owner knows it as.
    pub(crate) region: RegionId,
    pub(crate) len: u64,
}

impl Remote {
    fn encode(self, out: &mut Vec<u8>) {
        out.push(DESCRIPTION);
        out.extend_from_slice(&self.owner.0.to_le_bytes());
        out.extend_from_slice(&self.segment.to_bits().to_le_bytes());
        out.extend_from_slice(&self.region.to_bits().to_le_bytes());
        out.extend_from_slice(&self.len.to_le_bytes());
    }

    /// The memory that `description` names.
    pub(crate) fn decode(description: &[u8]) -> Option<Self> {
        let description: &[u8; DESCRIPTION_LEN] = description.try_into().ok()?;
        let (version, rest) = description.split_first()?;
        let (owner, rest) = rest.split_first_chunk()?;
        let (segment, rest) = rest.split_first_chunk()?;
        let (region, rest) = rest.split_first_chunk()?;
        let len = rest.first_chunk()?;
        (*version == DESCRIPTION).then_some(())?;
        Some(Self {
            owner: Incarnation(u128::from_le_bytes(*owner)),
            segment: SegmentId::from_bits(u64::from_le_bytes(*segment))?,
            region: RegionId::from_bits(u64::from_le_bytes(*region))?,
            len: u64::from_le_bytes(*len),
        })
    }
}

/// All of it.
#[derive(Debug, Default)]
pub(crate) struct Memory {
    pub(crate) regions: Regions,
    /// With the path that each was imported on.
    remotes: Table<RemoteId, (PathId, Remote)>,
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
        if self.regions.0.is_taken(id) {
            return Err(ControlError::Unknown);
        }
        let segment = match exposure {
            Exposure::Local | Exposure::Source => None,
            Exposure::Segment { owner, .. } if owner != me => return Err(ControlError::Unsuitable),
            Exposure::Segment { segment, .. } if self.regions.has(segment) => {
                return Err(ControlError::Unknown);
            }
            Exposure::Segment { owner, segment, key } => Some((segment, Gate::new(owner, segment, key))),
        };
        self.regions.0.insert(id, Region { block: block.clone(), segment });
        Ok(())
    }

    /// Ends [`expose`](Self::expose).
    pub(crate) fn withdraw(&mut self, id: RegionId) {
        self.regions.0.remove(id);
    }

    pub(crate) fn describe(
        &self,
        owner: Incarnation,
        id: RegionId,
        out: &mut Vec<u8>,
    ) -> Result<(), ControlError> {
        let region = self.regions.find(id).ok_or(ControlError::Unknown)?;
        let segment = region.segment().ok_or(ControlError::Unsuitable)?;
        Remote { owner, segment, region: id, len: region.block.len() }.encode(out);
        Ok(())
    }

    /// Refuses stores into `extent` of the segment `region` whose serial is below `below`.
    pub(crate) fn fence(&mut self, region: RegionId, extent: Extent, below: u64) -> Result<(), ControlError> {
        let region = self.regions.0.get_mut(region).ok_or(ControlError::Unknown)?;
        let (_, gate) = region.segment.as_mut().ok_or(ControlError::Unsuitable)?;
        gate.fence(extent, below);
        Ok(())
    }

    /// Makes `remote` known, unless the slot means something else on a path for which `is_alive` holds.
    pub(crate) fn import(
        &mut self,
        path: PathId,
        id: RemoteId,
        remote: Remote,
        is_alive: impl Fn(PathId) -> bool,
    ) -> Result<(), ControlError> {
        let free = match self.remotes.get(id) {
            Some(&(older, known)) => known == remote || !is_alive(older),
            None => !self.remotes.is_taken(id),
        };
        if !free {
            return Err(ControlError::Unknown);
        }
        self.remotes.insert(id, (path, remote));
        Ok(())
    }

    /// Ends [`import`](Self::import).
    pub(crate) fn forget(&mut self, id: RemoteId) {
        self.remotes.remove(id);
    }

    /// The memory that a peer described.
    pub(crate) fn remote(&self, id: RemoteId) -> Option<&Remote> {
        self.remotes.get(id).map(|(_, remote)| remote)
    }

    /// The bytes `at .. at + len` of a region of ours, if they all lie inside.
    pub(crate) fn local(&self, region: RegionId, at: u64, len: u32) -> Option<&Block> {
        let region = self.regions.find(region)?;
        region.block.span(at, len.into()).ok().map(|_| &region.block)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use core::num::NonZeroU32;
    use proptest::prelude::*;
    use springtide_core::id::Id;

    #[test]
    fn a_description_comes_back_and_a_piece_of_it_does_not() {
        let (segment, region) = (SegmentId::new(4, NonZeroU32::MIN), RegionId::new(5, NonZeroU32::MAX));
        let remote = Remote { owner: Incarnation(u128::MAX - 1), segment, region, len: 1 << 40 };
        let mut bytes = Vec::new();
        remote.encode(&mut bytes);
        assert_eq!(Remote::decode(&bytes), Some(remote));
        assert!((0..bytes.len()).all(|cut| Remote::decode(&bytes[..cut]).is_none()));
        bytes[0] = 2;
        assert_eq!(Remote::decode(&bytes), None);
    }

    proptest! {
        #[test]
        fn any_bytes_are_a_description_or_none(
            mut bytes in proptest::collection::vec(any::<u8>(), DESCRIPTION_LEN - 1..=DESCRIPTION_LEN + 1),
        ) {
            bytes[0] = DESCRIPTION;
            if let Some(remote) = Remote::decode(&bytes) {
                let mut again = Vec::new();
                remote.encode(&mut again);
                prop_assert_eq!(again, bytes);
            }
        }
    }
}
