//! Case 30: a client that stays while a node lives many lives. Alone in its program, as it counts what the whole process
//! holds.

use std::fs;

use springtide::{Code, PutOptions, Transports, Use};

#[path = "e2e/support.rs"]
#[allow(dead_code, reason = "the e2e suite uses the rest")]
mod support;

use support::{Caller, KIB, PATIENCE, Pool, eventually, pattern};

/// Lives of the node.
const LIVES: u64 = 40;

/// What this process holds: descriptors, and pieces of mapped memory that others lend.
fn held() -> (usize, usize) {
    let descriptors = fs::read_dir("/proc/self/fd").unwrap().count();
    let maps = fs::read_to_string("/proc/self/maps").unwrap();
    (descriptors, maps.lines().filter(|line| line.contains("memfd:")).count())
}

/// Writes to the node as it is now and reads; meets wrong bytes never.
fn use_it(caller: &Caller, life: u64) {
    let value = pattern(life, 10 * KIB);
    let key = format!("k{life}-{:p}", caller);
    eventually(PATIENCE, "the node of this life is used", || {
        let begun = support::now();
        let put = caller.put(key.as_bytes(), &value, &PutOptions::default());
        eprintln!("{key}: {put:?} {:?}", support::now().since(begun));
        match put {
            Ok(()) => Some(()),
            Err(error) => {
                let known = [Code::NO_AVAILABLE_HANDLE, Code::TRANSFER_FAIL, Code::ILLEGAL_CLIENT];
                assert!(known.contains(&error.code()), "{error}");
                None
            }
        }
    });
    // What lay on nodes that were killed is looked for once more; the others are left alone.
    let old = life.checked_sub(1).filter(|before| before % 2 == 0);
    for before in old.into_iter().chain([life]) {
        match caller.get(format!("k{before}-{:p}", caller).as_bytes()) {
            Ok(got) => assert!(got == pattern(before, 10 * KIB)),
            Err(error) => {
                let known =
                    [Code::OBJECT_NOT_FOUND, Code::TRANSFER_FAIL, Code::UNAVAILABLE_IN_CURRENT_STATUS];
                assert!(before < life && known.contains(&error.code()), "{error}");
            }
        }
    }
}

#[test]
fn a_client_keeps_nothing_of_the_lives_of_a_node() {
    let mut pool = Pool::with(&["--client-ttl", "2s", "--crashed-ttl", "2s"], &[]);
    let callers = [(Use::Yes, Use::No), (Use::No, Use::Yes)].map(|(shm, tcp)| {
        pool.caller_with(&Transports { shm, tcp, ..Transports::default() }, |config| config)
    });
    let mut counts = Vec::new();
    for life in 0..LIVES {
        // Another port each time, so that nobody waits for the earlier life to be dropped.
        pool.add(&["--memory", "4MiB", "--name", "node-a"]);
        callers.iter().for_each(|caller| use_it(caller, life));
        if life % 2 == 0 {
            pool.nodes[0].kill();
        }
        // One that takes leave is never looked for again by anybody.
        pool.nodes.clear();
        counts.push(held());
    }
    let (settled, last) = (counts[counts.len() / 2], counts[counts.len() - 1]);
    assert!(last.0 <= settled.0 + 8 && last.1 <= settled.1 + 4, "{counts:?}");
    // The pool forgot all but the last lives long ago.
    eventually(PATIENCE, "nothing is left", || {
        let status = pool.status();
        let nodes = status["members"].as_array().unwrap().iter().filter(|member| member["name"] == "node-a");
        (nodes.count() == 0 && status["segments"].as_array().unwrap().is_empty()).then_some(())
    });
}
