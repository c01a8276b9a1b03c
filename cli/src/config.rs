//! Settings: the file, then the environment, then flags; each wins over those before it.
//!
//! The file's values become the defaults of the command line's options, and every option is given the name of an
//! environment variable. So there is one table of settings, that of [`crate::args`], and one place where values are
//! checked. A key that no option stands for is an error.

use core::fmt;
use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};

use clap::error::{ContextKind, ContextValue};
use clap::{Arg, Command};
use serde::Serialize;
use toml::{Table, Value};

use crate::exit::Failure;

/// The section for every command that talks to a running pool.
const ALL: &str = "all";

/// Commands that [`ALL`] does not reach: a pool that they use is filled with their blocks.
const NOT_ALL: &[&str] = &["replay", "bench"];

/// Options that are no settings.
const NO_SETTINGS: &[&str] = &["config", "help", "version"];

/// A command line that knows the environment and the file, and what they set.
pub struct Settings {
    /// Parses flags over both.
    pub command: Command,
    file: Option<PathBuf>,
    from_file: BTreeMap<Name, Vec<String>>,
}

/// A setting: the commands that lead to it, and its option.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
struct Name {
    section: Vec<String>,
    key: String,
}

/// A setting in force.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct Setting {
    /// The key in the file.
    pub key: String,
    /// Its value; `None` if it has none.
    pub value: Option<String>,
    /// Where the value comes from.
    pub source: Source,
    /// The environment variable that sets it.
    pub variable: String,
}

/// Where a value comes from.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Source {
    /// It is built in, or there is none.
    Default,
    /// The file.
    File,
    /// The environment.
    Environment,
}

impl Settings {
    /// Prepares `command` for the file that `arguments` or `SPRINGTIDE_CONFIG` name, if there is one.
    pub fn load(command: Command, arguments: &[OsString]) -> Result<Self, Failure> {
        match file_name(arguments).or_else(|| std::env::var_os("SPRINGTIDE_CONFIG").map(PathBuf::from)) {
            None => Self::new(command, None, &Table::new()),
            Some(file) => {
                let text = std::fs::read_to_string(&file).map_err(|error| {
                    Failure::usage(format_args!("cannot read the settings in {}: {error}", file.display()))
                })?;
                Self::from_text(command, file, &text)
            }
        }
    }

    /// The settings of `command` with those of `text`, which is what stands in `file`.
    pub fn from_text(command: Command, file: PathBuf, text: &str) -> Result<Self, Failure> {
        let table = parse(&file, text)?;
        Self::new(command, Some(file), &table)
    }

    fn new(command: Command, file: Option<PathBuf>, table: &Table) -> Result<Self, Failure> {
        let mut settings = Self { command: named(command, "SPRINGTIDE"), file, from_file: BTreeMap::new() };
        if let Some(all) = table.get(ALL) {
            settings.apply_to_all(all)?;
        }
        for (key, value) in table.iter().filter(|(key, _)| *key != ALL) {
            settings.apply(&mut Vec::new(), key, value)?;
        }
        for (Name { section, key }, values) in &settings.from_file {
            let section: Vec<_> = section.iter().map(String::as_str).collect();
            settings.command = with_default(settings.command, &section, key, values);
        }
        Ok(settings)
    }

    /// Notes the value of `[all]` for every command that has the option.
    fn apply_to_all(&mut self, all: &Value) -> Result<(), Failure> {
        let Value::Table(all) = all else {
            return Err(self.fault(ALL, "is a section; write [all] above its keys"));
        };
        let commands: Vec<_> =
            self.command.get_subcommands().map(|command| command.get_name().to_owned()).collect();
        for (key, value) in all {
            let mut known = false;
            for name in commands.iter().filter(|name| !NOT_ALL.contains(&name.as_str())) {
                let section = vec![name.clone()];
                if self.option(&section, key).is_some() {
                    known = true;
                    let values = self.values(&format!("{ALL}.{key}"), value)?;
                    self.from_file.insert(Name { section, key: key.clone() }, values);
                }
            }
            if !known {
                return Err(self.fault(
                    &format!("{ALL}.{key}"),
                    "is an option of no command that talks to a running pool",
                ));
            }
        }
        Ok(())
    }

    /// Notes `key`, found in `section`: an option's value, or the section of a command.
    fn apply(&mut self, section: &mut Vec<String>, key: &str, value: &Value) -> Result<(), Failure> {
        let place = dotted(section, key);
        if let (Value::Table(inner), true) = (value, self.command_at(section).find_subcommand(key).is_some())
        {
            section.push(key.to_owned());
            let applied = inner.iter().try_for_each(|(key, value)| self.apply(section, key, value));
            section.pop();
            return applied;
        }
        if self.option(section, key).is_none() {
            let known = self.known(section);
            return Err(self.fault(&place, &format!("is no setting; settings here are {known}")));
        }
        let values = self.values(&place, value)?;
        self.from_file.insert(Name { section: section.clone(), key: key.to_owned() }, values);
        Ok(())
    }

    fn command_at(&self, section: &[String]) -> &Command {
        section.iter().fold(&self.command, |command, name| command.find_subcommand(name).unwrap_or(command))
    }

    fn option(&self, section: &[String], key: &str) -> Option<&Arg> {
        options(self.command_at(section)).find(|option| option.get_long() == Some(key))
    }

    fn known(&self, section: &[String]) -> String {
        let command = self.command_at(section);
        let keys = options(command).filter_map(Arg::get_long).map(str::to_owned);
        let sections =
            command.get_subcommands().map(|command| format!("[{}]", dotted(section, command.get_name())));
        keys.chain(sections).collect::<Vec<_>>().join(", ")
    }

    /// The text of a value, as it would stand behind its flag.
    fn values(&self, place: &str, value: &Value) -> Result<Vec<String>, Failure> {
        match value {
            Value::String(text) => Ok(vec![text.clone()]),
            Value::Integer(number) => Ok(vec![number.to_string()]),
            Value::Float(number) => Ok(vec![number.to_string()]),
            Value::Boolean(yes) => Ok(vec![yes.to_string()]),
            Value::Array(items) if !items.iter().any(|item| item.is_array() || item.is_table()) => items
                .iter()
                .map(|item| self.values(place, item))
                .collect::<Result<Vec<_>, _>>()
                .map(|lists| lists.concat()),
            _ => Err(self.fault(place, "is neither a text, a number, true or false, nor a list of such")),
        }
    }

    fn fault(&self, place: &str, what: &str) -> Failure {
        let file = self.file.as_deref().unwrap_or_else(|| Path::new("the settings"));
        Failure::usage(format_args!("{}: {place} {what}", file.display()))
    }

    /// Every setting in force, but for what flags say.
    pub fn in_force(&self) -> Vec<Setting> {
        let mut list = Vec::new();
        self.collect(&self.command, &mut Vec::new(), &mut list);
        list
    }

    fn collect(&self, command: &Command, section: &mut Vec<String>, list: &mut Vec<Setting>) {
        for option in options(command) {
            let key = option.get_long().unwrap_or_default().to_owned();
            let variable = option.get_env().unwrap_or_default();
            let place = dotted(section, &key);
            let join = |values: Vec<String>| (!values.is_empty()).then(|| values.join(","));
            let text = |value: &OsStr| value.to_string_lossy().into_owned();
            let (value, source) = if let Some(value) = std::env::var_os(variable) {
                (Some(text(&value)), Source::Environment)
            } else if let Some(values) = self.from_file.get(&Name { section: section.clone(), key }) {
                (join(values.clone()), Source::File)
            } else {
                (join(option.get_default_values().iter().map(|value| text(value)).collect()), Source::Default)
            };
            list.push(Setting { key: place, value, source, variable: text(variable) });
        }
        for inner in command.get_subcommands().filter(|inner| inner.get_name() != "help") {
            section.push(inner.get_name().to_owned());
            self.collect(inner, section, list);
            section.pop();
        }
    }

    /// What to add to `error` when the value that it complains of was not a flag's: where it comes from.
    pub fn origin(&self, error: &clap::Error, arguments: &[OsString]) -> Option<String> {
        let (Some(ContextValue::String(option)), Some(ContextValue::String(value))) =
            (error.get(ContextKind::InvalidArg), error.get(ContextKind::InvalidValue))
        else {
            return None;
        };
        let key = option.split([' ', '=']).next()?.strip_prefix("--")?;
        let flag = format!("--{key}");
        if arguments.iter().any(|argument| argument.to_string_lossy().split('=').next() == Some(&flag)) {
            return None;
        }
        let ends = |setting: &&Setting| {
            setting.key.rsplit('.').next() == Some(key)
                && setting.value.as_ref().is_some_and(|v| v.contains(value))
        };
        self.in_force().iter().find(ends).and_then(|setting| match setting.source {
            Source::Default => None,
            Source::Environment => {
                Some(format!("the value comes from {} in the environment", setting.variable))
            }
            Source::File => {
                let file = self.file.as_deref().unwrap_or_else(|| Path::new("the settings"));
                Some(format!("the value comes from {} in {}", setting.key, file.display()))
            }
        })
    }
}

impl fmt::Display for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Default => "default",
            Self::File => "file",
            Self::Environment => "environment",
        })
    }
}

/// The options of `command` that are settings.
fn options(command: &Command) -> impl Iterator<Item = &Arg> {
    let setting = |option: &&Arg| {
        !option.is_hide_set() && option.get_long().is_some_and(|long| !NO_SETTINGS.contains(&long))
    };
    command.get_arguments().filter(setting)
}

fn dotted(section: &[String], key: &str) -> String {
    section.iter().map(String::as_str).chain([key]).collect::<Vec<_>>().join(".")
}

/// Gives every option of `command` and of those below it an environment variable, unless it has one.
fn named(command: Command, prefix: &str) -> Command {
    let ids: Vec<_> = options(&command)
        .filter(|option| option.get_env().is_none())
        .map(|option| option.get_id().clone())
        .collect();
    let command = ids.into_iter().fold(command, |command, id| {
        let name = format!("{prefix}_{}", id.as_str().to_ascii_uppercase().replace('-', "_"));
        command.mut_arg(id, |option| option.env(name).hide_env(true))
    });
    command.mut_subcommands(|inner| {
        let prefix = format!("{prefix}_{}", inner.get_name().to_ascii_uppercase());
        named(inner, &prefix)
    })
}

fn with_default(command: Command, section: &[&str], key: &str, values: &[String]) -> Command {
    if let [first, rest @ ..] = section {
        return command.mut_subcommand(*first, |inner| with_default(inner, rest, key, values));
    }
    let id =
        options(&command).find(|option| option.get_long() == Some(key)).map(|option| option.get_id().clone());
    match id {
        Some(id) => command.mut_arg(id, |option| option.required(false).default_values(values.to_vec())),
        None => command,
    }
}

/// What stands behind `--config`. Looked for by hand, because the file decides how the rest is parsed.
fn file_name(arguments: &[OsString]) -> Option<PathBuf> {
    let mut arguments = arguments.iter().take_while(|argument| *argument != "--");
    while let Some(argument) = arguments.next() {
        if argument == "--config" {
            return arguments.next().map(PathBuf::from);
        }
        if let Some(name) = argument.to_str().and_then(|argument| argument.strip_prefix("--config=")) {
            return Some(PathBuf::from(name));
        }
    }
    None
}

fn parse(file: &Path, text: &str) -> Result<Table, Failure> {
    text.parse().map_err(|error: toml::de::Error| {
        let line =
            error.span().map_or(1, |span| text[..span.start.min(text.len())].matches('\n').count() + 1);
        Failure::usage(format_args!("{}, line {line}: {}", file.display(), error.message()))
    })
}

#[cfg(test)]
mod tests;
