use super::*;
use clap::CommandFactory;
use clap::error::ErrorKind;

/// Every command, also those that [`Command`] does not list yet.
#[derive(Parser, Debug)]
#[allow(clippy::large_enum_variant, reason = "one value a test")]
enum All {
    Master(Master),
    Node(Node),
    Put(Put),
    Get(Get),
    Exists(Exists),
    Stat(Stat),
    Ls(Ls),
    Rm(Rm),
    Status(Status),
    Replay(Replay),
    Meta(Meta),
    Alloc(Alloc),
    Bench(Bench),
    Transfer(Transfer),
    Store(Store),
    Evict(Evict),
}

fn parse(line: &str) -> Result<All, clap::Error> {
    All::try_parse_from(core::iter::once("springtide").chain(line.split_whitespace()))
}

fn ls(line: &str) -> Result<Selection, String> {
    match parse(line).unwrap() {
        All::Ls(ls) => ls.selection(),
        All::Rm(rm) => rm.selection(),
        other => panic!("{other:?}"),
    }
    .map_err(|failure| failure.to_string())
}

#[test]
fn every_command_is_sound_and_has_a_help_worth_reading() {
    Cli::command().debug_assert();
    All::command().debug_assert();
    for command in All::command().get_subcommands() {
        assert!(command.get_about().is_some(), "{}", command.get_name());
        let help = command.clone().render_long_help().to_string();
        let example = help.contains("Example") || command.get_after_long_help().is_some();
        assert!(example, "no example in the help of {}:\n{help}", command.get_name());
        for option in command.get_arguments() {
            assert!(option.get_help().is_some(), "{} {}", command.get_name(), option.get_id());
        }
    }
}

#[test]
fn defaults_are_the_ones_that_people_know() {
    let All::Master(master) = parse("master").unwrap() else { panic!() };
    assert_eq!(master.listen.to_string(), "127.0.0.1:50051");
    assert_eq!(master.eviction.high_watermark.0, 900_000);
    assert_eq!(master.eviction.eviction_ratio.0, 50_000);
    let seconds = |time: core::time::Duration| time.as_secs();
    let Times { lease, soft_pin, client_ttl, put_discard, put_release, .. } = master.times;
    assert_eq!([lease, soft_pin, client_ttl, put_discard, put_release].map(seconds), [10, 1800, 10, 30, 600]);
    assert_eq!(seconds(master.times.crashed_ttl()), 30);
    let All::Replay(replay) = parse("replay").unwrap() else { panic!() };
    assert_eq!((replay.nodes, replay.concurrency, replay.block.0), (3, 16, 65_536));
}

#[test]
fn patterns_are_keys_prefixes_or_expressions() {
    let bytes = |text: &str| text.as_bytes().to_vec();
    assert_eq!(ls("ls"), Ok(Selection::All));
    assert_eq!(ls("rm *"), Ok(Selection::All));
    assert_eq!(ls("ls a/b"), Ok(Selection::Key(bytes("a/b"))));
    assert_eq!(ls("rm a*b*"), Ok(Selection::Prefix(bytes("a*b"))));
    assert_eq!(ls("rm --regex ^a.*"), Ok(Selection::Regex("^a.*".to_owned())));
    let error = ls("ls --regex a(b").unwrap_err();
    assert!(error.contains("a(b") && error.contains("unclosed group"), "{error}");
}

#[test]
fn keys_have_one_byte_at_least_and_65535_at_most() {
    assert!(objects::key(&"".into()).unwrap_err().to_string().contains("1 to 65535"));
    assert!(objects::key(&"k".repeat(65_535).into()).is_ok());
    assert!(objects::key(&"k".repeat(65_536).into()).is_err());
}

#[test]
fn wrong_values_are_refused_and_named() {
    let table = [
        ("node", "--memory"),
        ("node --memory 12XB", "12XB"),
        ("node --memory 1 --advertise 0.0.0.0", "0.0.0.0"),
        ("node --memory 1 --listen node-a:65536", "node-a:65536"),
        ("node --memory 1 --master node-a:0", "node-a:0"),
        ("master --lease 10", "10s or 10ms"),
        ("master --high-watermark 1.5", "1.5"),
        ("master --http node-a:7x", "node-a:7x"),
        ("put k", "<FILE>"),
        ("put k - --replicas 0", "0"),
        ("get", "<KEY>"),
        ("ls --regex", "<PATTERN>|[PATTERN]"),
        ("replay --block 0", "64"),
        ("replay --requests 0", "0"),
        ("replay --speed -1", "-1"),
        ("replay --speed nan", "nan"),
        ("replay --master node-a:1 --nodes 2", "--nodes"),
        ("transfer --transport rdma", "shm"),
        ("evict --blocks 1000,", "blocks"),
        ("evict --blocks 0", "0"),
    ];
    for (line, word) in table {
        let error = parse(line).map(|args| panic!("{line} was accepted: {args:?}")).unwrap_err();
        let text = error.to_string();
        assert_ne!(error.kind(), ErrorKind::DisplayHelp, "{line}");
        assert!(word.split('|').any(|word| text.contains(word)), "{line}: {text}");
    }
}
