//! The table of segments.

use alloc::vec::Vec;
use core::num::NonZeroU32;

use super::{Allocator, FreeError, Grant, MountError, NoSpace, Segment, SegmentSpec, Visibility};
use crate::id::{Id, MemberId, SegmentId};
use crate::slab::Slab;

/// Bytes in use and bytes there are, of the segments that take allocations and of the hidden ones apart: a node that
/// is away does not move the watermark.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Usage {
    /// Bytes granted in open segments, with their padding.
    pub used: u64,
    /// Bytes of open segments.
    pub capacity: u64,
    /// Bytes granted in hidden segments.
    pub hidden_used: u64,
    /// Bytes of hidden segments.
    pub hidden_capacity: u64,
}

impl Usage {
    /// The two figures that `visibility` is counted in: used and capacity.
    const fn of(&mut self, visibility: Visibility) -> (&mut u64, &mut u64) {
        match visibility {
            Visibility::Open => (&mut self.used, &mut self.capacity),
            Visibility::Hidden => (&mut self.hidden_used, &mut self.hidden_capacity),
        }
    }
}

/// What is left of a segment that was unmounted.
///
/// It still holds the allocator's tables: dropping them can take milliseconds for millions of extents, so a driver
/// may do that elsewhere.
#[derive(Debug)]
pub struct Removed {
    /// Who lent it.
    pub owner: MemberId,
    /// Its length in bytes.
    pub len: u64,
    /// Bytes that were granted when it went.
    pub used: u64,
    /// The allocator, as it was.
    pub allocator: Allocator,
}

/// Who owns which bytes of which segment, over all segments of the pool.
///
/// One owner at a time and no locks, so there is no order of locks to keep (S0A-047, S0B-130). The figures of
/// [`usage`](Self::usage) change with the allocators, never beside them.
#[derive(Clone, Debug, Default)]
pub struct Space {
    segments: Slab<SegmentId, Segment>,
    /// The open segments, by slot.
    open: Vec<SegmentId>,
    usage: Usage,
    largest_segment: u64,
}

impl Space {
    /// A pool without segments, whose ids begin with generation `first`.
    pub fn starting(first: NonZeroU32) -> Self {
        Self { segments: Slab::starting(first), ..Self::default() }
    }

    /// Takes a segment in, open for allocations (S0A-046, S0A-049). O(segments).
    ///
    /// # Errors
    /// [`MountError::Invalid`] for a length that is zero, no multiple of the granule or the page, or too long, also
    /// if all segments together would pass 2⁶⁴ bytes; [`MountError::Exists`] if the owner used the name already.
    pub fn mount(&mut self, spec: &SegmentSpec<'_>) -> Result<SegmentId, MountError> {
        let same = |segment: &Segment| segment.owner == spec.owner && *segment.name == *spec.name;
        if let Some((id, _)) = self.segments.iter().find(|(_, segment)| same(segment)) {
            return Err(MountError::Exists(id));
        }
        let all = self.usage.capacity + self.usage.hidden_capacity;
        let allocator = Allocator::new(spec.allocator, spec.len).ok_or(MountError::Invalid)?;
        all.checked_add(spec.len).ok_or(MountError::Invalid)?;
        let (owner, len, visibility) = (spec.owner, spec.len, Visibility::Open);
        let segment = Segment { name: spec.name.into(), owner, len, visibility, allocator };
        self.largest_segment = self.largest_segment.max(segment.longest());
        self.usage.capacity += len;
        let id = self.segments.insert(segment);
        self.open_up(id);
        Ok(id)
    }

    /// Forgets a segment with all that it holds (S0B-039); `None` if there is no such segment. O(segments).
    pub fn unmount(&mut self, id: SegmentId) -> Option<Removed> {
        let Segment { owner, len, visibility, allocator, .. } = self.segments.remove(id)?;
        let (used, capacity) = self.usage.of(visibility);
        *used -= allocator.used();
        *capacity -= len;
        self.open.retain(|&open| open != id);
        self.largest_segment = self.segments.iter().map(|(_, segment)| segment.longest()).max().unwrap_or(0);
        Some(Removed { owner, len, used: allocator.used(), allocator })
    }

    /// Opens a segment for new allocations or closes it; what it holds stays (S0A-048). Nothing happens if it is so
    /// already or there is no such segment. O(segments).
    pub fn set_visible(&mut self, id: SegmentId, visibility: Visibility) {
        let Some(segment) = self.segments.get_mut(id) else { return };
        let (was, used, len) = (segment.visibility, segment.used(), segment.len);
        if was == visibility {
            return;
        }
        segment.visibility = visibility;
        let (from_used, from_capacity) = self.usage.of(was);
        *from_used -= used;
        *from_capacity -= len;
        let (to_used, to_capacity) = self.usage.of(visibility);
        *to_used += used;
        *to_capacity += len;
        match visibility {
            Visibility::Open => self.open_up(id),
            Visibility::Hidden => self.open.retain(|&open| open != id),
        }
    }

    /// Grants `len` bytes of one segment, rounded up to the granule. O(1) after warm-up, and no allocation.
    ///
    /// # Errors
    /// [`NoSpace::NoSegments`] if the segment is gone or hidden; [`NoSpace::NeverFits`] if `len` is longer than it
    /// holds when empty; [`NoSpace::NoHole`] if no hole was found.
    #[inline]
    pub fn allocate_in(&mut self, id: SegmentId, len: u64) -> Result<Grant, NoSpace> {
        if let Some(grant) = self.try_in(id, len) {
            return Ok(grant);
        }
        let open = self.segments.get_mut(id).filter(|segment| segment.visibility == Visibility::Open);
        let segment = open.ok_or(NoSpace::NoSegments)?;
        let longest = segment.longest();
        if len > longest {
            return Err(NoSpace::NeverFits { largest_segment: longest });
        }
        Err(NoSpace::NoHole { largest_hole: segment.allocator.find_largest_hole() })
    }

    /// As [`allocate_in`](Self::allocate_in), without the reason.
    #[inline]
    pub(crate) fn try_in(&mut self, id: SegmentId, len: u64) -> Option<Grant> {
        let segment = self.segments.get_mut(id)?;
        if segment.visibility == Visibility::Hidden {
            return None;
        }
        let before = segment.allocator.used();
        let (extent, handle) = segment.allocator.allocate(len)?;
        self.usage.used += segment.allocator.used() - before;
        Some(Grant { segment: id, extent, handle })
    }

    /// Takes a grant back: its bytes join the holes beside them. O(1).
    ///
    /// # Errors
    /// [`FreeError::Gone`] if its segment was unmounted, [`FreeError::Misuse`] if it is not live. Both change nothing.
    #[inline]
    pub fn free(&mut self, grant: Grant) -> Result<(), FreeError> {
        let segment = self.segments.get_mut(grant.segment).ok_or(FreeError::Gone)?;
        let before = segment.allocator.used();
        segment.allocator.free(grant.extent, grant.handle)?;
        let freed = before - segment.allocator.used();
        *self.usage.of(segment.visibility).0 -= freed;
        Ok(())
    }

    /// Reads what taking `grant` back will read, so that this overlaps with what is done before. The result has no
    /// meaning.
    #[inline]
    pub(crate) fn warm(&self, grant: &Grant) -> u64 {
        self.segments.get(grant.segment).map_or(0, |segment| segment.allocator.warm(grant.handle))
    }

    /// Why `len` bytes found no place in the open segments that are `allowed`. O(segments); see
    /// [`OffsetAllocator::largest_hole`](super::OffsetAllocator::largest_hole).
    pub(crate) fn why_not(&mut self, len: u64, allowed: impl Fn(SegmentId) -> bool) -> NoSpace {
        let mut reason = NoSpace::NoSegments;
        for &id in self.open.iter().filter(|&&id| allowed(id)) {
            if len > self.largest_segment {
                return NoSpace::NeverFits { largest_segment: self.largest_segment };
            }
            let Some(segment) = self.segments.get_mut(id) else { continue };
            let hole = segment.allocator.find_largest_hole();
            let before = if let NoSpace::NoHole { largest_hole } = reason { largest_hole } else { 0 };
            reason = NoSpace::NoHole { largest_hole: hole.max(before) };
        }
        reason
    }

    /// The longest value that any segment, open or hidden, holds when empty; zero without segments. Anything longer
    /// never fits.
    pub const fn largest_segment(&self) -> u64 {
        self.largest_segment
    }

    /// Bytes in use and bytes there are. O(1).
    pub const fn usage(&self) -> Usage {
        self.usage
    }

    /// A segment.
    pub fn segment(&self, id: SegmentId) -> Option<&Segment> {
        self.segments.get(id)
    }

    /// The segments that take allocations, by slot.
    pub fn open(&self) -> &[SegmentId] {
        &self.open
    }

    /// All segments, by slot.
    pub fn iter(&self) -> impl Iterator<Item = (SegmentId, &Segment)> {
        self.segments.iter()
    }

    /// The first segment called `name`, by slot, open or hidden; owners may share names. O(segments).
    pub fn find(&self, name: &str) -> Option<SegmentId> {
        self.iter().find(|(_, segment)| segment.name() == name).map(|(id, _)| id)
    }

    /// How many segments there are, open and hidden.
    pub const fn len(&self) -> usize {
        self.segments.len()
    }

    /// Whether there are none.
    pub const fn is_empty(&self) -> bool {
        self.segments.is_empty()
    }

    /// Enters `id` among the open segments: in the order of slots, so that the order follows from the state.
    fn open_up(&mut self, id: SegmentId) {
        let at = self.open.partition_point(|open| open.index() < id.index());
        self.open.insert(at, id);
    }
}
