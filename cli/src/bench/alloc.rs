//! `springtide bench alloc`: what the allocator of a segment costs.

use core::hint::black_box;

use springtide_core::range::{Extent, GRANULE};
use springtide_core::rng::Rng;
use springtide_core::space::{Handle, MAX_SEGMENT_LEN, OffsetAllocator};
use springtide_hal_host::clock;

use crate::args::Alloc;
use crate::exit::Failure;
use crate::output::Out;
use crate::reports::measure::{Measurement, Measurements};

/// How much larger than its extents the segment is, in per cent: one tenth of it stays free.
const ROOM: u64 = 112;

/// Measures and prints.
pub fn run(args: &Alloc) -> Result<(), Failure> {
    crate::keep_ahead();
    let measurements = measure(args)?;
    Out::stdout(args.json.format()).report(&measurements)
}

fn measure(args: &Alloc) -> Result<Measurements, Failure> {
    let sizes = Sizes::new(args)?;
    let mut churn = Churn::new(args.live, sizes, args.seed)?;
    let fill = churn.fill.clone();
    Ok(Measurements(vec![fill, churn.same_extent(args.operations)?, churn.random(args.operations)?]))
}

/// Sizes between two bounds, both included.
#[derive(Clone, Copy)]
struct Sizes {
    smallest: u64,
    largest: u64,
}

impl Sizes {
    fn new(args: &Alloc) -> Result<Self, Failure> {
        let (smallest, largest) = (args.smallest.0, args.largest.0);
        if smallest == 0 || largest < smallest {
            let why = format_args!(
                "sizes from {} to {}: an extent has one byte at least",
                args.smallest, args.largest
            );
            return Err(Failure::usage(why).advise("give --smallest and --largest in that order"));
        }
        Ok(Self { smallest, largest })
    }

    fn draw(self, rng: &mut Rng) -> u64 {
        self.smallest + rng.below(self.largest - self.smallest + 1)
    }

    /// How long a segment must be for `live` extents.
    fn segment(self, live: u64) -> Result<u64, Failure> {
        let mean = (self.smallest / 2 + self.largest / 2).checked_add(GRANULE);
        let filled = mean.and_then(|mean| mean.checked_mul(live)?.checked_mul(ROOM)).map(|len| len / 100);
        // And room for the extent that comes and goes while all others are live.
        let spare = self.largest.checked_add(GRANULE);
        let len = filled.zip(spare).and_then(|(filled, spare)| filled.checked_add(spare));
        len.filter(|&len| len <= MAX_SEGMENT_LEN && live > 0).ok_or_else(|| {
            Failure::usage(format_args!(
                "{live} extents of up to {} bytes do not fit into a segment",
                self.largest
            ))
            .advise("give a smaller --live or --largest, and one extent at least")
        })
    }
}

/// A segment with many live extents.
struct Churn {
    allocator: OffsetAllocator,
    live: Vec<(Extent, Handle)>,
    sizes: Sizes,
    rng: Rng,
    fill: Measurement,
}

impl Churn {
    fn new(count: u64, sizes: Sizes, seed: u64) -> Result<Self, Failure> {
        let mut allocator = OffsetAllocator::new(sizes.segment(count)?);
        let mut rng = Rng::new(seed);
        let mut live = Vec::with_capacity(usize::try_from(count).map_err(Failure::new)?);
        let start = clock::now();
        for _ in 0..count {
            live.push(allocator.allocate(sizes.draw(&mut rng)).ok_or_else(full)?);
        }
        let fill = Measurement::new("fill an empty segment", None, count, clock::now().since(start));
        rng.shuffle(&mut live);
        Ok(Self { allocator, live, sizes, rng, fill })
    }

    /// Allocates and frees one extent, over and over.
    fn same_extent(&mut self, operations: u64) -> Result<Measurement, Failure> {
        let len = self.sizes.draw(&mut self.rng);
        let start = clock::now();
        for _ in 0..operations {
            let (extent, handle) = black_box(self.allocator.allocate(black_box(len)).ok_or_else(full)?);
            self.allocator.free(extent, handle).map_err(Failure::new)?;
        }
        Ok(Measurement::new("allocate and free the same extent", None, operations, clock::now().since(start)))
    }

    /// Frees a random live extent and allocates a random size. One operation is both. Where few extents leave no hole
    /// for a size, the size that was freed is allocated again.
    fn random(&mut self, operations: u64) -> Result<Measurement, Failure> {
        let start = clock::now();
        for _ in 0..operations {
            let at = self.rng.below(self.live.len() as u64) as usize;
            let (extent, handle) = self.live[at];
            self.allocator.free(extent, handle).map_err(Failure::new)?;
            let size = self.sizes.draw(&mut self.rng);
            let next = self.allocator.allocate(size).or_else(|| self.allocator.allocate(extent.len()));
            self.live[at] = next.ok_or_else(full)?;
        }
        let name = "free a random extent, allocate a random size";
        Ok(Measurement::new(name, None, operations, clock::now().since(start)))
    }
}

fn full() -> Failure {
    Failure::new("the allocator found no hole for an extent that it has room for")
        .advise("report the command that you ran")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::args::Json;
    use crate::size::Size;

    fn args(live: u64, smallest: u64, largest: u64) -> Alloc {
        let (smallest, largest) = (Size(smallest), Size(largest));
        Alloc { live, operations: 2_000, smallest, largest, seed: 7, json: Json { json: true } }
    }

    #[test]
    fn measures_three_things_and_loses_nothing() {
        for args in [args(1_000, 1, 65_536), args(1_000, 4_096, 4_096), args(1, 1, 1)] {
            let Measurements(rows) = measure(&args).unwrap();
            assert_eq!(rows.iter().map(|row| row.operations).collect::<Vec<_>>(), [args.live, 2_000, 2_000]);
        }
        let mut churn = Churn::new(100, Sizes { smallest: 64, largest: 4_096 }, 1).unwrap();
        churn.random(1_000).unwrap();
        let live: u64 = churn.live.iter().map(|(extent, _)| extent.len()).sum();
        assert_eq!(churn.allocator.used(), live);
    }

    #[test]
    fn sizes_that_make_no_sense_are_refused() {
        for bad in [
            args(10, 0, 10),
            args(10, 11, 10),
            args(0, 1, 1),
            args(u64::MAX, 1, 1),
            args(1 << 40, 1, u64::MAX),
        ] {
            assert_eq!(measure(&bad).unwrap_err().exit(), crate::exit::Exit::Usage);
        }
    }
}
