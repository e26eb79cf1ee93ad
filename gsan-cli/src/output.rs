//! Where reports and messages go.

use crate::args::Format;
use crate::failure::{Failure, Result};
use crate::render::json::Printed;
use crate::render::source::Sources;
use crate::render::text::clean;
use crate::render::{findings, json, sarif, text};
use gsan_host::report::{Outcome, Report};
use std::io::{IsTerminal, Write};
use std::path::{Path, PathBuf};

/// Writes a report in the chosen format to the chosen place.
#[derive(Debug, Clone)]
pub struct Reporter {
    /// How.
    pub format: Format,
    /// Where; `None`: the standard output.
    pub out: Option<PathBuf>,
    /// Whether the text says what instrumentation did and left out; JSON always does.
    pub stats: bool,
    /// Files beside which sources are looked for.
    pub beside: Vec<PathBuf>,
    /// Sources that are in no file, by name.
    pub inline: Vec<(String, String)>,
}

impl Reporter {
    /// Writes it.
    pub fn emit(&self, report: &Report, printed: &[Printed]) -> Result<()> {
        let rendered = match self.format {
            Format::Text => {
                let mut rendered = text::render(report, &self.sources(), self.stats);
                for p in printed {
                    rendered.push_str(&printed_line(p));
                }
                rendered
            }
            Format::Json => json::render(report, printed),
            Format::Sarif => sarif::render(report),
        };
        to(self.out.as_deref(), &rendered)?;
        // What `--print` asked for is for the reader, wherever the report went.
        if self.out.is_some() || self.format != Format::Text {
            let to_stdout = self.out.is_some();
            for p in printed {
                if to_stdout {
                    print(&printed_line(p))?
                } else {
                    eprint(&printed_line(p))
                }
            }
        }
        self.on_stderr(report);
        Ok(())
    }

    fn sources(&self) -> Sources {
        sources(&self.beside, &self.inline)
    }

    /// What nobody may miss, whichever format was asked for: instructions that are not checked, and a failed run.
    fn on_stderr(&self, report: &Report) {
        let text_on_screen = self.format == Format::Text
            && self.out.is_none()
            && std::io::stdout().is_terminal()
            && std::io::stderr().is_terminal();
        if text_on_screen {
            return;
        }
        const SHOWN: usize = 20;
        for u in report.unsupported.iter().take(SHOWN) {
            let how = if u.partly {
                "only approximated"
            } else {
                "not checked"
            };
            warn(&format!(
                "{}:{}: {how}: {} ({})",
                u.module,
                u.ptx_line,
                clean(u.text.trim()),
                u.why
            ));
        }
        for past in &report.past_end {
            let site = past.access.site.as_ref();
            let at = site.map_or(String::new(), |s| format!("{}:{}: ", s.file, s.line));
            warn(&format!("{at}{}", findings::past_end(past)));
        }
        if report.unsupported.len() > SHOWN {
            warn(&format!(
                "{} more instructions are not checked or only approximated; see the report",
                report.unsupported.len() - SHOWN
            ));
        }
        if report.outcome != Outcome::Completed {
            let why = report.message.as_deref().unwrap_or("no more is known");
            let why = why
                .lines()
                .map(str::trim)
                .filter(|l| !l.is_empty())
                .collect::<Vec<_>>()
                .join("; ");
            error(&format!(
                "{}: {why}",
                text::outcome_sentence(report.outcome)
            ));
        }
    }
}

/// Looks for sources beside these files, and knows those texts.
pub fn sources(beside: &[PathBuf], inline: &[(String, String)]) -> Sources {
    let found = beside.iter().fold(Sources::new(), |s, file| s.beside(file));
    let known = |s: Sources, (name, text): &(String, String)| s.bundled(name.clone(), text.clone());
    inline.iter().fold(found, known)
}

fn printed_line(p: &Printed) -> String {
    format!("{} = [{}]\n", clean(&p.buffer), p.values.join(", "))
}

/// To a file, without styles, or to the standard output. What can't be written there must not be lost: it goes to the standard
/// output, or else to the standard error.
pub fn to(out: Option<&Path>, rendered: &str) -> Result<()> {
    let Some(path) = out else {
        return print(rendered).inspect_err(|_| eprint(rendered));
    };
    let plain = anstream::adapter::strip_str(rendered).to_string();
    let Err(e) = std::fs::write(path, plain) else {
        return Ok(());
    };
    let saved = match print(rendered) {
        Ok(()) => "; the standard output has it instead",
        Err(_) => {
            eprint(rendered);
            ""
        }
    };
    Err(Failure::input(format_args!(
        "cannot write {}: {e}{saved}",
        path.display()
    )))
}

/// To the standard output, without styles where it is no terminal.
pub fn print(text: &str) -> Result<()> {
    let mut out = anstream::stdout().lock();
    written(out.write_all(text.as_bytes()).and_then(|()| out.flush()))
}

/// What became of a write to the standard output. A reader that has closed its pipe has seen enough; anything else (a full
/// disk) means that a result is lost, which must not look like success.
pub fn written(done: std::io::Result<()>) -> Result<()> {
    match done {
        Err(e) if e.kind() != std::io::ErrorKind::BrokenPipe => Err(Failure::input(format_args!(
            "cannot write to the standard output: {e}"
        ))),
        _ => Ok(()),
    }
}

/// The same to the standard error.
pub fn eprint(text: &str) {
    let _ = anstream::stderr().lock().write_all(text.as_bytes());
}

/// `error: …` on the standard error.
pub fn error(message: &str) {
    eprint(&format!(
        "{0}error{0:#}: {1}\n",
        anstyle::AnsiColor::BrightRed.on_default().bold(),
        clean_lines(message)
    ));
}

/// `error: …`, and under it the line that is meant.
pub fn failure(failure: &Failure) {
    error(&failure.message);
    eprint(&failure.excerpt);
}

/// `hint: …` on the standard error.
pub fn hint(message: &str) {
    eprint(&format!(
        "{0}hint{0:#}: {1}\n",
        anstyle::AnsiColor::BrightCyan.on_default().bold(),
        clean(message)
    ));
}

/// `warning: …` on the standard error.
pub fn warn(message: &str) {
    eprint(&format!(
        "{0}warning{0:#}: {1}\n",
        anstyle::AnsiColor::BrightYellow.on_default().bold(),
        clean(message)
    ));
}

fn clean_lines(message: &str) -> String {
    message.lines().map(clean).collect::<Vec<_>>().join("\n")
}

/// Bytes to the standard output as they are.
pub fn raw(text: &str) -> Result<()> {
    let mut out = std::io::stdout().lock();
    written(out.write_all(text.as_bytes()).and_then(|()| out.flush()))
}
