//! The command as a process: help, errors, settings from file, environment and flags.

use std::fs;
use std::path::PathBuf;
use std::process::{Command, Output, Stdio};

fn springtide() -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_springtide"));
    for (name, _) in std::env::vars_os().filter(|(name, _)| name.to_string_lossy().starts_with("SPRINGTIDE_"))
    {
        command.env_remove(name);
    }
    command.stdin(Stdio::null());
    command
}

fn run(command: &mut Command) -> (i32, String, String) {
    let Output { status, stdout, stderr } = command.output().unwrap();
    let text = |bytes| String::from_utf8(bytes).unwrap();
    (status.code().unwrap(), text(stdout), text(stderr))
}

/// A settings file of its own for one test.
struct File(PathBuf);

impl File {
    fn new(name: &str, text: &str) -> Self {
        let path = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(name);
        fs::write(&path, text).unwrap();
        Self(path)
    }
}

impl Drop for File {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.0);
    }
}

/// The value and the source of a setting, as `springtide config --json` prints them.
fn setting(command: &mut Command, key: &str) -> (String, String) {
    let (code, stdout, stderr) = run(command.args(["config", "--json"]));
    assert_eq!(code, 0, "{stderr}");
    let list: serde_json::Value = serde_json::from_str(&stdout).unwrap();
    let found = list.as_array().unwrap().iter().find(|setting| setting["key"] == key).unwrap();
    let text = |field: &str| found[field].as_str().unwrap().to_owned();
    (text("value"), text("source"))
}

#[test]
fn help_shows_commands_settings_and_exit_codes() {
    let (code, stdout, _) = run(springtide().arg("--help"));
    assert_eq!(code, 0);
    for word in ["config", "SPRINGTIDE_MASTER", "[all]", "64MiB", "Exit codes"] {
        assert!(stdout.contains(word), "{word} in {stdout}");
    }
    let (code, stdout, _) = run(springtide().args(["config", "--help"]));
    assert!(code == 0 && stdout.contains("Example") && stdout.contains("--json"), "{stdout}");
}

#[test]
fn the_allocator_is_measured() {
    let words = ["bench", "alloc", "--live", "1000", "--operations", "1000"];
    let (code, stdout, stderr) = run(springtide().args(words));
    assert!(code == 0 && stdout.contains("ns each") && stdout.lines().count() == 4, "{stdout} {stderr}");
    let (_, stdout, _) = run(springtide().args(words).arg("--json"));
    let rows: serde_json::Value = serde_json::from_str(&stdout).unwrap();
    assert!(
        rows.as_array()
            .unwrap()
            .iter()
            .all(|row| row["operations"] == 1_000 && row["per_second"].is_number())
    );
    let (code, _, stderr) = run(springtide().args(words).args(["--smallest", "2KiB", "--largest", "1KiB"]));
    assert!(code == 2 && stderr.contains("--smallest") && stderr.lines().count() == 1, "{stderr}");
}

#[test]
fn without_a_command_it_says_what_there_is() {
    let (code, _, stderr) = run(&mut springtide());
    assert!(code == 2 && stderr.contains("Usage: springtide"), "{code} {stderr}");
}

#[test]
fn the_environment_wins_over_the_file() {
    let file = File::new("precedence.toml", "log = \"warn\"");
    let command = || {
        let mut command = springtide();
        command.arg("--config").arg(&file.0);
        command
    };
    let pair = |value: &str, source: &str| (value.to_owned(), source.to_owned());
    assert_eq!(setting(&mut springtide(), "log"), pair("info", "default"));
    assert_eq!(setting(&mut command(), "log"), pair("warn", "file"));
    assert_eq!(setting(command().env("SPRINGTIDE_LOG", "debug"), "log"), pair("debug", "environment"));
    assert_eq!(setting(springtide().env("SPRINGTIDE_CONFIG", &file.0), "log"), pair("warn", "file"));
}

#[test]
fn an_unknown_key_is_an_error_that_names_it() {
    let file = File::new("unknown.toml", "log = \"warn\"\nlgo = \"info\"\n");
    let (code, stdout, stderr) = run(springtide().arg("config").arg("--config").arg(&file.0));
    assert_eq!((code, stdout.as_str()), (2, ""));
    assert!(stderr.contains("unknown.toml: lgo is no setting") && stderr.contains("log"), "{stderr}");
    assert_eq!(stderr.lines().count(), 1, "{stderr}");
}

#[test]
fn a_file_that_is_missing_or_no_toml_is_named() {
    let (code, _, stderr) = run(springtide().args(["config", "--config", "/nowhere/settings.toml"]));
    assert!(code == 2 && stderr.contains("/nowhere/settings.toml"), "{stderr}");
    let file = File::new("broken.toml", "log = \"warn\"\n\nlog =");
    let (code, _, stderr) = run(springtide().arg("config").arg("--config").arg(&file.0));
    assert!(code == 2 && stderr.contains("broken.toml, line 3"), "{stderr}");
}

#[test]
fn a_bad_value_is_traced_to_the_environment() {
    let (code, _, stderr) = run(springtide().arg("config").env("SPRINGTIDE_CONFIG_JSON", "maybe"));
    assert_eq!(code, 2);
    assert!(
        stderr.contains("maybe") && stderr.contains("SPRINGTIDE_CONFIG_JSON in the environment"),
        "{stderr}"
    );
}

#[test]
fn a_bad_log_filter_is_an_error() {
    let (code, _, stderr) = run(springtide().args(["config", "--log", "springtide=loud"]));
    assert!(code == 2 && stderr.starts_with("springtide: \"springtide=loud\" is no log filter"), "{stderr}");
}

#[test]
fn tables_go_without_colour_into_a_pipe() {
    let (code, stdout, _) = run(springtide().arg("config").env("CLICOLOR_FORCE", "1"));
    assert!(code == 0 && stdout.starts_with("setting") && !stdout.contains('\u{1b}'), "{stdout:?}");
}

#[test]
fn a_reader_that_goes_away_is_no_error() {
    let mut child = springtide()
        .args(["config", "--json"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    drop(child.stdout.take());
    let Output { status, stderr, .. } = child.wait_with_output().unwrap();
    assert!(status.success() && stderr.is_empty(), "{status} {stderr:?}");
}
