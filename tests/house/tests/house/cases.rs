//! `tests/CASES.md` names, for every public failure that it restates, tests that exist.

use std::collections::BTreeMap;

use crate::table::{cells, tests, tests_exist};
use crate::{none, rust_files, text};

/// What is said of a case, or a part of one, that no test can hold yet.
const LATER: &str = "not applicable yet: needs ";

#[test]
fn every_case_names_tests_or_what_it_waits_for() {
    let page = text("tests/CASES.md");
    let mut faults = Vec::new();
    let mut last = 0;
    for row in rows(&page) {
        match check(row) {
            Ok(number) if number > last => last = number,
            Ok(number) => faults.push(format!("case {number} stands behind case {last}")),
            Err(fault) => faults.push(format!("{row}: {fault}")),
        }
    }
    assert!(last >= 40, "tests/CASES.md ends with case {last}");
    none(&faults, "lines of tests/CASES.md");
}

#[test]
fn every_case_that_code_cites_has_a_line() {
    let page = text("tests/CASES.md");
    let known: BTreeMap<u32, &str> = rows(&page).filter_map(|row| Some((check(row).ok()?, row))).collect();
    let mut faults = Vec::new();
    for (path, text) in rust_files() {
        // The prefix would be found in this file itself.
        let lines = text.lines().filter(|line| line.trim_start().starts_with("///"));
        let cited = lines.flat_map(cited).filter(|number| !known.contains_key(number));
        faults.extend(cited.map(|number| format!("{path}: case {number}")));
    }
    none(&faults, "cases that stand in code but not in tests/CASES.md");
}

fn rows(page: &str) -> impl Iterator<Item = &str> {
    page.lines().filter(|line| line.starts_with("| ") && line[2..].starts_with(|c: char| c.is_ascii_digit()))
}

/// Checks a line: `| number | what | tests | notes |`; gives back the number. A case has tests that exist, or says what
/// it waits for.
fn check(row: &str) -> Result<u32, String> {
    let cells = cells(row);
    let [number, what, named, notes] = cells[..] else {
        return Err(format!("{} cells instead of 4", cells.len()));
    };
    let number = number.parse().map_err(|_| format!("{number} is no number"))?;
    if what.is_empty() {
        return Err("a case has a line that says what it is".to_owned());
    }
    if tests(named).next().is_none() && !notes.starts_with(LATER) {
        return Err(format!("no test, and not {LATER:?} either"));
    }
    tests_exist(named).map(|()| number)
}

/// The numbers behind "Case" or "Cases" in a comment.
fn cited(line: &str) -> impl Iterator<Item = u32> {
    let comment = line.trim_start().trim_start_matches('/').trim_start();
    let list = comment.strip_prefix("Cases ").or_else(|| comment.strip_prefix("Case "));
    let list = list.and_then(|list| list.split([':', '(']).next()).unwrap_or_default();
    list.split([' ', ',']).filter_map(|word| word.parse().ok())
}

#[test]
fn numbers_are_found_in_comments() {
    assert_eq!(cited("    /// Cases 4 and 40: two writers").collect::<Vec<_>>(), [4, 40]);
    assert_eq!(cited("/// Case 7 (c): many small values").collect::<Vec<_>>(), [7]);
    assert_eq!(cited("/// Case 12, the whole sequence.").collect::<Vec<_>>(), [12]);
    assert_eq!(cited("/// In case 3: nothing").count(), 0);
}

#[test]
fn bad_lines_are_refused() {
    assert_eq!(check("| 1 | keys | `core/src/error.rs::numbers_and_names_are_unique` | |"), Ok(1));
    assert_eq!(check("| 2 | disks | | not applicable yet: needs a disk tier |"), Ok(2));
    for bad in [
        "| 1 | keys | `core/src/error.rs::no_such_test` | |",
        "| 1 | keys | `core/src/nowhere.rs::a_test` | |",
        "| 1 | keys | `core/src/error.rs` | |",
        "| 1 | keys | | later |",
        "| 1 | | `core/src/error.rs::numbers_and_names_are_unique` | |",
        "| one | keys | `core/src/error.rs::numbers_and_names_are_unique` | |",
        "| 1 | keys |",
    ] {
        assert!(check(bad).is_err(), "{bad}");
    }
}
