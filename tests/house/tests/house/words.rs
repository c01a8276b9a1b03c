//! Words that no source file may hold.

use crate::{none, rust_files};

/// Built from halves, so that this file does not hold them itself.
const WORDS: &[(&str, &str)] = &[
    (concat!("todo", "!("), "unfinished: write it, or leave it out"),
    (concat!("unimplemented", "!("), "unfinished: write it, or leave it out"),
    (concat!("dbg", "!("), "left over from a search for a fault"),
    (concat!("#[ig", "nore]"), "say why: #[ignore = \"needs …\"]"),
];

#[test]
fn no_file_holds_unfinished_work() {
    none(&find(&rust_files()), "words that may not stand in source files");
}

/// Case 25: deadlines and leases are of the monotonic clock. Whoever wants the time of day for something else says so
/// here.
#[test]
fn nobody_asks_for_the_time_of_day() {
    let clocks = [concat!("System", "Time"), concat!("CLOCK_REAL", "TIME"), concat!("ClockId::Real", "time")];
    let mut faults = Vec::new();
    for (path, text) in rust_files() {
        let named = |line: &&str| clocks.iter().any(|clock| line.contains(clock));
        faults.extend(text.lines().filter(named).map(|line| format!("{path}: {}", line.trim())));
    }
    none(&faults, "files that read the time of day");
}

fn find(files: &[(String, String)]) -> Vec<String> {
    let mut faults = Vec::new();
    for (path, text) in files {
        for (number, line) in (1..).zip(text.lines()) {
            for (word, why) in WORDS.iter().filter(|(word, _)| line.contains(word)) {
                faults.push(format!("{path}:{number}: {word} ({why})"));
            }
        }
    }
    faults
}

#[test]
fn the_search_finds_them() {
    let text = format!("fn a() {{\n    {}\"later\")\n}}", WORDS[0].0);
    let found = find(&[("a.rs".to_owned(), text)]);
    assert_eq!(found.len(), 1);
    assert!(found[0].starts_with("a.rs:2: "), "{found:?}");
}
