//! Lines of tables in Markdown, and the tests that they name.

use crate::{root, text};

/// The cells of a line.
pub(crate) fn cells(row: &str) -> Vec<&str> {
    row.trim().trim_matches('|').split('|').map(str::trim).collect()
}

/// File names in backticks, without what stands behind `::`.
pub(crate) fn paths(cell: &str) -> impl Iterator<Item = &str> {
    let quoted = cell.split('`').skip(1).step_by(2);
    quoted.map(|path| path.split("::").next().unwrap_or(path)).filter(|path| path.contains('/'))
}

/// Files and the names of their tests.
pub(crate) fn tests(cell: &str) -> impl Iterator<Item = (&str, &str)> {
    cell.split('`').skip(1).step_by(2).filter_map(|path| path.split_once("::"))
}

/// Whether every test that the cell names is there.
pub(crate) fn tests_exist(cell: &str) -> Result<(), String> {
    for (path, name) in tests(cell) {
        if !root().join(path).exists() {
            return Err(format!("{path} does not exist"));
        }
        let head = format!("fn {name}(");
        if !text(path).lines().any(|line| line.trim_start().starts_with(&head)) {
            return Err(format!("{path} has no test {name}"));
        }
    }
    Ok(())
}
