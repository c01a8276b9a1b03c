//! `cargo xtask broken`: breaks one rule of the product after another in a copy of the tree, and holds that the
//! simulator sees each within one run.

mod rules;

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use rules::{Broken, RULES};

/// Break the product's rules one by one, and see that the simulator notices: see docs/simulation.md. The last line
/// counts the rules and those that went unnoticed.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// Only rules whose name contains this.
    filter: Option<String>,
    /// Seeds to try, from 1 on, of 100,000 events each.
    #[arg(long, default_value_t = 20)]
    seeds: u32,
}

/// Says whether every rule was missed when it was broken.
pub(crate) fn run(args: &Args) -> Result<bool, String> {
    let filter = args.filter.as_deref().unwrap_or_default();
    let tree = copy()?;
    let (mut tried, mut unnoticed) = (0, 0);
    for rule in RULES.iter().filter(|rule| rule.name.contains(filter)) {
        let seen = rule.with_broken(&tree, || simulate(&tree, args.seeds))?;
        tried += 1;
        match seen {
            Some(seen) if rule.is_seen_as(&seen) => println!("{:<24} {seen}", rule.name),
            Some(seen) => {
                unnoticed += 1;
                println!("{:<24} MISTAKEN, expected one of {:?}: {seen}", rule.name, rule.seen_as);
            }
            None => {
                unnoticed += 1;
                println!("{:<24} UNNOTICED", rule.name);
            }
        }
    }
    println!("{tried} rules broken, {unnoticed} unnoticed");
    Ok(tried > 0 && unnoticed == 0)
}

impl Broken {
    /// Breaks the rule in `tree` for as long as `during` takes.
    fn with_broken<T>(&self, tree: &Path, during: impl FnOnce() -> Result<T, String>) -> Result<T, String> {
        let path = tree.join(self.file);
        let whole = std::fs::read_to_string(&path).map_err(|error| format!("{}: {error}", self.file))?;
        if whole.matches(self.from).count() != 1 {
            return Err(format!(
                "{:?}: {} no longer holds, exactly once, the line that is changed; mend xtask/src/broken/rules.rs",
                self.name, self.file
            ));
        }
        let write =
            |text: &str| std::fs::write(&path, text).map_err(|error| format!("{}: {error}", self.file));
        write(&whole.replacen(self.from, self.to, 1))?;
        let result = during();
        write(&whole)?;
        result
    }

    /// Whether `line`, which names a violation, names one that this rule's breach may show as.
    fn is_seen_as(&self, line: &str) -> bool {
        self.seen_as.iter().any(|name| line.contains(&format!(": {name} at ")))
    }
}

/// Copies the files that git knows or does not ignore; what is built in the copy stays there.
fn copy() -> Result<PathBuf, String> {
    let (root, tree) = (crate::root(), crate::root().join("target/broken"));
    let list = Command::new("git")
        .args(["ls-files", "-z", "--cached", "--others", "--exclude-standard"])
        .current_dir(&root)
        .output()
        .map_err(|error| format!("git does not start: {error}"))?;
    if !list.status.success() {
        return Err("the files to copy are those that git lists: run this in a clone".into());
    }
    for name in String::from_utf8_lossy(&list.stdout).split_terminator('\0') {
        let (from, to) = (root.join(name), tree.join(name));
        let Ok(bytes) = std::fs::read(&from) else { continue };
        // What has not changed keeps its time, so that it is not built again.
        if std::fs::read(&to).is_ok_and(|there| there == bytes) {
            continue;
        }
        let folder = to.parent().unwrap_or(&tree);
        std::fs::create_dir_all(folder).map_err(|error| format!("{}: {error}", folder.display()))?;
        std::fs::write(&to, bytes).map_err(|error| format!("{}: {error}", to.display()))?;
    }
    Ok(tree)
}

/// Runs the simulator of `tree`; gives back the line that names a violation, if there is one.
fn simulate(tree: &Path, seeds: u32) -> Result<Option<String>, String> {
    let mut command = Command::new(env!("CARGO"));
    command
        .current_dir(tree)
        .env("RUSTFLAGS", "--cap-lints=warn")
        .env("CARGO_TARGET_DIR", tree.join("target"));
    command.args(["run", "--quiet", "--package", "springtide-tests-sim", "--", "--seeds"]);
    let output = command.arg(format!("1..={seeds}")).stderr(Stdio::piped()).output();
    let output = output.map_err(|error| format!("cargo does not start: {error}"))?;
    let text = String::from_utf8_lossy(&output.stdout);
    if !text.contains(" violations, ") {
        return Err(format!("the simulator did not run:\n{}", String::from_utf8_lossy(&output.stderr)));
    }
    Ok(text.lines().find(|line| line.starts_with("seed ")).map(str::to_owned))
}
