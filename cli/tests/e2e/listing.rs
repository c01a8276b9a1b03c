//! Listing and removing: by key, by prefix, by regular expression, with leases and by force.

use springtide::{Code, Forcing, Pattern, PutOptions};

use crate::support::{Caller, PATIENCE, Pool, eventually, keys, refused};

fn fill(caller: &Caller, names: &[&str]) {
    for name in names {
        caller.put(name.as_bytes(), name.as_bytes(), &PutOptions::default()).unwrap();
    }
}

fn listed(pool: &Pool, arguments: &[&str]) -> Vec<String> {
    let mut all = vec!["ls", "--json"];
    all.extend(arguments);
    let json = pool.run(&all).done().json();
    let names = json.as_array().unwrap().iter().map(|object| object["key"].as_str().unwrap().to_owned());
    let mut names: Vec<String> = names.collect();
    names.sort();
    names
}

#[test]
fn ls_takes_a_key_a_prefix_or_an_expression() {
    let pool = Pool::new(&["1MiB"]);
    fill(&pool.caller(), &["layer-1", "layer-2", "layer-10", "other", "a*b"]);
    assert_eq!(listed(&pool, &[]), ["a*b", "layer-1", "layer-10", "layer-2", "other"]);
    assert_eq!(listed(&pool, &["*"]).len(), 5);
    assert_eq!(listed(&pool, &["layer-1"]), ["layer-1"]);
    assert_eq!(listed(&pool, &["layer-1*"]), ["layer-1", "layer-10"]);
    assert_eq!(listed(&pool, &["none*"]), [""; 0]);
    assert_eq!(listed(&pool, &["none"]), [""; 0]);
    assert_eq!(listed(&pool, &["--regex", "^layer-[0-9]$"]), ["layer-1", "layer-2"]);
    assert_eq!(listed(&pool, &["--regex", "er"]).len(), 4);
    assert_eq!(listed(&pool, &["--limit", "2"]).len(), 2);
    let table = pool.run(&["ls", "other"]).done().out();
    assert!(table.contains("length") && table.contains("5 B") && table.contains("other"), "{table}");
}

#[test]
fn a_listing_longer_than_a_page_is_whole() {
    let pool = Pool::new(&["4MiB"]);
    let caller = pool.caller();
    let names: Vec<String> = (0..3_000).map(|n| format!("key-{n:05}")).collect();
    let items: Vec<(&[u8], &[u8])> = names.iter().map(|name| (name.as_bytes(), &b"v"[..])).collect();
    assert!(caller.put_batch(&items, &PutOptions::default()).iter().all(Result::is_ok));
    assert_eq!(listed(&pool, &[]), names);
    assert_eq!(listed(&pool, &["--regex", "[0-4]$"]).len(), 1_500);
    let json = pool.run(&["rm", "--json", "--regex", "[0-4]$"]).done().json();
    assert_eq!((&json["removed"], &json["kept"]), (&1_500.into(), &0.into()));
    assert_eq!(listed(&pool, &["key-*"]).len(), 1_500);
    pool.run(&["rm", "*"]).done();
    assert_eq!(listed(&pool, &[]).len(), 0);
}

/// Keys of the greatest length fill pages by bytes, not by count.
#[test]
fn a_listing_of_long_keys_is_whole() {
    let pool = Pool::new(&["1MiB"]);
    let caller = pool.caller();
    let names: Vec<Vec<u8>> = (0..200u8).map(|n| [vec![b'k'; 65_534], vec![n]].concat()).collect();
    for chunk in names.chunks(50) {
        let items: Vec<(&[u8], &[u8])> = chunk.iter().map(|name| (&name[..], &b"v"[..])).collect();
        assert!(caller.put_batch(&items, &PutOptions::default()).iter().all(Result::is_ok));
    }
    assert!(keys(&caller, Pattern::All) == names);
    let gone = caller.run(caller.client().remove_matching(Pattern::Prefix(b"kk"), Forcing::No)).unwrap();
    assert_eq!(gone, (200, 0));
}

#[test]
fn a_bad_expression_is_refused_and_removes_nothing() {
    let pool = Pool::new(&["1MiB"]);
    let caller = pool.caller();
    fill(&caller, &["a", "b["]);
    for bad in ["[", "(", "a{99999999}", "(?<!a)b", ""] {
        for command in ["ls", "rm"] {
            pool.run(&[command, "--regex", bad])
                .failed(2, &[bad, "is no regular expression", "leave --regex out"]);
        }
        let (list, remove) = (
            caller.client().list(Pattern::Regex(bad), None, 10),
            caller.client().remove_matching(Pattern::Regex(bad), Forcing::Yes),
        );
        refused(caller.run(list), Code::INVALID_PARAMS, &["regex", "-600"]);
        refused(caller.run(remove), Code::INVALID_PARAMS, &["regex", "-600"]);
    }
    // Small to read, large to run.
    let large = "(a{1000}){1000}";
    pool.run(&["rm", "--regex", large]).failed(2, &["is no regular expression"]);
    refused(
        caller.run(caller.client().list(Pattern::Regex(large), None, 1)),
        Code::INVALID_PARAMS,
        &["-600"],
    );
    assert_eq!(listed(&pool, &[]), ["a", "b["]);
    assert_eq!(listed(&pool, &["b["]), ["b["]);
}

/// Case 12: leases hinder removal, probing renews none, force does not ask.
#[test]
fn removing_waits_for_leases_unless_forced() {
    let pool = Pool::with(&["--lease", "2s"], &["1MiB"]);
    let caller = pool.caller();
    fill(&caller, &["k1", "k2", "k3", "k4"]);
    caller.get(b"k1").unwrap();
    caller.get(b"k3").unwrap();
    refused(caller.remove(b"k1", Forcing::No), Code::OBJECT_HAS_LEASE, &["after its lease", "force", "-706"]);
    pool.run(&["rm", "k1"]).failed(1, &["rm \"k1\"", "after its lease", "force", "-706"]);
    caller.remove(b"k1", Forcing::Yes).unwrap();
    refused(caller.remove(b"k1", Forcing::No), Code::OBJECT_NOT_FOUND, &["-704"]);
    refused(caller.remove(b"k1", Forcing::Yes), Code::OBJECT_NOT_FOUND, &["-704"]);
    refused(caller.get(b"k1"), Code::OBJECT_NOT_FOUND, &[]);
    pool.run(&["rm", "k2"]).done();
    let step = caller.run(caller.client().remove_matching(Pattern::Prefix(b"k"), Forcing::No)).unwrap();
    assert_eq!(step, (1, 1), "k4 goes, k3 stays");
    pool.run(&["rm", "k*"]).failed(1, &["1 objects", "leases", "--force"]);
    eventually(PATIENCE, "k3's lease ends although it is probed all the time", || {
        assert!(caller.exists(b"k3").unwrap());
        caller.remove(b"k3", Forcing::No).ok()
    });
    pool.run(&["rm", "none"]).failed(1, &["none", "no such object", "-704"]);
    pool.run(&["rm", "none*"]).failed(1, &["no object matches", "springtide ls"]);

    fill(&caller, &["k5", "k6"]);
    caller.get(b"k5").unwrap();
    pool.run(&["rm", "--force", "k*"]).done();
    assert_eq!(listed(&pool, &[]), [""; 0]);
    fill(&caller, &["k5"]);
    assert_eq!(caller.get(b"k5").unwrap(), b"k5");
}
