//! Keys of any bytes, values of any length.

use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt;

use springtide::{Code, Forcing, Pattern, PutOptions, Transports, Use};

use crate::support::{KIB, MIB, Pool, keys, pattern, refused};

/// Keys that careless code confuses (case 1), and the longest there is.
fn awkward() -> Vec<Vec<u8>> {
    let mut keys: Vec<Vec<u8>> = [
        "a/b", "a_b", "a:b", "a\\b", "a*b", "a?b", "a\"b", "a<b", "a>b", "a|b", ".", "..", "../x", "a b",
        "a\nb", "é", "x", "*", "^", "-", "a\0b", "\0", "a\0",
    ]
    .map(|key| key.as_bytes().to_vec())
    .to_vec();
    keys.extend([vec![0xFF], b"\xC3\x28".to_vec(), vec![b'k'; 300], vec![b'k'; 4 * KIB]]);
    keys.extend([vec![b'k'; 65_535], vec![0; 65_535]]);
    keys
}

#[test]
fn keys_are_bytes_and_none_is_another() {
    let pool = Pool::new(&["16MiB"]);
    let caller = pool.caller();
    let all = awkward();
    for (seed, key) in all.iter().enumerate() {
        caller.put(key, &pattern(seed as u64, 4 * KIB), &PutOptions::default()).unwrap();
    }
    for (seed, key) in all.iter().enumerate() {
        assert!(caller.get(key).unwrap() == pattern(seed as u64, 4 * KIB), "{}", key.escape_ascii());
    }
    let mut sorted = all.clone();
    sorted.sort();
    assert!(keys(&caller, Pattern::All) == sorted);
    for key in &all {
        caller.remove(key, Forcing::Yes).unwrap();
        assert!(!caller.exists(key).unwrap());
    }
    assert_eq!(keys(&caller, Pattern::All), [b""; 0]);
}

#[test]
fn short_keys_that_look_alike_stay_apart() {
    let pool = Pool::new(&["16MiB"]);
    let caller = pool.caller();
    let signs = b"/\\:*?\"<>|_";
    let all: Vec<[u8; 4]> = (0..10_000usize)
        .map(|n| [n / 1_000, n / 100 % 10, n / 10 % 10, n % 10].map(|digit| signs[digit]))
        .collect();
    for chunk in all.chunks(2_500) {
        let values: Vec<[u8; 8]> =
            chunk.iter().map(|key| [*key, *key].concat().try_into().unwrap()).collect();
        let items: Vec<(&[u8], &[u8])> =
            chunk.iter().zip(&values).map(|(key, value)| (&key[..], &value[..])).collect();
        assert!(caller.put_batch(&items, &PutOptions::default()).iter().all(Result::is_ok));
    }
    for chunk in all.chunks(2_500) {
        let asked: Vec<&[u8]> = chunk.iter().map(|key| &key[..]).collect();
        for (key, value) in asked.iter().zip(caller.get_batch(&asked)) {
            assert_eq!(value.unwrap(), [*key, *key].concat());
        }
    }
    assert_eq!(keys(&caller, Pattern::All).len(), 10_000);
}

#[test]
fn what_is_no_key_is_refused_everywhere() {
    let pool = Pool::new(&["1MiB"]);
    let caller = pool.caller();
    for key in [vec![], vec![b'k'; 65_536]] {
        let parts = ["1 to 65535 bytes", "-400"];
        refused(caller.put(&key, b"value", &PutOptions::default()), Code::INVALID_KEY, &parts);
        refused(caller.get(&key), Code::INVALID_KEY, &parts);
        refused(caller.exists(&key), Code::INVALID_KEY, &parts);
        refused(caller.remove(&key, Forcing::Yes), Code::INVALID_KEY, &parts);
        refused(caller.run(caller.client().stat(&key)), Code::INVALID_KEY, &parts);
        refused(caller.run(caller.client().locate(&key)), Code::INVALID_KEY, &parts);
        let text = String::from_utf8(key).unwrap();
        for command in ["get", "exists", "stat", "rm", "ls"] {
            pool.run(&[command, &text]).failed(2, &["1 to 65535"]);
        }
        pool.run(&["put", &text, "/dev/null"]).failed(2, &["1 to 65535"]);
    }
    assert_eq!(pool.figure("pool", "objects"), 0);
}

#[test]
fn keys_on_the_command_line_are_bytes_too() {
    let pool = Pool::new(&["1MiB"]);
    let file = pool.folder().join("value");
    std::fs::write(&file, "bytes").unwrap();
    for key in [b"\xFF\xFE".to_vec(), "é\n".into(), b"--".to_vec(), vec![b'k'; 65_535]] {
        let name = OsString::from_vec(key);
        let word = |text: &str| OsString::from(text);
        pool.run(&[word("put"), word("--"), name.clone(), file.clone().into()]).done();
        assert_eq!(pool.run(&[word("get"), word("--"), name.clone()]).done().out(), "bytes");
        pool.run(&[word("rm"), word("--force"), word("--"), name]).done();
    }
}

const LENGTHS: [usize; 8] = [0, 1, 63, 64 * KIB - 1, 64 * KIB, 64 * KIB + 1, MIB + 7, 64 * MIB];

#[test]
fn values_of_every_length_come_back_by_every_transport() {
    let pool = Pool::new(&["160MiB"]);
    let both = [("shm", Use::Yes, Use::No), ("tcp", Use::No, Use::Yes)];
    for (name, shm, tcp) in both {
        let caller = pool.caller_with(&Transports { shm, tcp, ..Transports::default() }, |config| config);
        for len in LENGTHS {
            let (key, value) = (format!("{name}-{len}"), pattern(len as u64, len));
            caller.put(key.as_bytes(), &value, &PutOptions::default()).unwrap();
            assert!(caller.get(key.as_bytes()).unwrap() == value, "{key}");
        }
    }
    // What one wrote the other reads.
    let tcp = pool.caller_with(&Transports { shm: Use::No, ..Transports::default() }, |config| config);
    assert!(tcp.get(b"shm-1048583").unwrap() == pattern(1_048_583, MIB + 7));
}

#[test]
fn the_command_moves_files_of_every_length() {
    let pool = Pool::new(&["96MiB"]);
    let (from, to) = (pool.folder().join("from"), pool.folder().join("to"));
    let (from, to) = (from.to_str().unwrap(), to.to_str().unwrap());
    for len in [0, 1, MIB + 7, 40 * MIB] {
        let (key, value) = (format!("k{len}"), pattern(9, len));
        std::fs::write(from, &value).unwrap();
        pool.run(&["put", &key, from]).done();
        pool.run(&["get", &key, "-o", to]).done();
        assert!(std::fs::read(to).unwrap() == value, "{key}");
        assert!(pool.run(&["get", &key]).done().bytes == value, "{key}");
    }
    let stat = pool.run(&["stat", "k1048583", "--json"]).done().json();
    assert_eq!(
        (&stat["bytes"], &stat["replicas"], &stat["writing"]),
        (&1_048_583.into(), &1.into(), &false.into())
    );
    pool.run(&["get", "nothing"]).failed(1, &["nothing", "no such object", "-704"]);
    pool.run(&["put", "k", "/nowhere/file"]).failed(1, &["cannot read /nowhere/file"]);
    pool.run(&["get", "k1", "-o", "/nowhere/file"]).failed(1, &["cannot write /nowhere/file"]);
}

#[test]
fn an_empty_value_is_no_miss() {
    let pool = Pool::new(&["1MiB"]);
    let caller = pool.caller();
    caller.put(b"empty", b"", &PutOptions::default()).unwrap();
    let batch: [(&[u8], &[u8]); 3] = [(b"a", b"four"), (b"b", b""), (b"c", b"more")];
    assert!(caller.put_batch(&batch, &PutOptions::default()).iter().all(Result::is_ok));
    let memory = caller.allocate(64).unwrap();
    let none = memory.slice(0, 0).unwrap();
    caller.put_from(b"from", none, &PutOptions::default()).unwrap();
    for key in [&b"empty"[..], b"b", b"from"] {
        assert!(caller.exists(key).unwrap());
        assert_eq!(caller.get(key).unwrap(), b"");
        assert_eq!(caller.get_into(key, memory.whole()).unwrap(), 0);
        assert_eq!(caller.get_into(key, none).unwrap(), 0);
        assert_eq!(caller.run(caller.client().stat(key)).unwrap().len, 0);
    }
    assert_eq!(caller.get_batch(&[b"a", b"b", b"c"]).map_ok(), ["four", "", "more"].map(Vec::from));
    refused(caller.get(b"other"), Code::OBJECT_NOT_FOUND, &["no such object"]);
    assert_eq!(pool.run(&["get", "empty"]).done().bytes, b"");
    assert_eq!(pool.run(&["exists", "empty"]).done().out(), "yes\n");
    let absent = pool.run(&["exists", "other"]);
    assert_eq!((absent.code, absent.out().as_str()), (1, "no\n"));
}

trait AllOk<T> {
    fn map_ok(self) -> Vec<T>;
}

impl<T, E: core::fmt::Debug> AllOk<T> for Vec<Result<T, E>> {
    fn map_ok(self) -> Vec<T> {
        self.into_iter().map(Result::unwrap).collect()
    }
}
