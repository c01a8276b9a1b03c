//! What peers may send that no client of ours does: the connection ends with a reason, the server goes on.

use core::net::SocketAddr;

use springtide::Code;
use springtide::core::id::{Incarnation, SegmentId};
use springtide::core::rng::mix;
use springtide::core::wire::codec;
use springtide::core::wire::frame::{HEADER, Header, Kind, MAX_BODY, Method};
use springtide::core::wire::message::{self, Hello, METHODS};

use crate::raw::{Raw, framed, hello, refusal};
use crate::support::{KIB, Pool, pattern};

/// Both servers of frames: the master and a node.
fn servers(pool: &Pool) -> [SocketAddr; 2] {
    [pool.socket(), pool.nodes[0].address().to_string().parse().unwrap()]
}

fn first_segment(pool: &Pool) -> SegmentId {
    let caller = pool.caller();
    let mut first = None;
    caller.run(caller.client().segments(|segment| first = first.or(Some(segment.id)))).unwrap();
    first.unwrap()
}

/// The connection ends with a reply that belongs to no request, has `code`, and says all `parts`.
#[track_caller]
fn ends_with(raw: &mut Raw, code: Code, parts: &[&str]) {
    let (header, body) = raw.receive().expect("a reason");
    assert_eq!((header.request, header.kind), (0, Kind::Reply));
    let (status, text) = refusal((header, body));
    assert_eq!(status, code, "{text}");
    for part in parts {
        assert!(text.contains(part), "{part:?} in {text:?}");
    }
    assert!(raw.receive().is_none(), "closed after the reason");
}

#[test]
fn bytes_that_are_no_frame_end_the_connection_with_a_reason() {
    let pool = Pool::new(&["4MiB"]);
    let request = Header::request(message::HELLO, 2, None);
    let whole = framed(&request, b"body");
    let with = |at: usize, byte: u8| {
        let mut bytes = whole.clone();
        bytes[at] = byte;
        bytes
    };
    let long = |len: u32| {
        let mut bytes = whole.clone();
        bytes[8..12].copy_from_slice(&len.to_le_bytes());
        bytes
    };
    let reply = Header { kind: Kind::Reply, ..request };
    let table: [(Vec<u8>, Code, &[&str]); 9] = [
        (b"GET / HTTP/1.1\r\n\r\n".to_vec(), Code::INVALID_PARAMS, &["not a Springtide stream"]),
        (vec![0; 100], Code::INVALID_PARAMS, &["not a Springtide stream", "0x00"]),
        (vec![0xF5; 100], Code::INVALID_VERSION, &["version 245", "update"]),
        (with(1, 2), Code::INVALID_VERSION, &["version 2", "this process speaks 1", "update the older one"]),
        (with(1, 0), Code::INVALID_VERSION, &["version 0"]),
        (with(2, 7), Code::INVALID_PARAMS, &["frame kind 7"]),
        (long(u32::MAX), Code::INVALID_PARAMS, &["4294967295", "16777216 are allowed"]),
        (long(MAX_BODY as u32 + 1), Code::INVALID_PARAMS, &["16777217"]),
        (framed(&reply, b""), Code::INVALID_PARAMS, &["a reply was sent to a server"]),
    ];
    for server in servers(&pool) {
        for (bytes, code, parts) in &table {
            // At once, and after a connection that was good so far.
            let mut raw = Raw::connect(server);
            raw.send(bytes);
            ends_with(&mut raw, *code, parts);
            let mut raw = Raw::greeted(server, Incarnation(5));
            raw.send(bytes);
            ends_with(&mut raw, *code, parts);
        }
    }
    pool.serves("after");
}

#[test]
fn frames_that_break_off_harm_nobody() {
    let pool = Pool::new(&["4MiB"]);
    let mut body = Vec::new();
    codec::put(&mut body, &hello(Incarnation(6)));
    let whole = framed(&Header::request(message::HELLO, 2, None), &body);
    for server in servers(&pool) {
        for cut in [0, 1, HEADER - 1, HEADER, whole.len() - 1] {
            let mut raw = Raw::connect(server);
            raw.send(&whole[..cut]);
            raw.end();
            raw.closed();
        }
        // Half a frame, and gone without a word; a whole one, and nobody waits for the answer.
        for bytes in [&whole[..40], &whole[..]] {
            let mut raw = Raw::connect(server);
            raw.send(bytes);
        }
        // What was whole before the end is answered.
        let mut raw = Raw::connect(server);
        raw.send(&whole);
        raw.end();
        let (header, _) = raw.receive().expect("an answer");
        assert!(header.status.is_ok());
        raw.closed();
    }
    pool.serves("after");
}

#[test]
fn methods_that_nobody_knows_are_refused_and_the_connection_stays() {
    let pool = Pool::new(&["4MiB"]);
    let life = Incarnation(7);
    for (server, who) in servers(&pool).into_iter().zip(["master", "nodes"]) {
        let mut raw = Raw::greeted(server, life);
        for method in [0, 65, 9_999, u16::MAX] {
            let (code, text) = refusal(raw.ask(Method(method), b"anything"));
            assert_eq!(code, Code::NOT_IMPLEMENTED);
            assert!(text.contains(&method.to_string()) && text.contains(who), "{text}");
        }
        let again: message::Welcome = raw.call(message::HELLO, &hello(life)).unwrap();
        assert_eq!(again.protocol, 1);
    }
    pool.serves("after");
}

#[test]
fn nothing_is_answered_before_hello() {
    let pool = Pool::new(&["4MiB"]);
    for server in servers(&pool) {
        for &method in METHODS.iter().filter(|&&method| method != message::HELLO) {
            let mut raw = Raw::connect(server);
            let (code, text) = refusal(raw.ask(method, b""));
            assert_eq!((code, text.as_str()), (Code::INVALID_PARAMS, "say hello first"));
        }
    }
    pool.serves("after");
}

#[test]
fn a_hello_that_does_not_fit_says_why() {
    let pool = Pool::new(&["4MiB"]);
    let good = hello(Incarnation(8));
    for server in servers(&pool) {
        let table: [(Hello<'_>, Code, &str); 3] = [
            (Hello { oldest: 2, newest: 9, ..good }, Code::INVALID_VERSION, "update the older"),
            (Hello { oldest: 0, newest: 0, ..good }, Code::INVALID_VERSION, "update the older"),
            (Hello { expected: Incarnation(1), ..good }, Code::CLIENT_NOT_FOUND, "restarted"),
        ];
        for (said, code, part) in table {
            let mut raw = Raw::connect(server);
            let (got, text) = raw.call::<message::Welcome>(message::HELLO, &said).unwrap_err();
            assert!(got == code && text.contains(part), "{got}: {text}");
            // It was no hello: still nothing is answered.
            let (_, text) = refusal(raw.ask(message::DESCRIBE, b""));
            assert_eq!(text, "say hello first");
        }
        let mut raw = Raw::connect(server);
        let (code, text) = refusal(raw.ask(message::HELLO, b"\xFF\xFF\xFF"));
        assert!(code == Code::INVALID_PARAMS && text.contains("cannot be decoded"), "{code}: {text}");
    }
    let mut raw = Raw::connect(pool.socket());
    let other = Hello { cluster: 12_345, ..good };
    let (code, text) = raw.call::<message::Welcome>(message::HELLO, &other).unwrap_err();
    assert!(code == Code::WRONG_CLUSTER && text.contains("0000000000003039"), "{text}");
    pool.serves("after");
}

/// Every method with bodies of noise: exactly one answer each, and the server lives.
#[test]
fn bodies_of_noise_get_an_answer_each() {
    let pool = Pool::new(&["4MiB"]);
    for server in servers(&pool) {
        let mut raw = Raw::greeted(server, Incarnation(9));
        if server == pool.socket() {
            raw.register("noise");
        }
        for &method in METHODS {
            for seed in 0..60 {
                let noise = pattern(u64::from(method.0) << 16 | seed, (mix(seed) % 80) as usize);
                // Small numbers are likelier to mean something.
                let small: Vec<u8> = noise.iter().map(|byte| byte % 4).collect();
                raw.ask(method, &noise);
                raw.ask(method, &small);
            }
        }
    }
    pool.serves("after");
}

/// Many requests at once, unread answers, a connection that is dropped: nobody else notices.
#[test]
fn a_peer_that_does_not_read_its_answers_stops_nobody() {
    let pool = Pool::new(&["4MiB"]);
    let caller = pool.caller();
    for n in 0..50u8 {
        caller.put(&[vec![n], vec![b'k'; 10 * KIB]].concat(), b"v", &Default::default()).unwrap();
    }
    let mut body = Vec::new();
    codec::put(&mut body, &message::Scan { cursor: 0, limit: 1_000, pattern: message::Pattern::All });
    let mut raw = Raw::greeted(pool.socket(), Incarnation(10));
    for request in 10..60 {
        raw.send(&framed(&Header::request(message::SCAN, request, None), &body));
    }
    pool.serves("meanwhile");
    drop(raw);
    pool.serves("after");
}

/// The node's port for bytes: garbage ends the connection, and the memory is untouched.
#[test]
fn noise_at_the_data_port_ends_the_connection() {
    let pool = Pool::new(&["4MiB"]);
    pool.serves("before");
    let segment = first_segment(&pool);
    let [_, node] = servers(&pool);
    let data = Raw::greeted(node, Incarnation(11)).data_port(segment);
    let hello_of = |version: u16, to: u128| {
        let mut bytes = b"\xF5TCP".to_vec();
        bytes.extend_from_slice(&version.to_le_bytes());
        bytes.extend_from_slice(&[0, 0]);
        bytes.extend_from_slice(&11u128.to_le_bytes());
        bytes.extend_from_slice(&to.to_le_bytes());
        bytes
    };
    let life = {
        let mut raw = Raw::connect(node);
        raw.call::<message::Welcome>(message::HELLO, &hello(Incarnation(11))).unwrap().incarnation
    };
    let good = hello_of(1, life.0);
    let after = |bytes: &[u8]| [&good[..], bytes].concat();
    let table = [
        b"GET / HTTP/1.1\r\n\r\n".to_vec(),
        vec![0; 100],
        vec![0xF5; 100],
        hello_of(2, life.0),
        hello_of(1, life.0 ^ 1),
        after(&[0xFF; 200]),
        after(&[9; 16]),
        // A read and a write of too many items.
        after(&[1, 0, 0xFF, 0xFF, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]),
        after(&[2, 0, 0xFF, 0xFF, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]),
        // A reply to a server.
        after(&[3; 24]),
    ];
    for bytes in &table {
        let mut raw = Raw::connect(data);
        raw.send(bytes);
        raw.closed();
    }
    for cut in [0, 1, 39, 40] {
        let mut raw = Raw::connect(data);
        raw.send(&good[..cut]);
        raw.end();
        raw.closed();
    }
    for seed in 0..40 {
        let mut raw = Raw::connect(data);
        raw.send(&after(&pattern(seed, (mix(seed) % 300) as usize)));
        raw.end();
        raw.closed();
    }
    assert!(pool.caller().get(b"before").unwrap() == pattern(1, 100 * KIB));
    pool.serves("after");
    let which = springtide::Transports { shm: springtide::Use::No, ..Default::default() };
    assert!(pool.caller_with(&which, |config| config).get(b"after").unwrap() == pattern(1, 100 * KIB));
}
