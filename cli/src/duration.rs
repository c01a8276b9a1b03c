//! Lengths of time as people write them: `30s`, `500ms`, `1.5h`, `1h30m`.

use core::time::Duration;

/// Units and their nanoseconds.
const UNITS: &[(&[&str], u64)] = &[
    (&["d"], 86_400_000_000_000),
    (&["h"], 3_600_000_000_000),
    (&["min", "m"], 60_000_000_000),
    (&["s"], 1_000_000_000),
    (&["ms"], 1_000_000),
    (&["us", "µs"], 1_000),
    (&["ns"], 1),
];

/// Reads a length of time: one or more numbers, each with its unit (`ns`, `us`, `ms`, `s`, `m`, `h`, `d`). Only zero
/// may stand without one, because a bare number leaves open whether seconds or milliseconds are meant.
pub fn parse(input: &str) -> Result<Duration, String> {
    let text = input.trim();
    if text == "0" {
        return Ok(Duration::ZERO);
    }
    let mut rest = text;
    let mut total = 0u64;
    while !rest.is_empty() {
        let (nanos, behind) = term(rest).map_err(|why| format!("{input:?} {why}"))?;
        total = total.checked_add(nanos).ok_or_else(|| format!("{input:?} is more than 584 years"))?;
        rest = behind.trim_start();
    }
    if text.is_empty() { Err(format!("{input:?} {NO_NUMBER}")) } else { Ok(Duration::from_nanos(total)) }
}

const NO_NUMBER: &str = "is no length of time; write a number and its unit, as in 500ms, 30s or 1h30m";

/// The first number with its unit, in nanoseconds, and what stands behind it.
fn term(text: &str) -> Result<(u64, &str), String> {
    let digits = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
    let (number, behind) = text.split_at(digits);
    let behind = behind.trim_start();
    let letters = behind.find(|c: char| !c.is_alphabetic()).unwrap_or(behind.len());
    let (unit, rest) = behind.split_at(letters);
    if number.is_empty()
        || number.starts_with('.')
        || number.ends_with('.')
        || number.matches('.').count() > 1
    {
        return Err(NO_NUMBER.to_owned());
    }
    if unit.is_empty() {
        return Err(format!("does not say in what unit; write {number}s or {number}ms"));
    }
    let found = UNITS.iter().find(|(names, _)| names.contains(&unit));
    let (_, nanos) =
        found.ok_or_else(|| format!("has an unknown unit {unit:?}; units are ns, us, ms, s, m, h, d"))?;
    let (whole, decimals) = number.split_once('.').unwrap_or((number, ""));
    let decimals = &decimals[..decimals.len().min(18)];
    let whole = whole.parse::<u64>().ok().and_then(|whole| whole.checked_mul(*nanos));
    let part = decimals.parse::<u128>().unwrap_or(0) * u128::from(*nanos) / 10u128.pow(decimals.len() as u32);
    let sum = whole.zip(u64::try_from(part).ok()).and_then(|(whole, part)| whole.checked_add(part));
    sum.map(|sum| (sum, rest)).ok_or_else(|| "is more than 584 years".to_owned())
}

/// Shows a length of time for people, rounded to three digits or so: `1h 30m`, `12.3 s`, `45.6 ms`, `7.8 µs`.
pub fn rounded(duration: Duration) -> String {
    let nanos = duration.as_nanos();
    let tenths = |unit: u128| format!("{}.{}", nanos / unit, nanos % unit * 10 / unit);
    match nanos {
        0..1_000 => format!("{nanos} ns"),
        1_000..1_000_000 => format!("{} µs", tenths(1_000)),
        1_000_000..1_000_000_000 => format!("{} ms", tenths(1_000_000)),
        1_000_000_000..60_000_000_000 => format!("{} s", tenths(1_000_000_000)),
        _ => match duration.as_secs() {
            secs @ 0..3_600 => format!("{}m {}s", secs / 60, secs % 60),
            secs @ 3_600..86_400 => format!("{}h {}m", secs / 3_600, secs / 60 % 60),
            secs => format!("{}d {}h", secs / 86_400, secs / 3_600 % 24),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_units_and_sums() {
        let table = [
            ("30s", Duration::from_secs(30)),
            ("500ms", Duration::from_millis(500)),
            ("1.5s", Duration::from_millis(1_500)),
            ("1h30m", Duration::from_secs(5_400)),
            ("1h 30min", Duration::from_secs(5_400)),
            ("2 d", Duration::from_secs(172_800)),
            ("7µs", Duration::from_micros(7)),
            ("0", Duration::ZERO),
            ("0s", Duration::ZERO),
        ];
        for (input, duration) in table {
            assert_eq!(parse(input), Ok(duration), "{input}");
        }
    }

    #[test]
    fn refuses_nonsense_and_names_it() {
        for input in [
            "",
            " ",
            "10",
            "s",
            "-1s",
            "1.s",
            ".5s",
            "1..5s",
            "1y",
            "1h30",
            "600000h600000000h",
            "1s!",
            "1 s 2",
        ] {
            let error = parse(input).unwrap_err();
            assert!(error.starts_with(&format!("{input:?} ")), "{error}");
        }
        assert!(parse("10").unwrap_err().contains("10s or 10ms"));
    }

    #[test]
    fn rounds_for_people() {
        let table = [
            (Duration::from_nanos(7), "7 ns"),
            (Duration::from_nanos(7_850), "7.8 µs"),
            (Duration::from_micros(45_600), "45.6 ms"),
            (Duration::from_millis(12_345), "12.3 s"),
            (Duration::from_secs(61), "1m 1s"),
            (Duration::from_secs(5_400), "1h 30m"),
            (Duration::from_secs(90_000), "1d 1h"),
        ];
        for (duration, text) in table {
            assert_eq!(rounded(duration), text);
        }
    }
}
