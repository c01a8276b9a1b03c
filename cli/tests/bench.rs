//! `springtide bench` as a process: each load runs against services of its own, verifies what it reads, prints what it
//! measured, and leaves nothing behind.

use std::process::{Command, Output, Stdio};

fn bench(line: &str) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_springtide"));
    for (name, _) in std::env::vars_os().filter(|(name, _)| name.to_string_lossy().starts_with("SPRINGTIDE_"))
    {
        command.env_remove(name);
    }
    command.arg("bench").args(line.split(' ')).stdin(Stdio::null()).output().unwrap()
}

/// The rows that `line` measures.
fn rows(line: &str) -> Vec<serde_json::Value> {
    let Output { status, stdout, stderr } = bench(&format!("{line} --json"));
    assert!(status.success(), "{line}: {}", String::from_utf8_lossy(&stderr));
    let rows: Vec<serde_json::Value> = serde_json::from_slice(&stdout).unwrap();
    assert!(rows.iter().all(|row| row["operations"].as_u64().is_some_and(|count| count > 0)), "{rows:?}");
    rows
}

fn named<'a>(rows: &'a [serde_json::Value], begin: &str) -> Vec<&'a serde_json::Value> {
    rows.iter().filter(|row| row["name"].as_str().is_some_and(|name| name.starts_with(begin))).collect()
}

#[test]
fn metadata_is_measured_at_each_number_of_objects() {
    let rows = rows("meta --objects 300,100 --batch 16 --connections 2 --pipeline 3 --duration 20ms");
    for what in ["exists, one at a time", "exists, 2 × 3", "exists, 2 × 2", "get", "put", "remove"] {
        let found = named(&rows, what);
        assert!(found.len() >= 2 && found[0]["name"].as_str().unwrap().contains("100 objects"), "{found:?}");
        assert!(found[0]["ratio"].is_null() && found.last().unwrap()["ratio"].is_number(), "{found:?}");
    }
    assert!(named(&rows, "get, one")[0]["us"]["p99"].is_number());
}

#[test]
fn metadata_of_some_operations_is_measured_over_many_segments() {
    let rows = rows(
        "meta --objects 200 --batch 16 --connections 2 --segments 5 --size 4KiB --operations put,exists --duration 1100ms",
    );
    assert_eq!(
        (named(&rows, "exists").len(), named(&rows, "put").len(), named(&rows, "remove").len()),
        (3, 1, 1)
    );
    assert_eq!(rows.len(), 5, "{rows:?}");
    // Seconds of loads are told; single calls are timed one by one instead.
    let seconds = |row: &serde_json::Value| row["each_second"].as_array().unwrap().len();
    assert!(seconds(named(&rows, "exists, 2 × 2")[0]) >= 1, "{rows:?}");
    assert_eq!(seconds(named(&rows, "exists, one")[0]), 0);

    let line = "meta --objects 10 --connections 1 --operations get --duration 1100ms";
    let Output { status, stderr, .. } = bench(line);
    let text = String::from_utf8_lossy(&stderr);
    assert!(status.success() && text.contains("10 objects: second 1: "), "{text}");
    for (line, word) in [("meta --segments 0", "--segments"), ("meta --operations beat", "beat")] {
        let Output { status, stderr, .. } = bench(line);
        let text = String::from_utf8_lossy(&stderr);
        assert!(status.code() == Some(2) && text.contains(word), "{line}: {text}");
    }
}

#[test]
fn transfers_are_compared_with_what_the_machine_gives() {
    for (transport, many) in [("tcp", "plain stream"), ("shm", "memcpy")] {
        let line =
            format!("transfer --transport {transport} --sizes 1,4KiB --set 64KiB --depth 3 --duration 20ms");
        let rows = rows(&line);
        for what in ["write, 3", "write, 1 batches of 2", "write, one", "read, 3", "read, one"] {
            assert_eq!(named(&rows, what).len(), 2, "{what} in {rows:?}");
        }
        assert!(named(&rows, "read, 3").iter().all(|row| row["compared_with"] == many));
        assert!(named(&rows, "memcpy").iter().all(|row| row["gb_per_second"].is_number()));
    }
}

#[test]
fn values_are_put_and_read_in_every_way() {
    let rows = rows("store --memory 16MiB --nodes 2 --sizes 100 --concurrency 2 --duration 20ms");
    for what in ["put, ", "put_from, ", "get, ", "get_into, "] {
        assert!(named(&rows, what).iter().all(|row| row["compared_with"] == "memcpy"), "{what} in {rows:?}");
    }
    assert_eq!(named(&rows, "put_from, one at a time, blocking").len(), 1);
    assert_eq!(named(&rows, "get_into, 1 × batch of 16").len(), 1);
}

#[test]
fn sizes_that_cannot_be_moved_are_refused() {
    for (line, word) in [
        ("transfer --sizes 0", "nothing to move"),
        ("store --sizes 4KiB,0", "nothing to move"),
        ("store --memory 1MiB --sizes 1MiB", "--memory"),
        ("meta --objects 0", "0"),
    ] {
        let Output { status, stderr, .. } = bench(line);
        let text = String::from_utf8_lossy(&stderr);
        assert!(status.code() == Some(2) && text.contains(word), "{line}: {text}");
    }
}
