//! Checks on the workspace itself.

mod cases;
mod coverage;
mod features;
mod layering;
mod readme;
mod sources;
mod table;
mod words;

use std::fs;
use std::path::{Path, PathBuf};

/// The root of the workspace.
fn root() -> PathBuf {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    here.ancestors().nth(2).expect("this package lies two folders down").to_path_buf()
}

/// The text of a file of the workspace.
fn text(path: &str) -> String {
    fs::read_to_string(root().join(path)).unwrap_or_else(|error| panic!("{path}: {error}"))
}

/// Every Rust file of the workspace with its text, by path from the root.
fn rust_files() -> Vec<(String, String)> {
    let mut files = Vec::new();
    walk(&root(), &mut files);
    files.sort();
    assert!(files.len() > 20, "only {} files found under {}", files.len(), root().display());
    files
}

fn walk(folder: &Path, files: &mut Vec<(String, String)>) {
    for entry in fs::read_dir(folder).expect("a folder of the workspace can be read") {
        let path = entry.expect("an entry of a folder can be read").path();
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        if path.is_dir() {
            let foreign = name.starts_with('.') || name == "target";
            if !foreign {
                walk(&path, files);
            }
        } else if name.ends_with(".rs") {
            let inside = path.strip_prefix(root()).expect("the walk began at the root");
            files.push((
                inside.display().to_string(),
                fs::read_to_string(&path).expect("a source file is text"),
            ));
        }
    }
}

/// Fails with all of `faults`, if there are any.
fn none(faults: &[String], rule: &str) {
    assert!(faults.is_empty(), "{rule}:\n  {}", faults.join("\n  "));
}
