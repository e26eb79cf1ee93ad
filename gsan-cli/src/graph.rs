//! `gsan graph`: thin, all of it is in ge-conflict.

use crate::failure::Result;
use crate::output;
use clap::{Args, Subcommand, ValueEnum};
use ge_conflict::cli::{self, CheckOptions, LintOptions, Outcome, OutputFormat, RunTimeOptions};
use ge_conflict::io::ReadError;
use std::path::PathBuf;

/// `gsan graph`
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  gsan graph check model.json --write fixed.json --dot conflicts.dot
  gsan graph check ge_proto_00000012_graph_1.txt --stage layout --format json
  gsan graph check model.json --explain allreduce.in.0
  gsan graph lint model.json

Exit codes: 0 nothing to do, 1 conflicts or warnings, 2 an error or bad input. Nothing is changed without --write.")]
pub struct GraphArgs {
    /// What to do.
    #[command(subcommand)]
    pub command: GraphCommand,
}

/// The subcommands of `gsan graph`.
#[derive(Debug, Subcommand)]
pub enum GraphCommand {
    /// Find memory conflicts and repair them.
    Check(CheckArgs),
    /// Warn of reads and writes that no edge puts in order.
    Lint(LintArgs),
    /// Run scripts of what streams do with memory blocks.
    RunTime(RunTimeArgs),
}

/// The form of the result.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
pub enum GraphFormat {
    /// In words.
    #[default]
    Text,
    /// As JSON.
    Json,
}

/// `gsan graph check`
#[derive(Debug, Args)]
pub struct CheckArgs {
    /// A graph: JSON, GE's text dump, or .onnx.
    #[arg(value_name = "FILE")]
    pub file: PathBuf,
    /// One stage (pass) instead of all: hccl, hccl-continuous, subgraph, inplace-support, atomic, addr, mark-same-addr, offset,
    /// rw, layout, inplace, lint; --help says what each does.
    #[arg(long, value_name = "STAGE", long_help = stages())]
    pub stage: Option<String>,
    /// Hand the stage this graph alone.
    #[arg(long, value_name = "NAME")]
    pub graph: Option<String>,
    /// The form of the result.
    #[arg(long, value_enum, default_value_t)]
    pub format: GraphFormat,
    /// Write the repaired graph.
    #[arg(long, value_name = "FIXED.json")]
    pub write: Option<PathBuf>,
    /// Write a picture for Graphviz.
    #[arg(long, value_name = "OUT.dot")]
    pub dot: Option<PathBuf>,
    /// Explain one input or output instead, NODE.in.N or NODE.out.N: what is the same memory, which rules apply, what is done.
    #[arg(long, value_name = "NODE.in.N")]
    pub explain: Option<String>,
    /// Attributes for an .onnx file (JSON).
    #[arg(long, value_name = "FILE.json")]
    pub attrs: Option<PathBuf>,
}

/// `gsan graph lint`
#[derive(Debug, Args)]
pub struct LintArgs {
    /// A graph: JSON, GE's text dump, or .onnx.
    #[arg(value_name = "FILE")]
    pub file: PathBuf,
    /// The form of the result.
    #[arg(long, value_enum, default_value_t)]
    pub format: GraphFormat,
    /// Attributes for an .onnx file (JSON).
    #[arg(long, value_name = "FILE.json")]
    pub attrs: Option<PathBuf>,
}

/// `gsan graph run-time`
#[derive(Debug, Args)]
pub struct RunTimeArgs {
    /// Scripts.
    #[arg(value_name = "FILE", required = true)]
    pub files: Vec<PathBuf>,
    /// The form of the result.
    #[arg(long, value_enum, default_value_t)]
    pub format: GraphFormat,
}

/// What the stages are, a line each.
fn stages() -> String {
    let mut text = String::from("One stage (pass) instead of all of them:");
    for s in ge_conflict::Stage::ALL {
        text += &format!("\n- {}: {}", s.name(), s.words());
    }
    text
}

fn format(f: GraphFormat) -> OutputFormat {
    match f {
        GraphFormat::Text => OutputFormat::Text,
        GraphFormat::Json => OutputFormat::Json,
    }
}

/// The line of a text file that can't be read, with a caret.
fn excerpt_of_file(place: &ReadError) -> String {
    let text = std::fs::read_to_string(&place.file).unwrap_or_default();
    let text = text.trim_start_matches('\u{feff}');
    let line = text.lines().nth(place.line.saturating_sub(1));
    let before = line.unwrap_or_default().chars().take(place.column - 1);
    let column = before.map(char::len_utf8).sum::<usize>() + 1;
    gsan_ptx::excerpt::excerpt(text, place.line, column)
}

/// Does it and returns the exit code.
pub fn run(args: &GraphArgs) -> Result<u8> {
    let Outcome {
        stdout,
        stderr,
        exit,
        unreadable,
    } = match &args.command {
        GraphCommand::Check(a) => cli::check(&CheckOptions {
            file: a.file.clone(),
            attrs: a.attrs.clone(),
            stage: a.stage.clone(),
            graph: a.graph.clone(),
            format: format(a.format),
            write: a.write.clone(),
            dot: a.dot.clone(),
            explain: a.explain.clone(),
        }),
        GraphCommand::Lint(a) => cli::lint(&LintOptions {
            file: a.file.clone(),
            attrs: a.attrs.clone(),
            format: format(a.format),
        }),
        GraphCommand::RunTime(a) => cli::run_time(&RunTimeOptions {
            files: a.files.clone(),
            format: format(a.format),
        }),
    };
    output::eprint(&stderr);
    if let Some(place) = unreadable {
        output::eprint(&excerpt_of_file(&place));
    }
    output::raw(&stdout)?;
    Ok(exit)
}
