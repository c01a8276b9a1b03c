//! The doors, one after the other.

use core::time::Duration;

use springtide_core::checksum::Checksum;
use springtide_core::id::{Caller, Incarnation, TenantId};
use springtide_core::master::{
    Ahead, Cursor, Duty, EndError, Existence, Force, GetError, Member, Pin, Probe, PublishError, PutError,
    PutOptions, Quiet, RegisterError, RemoveError, Written,
};
use springtide_core::members::{ClientStatus, Fences, Mode};

use crate::pool::{MIB, Pool, SUM, key, member};

#[test]
fn put_get_remove() {
    let mut pool = Pool::new(16 * MIB);
    let started = pool.start(2, "k", MIB).unwrap();
    assert_eq!(started.replicas.len(), 1);
    assert!(started.replicas[0].extent.len() >= MIB + 64, "room for block sums");
    assert_eq!((pool.get("k"), pool.exists("k")), (Err(GetError::NotReady), Existence::Writing));
    assert_eq!(pool.end(2, started.object), Ok(()));
    assert_eq!((pool.get("k"), pool.exists("k")), (Ok(MIB), Existence::Present));
    let caller = pool.caller(3);
    let found = pool.master.get(pool.now, caller, key("k")).unwrap();
    assert_eq!((found.object, found.checksum), (started.object, SUM));
    assert_eq!(found.replicas[0].extent, started.replicas[0].extent);
    assert_eq!(pool.remove("k", Force::Yes), 0);
    assert_eq!((pool.get("k"), pool.exists("k")), (Err(GetError::NotFound), Existence::Absent));
    assert!(pool.used() > MIB, "a reader may still have its lease");
    pool.pass(11);
    assert_eq!(pool.used(), 0);
}

#[test]
fn registration_is_checked() {
    let mut pool = Pool::new(0);
    let now = pool.now;
    let mut register = |n, member: &Member<'_>| pool.master.register(now, Incarnation(n), member).map(|_| ());
    assert_eq!(register(9, &Member { mode: Mode::Peer, ..member("a") }), Err(RegisterError::Mode));
    assert_eq!(register(1, &member("a")), Err(RegisterError::Known));
    assert_eq!(register(9, &member("")), Err(RegisterError::Name));
    assert_eq!(register(9, &Member { address: "h:1", ..member("a") }), Ok(()));
    assert_eq!(register(8, &Member { address: "h:1", ..member("b") }), Err(RegisterError::AddressTaken));
    // Three heartbeats, long before the member counts as silent.
    let again = |pool: &mut Pool| {
        pool.master.register(pool.now, Incarnation(8), &Member { address: "h:1", ..member("b") }).map(|_| ())
    };
    pool.silence(Duration::from_millis(2_999));
    assert_eq!(again(&mut pool), Err(RegisterError::AddressTaken));
    pool.silence(Duration::from_millis(1));
    assert_eq!(pool.master.status(Incarnation(9)), ClientStatus::Healthy);
    assert_eq!(again(&mut pool), Ok(()), "who missed three heartbeats is gone");
    assert_eq!(pool.master.status(Incarnation(9)), ClientStatus::Undefined);
    let caller = pool.caller(77);
    let unknown = pool.master.put_start(pool.now, caller, key("k"), 1, &PutOptions::default());
    assert_eq!(unknown, Err(PutError::Unregistered));
}

/// Cases 4 and 40: two writers, repeated requests, the wrong client.
#[test]
fn the_first_put_wins_and_repeats_are_harmless() {
    let mut pool = Pool::new(16 * MIB);
    let (one, two) = (pool.caller(2), pool.caller(3));
    let options = PutOptions::default();
    let first = pool.master.put_start(pool.now, one, key("k"), MIB, &options).unwrap();
    assert_eq!(pool.master.put_start(pool.now, two, key("k"), MIB, &options), Err(PutError::Writing));
    let again = pool.master.put_start(pool.now, one, key("k"), MIB, &options).unwrap();
    assert_eq!((again.object, again.replicas[0].extent), (first.object, first.replicas[0].extent));
    let used = pool.used();
    assert_eq!(pool.end(3, first.object), Err(EndError::Owner));
    assert_eq!(EndError::Owner.code().number(), -601);
    assert_eq!((pool.end(2, first.object), pool.end(2, first.object)), (Ok(()), Ok(())));
    let other = pool.caller(2);
    let ended = pool.master.put_end(pool.now, other, first.object, Written::all(Checksum::Crc32c(8)));
    assert_eq!(ended, Err(EndError::Ended));
    assert_eq!(pool.start(3, "k", 5), Err(PutError::Exists));
    assert_eq!(PutError::Exists.code().number(), -705);
    assert_eq!((pool.get("k"), pool.used()), (Ok(MIB), used));
    assert_eq!(pool.abort(2, first.object, Quiet::Yes), Err(EndError::Ended));
}

/// Case 40: one copy of two fails. The good one is published; the other's bytes wait for its owner's fence.
#[test]
fn a_replica_that_was_not_written_is_dropped() {
    let mut pool = Pool::new(16 * MIB);
    pool.mount(3, "second", 16 * MIB);
    let two = PutOptions { replicas: 2, ..PutOptions::default() };
    let started = pool.start_with(2, "k", MIB, &two).unwrap();
    let [good, bad] = [0, 1].map(|replica| started.replicas[replica].segment);
    let caller = pool.caller(2);
    let nothing = pool.master.put_end(
        pool.now,
        caller,
        started.object,
        Written { checksum: SUM, failed: &[good, bad] },
    );
    assert_eq!(nothing, Err(EndError::Nothing));
    let written = Written { checksum: SUM, failed: &[bad] };
    assert_eq!(pool.master.put_end(pool.now, caller, started.object, written), Ok(()));
    let reader = pool.caller(3);
    let found = pool.master.get(pool.now, reader, key("k")).unwrap();
    assert_eq!(found.replicas.iter().map(|replica| replica.segment).collect::<Vec<_>>(), [good]);
    let owner = |pool: &Pool, segment| {
        let owner = pool.master.segment(segment).unwrap().owner;
        pool.master.member(owner).unwrap().incarnation
    };
    let duties: Vec<_> = pool.master.duties(owner(&pool, bad)).collect();
    let Duty::Fence { number, segment, .. } = duties[0];
    assert_eq!((duties.len(), segment, pool.used()), (1, bad, 2 * (MIB + 64)));
    let life = owner(&pool, bad);
    pool.master.heartbeat(pool.now, life, [number].into_iter());
    pool.run();
    assert_eq!(pool.used(), MIB + 64);
}

#[test]
fn every_read_renews_the_lease() {
    let mut pool = Pool::new(MIB);
    pool.put("k", 10).unwrap();
    let leased = |pool: &mut Pool| {
        let caller = pool.caller(3);
        pool.master.stat(pool.now, caller, key("k")).unwrap().leased_until
    };
    assert!(leased(&mut pool) <= pool.now, "a put gives no lease");
    for _ in 0..2 {
        pool.get("k").unwrap();
        assert_eq!(leased(&mut pool), pool.now + Duration::from_secs(10));
        pool.pass(6);
    }
    assert_eq!(pool.remove("k", Force::No), -706, "the second read's lease runs");
    pool.pass(4);
    assert_eq!(pool.remove("k", Force::No), 0);
}

/// Case 2: an empty value is a value.
#[test]
fn empty_values_are_kept() {
    let mut pool = Pool::new(MIB);
    pool.put("empty", 0).unwrap();
    assert_eq!((pool.get("empty"), pool.exists("empty")), (Ok(0), Existence::Present));
    assert_eq!(pool.get("other"), Err(GetError::NotFound));
    assert_eq!(pool.used(), 64);
}

/// Case 5: what a batch of reads meets.
#[test]
fn missing_and_unfinished_keys_have_their_own_answers() {
    let mut pool = Pool::new(16 * MIB);
    for n in [0, 1, 2, 4, 6, 8, 9] {
        pool.put(&format!("k{n}"), 100).unwrap();
    }
    pool.start(2, "k5", 100).unwrap();
    let codes: Vec<i16> = (0..10)
        .map(|n| pool.get(&format!("k{n}")).map_or_else(|error| error.code().number(), |_| 0))
        .collect();
    assert_eq!(codes, [0, 0, 0, -704, 0, -703, 0, -704, 0, 0]);
    // A batch that was announced meets the same, and announcing changes nothing.
    let before = pool.master.digest();
    let names: Vec<String> = (0..100).map(|n| format!("k{n}")).collect();
    let keys: Vec<_> = names.iter().map(|name| key(name)).collect();
    let caller = pool.caller(3);
    for ahead in [Ahead::Look, Ahead::Read, Ahead::Remove] {
        pool.master.warm(caller, &keys, ahead);
        pool.master.warm(caller, &[], ahead);
    }
    assert_eq!(pool.master.digest(), before);
    assert_eq!((pool.get("k0"), pool.get("k3")), (Ok(100), Err(GetError::NotFound)));
}

/// Case 10: a writer dies between start and end.
#[test]
fn a_dead_writers_key_is_free_and_its_bytes_are_not() {
    let mut pool = Pool::new(16 * MIB);
    let dead = pool.start(2, "k", MIB).unwrap();
    let one = pool.used();
    pool.pass(5);
    assert_eq!(pool.start(3, "k", MIB), Err(PutError::Writing));
    pool.pass(26);
    assert_eq!(pool.exists("k"), Existence::Absent);
    let taken = pool.start(3, "k", MIB).unwrap();
    assert!(!taken.replicas[0].extent.overlaps(dead.replicas[0].extent));
    assert_eq!(pool.end(3, taken.object), Ok(()));
    pool.pass(1);
    let late = pool.end(2, dead.object).unwrap_err();
    assert_eq!(late.code().number(), -601);
    assert_eq!((pool.get("k"), pool.used()), (Ok(MIB), 2 * one));
    let [number] = pool.fences(1)[..] else { panic!("the owner has to fence one extent") };
    let Duty::Fence { extent, below, .. } = pool.master.duties(Incarnation(1)).next().unwrap();
    assert_eq!(extent, dead.replicas[0].extent);
    assert!(dead.replicas[0].ticket.serial < below);
    pool.master.heartbeat(pool.now, Incarnation(2), [number].into_iter());
    assert_eq!(pool.used(), 2 * one, "only the owner can answer");
    pool.report(1);
    assert_eq!((pool.used(), pool.fences(1).len()), (one, 0));
    assert_eq!(pool.master.stats().totals.discarded, 1);
}

#[test]
fn what_an_owner_owes_an_earlier_master_is_not_taken_for_an_answer() {
    let numbers = [1, 2].map(|seed| {
        let mut pool = Pool::seeded(seed, 4 * MIB);
        let started = pool.start(2, "k", MIB).unwrap();
        pool.abort(2, started.object, Quiet::Unknown).unwrap();
        pool.fences(1)[0]
    });
    assert_ne!(numbers[0], numbers[1]);
}

/// Case 10 with an owner that cannot fence, and one that never answers.
#[test]
fn without_a_fence_the_release_time_decides() {
    for fences in [Fences::Time, Fences::Answers] {
        let mut pool = Pool::new(0);
        let node = Member { fences, ..member("old") };
        pool.master.register(pool.now, Incarnation(4), &node).unwrap();
        pool.mount(4, "memory", 4 * MIB);
        let started = pool.start(2, "k", MIB).unwrap();
        let beat = |pool: &mut Pool, seconds| {
            for _ in 0..seconds {
                pool.pass(1);
                pool.master.heartbeat(pool.now, Incarnation(4), [].into_iter());
            }
        };
        beat(&mut pool, 31);
        assert_eq!(pool.end(2, started.object), Err(EndError::Gone));
        assert_eq!(pool.fences(4).len(), usize::from(fences == Fences::Answers));
        beat(&mut pool, 568);
        assert!(pool.used() > MIB);
        beat(&mut pool, 2);
        assert_eq!((pool.used(), pool.fences(4).len()), (0, 0));
    }
}

#[test]
fn an_abort_frees_at_once_only_if_the_writer_is_quiet() {
    let mut pool = Pool::new(16 * MIB);
    let quiet = pool.start(2, "a", MIB).unwrap();
    assert_eq!(pool.abort(3, quiet.object, Quiet::Yes), Err(EndError::Owner));
    assert_eq!(pool.abort(2, quiet.object, Quiet::Yes), Ok(()));
    assert_eq!(pool.abort(2, quiet.object, Quiet::Yes), Err(EndError::Gone));
    assert_eq!(pool.used(), 0);
    let unknown = pool.start(2, "a", MIB).unwrap();
    assert_eq!(pool.abort(2, unknown.object, Quiet::Unknown), Ok(()));
    assert_eq!(pool.exists("a"), Existence::Absent);
    assert_eq!(pool.master.stats().draining, unknown.replicas[0].extent.len());
    pool.report(1);
    assert_eq!((pool.used(), pool.master.stats().draining), (0, 0));
}

/// Case 12: what a removal says.
#[test]
fn removals_say_what_they_did() {
    let mut pool = Pool::new(16 * MIB);
    for name in ["k1", "k2", "k3"] {
        pool.put(name, 1_000).unwrap();
    }
    pool.get("k1").unwrap();
    assert_eq!(pool.remove("k1", Force::No), -706);
    assert_eq!(pool.remove("k1", Force::Yes), 0);
    assert_eq!(pool.remove("k1", Force::No), -704);
    assert_eq!(pool.remove("k2", Force::No), 0);
    assert_eq!(pool.remove("absent", Force::Yes), -704);
    pool.get("k3").unwrap();
    assert_eq!(pool.remove_all(Force::No), (0, 1));
    assert_eq!(pool.remove_all(Force::Yes), (1, 0));
    pool.put("k4", 1_000).unwrap();
    assert_eq!(pool.exists("k4"), Existence::Present);
    assert_eq!(pool.remove("k4", Force::No), 0, "a plain probe leaves no lease");
    pool.put("k4", 1_000).unwrap();
    assert_eq!(pool.probe("k4", Probe::RenewLease), Existence::Present);
    assert_eq!(pool.remove("k4", Force::No), -706);
    pool.pass(11);
    assert_eq!(pool.remove("k4", Force::No), 0);
    pool.start(2, "open", 10).unwrap();
    assert_eq!(pool.remove("open", Force::Yes), RemoveError::NotReady.code().number());
}

#[test]
fn extents_granted_ahead_take_any_key() {
    let mut pool = Pool::new(16 * MIB);
    let caller = pool.caller(2);
    let mut granted = Vec::new();
    pool.master.reserve(pool.now, caller, 4_096, 3, &PutOptions::default(), &mut granted).unwrap();
    assert_eq!((granted.len(), pool.used()), (3, 3 * 4_096));
    let mut again = Vec::new();
    pool.master.reserve(pool.now, caller, 4_096, 3, &PutOptions::default(), &mut again).unwrap();
    assert_eq!(
        granted.iter().map(|g| g.object).collect::<Vec<_>>(),
        again.iter().map(|g| g.object).collect::<Vec<_>>()
    );
    let object = granted[0].object;
    let mut publish = |name: &str, object, len| {
        pool.request += 1;
        let caller = Caller { request: pool.request, ..caller };
        pool.master.publish(pool.now, caller, object, key(name), len, Written::all(SUM))
    };
    assert_eq!(publish("k", object, 4_097), Err(PublishError::Len));
    assert_eq!(publish("k", object, 4_000), Ok(()));
    assert_eq!(publish("k", object, 4_000), Ok(()));
    assert_eq!(publish("l", object, 4_000), Err(PublishError::Published));
    let second = granted[1].object;
    assert_eq!(publish("k", second, 1), Err(PublishError::Exists));
    assert_eq!(publish("l", second, 1), Ok(()));
    assert_eq!((pool.get("k"), pool.get("l")), (Ok(4_000), Ok(1)));
    assert_eq!(pool.end(2, granted[2].object), Err(EndError::NoKey));
    assert_eq!(pool.abort(2, granted[2].object, Quiet::Yes), Ok(()));
    assert_eq!((pool.used(), pool.master.stats().writing), (2 * 4_096, 0));
}

/// Its writer may be writing another value there by then.
#[test]
fn a_refused_publication_that_comes_again_is_refused_again() {
    let mut pool = Pool::new(MIB);
    pool.put("k", 10).unwrap();
    let (caller, now, mut started) = (pool.caller(2), pool.now, Vec::new());
    pool.master.reserve(now, caller, 10, 1, &PutOptions::default(), &mut started).unwrap();
    let object = started[0].object;
    let (first, next) = (pool.caller(2), pool.caller(2));
    let publish =
        |pool: &mut Pool, caller| pool.master.publish(now, caller, object, key("k"), 10, Written::all(SUM));
    assert_eq!(publish(&mut pool, first), Err(PublishError::Exists));
    assert_eq!(pool.remove("k", Force::Yes), 0);
    assert_eq!(publish(&mut pool, first), Err(PublishError::Exists));
    assert_eq!(publish(&mut pool, next), Ok(()));
}

#[test]
fn scans_see_each_object_once() {
    let mut pool = Pool::new(64 * MIB);
    for n in 0..500 {
        pool.put(&format!("k{n}"), 10).unwrap();
    }
    pool.start(2, "open", 10).unwrap();
    let other = pool.master.tenant("other").unwrap();
    let (mut cursor, mut seen) = (Cursor::START, Vec::new());
    while !cursor.is_end() {
        let tenant = TenantId(0);
        cursor = pool.master.scan(tenant, cursor, 7, &mut |key, stat| seen.push((key.to_vec(), stat.len)));
        // Objects that come and go meanwhile change nothing for the others.
        pool.put(&format!("new{}", seen.len()), 10).unwrap();
        pool.remove(&format!("new{}", seen.len()), Force::Yes);
    }
    let old = seen.iter().filter(|(key, _)| key.starts_with(b"k"));
    let distinct: std::collections::BTreeSet<_> = old.clone().collect();
    assert_eq!((old.count(), distinct.len()), (500, 500));
    assert!(pool.master.scan(other, Cursor::START, 10_000, &mut |_, _| panic!("nothing there")).is_end());
}

#[test]
fn pins_are_bounded() {
    let mut pool = Pool::new(MIB);
    let pin = Pin::Soft(Some(Duration::from_secs(86_401)));
    assert_eq!(pool.put_with("k", 1, &PutOptions { pin, ..PutOptions::default() }), Err(PutError::Pin));
    let none = PutOptions { replicas: 0, ..PutOptions::default() };
    assert_eq!(pool.put_with("k", 1, &none), Err(PutError::Replicas));
}
