//! `cargo xtask sim`: the cluster simulator, built for speed.

use std::process::Command;

/// Run the cluster simulator: see docs/simulation.md. The last line counts seeds, events and violations.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// What the simulator is told, as `--seeds 1..=N`, `--seed S --trace`, `--seed S --shrink`, `--events M`, `--help`.
    #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
    rest: Vec<String>,
}

/// Builds and runs it; says whether it was quiet.
pub(crate) fn run(args: &Args) -> Result<bool, String> {
    let mut command = Command::new(env!("CARGO"));
    command.current_dir(crate::root());
    command.args(["run", "--quiet", "--release", "--package", "springtide-tests-sim", "--"]);
    let status = command.args(&args.rest).status();
    status.map(|status| status.success()).map_err(|error| format!("cargo cannot be run: {error}"))
}
