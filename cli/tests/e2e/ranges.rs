//! Pieces of values (S3A-110 … S3A-113), and memory of the caller's own.

use core::future::Future;

use springtide::{Checksums, Code, Piece, PutOptions, Transports, Use};

use crate::support::{KIB, MIB, Pool, pattern, refused};

/// Where a piece begins and how long it is, in a value of 1 MiB + 7 bytes: blocks are of 64 KiB.
const PIECES: [(usize, usize); 12] = [
    (0, 1),
    (0, 64 * KIB),
    (1, 64 * KIB - 2),
    (64 * KIB - 1, 2),
    (64 * KIB, 64 * KIB),
    (100_000, 300_000),
    (MIB, 7),
    (MIB + 6, 1),
    (MIB - 1, 8),
    (MIB + 7, 0),
    (5, 0),
    (0, MIB + 7),
];

#[test]
fn a_piece_is_exactly_what_was_asked_for() {
    let pool = Pool::new(&["16MiB"]);
    let value = pattern(3, MIB + 7);
    for (key, checksums, tcp) in [
        ("sums-shm", Checksums::Verify, Use::No),
        ("sums-tcp", Checksums::Verify, Use::Yes),
        ("plain-shm", Checksums::Off, Use::No),
        ("plain-tcp", Checksums::Off, Use::Yes),
    ] {
        let shm = if tcp == Use::Yes { Use::No } else { Use::Yes };
        let which = Transports { shm, tcp, ..Transports::default() };
        let caller = pool.caller_with(&which, |config| springtide::ClientConfig { checksums, ..config });
        caller.put(key.as_bytes(), &value, &PutOptions::default()).unwrap();
        let memory = caller.allocate(2 * MIB as u64).unwrap();
        for (at, len) in PIECES {
            memory.write(0, &vec![0xEE; 2 * MIB]).unwrap();
            let into = memory.slice(10, len as u64 + 5).unwrap();
            let piece = Piece { key: key.as_bytes(), at: at as u64, len: Some(len as u64), into };
            let got = caller.get_pieces(&[piece]).pop().unwrap();
            assert_eq!(got.unwrap(), len as u64, "{key} {at} {len}");
            let mut around = vec![0; len + 20];
            memory.read(0, &mut around).unwrap();
            assert!(around[10..10 + len] == value[at..at + len], "{key} {at} {len}");
            assert!(around[..10] == [0xEE; 10], "{key} {at} {len}: bytes before");
            assert!(around[10 + len..] == [0xEE; 10], "{key} {at} {len}: bytes behind");
        }
    }
}

#[test]
fn many_pieces_of_one_value_and_of_others_in_one_call() {
    let pool = Pool::new(&["16MiB"]);
    let caller = pool.caller();
    let (a, b) = (pattern(1, MIB + 7), pattern(2, 1_000));
    caller.put(b"a", &a, &PutOptions::default()).unwrap();
    caller.put(b"b", &b, &PutOptions::default()).unwrap();
    let memory = caller.allocate(MIB as u64).unwrap();
    let into = |at: u64| memory.slice(at, 1_000).unwrap();
    let piece = |key, at, len, into| Piece { key, at, len, into };
    let got = caller.get_pieces(&[
        piece(b"a", 0, Some(1_000), into(0)),
        piece(b"none", 0, Some(10), into(1_000)),
        piece(b"a", 65_000, Some(1_000), into(2_000)),
        piece(b"b", 400, None, into(3_000)),
        piece(b"b", 900, Some(200), into(4_000)),
        piece(b"b", 1_001, None, into(5_000)),
        piece(b"", 0, None, into(6_000)),
        piece(b"a", MIB as u64, None, into(7_000)),
    ]);
    let codes: Vec<Result<u64, Code>> =
        got.into_iter().map(|result| result.map_err(|error| error.code())).collect();
    let wanted = [
        Ok(1_000),
        Err(Code::OBJECT_NOT_FOUND),
        Ok(1_000),
        Ok(600),
        Err(Code::INVALID_PARAMS),
        Err(Code::INVALID_PARAMS),
        Err(Code::INVALID_KEY),
        Ok(7),
    ];
    assert_eq!(codes, wanted);
    let mut read = vec![0; 8_000];
    memory.read(0, &mut read).unwrap();
    assert!(read[..1_000] == a[..1_000] && read[2_000..3_000] == a[65_000..66_000]);
    assert!(read[3_000..3_600] == b[400..] && read[7_000..7_007] == a[MIB..]);
    assert!(caller.get_pieces(&[]).is_empty());
}

#[test]
fn a_piece_outside_its_value_says_how_long_that_is() {
    let pool = Pool::new(&["1MiB"]);
    let caller = pool.caller();
    caller.put(b"k", b"0123456789", &PutOptions::default()).unwrap();
    let memory = caller.allocate(64).unwrap();
    for (at, len) in [(0, 11), (10, 1), (11, 0), (u64::MAX, 1), (5, u64::MAX)] {
        let piece = Piece { key: b"k", at, len: Some(len), into: memory.whole() };
        let got = caller.get_pieces(&[piece]).pop().unwrap();
        refused(got, Code::INVALID_PARAMS, &["the value has 10 bytes", &at.to_string(), "-600"]);
    }
    pool.run(&["get", "k", "--offset", "11"]).failed(1, &["the value has 10 bytes", "11", "-600"]);
    assert_eq!(pool.run(&["get", "k", "--offset", "8"]).done().out(), "89");
    assert_eq!(pool.run(&["get", "k", "--offset", "2", "--length", "3"]).done().out(), "234");
    assert_eq!(pool.run(&["get", "k", "--offset", "10"]).done().out(), "");
}

#[test]
fn memory_of_the_callers_own_needs_to_be_large_enough() {
    let pool = Pool::new(&["16MiB"]);
    let caller = pool.caller();
    let memory = caller.allocate(MIB as u64).unwrap();
    let value = pattern(5, 300_000);
    memory.write(100, &value).unwrap();
    caller.put_from(b"k", memory.slice(100, 300_000).unwrap(), &PutOptions::default()).unwrap();
    assert!(caller.get(b"k").unwrap() == value);

    memory.write(0, &vec![0xEE; MIB]).unwrap();
    let small = memory.slice(0, 299_999).unwrap();
    refused(
        caller.get_into(b"k", small),
        Code::BUFFER_OVERFLOW,
        &["too small", "299999 bytes for 300000", "-10"],
    );
    let mut untouched = vec![0; MIB];
    memory.read(0, &mut untouched).unwrap();
    assert!(untouched.iter().all(|&byte| byte == 0xEE));

    assert_eq!(caller.get_into(b"k", memory.slice(7, 300_000).unwrap()).unwrap(), 300_000);
    let mut back = vec![0; 300_000];
    memory.read(7, &mut back).unwrap();
    assert!(back == value);

    let outside = memory.slice(MIB as u64 - 1, 2).map(|_| ());
    refused(outside, Code::INVALID_PARAMS, &[]);
    refused(memory.write(MIB as u64 - 1, b"ab"), Code::INVALID_PARAMS, &[]);
    refused(memory.read(u64::MAX, &mut [0]), Code::INVALID_PARAMS, &[]);
}

/// A read that is dropped on its way may still store: never into what another read was given.
#[test]
fn dropped_reads_spoil_no_other() {
    let pool = Pool::new(&["32MiB"]);
    let which = Transports { shm: Use::No, ..Transports::default() };
    let plain = |config| springtide::ClientConfig { checksums: Checksums::Off, ..config };
    let caller = pool.caller_with(&which, plain);
    let values = [pattern(1, 200 * KIB), pattern(2, 200 * KIB)];
    for (key, value) in ["a", "b"].iter().zip(&values) {
        caller.put(key.as_bytes(), value, &PutOptions::default()).unwrap();
    }
    let client = caller.client();
    for round in 0..150u32 {
        let good = caller.run(async {
            let mut dropped = Box::pin(client.get(b"a"));
            let mut polls = 0;
            core::future::poll_fn(|cx| {
                polls += 1;
                match dropped.as_mut().poll(cx) {
                    core::task::Poll::Pending if polls <= round % 4 => core::task::Poll::Pending,
                    _ => core::task::Poll::Ready(()),
                }
            })
            .await;
            drop(dropped);
            let got = client.get_batch(&[b"b", b"b"]).await;
            Ok(got.into_iter().all(|value| value.unwrap() == values[1]))
        });
        assert!(good.unwrap(), "round {round}");
    }
}
