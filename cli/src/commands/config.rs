//! `springtide config`.

use serde::Serialize;

use crate::args;
use crate::config::{Setting, Settings, Source};
use crate::exit::Failure;
use crate::output::{Align, Out, Report, Table};

#[derive(Serialize)]
#[serde(transparent)]
struct InForce(Vec<Setting>);

impl Report for InForce {
    fn tables(&self) -> Vec<Table> {
        let columns = ["setting", "value", "from", "environment variable"];
        let mut table = Table::new(&columns.map(|column| (column, Align::Left)));
        for Setting { key, value, source, variable } in &self.0 {
            let value = value.clone().unwrap_or_else(|| "-".to_owned());
            let source = if *source == Source::Default { String::new() } else { source.to_string() };
            table.row([key.clone(), value, source, variable.clone()]);
        }
        vec![table]
    }
}

/// Prints every setting in force.
pub fn run(args: &args::Config, settings: &Settings) -> Result<(), Failure> {
    Out::stdout(args.json.format()).report(&InForce(settings.in_force()))
}
