//! What goes to standard output: tables for people, JSON for programs, bytes.

use std::io::{self, IsTerminal, Write};

use anstyle::{AnsiColor, Style};
use comfy_table::{CellAlignment, ContentArrangement, presets};
use serde::Serialize;

use crate::exit::{Exit, Failure};

/// How figures are printed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Format {
    /// A table, coloured on a terminal.
    Table,
    /// JSON, without colour.
    Json,
}

/// Whether escape sequences for colour are written.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Colour {
    /// They are.
    Yes,
    /// They are not.
    No,
}

impl Colour {
    /// Colour on a terminal, unless `NO_COLOR` is set to anything (<https://no-color.org>).
    pub fn of(stream: &impl IsTerminal) -> Self {
        let refused = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
        if stream.is_terminal() && !refused { Self::Yes } else { Self::No }
    }
}

/// Figures that can be printed.
pub trait Report: Serialize {
    /// The figures as tables.
    fn tables(&self) -> Vec<Table>;
}

/// Which way the cells of a column lean.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Align {
    /// Text.
    Left,
    /// Numbers.
    Right,
}

/// A table with a head, one alignment a column, and lines below it.
#[derive(Clone, Debug, Default)]
pub struct Table {
    columns: Vec<(&'static str, Align)>,
    rows: Vec<Vec<String>>,
    notes: Vec<(Note, String)>,
}

/// How good the news of a line below a table are.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Note {
    /// As it should be.
    Good,
    /// Something to look at.
    Bad,
    /// Neither.
    Plain,
}

impl Table {
    /// A table with these columns and no rows.
    pub fn new(columns: &[(&'static str, Align)]) -> Self {
        Self { columns: columns.to_vec(), ..Self::default() }
    }

    /// Adds a row; it has a cell for every column.
    pub fn row<const N: usize>(&mut self, cells: [String; N]) {
        debug_assert_eq!(N, self.columns.len(), "cells for {:?}", self.columns);
        self.rows.push(cells.into());
    }

    /// Adds a line below the table.
    pub fn note(&mut self, note: Note, text: impl Into<String>) {
        self.notes.push((note, text.into()));
    }

    /// The table as text: the head in bold and the notes in colour if `colour` says so.
    pub fn render(&self, colour: Colour) -> String {
        let mut table = comfy_table::Table::new();
        table.load_preset(presets::NOTHING).set_content_arrangement(ContentArrangement::Disabled);
        table.set_header(self.columns.iter().map(|(name, _)| *name));
        table.add_rows(&self.rows);
        for (column, (_, align)) in table.column_iter_mut().zip(&self.columns) {
            column.set_padding((0, 2));
            column.set_cell_alignment(match align {
                Align::Left => CellAlignment::Left,
                Align::Right => CellAlignment::Right,
            });
        }
        let mut out = String::new();
        let text = table.to_string();
        let lines = text.lines().map(str::trim_end).filter(|_| !self.columns.is_empty());
        for (number, line) in lines.enumerate() {
            let head = if number == 0 { Style::new().bold() } else { Style::new() };
            push(&mut out, line, head, colour);
        }
        for (note, line) in &self.notes {
            let style = match note {
                Note::Good => AnsiColor::Green.on_default(),
                Note::Bad => AnsiColor::Red.on_default().bold(),
                Note::Plain => Style::new(),
            };
            push(&mut out, line, style, colour);
        }
        out
    }
}

fn push(out: &mut String, line: &str, style: Style, colour: Colour) {
    match colour {
        Colour::Yes => out.push_str(&format!("{style}{line}{style:#}\n")),
        Colour::No => out.push_str(&format!("{line}\n")),
    }
}

/// Standard output, or what stands in for it in tests. A reader that went away ends the command quietly.
pub struct Out<W> {
    to: W,
    format: Format,
    colour: Colour,
}

impl Out<io::StdoutLock<'static>> {
    /// Standard output, held until this is dropped.
    pub fn stdout(format: Format) -> Self {
        let to = io::stdout().lock();
        let colour = Colour::of(&to);
        Self { to, format, colour }
    }
}

impl<W: Write> Out<W> {
    /// Writes to `to`.
    pub const fn new(to: W, format: Format, colour: Colour) -> Self {
        Self { to, format, colour }
    }

    /// How figures are printed here.
    pub const fn format(&self) -> Format {
        self.format
    }

    /// Prints figures.
    pub fn report(&mut self, report: &impl Report) -> Result<(), Failure> {
        match self.format {
            Format::Json => self.json(report),
            Format::Table => {
                let tables: Vec<_> = report.tables().iter().map(|table| table.render(self.colour)).collect();
                self.bytes(tables.join("\n").as_bytes())
            }
        }
    }

    /// Prints `value` as JSON, whatever the format.
    pub fn json(&mut self, value: &impl Serialize) -> Result<(), Failure> {
        let text = serde_json::to_string_pretty(value);
        let text = text.map_err(|error| Failure::new(format_args!("cannot write JSON: {error}")))?;
        self.line(&text)
    }

    /// Prints a line.
    pub fn line(&mut self, text: &str) -> Result<(), Failure> {
        self.bytes(format!("{text}\n").as_bytes())
    }

    /// Writes bytes as they are.
    pub fn bytes(&mut self, bytes: &[u8]) -> Result<(), Failure> {
        self.to.write_all(bytes).and_then(|()| self.to.flush()).map_err(|error| match error.kind() {
            io::ErrorKind::BrokenPipe => Failure::silent(Exit::Done),
            _ => Failure::new(format_args!("cannot write to standard output: {error}")),
        })
    }
}

/// A key as text: what is not printable ASCII is escaped.
pub fn key(bytes: &[u8]) -> String {
    bytes.escape_ascii().to_string()
}

/// A number with thin groups of three, for tables.
pub fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let first = digits.len() % 3;
    let (head, rest) = digits.split_at(first);
    let groups = (0..rest.len()).step_by(3).map(|at| &rest[at..at + 3]);
    let head = (!head.is_empty()).then_some(head);
    head.into_iter().chain(groups).collect::<Vec<_>>().join(",")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample() -> Table {
        let mut table = Table::new(&[("key", Align::Left), ("bytes", Align::Right)]);
        table.row(["a".to_owned(), "1,024".to_owned()]);
        table.row(["longer".to_owned(), "7".to_owned()]);
        table.note(Note::Bad, "1 verification error");
        table
    }

    #[test]
    fn numbers_lean_right_and_text_left() {
        assert_eq!(
            sample().render(Colour::No),
            "key     bytes\na       1,024\nlonger      7\n1 verification error\n"
        );
    }

    #[test]
    fn colour_only_where_asked_for() {
        let coloured = sample().render(Colour::Yes);
        assert!(coloured.starts_with("\u{1b}[1m") && coloured.contains("\u{1b}[31m"), "{coloured:?}");
        assert!(!sample().render(Colour::No).contains('\u{1b}'));
    }

    #[derive(Serialize)]
    struct Figures {
        count: u64,
    }

    impl Report for Figures {
        fn tables(&self) -> Vec<Table> {
            vec![sample(), sample()]
        }
    }

    #[test]
    fn the_format_decides() {
        let print = |format| {
            let mut bytes = Vec::new();
            Out::new(&mut bytes, format, Colour::No).report(&Figures { count: 3 }).unwrap();
            String::from_utf8(bytes).unwrap()
        };
        assert_eq!(print(Format::Json), "{\n  \"count\": 3\n}\n");
        assert_eq!(print(Format::Table).matches("longer").count(), 2);
    }

    struct Closed;

    impl Write for Closed {
        fn write(&mut self, _: &[u8]) -> io::Result<usize> {
            Err(io::ErrorKind::BrokenPipe.into())
        }
        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn a_reader_that_left_is_no_error() {
        let ended = Out::new(Closed, Format::Table, Colour::No).line("x").unwrap_err();
        assert_eq!((ended.exit(), ended.to_string().as_str()), (Exit::Done, ""));
    }

    #[test]
    fn groups_of_three() {
        let table = [(0, "0"), (999, "999"), (1_000, "1,000"), (1_234_567, "1,234,567")];
        for (number, text) in table {
            assert_eq!(grouped(number), text);
        }
        assert_eq!(key(b"a\x00\"\xff"), "a\\x00\\\"\\xff");
    }
}
