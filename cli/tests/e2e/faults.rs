//! Nodes and clients that die in the middle of things.

use core::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use core::time::Duration;
use std::thread;

use springtide::core::id::Incarnation;
use springtide::core::wire::codec;
use springtide::core::wire::message::{self, Finished, Refusal};
use springtide::{ClientConfig, Code, Error, Forcing, PutOptions, Transports, Use};

use crate::raw::Raw;
use crate::support::{Caller, KIB, MIB, PATIENCE, Pool, eventually, now, pattern, refused, signal};

/// A master that soon notices who is gone.
pub(crate) const QUICK: [&str; 4] = ["--client-ttl", "2s", "--crashed-ttl", "3s"];

/// What a call may say while a node is dying. Anything but wrong bytes, a panic or a hang.
fn is_bearable(error: &Error) {
    let known = [
        Code::OBJECT_NOT_FOUND,
        Code::OBJECT_ALREADY_EXISTS,
        Code::TRANSFER_FAIL,
        Code::UNAVAILABLE_IN_CURRENT_STATUS,
        Code::RPC_TIMEOUT,
        Code::NO_AVAILABLE_HANDLE,
        Code::LEASE_EXPIRED,
    ];
    assert!(known.contains(&error.code()), "{error}");
}

/// Each transport alone.
fn each_transport() -> [Transports; 2] {
    let (yes, no) = (Use::Yes, Use::No);
    [(yes, no), (no, yes)].map(|(shm, tcp)| Transports { shm, tcp, ..Transports::default() })
}

fn short(config: ClientConfig) -> ClientConfig {
    ClientConfig { timeout: Duration::from_secs(5), ..config }
}

#[test]
fn a_node_killed_in_the_middle_of_puts_costs_only_what_it_had() {
    for which in each_transport() {
        let mut pool = Pool::with(&QUICK, &["128MiB", "128MiB"]);
        let (caller, checker) = (pool.caller_with(&which, short), pool.caller());
        let (begun, stop) = (AtomicU64::new(0), AtomicBool::new(false));
        let stored: Vec<u64> = thread::scope(|scope| {
            let writer = scope.spawn(|| {
                let mut stored = Vec::new();
                for n in 0..1_000 {
                    if stop.load(Ordering::Relaxed) {
                        break;
                    }
                    let value = pattern(n % 4, 8 * MIB);
                    begun.store(n, Ordering::Relaxed);
                    match caller.put(format!("k{n}").as_bytes(), &value, &PutOptions::default()) {
                        Ok(()) => stored.push(n),
                        Err(error) => is_bearable(&error),
                    }
                }
                stored
            });
            eventually(PATIENCE, "puts are under way", || (begun.load(Ordering::Relaxed) > 3).then_some(()));
            pool.nodes[0].kill();
            let killed = begun.load(Ordering::Relaxed);
            eventually(PATIENCE, "puts go on without it", || {
                (begun.load(Ordering::Relaxed) > killed + 3).then_some(())
            });
            stop.store(true, Ordering::Relaxed);
            writer.join().unwrap()
        });
        eventually(PATIENCE, "the node is dropped", || {
            (pool.status()["members"].as_array().unwrap().iter().filter(|m| m["segments"] != 0).count() == 1)
                .then_some(())
        });
        let mut kept = 0;
        for &n in &stored {
            match checker.get(format!("k{n}").as_bytes()) {
                Ok(value) => {
                    assert!(value == pattern(n % 4, 8 * MIB), "k{n}");
                    kept += 1;
                }
                Err(error) => assert_eq!(error.code(), Code::OBJECT_NOT_FOUND, "k{n}: {error}"),
            }
        }
        assert!(kept >= 1, "{stored:?}");
        pool.serves("after");
        pool.nodes.remove(0);
    }
}

#[test]
fn a_node_killed_in_the_middle_of_gets_is_made_good_by_another() {
    for which in each_transport() {
        let mut pool = Pool::with(&QUICK, &["64MiB", "64MiB"]);
        let caller = pool.caller_with(&which, short);
        let (both, one) = (pattern(1, 16 * MIB), pattern(2, 8 * MIB));
        let replicas = |replicas| PutOptions { replicas, ..PutOptions::default() };
        caller.put(b"both", &both, &replicas(2)).unwrap();
        for n in 0..4 {
            caller.put(format!("one{n}").as_bytes(), &one, &replicas(1)).unwrap();
        }
        let (gets, stop) = (AtomicU64::new(0), AtomicBool::new(false));
        thread::scope(|scope| {
            let reader = scope.spawn(|| {
                while !stop.load(Ordering::Relaxed) {
                    // Two copies: every single get finds one.
                    assert!(caller.get(b"both").unwrap() == both);
                    for n in 0..4 {
                        match caller.get(format!("one{n}").as_bytes()) {
                            Ok(value) => assert!(value == one),
                            Err(error) => is_bearable(&error),
                        }
                    }
                    gets.fetch_add(1, Ordering::Relaxed);
                }
            });
            let passed = |more: u64| {
                let before = gets.load(Ordering::Relaxed);
                eventually(PATIENCE, "gets go on", || {
                    (gets.load(Ordering::Relaxed) >= before + more || reader.is_finished()).then_some(())
                });
            };
            passed(2);
            pool.nodes[0].kill();
            passed(3);
            stop.store(true, Ordering::Relaxed);
            reader.join().unwrap();
        });
        pool.nodes.remove(0);
    }
}

/// Case 29: 30 keys of one copy and 10 of two on three nodes, one of which is killed.
#[test]
fn a_killed_node_loses_what_had_no_other_copy_and_that_is_said() {
    let mut pool = Pool::with(&QUICK, &[]);
    for name in ["node-a", "node-b", "node-c"] {
        pool.add(&["--memory", "16MiB", "--name", name]);
    }
    let caller = pool.caller_with(&Transports::default(), short);
    let value = |n: u64| pattern(n, 100 * KIB);
    let key = |n: u64| format!("k{n:02}").into_bytes();
    for n in 0..40 {
        let replicas = if n < 30 { 1 } else { 2 };
        caller.put(&key(n), &value(n), &PutOptions { replicas, ..PutOptions::default() }).unwrap();
    }
    let mut dead = None;
    caller
        .run(caller.client().segments(|segment| {
            if segment.owner == "node-a" {
                dead = Some(segment.id);
            }
        }))
        .unwrap();
    let dead = dead.unwrap();
    let sole: Vec<u64> = (0..40)
        .filter(|&n| {
            let found = caller.run(caller.client().locate(&key(n))).unwrap();
            found.replicas.iter().all(|replica| replica.segment == dead)
        })
        .collect();
    assert!((1..30).contains(&sole.len()), "{sole:?}");

    pool.nodes[0].kill();
    let killed = now();
    for n in 30..40 {
        assert!(caller.get(&key(n)).unwrap() == value(n), "two copies: one is left at once");
    }
    let fresh = pool.caller_with(&Transports::default(), short);
    for n in 30..40 {
        assert!(fresh.get(&key(n)).unwrap() == value(n));
    }
    // Within the client TTL the pool says that the node is silent; nothing else is touched by that.
    let silent = eventually(PATIENCE, "status says who is silent", || {
        let status = pool.status();
        let member = status["members"].as_array().unwrap().iter().find(|m| m["name"] == "node-a").cloned();
        member.is_none_or(|member| member["status"] != "healthy").then(|| now().since(killed))
    });
    assert!(silent < Duration::from_secs(10), "{silent:?}");
    eventually(PATIENCE, "the lost keys are counted and gone", || {
        (pool.figure("counters", "lost") == sole.len() as u64).then_some(())
    });
    for caller in [&caller, &fresh] {
        for n in 0..40 {
            let got = caller.get(&key(n));
            if sole.contains(&n) {
                refused(got, Code::OBJECT_NOT_FOUND, &["no such object"]);
                assert!(!caller.exists(&key(n)).unwrap());
            } else {
                assert!(got.unwrap() == value(n), "k{n}");
            }
        }
    }
    let status = pool.status();
    assert_eq!(status["segments"].as_array().unwrap().len(), 2);
    assert_eq!(status["pool"]["objects"], 40 - sole.len());
    let table = pool.run(&["status"]).done().out();
    assert!(
        table.lines().any(|line| line.contains("lost") && line.contains(&sole.len().to_string())),
        "{table}"
    );
    // The lost ones can be put again.
    for &n in &sole {
        caller.put(&key(n), &value(n), &PutOptions::default()).unwrap();
        assert!(fresh.get(&key(n)).unwrap() == value(n));
    }
    pool.nodes.remove(0);
}

fn put_end(raw: &mut Raw, object: springtide::core::id::ObjectId) -> Result<(), Refusal> {
    let mut body = Vec::new();
    codec::put(&mut body, &());
    let checksum = springtide::core::checksum::Checksum::None;
    codec::put(&mut body, &Finished { object, checksum, failed: message::Failed::default() });
    let (_, body) = raw.ask(message::PUT_END, &body);
    let ((), mut tail) = codec::split::<(), Result<(), Refusal>>(&body).unwrap();
    tail.next().unwrap().unwrap()
}

/// Case 10: a writer that goes away between the start and the end of its put.
#[test]
fn an_abandoned_put_is_given_up_and_its_key_is_free_again() {
    let mut options = QUICK.to_vec();
    options.extend(["--put-discard", "2s"]);
    let pool = Pool::with(&options, &["16MiB"]);
    let caller = pool.caller();
    // One keeps its connection and says nothing; one goes without a word; one says the end too late.
    let mut quiet = Raw::greeted(pool.socket(), Incarnation(21));
    quiet.register("quiet");
    let granted = quiet.put_start(b"quiet", MIB as u64).unwrap();
    let mut gone = Raw::greeted(pool.socket(), Incarnation(22));
    gone.register("gone");
    gone.put_start(b"gone", MIB as u64).unwrap();
    drop(gone);
    let value = pattern(3, MIB);
    for key in [&b"quiet"[..], b"gone"] {
        assert!(!caller.exists(key).unwrap());
        refused(caller.put(key, &value, &PutOptions::default()), Code::OBJECT_ALREADY_EXISTS, &["-705"]);
        refused(caller.get(key), Code::REPLICA_IS_NOT_READY, &["being written", "-703"]);
    }
    for key in [&b"quiet"[..], b"gone"] {
        eventually(PATIENCE, "the key is free again", || {
            caller.put(key, &value, &PutOptions::default()).ok()
        });
    }
    let late = put_end(&mut quiet, granted.object).unwrap_err();
    assert!([Code::ILLEGAL_CLIENT, Code::CLIENT_NOT_FOUND].contains(&late.code), "{late}");
    for key in [&b"quiet"[..], b"gone"] {
        assert!(caller.get(key).unwrap() == value);
    }
    assert!(pool.figure("counters", "discarded") >= 2);
    // Its memory comes back once the node has fenced it: room for exactly what is there.
    eventually(PATIENCE, "the memory of abandoned puts comes back", || {
        let status = pool.status();
        let (used, draining) = (status["pool"]["used"].as_u64()?, status["pool"]["draining"].as_u64()?);
        (draining == 0 && used < 2 * MIB as u64 + 64 * KIB as u64).then_some(())
    });
}

/// A client process that is killed while it puts leaves nothing behind.
#[test]
fn a_command_killed_in_the_middle_of_a_put_leaves_nothing() {
    let mut options = QUICK.to_vec();
    options.extend(["--put-discard", "2s"]);
    let pool = Pool::with(&options, &["256MiB"]);
    let file = pool.folder().join("value");
    let value = pattern(4, 128 * MIB);
    std::fs::write(&file, &value).unwrap();
    let mut put = pool.command(&["put", "k", file.to_str().unwrap()]).spawn().unwrap();
    eventually(PATIENCE, "the put is under way", || {
        let done = put.try_wait().unwrap().is_some();
        (done || pool.figure("pool", "writing") > 0).then_some(())
    });
    put.kill().unwrap();
    put.wait().unwrap();
    let caller: Caller = pool.caller();
    let whole = caller.exists(b"k").unwrap();
    if whole {
        // It was quicker than the kill.
        assert!(caller.get(b"k").unwrap() == value);
        return;
    }
    eventually(PATIENCE, "the key is free again", || {
        match caller.put(b"k", &value, &PutOptions::default()) {
            Ok(()) => Some(()),
            Err(error) => {
                assert!(
                    [Code::OBJECT_ALREADY_EXISTS, Code::NO_AVAILABLE_HANDLE].contains(&error.code()),
                    "{error}"
                );
                None
            }
        }
    });
    assert!(caller.get(b"k").unwrap() == value);
    caller.remove(b"k", Forcing::Yes).unwrap();
}

/// A node that stands still answers nobody, but its host still acknowledges what is sent to it.
#[test]
fn a_node_that_stands_still_slows_nobody_who_has_another_copy() {
    for which in each_transport() {
        let mut pool = Pool::with(&QUICK, &[]);
        for name in ["node-a", "node-b"] {
            pool.add(&["--memory", "32MiB", "--name", name]);
        }
        let set = |config| ClientConfig { timeout: Duration::from_secs(10), ..config };
        let (warm, cold) = (pool.caller_with(&which, set), pool.caller_with(&which, set));
        let both = PutOptions { replicas: 2, ..PutOptions::default() };
        for n in 0..10 {
            warm.put(format!("k{n}").as_bytes(), &pattern(n, 200 * KIB), &both).unwrap();
        }
        signal(pool.nodes[0].id(), "STOP");
        for caller in [&warm, &cold] {
            for n in 0..10 {
                let begun = now();
                let got = caller.get(format!("k{n}").as_bytes());
                let took = now().since(begun);
                assert!(got.unwrap() == pattern(n, 200 * KIB), "k{n} after {took:?}");
                assert!(took < Duration::from_secs(8), "k{n} took {took:?}");
            }
        }
        // Nor does a batch wait for each of its items.
        let fresh = pool.caller_with(&which, set);
        let names: Vec<String> = (0..10).map(|n| format!("k{n}")).collect();
        let keys: Vec<&[u8]> = names.iter().map(|name| name.as_bytes()).collect();
        for (n, got) in fresh.get_batch(&keys).into_iter().enumerate() {
            assert!(got.unwrap() == pattern(n as u64, 200 * KIB), "k{n}");
        }
        // A put that was given room there is given it elsewhere.
        for n in 0..4 {
            let key = format!("new{n}");
            fresh.put(key.as_bytes(), &pattern(n, 200 * KIB), &PutOptions::default()).unwrap();
            assert!(fresh.get(key.as_bytes()).unwrap() == pattern(n, 200 * KIB));
        }
        signal(pool.nodes[0].id(), "CONT");
    }
}
