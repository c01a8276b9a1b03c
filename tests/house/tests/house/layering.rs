//! Who may import whom, and which crates from outside each may use.

use std::collections::{BTreeMap, BTreeSet};

use cargo_metadata::{DependencyKind, Metadata, MetadataCommand};

use crate::{none, root};

/// A package, what stands directly to its left (it may use that and all to the left of that), and the crates from
/// outside that it may use.
struct Row(&'static str, &'static [&'static str], &'static [&'static str]);

const TABLE: &[Row] = &[
    Row("springtide-core", &[], &["hashbrown", "heapless", "postcard", "serde", "siphasher"]),
    // Memory and devices.
    Row("springtide-hal", &["springtide-core"], &[]),
    Row("springtide-counting", &[], &[]),
    Row("springtide-hal-host", &["springtide-hal"], &["crc32c", "getrandom", "libc", "loom", "rustix"]),
    // Bytes from here to there: each uses one crate of hal at most.
    Row("springtide-transport", &["springtide-hal"], &[]),
    Row("springtide-transport-sim", &["springtide-transport"], &[]),
    Row("springtide-transport-tcp", &["springtide-transport", "springtide-hal-host"], &["rustix"]),
    Row("springtide-transport-shm", &["springtide-transport", "springtide-hal-host"], &["rustix"]),
    // Runtimes.
    Row(
        "springtide-driver",
        &["springtide-transport", "springtide-hal-host"],
        &["loom", "rustix", "serde", "tracing"],
    ),
    Row("springtide-tokio", &["springtide-driver"], &["tokio"]),
    Row("springtide-smol", &["springtide-driver"], &["async-executor", "async-io"]),
    Row("springtide-thread", &["springtide-driver"], &["rustix"]),
    // Services.
    Row("springtide-rpc", &["springtide-driver"], &["rustix", "tracing"]),
    Row("springtide-client", &["springtide-rpc"], &["heapless", "serde", "tracing"]),
    Row("springtide-coord", &["springtide-rpc"], &["rustix"]),
    Row(
        "springtide-admin",
        &["springtide-rpc"],
        &["http-body-util", "hyper", "hyper-util", "tokio", "tracing"],
    ),
    Row(
        "springtide-master",
        &["springtide-client", "springtide-coord", "springtide-admin"],
        &["heapless", "regex", "serde", "tracing"],
    ),
    Row("springtide-node", &["springtide-client", "springtide-coord", "springtide-admin"], &["tracing"]),
    // The facade and what stands on it.
    Row(
        "springtide",
        &[
            "springtide-master",
            "springtide-node",
            "springtide-tokio",
            "springtide-smol",
            "springtide-thread",
            "springtide-transport-tcp",
            "springtide-transport-shm",
        ],
        &[],
    ),
    // What every runtime must do, with the facade as the proof.
    Row("springtide-runtime-suite", &["springtide", "springtide-transport-sim"], &[]),
    Row(
        "springtide-cli",
        &["springtide"],
        &[
            "anstyle",
            "clap",
            "comfy-table",
            "hdrhistogram",
            "indicatif",
            "regex",
            "serde",
            "serde_json",
            "signal-hook",
            "toml",
            "tracing",
            "tracing-subscriber",
        ],
    ),
    Row("springtide-benches", &["springtide", "springtide-transport-sim"], &["criterion", "rustix"]),
    // All machines in one process, without their sockets.
    Row(
        "springtide-tests-sim",
        &["springtide-master", "springtide-node"],
        &["clap", "heapless", "rustix", "serde"],
    ),
    Row("springtide-fuzz", &["springtide-cli", "springtide-transport-sim"], &["clap", "libfuzzer-sys"]),
    Row("springtide-house", &[], &[]),
    Row("xtask", &[], &["clap"]),
];

/// What tests may use besides: a runtime, the transports, the skip helper.
const TESTS_MAY_USE: &[&str] = &[
    "springtide",
    "springtide-counting",
    "springtide-house",
    "springtide-runtime-suite",
    "springtide-tokio",
    "springtide-transport-shm",
    "springtide-transport-sim",
    "springtide-transport-tcp",
    "cargo_metadata",
    "criterion",
    "embedded-io-async",
    "proptest",
    "serde_json",
];

#[test]
fn imports_go_to_the_left() {
    let allowed = closure();
    let faults = edges(|package, kind, import| {
        let tests = kind == DependencyKind::Development && TESTS_MAY_USE.contains(&import);
        let known = allowed.get(package).is_some_and(|left| left.contains(import));
        is_ours(import) && !known && !tests
    });
    none(&faults, "these imports are not in the table of layering.rs (see ARCHITECTURE.md)");
}

#[test]
fn outside_crates_are_the_ones_agreed_on() {
    let faults = edges(|package, kind, import| {
        let tests = kind == DependencyKind::Development && TESTS_MAY_USE.contains(&import);
        let known = row(package).is_some_and(|Row(_, _, outside)| outside.contains(&import));
        !is_ours(import) && !known && !tests
    });
    none(&faults, "these crates are not in the table of layering.rs; a new one needs a reason in its commit");
}

#[test]
fn every_package_has_its_row() {
    let packages: BTreeSet<_> = metadata().packages.iter().map(|package| package.name.to_string()).collect();
    let rows: BTreeSet<_> = TABLE.iter().map(|Row(name, ..)| (*name).to_owned()).collect();
    assert_eq!(packages, rows, "packages of the workspace on the left, rows of layering.rs on the right");
}

#[test]
fn a_transport_uses_one_hal_crate() {
    for package in metadata().packages {
        let is_transport = package.name.starts_with("springtide-transport");
        let hal =
            package.dependencies.iter().filter(|import| import.name.starts_with("springtide-hal-")).count();
        assert!(!is_transport || hal <= 1, "{} uses {hal} crates of hal", package.name);
    }
}

fn metadata() -> Metadata {
    let mut command = MetadataCommand::new();
    command.manifest_path(root().join("Cargo.toml")).no_deps();
    command.exec().expect("cargo metadata reads the workspace")
}

fn is_ours(package: &str) -> bool {
    package == "springtide" || package.starts_with("springtide-") || package == "xtask"
}

fn row(package: &str) -> Option<&'static Row> {
    TABLE.iter().find(|Row(name, ..)| *name == package)
}

/// Everything to the left of each package. Rows stand below the rows that they name, so one pass is enough.
fn closure() -> BTreeMap<&'static str, BTreeSet<&'static str>> {
    let mut all: BTreeMap<_, BTreeSet<_>> = BTreeMap::new();
    for Row(name, left, _) in TABLE {
        let further = left.iter().flat_map(|left| all.get(left).expect("left of it means above it").iter());
        let reach = further.chain(left.iter()).copied().collect();
        all.insert(*name, reach);
    }
    all
}

/// The imports of the workspace that `fault` finds fault with.
fn edges(fault: impl Fn(&str, DependencyKind, &str) -> bool) -> Vec<String> {
    let mut faults = Vec::new();
    for package in metadata().packages {
        for import in &package.dependencies {
            if fault(&package.name, import.kind, &import.name) {
                faults.push(format!("{} imports {} ({})", package.name, import.name, import.kind));
            }
        }
    }
    faults
}
