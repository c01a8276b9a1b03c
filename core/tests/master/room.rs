//! Eviction, leases and pins.

use core::time::Duration;

use springtide_core::evict::Kind;
use springtide_core::master::{
    Config, Existence, Force, MILLION, Pin, Probe, PutError, PutOptions, Quiet, SoftPinned,
};

use crate::pool::{MIB, Pool};

fn pin(pin: Pin) -> PutOptions<'static> {
    PutOptions { pin, ..PutOptions::default() }
}

fn present(pool: &mut Pool, names: impl Iterator<Item = String>) -> usize {
    names.filter(|name| pool.exists(name) == Existence::Present).count()
}

/// Values of which 15 fill a pool of 16 MiB to 15/16.
const NEARLY_MIB: u64 = MIB - 256;

/// Case 13: probes keep nothing, unless they say so.
#[test]
fn polling_does_not_stop_eviction() {
    for probe in [Probe::Plain, Probe::RenewLease] {
        let config = Config { high_watermark: MILLION, policy: Kind::Lru, ..Config::default() };
        let mut pool = Pool::with(config, 16 * MIB);
        for n in 0..15 {
            pool.put(&format!("k{n}"), NEARLY_MIB).unwrap();
        }
        let mut failed = 0;
        for second in 0..60 {
            for n in 0..15 {
                pool.probe(&format!("k{n}"), probe);
            }
            if second >= 20 {
                failed += usize::from(pool.put(&format!("new{second}"), NEARLY_MIB).is_err());
            }
            pool.pass(1);
        }
        let totals = pool.master.stats().totals;
        match probe {
            Probe::Plain => {
                assert_eq!((failed, totals.blocked_by_leases), (0, 0));
                assert_eq!(present(&mut pool, (0..15).map(|n| format!("k{n}"))), 0, "the oldest went first");
            }
            Probe::RenewLease => {
                // One put finds the sixteenth MiB, and goes for the next one in turn.
                assert_eq!(totals.blocked_by_leases, totals.no_room);
                assert!(totals.evicted > 0);
                assert_eq!(present(&mut pool, (0..15).map(|n| format!("k{n}"))), 15);
            }
        }
    }
}

/// Case 13, the end of it: when all is leased, a put says so.
#[test]
fn leases_on_everything_are_named() {
    let mut pool = Pool::with(Config { high_watermark: MILLION, ..Config::default() }, 4 * MIB);
    for n in 0..4 {
        pool.put(&format!("k{n}"), NEARLY_MIB).unwrap();
        pool.get(&format!("k{n}")).unwrap();
    }
    let refused = pool.put("more", NEARLY_MIB).unwrap_err();
    assert!(matches!(refused, PutError::NoHole { largest_hole } if largest_hole < NEARLY_MIB), "{refused}");
    assert_eq!(refused.code().number(), -200);
    assert!(pool.master.stats().totals.blocked_by_leases > 0);
    pool.pass(11);
    assert!(pool.put("more", NEARLY_MIB).is_ok());
}

/// A value above the watermark is not given up for its own sake, only for another.
#[test]
fn the_last_object_goes_only_for_another() {
    let mut pool = Pool::new(16 * MIB);
    for n in 0..3 {
        pool.put(&format!("k{n}"), 31 * MIB / 2).unwrap();
        pool.pass(2);
        assert_eq!(pool.exists(&format!("k{n}")), Existence::Present);
        assert_eq!(pool.master.stats().totals.evicted, n);
    }
}

/// Case 16: a round takes its share of what can be evicted, and no more.
#[test]
fn a_round_takes_a_small_share() {
    for (leased, least, most) in [(0, 3, 7), (49, 1, 1), (50, 0, 0)] {
        let mut pool = Pool::new(100 * 64 * 1_024);
        let pinned = PutOptions { pin: Pin::Hard, ..PutOptions::default() };
        for n in 0..44 {
            pool.put_with(&format!("pinned{n}"), 64 * 1_024, &pinned).unwrap();
        }
        for n in 0..46 {
            pool.put(&format!("k{n}"), 64 * 1_024).unwrap();
        }
        assert_eq!(pool.master.stats().totals.evicted, 0, "at the watermark, not above");
        for n in 0..leased.min(46) {
            pool.get(&format!("k{n}")).unwrap();
        }
        for n in 46..50 {
            // Above the watermark with the first of these, leased at once where they should be.
            let started = pool.start(2, &format!("k{n}"), 64 * 1_024).unwrap();
            pool.end(2, started.object).unwrap();
            if n < leased {
                pool.get(&format!("k{n}")).unwrap();
            }
        }
        pool.run();
        let evicted = pool.master.stats().totals.evicted;
        assert!((least..=most).contains(&evicted), "{leased} leased: {evicted} evicted");
        assert_eq!(present(&mut pool, (0..44).map(|n| format!("pinned{n}"))), 44);
    }
}

#[test]
fn the_watermark_keeps_room_free() {
    let mut pool = Pool::new(64 * MIB);
    for n in 0..5_000 {
        pool.put(&format!("k{n}"), 64 * 1_024).unwrap();
        assert!(pool.used() <= 64 * MIB * 9 / 10 + 64 * 1_024);
    }
    let stats = pool.master.stats();
    assert_eq!(stats.totals.no_room, 0);
    assert_eq!(stats.totals.evicted + stats.objects, 5_000);
    assert_eq!(stats.totals.evicted_bytes, stats.totals.evicted * 64 * 1_024);
    assert!(stats.used >= 64 * MIB * 84 / 100, "no more than needed is evicted");
}

/// Case 7: a value that never fits evicts nothing; one that finds no hole makes one.
#[test]
fn what_never_fits_is_refused_at_once() {
    let mut pool = Pool::with(Config { high_watermark: MILLION, ..Config::default() }, 16 * MIB);
    for n in 0..4 {
        pool.put(&format!("k{n}"), 4 * MIB - 4_096).unwrap();
    }
    let never = pool.put("huge", 17 * MIB).unwrap_err();
    assert_eq!(never, PutError::NeverFits { largest_segment: 16 * MIB });
    assert!(never.to_string().contains("16777216"), "{never}");
    assert!(matches!(pool.put("endless", u64::MAX), Err(PutError::NeverFits { .. })));
    assert_eq!(pool.master.stats().totals.evicted, 0);
    pool.remove("k0", Force::No);
    pool.remove("k2", Force::No);
    assert!(pool.put("k5", 6 * MIB).is_ok(), "a neighbour went");
}

#[test]
fn hard_pins_stay_and_soft_pins_go_last() {
    let both = [SoftPinned::LastResort, SoftPinned::Never];
    for (soft_pinned, policy) in both.into_iter().flat_map(|soft| Kind::ALL.map(|kind| (soft, kind))) {
        let mut pool = Pool::with(Config { soft_pinned, policy, ..Config::default() }, 16 * MIB);
        let each = 100_000;
        for n in 0..20 {
            pool.put_with(&format!("hard{n}"), each, &pin(Pin::Hard)).unwrap();
            pool.put_with(&format!("soft{n}"), each, &pin(Pin::Soft(None))).unwrap();
        }
        for n in 0..1_000 {
            pool.put(&format!("k{n}"), each).unwrap();
        }
        let count = |pool: &mut Pool, kind: &str| present(pool, (0..20).map(|n| format!("{kind}{n}")));
        assert_eq!((count(&mut pool, "hard"), count(&mut pool, "soft")), (20, 20));
        // Now nothing else is eligible.
        for n in 0..200 {
            let _ = pool.put_with(&format!("more{n}"), each, &pin(Pin::Hard));
        }
        assert_eq!(count(&mut pool, "hard"), 20);
        let left = if soft_pinned == SoftPinned::Never { 20 } else { 0 };
        assert_eq!(count(&mut pool, "soft"), left, "{policy}");
    }
}

#[test]
fn a_soft_pin_ends() {
    let mut pool = Pool::new(16 * MIB);
    pool.put_with("soft", 100_000, &pin(Pin::Soft(Some(Duration::from_secs(60))))).unwrap();
    let caller = pool.caller(2);
    let stat = pool.master.stat(pool.now, caller, crate::pool::key("soft")).unwrap();
    assert_eq!(stat.pinned_until, pool.now + Duration::from_secs(60));
    pool.pass(30);
    pool.get("soft").unwrap();
    pool.pass(40);
    let fill = |pool: &mut Pool| {
        for n in 0..1_000 {
            pool.put(&format!("{:?} {n}", pool.now), 100_000).unwrap();
        }
    };
    fill(&mut pool);
    assert_eq!(pool.exists("soft"), Existence::Present, "the read renewed it");
    pool.pass(21);
    fill(&mut pool);
    assert_eq!(pool.exists("soft"), Existence::Absent);
}

#[test]
fn groups_go_together() {
    let mut pool = Pool::with(Config { policy: Kind::Lru, ..Config::default() }, 16 * MIB);
    for n in 0..10 {
        let group = if n < 5 { "a" } else { "b" };
        let options = PutOptions { group: Some(group), ..PutOptions::default() };
        pool.put_with(&format!("k{n}"), MIB, &options).unwrap();
    }
    for n in 0..5 {
        pool.put(&format!("fill{n}"), MIB).unwrap();
    }
    let left = |pool: &mut Pool, range: core::ops::Range<u32>| present(pool, range.map(|n| format!("k{n}")));
    assert_eq!((left(&mut pool, 0..5), left(&mut pool, 5..10)), (0, 5));
    let bad = PutOptions { group: Some(""), ..PutOptions::default() };
    assert_eq!(pool.put_with("k", 1, &bad), Err(PutError::Group));
}

#[test]
fn unfinished_puts_are_no_victims() {
    let mut pool = Pool::with(Config { high_watermark: MILLION, ..Config::default() }, 4 * MIB);
    let open: Vec<_> = (0..4).map(|n| pool.start(2, &format!("k{n}"), NEARLY_MIB).unwrap()).collect();
    assert!(matches!(pool.put("more", NEARLY_MIB), Err(PutError::NoHole { .. })));
    assert_eq!(pool.abort(2, open[0].object, Quiet::Yes), Ok(()));
    assert!(pool.put("more", NEARLY_MIB).is_ok());
}

#[test]
fn no_segment_is_its_own_answer() {
    let mut pool = Pool::new(0);
    assert_eq!(pool.put("k", 1), Err(PutError::NoSegments));
}
