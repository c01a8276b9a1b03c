//! How long source files are, and where unsafe code may stand.

use crate::{none, rust_files, text};

/// Lines that a file may have, tests not counted.
const LINES: usize = 600;

#[test]
fn files_are_short() {
    let long = |(path, text): &(String, String)| {
        let lines = lines_of_code(text);
        (!is_test(path) && lines > LINES).then(|| format!("{path}: {lines} lines"))
    };
    let faults: Vec<_> = rust_files().iter().filter_map(long).collect();
    none(&faults, &format!("files over {LINES} lines; split them by what they hold"));
}

#[test]
fn unsafe_code_is_forbidden_outside_hal() {
    let root = |path: &str| {
        let crate_root = path.ends_with("src/lib.rs") || path.ends_with("src/main.rs");
        crate_root && !path.starts_with("hal/") && !path.starts_with("tests/nostd/")
    };
    let roots: Vec<_> = rust_files().into_iter().filter(|(path, _)| root(path)).collect();
    assert!(roots.len() > 10, "{} crate roots", roots.len());
    let open = |(path, text): &(String, String)| {
        (!text.lines().any(|line| line == "#![forbid(unsafe_code)]")).then(|| path.clone())
    };
    let faults: Vec<_> = roots.iter().filter_map(open).collect();
    none(&faults, "crates without #![forbid(unsafe_code)]; unsafe code belongs into hal");
}

#[test]
fn the_core_has_no_std() {
    assert!(text("core/src/lib.rs").lines().any(|line| line == "#![no_std]"));
    let tests_only = |path: &str| is_test(path) || !path.starts_with("core/src/");
    let names_std = |(path, text): &(String, String)| {
        let code = text.lines().take(lines_of_code(text)).find(|line| line.contains("std::"))?;
        (!tests_only(path) && !code.trim_start().starts_with("//"))
            .then(|| format!("{path}: {}", code.trim()))
    };
    none(&rust_files().iter().filter_map(names_std).collect::<Vec<_>>(), "the core names std");
}

/// Whether the whole file is test code.
fn is_test(path: &str) -> bool {
    path.split('/').any(|part| part == "tests" || part == "benches" || part == "fuzz")
        || path.ends_with("tests.rs")
}

/// Lines in front of the trailing test module, if there is one.
fn lines_of_code(text: &str) -> usize {
    let lines: Vec<_> = text.lines().collect();
    let opens =
        |pair: &[&str]| pair[0] == "#[cfg(test)]" && pair[1].starts_with("mod ") && pair[1].ends_with('{');
    lines.windows(2).position(opens).unwrap_or(lines.len())
}

#[test]
fn trailing_tests_are_not_counted() {
    assert_eq!(lines_of_code("one\ntwo\n"), 2);
    assert_eq!(lines_of_code("one\n#[cfg(test)]\nmod tests {\n    #[test]\n}\n"), 1);
    assert_eq!(lines_of_code("one\n#[cfg(test)]\nmod tests;\nfour\n"), 4);
    assert!(
        is_test("core/src/space/tests.rs")
            && is_test("cli/tests/help.rs")
            && !is_test("core/src/tests_of.rs")
    );
}
