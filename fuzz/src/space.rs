//! Allocators and the table of segments against interval maps.

use std::collections::BTreeMap;

use core::num::NonZeroU32;

use springtide_core::id::{Id, MemberId, SegmentId};
use springtide_core::range::{Extent, GRANULE};
use springtide_core::space::{
    AllocatorKind, FreeError, Grant, Handle, LOOKS, MountError, NoSpace, SegmentSpec, Space, Usage,
    Visibility,
};

use crate::Input;

const STEPS: usize = 600;
const SEGMENTS: usize = 5;
/// Granules a segment, at most: small, so that segments fill up and break into pieces.
const GRANULES: usize = 4_096;

/// A segment, as it should be.
struct Model {
    len: u64,
    /// Bytes a page; none with the offset allocator.
    page: Option<u64>,
    hidden: bool,
    /// Offset and length of what is granted.
    live: BTreeMap<u64, u64>,
}

/// Mounts, hides and unmounts segments of both allocators, and grants and frees extents in them, with lengths around
/// all seams. No two grants overlap, none leaves its segment, what was given back is free again, a refusal is true, and
/// the figures are the sums.
pub fn space_ops(data: &[u8]) {
    let mut input = Input::new(data);
    let mut world = World::default();
    for n in 0..STEPS {
        if input.is_empty() {
            break;
        }
        world.step(n, &mut input);
        world.check();
    }
    world.wind_up();
}

impl Model {
    /// The longest value that the segment holds when it is empty.
    fn longest(&self) -> u64 {
        self.page.unwrap_or(self.len)
    }
}

#[derive(Default)]
struct World {
    space: Space,
    models: BTreeMap<u64, Model>,
    live: Vec<Grant>,
    /// Given back, or gone with their segments.
    dead: Vec<Grant>,
}

fn owner() -> MemberId {
    MemberId::new(1, NonZeroU32::MIN)
}

fn bits(id: SegmentId) -> u64 {
    id.to_bits()
}

impl World {
    fn step(&mut self, n: usize, input: &mut Input<'_>) {
        match input.below(16) {
            0 | 1 => self.mount(n, input),
            2 => self.unmount(input),
            3 => self.set_visible(input),
            4..10 => self.allocate(input),
            10 => self.misuse(input),
            _ => self.free(input),
        }
    }

    fn any(&self, input: &mut Input<'_>) -> Option<SegmentId> {
        let ids: Vec<_> = self.space.iter().map(|(id, _)| id).collect();
        (!ids.is_empty()).then(|| input.choose(&ids))
    }

    fn mount(&mut self, n: usize, input: &mut Input<'_>) {
        if self.models.len() >= SEGMENTS {
            return;
        }
        let granules = 1 + input.below(GRANULES) as u64;
        let (page, len, fits) = match input.below(3) {
            0 => (None, granules * GRANULE, true),
            1 => {
                let page = (1 + input.below(128) as u64) * GRANULE;
                (Some(page), (1 + granules % 16) * page, true)
            }
            _ => {
                // Most of these do not fit together.
                let (len, page) = (granules * GRANULE + u64::from(input.byte()), u64::from(input.short()));
                (Some(page), len, page > 0 && page.is_multiple_of(GRANULE) && len.is_multiple_of(page))
            }
        };
        let name = format!("{n}");
        let allocator = page.map_or(AllocatorKind::Offset, |page| AllocatorKind::Uniform { page });
        let spec = SegmentSpec { name: &name, owner: owner(), len, allocator };
        let mounted = self.space.mount(&spec);
        if !fits {
            assert_eq!(mounted, Err(MountError::Invalid));
            return;
        }
        let id = mounted.expect("page and length fit together");
        assert_eq!(self.space.mount(&spec), Err(MountError::Exists(id)));
        let model = Model { len, page, hidden: false, live: BTreeMap::new() };
        assert!(self.models.insert(bits(id), model).is_none(), "{id} was given out before");
    }

    fn unmount(&mut self, input: &mut Input<'_>) {
        let Some(id) = self.any(input) else { return };
        let removed = self.space.unmount(id).expect("it is there");
        let model = self.models.remove(&bits(id)).expect("every segment has a model");
        assert_eq!((removed.owner, removed.len), (owner(), model.len));
        assert!(removed.used >= model.live.values().sum());
        let (gone, live) = self.live.iter().partition(|grant| grant.segment == id);
        self.live = live;
        self.dead = gone;
        assert!(self.space.unmount(id).is_none());
    }

    fn set_visible(&mut self, input: &mut Input<'_>) {
        let Some(id) = self.any(input) else { return };
        let hidden = input.flag();
        self.space.set_visible(id, if hidden { Visibility::Hidden } else { Visibility::Open });
        if let Some(model) = self.models.get_mut(&bits(id)) {
            model.hidden = hidden;
        }
    }

    fn allocate(&mut self, input: &mut Input<'_>) {
        let Some(id) = self.any(input) else { return };
        let model = &self.models[&bits(id)];
        let len = length(input, model.longest());
        let segment = self.space.segment(id).expect("it is there");
        let hole = segment.largest_hole();
        match self.space.allocate_in(id, len) {
            Ok(grant) => {
                assert!(!model.hidden && len <= hole, "{len} was granted where {hole} were free");
                self.granted(grant, id, len);
            }
            Err(NoSpace::NoSegments) => assert!(model.hidden),
            Err(NoSpace::NeverFits { largest_segment }) => {
                assert_eq!(largest_segment, model.longest());
                assert!(len > model.longest());
            }
            Err(NoSpace::NoHole { largest_hole }) => {
                assert!(largest_hole <= hole && hole - largest_hole <= hole / 32);
                // A search is bounded in the offset allocator, and a page serves one size class in the other.
                let many = model.live.len() >= LOOKS;
                assert!(
                    hole < len.max(1) || many || model.page.is_some(),
                    "{hole} are free, {len} were refused"
                );
            }
        }
    }

    fn granted(&mut self, grant: Grant, id: SegmentId, len: u64) {
        let model = self.models.get_mut(&bits(id)).expect("every segment has a model");
        let extent = grant.extent;
        assert_eq!((grant.segment, extent.len()), (id, len.max(1).next_multiple_of(GRANULE)));
        assert!(extent.offset().is_multiple_of(GRANULE) && extent.end() <= model.len);
        assert_eq!(
            extent.offset() / model.longest(),
            (extent.end() - 1) / model.longest(),
            "inside one page"
        );
        let before = model.live.range(..extent.end()).next_back();
        assert!(before.is_none_or(|(start, len)| start + len <= extent.offset()), "{extent:?} is taken");
        model.live.insert(extent.offset(), extent.len());
        self.live.push(grant);
    }

    fn free(&mut self, input: &mut Input<'_>) {
        if self.live.is_empty() {
            return;
        }
        let grant = self.live.swap_remove(input.below(self.live.len()));
        assert_eq!(self.space.free(grant), Ok(()));
        let model = self.models.get_mut(&bits(grant.segment)).expect("a live grant's segment is there");
        assert_eq!(model.live.remove(&grant.extent.offset()), Some(grant.extent.len()));
        assert_eq!(self.space.free(grant), Err(FreeError::Misuse), "it was given back twice");
        self.dead.push(grant);
    }

    /// Grants that nobody has: those of gone segments, and live ones with something changed.
    fn misuse(&mut self, input: &mut Input<'_>) {
        for grant in self.dead.drain(..).filter(|grant| !self.models.contains_key(&bits(grant.segment))) {
            assert_eq!(self.space.free(grant), Err(FreeError::Gone));
        }
        let Some(id) = self.any(input) else { return };
        let (offset, len) = (u64::from(input.short()) * GRANULE, u64::from(input.byte()) * GRANULE);
        let extent = Extent::new(offset, len).expect("small numbers");
        let handle = Handle::from_bits(u32::from(input.short()));
        let grant = Grant { segment: id, extent, handle };
        if !self.live.contains(&grant) {
            assert_eq!(self.space.free(grant), Err(FreeError::Misuse), "{grant:?} was never granted");
        }
    }

    fn check(&self) {
        let mut usage = Usage::default();
        for (id, segment) in self.space.iter() {
            let model = &self.models[&bits(id)];
            let live: u64 = model.live.values().sum();
            assert_eq!((segment.len(), segment.longest()), (model.len, model.longest()));
            assert_eq!(segment.used(), live + segment.waste().padding);
            assert!(segment.used() + segment.waste().partial <= segment.len());
            assert!(segment.largest_hole() <= model.longest().min(segment.free()));
            let hidden = segment.visibility() == Visibility::Hidden;
            assert_eq!(hidden, model.hidden);
            let (used, capacity) = match hidden {
                true => (&mut usage.hidden_used, &mut usage.hidden_capacity),
                false => (&mut usage.used, &mut usage.capacity),
            };
            *used += segment.used();
            *capacity += segment.len();
        }
        assert_eq!((self.space.usage(), self.space.len()), (usage, self.models.len()));
        let longest = self.models.values().map(Model::longest).max().unwrap_or(0);
        assert_eq!(self.space.largest_segment(), longest);
    }

    /// When all is given back every segment is one hole.
    fn wind_up(mut self) {
        for grant in core::mem::take(&mut self.live) {
            assert_eq!(self.space.free(grant), Ok(()));
        }
        for (_, segment) in self.space.iter() {
            assert_eq!((segment.used(), segment.largest_hole()), (0, segment.longest()));
        }
        assert_eq!((self.space.usage().used, self.space.usage().hidden_used), (0, 0));
    }
}

/// Lengths around the seams: zero, a granule, a page, and beside them; and absurd ones.
fn length(input: &mut Input<'_>, page: u64) -> u64 {
    let small = u64::from(input.short());
    match small % 8 {
        0 => small % 130,
        1 => page,
        2 => page + 1,
        3 => page.saturating_sub(small % 200),
        4 => u64::MAX - small % 65,
        5 => small % 5_000,
        _ => small % (page / 4 + 2),
    }
}
