use super::*;
use clap::{Args, FromArgMatches, Parser, Subcommand};

use crate::args;
use crate::size::Size;

/// A command line of the shape of the real one.
#[derive(Parser, Debug)]
struct Sample {
    #[arg(long, global = true, default_value = "info", env = "SPRINGTIDE_TEST_LOG")]
    log: String,
    #[command(subcommand)]
    what: What,
}

#[derive(Subcommand, Debug)]
enum What {
    Node(args::Node),
    Replay(args::Replay),
    Bench(Bench),
}

#[derive(Args, Debug)]
struct Bench {
    #[command(subcommand)]
    what: Measure,
}

#[derive(Subcommand, Debug)]
enum Measure {
    Evict(args::Evict),
}

fn settings(toml: &str) -> Result<Settings, Failure> {
    Settings::new(
        <Sample as clap::CommandFactory>::command(),
        Some(PathBuf::from("s.toml")),
        &toml.parse().unwrap(),
    )
}

fn parse(toml: &str, line: &str) -> Result<Sample, clap::Error> {
    let words = core::iter::once("springtide").chain(line.split_whitespace());
    Sample::from_arg_matches(&settings(toml).unwrap().command.try_get_matches_from(words)?)
}

fn node(toml: &str, line: &str) -> args::Node {
    match parse(toml, line).unwrap().what {
        What::Node(node) => node,
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_flag_wins_over_the_file_and_the_file_over_the_default() {
    let toml = "[node]\nmemory = \"1GiB\"\nlisten = \"node-a:7000\"";
    let from_file = node(toml, "node");
    assert_eq!((from_file.memory, from_file.listen.port), (Size(1 << 30), 7000));
    assert_eq!(from_file.connect.tenant, "default");
    assert_eq!(node(toml, "node --memory 2GiB").memory, Size(2 << 30));
}

#[test]
fn what_is_required_may_stand_in_the_file() {
    assert!(parse("", "node").unwrap_err().to_string().contains("--memory"));
    assert_eq!(node("[node]\nmemory = 4096", "node").memory, Size(4096));
}

#[test]
fn all_reaches_commands_of_a_running_pool_and_their_own_section_wins() {
    let toml = "[all]\nmaster = \"pool-1:1\"\ntenant = \"t\"\n[node]\nmemory = 1\nmaster = \"pool-2:2\"";
    let node = node(toml, "node");
    assert_eq!((node.connect.master.to_string().as_str(), node.connect.tenant.as_str()), ("pool-2:2", "t"));
    match parse(toml, "replay").unwrap().what {
        What::Replay(replay) => assert_eq!(replay.master, None),
        other => panic!("{other:?}"),
    }
}

#[test]
fn lists_flags_and_options_of_all_commands() {
    let toml = "log = \"debug\"\n[bench.evict]\nblocks = [10, 20]\njson = true";
    let sample = parse(toml, "bench evict").unwrap();
    assert_eq!(sample.log, "debug");
    match sample.what {
        What::Bench(Bench { what: Measure::Evict(evict) }) => {
            assert!(evict.json.json && evict.blocks == [10, 20])
        }
        other => panic!("{other:?}"),
    }
}

#[test]
fn unknown_keys_are_named() {
    let table = [
        ("[node]\nmemry = 1", "node.memry"),
        ("[nod]\nmemory = 1", "nod"),
        ("memory = 1", "memory"),
        ("[bench]\nblocks = 1", "bench.blocks"),
        ("[all]\nblocks = 1", "all.blocks"),
        ("all = 1", "all"),
        ("config = \"other.toml\"", "config"),
        ("[node]\nmemory = {}", "node.memory"),
        ("[node.memory]\nsize = 1", "node.memory"),
        ("[node]\nmemory = [[1]]", "node.memory"),
    ];
    for (toml, key) in table {
        let error = settings(toml).err().unwrap_or_else(|| panic!("{toml} was accepted")).to_string();
        assert!(error.starts_with(&format!("s.toml: {key} ")), "{error}");
    }
    let error = settings("[node]\nmemry = 1").err().unwrap().to_string();
    assert!(error.contains("memory, ") && error.contains("listen"), "{error}");
}

#[test]
fn a_bad_value_is_traced_to_the_file() {
    let toml = "[node]\nmemory = \"much\"";
    let error = parse(toml, "node").unwrap_err();
    let words = |line: &str| line.split(' ').map(OsString::from).collect::<Vec<_>>();
    let settings = settings(toml).unwrap();
    assert_eq!(
        settings.origin(&error, &words("node")).as_deref(),
        Some("the value comes from node.memory in s.toml")
    );
    assert_eq!(settings.origin(&error, &words("node --memory=much")), None);
}

#[test]
fn every_setting_has_its_variable() {
    let settings = settings("[node]\nmemory = 1").unwrap().in_force();
    let find =
        |key: &str| settings.iter().find(|setting| setting.key == key).unwrap_or_else(|| panic!("{key}"));
    assert_eq!(
        (find("node.memory").source, find("node.memory").variable.as_str()),
        (Source::File, "SPRINGTIDE_NODE_MEMORY")
    );
    assert_eq!(find("bench.evict.blocks").variable, "SPRINGTIDE_BENCH_EVICT_BLOCKS");
    assert_eq!(find("node.master").variable, "SPRINGTIDE_MASTER");
    assert_eq!(find("replay.master").variable, "SPRINGTIDE_REPLAY_MASTER");
    assert_eq!(find("node.tenant").value.as_deref(), Some("default"));
}

#[test]
fn the_file_is_found_in_both_forms() {
    let words = |line: &str| line.split(' ').map(OsString::from).collect::<Vec<_>>();
    assert_eq!(file_name(&words("node --config a.toml")), Some("a.toml".into()));
    assert_eq!(file_name(&words("--config=a.toml node")), Some("a.toml".into()));
    assert_eq!(file_name(&words("put -- --config a.toml")), None);
    assert_eq!(file_name(&words("put k --config")), None);
}
