//! What an allocation costs: `cargo bench -p springtide-benches --bench alloc [-- FILTER]`.
//!
//! - `same extent`: allocate and free one extent, over and over, in a segment with a thousand others.
//! - `churn`: free a random live extent and allocate a random length of 64 B to 64 KiB, in a segment that is 90 % full
//!   with so many live extents. One measured step is one free and one allocation. Which extent is next is drawn one
//!   step ahead: whoever frees an extent has its record at hand, and the miss that finds it is not the allocator's.

use core::hint::black_box;

use criterion::{Bencher, Criterion, Throughput, criterion_group, criterion_main};
use springtide_benches::{random_read, thread_time};
use springtide_core::range::Extent;
use springtide_core::rng::Rng;
use springtide_core::space::{Handle, OffsetAllocator, UniformAllocator};

const MAX_LEN: u64 = 64 << 10;

/// A segment with many live extents.
struct Churn {
    allocator: OffsetAllocator,
    live: Vec<(Extent, Handle)>,
    rng: Rng,
    /// Where in `live` the next victim stands, and what stands there.
    next: (usize, (Extent, Handle)),
}

impl Churn {
    /// `count` live extents of random lengths in 90 % of the segment, mixed by one round of churn.
    fn new(count: usize) -> Self {
        let capacity = count as u64 * (MAX_LEN / 2) / 9 * 10;
        let (mut allocator, mut rng) = (OffsetAllocator::new(capacity), Rng::new(1));
        let mut live: Vec<_> = (0..count).filter_map(|_| allocator.allocate(random_len(&mut rng))).collect();
        rng.shuffle(&mut live);
        let next = (0, live[0]);
        let mut churn = Self { allocator, live, rng, next };
        for _ in 0..2 * count {
            churn.step();
        }
        churn
    }

    #[inline]
    fn step(&mut self) {
        let (at, (extent, handle)) = self.next;
        let next = self.rng.below(self.live.len() as u64) as usize;
        self.next = (next, self.live[next]);
        self.allocator.free(extent, handle).expect("the extent is live");
        let len = random_len(&mut self.rng);
        self.live[at] = self.allocator.allocate(len).expect("one tenth is free");
        if next == at {
            self.next.1 = self.live[at];
        }
    }
}

fn random_len(rng: &mut Rng) -> u64 {
    64 + rng.below(MAX_LEN - 63)
}

/// Times `step` in processor time of the thread.
fn timed(b: &mut Bencher<'_>, mut step: impl FnMut()) {
    b.iter_custom(|count| {
        let start = thread_time();
        (0..count).for_each(|_| step());
        thread_time() - start
    });
}

fn same_extent(c: &mut Criterion) {
    let mut group = c.benchmark_group("same extent");
    let mut offset = OffsetAllocator::new(1 << 30);
    let _others: Vec<_> = (0..1_000).map(|_| offset.allocate(4_096)).collect();
    group.bench_function("offset", |b| {
        timed(b, || {
            let (extent, handle) = offset.allocate(black_box(51_168)).expect("there is room");
            offset.free(extent, handle).expect("the extent is live");
        });
    });
    let mut uniform = UniformAllocator::new(1 << 30, 1 << 20).expect("pages divide the segment");
    let _others: Vec<_> = (0..1_000).map(|_| uniform.allocate(4_096)).collect();
    group.bench_function("uniform", |b| {
        timed(b, || {
            let (extent, handle) = uniform.allocate(black_box(4_096)).expect("there is room");
            uniform.free(extent, handle).expect("the extent is live");
        });
    });
    group.finish();
}

fn churn(c: &mut Criterion) {
    let mut group = c.benchmark_group("churn");
    group.throughput(Throughput::Elements(1));
    for count in [10_000, 1_000_000, 10_000_000] {
        let mut state = None;
        group.bench_function(format!("{count} live"), |b| {
            let churn = state.get_or_insert_with(|| Churn::new(count));
            timed(b, || churn.step());
        });
        if let Some(churn) = state {
            let (live, holes) = (churn.live.len(), churn.allocator.holes());
            let full = churn.allocator.used() * 100 / churn.allocator.capacity();
            println!("{live} live, {holes} holes, {full} % full");
            let read = random_read::<8>(live + holes as usize);
            println!("one dependent random read in a table of so many entries: {read:.0} ns");
        }
    }
    group.finish();
}

criterion_group!(benches, same_extent, churn);
criterion_main!(benches);
