//! Masters and nodes that come back.

use core::time::Duration;

use springtide::{ClientConfig, Code, PutOptions, Transports, Use};

use crate::faults::QUICK;
use crate::support::{KIB, MIB, PATIENCE, Pool, eventually, now, pattern, refused, signal};

fn short(config: ClientConfig) -> ClientConfig {
    ClientConfig { timeout: Duration::from_secs(5), ..config }
}

fn healthy(pool: &Pool, name: &str) -> bool {
    let status = pool.status();
    let members = status["members"].as_array().unwrap();
    let named = || members.iter().filter(|member| member["name"] == name);
    named().count() == 1 && named().all(|member| member["status"] == "healthy" && member["segments"] == 1)
}

/// Case 30: the same name at the same port, another life.
#[test]
fn a_restarted_node_rejoins_by_itself() {
    let mut pool = Pool::with(&QUICK, &[]);
    let arguments = ["--memory", "16MiB", "--name", "node-a"];
    let listen = pool.add(&arguments).address().to_string();
    let callers = [Use::Yes, Use::No].map(|shm| {
        let caller = pool.caller_with(&Transports { shm, ..Transports::default() }, short);
        caller.put(format!("{shm:?}").as_bytes(), &pattern(1, MIB), &PutOptions::default()).unwrap();
        caller
    });
    for round in 0..2 {
        pool.nodes[0].kill();
        pool.nodes.clear();
        let again = [&arguments[..], &["--listen", &listen]].concat();
        pool.add(&again);
        assert_eq!(pool.nodes[0].address().to_string(), listen);
        eventually(PATIENCE, "one node of that name, healthy", || healthy(&pool, "node-a").then_some(()));
        for caller in &callers {
            for shm in ["Yes", "No"] {
                match caller.get(shm.as_bytes()) {
                    Ok(_) => panic!("what was in the memory of the dead"),
                    Err(error) => assert_eq!(error.code(), Code::OBJECT_NOT_FOUND, "{error}"),
                }
            }
            let key = format!("{round}-{:p}", caller);
            caller.put(key.as_bytes(), &pattern(2, MIB), &PutOptions::default()).unwrap();
            assert!(caller.get(key.as_bytes()).unwrap() == pattern(2, MIB));
        }
    }
}

#[test]
fn a_restarted_master_finds_its_nodes_again_and_nothing_else() {
    let mut pool = Pool::with(&QUICK, &["16MiB", "16MiB"]);
    let old: Vec<_> = [Use::Yes, Use::No]
        .map(|shm| pool.caller_with(&Transports { shm, ..Transports::default() }, short))
        .into();
    for n in 0..20u64 {
        // Small values, so that extents granted ahead are at hand when the master goes.
        old[n as usize % 2]
            .put(format!("k{n}").as_bytes(), &pattern(n, 4 * KIB), &PutOptions::default())
            .unwrap();
    }
    pool.restart_master();
    let begun = now();
    eventually(PATIENCE, "both nodes register again", || {
        (pool.status()["segments"].as_array().unwrap().len() == 2).then_some(())
    });
    let took = now().since(begun);
    assert!(took < Duration::from_secs(6), "{took:?}");
    let new = pool.caller_with(&Transports::default(), short);
    for caller in old.iter().chain([&new]) {
        for n in 0..20 {
            refused(caller.get(format!("k{n}").as_bytes()), Code::OBJECT_NOT_FOUND, &["-704"]);
        }
    }
    for (who, caller) in old.iter().chain([&new]).enumerate() {
        for n in 0..20u64 {
            let key = format!("{who}-{n}");
            let len = [4 * KIB, MIB / 2][n as usize % 2];
            caller.put(key.as_bytes(), &pattern(n, len), &PutOptions::default()).unwrap();
            assert!(new.get(key.as_bytes()).unwrap() == pattern(n, len), "{key}");
        }
    }
    assert_eq!(pool.figure("pool", "objects"), 60);
}

/// Calls end by their deadline while the master is away, and work again when it is back.
#[test]
fn without_a_master_calls_end_in_time() {
    let mut pool = Pool::with(&QUICK, &["16MiB"]);
    let quick = |config| ClientConfig { timeout: Duration::from_secs(1), ..config };
    let caller = pool.caller_with(&Transports::default(), quick);
    caller.put(b"k", b"value", &PutOptions::default()).unwrap();
    pool.master.kill();
    let begun = now();
    let parts = ["no connection", "refused"];
    for error in [
        caller.get(b"k").unwrap_err(),
        caller.put(b"other", b"value", &PutOptions::default()).unwrap_err(),
        caller.exists(b"k").unwrap_err(),
    ] {
        assert!([Code::RPC_TIMEOUT, Code::RPC_FAIL].contains(&error.code()), "{error}");
    }
    let _ = parts;
    assert!(now().since(begun) < Duration::from_secs(10));
    pool.restart_master();
    eventually(PATIENCE, "the node is back", || caller.put(b"k", b"again", &PutOptions::default()).ok());
    assert_eq!(caller.get(b"k").unwrap(), b"again");
}

/// A node that stands still for longer than all TTLs and goes on: it is nobody until it has registered again.
#[test]
fn a_node_that_stood_still_rejoins_without_wrong_bytes() {
    let mut pool = Pool::with(&QUICK, &[]);
    for name in ["node-a", "node-b"] {
        pool.add(&["--memory", "32MiB", "--name", name]);
    }
    let id = pool.nodes[0].id();
    let callers: Vec<_> = [Use::Yes, Use::No]
        .map(|shm| pool.caller_with(&Transports { shm, ..Transports::default() }, short))
        .into();
    for n in 0..16u64 {
        callers[0].put(format!("k{n}").as_bytes(), &pattern(n, 300 * KIB), &PutOptions::default()).unwrap();
    }
    signal(id, "STOP");
    eventually(PATIENCE, "it is dropped", || {
        let status = pool.status();
        (status["segments"].as_array().unwrap().len() == 1).then_some(())
    });
    let check = |must_all_be_there: bool| {
        for caller in &callers {
            for n in 0..16u64 {
                match caller.get(format!("k{n}").as_bytes()) {
                    Ok(value) => assert!(value == pattern(n, 300 * KIB), "k{n}"),
                    Err(error) => {
                        assert!(!must_all_be_there && error.code() == Code::OBJECT_NOT_FOUND, "{error}")
                    }
                }
            }
        }
    };
    check(false);
    signal(id, "CONT");
    eventually(PATIENCE, "it rejoins", || healthy(&pool, "node-a").then_some(()));
    check(false);
    // Its memory is used again.
    for n in 0..16u64 {
        let preferred = ["node-a/0"];
        let options = PutOptions { preferred: &preferred, ..PutOptions::default() };
        match callers[n as usize % 2].put(format!("k{n}").as_bytes(), &pattern(n, 300 * KIB), &options) {
            Ok(()) => {}
            Err(error) => assert_eq!(error.code(), Code::OBJECT_ALREADY_EXISTS, "{error}"),
        }
    }
    check(true);
}

/// The whole pool stands still, as a laptop that slept: nobody hands out wrong bytes, and it serves again.
#[test]
fn a_master_that_stood_still_serves_again() {
    let pool = Pool::with(&QUICK, &["16MiB"]);
    let quick = |config| ClientConfig { timeout: Duration::from_secs(1), ..config };
    let caller = pool.caller_with(&Transports::default(), quick);
    caller.put(b"k", &pattern(1, MIB), &PutOptions::default()).unwrap();
    signal(pool.master.id(), "STOP");
    let begun = now();
    let error = caller.put(b"other", b"value", &PutOptions::default()).unwrap_err();
    assert_eq!(error.code(), Code::RPC_TIMEOUT, "{error}");
    eventually(PATIENCE, "longer than the client TTL", || {
        (now().since(begun) > Duration::from_millis(2_500)).then_some(())
    });
    signal(pool.master.id(), "CONT");
    eventually(PATIENCE, "it serves again", || match caller.get(b"k") {
        Ok(value) => {
            assert!(value == pattern(1, MIB));
            Some(())
        }
        Err(error) => (error.code() == Code::OBJECT_NOT_FOUND).then_some(()),
    });
    eventually(PATIENCE, "puts work again", || caller.put(b"new", b"value", &PutOptions::default()).ok());
}
