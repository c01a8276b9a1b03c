//! One value over several pieces of memory: put from them, got into them, with sums over the whole.

use springtide::core::rng::mix;
use springtide::{Checksums, ClientConfig, Code, PutOptions, Slice, Transports, Use};

use crate::support::{KIB, MIB, Pool, pattern, refused};

/// Cuts `len` bytes into about `count` parts of all lengths, empty ones among them.
fn cut(seed: u64, len: usize, count: usize) -> Vec<usize> {
    let mut cuts: Vec<usize> = (0..count as u64).map(|at| mix(seed << 8 ^ at) as usize % (len + 1)).collect();
    cuts.extend([0, 0, len, len]);
    cuts.sort_unstable();
    cuts.windows(2).map(|pair| pair[1] - pair[0]).collect()
}

/// The parts of `value`, laid out in `memory` with room between them, from the last to the first.
fn lay_out<'a>(memory: &'a springtide::Memory, value: &[u8], lens: &[usize]) -> Vec<Slice<'a>> {
    let mut room = memory.len();
    let mut at = 0;
    let slice = |&len: &usize| {
        room -= len as u64 + 3;
        memory.write(room, &value[at..at + len]).unwrap();
        at += len;
        memory.slice(room, len as u64).unwrap()
    };
    lens.iter().map(slice).collect()
}

fn joined(memory: &springtide::Memory, slices: &[(u64, usize)]) -> Vec<u8> {
    let mut bytes = Vec::new();
    for &(at, len) in slices {
        let mut part = vec![0; len];
        memory.read(at, &mut part).unwrap();
        bytes.extend(part);
    }
    bytes
}

#[test]
fn values_cut_at_any_place_come_back_cut_at_another() {
    let pool = Pool::new(&["32MiB", "32MiB"]);
    let two = PutOptions { replicas: 2, ..PutOptions::default() };
    for (name, checksums, tcp) in [
        ("sums-shm", Checksums::Verify, Use::No),
        ("sums-tcp", Checksums::Verify, Use::Yes),
        ("plain-tcp", Checksums::Off, Use::Yes),
    ] {
        let shm = if tcp == Use::Yes { Use::No } else { Use::Yes };
        let which = Transports { shm, tcp, ..Transports::default() };
        let caller = pool.caller_with(&which, |config| ClientConfig { checksums, ..config });
        let memory = caller.allocate(4 * MIB as u64).unwrap();
        for (seed, len) in [0, 1, 100, 64 * KIB, 64 * KIB + 1, MIB + 7].into_iter().enumerate() {
            let (seed, key) = (seed as u64, format!("{name}-{len}"));
            let value = pattern(seed, len);
            let put = lay_out(&memory, &value, &cut(seed, len, 9));
            caller.put_from_parts(key.as_bytes(), &put, &two).unwrap();
            assert!(caller.get(key.as_bytes()).unwrap() == value, "{key}");

            memory.write(0, &vec![0xEE; 4 * MIB]).unwrap();
            let lens = cut(seed + 77, len, 5);
            let mut at = 1;
            let places = lens.iter().map(|&len| {
                let place = (at, len);
                at += len as u64 + 5;
                place
            });
            let places: Vec<(u64, usize)> = places.collect();
            let slice = |&(at, len): &(u64, usize)| memory.slice(at, len as u64).unwrap();
            let mut into: Vec<Slice<'_>> = places.iter().map(slice).collect();
            // Room behind the value stays as it was.
            into.push(memory.slice(at, 64).unwrap());
            assert_eq!(caller.get_into_parts(key.as_bytes(), &into).unwrap(), len as u64, "{key}");
            assert!(joined(&memory, &places) == value, "{key}");
            let between = places.iter().map(|&(at, len)| (at + len as u64, 5)).chain([(0, 1), (at, 64)]);
            let between = joined(&memory, &between.collect::<Vec<_>>());
            assert!(between.iter().all(|&byte| byte == 0xEE), "{key}: only the parts are touched");
        }
    }
}

#[test]
fn memory_that_is_not_registered_may_come_in_parts_too() {
    let pool = Pool::new(&["16MiB"]);
    let caller = pool.caller();
    let value = pattern(3, 200_000);
    let (a, rest) = value.split_at(70_001);
    caller.put_parts(b"k", &[a, &[], rest], &PutOptions::default()).unwrap();
    assert!(caller.get(b"k").unwrap() == value);
    let (mut x, mut y, mut z) = (vec![0xEE; 1], vec![0xEE; 150_000], vec![0xEE; 60_000]);
    assert_eq!(caller.get_parts(b"k", &mut [&mut x, &mut [], &mut y, &mut z]).unwrap(), 200_000);
    assert!(x[..] == value[..1] && y[..] == value[1..150_001] && z[..49_999] == value[150_001..]);
    assert!(z[49_999..].iter().all(|&byte| byte == 0xEE));

    let small = caller.get_parts(b"k", &mut [&mut x[..], &mut y[..], &mut z[..49_998]]);
    refused(small, Code::INVALID_PARAMS, &["the parts hold 199999 bytes", "200000", "-600"]);

    let items: [(&[u8], &[&[u8]]); 3] = [(b"p", &[b"ab", b"cd"]), (b"", &[b"x"]), (b"q", &[])];
    let put = caller.put_parts_batch(&items, &PutOptions::default());
    assert!(put[0].is_ok() && put[2].is_ok());
    assert_eq!(put[1].as_ref().unwrap_err().code(), Code::INVALID_KEY);
    let (mut p, mut q) = ([0; 5], [0; 1]);
    let (first, second) = p.split_at_mut(3);
    let got = caller.get_parts_batch(&mut [
        (b"p", &mut [first, second]),
        (b"none", &mut []),
        (b"q", &mut [&mut q]),
    ]);
    let codes: Vec<_> = got.into_iter().map(|result| result.map_err(|error| error.code())).collect();
    assert_eq!((codes, p), (vec![Ok(4), Err(Code::OBJECT_NOT_FOUND), Ok(0)], *b"abcd\0"));
}

/// S0B-140: parts that hold less than the value, and memory that is not this client's.
#[test]
fn parts_that_do_not_fit_are_refused_before_a_byte_moves() {
    let pool = Pool::new(&["16MiB"]);
    let (caller, other) = (pool.caller(), pool.caller());
    let (memory, foreign) = (caller.allocate(MIB as u64).unwrap(), other.allocate(64).unwrap());
    let value = pattern(5, 100_000);
    caller.put(b"k", &value, &PutOptions::default()).unwrap();
    caller.put(b"empty", b"", &PutOptions::default()).unwrap();
    memory.write(0, &vec![0xEE; MIB]).unwrap();
    let slice = |at, len| memory.slice(at, len).unwrap();
    let (half, short, none) = (slice(0, 50_000), slice(50_000, 49_999), slice(7, 0));
    let exact = [slice(500_000, 100_000)];

    let items: [(&[u8], &[Slice<'_>]); 6] = [
        (b"k", &[half, none, short]),
        (b"k", &[]),
        (b"k", &[half, half, foreign.whole()]),
        (b"empty", &[]),
        (b"empty", &[none]),
        (b"k", &exact),
    ];
    let mut got = caller.get_into_parts_batch(&items);
    assert_eq!((got.pop().unwrap().unwrap(), got.pop().unwrap().unwrap()), (100_000, 0));
    assert_eq!(got.pop().unwrap().unwrap(), 0);
    refused(got.pop().unwrap(), Code::INVALID_PARAMS, &["another client", "-600"]);
    refused(got.pop().unwrap(), Code::INVALID_PARAMS, &["the parts hold 0 bytes", "100000", "-600"]);
    refused(got.pop().unwrap(), Code::INVALID_PARAMS, &["the parts hold 99999 bytes", "100000", "-600"]);
    assert!(joined(&memory, &[(500_000, 100_000)]) == value);
    let untouched = joined(&memory, &[(0, 500_000)]);
    assert!(untouched.iter().all(|&byte| byte == 0xEE), "what was refused moved nothing");

    // A piece and a put of another client's memory would move other bytes than were meant.
    let put = caller.put_from_parts(b"n", &[half, foreign.whole()], &PutOptions::default());
    refused(put, Code::INVALID_PARAMS, &["another client"]);
    refused(
        caller.put_from(b"n", foreign.whole(), &PutOptions::default()),
        Code::INVALID_PARAMS,
        &["another"],
    );
    refused(caller.get_into(b"empty", foreign.whole()), Code::INVALID_PARAMS, &["another client"]);
    assert!(!caller.exists(b"n").unwrap());

    let items: [(&[u8], &[Slice<'_>]); 4] =
        [(b"n", &[]), (b"m", &[none, none]), (b"k", &[half]), (b"n", &[half])];
    let put = caller.put_from_parts_batch(&items, &PutOptions::default());
    let codes: Vec<_> = put.into_iter().map(|result| result.err().map(|error| error.code())).collect();
    let exists = Some(Code::OBJECT_ALREADY_EXISTS);
    assert_eq!(codes, [None, None, exists, exists]);
    assert_eq!((caller.get(b"n").unwrap(), caller.get(b"m").unwrap()), (vec![], vec![]));
}

/// S3A-112: what is read twice in one call is asked for once, and each place gets its own bytes.
#[test]
fn a_key_that_stands_there_often_is_asked_for_once() {
    let pool = Pool::new(&["16MiB"]);
    let caller = pool.caller();
    let (long, short) = (pattern(1, 300_000), pattern(2, 5_000));
    caller.put(b"long", &long, &PutOptions::default()).unwrap();
    caller.put(b"short", &short, &PutOptions::default()).unwrap();
    // All of them together would not fit into one call: they are 60 000 bytes each.
    let name = vec![b'n'; 60_000];
    caller.put(&name, &short, &PutOptions::default()).unwrap();
    let many: Vec<&[u8]> = vec![&name; 300];
    let before = pool.figure("counters", "hits");
    assert!(caller.get_batch(&many).into_iter().all(|value| value.unwrap() == short));
    assert_eq!(pool.figure("counters", "hits") - before, 1);

    let memory = caller.allocate(MIB as u64).unwrap();
    let cuts: Vec<(&[u8], u64, u64)> = (0..200)
        .map(|n| if n % 3 == 0 { (&b"short"[..], n, 40) } else { (&b"long"[..], n * 997, 100) })
        .chain([(&b"none"[..], 0, 1), (b"none", 0, 1)])
        .collect();
    let piece = |(n, &(key, at, len)): (usize, &(&'static [u8], u64, u64))| springtide::Piece {
        key,
        at,
        len: Some(len),
        into: memory.slice(n as u64 * 100, 100).unwrap(),
    };
    let pieces: Vec<springtide::Piece<'_>> = cuts.iter().enumerate().map(piece).collect();
    let before = pool.figure("counters", "hits");
    let got = caller.get_pieces(&pieces);
    assert_eq!(pool.figure("counters", "hits") - before, 2);
    for (n, (result, &(key, at, len))) in got.into_iter().zip(&cuts).enumerate() {
        if key == b"none" {
            assert_eq!(result.unwrap_err().code(), Code::OBJECT_NOT_FOUND);
            continue;
        }
        assert_eq!(result.unwrap(), len);
        let whole = if key == b"short" { &short } else { &long };
        let wanted = &whole[at as usize..(at + len) as usize];
        assert!(joined(&memory, &[(n as u64 * 100, len as usize)]) == wanted, "piece {n}");
    }
}
