//! Runs a scenario: every schedule on a fresh simulated device (on a GPU: every repetition in a fresh session), reports merged.

use super::expect::{Judge, Values};
use super::issue::Issuer;
use super::model::*;
use crate::device::{Chosen, reset_simulator};
use crate::element::Init;
use crate::failure::{Failure, Result};
use crate::input;
use crate::interrupt;
use crate::ptx::{self, one_line};
use crate::render::json::Printed;
use gsan_host::report::{Outcome, RaceClass, Report};
use gsan_host::{ErrorKind, Session};
use gsan_ptx::excerpt::{excerpt, excerpt_of};
use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// How to run.
#[derive(Debug, Clone)]
pub struct Options {
    /// Where.
    pub device: Chosen,
    /// First schedule seed.
    pub seed: u64,
    /// Schedules, or repetitions.
    pub schedules: u32,
    /// The shadow cells' format; `None`: as the scenario says.
    pub cell: Option<gsan_host::CellFormat>,
    /// Whether each `fence.sc` synchronises with the next, even if the scenario does not say so.
    pub sc_order: bool,
    /// Report classes that are switched off, besides those that the scenario switches off.
    pub classes_off: Vec<RaceClass>,
    /// Whether anything is checked.
    pub instrument: bool,
    /// How long the host waits for the device at most.
    pub time_limit: Duration,
    /// The simulator's step budget.
    pub budget: Option<u64>,
    /// Buffers to print: index and how many elements.
    pub print: Vec<(usize, Option<u64>)>,
    /// How many of the scenario's steps are issued; all without it.
    pub steps: Option<usize>,
}

/// What came out.
#[derive(Debug)]
pub struct Finished {
    /// All schedules merged.
    pub report: Report,
    /// What `--print` asked for, as the last schedule left it, or why it cannot be read.
    pub printed: Vec<std::result::Result<Printed, String>>,
    /// With `[expect]`: what differs from it.
    pub differences: Option<Vec<String>>,
}

/// Called, from another thread, when the device does not answer in time, with everything found so far; the run that hangs
/// counts as the last schedule. It is expected to end the process: the thread that waits for the device cannot be woken.
pub type OnExpiry = Arc<dyn Fn(Finished) + Send + Sync>;

/// Called after every schedule.
pub type OnProgress<'a> = &'a mut dyn FnMut(u32);

/// Called when a schedule's work has ended, or failed, and before the report.
pub type Look<'l> = &'l mut dyn FnMut(&mut Issuer<'_>);

/// A scenario with everything that it names read into memory.
pub struct Prepared<'a> {
    /// The scenario.
    pub scenario: &'a Scenario,
    /// Per module: its text, and those of the modules that are linked with it.
    pub modules: Vec<Vec<ModuleText>>,
    /// Initial contents that come from files, by buffer.
    pub files: HashMap<usize, Vec<u8>>,
}

/// A module's PTX.
pub struct ModuleText {
    /// What reports call it.
    pub name: String,
    /// Where it was read; `None`: it stands in the scenario.
    pub path: Option<PathBuf>,
    /// All of it.
    pub text: String,
}

impl ModuleText {
    fn read(path: &Path, otherwise: &str) -> Result<ModuleText> {
        let name = path.file_name();
        Ok(ModuleText {
            name: name.map_or_else(|| otherwise.into(), |n| n.to_string_lossy().into()),
            path: Some(path.to_path_buf()),
            text: ptx::read(path)?,
        })
    }
}

impl<'a> Prepared<'a> {
    /// Reads the modules and initial contents.
    pub fn read(scenario: &'a Scenario) -> Result<Prepared<'a>> {
        if !scenario.does_something() {
            let message = "no step launches a kernel or touches a buffer, so there is nothing to check; a [[step]] needs \
                           launch, memset, copy or read_back";
            return Err(at_line(scenario, 0, message.to_string()));
        }
        let mut modules = Vec::new();
        for module in &scenario.modules {
            let mut texts = vec![match &module.source {
                ModuleSource::Inline(text) => ModuleText {
                    name: module.name.clone(),
                    path: None,
                    text: text.clone(),
                },
                ModuleSource::File(path) => ModuleText::read(path, &module.name)?,
            }];
            for path in &module.link {
                texts.push(ModuleText::read(path, &module.name)?);
            }
            modules.push(texts);
        }
        let mut files = HashMap::new();
        for (index, buffer) in scenario.buffers.iter().enumerate() {
            if let Init::File(path) = &buffer.init {
                let bytes =
                    read_content(path, buffer).map_err(|e| at_line(scenario, buffer.line, e))?;
                files.insert(index, bytes);
            }
        }
        Ok(Prepared {
            scenario,
            modules,
            files,
        })
    }

    /// Runs all schedules. On a GPU a run that dies (trap, fault) is the last one: the driver lets this process do nothing
    /// more on that device.
    pub fn run(
        &self,
        options: &Options,
        on_expiry: &OnExpiry,
        on_progress: OnProgress<'_>,
    ) -> Result<Finished> {
        let expect = self.scenario.expect.as_ref();
        let judge = expect.map(|e| Judge::new(self.scenario, e, options.instrument));
        let judge = Arc::new(Mutex::new(judge));
        let merged: Arc<Mutex<Option<Report>>> = Arc::default();
        let mut printed = Vec::new();
        for number in 0..options.schedules {
            let seed = options.seed.wrapping_add(u64::from(number));
            let expiry = {
                let (merged, judge, on_expiry) = (merged.clone(), judge.clone(), on_expiry.clone());
                move |now: Report| {
                    let mut judge = lock(&judge).take();
                    if let Some(judge) = &mut judge {
                        judge.add(seed, &now, &[]);
                    }
                    on_expiry(Finished {
                        report: join(lock(&merged).take(), now),
                        printed: Vec::new(),
                        differences: judge.map(|j| j.differences()),
                    });
                }
            };
            let mut once = self.once(options, seed, expiry, &mut |_| ())?;
            let last = once.dead && !options.device.simulated;
            if last && number + 1 < options.schedules {
                let made = format!("{} of {} runs were made", number + 1, options.schedules);
                let message = once.report.message.get_or_insert_default();
                message.push_str(if message.is_empty() { "" } else { "\n" });
                message.push_str(&made);
            }
            if let Some(judge) = lock(&judge).as_mut() {
                judge.add(seed, &once.report, &once.values);
            }
            printed = once.printed;
            let mut merged = lock(&merged);
            *merged = Some(join(merged.take(), once.report));
            on_progress(number + 1);
            if last {
                break;
            }
        }
        let report = lock(&merged)
            .take()
            .ok_or_else(|| Failure::input("nothing was run"))?;
        Ok(Finished {
            report,
            printed,
            differences: lock(&judge).as_ref().map(Judge::differences),
        })
    }

    /// Runs one schedule, of which `look` may inspect the state when all work has ended.
    pub fn inspect(
        &self,
        options: &Options,
        on_expiry: &OnExpiry,
        look: Look<'_>,
    ) -> Result<Report> {
        let on_expiry = on_expiry.clone();
        let expiry = move |report| {
            on_expiry(Finished {
                report,
                printed: Vec::new(),
                differences: None,
            })
        };
        Ok(self.once(options, options.seed, expiry, look)?.report)
    }

    /// Whether the scenario is about a device that refuses its work, as opposed to one that is wrong itself.
    fn expects_refusal(&self, error: &gsan_host::Error) -> bool {
        use gsan_host::Error as E;
        let about_the_device = matches!(
            error,
            E::Launch { .. }
                | E::BufferTooLarge { .. }
                | E::OutOfMemory { .. }
                | E::ReservationFull { .. }
        );
        about_the_device
            && self
                .scenario
                .expect
                .as_ref()
                .is_some_and(|e| e.outcome == Outcome::Error)
    }

    /// The first mistake in the modules' PTX. The session has met one; here it gets its file, its line and a caret.
    fn syntax_error(&self) -> Option<Failure> {
        let modules = self.scenario.modules.iter().zip(&self.modules);
        let mut texts = modules.flat_map(|(module, texts)| texts.iter().map(move |t| (module, t)));
        texts.find_map(|(module, text)| {
            let e = gsan_ptx::parse(&text.text).err()?;
            Some(match &text.path {
                Some(path) => ptx::syntax(path, &text.text, &e),
                None => {
                    let what = one_line(&e.message);
                    self.in_module(module, text, (e.line, e.column), &what)
                }
            })
        })
    }

    /// What the driver's compiler refuses, at the line that its log names first: instrumentation leaves lines where they are.
    fn refused_module(&self, error: &gsan_host::Error) -> Option<Failure> {
        let gsan_host::Error::Load { module, log, .. } = error else {
            return None;
        };
        let line = named_line(log)?;
        let modules = self.scenario.modules.iter().zip(&self.modules);
        // Of several that are linked it does not say which.
        let mut alone = modules.filter_map(|(m, texts)| match &texts[..] {
            [one] if one.name == *module => Some((m, one)),
            _ => None,
        });
        let (found, text) = alone.next()?;
        let shown = text.text.lines().nth(line.checked_sub(1)?)?;
        let column = shown.len() - shown.trim_start().len() + 1;
        let what = one_line(&error.to_string());
        let what = what.strip_prefix(&format!("{module}: ")).unwrap_or(&what);
        Some(self.in_module(found, text, (line, column), what))
    }

    /// A place in a module's PTX: of its own file, or of the scenario where it stands there.
    fn in_module(
        &self,
        module: &Module,
        text: &ModuleText,
        (line, column): (usize, usize),
        what: &str,
    ) -> Failure {
        if let Some(path) = &text.path {
            return Failure::at(path, &text.text, (line, column), what);
        }
        let name = &module.name;
        if module.text_line == 0 {
            let message = format!("module `{name}`, line {line}:{column}: {what}");
            return Failure {
                excerpt: excerpt(&text.text, line, column),
                ..at_line(self.scenario, module.line, message)
            };
        }
        let of_file = module.text_line as usize + line - 1;
        let file = self.scenario.file.display();
        let message = format!("{file}:{of_file}:{column}: module `{name}`: {what}");
        Failure {
            excerpt: excerpt_of(&text.text, line, column, of_file),
            ..Failure::input(message)
        }
    }

    fn once(
        &self,
        options: &Options,
        seed: u64,
        expiry: impl FnOnce(Report) + Send + 'static,
        look: Look<'_>,
    ) -> Result<Once> {
        let shape = self.scenario.device;
        if options.device.simulated {
            reset_simulator(options.device, shape, seed, options.budget);
        }
        let session = Session::builder()
            .devices(&options.device.devices(shape.devices.unwrap_or(1)))
            .slots_per_sm(shape.slots_per_sm)
            .clock_buffer_size(shape.clock_buffer_size)
            .cell(options.cell.or(shape.cell).unwrap_or_default())
            .sc_order(options.sc_order || shape.sc_order)
            .classes_off(&[&self.scenario.classes_off[..], &options.classes_off].concat())
            .seed(seed as u32)
            .schedule_seed(options.device.simulated.then_some(seed))
            .instrument(options.instrument)
            .watchdog(options.time_limit, expiry)
            .interrupt(&interrupt::INTERRUPTED)
            .build()
            .map_err(|e| at_line(self.scenario, 0, e))?;
        let mut issuer = Issuer::new(self, session, options.steps);
        // An error of the run ends the issuing only: what was found until then is reported.
        let mut refused = None;
        let failed = match issuer.everything() {
            Ok(()) => None,
            Err((_, error)) if self.expects_refusal(&error) => {
                refused = Some(one_line(&error.to_string()));
                None
            }
            Err((_, error @ gsan_host::Error::Syntax { .. })) => {
                let found = self.syntax_error();
                return Err(found.unwrap_or_else(|| at_line(self.scenario, 0, error)));
            }
            Err((line, error)) if error.kind() == ErrorKind::Input => {
                let hint = missing_module(&error).unwrap_or_default();
                let mut failure = self
                    .refused_module(&error)
                    .unwrap_or_else(|| at_line(self.scenario, line, error));
                failure.message.push_str(hint);
                return Err(failure);
            }
            Err((_, error)) => Some(error.to_string()),
        };
        let expected = self.scenario.expect.iter().flat_map(|e| &e.values);
        let values = expected
            .map(|v| issuer.elements(v.buffer, v.values.len() as u64))
            .collect();
        let printed = options
            .print
            .iter()
            .map(|(buffer, count)| issuer.printed(*buffer, *count))
            .collect();
        look(&mut issuer);
        // Where it fails, the first error says more.
        let finished = issuer.finish();
        let mut report = finished.map_err(|e| {
            let first = failed.clone().unwrap_or_else(|| e.to_string());
            Failure::run(one_line(&first))
        })?;
        // The driver may refuse a call and the context lives on.
        if let Some(failed) = failed
            && report.outcome == Outcome::Completed
        {
            (report.outcome, report.message) = (Outcome::Error, Some(one_line(&failed)));
        }
        let dead = report.outcome != Outcome::Completed;
        if refused.is_some() {
            (report.outcome, report.message) = (Outcome::Error, refused);
        }
        Ok(Once {
            report,
            values,
            printed,
            dead,
        })
    }
}

/// One schedule.
struct Once {
    report: Report,
    values: Vec<Values>,
    printed: Vec<std::result::Result<Printed, String>>,
    /// Its context can do nothing more.
    dead: bool,
}

fn join(merged: Option<Report>, next: Report) -> Report {
    match merged {
        None => next,
        Some(mut merged) => {
            merged.merge(next);
            merged
        }
    }
}

/// Taken one at a time, never one inside another.
fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// What to do where a function is called that no module has: as the simulator and as ptxas say it.
fn missing_module(error: &gsan_host::Error) -> Option<&'static str> {
    let gsan_host::Error::Load { log, .. } = error else {
        return None;
    };
    let missing =
        log.contains("called but not defined") || log.contains("Unresolved extern function");
    missing.then_some(
        ": give the module that defines it too, as a further file or in the scenario's `link`",
    )
}

/// The number behind the first `line ` of a compiler's log.
fn named_line(log: &str) -> Option<usize> {
    let (_, rest) = log.split_once("line ")?;
    let digits = rest.bytes().take_while(u8::is_ascii_digit).count();
    rest[..digits].parse().ok()
}

/// `FILE:LINE: message`; without a line in the one-kernel form.
fn at_line(scenario: &Scenario, line: u32, error: impl Into<Problem>) -> Failure {
    let problem = error.into();
    let file = scenario.file.display();
    let message = if line == 0 {
        // The module's name says the same again.
        let name = scenario
            .file
            .file_name()
            .map_or_else(String::new, |n| format!("{}: ", n.to_string_lossy()));
        let rest = problem
            .message
            .strip_prefix(&name)
            .filter(|_| !name.is_empty())
            .unwrap_or(&problem.message);
        format!("{file}: {rest}")
    } else {
        format!("{file}:{line}: {}", problem.message)
    };
    Failure {
        code: problem.code,
        ..Failure::input(message)
    }
}

/// What a place in the scenario is put before.
struct Problem {
    code: u8,
    message: String,
}

impl From<String> for Problem {
    fn from(message: String) -> Problem {
        Problem {
            code: crate::failure::exit::INPUT,
            message,
        }
    }
}

impl From<gsan_host::Error> for Problem {
    fn from(error: gsan_host::Error) -> Problem {
        let code = match error.kind() {
            ErrorKind::Input => crate::failure::exit::INPUT,
            ErrorKind::Run => crate::failure::exit::RUN,
        };
        Problem {
            code,
            message: one_line(&error.to_string()),
        }
    }
}

fn read_content(path: &Path, buffer: &Buffer) -> std::result::Result<Vec<u8>, String> {
    let size = std::fs::metadata(path)
        .map_err(|e| format!("cannot read {}: {e}", path.display()))?
        .len();
    if size > buffer.bytes() {
        return Err(format!(
            "{} has {size} bytes, `{}` only {} ({} × {})",
            path.display(),
            buffer.name,
            buffer.bytes(),
            buffer.len,
            buffer.ty
        ));
    }
    // It may have grown, or be a device that never ends.
    let bytes = input::at_most(path, buffer.bytes())
        .map_err(|e| format!("cannot read {}: {e}", path.display()))?;
    if bytes.len() as u64 > buffer.bytes() {
        return Err(format!(
            "{} has more bytes than `{}`",
            path.display(),
            buffer.name
        ));
    }
    Ok(bytes)
}
