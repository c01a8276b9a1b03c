//! Addresses that are none, that are taken, that are not there yet.

use std::net::TcpListener;
use std::path::Path;
use std::process::Stdio;

use springtide::{PutOptions, Transports, Use};
use springtide_cli::commands::ready::Role;
use springtide_cli::process::{Scratch, Service};

use crate::support::{EXIT, MIB, PATIENCE, Pool, ended, eventually, now, pattern, run, springtide};

const COMMANDS: [&[&str]; 7] = [
    &["get", "k"],
    &["put", "k", "/dev/null"],
    &["exists", "k"],
    &["stat", "k"],
    &["ls"],
    &["rm", "k"],
    &["status"],
];

#[test]
fn what_is_no_address_is_named_with_what_is_expected() {
    for bad in
        ["", "node-a:", ":7000", "node-a:65536", "node-a:-1", "[::1", "[node-a]:1", "http://node-a:1", " a"]
    {
        for command in COMMANDS {
            let ran = run(springtide().args(command).args(["--master", bad]));
            ran.failed(2, &[bad, "HOST:PORT"]);
        }
        run(springtide().args(["master", "--listen", bad])).failed(2, &["HOST:PORT"]);
        run(springtide().args(["node", "--memory", "1MiB", "--listen", bad])).failed(2, &["HOST:PORT"]);
        run(springtide().args(["node", "--memory", "1MiB", "--master", bad])).failed(2, &["HOST:PORT"]);
    }
    for bad in ["127.0.0.1:0", "node-a:0", "[::1]:0"] {
        let ran = run(springtide().args(["ls", "--master", bad]));
        ran.failed(2, &["port 0", "that the service printed"]);
    }
    let ran = run(springtide().args(["ls", "--master", "0.0.0.0:7"]));
    ran.failed(2, &["every address"]);
    let ran = run(springtide().arg("ls").env("SPRINGTIDE_MASTER", "node-a:65536"));
    ran.failed(2, &["node-a:65536", "SPRINGTIDE_MASTER"]);
}

#[test]
fn a_name_that_does_not_resolve_is_said_soon() {
    let begun = now();
    let name = "node-a.invalid";
    run(springtide().args(["ls", "--master", name])).failed(1, &["cannot resolve", name, "IP address"]);
    run(springtide().args(["node", "--memory", "1MiB", "--master", name]))
        .failed(1, &["cannot resolve", name]);
    run(springtide().args(["master", "--listen", name])).failed(1, &["cannot resolve", name]);
    assert!(now().since(begun) < PATIENCE);
}

/// Nobody listens: the line says so, and what to check, when the time that was given is over.
#[test]
fn a_master_that_is_not_there_is_said_with_what_to_check() {
    let free = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = free.local_addr().unwrap().to_string();
    drop(free);
    for command in COMMANDS {
        let ran = run(springtide().args(command).args(["--master", &address, "--timeout", "300ms"]));
        ran.failed(1, &[&address, "refused", "check --master", "springtide master"]);
    }
}

/// Somebody else listens there.
#[test]
fn a_master_that_is_none_is_told_from_one() {
    let pool = Pool::new(&["1MiB"]);
    let node = pool.nodes[0].address().to_string();
    let ran = run(springtide().args(["ls", "--master", &node, "--timeout", "5s"]));
    ran.failed(1, &[&node, "a node answers there", "the master's address"]);
    let silent = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = silent.local_addr().unwrap().to_string();
    let ran = run(springtide().args(["ls", "--master", &address, "--timeout", "500ms"]));
    ran.failed(1, &[&address, "--timeout"]);
    pool.serves("k");
}

#[test]
fn ipv6_works_with_brackets_and_without() {
    if TcpListener::bind("[::1]:0").is_err() {
        springtide_house::skip!("needs IPv6 on the loopback interface");
    }
    let scratch = Scratch::new().unwrap();
    let state = scratch.path().join("state");
    let program = Path::new(env!("CARGO_BIN_EXE_springtide"));
    let common = ["--http", "off", "--log", "error", "--state", state.to_str().unwrap()];
    let mut arguments = vec!["--listen", "[::1]:0"];
    arguments.extend(common);
    let master = Service::start(program, Role::Master, &arguments, PATIENCE).unwrap();
    let address = master.address().to_string();
    assert!(address.starts_with("[::1]:"), "{address}");
    for listen in ["[::1]:0", "::1"] {
        let arguments = ["--master", &address, "--memory", "4MiB", "--listen", listen, "--log", "error"];
        let node = Service::start(program, Role::Node, &arguments, PATIENCE).unwrap();
        assert!(node.address().to_string().starts_with("[::1]:"), "{}", node.address());
        let which = Transports { shm: Use::No, ..Transports::default() };
        let caller = crate::support::connect(address.parse().unwrap(), &which, |config| config).unwrap();
        let value = pattern(6, MIB + 7);
        caller.put(listen.as_bytes(), &value, &PutOptions::default()).unwrap();
        assert!(caller.get(listen.as_bytes()).unwrap() == value);
        node.stop().unwrap();
    }
    run(springtide().args(["status", "--master", &address])).done();
    master.stop().unwrap();
}

#[test]
fn a_taken_port_is_said_with_what_to_do() {
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap().to_string();
    let scratch = Scratch::new().unwrap();
    let state = scratch.path().join("state");
    let master = |listen: &str, http: &str| {
        run(springtide().args(["master", "--state"]).arg(&state).args(["--listen", listen, "--http", http]))
    };
    master(&address, "off").failed(1, &["cannot listen on", &address, "in use", "--listen"]);
    master("127.0.0.1:0", &address).failed(1, &["cannot serve HTTP", &address, "in use", "--http"]);
    let pool = Pool::new(&[]);
    let master = pool.address();
    let node =
        run(springtide().args(["node", "--memory", "1MiB", "--master", &master, "--listen", &address]));
    node.failed(1, &["cannot listen on", &address, "in use", "--listen"]);
    // An address of another machine.
    let node =
        run(springtide().args(["node", "--memory", "1MiB", "--master", &master, "--listen", "192.0.2.7:0"]));
    node.failed(1, &["192.0.2.7", "--listen"]);
}

#[test]
fn memory_that_nobody_has_is_said() {
    let pool = Pool::new(&[]);
    let master = pool.address();
    let node = |memory: &str| run(springtide().args(["node", "--memory", memory, "--master", &master]));
    node("4096PiB").failed(1, &["cannot allocate", "--memory"]);
    node("0").failed(1, &["too little to lend", "64"]);
    node("lots").failed(2, &["lots"]);
    run(springtide().args(["node"])).failed(2, &["--memory"]);
}

#[test]
fn two_masters_of_one_folder_are_one_too_many() {
    let pool = Pool::new(&["4MiB"]);
    let state = pool.folder().join("state");
    let second = || {
        let mut command = springtide();
        command.args(["master", "--listen", "127.0.0.1:0", "--http", "off", "--state"]).arg(&state);
        command
    };
    let pid = pool.master.id().to_string();
    run(&mut second()).failed(1, &["another master", &pid, "--state"]);
    pool.serves("k");
    let file = pool.folder().join("file");
    std::fs::write(&file, "").unwrap();
    let ran =
        run(springtide().args(["master", "--listen", "127.0.0.1:0", "--http", "off", "--state"]).arg(&file));
    ran.failed(1, &[file.to_str().unwrap(), "--state"]);
}

/// A node waits for a master that comes later, says so, and joins by itself.
#[test]
fn a_node_waits_for_its_master() {
    let free = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = free.local_addr().unwrap().to_string();
    drop(free);
    let mut command = springtide();
    command.args(["node", "--memory", "4MiB", "--master", &address, "--until-eof"]);
    let mut node =
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let scratch = Scratch::new().unwrap();
    let state = scratch.path().join("state");
    let program = Path::new(env!("CARGO_BIN_EXE_springtide"));
    // It says that it waits, and for whom.
    let mut said = std::io::BufReader::new(node.stderr.take().unwrap());
    let mut line = String::new();
    while !line.contains("not registered") {
        line.clear();
        assert!(std::io::BufRead::read_line(&mut said, &mut line).unwrap() > 0, "it says that it waits");
    }
    assert!(line.contains("refused") && line.contains(&address), "{line}");
    // Nobody may fill the pipe.
    let rest = std::thread::spawn(move || std::io::copy(&mut said, &mut std::io::sink()));
    let arguments =
        ["--listen", &address, "--http", "off", "--log", "error", "--state", state.to_str().unwrap()];
    let master = Service::start(program, Role::Master, &arguments, PATIENCE).unwrap();
    let caller =
        crate::support::connect(address.parse().unwrap(), &Transports::default(), |config| config).unwrap();
    eventually(PATIENCE, "the node joins", || caller.put(b"k", b"value", &PutOptions::default()).ok());
    assert_eq!(caller.get(b"k").unwrap(), b"value");
    drop(node.stdin.take());
    let node = ended(node, EXIT);
    assert_eq!(node.code, 0);
    assert!(node.out().contains("springtide node ready at 127.0.0.1:"), "{node:?}");
    rest.join().unwrap().unwrap();
    master.stop().unwrap();
}

#[test]
fn a_node_that_listens_everywhere_must_say_where_it_is() {
    let mut pool = Pool::new(&[]);
    let master = pool.address();
    let node = |options: &[&str]| {
        run(springtide().args(["node", "--memory", "4MiB", "--master", &master]).args(options))
    };
    node(&["--listen", "0.0.0.0:0"]).failed(2, &["0.0.0.0", "--advertise"]);
    node(&["--listen", "0.0.0.0:0", "--advertise", "0.0.0.0"]).failed(2, &["every address"]);
    node(&["--listen", "0.0.0.0:0", "--advertise", "node-a:7"]).failed(2, &["has a port"]);
    node(&["--listen", "0.0.0.0:0", "--advertise", "node-a.invalid"]).failed(1, &["node-a.invalid"]);
    for host in ["127.0.0.1", "localhost"] {
        let node = pool.add(&["--memory", "4MiB", "--listen", "0.0.0.0:0", "--advertise", host]);
        assert_eq!(node.address().host, host);
        let which = Transports { shm: Use::No, ..Transports::default() };
        let caller = pool.caller_with(&which, |config| config);
        caller.put(host.as_bytes(), &pattern(5, MIB), &PutOptions::default()).unwrap();
        assert!(caller.get(host.as_bytes()).unwrap() == pattern(5, MIB));
        pool.nodes.pop().unwrap().stop().unwrap();
    }
}

/// What goes over a network in plain text is said at start; on this machine alone it is not.
#[test]
fn plain_text_is_said_where_others_listen() {
    for (listen, said) in [("0.0.0.0:0", true), ("127.0.0.1:0", false)] {
        let scratch = Scratch::new().unwrap();
        let mut command = springtide();
        command.args(["master", "--listen", listen, "--http", "off", "--until-eof", "--state"]);
        command.arg(scratch.path().join("state"));
        // Standard input is at its end: it stops as soon as it has begun.
        let ran = run(&mut command);
        assert_eq!(ran.err.contains("plain text"), said, "{ran:?}");
    }
}

/// Case 31: whoever comes second is told, and the first goes on.
#[test]
fn an_address_in_use_is_refused_to_the_second() {
    let mut pool = Pool::new(&[]);
    let first = pool.add(&["--memory", "4MiB", "--name", "node-a"]).address().clone();
    let master = pool.address();
    let elsewhere = format!("127.0.0.2:{}", first.port);
    let same_address = ["--listen", &elsewhere, "--advertise", "127.0.0.1"];
    let mut command = springtide();
    command.args(["node", "--memory", "4MiB", "--master", &master, "--until-eof"]).args(same_address);
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut second = command.spawn().unwrap();
    let mut said = std::io::BufReader::new(second.stderr.take().unwrap());
    let mut line = String::new();
    while !line.contains("not registered") {
        line.clear();
        assert!(std::io::BufRead::read_line(&mut said, &mut line).unwrap() > 0, "it says that it waits");
    }
    assert!(line.contains("another live member serves at this address"), "{line}");
    let rest = std::thread::spawn(move || std::io::copy(&mut said, &mut std::io::sink()));
    pool.serves("k");
    drop(second.stdin.take());
    let second = ended(second, EXIT);
    assert_eq!((second.code, second.out().as_str()), (0, ""), "{second:?}");
    rest.join().unwrap().unwrap();
    assert_eq!(pool.status()["segments"].as_array().unwrap().len(), 1);
}

#[test]
fn settings_that_do_not_go_together_are_said() {
    let table: [(&[&str], &str); 6] = [
        (&["--client-ttl", "1s"], "heartbeat"),
        (&["--crashed-ttl", "1s"], "client TTL"),
        (&["--put-discard", "0s"], "put discard"),
        (&["--put-release", "1s"], "put discard"),
        (&["--eviction-ratio", "0"], "eviction ratio"),
        (&["--policy", "none"], "none"),
    ];
    for (options, part) in table {
        let ran =
            run(springtide().args(["master", "--listen", "127.0.0.1:0", "--http", "off"]).args(options));
        ran.failed(2, &[part]);
    }
}
