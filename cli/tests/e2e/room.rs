//! Where values go, and what happens when there is no room.

use springtide::{Code, Forcing, PutOptions};

use crate::support::{KIB, MIB, PATIENCE, Pool, eventually, pattern, refused};

/// Case 7 a: larger than every segment is a lasting error, and nothing is given up for it.
#[test]
fn what_never_fits_is_refused_at_once() {
    let pool = Pool::new(&["16MiB", "8MiB"]);
    let caller = pool.caller();
    for n in 0..12 {
        caller.put(format!("k{n}").as_bytes(), &pattern(n, MIB), &PutOptions::default()).unwrap();
    }
    let before = pool.status();
    let large = pattern(99, 17 * MIB);
    let refusal = caller.put(b"large", &large, &PutOptions::default());
    refused(refusal, Code::NEVER_FITS, &["larger than every segment", "16777216 bytes", "-1908"]);
    // Block sums need room, too.
    let exact = caller.put(b"exact", &large[..16 * MIB], &PutOptions::default());
    refused(exact, Code::NEVER_FITS, &["16777216 bytes"]);
    let file = pool.folder().join("large");
    std::fs::write(&file, &large).unwrap();
    let put = pool.run(&["put", "large", file.to_str().unwrap()]);
    put.failed(1, &["put \"large\"", "larger than every segment", "16777216", "--memory"]);
    let after = pool.status();
    assert_eq!(after["counters"]["evicted"], 0);
    assert_eq!(after["pool"]["used"], before["pool"]["used"]);
    assert!(!caller.exists(b"large").unwrap());
    pool.serves("after");
}

#[test]
fn without_a_node_there_is_no_room_and_it_says_so() {
    let pool = Pool::new(&[]);
    let refusal = pool.caller().put(b"k", b"v", &PutOptions::default());
    refused(refusal, Code::NO_AVAILABLE_HANDLE, &["start a node", "-200"]);
    pool.run(&["put", "k", "/dev/null"]).failed(1, &["start a node"]);
    let status = pool.run(&["status"]).done().out();
    assert!(status.contains("springtide node --memory"), "{status}");
}

/// A full pool gives up what was used least, and goes on.
#[test]
fn a_full_pool_evicts_and_serves() {
    let pool = Pool::new(&["16MiB"]);
    let caller = pool.caller();
    for n in 0..60 {
        caller.put(format!("k{n}").as_bytes(), &pattern(n, MIB), &PutOptions::default()).unwrap();
    }
    let status = pool.status();
    assert!(status["counters"]["evicted"].as_u64().unwrap() >= 44, "{status}");
    assert!(status["pool"]["used"].as_u64().unwrap() <= 16 << 20);
    assert!(caller.get(b"k59").unwrap() == pattern(59, MIB));
    let mut there = 0;
    for n in 0..60 {
        match caller.get(format!("k{n}").as_bytes()) {
            Ok(value) => {
                assert!(value == pattern(n, MIB));
                there += 1;
            }
            Err(error) => assert_eq!(error.code(), Code::OBJECT_NOT_FOUND),
        }
    }
    assert!((8..=15).contains(&there), "{there}");
}

/// A value that takes more than the high watermark allows is not given up for its own sake, only for another.
#[test]
fn a_value_that_fills_the_pool_stays_until_another_needs_its_room() {
    let pool = Pool::new(&["16MiB"]);
    let caller = pool.caller();
    for n in 0..3u64 {
        let value = pattern(n, 15 * MIB + 512 * KIB);
        caller.put(format!("k{n}").as_bytes(), &value, &PutOptions::default()).unwrap();
        let stat = caller.run(caller.client().stat(format!("k{n}").as_bytes())).unwrap();
        assert_eq!((stat.len, pool.figure("counters", "evicted")), (value.len() as u64, n));
    }
    assert!(caller.get(b"k2").unwrap() == pattern(2, 15 * MIB + 512 * KIB));
}

/// What nobody may give up stays, the newcomer is refused with the size of the largest hole, and when room is made the
/// pool goes on.
#[test]
fn a_pool_full_of_pinned_values_refuses_and_serves() {
    let pool = Pool::new(&["8MiB"]);
    let caller = pool.caller();
    let pinned = PutOptions { hard_pin: true, ..PutOptions::default() };
    let full = (0..9).find(|n| caller.put(format!("k{n}").as_bytes(), &pattern(*n, MIB), &pinned).is_err());
    let full = full.expect("eight MiB and their sums do not fit");
    let refusal = caller.put(b"more", &pattern(50, MIB), &PutOptions::default());
    refused(
        refusal,
        Code::NO_AVAILABLE_HANDLE,
        &["largest hole has", "bytes", "try again or add memory", "-200"],
    );
    let file = pool.folder().join("more");
    std::fs::write(&file, pattern(50, MIB)).unwrap();
    let put = pool.run(&["put", "more", file.to_str().unwrap()]);
    put.failed(1, &["largest hole has", "add"]);
    for n in 0..full {
        assert!(caller.get(format!("k{n}").as_bytes()).unwrap() == pattern(n, MIB));
    }
    assert_eq!(pool.figure("counters", "evicted"), 0);
    assert!(pool.figure("counters", "refused_for_space") >= 2);
    caller.put(b"small", &pattern(51, 4 * KIB), &PutOptions::default()).unwrap();
    // Room that another node brings is used.
    let mut pool = pool;
    pool.add(&["--memory", "8MiB"]);
    caller.put(b"more", &pattern(50, MIB), &PutOptions::default()).unwrap();
    assert!(caller.get(b"more").unwrap() == pattern(50, MIB));
}

/// What is being read is not given up; when its lease ends it is.
#[test]
fn leases_hold_values_until_they_end() {
    let pool = Pool::with(&["--lease", "3s"], &["8MiB"]);
    let caller = pool.caller();
    for n in 0..7 {
        caller.put(format!("k{n}").as_bytes(), &pattern(n, MIB), &PutOptions::default()).unwrap();
    }
    for n in 0..7 {
        assert!(caller.get(format!("k{n}").as_bytes()).unwrap() == pattern(n, MIB));
    }
    let refusal = caller.put(b"more", &pattern(7, MIB), &PutOptions::default());
    refused(refusal, Code::NO_AVAILABLE_HANDLE, &["try again"]);
    assert!(pool.figure("counters", "blocked_by_leases") >= 1);
    eventually(PATIENCE, "the leases end", || {
        caller.put(b"more", &pattern(7, MIB), &PutOptions::default()).ok()
    });
    assert!(caller.get(b"more").unwrap() == pattern(7, MIB));
}

/// Case 8, small: after everything is removed, a value almost as large as the segment fits.
#[test]
fn an_emptied_pool_is_one_hole_again() {
    let pool = Pool::new(&["16MiB"]);
    let caller = pool.caller();
    for round in 0..3u64 {
        for n in 0..150u64 {
            let len = 1_000 + (pattern(n, 8)[0] as usize) * 300;
            caller.put(format!("{round}-{n}").as_bytes(), &pattern(n, len), &PutOptions::default()).unwrap();
        }
        for n in (0..150).rev() {
            caller.remove(format!("{round}-{n}").as_bytes(), Forcing::No).unwrap();
        }
        // Extents granted ahead for the last length may still be on their way back.
        let large = pattern(round, 15 * MIB);
        eventually(PATIENCE, "all is one hole", || caller.put(b"large", &large, &PutOptions::default()).ok());
        assert!(caller.get(b"large").unwrap() == large);
        caller.remove(b"large", Forcing::Yes).unwrap();
        eventually(PATIENCE, "its lease ends", || (pool.figure("pool", "used") == 0).then_some(()));
    }
}

#[test]
fn preferred_nodes_come_first_and_unknown_ones_do_not_matter() {
    let mut pool = Pool::new(&[]);
    for name in ["node-a", "node-b", "node-c"] {
        pool.add(&["--memory", "16MiB", "--name", name]);
    }
    let caller = pool.caller();
    let used = |node: &str| {
        let status = pool.status();
        let segments = status["segments"].as_array().unwrap();
        let found = segments.iter().find(|segment| segment["owner"] == node).unwrap();
        found["used"].as_u64().unwrap()
    };
    // By the segment's name, as programs know it, and by the node's, as people do.
    for (n, name) in ["node-b/0", "node-b"].into_iter().enumerate() {
        let preferred = [name];
        let options = PutOptions { preferred: &preferred, ..PutOptions::default() };
        for m in 0..4 {
            caller.put(format!("{n}-{m}").as_bytes(), &pattern(m, 300 * KIB), &options).unwrap();
        }
    }
    assert!(used("node-b") >= (8 * 300) << 10 && used("node-a") == 0 && used("node-c") == 0);
    let file = pool.folder().join("value");
    std::fs::write(&file, pattern(8, 300 * KIB)).unwrap();
    let file = file.to_str().unwrap();
    pool.run(&["put", "preferred", file, "--prefer", "nowhere", "--prefer", "node-c"]).done();
    assert!(used("node-c") >= 300 << 10);
    let options = PutOptions { preferred: &["nowhere"], ..PutOptions::default() };
    caller.put(b"unknown", &pattern(9, 300 * KIB), &options).unwrap();
    let many = PutOptions { preferred: &["a"; 9], ..PutOptions::default() };
    refused(caller.put(b"many", b"x", &many), Code::INVALID_PARAMS, &["at most 8"]);
}

#[test]
fn replicas_lie_on_distinct_nodes_as_far_as_there_are_some() {
    let pool = Pool::new(&["16MiB", "16MiB"]);
    let caller = pool.caller();
    for (key, replicas, got) in [("one", 1, 1), ("two", 2, 2), ("eight", 8, 2)] {
        let options = PutOptions { replicas, ..PutOptions::default() };
        caller.put(key.as_bytes(), &pattern(4, MIB + 7), &options).unwrap();
        assert_eq!(caller.run(caller.client().stat(key.as_bytes())).unwrap().replicas, got, "{key}");
        let found = caller.run(caller.client().locate(key.as_bytes())).unwrap();
        let mut segments: Vec<_> = found.replicas.iter().map(|replica| replica.segment).collect();
        segments.dedup();
        assert_eq!(segments.len(), usize::from(got));
        assert!(caller.get(key.as_bytes()).unwrap() == pattern(4, MIB + 7));
    }
    for replicas in [0, 9] {
        let options = PutOptions { replicas, ..PutOptions::default() };
        refused(caller.put(b"k", b"x", &options), Code::INVALID_PARAMS, &["-600"]);
    }
    pool.run(&["put", "k", "/dev/null", "--replicas", "9"]).failed(2, &["1..=8"]);
}

#[test]
fn memory_is_lent_in_whole_granules() {
    let pool = Pool::new(&["1000001"]);
    assert_eq!(pool.figure("pool", "capacity"), 1_000_000 / 64 * 64);
    pool.serves("odd");
    pool.run(&["node", "--memory", "63"]).failed(1, &["63 bytes are too little", "64"]);
}
