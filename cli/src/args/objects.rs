//! The commands that look at objects, and at the pool.

use core::time::Duration;
use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt;
use std::path::PathBuf;

use clap::Args;
use springtide_core::key::Key;

use super::{Connect, Json};
use crate::duration;
use crate::exit::Failure;
use crate::size::Size;

/// Store a value under a key.
///
/// An object that exists is not replaced: that is an error. The value is checksummed here and checked by every reader.
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  springtide put greeting hello.txt
  tar c model | springtide put model.tar - --replicas 2")]
pub struct Put {
    /// The key: 1 to 65535 bytes of any kind.
    pub key: OsString,

    /// The file that holds the value; `-` is standard input.
    pub file: PathBuf,

    /// Which pool.
    #[command(flatten)]
    pub connect: Connect,

    /// On how many nodes to store it; fewer if there are not so many with room.
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u8).range(1..=8))]
    pub replicas: u8,

    /// Evict it only when nothing else can go, for this long; 0 takes the master's default.
    #[arg(long, value_name = "TIME", value_parser = duration::parse)]
    pub soft_pin: Option<Duration>,

    /// Never evict it.
    #[arg(long)]
    pub hard_pin: bool,

    /// Store it on this node if there is room; may be repeated, the first comes first.
    #[arg(long, value_name = "NODE")]
    pub prefer: Vec<String>,

    /// Objects of one group are evicted together if possible.
    #[arg(long, value_name = "NAME", default_value = "", hide_default_value = true)]
    pub group: String,
}

/// Fetch a value.
///
/// The value is checked against its checksum before a byte of it is written.
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  springtide get greeting
  springtide get model.tar --offset 1MiB --length 4KiB -o part")]
pub struct Get {
    /// The key.
    pub key: OsString,

    /// Write the value to this file instead of standard output.
    #[arg(short, long, value_name = "FILE")]
    pub output: Option<PathBuf>,

    /// Begin at this byte of the value.
    #[arg(long, value_name = "SIZE", default_value = "0")]
    pub offset: Size,

    /// Fetch this many bytes [default: up to the end]
    #[arg(long, value_name = "SIZE")]
    pub length: Option<Size>,

    /// Which pool.
    #[command(flatten)]
    pub connect: Connect,
}

/// Say whether a key is there: prints yes or no; exit code 0 or 1.
///
/// Asking does not keep the object alive.
#[derive(Args, Debug)]
#[command(after_help = "Example:\n  springtide exists greeting && springtide get greeting")]
pub struct Exists {
    /// The key.
    pub key: OsString,

    /// Which pool.
    #[command(flatten)]
    pub connect: Connect,

    /// Words or JSON.
    #[command(flatten)]
    pub json: Json,
}

/// Print what the master knows of an object: length, checksum, replicas, lease, pins.
#[derive(Args, Debug)]
#[command(after_help = "Example:\n  springtide stat greeting --json")]
pub struct Stat {
    /// The key.
    pub key: OsString,

    /// Which pool.
    #[command(flatten)]
    pub connect: Connect,

    /// Table or JSON.
    #[command(flatten)]
    pub json: Json,
}

/// List objects.
///
/// PATTERN is a key; one that ends in `*` stands for every key that begins so. Without a pattern all are listed.
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  springtide ls
  springtide ls 'model/*' --json
  springtide ls --regex '^layer-[0-9]+$'")]
pub struct Ls {
    /// Which keys.
    pub pattern: Option<OsString>,

    /// PATTERN is a regular expression, matched anywhere in the key.
    #[arg(long, requires = "pattern")]
    pub regex: bool,

    /// List this many at most.
    #[arg(long, value_name = "N")]
    pub limit: Option<u64>,

    /// Which pool.
    #[command(flatten)]
    pub connect: Connect,

    /// Table or JSON.
    #[command(flatten)]
    pub json: Json,
}

/// Remove objects.
///
/// PATTERN is a key; one that ends in `*` stands for every key that begins so. An object that somebody may be reading
/// stays, and is counted, unless --force is given. Exit code 1 if nothing matched or something stayed.
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  springtide rm greeting
  springtide rm --force 'model/*'
  springtide rm --regex '^layer-[0-9]+$'")]
pub struct Rm {
    /// Which keys.
    pub pattern: OsString,

    /// PATTERN is a regular expression, matched anywhere in the key.
    #[arg(long)]
    pub regex: bool,

    /// Remove what somebody may be reading, too; such a read fails, it never sees wrong bytes.
    #[arg(long)]
    pub force: bool,

    /// Which pool.
    #[command(flatten)]
    pub connect: Connect,

    /// Words or JSON.
    #[command(flatten)]
    pub json: Json,
}

/// Print how the pool is: memory, objects, nodes, counters.
#[derive(Args, Debug)]
#[command(after_help = "Example:\n  springtide status --master pool-1:50051")]
pub struct Status {
    /// Which pool.
    #[command(flatten)]
    pub connect: Connect,

    /// Tables or JSON.
    #[command(flatten)]
    pub json: Json,
}

/// Which objects a pattern means.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Selection {
    /// All of the tenant's.
    All,
    /// The one with this key.
    Key(Vec<u8>),
    /// Those whose keys begin so.
    Prefix(Vec<u8>),
    /// Those in whose keys this regular expression matches.
    Regex(String),
}

impl Ls {
    /// Which objects to list.
    pub fn selection(&self) -> Result<Selection, Failure> {
        match &self.pattern {
            None => Ok(Selection::All),
            Some(pattern) if self.regex => regex(pattern),
            Some(pattern) => plain(pattern),
        }
    }
}

impl Rm {
    /// Which objects to remove.
    pub fn selection(&self) -> Result<Selection, Failure> {
        if self.regex { regex(&self.pattern) } else { plain(&self.pattern) }
    }
}

/// A key from the command line.
pub(crate) fn key(text: &OsString) -> Result<Vec<u8>, Failure> {
    let bytes = text.clone().into_vec();
    match Key::new(&bytes) {
        Ok(_) => Ok(bytes),
        Err(error) => Err(Failure::usage(error)),
    }
}

fn plain(pattern: &OsString) -> Result<Selection, Failure> {
    let mut bytes = key(pattern)?;
    if bytes.last() != Some(&b'*') {
        return Ok(Selection::Key(bytes));
    }
    bytes.pop();
    Ok(if bytes.is_empty() { Selection::All } else { Selection::Prefix(bytes) })
}

fn regex(pattern: &OsString) -> Result<Selection, Failure> {
    let unusable = |why: &dyn core::fmt::Display| {
        Failure::usage(format_args!("{pattern:?} is no regular expression: {why}"))
            .advise("leave --regex out to name keys as they are")
    };
    let text = pattern.to_str().ok_or_else(|| unusable(&"it is not UTF-8"))?;
    if text.is_empty() {
        return Err(unusable(&"it is empty and would match every key; write '*' without --regex for all"));
    }
    match regex::bytes::Regex::new(text) {
        Ok(_) => Ok(Selection::Regex(text.to_owned())),
        // The last line says what is wrong; those before it draw an arrow.
        Err(error) => {
            Err(unusable(&error.to_string().lines().last().unwrap_or_default().trim_start_matches("error: ")))
        }
    }
}

impl Put {
    /// The key.
    pub fn key(&self) -> Result<Vec<u8>, Failure> {
        key(&self.key)
    }
}

impl Get {
    /// The key.
    pub fn key(&self) -> Result<Vec<u8>, Failure> {
        key(&self.key)
    }
}

impl Exists {
    /// The key.
    pub fn key(&self) -> Result<Vec<u8>, Failure> {
        key(&self.key)
    }
}

impl Stat {
    /// The key.
    pub fn key(&self) -> Result<Vec<u8>, Failure> {
        key(&self.key)
    }
}
