//! Fractions as people write them: `0.9`, `90%`.

use core::fmt;
use core::str::FromStr;

use serde::{Serialize, Serializer};

const MILLION: u32 = 1_000_000;

/// A share of a whole, in parts per million: what all replicas of a master agree on exactly.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct Fraction(pub u32);

impl FromStr for Fraction {
    type Err = String;

    fn from_str(input: &str) -> Result<Self, String> {
        let text = input.trim();
        let (number, scale) =
            text.strip_suffix('%').map_or((text, MILLION), |number| (number.trim_end(), MILLION / 100));
        let parts = parts(number, scale).filter(|&parts| parts <= MILLION);
        parts.map(Self).ok_or_else(|| {
            format!("{input:?} is no fraction; write a number from 0 to 1 or a percentage, as in 0.9 or 90%, six decimals at most")
        })
    }
}

/// `number` times `scale`, if it has no more decimals than fit.
fn parts(number: &str, scale: u32) -> Option<u32> {
    let (whole, decimals) = number.split_once('.').unwrap_or((number, "0"));
    let digits = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    if !digits(whole) || !digits(decimals) {
        return None;
    }
    let decimals = decimals.trim_end_matches('0');
    let power = 10u32.checked_pow(decimals.len() as u32).filter(|power| scale.is_multiple_of(*power))?;
    let part = if decimals.is_empty() { 0 } else { decimals.parse::<u32>().ok()? * (scale / power) };
    whole.parse::<u32>().ok()?.checked_mul(scale)?.checked_add(part)
}

impl fmt::Display for Fraction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = format!("{}.{:06}", self.0 / MILLION, self.0 % MILLION);
        f.pad(text.trim_end_matches('0').trim_end_matches('.'))
    }
}

/// In JSON a fraction is a number from 0 to 1.
impl Serialize for Fraction {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_f64(f64::from(self.0) / f64::from(MILLION))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_both_forms_and_shows_what_reads_back() {
        let table = [
            ("0.9", 900_000),
            ("90%", 900_000),
            ("0", 0),
            ("1", MILLION),
            ("100 %", MILLION),
            ("0.000001", 1),
            ("0.0001%", 1),
        ];
        for (input, parts) in table {
            assert_eq!(input.parse(), Ok(Fraction(parts)), "{input}");
            assert_eq!(Fraction(parts).to_string().parse(), Ok(Fraction(parts)));
        }
    }

    #[test]
    fn refuses_nonsense_and_names_it() {
        for input in
            ["", "%", "1.1", "101%", "-0.1", "0,9", ".9", "0.0000001", "0.00001%", "nan", "99999999999"]
        {
            let error = input.parse::<Fraction>().unwrap_err();
            assert!(error.starts_with(&format!("{input:?} ")), "{error}");
        }
    }
}
