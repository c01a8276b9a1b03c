//! Measures calls over loopback: one at a time, with and without spinning, and many in flight.
//!
//! `cargo run --release -p springtide-rpc --example calls [seconds]`; the server runs in a second process.

use core::time::Duration;
use std::collections::VecDeque;
use std::io::{BufRead, BufReader, Read};
use std::process::{Command, Stdio};
use std::sync::Arc;

use springtide_core::error::Code;
use springtide_core::time::Instant;
use springtide_core::wire::frame::Method;
use springtide_driver::{Driven, Pause, Runtime, Shutdown, block_on_with, now};
use springtide_rpc::{Call, ClientConfig, Frames, Listener, Remote, Replies, ServerConfig, Service, serve};
use springtide_tokio::Tokio;

/// Answers the first 16 bytes of what it is asked.
struct Trivial;

impl Service for Trivial {
    type Peer = ();

    fn handle(&self, _now: Instant, (): &mut (), frames: Frames<'_>, replies: &mut Replies<'_>) {
        for frame in frames {
            let some = &frame.body[..frame.body.len().min(16)];
            replies.reply(&frame.header, Code::OK, |out| out.extend_from_slice(some));
        }
    }

    fn closed(&self, _now: Instant, (): &mut ()) {}
}

fn main() {
    let argument = std::env::args().nth(1);
    match argument.as_deref() {
        Some("serve") => server(Pause::default()),
        Some("serve-asleep") => server(Pause::new(Duration::ZERO)),
        seconds => measure(Duration::from_secs(seconds.map_or(2, |text| text.parse().expect("seconds")))),
    }
}

/// Serves until its standard input ends.
fn server(pause: Pause) {
    let config = ServerConfig { pause, ..ServerConfig::default() };
    let listener =
        Listener::bind_with("127.0.0.1:0".parse().expect("an address"), config).expect("a free port");
    println!("{}", listener.local_addr().expect("bound"));
    let shutdown = Shutdown::new();
    let ending = shutdown.clone();
    std::thread::spawn(move || {
        let _ = std::io::stdin().read(&mut [0]);
        ending.begin();
    });
    let tokio = Tokio::new_single().expect("a runtime");
    tokio.block_on(serve(tokio.clone(), listener, Arc::new(Trivial), shutdown)).expect("served");
}

fn measure(time: Duration) {
    let bounds = [("sleeps", Duration::ZERO), ("spins", Pause::BOUND)];
    for (argument, server) in [("serve-asleep", "sleeps"), ("serve", "spins")] {
        let mut child = Command::new(std::env::current_exe().expect("this program"))
            .arg(argument)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("a second process");
        let mut address = String::new();
        BufReader::new(child.stdout.take().expect("piped")).read_line(&mut address).expect("an address");
        let address = address.trim().parse().expect("an address");
        let remote = || Remote::new(vec![address], ClientConfig::default(), None).expect("a descriptor");
        for (client, bound) in bounds {
            let (rate, p50, p99) = one_at_a_time(&remote(), Pause::new(bound), time);
            println!("1 x 1   server {server:6} client {client:6}  {rate:>9.0}/s  p50 {p50:?}  p99 {p99:?}");
        }
        for (client, bound) in bounds {
            let rate = in_flight(&[remote(), remote(), remote(), remote()], 16, Pause::new(bound), time);
            println!("4 x 16  server {server:6} client {client:6}  {rate:>9.0}/s");
        }
        drop(child.stdin.take());
        child.wait().expect("the server ends");
    }
}

fn ask(remote: &Remote) -> Call {
    let deadline = now() + Duration::from_secs(10);
    remote.call(Method(1), deadline, |out| out.extend_from_slice(&[7; 32]))
}

fn one_at_a_time(remote: &Remote, mut pause: Pause, time: Duration) -> (f64, Duration, Duration) {
    let (begun, mut taken) = (now(), Vec::new());
    while now().since(begun) < time {
        let at = now();
        let call = async { ask(remote).await.expect("an answer") };
        block_on_with(&mut pause, &[remote.seat()], Instant::NEVER, call).expect("no deadline");
        taken.push(now().since(at));
    }
    let rate = taken.len() as f64 / now().since(begun).as_secs_f64();
    taken.sort_unstable();
    (rate, taken[taken.len() / 2], taken[taken.len() * 99 / 100])
}

fn in_flight(remotes: &[Remote], depth: usize, mut pause: Pause, time: Duration) -> f64 {
    let seats: Vec<&dyn Driven> = remotes.iter().map(Remote::seat).collect();
    let begun = now();
    let answers = block_on_with(&mut pause, &seats, Instant::NEVER, async {
        let mut flying: Vec<VecDeque<Call>> =
            remotes.iter().map(|remote| (0..depth).map(|_| ask(remote)).collect()).collect();
        let mut answers = 0u64;
        while now().since(begun) < time {
            for (remote, flying) in remotes.iter().zip(&mut flying) {
                for _ in 0..depth {
                    flying.pop_front().expect("some are in flight").await.expect("an answer");
                    flying.push_back(ask(remote));
                    answers += 1;
                }
            }
        }
        answers
    });
    answers.expect("no deadline") as f64 / now().since(begun).as_secs_f64()
}
