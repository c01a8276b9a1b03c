//! `docs/coverage.md` knows every feature of the specification that the code cites.

use std::collections::BTreeSet;

use crate::table::{cells, paths, tests_exist};
use crate::{none, root, rust_files, text};

/// How far a feature is.
const STATUS: &[&str] = &["done", "partial", "planned", "not applicable"];

/// Families of ids.
const FAMILIES: &[&str] = &["S0A", "S0B", "S1", "S3A", "S3B"];

#[test]
fn every_line_is_well_formed() {
    let table = text("docs/coverage.md");
    let rows: Vec<_> = table.lines().filter(|line| line.starts_with("| S")).collect();
    assert!(!rows.is_empty(), "docs/coverage.md has no lines");
    let mut seen = BTreeSet::new();
    let mut faults = Vec::new();
    for row in rows {
        let fault =
            check(row).err().or_else(|| (!seen.insert(cells(row)[0])).then(|| "appears twice".to_owned()));
        faults.extend(fault.map(|fault| format!("{row}: {fault}")));
    }
    none(&faults, "lines of docs/coverage.md");
}

#[test]
fn every_id_that_code_cites_has_a_line() {
    let table = text("docs/coverage.md");
    let known: BTreeSet<_> = table.lines().filter(|line| line.starts_with("| S")).flat_map(covered).collect();
    let mut faults = Vec::new();
    for (path, text) in rust_files() {
        let cited = ids(&text).filter(|id| !path.starts_with("tests/house/") && !known.contains(id));
        faults.extend(cited.map(|id| format!("{path}: {id}")));
    }
    none(&faults, "ids that stand in code but not in docs/coverage.md");
}

/// Checks a line: `| id or range | feature | module | test | status |`. What is `done` or `partial` names a module
/// that exists.
fn check(row: &str) -> Result<(), String> {
    let cells = cells(row);
    let [id, feature, module, test, status] = cells[..] else {
        return Err(format!("{} cells instead of 5", cells.len()));
    };
    if covered(row).is_empty() {
        return Err(format!("{id} is neither an id like S0A-008 nor a range like S0A-001…007"));
    }
    if feature.is_empty() || !STATUS.contains(&status) {
        return Err(format!("a feature in words and a status of {STATUS:?} are needed"));
    }
    if !matches!(status, "done" | "partial") {
        return Ok(());
    }
    if status == "done" && paths(test).next().is_none() {
        return Err("what is done has a test".to_owned());
    }
    let mut named = paths(module).chain(paths(test)).peekable();
    if named.peek().is_none() {
        return Err("what is there stands in a module".to_owned());
    }
    if let Some(path) = named.find(|path| !root().join(path).exists()) {
        return Err(format!("{path} does not exist"));
    }
    tests_exist(test)
}

/// The ids that a line speaks for: one, or those of a range. None if the first cell is neither.
fn covered(row: &str) -> Vec<String> {
    let first = cells(row).first().copied().unwrap_or_default();
    let (from, to) = first.split_once('…').unwrap_or((first, ""));
    if ids(from).next().as_deref() != Some(from) {
        return Vec::new();
    }
    let (family, number) = from.split_once('-').expect("an id has a dash");
    let number: u32 = number.parse().expect("an id ends in digits");
    let last = if to.is_empty() { Some(number) } else { to.parse().ok().filter(|_| to.len() == 3) };
    last.map_or_else(Vec::new, |last| (number..=last).map(|n| format!("{family}-{n:03}")).collect())
}

/// Every id in `text`.
fn ids(text: &str) -> impl Iterator<Item = String> {
    let digits = |text: &str| text.bytes().take_while(u8::is_ascii_digit).count();
    let at = move |(start, _): (usize, &str)| {
        let rest = &text[start..];
        let family = FAMILIES
            .iter()
            .find(|family| rest.strip_prefix(**family).is_some_and(|rest| rest.starts_with('-')))?;
        let end = family.len() + 1 + digits(&rest[family.len() + 1..]);
        (end == family.len() + 4).then(|| rest[..end].to_owned())
    };
    text.match_indices('S').filter_map(at)
}

#[test]
fn ids_and_ranges_are_read() {
    let found: Vec<_> = ids("(`S0A-079`, S3A-110…113) S0B-1 S9A-001 S1-001").collect();
    assert_eq!(found, ["S0A-079", "S3A-110", "S1-001"]);
    assert_eq!(covered("| S1-001…003 | a | b | c | planned |"), ["S1-001", "S1-002", "S1-003"]);
    assert!(covered("| S1-1 | a |").is_empty() && covered("| S1-001…3 | a |").is_empty());
}

#[test]
fn bad_lines_are_refused() {
    assert_eq!(check("| S0A-008 | feature | `core/src/lib.rs` | `core/src/lib.rs` | done |"), Ok(()));
    assert_eq!(check("| S0A-008 | feature | `core/src/nowhere.rs` | | planned |"), Ok(()));
    for bad in [
        "| S0A-008 | feature | `core/src/nowhere.rs` | `core/src/lib.rs` | done |",
        "| S0A-008 | feature | `core/src/lib.rs` | `core/src/error.rs::no_such_test` | done |",
        "| S0A-008 | feature | `core/src/lib.rs` | | done |",
        "| S0A-008 | feature | `core/src/lib.rs` | | soon |",
        "| S0A-08 | feature | `core/src/lib.rs` | | planned |",
        "| S0A-008 | feature | planned |",
    ] {
        assert!(check(bad).is_err(), "{bad}");
    }
}
