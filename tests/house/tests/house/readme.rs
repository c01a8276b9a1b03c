//! README.md shows code that compiles: every Rust block stands behind a comment that names the file it is taken from.

use std::path::Path;

use crate::{none, root, text};

#[test]
fn examples_in_the_readme_are_compiled_files() {
    let read = |path: &str| std::fs::read_to_string(root().join(path)).ok();
    none(&faults(&text("README.md"), read), "Rust in README.md");
}

/// What is wrong with the Rust blocks of `readme`. A block is right if the line above it is `<!-- PATH -->`, the path
/// is one that `cargo test` builds, and the file is the block.
fn faults(readme: &str, read: impl Fn(&str) -> Option<String>) -> Vec<String> {
    let mut faults = Vec::new();
    let mut above = "";
    let mut lines = (1..).zip(readme.lines());
    while let Some((number, line)) = lines.next() {
        if line.starts_with("```rust") {
            let block: String =
                lines.by_ref().map_while(|(_, line)| (line != "```").then(|| format!("{line}\n"))).collect();
            let path =
                above.strip_prefix("<!-- ").and_then(|path| path.strip_suffix(" -->")).unwrap_or_default();
            let built = Path::new(path).parent().is_some_and(|folder| folder.ends_with("examples"));
            if !built {
                faults.push(format!("line {number}: name its file above it: <!-- examples/….rs -->"));
            } else if read(path).as_deref() != Some(&block) {
                faults.push(format!("line {number}: the block is not the text of {path}"));
            }
        }
        above = line;
    }
    faults
}

#[test]
fn a_block_that_differs_is_found() {
    let readme = "text\n<!-- examples/a.rs -->\n```rust\nfn main() {}\n```\n";
    let file = |text: &'static str| move |path: &str| (path == "examples/a.rs").then(|| text.to_owned());
    assert_eq!(faults(readme, file("fn main() {}\n")), [""; 0]);
    assert_eq!(faults(readme, file("fn main() { }\n")).len(), 1);
    assert_eq!(faults(&readme.replace("examples/a.rs", "b.rs"), file("fn main() {}\n")).len(), 1);
    assert_eq!(faults(&readme.replace("<!--", "<--"), file("fn main() {}\n")).len(), 1);
}
