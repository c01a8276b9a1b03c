//! Public failures of systems like this one, with their own numbers (`tests/CASES.md`).

use core::time::Duration;

use springtide_core::evict::Kind;
use springtide_core::id::{Incarnation, SegmentId};
use springtide_core::master::{
    Config, EndError, Existence, Force, GetError, MILLION, Member, Pin, Probe, PutError, PutOptions, Quiet,
    Written,
};
use springtide_core::members::ClientStatus;
use springtide_core::rng::Rng;
use springtide_core::time::Instant;

use crate::pool::{MIB, Pool, SUM, key, member};

const SECOND: Duration = Duration::from_secs(1);
/// The first of many clients.
const CROWD: u128 = 100;

/// `0 ≤ used ≤ capacity`, and what is in no object's hand is part of what is used.
fn figures_hold(pool: &Pool) {
    let stats = pool.master.stats();
    assert!(stats.used <= stats.capacity, "{stats:?}");
    assert!(stats.reserved + stats.draining <= stats.used, "{stats:?}");
}

/// Case 4 d: 32 writers of the same 100 keys, in any order of starts, ends and aborts.
#[test]
fn of_thirty_two_writers_one_wins_each_key() {
    for seed in 0..8 {
        let mut pool = Pool::new(64 * MIB);
        let mut rng = Rng::new(seed);
        for n in 0..32 {
            pool.master.register(pool.now, Incarnation(CROWD + n), &member("writer")).unwrap();
        }
        let mut starts: Vec<(u128, u32)> = (0..32).flat_map(|w| (0..100).map(move |k| (w, k))).collect();
        rng.shuffle(&mut starts);
        let mut open = Vec::new();
        let mut won = [0; 100];
        for (writer, k) in starts {
            match pool.start(CROWD + writer, &format!("k{k}"), 10_000) {
                Ok(started) => open.push((writer, k, started.object)),
                Err(refused) => assert_eq!(refused.code().number(), -705, "{refused}"),
            }
            assert!(won[k as usize] == 1 || pool.exists(&format!("k{k}")) == Existence::Writing);
            while open.len() > rng.below(100) as usize {
                let (writer, k, object) = open.swap_remove(rng.below(open.len() as u64) as usize);
                // The end of somebody else changes nothing.
                assert_eq!(pool.end(CROWD + (writer + 1) % 32, object), Err(EndError::Owner));
                if rng.below(4) == 0 {
                    assert_eq!(pool.abort(CROWD + writer, object, Quiet::Yes), Ok(()));
                } else {
                    assert_eq!(pool.end(CROWD + writer, object), Ok(()));
                    won[k as usize] += 1;
                }
            }
            figures_hold(&pool);
        }
        for (writer, k, object) in open {
            assert_eq!(pool.end(CROWD + writer, object), Ok(()));
            won[k as usize] += 1;
        }
        assert!(won.iter().all(|&times| times <= 1), "{won:?}");
        let there = won.iter().filter(|&&times| times == 1).count() as u64;
        let stats = pool.master.stats();
        assert_eq!((stats.objects, stats.writing, stats.used), (there, 0, there * 10_048));
    }
}

/// Case 4 e: another length is another value all the same.
#[test]
fn a_key_that_is_there_keeps_its_value_whatever_comes() {
    let mut pool = Pool::new(16 * MIB);
    pool.put("k", 1_000).unwrap();
    let used = pool.used();
    for len in [0, 999, 1_000, 1_001, 16 * MIB - 64] {
        assert_eq!(pool.start(3, "k", len), Err(PutError::Exists));
    }
    assert_eq!(
        pool.start(3, "k", 17 * MIB).unwrap_err().code().number(),
        -705,
        "before its length is looked at"
    );
    assert_eq!((pool.get("k"), pool.used(), pool.master.stats().totals.evicted), (Ok(1_000), used, 0));
}

/// Case 7 c, through the master: values come and go for 200 steps, and bytes that readers hold drain meanwhile.
#[test]
fn a_mix_that_comes_and_goes_is_never_refused() {
    for read in [false, true] {
        let config = Config { high_watermark: MILLION, ..Config::default() };
        let mut pool = Pool::with(config, 0);
        for n in 0..8 {
            pool.mount(1, &format!("memory {n}"), 16 * MIB);
        }
        let mut rng = Rng::new(7);
        let mut live: Vec<(u64, String)> = Vec::new();
        for step in 0..200 {
            let expired: Vec<_> = live.extract_if(.., |(end, _)| *end <= step).collect();
            for (_, name) in expired {
                if read {
                    assert!(pool.get(&name).is_ok());
                }
                assert_eq!(pool.remove(&name, Force::Yes), 0);
            }
            let lens = (0..39).map(|at| if at < 36 { 256 + rng.below(9_985) } else { 3 * MIB / 2 });
            for (at, len) in lens.collect::<Vec<_>>().into_iter().enumerate() {
                let name = format!("{step}-{at}");
                let used = pool.used() * 100 / pool.master.stats().capacity;
                let put = pool.put(&name, len);
                assert!(put.is_ok() || used >= 60, "step {step}: {put:?} at {used} %");
                if put.is_ok() {
                    live.push((step + 1 + rng.below(3), name));
                }
            }
            figures_hold(&pool);
            pool.pass(1);
        }
        let totals = pool.master.stats().totals;
        assert_eq!((totals.evicted, totals.no_room), (0, 0));
    }
}

/// Case 8, through the master, sums and all: 50 times full, emptied in any order, and one hole again.
#[test]
fn a_pool_that_was_emptied_takes_one_large_value() {
    let mut pool = Pool::new(64 * MIB);
    let mut rng = Rng::new(8);
    // What is pinned is refused room instead of making it.
    let pinned = PutOptions { pin: Pin::Hard, ..PutOptions::default() };
    for round in 0..50 {
        let mut names = Vec::new();
        loop {
            let name = format!("{round}-{}", names.len());
            match pool.put_with(&name, 1_024 + rng.below(MIB - 1_023), &pinned) {
                Ok(_) => names.push(name),
                Err(refused) => {
                    assert_eq!(refused.code().number(), -200, "{refused}");
                    break;
                }
            }
        }
        assert!(pool.used() > 62 * MIB);
        rng.shuffle(&mut names);
        for name in names {
            assert_eq!(pool.remove(&name, Force::No), 0);
        }
        assert_eq!(pool.used(), 0);
        pool.put("large", 60 * MIB).unwrap();
        assert_eq!(pool.remove("large", Force::No), 0);
    }
    let filled =
        (0..).take_while(|n| pool.put_with(&format!("u{n}"), 51_168, &pinned).is_ok()).count() as u64;
    assert!(filled * 51_168 * 100 >= 95 * 64 * MIB, "{filled}");
}

/// Case 10: a writer whose process is gone, and says so or not, at each moment of its put.
#[test]
fn whenever_a_writer_dies_its_put_ends_and_its_bytes_come_back() {
    for left in [true, false] {
        for ended in [true, false] {
            let mut pool = Pool::new(16 * MIB);
            let started = pool.start(2, "k", MIB).unwrap();
            let held = pool.used();
            if ended {
                assert_eq!(pool.end(2, started.object), Ok(()));
            }
            if left {
                pool.master.leave(pool.now, Incarnation(2));
                assert_eq!(pool.end(2, started.object), Err(EndError::Owner), "it is nobody now");
            }
            let mut second = 0;
            let mut beat = |pool: &mut Pool| {
                for life in [1, 3] {
                    pool.master.heartbeat(pool.now, Incarnation(life), [].into_iter());
                }
                pool.silence(SECOND);
                second += 1;
                second
            };
            while beat(&mut pool) < 29 {
                let there = if ended { Existence::Present } else { Existence::Writing };
                assert_eq!((pool.exists("k"), pool.used()), (there, held));
                if !ended {
                    assert_eq!(pool.start(3, "k", MIB), Err(PutError::Writing));
                }
            }
            beat(&mut pool);
            beat(&mut pool);
            if ended {
                assert_eq!((pool.get("k"), pool.used()), (Ok(MIB), held), "it was ended: it stays");
                continue;
            }
            let taken = pool.start(3, "k", MIB).unwrap();
            assert_eq!((pool.exists("k"), pool.used()), (Existence::Writing, 2 * held));
            assert_eq!(pool.end(2, started.object).unwrap_err().code().number(), -601);
            assert_eq!(pool.end(3, taken.object), Ok(()));
            pool.report(1);
            assert_eq!((pool.get("k"), pool.used()), (Ok(MIB), held));
        }
    }
}

/// Case 10: extents granted ahead of a writer that dies are given up like puts.
#[test]
fn what_was_granted_ahead_of_a_dead_writer_comes_back() {
    let mut pool = Pool::new(16 * MIB);
    let caller = pool.caller(2);
    let mut granted = Vec::new();
    pool.master.reserve(pool.now, caller, 65_536, 16, &PutOptions::default(), &mut granted).unwrap();
    let caller = pool.caller(2);
    let published =
        pool.master.publish(pool.now, caller, granted[0].object, key("k"), 65_536, Written::all(SUM));
    assert_eq!((published, pool.used()), (Ok(()), 16 * 65_536));
    pool.pass(31);
    assert_eq!(pool.fences(1).len(), 15);
    let late = pool.master.publish(pool.now, caller, granted[1].object, key("l"), 1, Written::all(SUM));
    assert_eq!(late.unwrap_err().code().number(), -601);
    pool.report(1);
    assert_eq!((pool.get("k"), pool.exists("l"), pool.used()), (Ok(65_536), Existence::Absent, 65_536));
}

/// Case 12, the whole sequence.
#[test]
fn removals_of_many_say_what_became_of_each() {
    let mut pool = Pool::new(16 * MIB);
    for name in ["k1", "k2", "k3"] {
        pool.put(name, 1_000).unwrap();
    }
    pool.get("k1").unwrap();
    let single =
        [("k1", Force::No), ("k1", Force::Yes), ("k1", Force::No), ("k2", Force::No), ("absent", Force::No)];
    let codes = single.map(|(name, force)| pool.remove(name, force));
    assert_eq!(codes, [-706, 0, -704, 0, -704]);
    let batch = ["k1", "k2", "k3", "absent"].map(|name| pool.remove(name, Force::No));
    assert_eq!(batch, [-704, -704, 0, -704]);
    assert_eq!(pool.remove_all(Force::No), (0, 0));
    // Asking whether it is there, and then removing it: never a matter of luck, whoever else asks.
    pool.put("k4", 1_000).unwrap();
    for _ in 0..100 {
        assert_eq!(pool.probe("k4", Probe::Plain), Existence::Present);
    }
    assert_eq!(pool.remove("k4", Force::No), 0);
    pool.put("k4", 1_000).unwrap();
    for second in 0..30 {
        assert_eq!(pool.probe("k4", Probe::RenewLease), Existence::Present);
        assert_eq!(pool.remove("k4", Force::No), -706, "{second}");
        pool.pass(1);
    }
    pool.pass(10);
    assert_eq!((pool.remove("k4", Force::No), pool.used()), (0, 0));
}

/// Case 21 b: mounting is a sign of life, so that the first heartbeat may come a whole TTL later.
#[test]
fn a_mount_starts_the_owners_clock() {
    let config = Config::with_client_ttl(SECOND * 2);
    let mut pool = Pool::with(config, 0);
    let almost = Duration::from_millis(1_900);
    pool.silence(almost);
    let segment = pool.mount(1, "memory", 16 * MIB);
    pool.silence(almost);
    assert_eq!(pool.master.status(Incarnation(1)), ClientStatus::Healthy);
    assert!(pool.master.segment(segment).is_some());
    // Mounting it again is one, too, and counts the capacity once.
    assert_eq!(pool.mount(1, "memory", 16 * MIB), segment);
    pool.silence(almost);
    assert_eq!(pool.master.status(Incarnation(1)), ClientStatus::Healthy);
    assert_eq!((pool.master.stats().capacity, pool.master.stats().segments), (16 * MIB, 1));
    pool.silence(Duration::from_millis(100));
    assert_eq!(pool.master.status(Incarnation(1)), ClientStatus::Disconnected);
}

/// Cases 21 and 31: an answer that was lost is given again; somebody else under the same life is refused.
#[test]
fn a_registration_whose_answer_was_lost_may_be_repeated() {
    let mut pool = Pool::new(0);
    let node = Member { address: "node-a:17813", ..member("node-a") };
    let register =
        |pool: &mut Pool, life, node: &Member<'_>| pool.master.register(pool.now, Incarnation(life), node);
    let first = register(&mut pool, 9, &node).unwrap();
    pool.silence(SECOND);
    let again = register(&mut pool, 9, &node).unwrap();
    assert_eq!((again.id, again.ticket_key), (first.id, first.ticket_key));
    assert_eq!(pool.master.stats().members, 4);
    let other = [
        (9, Member { name: "node-b", ..node }),
        (9, Member { address: "node-a:1", ..node }),
        (8, node),
        (8, Member { name: "node-b", ..node }),
    ];
    for (life, member) in other {
        let refused = register(&mut pool, life, &member).unwrap_err();
        assert_eq!(refused.code().number(), -104, "{life} {refused}");
    }
    // Once it lends memory it has heard the answer: whoever comes now has lost its way.
    pool.mount(9, "memory", MIB);
    assert_eq!(register(&mut pool, 9, &node).unwrap_err().code().number(), -104);
    // Killed and started again, it takes the place of its earlier life when that is silent.
    pool.silence(SECOND * 10);
    assert!(register(&mut pool, 10, &node).is_ok());
    let stats = pool.master.stats();
    assert_eq!((stats.active_members, stats.segments, stats.capacity), (1, 0, 0));
}

/// Case 22: whoever dies, comes back or gives up, and in whatever order, no figure leaves its bounds.
#[test]
fn figures_hold_through_comings_and_goings() {
    let mut pool = Pool::new(0);
    let mut rng = Rng::new(22);
    let mut life = 1_000;
    let mut nodes: Vec<(u128, SegmentId)> = Vec::new();
    let mut open = Vec::new();
    for n in 0..3_000_u64 {
        match rng.below(12) {
            0 if nodes.len() < 3 => {
                life += 1;
                pool.master.register(pool.now, Incarnation(life), &member("node")).unwrap();
                nodes.push((life, pool.mount(life, "memory", 16 * MIB)));
            }
            1 if !nodes.is_empty() && rng.below(4) == 0 => {
                let (life, segment) = nodes.swap_remove(rng.below(nodes.len() as u64) as usize);
                match rng.below(2) {
                    0 => pool.master.leave(pool.now, Incarnation(life)),
                    _ => pool.master.unmount(pool.now, Incarnation(life), segment).unwrap(),
                }
            }
            2 => {
                pool.remove_all(Force::Yes);
            }
            3..=6 => {
                open.extend(pool.start(2, &format!("k{}", n % 40), rng.below(3 * MIB)).map(|it| it.object))
            }
            7 | 8 => {
                if let Some(object) = open.pop() {
                    let _ = pool.end(2, object);
                }
            }
            9 => {
                if let Some(object) = open.pop() {
                    let _ = pool.abort(2, object, Quiet::Unknown);
                }
            }
            10 => {
                let _ = pool.get(&format!("k{}", n % 40));
            }
            _ => pool.pass(rng.below(3)),
        }
        // Dead ones say nothing; the others beat now and then, and answer for their fences now and then.
        for &(life, _) in &nodes {
            match rng.below(3) {
                0 => pool.report(life),
                _ => drop(pool.master.heartbeat(pool.now, Incarnation(life), [].into_iter())),
            }
        }
        figures_hold(&pool);
    }
    pool.remove_all(Force::Yes);
    for _ in 0..700 {
        pool.pass(1);
        for &(life, _) in &nodes {
            pool.master.heartbeat(pool.now, Incarnation(life), [].into_iter());
        }
    }
    let stats = pool.master.stats();
    assert_eq!((stats.used, stats.writing, stats.reserved, stats.draining), (0, 0, 0, 0), "{stats:?}");
    assert_eq!(stats.capacity, nodes.len() as u64 * 16 * MIB);
}

/// Case 25: steps of the clock, as far as a monotonic one can make them, in both directions and without overflow.
#[test]
fn steps_of_the_clock_break_no_promise() {
    let hour = SECOND * 3_600;
    let centuries = hour * 24 * 365 * 292;
    for back in [hour, centuries] {
        let mut pool = Pool::new(16 * MIB);
        pool.pass(100);
        let soft = PutOptions { pin: Pin::Soft(Some(SECOND * 60)), ..PutOptions::default() };
        for n in 0..5 {
            pool.put_with(&format!("k{n}"), 1_000, &soft).unwrap();
            pool.get(&format!("k{n}")).unwrap();
        }
        let open = pool.start(2, "open", 1_000).unwrap();
        let now = pool.now;
        pool.now = now - back;
        for _ in 0..3 {
            pool.pass(3);
            for n in 0..5 {
                assert_eq!(pool.remove(&format!("k{n}"), Force::No), -706);
            }
            assert_eq!(pool.master.stats().active_members, 3);
        }
        assert_eq!(pool.exists("open"), Existence::Writing);
        // Back where it was, what was promised for ten seconds ends after ten.
        pool.now = now;
        pool.pass(9);
        assert_eq!(pool.remove("k0", Force::No), -706);
        pool.pass(1);
        assert_eq!(pool.remove("k0", Force::No), 0);
        assert_eq!(pool.end(2, open.object), Ok(()));
    }
    // Forwards, silence is silence; twice 292 years are more than a number of nanoseconds holds.
    let mut pool = Pool::new(16 * MIB);
    pool.put_with("hard", 1_000, &PutOptions { pin: Pin::Hard, ..PutOptions::default() }).unwrap();
    pool.start(2, "open", 1_000).unwrap();
    for round in 1.. {
        pool.now += centuries;
        pool.run();
        let stats = pool.master.stats();
        assert_eq!((stats.members, stats.used, stats.capacity), (0, 0, 0));
        if round == 3 {
            break;
        }
        for life in [1, 2, 3] {
            pool.master.register(pool.now, Incarnation(life), &member("again")).unwrap();
        }
        pool.mount(1, "memory", 16 * MIB);
        pool.put("k", 1_000).unwrap();
        pool.get("k").unwrap();
        assert_eq!((pool.remove("k", Force::No), pool.remove("k", Force::Yes)), (-706, 0));
    }
    assert_eq!(pool.now, Instant::NEVER);
}

/// Case 30: killed and restarted a hundred times, a node leaves one entry, and nothing of its earlier lives counts.
#[test]
fn a_hundred_lives_leave_one_entry() {
    let mut pool = Pool::new(0);
    let node = Member { address: "node-a:17813", ..member("node-a") };
    let mut old = None;
    for life in 1_000..1_100 {
        pool.master.register(pool.now, Incarnation(life), &node).unwrap();
        let segment = pool.mount(life, "memory", 16 * MIB);
        assert_ne!(Some(segment), old);
        if let Some(old) = old {
            assert!(pool.master.segment(old).is_none());
            // What was being written there has lost its memory: its key is free at once.
            let again = pool.start(2, &format!("k{}", life - 1), 1_000).unwrap();
            assert_eq!(pool.abort(2, again.object, Quiet::Yes), Ok(()));
        }
        let started = pool.start(2, &format!("k{life}"), 1_000).unwrap();
        assert_eq!(started.replicas[0].ticket.owner, Incarnation(life));
        pool.put(&format!("there{life}"), 1_000).unwrap();
        pool.pass(10);
        let stats = pool.master.stats();
        assert_eq!((stats.members, stats.segments, stats.capacity), (4, 1, 16 * MIB));
        assert_eq!(pool.get(&format!("there{life}")), Err(GetError::Silent));
        old = Some(segment);
    }
    pool.pass(30);
    let stats = pool.master.stats();
    assert_eq!((stats.members, stats.segments, stats.objects, stats.used), (3, 0, 0, 0));
}

/// Case 30: a node that comes back with less memory, or more, is as large as it is now.
#[test]
fn a_node_comes_back_with_another_size() {
    let mut pool = Pool::new(0);
    let node = Member { address: "node-a:17813", ..member("node-a") };
    for (life, len) in [(10, 16 * MIB), (11, MIB), (12, 32 * MIB), (13, 64)] {
        pool.master.register(pool.now, Incarnation(life), &node).unwrap();
        pool.mount(life, "memory", len);
        assert_eq!(pool.master.stats().capacity, len);
        assert_eq!(pool.put("whole", len).unwrap_err_or_len(len), len);
        pool.pass(10);
    }
}

trait OrLen {
    /// The length if it fits, or the largest segment that the refusal names.
    fn unwrap_err_or_len(self, len: u64) -> u64;
}

impl<T> OrLen for Result<T, PutError> {
    fn unwrap_err_or_len(self, len: u64) -> u64 {
        match self {
            Ok(_) => len,
            Err(PutError::NeverFits { largest_segment }) => largest_segment,
            Err(other) => panic!("{other}"),
        }
    }
}

/// Case 40: one copy's segment leaves the pool while the other's write fails: the put is no success.
#[test]
fn a_put_of_which_no_copy_is_left_fails() {
    for swept in [false, true] {
        let mut pool = Pool::new(16 * MIB);
        pool.master.register(pool.now, Incarnation(4), &member("other")).unwrap();
        let gone = pool.mount(4, "memory", 16 * MIB);
        let two = PutOptions { replicas: 2, ..PutOptions::default() };
        let started = pool.start_with(2, "k", MIB, &two).unwrap();
        let bad = started.replicas.iter().map(|to| to.segment).find(|&segment| segment != gone).unwrap();
        pool.master.leave(pool.now, Incarnation(4));
        if swept {
            pool.run();
        }
        let caller = pool.caller(2);
        for failed in [&[bad][..], &[bad, gone], &[gone, bad], &[bad, bad]] {
            let written = Written { checksum: SUM, failed };
            let ended = pool.master.put_end(pool.now, caller, started.object, written);
            assert_eq!(ended, Err(EndError::Nothing), "{failed:?}, swept: {swept}");
        }
        assert_eq!(pool.exists("k"), Existence::Writing);
        assert_eq!(pool.abort(2, started.object, Quiet::Unknown), Ok(()));
        pool.run();
        pool.report(1);
        assert_eq!((pool.exists("k"), pool.used()), (Existence::Absent, 0));
    }
}

/// Cases 13 and 16: whatever part of the values is leased, a round never takes more than its share.
#[test]
fn a_round_never_takes_more_than_its_share() {
    for policy in Kind::ALL {
        for leased in [0, 10, 49, 50] {
            let config = Config { policy, ..Config::default() };
            let mut pool = Pool::with(config, 1_000 * 64 * 1_024);
            let pinned = PutOptions { pin: Pin::Hard, ..PutOptions::default() };
            for n in 0..849 {
                pool.put_with(&format!("pinned{n}"), 64 * 1_024, &pinned).unwrap();
            }
            for n in 0..50 {
                pool.put(&format!("k{n}"), 64 * 1_024).unwrap();
                if n < leased {
                    pool.get(&format!("k{n}")).unwrap();
                }
            }
            assert_eq!(pool.master.stats().totals.evicted, 0, "899 of 1,000");
            for n in 0..2 {
                pool.put_with(&format!("more{n}"), 64 * 1_024, &pinned).unwrap();
            }
            let evicted = pool.master.stats().totals.evicted;
            assert!(evicted <= (50 - leased).min(7), "{policy}, {leased} leased: {evicted}");
            assert!(leased == 50 || evicted >= 1, "{policy}, {leased} leased: {evicted}");
        }
    }
}

/// Case 19: a master that came back gives ids of its own: the end, the abort or the segment that somebody knows from the
/// life before means nothing to it, and never somebody else's object.
#[test]
fn ids_of_the_life_before_mean_nothing_to_the_next() {
    let life = |seed| {
        let mut pool = Pool::seeded(seed, 16 * MIB);
        let caller = pool.caller(2);
        let started = pool.start(2, "k", MIB).unwrap();
        let mut granted = Vec::new();
        pool.master.reserve(pool.now, caller, 100, 8, &PutOptions::default(), &mut granted).unwrap();
        (pool, started, granted)
    };
    for seed in 1..100 {
        let (_, old, old_ahead) = life(seed);
        let (mut next, started, _) = life(seed + 1);
        assert_eq!(next.end(2, old.object), Err(EndError::Gone));
        assert_eq!(next.abort(2, old.object, Quiet::Yes), Err(EndError::Gone));
        for ahead in &old_ahead {
            let caller = next.caller(2);
            let published =
                next.master.publish(next.now, caller, ahead.object, key("l"), 100, Written::all(SUM));
            assert_eq!(published.unwrap_err().code().number(), -601);
        }
        assert!(next.master.segment(old.replicas[0].segment).is_none());
        assert_eq!((next.exists("k"), next.end(2, started.object)), (Existence::Writing, Ok(())));
    }
}

/// Case 29: a writer that could not write to a node's memory is given other memory next, long before the node counts as
/// silent; when there is none it gets the same again, and others are not concerned.
#[test]
fn a_put_that_failed_on_a_node_goes_elsewhere_next() {
    for seed in 0..20 {
        let mut pool = Pool::seeded(seed, 16 * MIB);
        pool.master.register(pool.now, Incarnation(4), &member("other")).unwrap();
        let dead = pool.mount(4, "memory", 16 * MIB);
        let on = [dead];
        let there = PutOptions { preferred: &on, ..PutOptions::default() };
        let first = pool.start_with(2, "k", MIB, &there).unwrap();
        assert_eq!(first.replicas[0].segment, dead);
        let quiet = if seed % 2 == 0 { Quiet::Yes } else { Quiet::Unknown };
        assert_eq!(pool.abort(2, first.object, quiet), Ok(()));
        for n in 0..14 {
            let started = pool.start_with(2, &format!("k{n}"), MIB, &there).unwrap();
            assert!(started.replicas[0].segment != dead, "seed {seed}: {n}");
            assert_eq!(pool.end(2, started.object), Ok(()));
        }
        // The other node is full: better there than nowhere. Nothing was given up for it.
        let full = pool.start(2, "full", MIB).and_then(|_| pool.start(2, "fuller", MIB)).unwrap();
        assert_eq!((full.replicas[0].segment, pool.master.stats().totals.evicted), (dead, 0));
        let other = pool.start_with(3, "other", MIB, &there).unwrap();
        assert_eq!(other.replicas[0].segment, dead);
        // Extents granted ahead and given back unused say nothing; and after a while all is forgotten.
        pool.silence(SECOND * 10);
        for life in [1, 2, 3, 4] {
            pool.master.heartbeat(pool.now, Incarnation(life), [].into_iter());
        }
        assert_eq!(pool.start_with(2, "later", MIB, &there).unwrap().replicas[0].segment, dead);
        let (caller, mut granted) = (pool.caller(2), Vec::new());
        pool.master.reserve(pool.now, caller, 4_096, 3, &there, &mut granted).unwrap();
        for extent in &granted {
            assert_eq!(extent.replicas[0].segment, dead);
            assert_eq!(pool.abort(2, extent.object, Quiet::Yes), Ok(()));
        }
        assert_eq!(pool.start_with(2, "last", 100, &there).unwrap().replicas[0].segment, dead);
    }
}

/// Case 29: of two copies one fails; the next put has both elsewhere.
#[test]
fn a_copy_that_failed_is_not_tried_there_again() {
    let mut pool = Pool::new(16 * MIB);
    for n in [4, 5] {
        pool.master.register(pool.now, Incarnation(n), &member("other")).unwrap();
        pool.mount(n, "memory", 16 * MIB);
    }
    let two = PutOptions { replicas: 2, ..PutOptions::default() };
    let started = pool.start_with(2, "k", MIB, &two).unwrap();
    let bad = started.replicas[1].segment;
    let caller = pool.caller(2);
    let written = Written { checksum: SUM, failed: &[bad] };
    assert_eq!(pool.master.put_end(pool.now, caller, started.object, written), Ok(()));
    for n in 0..8 {
        let started = pool.start_with(2, &format!("k{n}"), MIB, &two).unwrap();
        assert_eq!(started.replicas.len(), 2);
        assert!(started.replicas.iter().all(|to| to.segment != bad));
    }
}
