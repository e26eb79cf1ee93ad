//! The `gsan` program: command line, scenarios, and the report as text, JSON and SARIF.

pub mod args;
pub mod commands;
pub mod demo;
pub mod device;
pub mod element;
pub mod failure;
pub mod graph;
pub mod input;
pub mod interrupt;
pub mod names;
pub mod output;
pub mod progress;
pub mod ptx;
pub mod render;
pub mod scenario;
mod usage;

use args::{Cli, Command};
use clap::Parser;

/// The program: parses the command line, does it, returns the exit code.
pub fn main() -> u8 {
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(e) => {
            let first = std::env::args_os()
                .nth(1)
                .map(|a| a.to_string_lossy().into_owned());
            if let Some(usage) = usage::problem(&e, first.as_deref()) {
                output::error(&usage.message);
                output::hint(&usage.hint);
                return failure::exit::INPUT;
            }
            // Help and version are no errors, unless nobody got to see them.
            let shown = output::written(e.print());
            return match shown {
                _ if e.use_stderr() => failure::exit::INPUT,
                Ok(()) => failure::exit::CLEAN,
                Err(failure) => report(&failure),
            };
        }
    };
    let done = match &cli.command {
        Command::Demo(args) => commands::demo::run(args),
        Command::Run(args) => commands::run::run(args),
        Command::Inspect(args) => commands::inspect::run(args),
        Command::Instrument(args) => commands::instrument::run(args),
        Command::Report(args) => commands::report::run(args),
        Command::Doctor(args) => commands::doctor::run(args),
        Command::Graph(args) => graph::run(args),
    };
    done.unwrap_or_else(|failure| report(&failure))
}

fn report(failure: &failure::Failure) -> u8 {
    output::failure(failure);
    failure.code
}
