//! Instrumentation: hooks are inserted into the user's text, and nothing else of it changes.
//!
//! ARCHITECTURE.md has the table of hooks. What this module keeps to:
//! * No byte of the user's goes, except that the number after `.version` may be raised to the runtime's, and that a byte order
//!   mark, which no driver takes, is left out.
//! * No line break is inserted, so line N of the result is line N of the user's text, hooks included; the runtime comes
//!   behind the last one. An error message of ptxas or of the simulator about the result names the user's line.
//! * Inserted registers are `%gsan_…`, labels `$L__gsan_N`, functions `__gsan_…`; a module that has such names already
//!   is refused, unless it defines `__gsan_module`: then it is linked with the runtime and stays as it is.

mod block;
mod cluster;
mod copies;
mod dependent;
mod edits;
mod emit;
mod externs;
mod finish;
mod function;
mod graph;
mod info;
mod own_memory;
mod parts;
mod registers;
mod registers_bound;
mod repeat;
mod runtime;

pub use edits::Change;
pub use info::{EntryInfo, GlobalVar, ParamInfo, Stats};
pub use runtime::RuntimeNeeds;

use crate::ast::{Item, Module, ParseError};
use crate::hook::{Hooks, names};
use crate::parse::Stream;
use crate::site::{Locations, Place, Site};
use crate::tokens::{BYTE_ORDER_MARK, Kind, Tokens};
use edits::Edits;
use function::Walker;
use runtime::Runtime;
use std::collections::HashSet;
use std::fmt::Write;
use std::sync::Arc;

/// What [`instrument`] needs besides the text.
#[derive(Debug, Clone, Copy)]
pub struct Options<'o> {
    /// The runtime's PTX (`gsan-device/ptx/runtime_wide.ptx`).
    pub runtime: &'o str,
    /// The module's name in messages.
    pub file_name: &'o str,
    /// The module will be linked with others that are instrumented too (`ptxas -c` and nvlink, `cuLink…`): the runtime
    /// becomes `.weak`, so that one of its copies serves them all.
    pub part: bool,
    /// The runtime stays outside: the result only declares what it calls of it (`.extern`), and is linked with
    /// [`RuntimeNeeds::module`], one for all modules of a program. So each of its functions is compiled once, with registers of its
    /// own; of one that is in the module ptxas makes a copy for every kernel.
    pub apart: bool,
    /// The number of the first site. Modules that are linked together need numbers of their own: the count of the
    /// sites of those before.
    pub first_site: u32,
    /// Hooks that follow the order of a block's threads, so that races between them are found; on where the runtime has them.
    /// [`EntryInfo::intra_block`] says in which kernels they are.
    pub intra_block: bool,
    /// Hooks for `ld.global.nc` and `ldu`, which a writer in the same launch can make stale. Off, they are taken as reads of what
    /// nobody writes, and none is inserted.
    pub stale_nc: bool,
}

impl<'o> Options<'o> {
    /// Options for a module named `file_name`.
    pub fn new(runtime: &'o str, file_name: &'o str) -> Options<'o> {
        Options {
            runtime,
            file_name,
            part: false,
            apart: false,
            first_site: 0,
            intra_block: true,
            stale_nc: true,
        }
    }

    /// Whether hooks for the order within a cluster are inserted.
    fn cluster_hooks(&self) -> bool {
        names::CLUSTER.iter().any(|n| self.runtime.contains(n))
    }

    /// Whether bulk copies have hooks.
    fn copy_hooks(&self) -> bool {
        self.runtime.contains(names::COPY)
    }

    /// Whether accesses of multicast memory have hooks.
    fn multicast_hooks(&self) -> bool {
        names::MULTICAST.iter().all(|n| self.runtime.contains(n))
    }

    /// Which of `griddepcontrol`'s forms have hooks.
    fn dependent_hooks(&self) -> dependent::DependentHooks {
        dependent::DependentHooks {
            wait: self.runtime.contains(names::GRID_WAIT),
            trigger: self.runtime.contains(names::LAUNCH_DEPENDENTS),
        }
    }

    /// Whether hooks for the order within a block are inserted.
    fn block_hooks(&self) -> bool {
        self.intra_block && self.runtime.contains(names::BLOCK_SYNC)
    }
}

/// What became of a module.
#[derive(Debug, Clone)]
pub struct Instrumented {
    /// The module with hooks and runtime (without, with [`Options::apart`]).
    pub text: String,
    /// The module's name, from [`Options::file_name`].
    pub file_name: String,
    /// The instrumented instructions; hooks name them by index, counted from [`Options::first_site`].
    pub sites: Vec<Site>,
    /// Instructions that touch global memory and are not checked, or only partly.
    pub unsupported: Vec<Unsupported>,
    /// The kernels.
    pub entries: Vec<EntryInfo>,
    /// The module's variables in global and constant memory.
    pub globals: Vec<GlobalVar>,
    /// Counts.
    pub stats: Stats,
    /// Where `text` is not the user's, in order: [`Instrumented::user_text`] undoes it.
    pub changes: Vec<Change>,
    /// The module was linked with the runtime before (it defines `__gsan_module`): the text is unchanged, there are no
    /// sites, and its kernels take the launch pointer as their own last parameter.
    pub already_linked: bool,
    /// The runtime's functions that the text calls: the runtime in it has these, what they call, and what the host needs. None if
    /// `already_linked`.
    pub needs: RuntimeNeeds,
    /// A function other than a kernel synchronises threads of a block without hooks: what [`EntryInfo::intra_block`] says of this
    /// module's kernels takes that into account, and kernels of modules that are linked with it must too.
    pub blind_function: bool,
}

impl Instrumented {
    /// The module's text as it was: `text` without what was inserted.
    pub fn user_text(&self) -> String {
        edits::undo(&self.text, &self.changes)
    }
}

/// An instruction that is not checked, or not completely.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unsupported {
    /// Line in the PTX, from 1.
    pub ptx_line: u32,
    /// The instruction, blanks pressed together.
    pub text: String,
    /// What is not done, and why.
    pub why: String,
    /// The `.entry` or `.func` that holds it.
    pub function: Arc<str>,
    /// The source line, innermost first, as in [`Site::places`].
    pub places: Vec<Place>,
    /// True if the access is checked, but something about it is approximated.
    pub partly: bool,
}

/// Why a module could not be instrumented.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum InstrumentError {
    /// The module is no PTX.
    #[error(transparent)]
    Parse(#[from] ParseError),
    /// The runtime is no PTX.
    #[error("the gsan runtime's PTX is damaged ({0}): rebuild it with `cargo xtask ptx`")]
    RuntimeSyntax(ParseError),
    /// The runtime lacks something.
    #[error("the gsan runtime's PTX can't be used: {0}; rebuild it with `cargo xtask ptx`")]
    Runtime(String),
    /// 32-bit addresses.
    #[error(
        "the module has `.address_size {bits}`; gsan needs 64: compile it for 64-bit device code"
    )]
    AddressSize {
        /// The module's.
        bits: u32,
        /// Line and column of the directive.
        place: (usize, usize),
    },
    /// The target can't take the runtime.
    #[error(
        "the module's target is {target}, gsan's runtime needs sm_{needs} or later: compile it with -arch=sm_{needs}"
    )]
    Target {
        /// The module's.
        target: String,
        /// The runtime's.
        needs: u32,
        /// Line and column of the target.
        place: (usize, usize),
    },
    /// No room for the hidden parameter.
    #[error(
        "kernel `{kernel}` has {bytes} bytes of parameters; {most} are the most that leave room for gsan's own: pass some of them in \
         memory"
    )]
    Parameters {
        /// The kernel.
        kernel: String,
        /// Bytes of its own parameters.
        bytes: u64,
        /// How many there may be.
        most: u64,
    },
    /// A kernel that can have no hooks calls functions that have some.
    #[error(
        "kernel `{kernel}` bounds its registers (`.maxnreg`, `.minnctapersm`) and changes them (`setmaxnreg`), so that ptxas \
         assembles no hook in it, but it calls functions of other modules, which have hooks: compile it without the bound, or \
         its functions into its own module"
    )]
    Unlinkable {
        /// The kernel.
        kernel: String,
    },
    /// A form that PTX does not have, and with which ptxas crashes.
    #[error(
        "`{text}`: PTX has vectors of eight elements of 32 bits only, and ptxas crashes on others in kernels with calls, as \
         gsan's hooks are: use `.v2.b32` or `.v4.b32` for the same bytes"
    )]
    Vector {
        /// The instruction.
        text: String,
        /// Its line and column.
        place: (usize, usize),
    },
    /// A name that instrumentation would insert is there.
    #[error(
        "line {line}: the name `{name}` is reserved for gsan: rename it, or instrument the original module"
    )]
    ReservedName {
        /// The name.
        name: String,
        /// Its line.
        line: usize,
    },
}

impl InstrumentError {
    /// Line and column of what is wrong, where that is one place.
    pub fn place(&self) -> Option<(usize, usize)> {
        match self {
            InstrumentError::Parse(e) => Some((e.line, e.column)),
            InstrumentError::AddressSize { place, .. }
            | InstrumentError::Target { place, .. }
            | InstrumentError::Vector { place, .. } => Some(*place),
            _ => None,
        }
    }
}

/// Instruments a module.
///
/// # Errors
/// See [`InstrumentError`]; nothing in a module's text makes this panic.
pub fn instrument(text: &str, options: &Options<'_>) -> Result<Instrumented, InstrumentError> {
    let mut out = Instrumented {
        text: String::new(),
        file_name: options.file_name.to_string(),
        sites: Vec::new(),
        unsupported: Vec::new(),
        entries: Vec::new(),
        globals: Vec::new(),
        stats: Stats::default(),
        changes: Vec::new(),
        already_linked: false,
        needs: RuntimeNeeds::default(),
        blind_function: false,
    };
    // The hooks are written while the module is read; what they depend on beyond their function is checked afterwards.
    let mut edits = Edits::new();
    let mut stream = Stream::new(text)?;
    let tables = stream.tables();
    let locations = Locations::new(&tables.files, tables.texts);
    let mut walker = Walker::new(text, locations, &mut edits, &mut out);
    walker.configure(options, &tables.targets);
    let module = stream.functions(|before, function| walker.function(before, function))?;
    let linked = module
        .items
        .iter()
        .any(|i| matches!(i, Item::Variable(v) if v.name == names::MODULE && v.linkage != Some("extern")));
    if !linked {
        if let Some(error) = walker.refused.take() {
            return Err(error);
        }
        walker.finish(&module, options)?;
    }
    info::without_declarations(&mut out.entries);
    if out.blind_function {
        // Any kernel of the module may call it.
        out.entries.iter_mut().for_each(|e| e.intra_block = false);
    }
    out.globals = info::globals(&module);
    if linked {
        return Ok(already_linked(text, out));
    }
    if text.as_bytes().starts_with(BYTE_ORDER_MARK) {
        // No driver takes it.
        edits.replace(0..BYTE_ORDER_MARK.len(), "");
    }
    let runtime = runtime_for(&module, text, options, out.needs.calls)?;
    let needed = match options.apart {
        true => (0, 0),
        false => runtime.version,
    };
    let needed = needed.max(parameters_version(&out.entries)?);
    out.needs.version = needed.max(module.version.unwrap_or_default());
    let target = module.target.iter().find(|t| target_number(t).is_some());
    out.needs.target = target.unwrap_or(&"").to_string();
    if module.version.is_some_and(|v| v < needed) {
        let (major, minor) = needed;
        edits.replace(module.version_span.clone(), &format!("{major}.{minor}"));
    }
    let first = module.items.iter().find_map(|item| match item {
        Item::Function(f) => Some(f.span.start),
        Item::Variable(v) => Some(v.span.start),
        _ => None,
    });
    if let Some(first) = first {
        edits.insert(first, &runtime.prototypes);
    }
    (out.text, out.changes) = edits.apply(text, &runtime.text);
    Ok(out)
}

/// What the host must know of a module that it loads as it is: its kernels and its variables.
pub fn describe(module: &Module<'_>) -> (Vec<EntryInfo>, Vec<GlobalVar>) {
    (info::entries(module), info::globals(module))
}

fn already_linked(text: &str, out: Instrumented) -> Instrumented {
    Instrumented {
        text: text.to_string(),
        sites: Vec::new(),
        unsupported: Vec::new(),
        stats: Stats::default(),
        already_linked: true,
        entries: out
            .entries
            .into_iter()
            .map(|e| EntryInfo {
                intra_block: false,
                hooks: true,
                ..e
            })
            .collect(),
        ..out
    }
}

/// The runtime, if this module can take it.
fn runtime_for(
    module: &Module<'_>,
    text: &str,
    options: &Options<'_>,
    calls: Hooks,
) -> Result<Runtime, InstrumentError> {
    if module.address_size != 64 {
        return Err(InstrumentError::AddressSize {
            bits: module.address_size,
            place: place_of(text, ".address_size"),
        });
    }
    reserved_name(text)?;
    let runtime = Runtime::prepare(options, &module_names(module), calls)?;
    let too_old = |t: &&&str| target_number(t).is_some_and(|n| n < runtime.target);
    match module.target.iter().find(too_old) {
        Some(target) => Err(InstrumentError::Target {
            target: target.to_string(),
            needs: runtime.target,
            place: place_of(text, target),
        }),
        None => Ok(runtime),
    }
}

/// Line and column of the first token that reads so.
fn place_of(text: &str, word: &str) -> (usize, usize) {
    let tokens = Tokens::new(text);
    let found = (0..tokens.len()).find(|&i| tokens.text(i) == word);
    let at = ParseError::at(text, found.map_or(0, |i| tokens.start(i)), "");
    (at.line, at.column)
}

/// The version of PTX that the kernels' parameters need with the hidden one: beyond 4096 bytes 8.1.
fn parameters_version(entries: &[EntryInfo]) -> Result<(u32, u32), InstrumentError> {
    const OLD: u64 = 4096;
    const NEW: u64 = 32764;
    let mut needed = (0, 0);
    for entry in entries {
        let bytes = entry.parameter_bytes();
        let start = bytes.checked_next_multiple_of(8).unwrap_or(u64::MAX);
        let with_ours = start.saturating_add(8);
        if bytes <= NEW && with_ours > NEW {
            return Err(InstrumentError::Parameters {
                kernel: entry.name.clone(),
                bytes,
                most: (NEW - 8) / 8 * 8,
            });
        }
        if with_ours > OLD {
            needed = (8, 1);
        }
    }
    Ok(needed)
}

/// 90 for `sm_90a`.
pub(crate) fn target_number(target: &str) -> Option<u32> {
    let rest = target
        .strip_prefix("sm_")
        .or_else(|| target.strip_prefix("compute_"))?;
    let digits = rest.bytes().take_while(u8::is_ascii_digit).count();
    rest[..digits].parse().ok()
}

/// The functions and variables that the module declares.
fn module_names<'a>(module: &Module<'a>) -> HashSet<&'a str> {
    let names = module.items.iter().filter_map(|item| match item {
        Item::Function(f) => Some(f.name),
        Item::Variable(v) => Some(v.name),
        _ => None,
    });
    names.collect()
}

/// Looks for names that begin as inserted ones do. Comments and strings may say what they like.
fn reserved_name(text: &str) -> Result<(), InstrumentError> {
    // Nearly every module is done with here.
    if !text.contains("gsan_") {
        return Ok(());
    }
    let tokens = Tokens::new(text);
    let reserved = |name: &str| {
        [names::PREFIX, "%gsan_", "$L__gsan_"]
            .iter()
            .any(|p| name.starts_with(p))
    };
    let found =
        (0..tokens.len()).find(|&i| tokens.kind(i) == Kind::Ident && reserved(tokens.text(i)));
    let Some(found) = found else { return Ok(()) };
    let line = ParseError::at(text, tokens.start(found), "").line;
    Err(InstrumentError::ReservedName {
        name: tokens.text(found).to_string(),
        line,
    })
}

/// The kernel parameter list's addition.
fn hidden_parameter(edits: &mut Edits, function: &crate::ast::Function<'_>) {
    let from = edits.pieces.len();
    // Writing to a `String` can't fail.
    let _ = match function.params_end {
        Some(_) if function.params.is_empty() => {
            write!(edits.pieces, ".param .u64 {}", names::LAUNCH)
        }
        Some(_) => write!(edits.pieces, ", .param .u64 {}", names::LAUNCH),
        None => write!(edits.pieces, "(.param .u64 {})", names::LAUNCH),
    };
    edits.insert_since(function.params_end.unwrap_or(function.name_end), from);
}
