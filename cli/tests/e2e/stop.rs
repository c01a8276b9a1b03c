//! TERM and INT at any time: a clean exit within a bound, and nothing left behind.

use core::sync::atomic::{AtomicBool, Ordering};
use std::io::{BufRead, BufReader};
use std::net::TcpListener;
use std::os::unix::process::ExitStatusExt;
use std::process::{Child, Command, Stdio};
use std::thread;

use springtide::{Code, PutOptions};
use springtide_cli::process::Scratch;

use crate::support::{EXIT, MIB, PATIENCE, Pool, ended, eventually, pattern, signal, springtide};

/// Starts a service by hand and waits for a line on its standard output or error that has `word`.
fn started(command: &mut Command, word: &str) -> Child {
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let (out, err) = (child.stdout.take().unwrap(), child.stderr.take().unwrap());
    let (tell, heard) = std::sync::mpsc::channel();
    let listen = |stream: Box<dyn std::io::Read + Send>| {
        let tell = tell.clone();
        thread::spawn(move || {
            BufReader::new(stream).lines().map_while(Result::ok).for_each(|line| {
                // Nobody waits for later lines.
                let _ = tell.send(line);
            });
        });
    };
    listen(Box::new(out));
    listen(Box::new(err));
    while !heard.recv_timeout(PATIENCE).expect("it says that it has begun").contains(word) {}
    child
}

fn master(scratch: &Scratch) -> Command {
    let mut command = springtide();
    command.args(["master", "--listen", "127.0.0.1:0", "--http", "127.0.0.1:0", "--state"]);
    command.arg(scratch.path().join("state")).env("TMPDIR", scratch.path());
    command
}

fn node(scratch: &Scratch, master: &str) -> Command {
    let mut command = springtide();
    command.args(["node", "--memory", "16MiB", "--master", master]).env("TMPDIR", scratch.path());
    command
}

#[track_caller]
fn stops(child: Child, name: &str) {
    signal(child.id(), name);
    let ran = ended(child, EXIT);
    assert_eq!(ran.code, 0, "{ran:?}");
}

fn left(scratch: &Scratch) -> Vec<String> {
    let entries = std::fs::read_dir(scratch.path()).unwrap();
    let mut names: Vec<_> = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

#[test]
fn a_master_exits_cleanly_and_its_folder_serves_the_next() {
    let scratch = Scratch::new().unwrap();
    for name in ["TERM", "INT", "TERM"] {
        stops(started(&mut master(&scratch), "ready at"), name);
    }
    assert_eq!(left(&scratch), ["state"]);
    let epoch = std::fs::read_to_string(scratch.path().join("state/epoch")).unwrap();
    assert_eq!(epoch.lines().nth(1), Some("3"), "{epoch}");
}

#[test]
fn a_node_exits_cleanly_whether_its_master_is_there_or_not() {
    let pool = Pool::new(&[]);
    let scratch = Scratch::new().unwrap();
    let free = TcpListener::bind("127.0.0.1:0").unwrap();
    let nobody = free.local_addr().unwrap().to_string();
    drop(free);
    // It accepts and says nothing.
    let silent = TcpListener::bind("127.0.0.1:0").unwrap();
    let silent = silent.local_addr().unwrap().to_string();
    for name in ["TERM", "INT"] {
        stops(started(&mut node(&scratch, &pool.address()), "ready at"), name);
        assert_eq!(pool.status()["segments"].as_array().unwrap().len(), 0, "it took leave");
        stops(started(&mut node(&scratch, &nobody), "memory allocated"), name);
        stops(started(&mut node(&scratch, &nobody), "not registered"), name);
        stops(started(&mut node(&scratch, &silent), "memory allocated"), name);
    }
    assert_eq!(left(&scratch), [""; 0]);
}

#[test]
fn a_node_exits_cleanly_when_its_master_is_gone_or_stands_still() {
    let mut pool = Pool::new(&[]);
    let scratch = Scratch::new().unwrap();
    let still = started(&mut node(&scratch, &pool.address()), "ready at");
    let gone = started(&mut node(&scratch, &pool.address()), "ready at");
    signal(pool.master.id(), "STOP");
    stops(still, "TERM");
    signal(pool.master.id(), "CONT");
    pool.master.kill();
    stops(gone, "INT");
    assert_eq!(left(&scratch), [""; 0]);
}

/// Case 26: readers get right bytes or an error; after the node's leave what it had is a miss.
#[test]
fn readers_of_a_node_that_stops_get_right_bytes_or_a_miss() {
    let pool = Pool::new(&[]);
    let scratch = Scratch::new().unwrap();
    let node = started(&mut node(&scratch, &pool.address()), "ready at");
    let caller = pool.caller();
    for n in 0..10u64 {
        caller.put(format!("k{n}").as_bytes(), &pattern(n, MIB), &PutOptions::default()).unwrap();
    }
    let stop = AtomicBool::new(false);
    thread::scope(|scope| {
        let reader = scope.spawn(|| {
            let mut good = 0;
            while !stop.load(Ordering::Relaxed) {
                for n in 0..10u64 {
                    match caller.get(format!("k{n}").as_bytes()) {
                        Ok(value) => {
                            assert!(value == pattern(n, MIB));
                            good += 1;
                        }
                        Err(error) => {
                            let known = [Code::OBJECT_NOT_FOUND, Code::TRANSFER_FAIL];
                            assert!(known.contains(&error.code()), "{error}");
                        }
                    }
                }
            }
            good
        });
        let looked = pool.figure("counters", "hits");
        eventually(PATIENCE, "reads are under way", || {
            (pool.figure("counters", "hits") > looked + 10).then_some(())
        });
        stops(node, "TERM");
        stop.store(true, Ordering::Relaxed);
        assert!(reader.join().unwrap() > 0);
    });
    for n in 0..10 {
        assert_eq!(caller.get(format!("k{n}").as_bytes()).unwrap_err().code(), Code::OBJECT_NOT_FOUND);
    }
    eventually(PATIENCE, "what went with it is counted", || {
        (pool.figure("counters", "lost") == 10).then_some(())
    });
}

/// ^C of a command that waits.
#[test]
fn commands_that_wait_end_at_once() {
    let silent = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = silent.local_addr().unwrap().to_string();
    for arguments in [&["get", "k"][..], &["put", "k", "-"], &["ls"]] {
        let mut command = springtide();
        command.args(arguments).args(["--master", &address, "--timeout", "10m"]);
        let mut child = command.stdin(Stdio::piped()).spawn().unwrap();
        signal(child.id(), "INT");
        let status = eventually(EXIT, "it ends", || child.try_wait().unwrap());
        assert!(status.signal() == Some(2) || status.code() == Some(130), "{status}");
    }
}
