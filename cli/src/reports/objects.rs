//! How objects are printed.

use core::time::Duration;
use std::io::Write;

use serde::Serialize;
use springtide_core::checksum::Checksum;
use springtide_core::wire::message::{RemoveStep, Stat};

use crate::duration;
use crate::exit::{Exit, Failure};
use crate::output::{Align, Format, Note, Out, Report, Table, grouped, key};
use crate::size::Size;

/// What the master knows of an object.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct ObjectReport {
    /// Its key; what is not printable ASCII is escaped.
    pub key: String,
    /// Its length in bytes.
    pub bytes: u64,
    /// Its checksum, as `crc32c:` and eight hexadecimal digits; null if it has none.
    pub checksum: Option<String>,
    /// How many replicas are complete.
    pub replicas: u8,
    /// Whether it is still being written.
    pub writing: bool,
    /// How long its lease still runs, in milliseconds.
    pub lease_ms: u64,
    /// How long its soft pin still runs, in milliseconds.
    pub soft_pin_ms: u64,
    /// Whether it is never evicted.
    pub hard_pin: bool,
}

impl ObjectReport {
    /// What `stat` says of the object at `bytes`.
    pub fn new(bytes: &[u8], stat: &Stat) -> Self {
        let checksum = match stat.checksum {
            Checksum::None => None,
            Checksum::Crc32c(sum) => Some(format!("crc32c:{sum:08x}")),
        };
        Self {
            key: key(bytes),
            bytes: stat.len,
            checksum,
            replicas: stat.replicas,
            writing: stat.writing,
            lease_ms: stat.lease_ms,
            soft_pin_ms: stat.soft_pin_ms,
            hard_pin: stat.hard_pin,
        }
    }

    fn pin(&self) -> String {
        match (self.hard_pin, self.soft_pin_ms) {
            (true, _) => "hard".to_owned(),
            (false, 0) => "none".to_owned(),
            (false, left) => format!("soft, {} left", time_left(left)),
        }
    }
}

fn time_left(millis: u64) -> String {
    duration::rounded(Duration::from_millis(millis))
}

impl Report for ObjectReport {
    fn tables(&self) -> Vec<Table> {
        let mut table = Table::new(&[("object", Align::Left), (" ", Align::Left)]);
        let mut row = |name: &str, value: String| table.row([name.to_owned(), value]);
        row("key", self.key.clone());
        row("length", format!("{} ({} bytes)", Size(self.bytes).rounded(), grouped(self.bytes)));
        row("checksum", self.checksum.clone().unwrap_or_else(|| "none".to_owned()));
        row("replicas", self.replicas.to_string());
        row("state", if self.writing { "being written" } else { "complete" }.to_owned());
        row(
            "lease",
            if self.lease_ms == 0 { "none".to_owned() } else { format!("{} left", time_left(self.lease_ms)) },
        );
        row("pin", self.pin());
        vec![table]
    }
}

/// Prints a listing as it comes in, page by page: lines for people, one JSON array for programs.
pub struct Listing<'a, W> {
    out: &'a mut Out<W>,
    printed: u64,
}

impl<'a, W: Write> Listing<'a, W> {
    /// Begins a listing on `out`.
    pub const fn new(out: &'a mut Out<W>) -> Self {
        Self { out, printed: 0 }
    }

    /// Prints an object.
    pub fn object(&mut self, bytes: &[u8], stat: &Stat) -> Result<(), Failure> {
        let object = ObjectReport::new(bytes, stat);
        let first = self.printed == 0;
        self.printed += 1;
        match self.out.format() {
            Format::Json => {
                let text = serde_json::to_string(&object).map_err(Failure::new)?;
                self.out.bytes(format!("{}{text}", if first { "[\n" } else { ",\n" }).as_bytes())
            }
            Format::Table => {
                if first {
                    self.out.line("    length  replicas  pin   key")?;
                }
                let pin = if object.hard_pin {
                    "hard"
                } else if object.soft_pin_ms > 0 {
                    "soft"
                } else {
                    "-"
                };
                let length = Size(object.bytes).rounded();
                let writing = if object.writing { " (being written)" } else { "" };
                self.out
                    .line(&format!("{length:>10}  {:>8}  {pin:<4}  {}{writing}", object.replicas, object.key))
            }
        }
    }

    /// How many objects were printed.
    pub const fn printed(&self) -> u64 {
        self.printed
    }

    /// Ends the listing.
    pub fn end(self) -> Result<(), Failure> {
        match (self.out.format(), self.printed) {
            (Format::Json, 0) => self.out.line("[]"),
            (Format::Json, _) => self.out.line("\n]"),
            (Format::Table, _) => Ok(()),
        }
    }
}

/// What a removal did.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize)]
pub struct Removal {
    /// Objects that are gone.
    pub removed: u64,
    /// Objects that matched and stayed: somebody may be reading or writing them.
    pub kept: u64,
}

impl Removal {
    /// Adds what a step did.
    pub const fn add(&mut self, step: &RemoveStep) {
        self.removed += step.removed;
        self.kept += step.skipped;
    }

    /// Prints it; an error, already said, if nothing matched or something stayed.
    pub fn finish<W: Write>(&self, out: &mut Out<W>) -> Result<(), Failure> {
        out.report(self)?;
        match (self.removed, self.kept) {
            (0, 0) => Err(Failure::new("no object matches").advise("list what there is: springtide ls")),
            (_, 0) => Ok(()),
            (_, kept) => Err(Failure::new(format_args!("{kept} objects are being read or written and stay"))
                .advise("try again when their leases have ended, or use --force")),
        }
    }
}

impl Report for Removal {
    fn tables(&self) -> Vec<Table> {
        let mut table = Table::default();
        table.note(Note::Plain, format!("{} removed, {} kept", grouped(self.removed), grouped(self.kept)));
        vec![table]
    }
}

/// Whether a key is there.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct Presence {
    /// The key; what is not printable ASCII is escaped.
    pub key: String,
    /// Whether it is there and can be read.
    pub exists: bool,
}

impl Presence {
    /// Prints it; exit code 1, already explained, if the key is not there.
    pub fn finish<W: Write>(&self, out: &mut Out<W>) -> Result<(), Failure> {
        out.report(self)?;
        if self.exists { Ok(()) } else { Err(Failure::silent(Exit::Failed)) }
    }
}

impl Report for Presence {
    fn tables(&self) -> Vec<Table> {
        let mut table = Table::default();
        table.note(Note::Plain, if self.exists { "yes" } else { "no" });
        vec![table]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::output::Colour;

    fn stat(len: u64) -> Stat {
        Stat {
            len,
            checksum: Checksum::Crc32c(0xAB),
            replicas: 2,
            writing: false,
            lease_ms: 1_500,
            soft_pin_ms: 0,
            hard_pin: false,
        }
    }

    fn printed(format: Format, print: impl FnOnce(&mut Out<&mut Vec<u8>>) -> Result<(), Failure>) -> String {
        let mut bytes = Vec::new();
        // What is printed counts here, also when the end is an error.
        let _ = print(&mut Out::new(&mut bytes, format, Colour::No));
        String::from_utf8(bytes).unwrap()
    }

    fn list(format: Format, keys: &[&[u8]]) -> String {
        printed(format, |out| {
            let mut listing = Listing::new(out);
            keys.iter().try_for_each(|key| listing.object(key, &stat(4096)))?;
            assert_eq!(listing.printed(), keys.len() as u64);
            listing.end()
        })
    }

    #[test]
    fn a_listing_is_json_whatever_its_length() {
        let (one, three): ([&[u8]; 1], [&[u8]; 3]) = ([b"a"], [b"a", b"b\xff", b"c\"d"]);
        for keys in [&[][..], &one, &three] {
            let json: serde_json::Value = serde_json::from_str(&list(Format::Json, keys)).unwrap();
            assert_eq!(json.as_array().unwrap().len(), keys.len());
        }
        assert!(list(Format::Json, &[b"b\xff"]).contains("b\\\\xff"));
    }

    #[test]
    fn a_listing_for_people_has_a_head_if_it_has_lines() {
        assert_eq!(list(Format::Table, &[]), "");
        assert_eq!(
            list(Format::Table, &[b"a"]),
            "    length  replicas  pin   key\n     4 KiB         2  -     a\n"
        );
    }

    #[test]
    fn an_object_shows_its_lease_pin_and_sum() {
        let text = printed(Format::Table, |out| out.report(&ObjectReport::new(b"k", &stat(1536))));
        for part in ["1.5 KiB (1,536 bytes)", "crc32c:000000ab", "1.5 s left", "none", "complete"] {
            assert!(text.contains(part), "{part} in {text}");
        }
        let pinned = Stat { soft_pin_ms: 90_000, writing: true, checksum: Checksum::None, ..stat(0) };
        let text = printed(Format::Table, |out| out.report(&ObjectReport::new(b"k", &pinned)));
        assert!(text.contains("soft, 1m 30s left") && text.contains("being written"), "{text}");
    }

    #[test]
    fn a_removal_fails_if_nothing_went_or_something_stayed() {
        let end = |removed, skipped| {
            let mut removal = Removal::default();
            removal.add(&RemoveStep { next: 0, removed, skipped });
            removal
                .finish(&mut Out::new(Vec::new(), Format::Json, Colour::No))
                .map_err(|failure| failure.to_string())
        };
        assert_eq!(end(3, 0), Ok(()));
        assert!(end(0, 0).unwrap_err().contains("no object matches"));
        assert!(end(3, 1).unwrap_err().contains("--force"));
    }

    #[test]
    fn absence_is_exit_code_one_without_a_word_more() {
        let presence = |exists| Presence { key: "k".to_owned(), exists };
        let mut out = Out::new(Vec::new(), Format::Table, Colour::No);
        assert_eq!(presence(true).finish(&mut out), Ok(()));
        assert_eq!(presence(false).finish(&mut out), Err(Failure::silent(Exit::Failed)));
        assert_eq!(printed(Format::Table, |out| presence(false).finish(out)), "no\n");
    }
}
