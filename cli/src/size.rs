//! Sizes as people write them: `4096`, `64MiB`, `1.5 GiB`, `10GB`.

use core::fmt;
use core::str::FromStr;

use serde::{Serialize, Serializer};

/// A number of bytes.
///
/// Units with an `i`, and single letters, are powers of 1024 (`KiB`, `K`); `KB` and the like are powers of 1000.
/// Letters may be large or small. A fraction is cut off at whole bytes.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct Size(pub u64);

/// Text that is no size; says which and why.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct SizeError {
    input: String,
    fault: Fault,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Fault {
    Number,
    Unit,
    HalfByte,
    TooLarge,
}

/// Units and their bytes, the largest of each kind first.
const UNITS: &[(&[&str], u64)] = &[
    (&["pib", "p"], 1 << 50),
    (&["tib", "t"], 1 << 40),
    (&["gib", "g"], 1 << 30),
    (&["mib", "m"], 1 << 20),
    (&["kib", "k"], 1 << 10),
    (&["pb"], 1_000_000_000_000_000),
    (&["tb"], 1_000_000_000_000),
    (&["gb"], 1_000_000_000),
    (&["mb"], 1_000_000),
    (&["kb"], 1_000),
    (&["", "b"], 1),
];

/// Units in which sizes are shown.
const SHOWN: &[(&str, u64)] =
    &[("PiB", 1 << 50), ("TiB", 1 << 40), ("GiB", 1 << 30), ("MiB", 1 << 20), ("KiB", 1 << 10)];

impl Size {
    /// The bytes as a length in memory; `None` if this machine cannot address so many.
    pub fn in_memory(self) -> Option<usize> {
        usize::try_from(self.0).ok()
    }

    /// For people: at most one decimal, `1.5 GiB`. Not exact; [`Display`](fmt::Display) is.
    pub fn rounded(self) -> String {
        for &(unit, bytes) in SHOWN {
            if self.0 >= bytes {
                let tenths = (u128::from(self.0) * 10 + u128::from(bytes) / 2) / u128::from(bytes);
                let (whole, tenth) = (tenths / 10, tenths % 10);
                return if tenth == 0 {
                    format!("{whole} {unit}")
                } else {
                    format!("{whole}.{tenth} {unit}")
                };
            }
        }
        format!("{} B", self.0)
    }
}

impl FromStr for Size {
    type Err = SizeError;

    fn from_str(input: &str) -> Result<Self, SizeError> {
        read(input).map(Self).map_err(|fault| SizeError { input: input.to_owned(), fault })
    }
}

fn read(input: &str) -> Result<u64, Fault> {
    let text = input.trim();
    let end = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
    let (number, unit) = text.split_at(end);
    let unit = unit.trim_start().to_ascii_lowercase();
    let (whole, decimals) = number.split_once('.').unwrap_or((number, "0"));
    let digits = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    if !digits(whole) || !digits(decimals) {
        return Err(Fault::Number);
    }
    let (_, bytes) = UNITS.iter().find(|(names, _)| names.contains(&unit.as_str())).ok_or(Fault::Unit)?;
    let whole =
        whole.parse::<u64>().ok().and_then(|whole| whole.checked_mul(*bytes)).ok_or(Fault::TooLarge)?;
    let decimals = decimals.trim_end_matches('0');
    if decimals.is_empty() {
        return Ok(whole);
    }
    if *bytes == 1 {
        return Err(Fault::HalfByte);
    }
    // Further decimals are below one byte in every unit.
    let decimals = &decimals[..decimals.len().min(18)];
    let scale = 10u128.pow(decimals.len() as u32);
    let part = decimals.parse::<u128>().map_err(|_| Fault::Number)? * u128::from(*bytes) / scale;
    u64::try_from(part).ok().and_then(|part| whole.checked_add(part)).ok_or(Fault::TooLarge)
}

/// Exact: reads back as the same number of bytes.
impl fmt::Display for Size {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let exact = SHOWN.iter().find(|(_, bytes)| self.0 != 0 && self.0.is_multiple_of(*bytes));
        match exact {
            Some((unit, bytes)) => f.pad(&format!("{}{unit}", self.0 / bytes)),
            None => f.pad(&self.0.to_string()),
        }
    }
}

/// In JSON a size is its number of bytes.
impl Serialize for Size {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_u64(self.0)
    }
}

impl fmt::Display for SizeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let input = &self.input;
        match self.fault {
            Fault::Number => {
                write!(f, "{input:?} is no size; write bytes or a unit, as in 4096, 64MiB or 1.5GiB")
            }
            Fault::Unit => write!(
                f,
                "{input:?} has an unknown unit; units are B, KiB, MiB, GiB, TiB, PiB (1024) and KB, MB, GB, TB, PB (1000)"
            ),
            Fault::HalfByte => write!(f, "{input:?} is a part of a byte; write whole bytes or a larger unit"),
            Fault::TooLarge => write!(f, "{input:?} is more than {} bytes", u64::MAX),
        }
    }
}

impl core::error::Error for SizeError {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_units_of_both_kinds() {
        let table = [
            ("4096", 4096),
            ("0", 0),
            ("64MiB", 64 << 20),
            ("64 mib", 64 << 20),
            ("64M", 64 << 20),
            ("1.5 GiB", 3 << 29),
            ("1.5GB", 1_500_000_000),
            ("10KB", 10_000),
            ("10KiB", 10_240),
            ("7 B", 7),
            ("0.1KiB", 102),
            ("1.000", 1),
            (" 2t ", 2 << 40),
            ("16383.5PiB", u64::MAX - (1 << 49) + 1),
            ("18446744073709551615", u64::MAX),
        ];
        for (input, bytes) in table {
            assert_eq!(input.parse(), Ok(Size(bytes)), "{input}");
        }
    }

    #[test]
    fn refuses_nonsense_and_names_it() {
        let table = [
            ("", Fault::Number),
            ("MiB", Fault::Number),
            ("-1", Fault::Number),
            ("+1", Fault::Number),
            (".5GiB", Fault::Number),
            ("5.GiB", Fault::Number),
            ("1.2.3", Fault::Number),
            ("1e3", Fault::Unit),
            ("1 XiB", Fault::Unit),
            ("1,5GiB", Fault::Unit),
            ("64MiB/s", Fault::Unit),
            ("0x10", Fault::Unit),
            ("1.5", Fault::HalfByte),
            ("18446744073709551616", Fault::TooLarge),
            ("16384PiB", Fault::TooLarge),
            ("99999999999999999999999", Fault::TooLarge),
        ];
        for (input, fault) in table {
            let error = input.parse::<Size>().unwrap_err();
            assert_eq!(error.fault, fault, "{input}");
            assert!(error.to_string().contains(&format!("{input:?}")), "{error}");
        }
    }

    #[test]
    fn what_is_shown_reads_back() {
        let odd = [0, 1, 1023, 1025, 4096, 1536 << 20, (1 << 50) + 1, u64::MAX];
        for bytes in odd.into_iter().chain((0..64).map(|shift| 1 << shift)) {
            assert_eq!(Size(bytes).to_string().parse(), Ok(Size(bytes)));
        }
    }

    #[test]
    fn rounds_for_people() {
        let table =
            [(0, "0 B"), (1023, "1023 B"), (1536, "1.5 KiB"), (1 << 30, "1 GiB"), (u64::MAX, "16384 PiB")];
        for (bytes, text) in table {
            assert_eq!(Size(bytes).rounded(), text);
        }
    }
}
