//! The subcommands of `gsan graph`, from parsed options to what is printed and the exit code.

use crate::ctx::Ctx;
use crate::io::{self, Loaded};
use crate::ir::GraphId;
use crate::passes::{self, Stage};
use crate::report::{Failure, GraphSize, Report};
use crate::{dot, explain, text};
use std::io::Read;
use std::path::{Path, PathBuf};

/// What a subcommand printed and how it ended.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Outcome {
    /// For standard output.
    pub stdout: String,
    /// For standard error.
    pub stderr: String,
    /// The exit code.
    pub exit: u8,
    /// The place of a file that can't be read, which `stderr` names last.
    pub unreadable: Option<io::ReadError>,
}

/// How results are printed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum OutputFormat {
    /// In words.
    #[default]
    Text,
    /// As JSON.
    Json,
}

/// Options of `gsan graph check`.
#[derive(Clone, Debug, Default)]
pub struct CheckOptions {
    /// The graph's file.
    pub file: PathBuf,
    /// Attributes for an `.onnx` file.
    pub attrs: Option<PathBuf>,
    /// The stage by name; `None`: all.
    pub stage: Option<String>,
    /// The one graph to hand to the stage.
    pub graph: Option<String>,
    /// How to print.
    pub format: OutputFormat,
    /// Where to write the repaired module.
    pub write: Option<PathBuf>,
    /// Where to write a picture.
    pub dot: Option<PathBuf>,
    /// An anchor to explain (`NODE.in.N` or `NODE.out.N`) instead of running the stage.
    pub explain: Option<String>,
}

/// Options of `gsan graph lint`.
#[derive(Clone, Debug, Default)]
pub struct LintOptions {
    /// The graph's file.
    pub file: PathBuf,
    /// Attributes for an `.onnx` file.
    pub attrs: Option<PathBuf>,
    /// How to print.
    pub format: OutputFormat,
}

/// Checks a graph for conflicts and repairs them.
pub fn check(o: &CheckOptions) -> Outcome {
    let stage = match o.stage.as_deref().map(|s| Stage::from_name(s).ok_or(s)) {
        None => Stage::All,
        Some(Ok(s)) => s,
        Some(Err(s)) => {
            let names: Vec<&str> = Stage::ALL.iter().map(|s| s.name()).collect();
            let why = format!(
                "there is no stage {s:?}; the stages are {}",
                names.join(", ")
            );
            return bad(why, o.format);
        }
    };
    let loaded = match load(&o.file, o.attrs.as_deref()) {
        Ok(l) => l,
        Err(e) => return unreadable(e, o.format),
    };
    let mut out = Outcome {
        stderr: notes(&loaded),
        ..Outcome::default()
    };
    let only = match o
        .graph
        .as_deref()
        .map(|name| loaded.module.find_graph(name).ok_or(name))
    {
        None => None,
        Some(Ok(g)) => Some(g),
        Some(Err(name)) => {
            let why = format!("{} has no graph {name:?}", o.file.display());
            refuse(&mut out, why, o.format);
            return out;
        }
    };
    if let Some(anchor) = &o.explain {
        if !loaded.defects.is_empty() {
            let report = Report {
                errors: failures(loaded.defects),
                ..Report::default()
            };
            print(&mut out, &report, o.format, text::View::default());
            return out;
        }
        return explain_anchor(out, loaded, (stage, only), anchor, o.format);
    }
    let (report, module) = run(loaded, stage, only);
    let fixed = o.write.as_ref().filter(|_| report.exit_code() != 2);
    let mut writes = Vec::new();
    if let Some(path) = fixed {
        writes.push((path, io::to_json(&module)));
    }
    if let Some(path) = &o.dot {
        writes.push((path, dot::picture(&module, &report)));
    }
    let mut lost = false;
    for (path, content) in writes {
        if let Err(e) = std::fs::write(path, content) {
            out.stderr += &format!("error: {}: can't be written: {e}\n", path.display());
            lost = true;
        }
    }
    let written = fixed.filter(|_| !lost).map(|p| p.display().to_string());
    let view = text::View {
        written: written.as_deref(),
        lint: stage == Stage::Lint,
    };
    print(&mut out, &report, o.format, view);
    if lost {
        out.exit = 2;
    }
    out
}

/// Looks for unordered reads and writes.
pub fn lint(o: &LintOptions) -> Outcome {
    let loaded = match load(&o.file, o.attrs.as_deref()) {
        Ok(l) => l,
        Err(e) => return unreadable(e, o.format),
    };
    let mut out = Outcome {
        stderr: notes(&loaded),
        ..Outcome::default()
    };
    let (report, _) = run(loaded, Stage::Lint, None);
    let view = text::View {
        written: None,
        lint: true,
    };
    print(&mut out, &report, o.format, view);
    out
}

/// Runs a stage on what was loaded; graphs with defects are not worked on.
pub fn run(loaded: Loaded, stage: Stage, only: Option<GraphId>) -> (Report, crate::ir::Module) {
    let Loaded {
        mut module,
        defects,
        ..
    } = loaded;
    // A parent index that is negative is the read-write check's own affair: it finds the graph wrong, not the file.
    let tolerated = |d: &crate::ir::Defect| {
        stage == Stage::Rw && d.code == crate::ir::DefectCode::BadParentIndex
    };
    let defects: Vec<_> = defects.into_iter().filter(|d| !tolerated(d)).collect();
    let mut report = if defects.is_empty() {
        let mut ctx = Ctx::new(&mut module, only);
        passes::run(&mut ctx, stage);
        ctx.report
    } else {
        Report {
            errors: failures(defects),
            ..Report::default()
        }
    };
    report.graphs = module
        .graphs
        .iter()
        .map(|g| GraphSize {
            name: g.name.clone(),
            nodes: g.len(),
        })
        .collect();
    (report, module)
}

fn failures(defects: Vec<crate::ir::Defect>) -> Vec<Failure> {
    let failure = |d: crate::ir::Defect| Failure {
        code: d.code.as_str(),
        pass: None,
        graph: Some(d.graph),
        node: d.node,
        why: d.why,
    };
    defects.into_iter().map(failure).collect()
}

/// Why there is nothing to work on.
enum NotLoaded {
    /// The file system refused.
    Unopened(String),
    /// A place in the file is not as it should be.
    Unread(io::ReadError),
}

impl From<io::ReadError> for NotLoaded {
    fn from(e: io::ReadError) -> NotLoaded {
        NotLoaded::Unread(e)
    }
}

/// A file's bytes. No graph is as large as the limit: devices that never end must not fill the memory.
fn read_file(file: &Path) -> Result<Vec<u8>, String> {
    const MOST: u64 = 4 << 30;
    let mut bytes = Vec::new();
    std::fs::File::open(file)
        .and_then(|f| f.take(MOST + 1).read_to_end(&mut bytes))
        .map_err(|e| format!("{}: can't be read: {e}", file.display()))?;
    if bytes.len() as u64 > MOST {
        return Err(format!(
            "{}: larger than {} GiB",
            file.display(),
            MOST >> 30
        ));
    }
    Ok(bytes)
}

fn load(file: &Path, attrs: Option<&Path>) -> Result<Loaded, NotLoaded> {
    let bytes = |p: &Path| read_file(p).map_err(NotLoaded::Unopened);
    let content = bytes(file)?;
    let side = match attrs {
        None => None,
        Some(p) => Some((p, bytes(p)?)),
    };
    let side_name = side.as_ref().map(|(p, _)| p.display().to_string());
    let side = side
        .as_ref()
        .zip(side_name.as_deref())
        .map(|((_, c), n)| (n, c.as_slice()));
    Ok(io::read(&file.display().to_string(), &content, side)?)
}

fn notes(loaded: &Loaded) -> String {
    const SHOWN: usize = 20;
    let mut s: String = loaded
        .notes
        .iter()
        .take(SHOWN)
        .map(|n| format!("note: {n}\n"))
        .collect();
    if loaded.notes.len() > SHOWN {
        s += &format!(
            "note: … and {} more of the kind\n",
            loaded.notes.len() - SHOWN
        );
    }
    s
}

/// Input that can't be worked on; in the JSON form a result that says so stands on standard output as well.
fn bad(why: String, format: OutputFormat) -> Outcome {
    let mut out = Outcome::default();
    refuse(&mut out, why, format);
    out
}

fn unreadable(why: NotLoaded, format: OutputFormat) -> Outcome {
    match why {
        NotLoaded::Unopened(why) => bad(why, format),
        NotLoaded::Unread(e) => Outcome {
            unreadable: Some(e.clone()),
            ..bad(e.to_string(), format)
        },
    }
}

fn refuse(out: &mut Outcome, why: String, format: OutputFormat) {
    out.stderr += &format!("error: {why}\n");
    out.exit = 2;
    if format == OutputFormat::Json {
        let mut report = Report::default();
        report.errors.push(Failure {
            code: "BAD_INPUT",
            pass: None,
            graph: None,
            node: None,
            why,
        });
        out.stdout += &to_json(&report);
    }
}

fn print(out: &mut Outcome, report: &Report, format: OutputFormat, view: text::View<'_>) {
    out.exit = report.exit_code();
    out.stdout += &match format {
        OutputFormat::Text => text::report(report, view),
        OutputFormat::Json => to_json(report),
    };
}

/// A result as JSON text.
pub fn to_json(value: &impl serde::Serialize) -> String {
    match serde_json::to_string_pretty(value) {
        Ok(s) => s + "\n",
        Err(e) => format!(
            "{{ \"errors\": [ {{ \"code\": \"INTERNAL_ERROR\", \"why\": {:?} }} ] }}\n",
            e.to_string()
        ),
    }
}

fn explain_anchor(
    mut out: Outcome,
    loaded: Loaded,
    (stage, only): (Stage, Option<GraphId>),
    anchor: &str,
    format: OutputFormat,
) -> Outcome {
    let before = loaded.module.clone();
    let explained = explain::anchor(&before, only, anchor, || run(loaded, stage, only).0);
    match explained {
        Ok(e) => {
            out.stdout = match format {
                OutputFormat::Text => e.to_string(),
                OutputFormat::Json => to_json(&e),
            };
        }
        Err(why) => {
            refuse(&mut out, why, format);
        }
    }
    out
}

/// Options of `gsan graph run-time`.
#[derive(Clone, Debug, Default)]
pub struct RunTimeOptions {
    /// Scripts of what streams do with blocks.
    pub files: Vec<PathBuf>,
    /// How to print.
    pub format: OutputFormat,
}

/// Runs scripts of what streams do with memory blocks; a step that is refused makes the exit code 1.
pub fn run_time(o: &RunTimeOptions) -> Outcome {
    let mut out = Outcome::default();
    let mut all = Vec::new();
    for file in &o.files {
        let text = match read_file(file) {
            Ok(b) => String::from_utf8_lossy(&b)
                .trim_start_matches('\u{feff}')
                .to_owned(),
            Err(e) => return bad(e, o.format),
        };
        match crate::runtime::script::run(&file.display().to_string(), &text) {
            Ok(steps) => all.extend(steps),
            Err(e) => return unreadable(e.into(), o.format),
        }
    }
    out.exit = u8::from(all.iter().any(|s| s.refused));
    out.stdout = match o.format {
        OutputFormat::Json => to_json(&serde_json::json!({ "schema_version": 1, "steps": all })),
        OutputFormat::Text => all
            .iter()
            .map(|s| {
                format!(
                    "{:>4}  {:<24} {}{}\n",
                    s.line,
                    s.step,
                    if s.refused { "refused: " } else { "" },
                    s.result
                )
            })
            .collect(),
    };
    out
}
