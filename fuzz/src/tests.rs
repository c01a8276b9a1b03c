use super::*;

fn corpus() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("corpus")
}

/// The inputs of a target that are kept. What a fuzzer adds while it runs is named by a hash of 40 digits; git does not
/// see it, and neither do the tests.
fn kept(name: &str) -> Vec<PathBuf> {
    let mut files = files(&corpus().join(name));
    files.retain(|path| path.file_name().is_some_and(|name| name.len() != 40));
    files
}

/// Every kept input, through its target.
#[test]
fn what_was_found_stays_found() {
    for (name, target) in TARGETS {
        let files = kept(name);
        assert!(!files.is_empty(), "{name} has no inputs");
        for path in files {
            println!("{}", path.display());
            target(&std::fs::read(path).expect("a kept input can be read"));
        }
    }
}

/// Each target has a program of its name and a folder of inputs, and nothing else has.
#[cfg(feature = "command")]
#[test]
fn programs_and_folders_are_named_after_targets() {
    let names = |folder: &Path| {
        let entries = std::fs::read_dir(folder).expect("the folder is there").flatten();
        let mut names: Vec<_> = entries
            .filter_map(|entry| Some(entry.path().file_stem()?.to_string_lossy().into_owned()))
            .collect();
        names.sort();
        names
    };
    let mut targets: Vec<_> = TARGETS.iter().map(|(name, _)| (*name).to_owned()).collect();
    targets.sort();
    assert_eq!(names(&Path::new(env!("CARGO_MANIFEST_DIR")).join("fuzz_targets")), targets);
    assert_eq!(names(&corpus()), targets);
}

/// The kept inputs stay small enough to live in a repository.
#[test]
fn kept_inputs_are_small() {
    let all = TARGETS.iter().flat_map(|(name, _)| kept(name));
    let sizes: Vec<_> = all.map(|path| path.metadata().expect("a file has a size").len()).collect();
    assert!(sizes.iter().sum::<u64>() < 200 * 1024, "{} bytes", sizes.iter().sum::<u64>());
}
