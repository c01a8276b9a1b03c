//! Traces: one request a line, as JSON.

use core::fmt;
use std::fs::File;
use std::io::{self, BufRead, BufReader, Read};
use std::path::{Path, PathBuf};

use serde_json::Value;

use super::Record;

/// How many blocks a request may have.
pub const MOST_BLOCKS: usize = 1_000_000;
/// How long a line may be, in bytes: [`MOST_BLOCKS`] of the longest ids, and as much again.
const LONGEST_LINE: u64 = 44 << 20;

/// Why a trace cannot be used: the file, and what is wrong with it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct TraceError {
    /// The trace.
    pub file: PathBuf,
    /// What is wrong.
    pub fault: Fault,
}

/// What is wrong with a trace. Lines are counted from one.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Fault {
    /// There is no such file.
    NotFound,
    /// It cannot be read, and why.
    Unreadable(String),
    /// It has no request.
    Empty,
    /// This line is no request, and why.
    Line(u64, LineFault),
}

/// What is wrong with a line.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum LineFault {
    /// It is blank, but not at the end.
    Blank,
    /// It has more bytes than any request needs.
    TooLong,
    /// It is no JSON from this column on.
    NotJson(usize),
    /// It is JSON that ends too early.
    CutOff,
    /// It is JSON, but no object.
    NotAnObject,
    /// This field is missing.
    Missing(&'static str),
    /// This field is not what it should be.
    Wrong(&'static str, Expected),
    /// This field is given twice, or the line has another fault that has no name.
    Other,
    /// It has more than [`MOST_BLOCKS`] blocks.
    TooManyBlocks,
}

/// What a field should have been.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Expected {
    /// A whole number.
    Number,
    /// Not a negative one.
    Positive,
    /// None above this.
    AtMost(u64),
    /// A list of whole numbers.
    List,
}

/// Reads the requests of `file`, in their order, the first `most` of them if that is given.
///
/// Fields that it does not know, and blank lines at the end, are passed over. Lines behind the last request that is
/// wanted are not looked at. Holds one line in memory beside the requests.
pub fn read(file: &Path, most: Option<usize>) -> Result<Vec<Record>, TraceError> {
    let fault = |fault| TraceError { file: file.to_owned(), fault };
    let input = File::open(file).map_err(|error| fault(unreadable(&error)))?;
    records(BufReader::new(input), most.unwrap_or(usize::MAX)).map_err(fault)
}

fn unreadable(error: &io::Error) -> Fault {
    match error.kind() {
        io::ErrorKind::NotFound => Fault::NotFound,
        _ => Fault::Unreadable(error.to_string()),
    }
}

/// Reads up to `most` requests of a trace from `input`. Never more than a line, of 44 MiB at most, is held besides.
pub fn records(mut input: impl BufRead, most: usize) -> Result<Vec<Record>, Fault> {
    let (mut records, mut text, mut number, mut blank) = (Vec::new(), Vec::new(), 0, None);
    while records.len() < most {
        text.clear();
        let read = input.by_ref().take(LONGEST_LINE).read_until(b'\n', &mut text);
        let read = read.map_err(|error| unreadable(&error))? as u64;
        if read == 0 {
            return if records.is_empty() { Err(Fault::Empty) } else { Ok(records) };
        }
        number += 1;
        if read == LONGEST_LINE && text.last() != Some(&b'\n') {
            return Err(Fault::Line(number, LineFault::TooLong));
        }
        if text.trim_ascii().is_empty() {
            blank = blank.or(Some(number));
        } else if let Some(blank) = blank {
            return Err(Fault::Line(blank, LineFault::Blank));
        } else {
            records.push(record(&text).map_err(|fault| Fault::Line(number, fault))?);
        }
    }
    Ok(records)
}

fn record(text: &[u8]) -> Result<Record, LineFault> {
    let record: Record = serde_json::from_slice(text).map_err(|_| explain(text))?;
    if record.hash_ids.len() > MOST_BLOCKS { Err(LineFault::TooManyBlocks) } else { Ok(record) }
}

/// Says in our words why `text` is no request.
fn explain(text: &[u8]) -> LineFault {
    let value: Value = match serde_json::from_slice(text) {
        Ok(value) => value,
        Err(error) if error.is_eof() => return LineFault::CutOff,
        Err(error) => return LineFault::NotJson(error.column()),
    };
    let Value::Object(fields) = value else { return LineFault::NotAnObject };
    let limits =
        [("timestamp", u64::MAX), ("input_length", u32::MAX.into()), ("output_length", u32::MAX.into())];
    for (name, most) in limits {
        let Some(value) = fields.get(name) else { return LineFault::Missing(name) };
        if let Err(expected) = number(value, most) {
            return LineFault::Wrong(name, expected);
        }
    }
    let ids = match fields.get("hash_ids") {
        None => return LineFault::Missing("hash_ids"),
        Some(Value::Array(ids)) => ids,
        Some(_) => return LineFault::Wrong("hash_ids", Expected::List),
    };
    let wrong = ids.iter().find_map(|id| number(id, u64::MAX).err());
    wrong.map_or(LineFault::Other, |expected| LineFault::Wrong("hash_ids", expected))
}

fn number(value: &Value, most: u64) -> Result<(), Expected> {
    let Value::Number(number) = value else { return Err(Expected::Number) };
    match number.as_u64() {
        Some(number) if number <= most => Ok(()),
        Some(_) => Err(Expected::AtMost(most)),
        None if number.as_f64().is_some_and(|number| number < 0.0) => Err(Expected::Positive),
        // Above 64 bits, JSON's numbers are read as floats.
        None if number.as_f64().is_some_and(|number| number >= u64::MAX as f64) => {
            Err(Expected::AtMost(most))
        }
        None => Err(Expected::Number),
    }
}

impl fmt::Display for TraceError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let file = self.file.display();
        match &self.fault {
            Fault::NotFound => write!(f, "there is no trace {file}"),
            Fault::Unreadable(why) => write!(f, "cannot read the trace {file}: {why}"),
            Fault::Empty => write!(f, "the trace {file} has no request"),
            Fault::Line(line, fault) => write!(f, "{file}, line {line}: {fault}"),
        }
    }
}

impl core::error::Error for TraceError {}

impl fmt::Display for LineFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Blank => f.write_str("the line is blank; blank lines may stand at the end only"),
            Self::TooLong => write!(f, "the line is longer than {} MiB", LONGEST_LINE >> 20),
            Self::NotJson(column) => write!(f, "the line is not JSON from column {column} on"),
            Self::CutOff => f.write_str("the line ends in the middle of its JSON"),
            Self::NotAnObject => f.write_str("the line is JSON, but no object with the fields of a request"),
            Self::Missing(field) => write!(f, "the field {field} is missing"),
            Self::Wrong(field, expected) => match expected {
                Expected::Number => write!(f, "{field} holds something that is no whole number"),
                Expected::Positive => write!(f, "{field} holds a negative number"),
                Expected::AtMost(most) => write!(f, "{field} holds a number above {most}"),
                Expected::List => write!(f, "{field} is no list of numbers"),
            },
            Self::Other => f.write_str("a field is given twice"),
            Self::TooManyBlocks => write!(f, "the request has more than {MOST_BLOCKS} blocks"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const GOOD: &str =
        r#"{"timestamp": 5, "input_length": 600, "output_length": 7, "hash_ids": [0, 18446744073709551615]}"#;

    fn parse(text: &str) -> Result<Vec<Record>, Fault> {
        records(text.as_bytes(), usize::MAX)
    }

    fn fault(text: &str) -> String {
        let fault = parse(text).unwrap_err();
        TraceError { file: "t.jsonl".into(), fault }.to_string()
    }

    #[test]
    fn reads_requests_in_order() {
        let expected =
            Record { timestamp: 5, input_length: 600, output_length: 7, hash_ids: vec![0, u64::MAX] };
        assert_eq!(parse(GOOD), Ok(vec![expected.clone()]));
        let more =
            format!("{GOOD}\r\n{}\n", GOOD.replace("\"timestamp\"", "\"model\": {\"x\": []}, \"timestamp\""));
        assert_eq!(parse(&more), Ok(vec![expected.clone(), expected]));
    }

    #[test]
    fn blank_lines_may_stand_at_the_end_only() {
        assert_eq!(parse(&format!("{GOOD}\n\n  \n")).unwrap().len(), 1);
        assert_eq!(
            fault(&format!("{GOOD}\n\n\n{GOOD}")),
            "t.jsonl, line 2: the line is blank; blank lines may stand at the end only"
        );
    }

    #[test]
    fn reads_no_further_than_it_is_asked_to() {
        let text = format!("{GOOD}\n{GOOD}\nnonsense\n");
        assert_eq!(records(text.as_bytes(), 2).unwrap().len(), 2);
        assert_eq!(records(text.as_bytes(), 3), Err(Fault::Line(3, LineFault::NotJson(2))));
    }

    #[test]
    fn a_fault_names_line_and_field() {
        let with = |from: &str, to: &str| format!("{GOOD}\n{}\n", GOOD.replace(from, to));
        let table = [
            (with("\"timestamp\": 5, ", ""), "the field timestamp is missing"),
            (with("\"hash_ids\"", "\"ids\""), "the field hash_ids is missing"),
            (with(": 5,", ": -5,"), "timestamp holds a negative number"),
            (with(": 5,", ": 5.5,"), "timestamp holds something that is no whole number"),
            (with("600", "4294967296"), "input_length holds a number above 4294967295"),
            (with("600", "\"600\""), "input_length holds something that is no whole number"),
            (with("7,", "null,"), "output_length holds something that is no whole number"),
            (with("]}", "]"), "the line ends in the middle of its JSON"),
            (with("[0", "[-1"), "hash_ids holds a negative number"),
            (with("[0", "[1e30"), "hash_ids holds a number above 18446744073709551615"),
            (with("1844", "91844"), "hash_ids holds a number above 18446744073709551615"),
            (with("[0, 18446744073709551615]", "3"), "hash_ids is no list of numbers"),
            (format!("{GOOD}\nhello\n"), "the line is not JSON from column 1 on"),
            (format!("{GOOD}\n[1]\n"), "the line is JSON, but no object with the fields of a request"),
            (with("\"output", "\"timestamp\": 6, \"output"), "a field is given twice"),
        ];
        for (text, message) in table {
            assert_eq!(fault(&text), format!("t.jsonl, line 2: {message}"), "{text}");
        }
    }

    #[test]
    fn a_request_has_a_million_blocks_at_most() {
        let text = |blocks: usize| {
            let ids = vec!["1"; blocks].join(",");
            format!(r#"{{"timestamp":0,"input_length":1,"output_length":1,"hash_ids":[{ids}]}}"#)
        };
        assert_eq!(parse(&text(MOST_BLOCKS)).unwrap()[0].hash_ids.len(), MOST_BLOCKS);
        let message = fault(&text(MOST_BLOCKS + 1));
        assert_eq!(message, "t.jsonl, line 1: the request has more than 1000000 blocks");
    }

    #[test]
    fn a_line_without_end_is_not_read_to_its_end() {
        let endless = BufReader::new(io::repeat(b'['));
        assert_eq!(records(endless, 1), Err(Fault::Line(1, LineFault::TooLong)));
    }

    #[test]
    fn a_file_that_is_empty_missing_or_no_file_is_named() {
        assert_eq!(fault(""), "the trace t.jsonl has no request");
        assert_eq!(fault("\n\n"), "the trace t.jsonl has no request");
        let error = read(Path::new("/nowhere/t.jsonl"), None).unwrap_err();
        assert_eq!(error.to_string(), "there is no trace /nowhere/t.jsonl");
        let error = read(Path::new("/"), None).unwrap_err();
        assert!(error.to_string().starts_with("cannot read the trace /: "), "{error}");
    }
}
