//! Many writers and readers at once, and tenants that do not see each other.

use std::sync::Barrier;
use std::thread;

use springtide::{Blocking, ClientConfig, Code, Forcing, Pattern, PutOptions, Transports};

use crate::support::{KIB, MIB, Pool, connect, keys, pattern, refused};

#[test]
fn what_is_there_is_not_replaced() {
    let pool = Pool::new(&["16MiB"]);
    let (first, second) = (pool.caller(), pool.caller());
    first.put(b"k", b"old value", &PutOptions::default()).unwrap();
    for caller in [&first, &second] {
        let again = caller.put(b"k", b"new", &PutOptions::default());
        refused(again, Code::OBJECT_ALREADY_EXISTS, &["exists already", "-705"]);
    }
    assert_eq!(second.get(b"k").unwrap(), b"old value");
    let again = pool.run(&["put", "k", "/dev/null"]);
    again.failed(1, &["put \"k\"", "exists already", "-705", "springtide rm"]);
    assert_eq!(pool.figure("pool", "objects"), 1);
}

/// Case 4 a: exactly one of two values, never a mix, and the loser learns that it lost.
#[test]
fn of_two_writers_one_wins_whole() {
    let pool = Pool::new(&["32MiB", "32MiB"]);
    let callers = [pool.caller(), pool.caller()];
    let values = [vec![0x11; MIB], vec![0x22; MIB]];
    for round in 0..12 {
        let (key, barrier) = (format!("k{round}"), Barrier::new(2));
        let results: Vec<_> = thread::scope(|scope| {
            let writers: Vec<_> = callers
                .iter()
                .zip(&values)
                .map(|(caller, value)| {
                    scope.spawn(|| {
                        barrier.wait();
                        caller.put(key.as_bytes(), value, &PutOptions::default())
                    })
                })
                .collect();
            writers.into_iter().map(|writer| writer.join().unwrap()).collect()
        });
        let winner = results.iter().position(Result::is_ok).expect("one of them wins");
        refused(results[1 - winner].clone(), Code::OBJECT_ALREADY_EXISTS, &["-705"]);
        for caller in &callers {
            assert!(caller.get(key.as_bytes()).unwrap() == values[winner], "{key}");
        }
    }
}

/// Case 4 d: many writers of the same keys, small values, so that extents granted ahead are used.
#[test]
fn of_eight_writers_of_the_same_keys_one_wins_each() {
    let pool = Pool::new(&["32MiB"]);
    let callers: Vec<_> = (0..4).map(|_| pool.caller()).collect();
    let wins: Vec<Vec<bool>> = thread::scope(|scope| {
        let writers: Vec<_> = (0..8u64)
            .map(|writer| {
                let caller = &callers[writer as usize % 4];
                scope.spawn(move || {
                    let put = |n: u64| {
                        let key = format!("k{n}");
                        match caller.put(key.as_bytes(), &pattern(writer, 4 * KIB), &PutOptions::default()) {
                            Ok(()) => true,
                            Err(error) => {
                                assert_eq!(error.code(), Code::OBJECT_ALREADY_EXISTS, "{error}");
                                false
                            }
                        }
                    };
                    (0..100).map(put).collect()
                })
            })
            .collect();
        writers.into_iter().map(|writer| writer.join().unwrap()).collect()
    });
    for n in 0..100 {
        let won = |wins: &Vec<bool>| wins.get(n) == Some(&true);
        let winners: Vec<usize> = (0..8).filter(|&writer| won(&wins[writer])).collect();
        let [winner] = winners[..] else { panic!("k{n} was won by {winners:?}") };
        let got = callers[0].get(format!("k{n}").as_bytes()).unwrap();
        assert!(got == pattern(winner as u64, 4 * KIB), "k{n}");
    }
    callers.into_iter().for_each(Blocking::close);
    crate::support::eventually(crate::support::PATIENCE, "no extent stays granted", || {
        let pool = &pool.status()["pool"];
        (pool["writing"] == 0 && pool["objects"] == 100 && pool["used"] == 100 * 4 * KIB).then_some(())
    });
}

/// One blocking client serves eight threads at once: each drives what it waits for, and none starves.
#[test]
fn eight_threads_share_one_blocking_client() {
    let pool = Pool::new(&["64MiB", "64MiB"]);
    let caller = pool.caller();
    thread::scope(|scope| {
        for seed in 0..8u64 {
            let caller = caller.clone();
            scope.spawn(move || {
                for n in 0..40 {
                    let (key, len) = (format!("{seed}-{n}"), [100, 5 * KIB, 70 * KIB, 300 * KIB][n % 4]);
                    let value = pattern(seed * 100 + n as u64, len);
                    caller.put(key.as_bytes(), &value, &PutOptions::default()).unwrap();
                    assert!(caller.get(key.as_bytes()).unwrap() == value, "{key}");
                    let last = format!("{}-{n}", (seed + 1) % 8);
                    match caller.get(last.as_bytes()) {
                        Ok(got) => assert!(got == pattern((seed + 1) % 8 * 100 + n as u64, len), "{last}"),
                        Err(error) => {
                            let known = [Code::OBJECT_NOT_FOUND, Code::REPLICA_IS_NOT_READY];
                            assert!(known.contains(&error.code()), "{error}");
                        }
                    }
                }
            });
        }
    });
    assert_eq!(keys(&caller, Pattern::All).len(), 320);
}

#[test]
fn tenants_do_not_see_each_other() {
    let pool = Pool::new(&["16MiB"]);
    let tenant = |name: &str| {
        let tenant = name.to_owned();
        pool.caller_with(&Transports::default(), |config| ClientConfig { tenant, ..config })
    };
    let (a, b) = (tenant("a"), tenant("b"));
    a.put(b"k", b"of a", &PutOptions::default()).unwrap();
    assert!(!b.exists(b"k").unwrap());
    refused(b.get(b"k"), Code::OBJECT_NOT_FOUND, &[]);
    refused(b.remove(b"k", Forcing::Yes), Code::OBJECT_NOT_FOUND, &[]);
    b.put(b"k", b"of b", &PutOptions::default()).unwrap();
    b.put(b"only b", b"x", &PutOptions::default()).unwrap();
    assert_eq!((a.get(b"k").unwrap(), b.get(b"k").unwrap()), (b"of a".to_vec(), b"of b".to_vec()));
    assert_eq!(keys(&a, Pattern::All), [b"k"]);
    assert_eq!(keys(&b, Pattern::All).len(), 2);
    let gone = b.run(b.client().remove_matching(Pattern::Regex(".*"), Forcing::Yes)).unwrap();
    assert_eq!((gone, a.get(b"k").unwrap()), ((2, 0), b"of a".to_vec()));

    assert_eq!(pool.run(&["get", "k", "--tenant", "a"]).done().out(), "of a");
    pool.run(&["get", "k"]).failed(1, &["-704"]);
    assert_eq!(pool.run(&["ls", "--json", "--tenant", "c"]).done().json().as_array().unwrap().len(), 0);
}

#[test]
fn a_tenant_without_a_name_is_refused_with_a_reason() {
    let pool = Pool::new(&[]);
    for tenant in [String::new(), "t".repeat(256)] {
        let named = tenant.clone();
        let set = |config| ClientConfig { tenant: named, ..config };
        let refusal = connect(pool.socket(), &Transports::default(), set).map(drop);
        refused(refusal, Code::INVALID_PARAMS, &["1 to 255 bytes"]);
        pool.run(&["ls", "--tenant", &tenant]).failed(1, &["1 to 255 bytes"]);
    }
}
