//! Public failures of systems like this one, over real processes (`tests/CASES.md`).

use core::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use core::time::Duration;
use std::collections::BTreeSet;
use std::io::{BufRead, BufReader};
use std::net::{TcpListener, TcpStream};
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::{Child, Stdio};
use std::sync::Barrier;
use std::thread;

use springtide::core::wire::message;
use springtide::{ClientConfig, Code, Forcing, PutOptions, Transports, Use};
use springtide_cli::commands::ready::Role;
use springtide_cli::process::Service;

use crate::faults::QUICK;
use crate::proxy::{Lost, Proxy};
use crate::support::{
    Caller, EXIT, KIB, MIB, PATIENCE, Pool, connect, ended, eventually, now, pattern, run, signal, springtide,
};

fn options() -> PutOptions<'static> {
    PutOptions::default()
}

/// A caller behind a wire that loses things.
fn behind(proxy: &Proxy) -> Caller {
    connect(proxy.address(), &Transports::default(), |config| config).unwrap()
}

/// Case 40: the end of a put is lost, or the answer to it: the caller is told the truth.
#[test]
fn a_put_whose_end_is_lost_ends_all_the_same() {
    let pool = Pool::new(&["32MiB"]);
    let proxy = Proxy::new(pool.socket());
    let (caller, other) = (behind(&proxy), pool.caller());
    // The same length again and again: the later ones end with their keys, on extents granted ahead.
    let small = |n: u64| pattern(n, 4 * KIB);
    for n in 0..10 {
        caller.put(format!("warm{n}").as_bytes(), &small(n), &options()).unwrap();
    }
    let ends = [(message::PUT_END, MIB), (message::PUBLISH, 4 * KIB)];
    for (n, (method, len)) in ends.into_iter().enumerate() {
        for lost in [Lost::Request, Lost::Answer] {
            let (key, value) = (format!("{n}-{lost:?}"), pattern(n as u64, len));
            let before = proxy.lost();
            proxy.lose(method, lost);
            let put = caller.put(key.as_bytes(), &value, &options());
            assert_eq!(proxy.lost(), before + 1, "{key}: the put did not go that way");
            put.unwrap_or_else(|error| panic!("{key}: {error}"));
            assert!(other.get(key.as_bytes()).unwrap() == value, "{key}");
            // Put again, it is there: nobody has to guess.
            let again = caller.put(key.as_bytes(), &value, &options()).unwrap_err();
            assert_eq!(again.code(), Code::OBJECT_ALREADY_EXISTS, "{key}");
        }
    }
}

/// Case 40: what is lost before a value is anywhere fails, is not there, and hinders nothing for longer than a put may
/// take.
#[test]
fn what_is_lost_on_the_way_is_never_said_to_have_happened() {
    let pool = Pool::with(&["--put-discard", "2s"], &["32MiB"]);
    let proxy = Proxy::new(pool.socket());
    let (caller, other) = (behind(&proxy), pool.caller());
    let value = pattern(1, MIB);
    for lost in [Lost::Request, Lost::Answer] {
        let key = format!("start-{lost:?}");
        proxy.lose(message::PUT_START, lost);
        match caller.put(key.as_bytes(), &value, &options()) {
            Ok(()) => assert!(other.get(key.as_bytes()).unwrap() == value),
            Err(error) => {
                assert!([Code::RPC_FAIL, Code::RPC_TIMEOUT].contains(&error.code()), "{error}");
                assert!(!other.exists(key.as_bytes()).unwrap());
                eventually(PATIENCE, "the key is free", || {
                    caller.put(key.as_bytes(), &value, &options()).ok()
                });
                assert!(other.get(key.as_bytes()).unwrap() == value);
            }
        }
        let key = format!("removed-{lost:?}");
        caller.put(key.as_bytes(), &value, &options()).unwrap();
        proxy.lose(message::REMOVE, lost);
        let removed = caller.remove(key.as_bytes(), Forcing::No);
        let there = other.exists(key.as_bytes()).unwrap();
        assert!(removed.is_err() || !there, "{removed:?}");
        assert_eq!(there, lost == Lost::Request);
        proxy.lose(message::GET, lost);
        if let Ok(got) = caller.get(b"start-Request") {
            assert!(got == value);
        }
        assert!(caller.get(b"start-Request").unwrap() == value);
    }
    assert_eq!(proxy.lost(), 6);
    eventually(PATIENCE, "nothing stays behind", || {
        let status = pool.status();
        (status["pool"]["writing"] == 0 && status["pool"]["draining"] == 0).then_some(())
    });
}

/// Cases 21 and 31: whichever first call of a node, or its answer, is lost, it joins at once and not a TTL later.
#[test]
fn a_node_whose_first_calls_are_lost_joins_all_the_same() {
    let ttls = ["--client-ttl", "60s", "--crashed-ttl", "10m"];
    let pool = Pool::with(&ttls, &[]);
    let proxy = Proxy::new(pool.socket());
    let program = Path::new(env!("CARGO_BIN_EXE_springtide"));
    let master = proxy.address().to_string();
    for method in [message::REGISTER, message::MOUNT, message::HEARTBEAT] {
        for lost in [Lost::Request, Lost::Answer] {
            let before = proxy.lost();
            proxy.lose(method, lost);
            let arguments = ["--master", &master, "--memory", "4MiB", "--log", "error"];
            let node = Service::start(program, Role::Node, &arguments, PATIENCE).unwrap();
            eventually(PATIENCE, "it was lost", || (proxy.lost() > before).then_some(()));
            let status = pool.status();
            assert_eq!(status["segments"].as_array().unwrap().len(), 1, "{method:?} {lost:?}: {status}");
            assert_eq!(status["pool"]["capacity"], 4 * MIB);
            pool.serves(&format!("{method:?} {lost:?}"));
            node.stop().unwrap();
            // A client that writes is a member, too.
            if method == message::REGISTER {
                proxy.lose(method, lost);
                behind(&proxy).close();
            }
        }
    }
    assert_eq!(pool.status()["segments"].as_array().unwrap().len(), 0);
}

/// Case 21 a: a writer that the master forgot registers again by itself; its caller does not notice.
#[test]
fn a_writer_that_was_forgotten_writes_on() {
    let mut pool = Pool::with(&QUICK, &["16MiB"]);
    let callers = [Use::Yes, Use::No].map(|shm| {
        let caller = pool.caller_with(&Transports { shm, ..Transports::default() }, |config| config);
        caller.put(format!("before {shm:?}").as_bytes(), &pattern(1, KIB), &options()).unwrap();
        caller
    });
    pool.restart_master();
    let fresh = pool.caller();
    eventually(PATIENCE, "the node is back", || fresh.put(b"fresh", b"value", &options()).ok());
    for (n, caller) in callers.iter().enumerate() {
        let value = pattern(2, 300 * KIB);
        caller.put(format!("after {n}").as_bytes(), &value, &options()).unwrap();
        assert!(fresh.get(format!("after {n}").as_bytes()).unwrap() == value);
    }
}

/// Case 21 a: the same when the master is there all the time and only the writer's heartbeats were held up.
#[test]
fn a_writer_whose_heartbeats_were_held_up_writes_on() {
    let pool = Pool::with(&QUICK, &["16MiB"]);
    let proxy = Proxy::new(pool.socket());
    let set = |config| ClientConfig { name: "held up".into(), ..config };
    let caller = connect(proxy.address(), &Transports::default(), set).unwrap();
    let (old, new) = (pattern(1, 300 * KIB), pattern(2, 300 * KIB));
    caller.put(b"old", &old, &options()).unwrap();
    proxy.hold(Some(message::HEARTBEAT));
    eventually(PATIENCE, "the master drops it", || {
        let members = pool.status()["members"].as_array().unwrap().clone();
        (!members.iter().any(|member| member["name"] == "held up")).then_some(())
    });
    proxy.hold(None);
    caller.put(b"new", &new, &options()).unwrap();
    assert!(caller.get(b"new").unwrap() == new && caller.get(b"old").unwrap() == old);
}

/// Case 19: a master that is killed twice in a row, while values are put and read. No wrong bytes, and all is as large
/// as before.
#[test]
fn a_master_that_is_restarted_again_and_again_costs_values_and_nothing_else() {
    let mut pool = Pool::with(&QUICK, &["32MiB", "32MiB"]);
    let capacity = pool.figure("pool", "capacity");
    let short = |config| ClientConfig { timeout: Duration::from_secs(2), ..config };
    let (writer, reader) = (
        pool.caller_with(&Transports::default(), short),
        pool.caller_with(&Transports { shm: Use::No, ..Transports::default() }, short),
    );
    let value = |n: u64| pattern(n, 200 * KIB + n as usize);
    let (put, got, stop) = (AtomicU64::new(0), AtomicU64::new(0), AtomicBool::new(false));
    thread::scope(|scope| {
        let works = scope.spawn(|| {
            for n in 0.. {
                if stop.load(Ordering::Relaxed) {
                    return;
                }
                if writer.put(format!("k{n}").as_bytes(), &value(n), &options()).is_ok() {
                    put.store(n, Ordering::Relaxed);
                }
            }
        });
        let reads = scope.spawn(|| {
            while !stop.load(Ordering::Relaxed) {
                let newest = put.load(Ordering::Relaxed);
                for n in newest.saturating_sub(3)..=newest {
                    if let Ok(read) = reader.get(format!("k{n}").as_bytes()) {
                        assert!(read == value(n), "k{n}");
                        got.fetch_add(1, Ordering::Relaxed);
                    }
                }
            }
        });
        for round in 0..4 {
            let (puts, gets) = (put.load(Ordering::Relaxed), got.load(Ordering::Relaxed));
            eventually(PATIENCE, "values are put and read", || {
                let on = put.load(Ordering::Relaxed) > puts + 5 && got.load(Ordering::Relaxed) > gets + 5;
                (on || works.is_finished() || reads.is_finished()).then_some(())
            });
            pool.restart_master();
            if round % 2 == 1 {
                pool.restart_master();
            }
        }
        stop.store(true, Ordering::Relaxed);
        works.join().unwrap();
        reads.join().unwrap();
    });
    eventually(PATIENCE, "both nodes are back, each once", || {
        let status = pool.status();
        let nodes = status["segments"].as_array().unwrap().len();
        (nodes == 2 && status["pool"]["capacity"] == capacity).then_some(())
    });
    pool.serves("after");
}

/// Case 31: sixteen nodes at the same moment and without a port: sixteen ports, and every one is reached.
#[test]
fn nodes_that_start_together_take_ports_of_their_own() {
    let mut pool = Pool::new(&[]);
    let master = pool.address();
    let barrier = Barrier::new(16);
    let nodes: Vec<Service> = thread::scope(|scope| {
        let starting: Vec<_> = (0..16)
            .map(|n| {
                let (master, barrier) = (&master, &barrier);
                scope.spawn(move || {
                    let name = format!("node-{n}");
                    let arguments =
                        ["--master", master, "--memory", "1MiB", "--log", "error", "--name", &name];
                    barrier.wait();
                    Service::start(
                        Path::new(env!("CARGO_BIN_EXE_springtide")),
                        Role::Node,
                        &arguments,
                        PATIENCE,
                    )
                    .unwrap()
                })
            })
            .collect();
        starting.into_iter().map(|node| node.join().unwrap()).collect()
    });
    let ports: BTreeSet<u16> = nodes.iter().map(|node| node.address().port).collect();
    assert_eq!(ports.len(), 16, "{ports:?}");
    pool.nodes = nodes;
    let caller = pool.caller_with(&Transports { shm: Use::No, ..Transports::default() }, |config| config);
    for n in 0..16 {
        let (key, name) = (format!("k{n}"), format!("node-{n}"));
        let preferred = [&name[..]];
        let put = PutOptions { preferred: &preferred, ..options() };
        caller.put(key.as_bytes(), &pattern(n, 10 * KIB), &put).unwrap();
        assert!(caller.get(key.as_bytes()).unwrap() == pattern(n, 10 * KIB));
    }
    let status = pool.status();
    let used = |segment: &serde_json::Value| segment["used"].as_u64().unwrap() > 0;
    assert!(status["segments"].as_array().unwrap().iter().all(used), "{status}");
}

/// Case 31: of two nodes that start at once on one port exactly one serves; the port next to it may be taken.
#[test]
fn of_two_nodes_on_one_port_one_serves() {
    let mut pool = Pool::new(&[]);
    let (port, _neighbour) = port_with_neighbour_taken();
    let listen = format!("127.0.0.1:{port}");
    let master = pool.address();
    let start = || {
        let mut command = springtide();
        command.args(["node", "--memory", "1MiB", "--master", &master, "--listen", &listen, "--until-eof"]);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        command.spawn().unwrap()
    };
    let mut both = [start(), start()];
    let ended_first = eventually(PATIENCE, "one of them gives up", || {
        both.iter_mut().position(|child| child.try_wait().unwrap().is_some())
    });
    let [first, second] = both;
    let (loser, mut winner) = if ended_first == 0 { (first, second) } else { (second, first) };
    ended(loser, EXIT).failed(1, &["cannot listen on", &listen, "in use", "--listen"]);
    eventually(PATIENCE, "the other one serves", || {
        assert!(winner.try_wait().unwrap().is_none(), "it serves on");
        (pool.status()["segments"].as_array().unwrap().len() == 1).then_some(())
    });
    pool.serves("k");
    drop(winner.stdin.take());
    assert_eq!(ended(winner, EXIT).code, 0);
    // The port is free again at once.
    pool.add(&["--memory", "1MiB", "--listen", &listen]);
    pool.serves("l");
}

/// A free port whose next one is taken, until the listener goes.
fn port_with_neighbour_taken() -> (u16, TcpListener) {
    for _ in 0..100 {
        let free = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = free.local_addr().unwrap().port();
        if let Some(Ok(next)) = port.checked_add(1).map(|next| TcpListener::bind(("127.0.0.1", next))) {
            return (port, next);
        }
    }
    panic!("no two free ports side by side");
}

fn node(master: &str, arguments: &[&str]) -> Child {
    let mut command = springtide();
    command.args(["node", "--memory", "64MiB", "--master", master]).args(arguments);
    command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
}

/// Waits until it says that it is ready; the rest of what it says is kept for its end.
fn await_ready(child: &mut Child) -> BufReader<std::process::ChildStdout> {
    let mut out = BufReader::new(child.stdout.take().unwrap());
    let mut line = String::new();
    while !line.contains("ready at") {
        line.clear();
        assert!(out.read_line(&mut line).unwrap() > 0, "it becomes ready");
    }
    out
}

/// Case 26: TERM twice, and TERM at every moment from its first on: it ends in time, by itself or by the signal.
#[test]
fn signals_at_any_moment_end_a_node_in_time() {
    let pool = Pool::with(&QUICK, &[]);
    let master = pool.address();
    for pair in [["TERM", "TERM"], ["INT", "INT"], ["TERM", "INT"]] {
        let mut child = node(&master, &[]);
        let _out = await_ready(&mut child);
        for name in pair {
            // It may be gone before the second comes.
            let _ = std::process::Command::new("kill")
                .args([&format!("-{name}"), &child.id().to_string()])
                .output();
        }
        let status = eventually(EXIT, "it ends", || child.try_wait().unwrap());
        assert!([Some(0), Some(143), Some(130)].contains(&status.code()), "{pair:?}: {status}");
    }
    for moment in 0..24u32 {
        let mut child = node(&master, &[]);
        // Work of its own, more each time: where in its life the signal meets it is not ours to say.
        let mut turns = 0u64;
        while turns < u64::from(moment * moment) * 20 && child.try_wait().unwrap().is_none() {
            turns += 1;
        }
        signal(child.id(), "TERM");
        let status = eventually(EXIT, "it ends", || child.try_wait().unwrap());
        // Before its first line ran, the signal does what signals do.
        assert!(status.code() == Some(0) || status.signal() == Some(15), "{moment}: {status}");
    }
    eventually(PATIENCE, "none is left behind", || {
        (pool.status()["segments"].as_array().unwrap().is_empty()).then_some(())
    });
}

/// Case 26: a node that is asked to stop while values are put to it: nothing new lands on it, what was put elsewhere is
/// whole, and a put that says it succeeded is there or went with the node.
#[test]
fn a_node_that_stops_during_puts_takes_nothing_new() {
    let mut pool = Pool::with(&QUICK, &["64MiB"]);
    let mut leaving = node(&pool.address(), &["--name", "leaving"]);
    let _out = await_ready(&mut leaving);
    let caller = pool.caller_with(&Transports::default(), |config| ClientConfig {
        timeout: Duration::from_secs(5),
        ..config
    });
    let (begun, stop) = (AtomicU64::new(0), AtomicBool::new(false));
    let failed = thread::scope(|scope| {
        let writer = scope.spawn(|| {
            let mut failed = 0;
            for n in 0..40 {
                begun.store(n, Ordering::Relaxed);
                match caller.put(format!("k{n}").as_bytes(), &pattern(n, 3 * MIB), &options()) {
                    Ok(()) => {}
                    Err(error) => {
                        assert_eq!(error.code(), Code::ILLEGAL_CLIENT, "{error}");
                        failed += 1;
                    }
                }
            }
            stop.store(true, Ordering::Relaxed);
            failed
        });
        eventually(PATIENCE, "puts are under way", || (begun.load(Ordering::Relaxed) > 5).then_some(()));
        signal(leaving.id(), "TERM");
        assert_eq!(ended(leaving, EXIT).code, 0);
        writer.join().unwrap()
    });
    assert!(stop.load(Ordering::Relaxed) && failed <= 1, "{failed} puts failed: one was on its way");
    let mut there = 0;
    for n in 0..40 {
        match caller.get(format!("k{n}").as_bytes()) {
            Ok(value) => {
                assert!(value == pattern(n, 3 * MIB), "k{n}");
                there += 1;
            }
            Err(error) => assert_eq!(error.code(), Code::OBJECT_NOT_FOUND, "k{n}: {error}"),
        }
    }
    assert!(there > 10, "{there}");
    assert_eq!(pool.status()["segments"].as_array().unwrap().len(), 1);
    pool.nodes.clear();
}

/// Case 26: a command that is asked to stop in the middle of its put ends at once and leaves nothing for long.
#[test]
fn a_put_that_is_stopped_leaves_nothing() {
    for name in ["TERM", "INT"] {
        let mut quick = QUICK.to_vec();
        quick.extend(["--put-discard", "2s"]);
        let pool = Pool::with(&quick, &["256MiB"]);
        let file = pool.folder().join("value");
        std::fs::write(&file, pattern(4, 100 * MIB)).unwrap();
        let mut put = pool.command(&["put", "k", file.to_str().unwrap()]).spawn().unwrap();
        eventually(PATIENCE, "the put is under way", || {
            (put.try_wait().unwrap().is_some() || pool.figure("pool", "writing") > 0).then_some(())
        });
        signal(put.id(), name);
        let status = eventually(EXIT, "it ends", || put.try_wait().unwrap());
        if status.success() {
            // It was quicker than the signal.
            assert_eq!(pool.run(&["exists", "k"]).done().out(), "yes\n");
            continue;
        }
        eventually(PATIENCE, "nothing is left of it", || {
            let pool = &pool.status()["pool"];
            let left = [&pool["writing"], &pool["draining"], &pool["used"], &pool["objects"]];
            left.iter().all(|figure| **figure == 0).then_some(())
        });
    }
}

/// Cases 5 and 12 by the client: one answer for each key, in order, also for a key that comes twice.
#[test]
fn batches_answer_for_each_key_in_order() {
    let pool = Pool::new(&["16MiB"]);
    let caller = pool.caller();
    for name in ["k1", "k2", "k3"] {
        caller.put(name.as_bytes(), name.as_bytes(), &options()).unwrap();
    }
    let codes = |keys: &[&[u8]], force| {
        let removed = caller.run(async { Ok(caller.client().remove_batch(keys, force).await) }).unwrap();
        removed.into_iter().map(|it| it.err().map_or(0, |error| error.code().number())).collect::<Vec<_>>()
    };
    caller.get(b"k1").unwrap();
    assert_eq!(codes(&[b"k1", b"k1", b"k2"], Forcing::No), [-706, -706, 0]);
    caller.remove(b"k1", Forcing::Yes).unwrap();
    assert_eq!(codes(&[b"k1", b"k2", b"k3", b"absent"], Forcing::No), [-704, -704, 0, -704]);
    assert_eq!(codes(&[], Forcing::Yes), [0; 0]);
    // One key many times, into memory that each time is another, or the same.
    caller.put(b"k", &pattern(3, 1_000), &options()).unwrap();
    let memory = caller.allocate(3_000).unwrap();
    let into = |at| springtide::Piece { key: b"k", at: 0, len: None, into: memory.slice(at, 1_000).unwrap() };
    for got in caller.get_pieces(&[into(0), into(2_000), into(1_000), into(1_000)]) {
        assert_eq!(got.unwrap(), 1_000);
    }
    let mut read = vec![0; 3_000];
    memory.read(0, &mut read).unwrap();
    assert!(read == pattern(3, 1_000).repeat(3));
}

/// Cases 32 and 33: an address of another kind of service is named with the forms that are accepted.
#[test]
fn addresses_of_other_services_are_refused_with_the_forms_there_are() {
    for bad in [
        "http://192.0.2.9:8080/metadata",
        "https://192.0.2.9:8080",
        "HTTP://192.0.2.9:8080",
        "etcd://192.0.2.9:2379",
        "redis://192.0.2.9:6379",
        "ftp://x",
        "192.0.2.9:8080/",
        "192.0.2.9:8080/metadata",
        "192.0.2.9:2379;192.0.2.10:2379",
        "192.0.2.9:1,192.0.2.10:1",
    ] {
        let begun = now();
        run(springtide().args(["ls", "--master", bad])).failed(2, &[bad, "HOST:PORT", "[IPV6]:PORT"]);
        run(springtide().args(["node", "--memory", "1MiB", "--master", bad])).failed(2, &[bad, "HOST:PORT"]);
        assert!(now().since(begun) < Duration::from_secs(5), "{bad} is said at once");
    }
}

/// Case 31: an address where peers cannot come is refused before anything is set up.
#[test]
fn an_address_that_means_nothing_to_peers_is_refused() {
    let node = |options: &[&str]| {
        run(springtide().args(["node", "--memory", "1MiB", "--master", "127.0.0.1:1"]).args(options))
    };
    for any in ["0.0.0.0", "::", "[::]", "::ffff:0.0.0.0"] {
        node(&["--listen", any, "--advertise", any]).failed(2, &["every address"]);
    }
    // What resolvers take for 0.0.0.0.
    node(&["--advertise", "0"]).failed(2, &["\"0\"", "0.0.0.0", "every address"]);
    if TcpStream::connect("[::1]:1").is_err_and(|error| error.kind() == std::io::ErrorKind::AddrNotAvailable)
    {
        springtide_house::skip!("needs IPv6 on the loopback interface");
    }
    for any in ["[::]:0", "[::ffff:0.0.0.0]:0", "fe80::1%lo"] {
        node(&["--listen", any]).failed(2, &["tells peers no address", "--advertise"]);
    }
    node(&["--advertise", "fe80::1%lo"]).failed(2, &["fe80::1%lo", "zone"]);
}

/// Case 29: a node is killed, and the pool does not know it yet: what lay on it alone is soon a miss, values elsewhere are
/// read, and puts go elsewhere; nobody waits for as long as calls may take.
#[test]
fn what_lay_on_a_killed_node_is_soon_a_miss() {
    for (shm, tcp) in [(Use::Yes, Use::No), (Use::No, Use::Yes)] {
        let mut pool = Pool::new(&[]);
        for name in ["node-a", "node-b"] {
            pool.add(&["--memory", "32MiB", "--name", name]);
        }
        let which = Transports { shm, tcp, ..Transports::default() };
        let (warm, cold) =
            (pool.caller_with(&which, |config| config), pool.caller_with(&which, |config| config));
        let value = |n: u64| pattern(n, 200 * KIB);
        for (node, preferred) in [("a", ["node-a"]), ("b", ["node-b"])] {
            let there = PutOptions { preferred: &preferred, ..options() };
            for n in 0..8 {
                warm.put(format!("{node}{n}").as_bytes(), &value(n), &there).unwrap();
            }
        }
        pool.nodes[0].kill();
        for caller in [&warm, &cold] {
            let begun = now();
            for n in 0..8 {
                match caller.get(format!("a{n}").as_bytes()) {
                    // Its pages may still be mapped.
                    Ok(got) => assert!(got == value(n)),
                    Err(error) => {
                        let known = [Code::TRANSFER_FAIL, Code::UNAVAILABLE_IN_CURRENT_STATUS];
                        assert!(known.contains(&error.code()), "{shm:?} a{n}: {error}");
                    }
                }
                assert!(caller.get(format!("b{n}").as_bytes()).unwrap() == value(n));
                let key = format!("{n}-{:p}", caller);
                caller.put(key.as_bytes(), &value(n), &options()).unwrap();
                assert!(caller.get(key.as_bytes()).unwrap() == value(n));
            }
            let took = now().since(begun);
            assert!(took < PATIENCE / 3, "{shm:?}: {took:?} for 32 calls");
        }
        pool.nodes.remove(0);
    }
}
