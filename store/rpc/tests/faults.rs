//! What bad input, slow peers and dying peers get.

mod common;

use core::sync::atomic::Ordering;
use core::time::Duration;
use std::io::{Read, Write};
use std::net::{Shutdown as Half, TcpListener};
use std::thread;

use common::{ECHO, FILL, PARK, SWALLOW, Server, read_to_end, request, soon, write_until_closed};
use springtide_core::error::Code;
use springtide_core::rng::Rng;
use springtide_core::wire::frame::{FrameError, HEADER, MAGIC, MAX_BODY, Method};
use springtide_driver::{block_on, now};
use springtide_rpc::{
    Ask, CallError, ClientConfig, Hello, Reason, Remote, ServerConfig, Standing, WhileDown,
};

fn server() -> Server {
    Server::start(ServerConfig::default())
}

/// Sends `bytes`, and gives back the code and text of the one reply before the connection is closed.
fn refusal(server: &Server, bytes: &[u8]) -> (Code, String) {
    let mut stream = server.plain();
    write_until_closed(&mut stream, bytes);
    let frames = read_to_end(&mut stream).unwrap();
    assert_eq!(frames.len(), 1, "{frames:?}");
    assert_eq!(frames[0].0.request, 0);
    (frames[0].0.status, String::from_utf8(frames[0].1.clone()).unwrap())
}

#[test]
fn what_is_no_frame_is_answered_with_a_reason_and_the_server_lives() {
    let server = server();
    let (code, text) = refusal(&server, b"GET / HTTP/1.1\r\n\r\n");
    assert_eq!(code, Code::INVALID_PARAMS);
    assert!(text.starts_with("not a Springtide stream"), "{text}");

    let (code, text) = refusal(&server, &[MAGIC, 77]);
    assert_eq!(code, Code::INVALID_VERSION);
    assert!(text.contains("version 77"), "{text}");

    let mut long = request(ECHO, 1, b"");
    long[8..12].copy_from_slice(&(MAX_BODY as u32 + 1).to_le_bytes());
    let (code, text) = refusal(&server, &long);
    assert_eq!(code, Code::INVALID_PARAMS);
    assert!(text.contains(&MAX_BODY.to_string()), "{text}");

    let mut reply = request(ECHO, 1, b"");
    reply[2] = 1;
    assert_eq!(refusal(&server, &reply).0, Code::INVALID_PARAMS);
    assert!(server.is_alive());
}

#[test]
fn good_frames_before_a_bad_one_are_answered() {
    let server = server();
    let mut stream = server.plain();
    let bytes = [request(ECHO, 1, b"one"), request(ECHO, 2, b"two"), b"rubbish".to_vec()].concat();
    write_until_closed(&mut stream, &bytes);
    let frames = read_to_end(&mut stream).unwrap();
    let seen: Vec<_> =
        frames.iter().map(|(header, body)| (header.request, header.status, &body[..])).collect();
    assert_eq!(seen[..2], [(1, Code::OK, &b"one"[..]), (2, Code::OK, &b"two"[..])]);
    assert_eq!((seen.len(), seen[2].0, seen[2].1), (3, 0, Code::INVALID_PARAMS));
}

#[test]
fn random_bytes_and_truncated_frames_end_one_connection_only() {
    let server = server();
    let mut rng = Rng::new(7);
    for round in 0..200 {
        let mut stream = server.plain();
        let mut bytes = request(ECHO, 1, &[5; 100]);
        if round % 2 == 0 {
            bytes.truncate(rng.below(bytes.len() as u64) as usize);
        } else {
            bytes.iter_mut().for_each(|byte| *byte = rng.next_u64() as u8);
        }
        write_until_closed(&mut stream, &bytes);
        let _ = stream.shutdown(Half::Write);
        let _ = read_to_end(&mut stream);
    }
    assert!(server.is_alive());
    drop(server.plain());
}

#[test]
fn a_frame_may_come_byte_by_byte() {
    let server = server();
    let mut stream = server.plain();
    stream.set_nodelay(true).unwrap();
    for byte in request(ECHO, 3, b"slow") {
        stream.write_all(&[byte]).unwrap();
    }
    stream.shutdown(Half::Write).unwrap();
    let frames = read_to_end(&mut stream).unwrap();
    assert_eq!((frames[0].0.request, &frames[0].1[..]), (3, &b"slow"[..]));
}

#[test]
fn a_peer_that_does_not_read_is_not_read_from_and_then_cut_off() {
    let config = ServerConfig { waiting: 1 << 20, stall: Duration::from_secs(1), ..ServerConfig::default() };
    let server = Server::start(config);
    let mut stream = server.plain();
    let ask = request(FILL, 1, &(1u32 << 20).to_le_bytes());
    stream.set_write_timeout(Some(Duration::from_secs(10))).unwrap();
    // Each request asks for 1 MiB. The server must stop reading, and end the connection, long before it has taken
    // all of them in.
    let taken = (0..1_000_000).take_while(|_| stream.write_all(&ask).is_ok()).count();
    let handled = server.service.frames.load(Ordering::SeqCst);
    assert!(taken < 1_000_000 && handled < 20_000, "{taken} written, {handled} handled");
    assert!(server.is_alive());
}

#[test]
fn half_a_frame_that_never_ends_is_cut_off() {
    let server = Server::start(ServerConfig { stall: Duration::from_secs(1), ..ServerConfig::default() });
    let mut stream = server.plain();
    stream.write_all(&request(ECHO, 1, b"body")[..HEADER + 1]).unwrap();
    assert_eq!(read_to_end(&mut stream).unwrap(), []);
    // An idle connection without half a frame stays.
    let mut idle = server.plain();
    idle.write_all(&request(ECHO, 1, b"")).unwrap();
    assert_eq!(idle.read(&mut [0; 64]).unwrap(), HEADER);
}

#[test]
fn one_connection_too_many_is_told_so() {
    let server = Server::start(ServerConfig { connections: 1, ..ServerConfig::default() });
    let first = server.remote();
    assert!(first.ask_blocking(Ask::new(ECHO, soon()), |_| {}).is_ok());
    let mut second = server.plain();
    let frames = read_to_end(&mut second).unwrap();
    assert_eq!(frames[0].0.status, Code::BUSY);
    assert!(first.ask_blocking(Ask::new(ECHO, soon()), |_| {}).is_ok());
}

#[test]
fn a_late_reply_finds_nobody_and_harms_nobody() {
    let server = server();
    let remote = server.remote();
    let short = Ask::new(PARK, now() + Duration::from_millis(20));
    assert_eq!(remote.ask_blocking(short, |_| {}), Err(CallError::Timeout));
    let parked = loop {
        // The request may still be on its way in.
        if let Some(parked) = server.service.parked.lock().unwrap().pop() {
            break parked;
        }
        thread::yield_now();
    };
    parked.reply(Code::OK, |out| out.push(66));
    for n in 0..10 {
        let reply = remote.ask_blocking(Ask::new(ECHO, soon()), |out| out.push(n)).unwrap();
        assert_eq!(reply.body, [n]);
    }
    assert_eq!(remote.connected(), (1, Standing::Up));
}

#[test]
fn a_request_that_is_never_answered_ends_at_its_deadline() {
    let server = server();
    let remote = server.remote();
    let begun = now();
    let short = Ask::new(SWALLOW, begun + Duration::from_millis(30));
    assert_eq!(remote.ask_blocking(short, |_| {}), Err(CallError::Timeout));
    assert!(now().since(begun) >= Duration::from_millis(30));
}

#[test]
fn a_dying_server_fails_every_call_once_and_its_successor_is_found() {
    let server = server();
    let config = ClientConfig { while_down: WhileDown::Wait, ..ClientConfig::default() };
    let remote = server.remote_with(config);
    let calls: Vec<_> = (0..100).map(|_| remote.call(PARK, soon(), |_| {})).collect();
    let arrived = async {
        let echo = remote.call(ECHO, soon(), |_| {});
        echo.await.unwrap();
    };
    block_on(&[remote.seat()], soon(), arrived).unwrap();
    let address = server.address;
    server.service.parked.lock().unwrap().drain(..).for_each(core::mem::forget);
    drop(server);
    for call in calls {
        let ended = block_on(&[remote.seat()], soon(), call).unwrap();
        assert_eq!(ended, Err(CallError::Closed(Reason::PeerClosed)));
    }
    // The next call waits until somebody listens there again.
    let waiting = remote.call(ECHO, soon(), |out| out.push(8));
    let again = thread::spawn(move || Server::start_at(address, ServerConfig::default()));
    assert_eq!(block_on(&[remote.seat()], soon(), waiting).unwrap().unwrap().body, [8]);
    assert_eq!(remote.connected(), (2, Standing::Up));
    drop(again.join().unwrap());
}

#[test]
fn an_idle_connection_that_died_costs_no_call() {
    let server = server();
    let remote = server.remote();
    assert!(remote.ask_blocking(Ask::new(ECHO, soon()), |_| {}).is_ok());
    let address = server.address;
    drop(server);
    let again = Server::start_at(address, ServerConfig::default());
    // Nobody drove the connection meanwhile. Past the time in which it is trusted blindly, it is looked at first.
    let aged = now() + Duration::from_millis(150);
    let _ = block_on(&[], aged, core::future::pending::<()>());
    assert!(remote.ask_blocking(Ask::new(ECHO, soon()), |_| {}).is_ok());
    assert_eq!(remote.connected().0, 2);
    drop(again);
}

#[test]
fn a_dead_address_fails_at_once_and_slows_nobody() {
    // A port that was free a moment ago.
    let address = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let remote = Remote::new(vec![address], ClientConfig::default(), None).unwrap();
    let begun = now();
    for _ in 0..10 {
        let failed = remote.ask_blocking(Ask::new(ECHO, soon()), |_| {}).unwrap_err();
        assert!(matches!(failed, CallError::Down(Reason::System(_))), "{failed:?}");
        assert!(failed.unsent() && failed.code() == Code::RPC_FAIL);
    }
    assert!(now().since(begun) < Duration::from_secs(10));
}

#[test]
fn the_second_address_serves_when_the_first_does_not() {
    let server = server();
    let dead = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let remote = Remote::new(vec![dead, server.address], ClientConfig::default(), None).unwrap();
    assert!(remote.ask_blocking(Ask::new(ECHO, soon()), |_| {}).is_ok());
}

#[test]
fn a_peer_that_accepts_and_says_nothing_does_not_hold_a_call_beyond_its_deadline() {
    let silent = TcpListener::bind("127.0.0.1:0").unwrap();
    let config = ClientConfig { connect: Duration::from_millis(50), ..ClientConfig::default() };
    let greets = Remote::new(vec![silent.local_addr().unwrap()], config, Some(Box::new(Greeter::default())));
    let failed = greets.unwrap().ask_blocking(Ask::new(ECHO, soon()), |_| {});
    assert_eq!(failed, Err(CallError::Down(Reason::Silent)));
    let plain = Remote::new(vec![silent.local_addr().unwrap()], config, None).unwrap();
    let short = Ask::new(ECHO, now() + Duration::from_millis(50));
    assert_eq!(plain.ask_blocking(short, |_| {}), Err(CallError::Timeout));
}

#[test]
fn a_server_that_speaks_something_else_is_named() {
    let other = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = other.local_addr().unwrap();
    let http = thread::spawn(move || {
        let (mut stream, _) = other.accept().unwrap();
        let _ = stream.read(&mut [0; 64]);
        stream.write_all(b"HTTP/1.1 400 Bad Request\r\n\r\n").unwrap();
    });
    let remote = Remote::new(vec![address], ClientConfig::default(), None).unwrap();
    let failed = remote.ask_blocking(Ask::new(ECHO, soon()), |_| {});
    assert_eq!(failed, Err(CallError::Closed(Reason::Protocol(FrameError::Magic(b'H')))));
    http.join().unwrap();
}

#[derive(Default)]
struct Greeter {
    refuse: bool,
}

impl Hello for Greeter {
    fn method(&self) -> Method {
        ECHO
    }

    fn say(&mut self, body: &mut Vec<u8>) {
        body.extend_from_slice(b"hello");
    }

    fn hear(&mut self, body: &[u8]) -> Result<(), Code> {
        assert_eq!(body, b"hello");
        if self.refuse { Err(Code::WRONG_CLUSTER) } else { Ok(()) }
    }
}

#[test]
fn every_connection_begins_with_a_hello() {
    let server = server();
    let hello = || Some(Box::new(Greeter::default()) as Box<dyn Hello>);
    let remote = Remote::new(vec![server.address], ClientConfig::default(), hello()).unwrap();
    assert!(remote.ask_blocking(Ask::new(ECHO, soon()), |_| {}).is_ok());
    assert_eq!(server.service.frames.load(Ordering::SeqCst), 2);
}

#[test]
fn a_hello_that_is_not_liked_fails_calls_even_of_who_would_wait() {
    let server = server();
    let config = ClientConfig { while_down: WhileDown::Wait, ..ClientConfig::default() };
    let hello = Some(Box::new(Greeter { refuse: true }) as Box<dyn Hello>);
    let remote = Remote::new(vec![server.address], config, hello).unwrap();
    let failed = remote.ask_blocking(Ask::new(ECHO, soon()), |_| {}).unwrap_err();
    assert_eq!(failed, CallError::Down(Reason::Refused(Code::WRONG_CLUSTER)));
    assert_eq!(failed.code(), Code::WRONG_CLUSTER);
}

#[test]
fn a_shut_remote_fails_calls_now_and_later() {
    let server = server();
    let remote = server.remote();
    let call = remote.call(PARK, soon(), |_| {});
    remote.shut();
    assert_eq!(block_on(&[remote.seat()], soon(), call).unwrap(), Err(CallError::Closed(Reason::Shut)));
    let later = remote.ask_blocking(Ask::new(ECHO, soon()), |_| {});
    assert_eq!(later, Err(CallError::Down(Reason::Shut)));
}

#[test]
fn every_connection_is_told_closed_once() {
    let server = server();
    let connections: Vec<_> = (0..20).map(|_| server.remote()).collect();
    for remote in &connections {
        assert!(remote.ask_blocking(Ask::new(ECHO, soon()), |_| {}).is_ok());
    }
    drop(connections);
    let service = std::sync::Arc::clone(&server.service);
    drop(server);
    assert_eq!(service.closed.load(Ordering::SeqCst), 20);
}
