//! Batches: every item has its own result, in the order asked.

use springtide::core::id::Incarnation;
use springtide::{Code, Error, Forcing, Presence, PutOptions};

use crate::raw::Raw;
use crate::support::{KIB, MIB, Pool, pattern};

fn codes<T>(results: Vec<Result<T, Error>>) -> Vec<i16> {
    results.into_iter().map(|result| result.err().map_or(0, |error| error.code().number())).collect()
}

#[test]
fn one_bad_item_does_not_fail_the_others() {
    let pool = Pool::new(&["16MiB"]);
    let caller = pool.caller();
    caller.put(b"there", b"old", &PutOptions::default()).unwrap();
    let (long, large) = (vec![b'k'; 65_536], pattern(1, 17 * MIB));
    let items: [(&[u8], &[u8]); 6] =
        [(b"a", b"1"), (b"", b"2"), (b"there", b"new"), (b"large", &large), (&long, b"3"), (b"z", b"4")];
    assert_eq!(codes(caller.put_batch(&items, &PutOptions::default())), [0, -400, -705, -1908, -400, 0]);
    let got = caller.get_batch(&[b"a", b"there", b"z"]);
    assert_eq!(got.into_iter().map(Result::unwrap).collect::<Vec<_>>(), [&b"1"[..], b"old", b"4"]);
}

#[test]
fn one_key_twice_in_a_batch_is_stored_once() {
    let pool = Pool::new(&["16MiB"]);
    let caller = pool.caller();
    let (first, second) = (vec![0x11; 100 * KIB], vec![0x22; 100 * KIB]);
    let items: [(&[u8], &[u8]); 3] = [(b"k", &first), (b"k", &second), (b"n", b"value")];
    assert_eq!(codes(caller.put_batch(&items, &PutOptions::default())), [0, -705, 0]);
    assert!(caller.get(b"k").unwrap() == first);
    assert_eq!(caller.get(b"n").unwrap(), b"value");
    let twice = caller.get_batch(&[b"k", b"k"]);
    assert!(twice.into_iter().all(|value| value.unwrap() == first));
    let removed =
        caller.run(async { Ok(caller.client().remove_batch(&[b"n", b"n", b"none"], Forcing::Yes).await) });
    assert_eq!(codes(removed.unwrap()), [0, -704, -704]);
    assert_eq!(pool.figure("pool", "objects"), 1);
}

/// Case 5: k3 and k7 are missing, k5 is begun and not ended.
#[test]
fn what_is_missing_does_not_hide_what_is_there() {
    let pool = Pool::new(&["16MiB"]);
    let caller = pool.caller();
    let names: Vec<String> = (0..10).map(|n| format!("k{n}")).collect();
    let keys: Vec<&[u8]> = names.iter().map(|name| name.as_bytes()).collect();
    for n in [0, 1, 2, 4, 6, 8, 9] {
        caller.put(keys[n], &pattern(n as u64, 1_000), &PutOptions::default()).unwrap();
    }
    let mut other = Raw::greeted(pool.socket(), Incarnation(77));
    other.register("writer");
    other.put_start(b"k5", 1_000).unwrap();

    let there = caller.run(async { Ok(caller.client().exists_batch(&keys).await) }).unwrap();
    let (present, absent) = (Presence::Present, Presence::Absent);
    let wanted =
        [present, present, present, absent, present, Presence::Writing, present, absent, present, present];
    assert_eq!(there.into_iter().map(Result::unwrap).collect::<Vec<_>>(), wanted);

    let wanted = [0, 0, 0, -704, 0, -703, 0, -704, 0, 0];
    let got = caller.get_batch(&keys);
    for (n, value) in got.iter().enumerate().filter(|(n, _)| wanted[*n] == 0) {
        assert!(value.as_ref().unwrap() == &pattern(n as u64, 1_000));
    }
    assert_eq!(codes(got), wanted);

    assert_eq!(codes(caller.get_batch(&[])), [0; 0]);
    assert_eq!(codes(caller.put_batch(&[], &PutOptions::default())), [0; 0]);
    assert_eq!(codes(caller.put_from_batch(&[], &PutOptions::default())), [0; 0]);
    // What is being written is neither replaced nor removed.
    assert_eq!(
        caller.put(b"k5", b"x", &PutOptions::default()).unwrap_err().code(),
        Code::OBJECT_ALREADY_EXISTS
    );
    assert_eq!(caller.remove(b"k5", Forcing::No).unwrap_err().code(), Code::REPLICA_IS_NOT_READY);
}

/// A batch whose call does not fit into one frame is refused as a whole, and says what to do.
#[test]
fn a_batch_that_is_too_long_for_a_frame_says_so() {
    let pool = Pool::new(&["1MiB"]);
    let caller = pool.caller();
    let keys: Vec<Vec<u8>> = (0..300u16).map(|n| [n.to_le_bytes(); 30_000].concat()).collect();
    let keys: Vec<&[u8]> = keys.iter().map(|key| &key[..]).collect();
    let got = caller.get_batch(&keys);
    assert!(got.len() == 300 && codes(got).iter().all(|&code| code == -600));
    let items: Vec<(&[u8], &[u8])> = keys.iter().map(|&key| (key, &b"v"[..])).collect();
    assert!(codes(caller.put_batch(&items, &PutOptions::default())).iter().all(|&code| code == -600));
    pool.serves("after");
}
