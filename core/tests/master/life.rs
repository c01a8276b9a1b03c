//! Members and segments that come and go, copies, clocks.

use core::time::Duration;

use springtide_core::id::{Caller, Incarnation, SegmentId, TenantId};
use springtide_core::master::{
    CopyEndError, CopyError, EndError, Existence, Force, GetError, Member, MountError, Next, Past, PutError,
    PutOptions, Quiet, RemoveError, SegmentSpec, UnmountError,
};
use springtide_core::members::{ClientStatus, Fences};
use springtide_core::space::Visibility;
use springtide_core::time::Instant;

use crate::pool::{MIB, Pool, key, member};

const SECOND: Duration = Duration::from_secs(1);

/// A pool of two nodes, 1 and 4.
fn two_nodes() -> (Pool, SegmentId, SegmentId) {
    let mut pool = Pool::new(0);
    pool.master.register(pool.now, Incarnation(4), &member("other")).unwrap();
    let a = pool.mount(1, "memory", 16 * MIB);
    let b = pool.mount(4, "memory", 16 * MIB);
    (pool, a, b)
}

fn on(segment: SegmentId, pool: &mut Pool, name: &str) {
    let preferred = [segment];
    pool.put_with(name, 1_000, &PutOptions { preferred: &preferred, ..PutOptions::default() }).unwrap();
}

fn beat(pool: &mut Pool, member: u128) -> ClientStatus {
    pool.master.heartbeat(pool.now, Incarnation(member), [].into_iter()).status
}

#[test]
fn a_silent_node_hides_and_a_dead_one_goes() {
    let (mut pool, a, b) = two_nodes();
    on(a, &mut pool, "a");
    on(b, &mut pool, "b");
    let both = PutOptions { replicas: 2, ..PutOptions::default() };
    pool.put_with("both", 1_000, &both).unwrap();
    // Node 4 falls silent.
    pool.pass(10);
    assert_eq!(pool.master.status(Incarnation(4)), ClientStatus::Disconnected);
    assert_eq!(
        (pool.get("a"), pool.get("b"), pool.get("both")),
        (Ok(1_000), Err(GetError::Silent), Ok(1_000))
    );
    assert_eq!((pool.exists("b"), GetError::Silent.code().number()), (Existence::Silent, -1010));
    assert_eq!(pool.master.segment(b).unwrap().visible, Visibility::Hidden);
    on(b, &mut pool, "new");
    pool.pass(9);
    assert_eq!(pool.get("new"), Ok(1_000), "nothing new is placed on a silent node");
    // It answers again: nothing was lost.
    assert_eq!(beat(&mut pool, 4), ClientStatus::Healthy);
    assert_eq!((pool.get("b"), pool.exists("b")), (Ok(1_000), Existence::Present));
    // And then it dies.
    pool.pass(30);
    assert_eq!(pool.master.status(Incarnation(4)), ClientStatus::Undefined);
    assert_eq!(beat(&mut pool, 4), ClientStatus::Undefined);
    assert_eq!(
        (pool.get("b"), pool.get("both"), pool.get("a")),
        (Err(GetError::NotFound), Ok(1_000), Ok(1_000))
    );
    let stats = pool.master.stats();
    assert_eq!((stats.members, stats.active_members, stats.segments, stats.capacity), (3, 3, 1, 16 * MIB));
    assert_eq!(stats.totals.lost, 1);
    pool.master.register(pool.now, Incarnation(4), &member("other")).unwrap();
    assert_eq!(pool.master.stats().active_members, 4);
}

/// Case 21: a member that was dropped learns it, and mounts again.
#[test]
fn a_dropped_member_starts_over() {
    let (mut pool, _, b) = two_nodes();
    on(b, &mut pool, "b");
    let spec = SegmentSpec { name: "memory", len: 16 * MIB, ..SegmentSpec::default() };
    let mount = |pool: &mut Pool, spec: &SegmentSpec<'_>| pool.master.mount(pool.now, Incarnation(4), spec);
    assert_eq!(mount(&mut pool, &spec), Ok(b), "again is the same");
    assert_eq!(mount(&mut pool, &SegmentSpec { len: MIB, ..spec }), Err(MountError::Exists));
    assert_eq!(pool.master.stats().capacity, 32 * MIB);
    pool.pass(10);
    assert_eq!(mount(&mut pool, &spec), Err(MountError::Unhealthy));
    assert_eq!(pool.master.unmount(pool.now, Incarnation(4), b), Err(UnmountError::Unhealthy));
    pool.pass(20);
    assert_eq!(mount(&mut pool, &spec), Err(MountError::Unregistered));
    pool.master.register(pool.now, Incarnation(4), &member("other")).unwrap();
    let again = mount(&mut pool, &spec).unwrap();
    assert!(again != b, "a stale id finds nothing");
    assert_eq!((pool.get("b"), pool.master.stats().capacity), (Err(GetError::NotFound), 32 * MIB));
    pool.silence(SECOND * 9);
    assert_eq!(beat(&mut pool, 4), ClientStatus::Healthy, "the first mount starts the clock");
}

#[test]
fn mounts_are_checked() {
    let mut pool = Pool::new(0);
    let mut mount = |name, len| {
        let spec = SegmentSpec { name, len, ..SegmentSpec::default() };
        pool.master.mount(pool.now, Incarnation(1), &spec)
    };
    assert_eq!(mount("", 64), Err(MountError::Name));
    assert_eq!(mount("a", 0), Err(MountError::Len));
    assert_eq!(mount("a", 65), Err(MountError::Len));
    assert_eq!(mount("a", u64::MAX), Err(MountError::Len));
    let segment = mount("a", 64).unwrap();
    assert_eq!(pool.master.unmount(pool.now, Incarnation(2), segment), Err(UnmountError::Owner));
    assert_eq!(pool.master.unmount(pool.now, Incarnation(1), segment), Ok(()));
    assert_eq!(pool.master.unmount(pool.now, Incarnation(1), segment), Ok(()));
    assert_eq!(pool.master.segments().count(), 0);
}

#[test]
fn events_say_who_changed() {
    let mut pool = Pool::new(0);
    while !matches!(pool.master.poll(pool.now), Next::Wait(_)) {}
    let segment = pool.mount(1, "memory", MIB);
    let id = pool.master.member_of(Incarnation(1)).unwrap().id;
    pool.master.leave(pool.now, Incarnation(1));
    pool.master.leave(pool.now, Incarnation(1));
    assert_eq!(pool.master.poll(pool.now), Next::SegmentGone { segment, owner: id });
    let (member, incarnation, status) = (id, Incarnation(1), ClientStatus::Undefined);
    assert_eq!(pool.master.poll(pool.now), Next::Status { member, incarnation, status });
    pool.run();
    assert_eq!(pool.master.poll(pool.now), Next::Wait(Some(Instant::from_nanos(1) + SECOND * 10)));
}

#[test]
fn a_large_segment_is_swept_in_steps() {
    let (mut pool, a, b) = two_nodes();
    for n in 0..2_000 {
        on(if n % 2 == 0 { a } else { b }, &mut pool, &format!("k{n}"));
    }
    let open = {
        let preferred = [b];
        pool.start_with(2, "open", 10, &PutOptions { preferred: &preferred, ..PutOptions::default() })
            .unwrap()
    };
    pool.master.unmount(pool.now, Incarnation(4), b).unwrap();
    // Before anything is swept, look-ups treat it as gone, and keys are free.
    assert_eq!((pool.get("k1"), pool.get("k0")), (Err(GetError::NotFound), Ok(1_000)));
    assert_eq!((pool.end(2, open.object), pool.exists("k3")), (Err(EndError::Gone), Existence::Absent));
    let started = pool.start(2, "k5", 7).unwrap();
    pool.end(2, started.object).unwrap();
    assert!(pool.run() >= 4, "a thousand replicas are more than one step");
    assert_eq!((pool.get("k5"), pool.master.stats().objects), (Ok(7), 1_001));
    assert_eq!(pool.master.stats().totals.lost, 1_000);
    pool.pass(11);
    assert_eq!(pool.remove_all(Force::No), (1_001, 0));
    assert_eq!((pool.used(), pool.master.stats().writing), (0, 0));
}

#[test]
fn segments_that_leave_and_come_during_a_sweep_are_told_apart() {
    let (mut pool, a, b) = two_nodes();
    for n in 0..2_000 {
        on(if n % 2 == 0 { a } else { b }, &mut pool, &format!("k{n}"));
    }
    pool.master.unmount(pool.now, Incarnation(4), b).unwrap();
    // A step into the sweep the other segment leaves, and new ones take over what is vacated.
    pool.master.handle_timeout(pool.now);
    let c = pool.mount(4, "more", 16 * MIB);
    pool.master.unmount(pool.now, Incarnation(1), a).unwrap();
    for n in 0..600 {
        on(c, &mut pool, &format!("new{n}"));
        pool.master.handle_timeout(pool.now);
    }
    pool.run();
    assert_eq!((pool.master.stats().totals.lost, pool.master.stats().objects), (2_000, 600));
    let d = pool.mount(1, "more", 16 * MIB);
    on(d, &mut pool, "last");
    pool.master.unmount(pool.now, Incarnation(4), c).unwrap();
    pool.run();
    assert_eq!((pool.get("last"), pool.get("new7")), (Ok(1_000), Err(GetError::NotFound)));
    assert_eq!((pool.master.stats().totals.lost, pool.master.stats().objects), (2_600, 1));
}

#[test]
fn memory_that_was_served_before_waits_one_lease() {
    let mut pool = Pool::new(0);
    let spec = SegmentSpec { name: "memory", len: MIB, past: Past::Served, ..SegmentSpec::default() };
    pool.master.mount(pool.now, Incarnation(1), &spec).unwrap();
    pool.pass(9);
    assert_eq!(pool.put("k", 1), Err(PutError::NoSegments));
    pool.pass(1);
    assert!(pool.put("k", 1).is_ok());
    // Its owner falls silent and comes back just when the time is over.
    let spec = SegmentSpec { name: "more", ..spec };
    let more = pool.master.mount(pool.now, Incarnation(1), &spec).unwrap();
    pool.silence(SECOND * 10);
    assert_eq!(beat(&mut pool, 1), ClientStatus::Healthy);
    assert_eq!(pool.master.segment(more).unwrap().visible, Visibility::Open);
    let old = Member { fences: Fences::Time, ..member("old") };
    pool.master.register(pool.now, Incarnation(5), &old).unwrap();
    let last = pool.master.mount(pool.now, Incarnation(5), &spec).unwrap();
    let visible = |pool: &Pool| pool.master.segment(last).unwrap().visible;
    for _ in 0..599 {
        pool.pass(1);
        beat(&mut pool, 5);
    }
    assert_eq!(visible(&pool), Visibility::Hidden, "late writers of its earlier life may still come");
    pool.pass(1);
    assert_eq!(visible(&pool), Visibility::Open);
}

#[test]
fn a_copy_adds_a_replica_and_keeps_its_source() {
    let (mut pool, a, b) = two_nodes();
    on(a, &mut pool, "k");
    let caller = pool.caller(2);
    let start = |pool: &mut Pool, to| pool.master.copy_start(pool.now, caller, key("k"), to);
    assert_eq!(start(&mut pool, a), Err(CopyError::Exists));
    let task = start(&mut pool, b).unwrap();
    assert_eq!((task.from.segment, task.to.segment, task.len), (a, b, 1_000));
    assert_eq!(start(&mut pool, b), Err(CopyError::Copying));
    assert_eq!(pool.remove("k", Force::No), RemoveError::Copying.code().number());
    let other = Caller { incarnation: Incarnation(3), ..caller };
    assert_eq!(pool.master.copy_end(pool.now, other, task.object), Err(CopyEndError::Owner));
    assert_eq!(pool.master.copy_end(pool.now, caller, task.object), Ok(()));
    assert_eq!(pool.master.copy_end(pool.now, caller, task.object), Err(CopyEndError::NoTask));
    let found = pool.master.get(pool.now, caller, key("k")).unwrap();
    let segments: Vec<_> = found.replicas.iter().map(|location| location.segment).collect();
    assert_eq!(segments, [a, b]);
    pool.pass(9);
    beat(&mut pool, 4);
    pool.pass(1);
    assert_eq!(pool.master.clear(pool.now, other, key("k"), Some(a)), Err(RemoveError::Owner));
    assert_eq!(pool.master.clear(pool.now, caller, key("k"), Some(a)), Ok(()));
    assert_eq!(pool.master.clear(pool.now, caller, key("k"), Some(a)), Err(RemoveError::NoReplica));
    assert_eq!((pool.get("k"), pool.used()), (Ok(1_000), 1_024));
}

#[test]
fn a_copy_outlives_its_object_and_no_byte_is_used_under_it() {
    let (mut pool, a, b) = two_nodes();
    on(a, &mut pool, "k");
    let caller = pool.caller(2);
    let task = pool.master.copy_start(pool.now, caller, key("k"), b).unwrap();
    assert_eq!(pool.remove("k", Force::Yes), 0);
    assert_eq!((pool.exists("k"), pool.used()), (Existence::Absent, 2_048));
    let fence: Vec<_> = pool.master.duties(Incarnation(4)).collect();
    assert_eq!(fence.len(), 1, "the copy may still be writing to its target");
    pool.report(4);
    assert_eq!(pool.used(), 1_024, "the copy still reads its source");
    assert_eq!(pool.master.copy_end(pool.now, caller, task.object), Err(CopyEndError::NoTask));
    assert_eq!(pool.used(), 0);
}

/// Readers were told of the source alone.
#[test]
fn what_a_copy_wrote_waits_for_no_reader() {
    let (mut pool, a, b) = two_nodes();
    on(a, &mut pool, "k");
    let caller = pool.caller(2);
    let task = pool.master.copy_start(pool.now, caller, key("k"), b).unwrap();
    assert_eq!(pool.get("k"), Ok(1_000));
    assert_eq!(pool.remove("k", Force::Yes), 0);
    pool.report(4);
    assert_eq!(pool.used(), 1_024, "the target is free, the source is leased and read");
    assert_eq!(pool.master.copy_end(pool.now, caller, task.object), Err(CopyEndError::NoTask));
    assert_eq!(pool.used(), 1_024);
    pool.pass(10);
    assert_eq!(pool.used(), 0);
}

#[test]
fn a_copy_is_given_up_like_a_put() {
    let (mut pool, a, b) = two_nodes();
    on(a, &mut pool, "k");
    let caller = pool.caller(2);
    let task = pool.master.copy_start(pool.now, caller, key("k"), b).unwrap();
    assert_eq!(pool.master.copy_abort(pool.now, caller, task.object, Quiet::Yes), Ok(()));
    assert_eq!(pool.used(), 1_024);
    let task = pool.master.copy_start(pool.now, caller, key("k"), b).unwrap();
    for _ in 0..31 {
        pool.pass(1);
        beat(&mut pool, 4);
    }
    assert_eq!(pool.master.copy_end(pool.now, caller, task.object), Err(CopyEndError::NoTask));
    assert_eq!(pool.used(), 2_048);
    pool.report(4);
    assert_eq!((pool.used(), pool.get("k")), (1_024, Ok(1_000)));
    // The source's segment goes while it is read, then the target's.
    let task = pool.master.copy_start(pool.now, caller, key("k"), b).unwrap();
    pool.master.leave(pool.now, Incarnation(1));
    pool.run();
    assert_eq!((pool.exists("k"), pool.master.stats().reserved), (Existence::Silent, 1_024));
    assert_eq!(pool.master.copy_end(pool.now, caller, task.object), Ok(()));
    assert_eq!(pool.get("k"), Ok(1_000));
}

#[test]
fn a_failed_copy_whose_source_left_leaves_nothing() {
    let (mut pool, a, b) = two_nodes();
    on(a, &mut pool, "k");
    let caller = pool.caller(2);
    let task = pool.master.copy_start(pool.now, caller, key("k"), b).unwrap();
    pool.master.leave(pool.now, Incarnation(1));
    pool.run();
    assert_eq!(pool.master.copy_abort(pool.now, caller, task.object, Quiet::Yes), Ok(()));
    let stats = pool.master.stats();
    assert_eq!(
        (pool.exists("k"), stats.objects, stats.used, stats.totals.lost),
        (Existence::Absent, 0, 0, 1)
    );
}

/// Case 22: figures follow from what is there.
#[test]
fn figures_never_drift() {
    let mut pool = Pool::new(0);
    let a = pool.mount(1, "a", 16 * MIB);
    pool.mount(1, "b", 16 * MIB);
    pool.put("k", 11).unwrap();
    assert_eq!((pool.remove_all(Force::Yes), pool.used()), ((1, 0), 0));
    pool.start(2, "open", 1_000).unwrap();
    let stats = pool.master.stats();
    assert_eq!((stats.reserved, stats.used, stats.writing), (1_024, 1_024, 1));
    for round in 0..3 {
        pool.silence(SECOND * 12);
        let stats = pool.master.stats();
        assert_eq!((stats.active_members, stats.capacity, stats.used), (0, 32 * MIB, 1_024), "round {round}");
        pool.pass(1);
        assert_eq!((pool.master.stats().active_members, pool.master.stats().capacity), (3, 32 * MIB));
    }
    pool.master.unmount(pool.now, Incarnation(1), a).unwrap();
    pool.silence(SECOND * 40);
    let stats = pool.master.stats();
    assert_eq!((stats.members, stats.capacity, stats.used, stats.segments), (0, 0, 0, 0));
    assert_eq!((stats.reserved, stats.draining, stats.objects, stats.writing), (0, 0, 0, 0));
}

/// Case 25: a clock that steps back changes nothing, and is counted.
#[test]
fn time_never_goes_backwards() {
    let mut pool = Pool::new(MIB);
    pool.pass(100);
    pool.put("k", 10).unwrap();
    pool.get("k").unwrap();
    let now = pool.now;
    pool.now = Instant::from_nanos(5);
    assert_eq!(beat(&mut pool, 1), ClientStatus::Healthy);
    assert_eq!(pool.remove("k", Force::No), -706);
    pool.now = now + SECOND * 9;
    assert_eq!(pool.remove("k", Force::No), -706);
    pool.now = now + SECOND * 10;
    assert_eq!(pool.remove("k", Force::No), 0);
    assert!(pool.master.stats().totals.clock_went_back >= 2);
    // As late as time can be, nothing overflows.
    pool.put("late", 10).unwrap();
    pool.now = Instant::NEVER;
    pool.run();
    assert_eq!(pool.master.stats().members, 0);
}

/// Case 30: another life at the same address is somebody else.
#[test]
fn a_restarted_process_owns_nothing_of_its_earlier_life() {
    let mut pool = Pool::new(MIB);
    let started = pool.start(2, "k", 10).unwrap();
    assert_eq!(started.replicas[0].ticket.owner, Incarnation(1));
    pool.master.register(pool.now, Incarnation(22), &member("one")).unwrap();
    assert_eq!(pool.end(22, started.object), Err(EndError::Owner));
    assert_eq!(pool.end(99, started.object), Err(EndError::Owner));
    let caller = Caller { incarnation: Incarnation(2), tenant: TenantId(0), request: 0 };
    assert_eq!(pool.master.find_put(caller, key("k")), Some(started.object));
    let other = Caller { incarnation: Incarnation(22), ..caller };
    assert_eq!(pool.master.find_put(other, key("k")), None);
}

#[test]
fn ids_of_an_earlier_life_of_the_master_mean_nothing() {
    let mut before = Pool::seeded(1, MIB);
    let late = before.start(2, "late", 10).unwrap().object;
    let mut pool = Pool::seeded(2, MIB);
    let begun = pool.start(2, "begun", 10).unwrap().object;
    assert_ne!(late, begun);
    assert_eq!(pool.end(2, late), Err(EndError::Gone));
    let caller = pool.caller(2);
    assert_eq!(pool.master.put_abort(pool.now, caller, late, Quiet::Yes), Err(EndError::Gone));
    assert_eq!(pool.end(2, begun), Ok(()));
}

#[test]
fn tenants_do_not_see_each_other() {
    let mut pool = Pool::new(MIB);
    let tenant = pool.master.tenant("other").unwrap();
    let mut caller = pool.caller(2);
    pool.put("k", 10).unwrap();
    caller.tenant = tenant;
    assert_eq!(pool.master.get(pool.now, caller, key("k")), Err(GetError::NotFound));
    assert!(pool.master.put_start(pool.now, caller, key("k"), 5, &PutOptions::default()).is_ok());
    assert_eq!(pool.get("k"), Ok(10));
    caller.tenant = TenantId(77);
    let unknown = pool.master.put_start(pool.now, caller, key("k"), 5, &PutOptions::default());
    assert_eq!(unknown, Err(PutError::Tenant));
    assert_eq!(
        (pool.master.tenant_name(tenant), pool.master.tenant_name(TenantId(77))),
        (Some("other"), None)
    );
}

/// Queries over all segments: names need not be unique, and a silent member fails none of them.
#[test]
fn a_silent_member_fails_no_query() {
    let (mut pool, a, b) = two_nodes();
    on(b, &mut pool, "b");
    pool.pass(10);
    assert_eq!(pool.master.status(Incarnation(4)), ClientStatus::Disconnected);
    let named = |name: &str| -> Vec<_> {
        pool.master
            .segments_named(name)
            .map(|found| (found.id, found.used, found.len, found.visible))
            .collect()
    };
    let (open, hidden) = (Visibility::Open, Visibility::Hidden);
    assert_eq!(named("memory"), [(a, 0, 16 * MIB, open), (b, 1_024, 16 * MIB, hidden)]);
    assert_eq!(named("nowhere"), []);
    assert_eq!(pool.master.segments().map(|found| found.id).collect::<Vec<_>>(), [a, b]);
    let silent = pool.master.member_of(Incarnation(4)).unwrap();
    assert_eq!((silent.name, silent.status), ("other", ClientStatus::Disconnected));
    // A replica tells its segment and its owner, also while nobody can read it.
    let caller = Caller { incarnation: Incarnation(2), tenant: TenantId(0), request: 0 };
    let replicas = pool.master.stat(pool.now, caller, key("b")).unwrap().replicas;
    assert_eq!((replicas.len(), replicas[0].segment, replicas[0].owner), (1, b, silent.id));
}

#[test]
fn members_are_walked_in_order_until_the_visitor_has_enough() {
    let mut pool = Pool::new(0);
    let node = Member { address: "[2001:db8::1]:7000", ..member("served") };
    pool.master.register(pool.now, Incarnation(4), &node).unwrap();
    let names = |pool: &Pool| pool.master.members().map(|member| member.name.to_owned()).collect::<Vec<_>>();
    assert_eq!(names(&pool), ["node", "one", "two", "served"]);
    let mut seen = Vec::new();
    let ended = pool.master.members().try_for_each(|member| {
        seen.push(member.name);
        if member.name == "one" { Err("enough") } else { Ok(()) }
    });
    assert_eq!((ended, seen), (Err("enough"), vec!["node", "one"]));
    let address = |life| pool.master.member_of(Incarnation(life)).map(|member| member.address);
    assert_eq!((address(4), address(1), address(99)), (Some("[2001:db8::1]:7000"), Some(""), None));
    pool.master.leave(pool.now, Incarnation(2));
    assert_eq!(names(&pool), ["node", "two", "served"]);
}
