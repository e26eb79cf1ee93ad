//! From a module's text to what is loaded, and what is known about it.

use crate::error::{Error, Result};
use crate::report::{Instrumentation, Site, UnsupportedInstruction};
use crate::request::{KernelInfo, ParamInfo};
use gsan_ptx::Place;
use gsan_ptx::ast::{Item, Space, Statement};
use gsan_ptx::hook::names::{MODULE, PREFIX};
use gsan_ptx::instrument::{EntryInfo, GlobalVar, InstrumentError, Options, RuntimeNeeds};
use std::collections::HashMap;

/// A kernel, as launches need it.
#[derive(Debug, Clone)]
pub(crate) struct Kernel {
    pub(crate) info: KernelInfo,
    /// Whether it takes the launch record's address as a last parameter.
    pub(crate) hidden_parameter: bool,
    /// The detector is part of its module: its code touches shared memory behind the user's.
    pub(crate) linked_by_hand: bool,
    /// `.reqntid`
    pub(crate) required_threads: Option<[u32; 3]>,
    /// `.reqnctapercluster`
    pub(crate) required_cluster: Option<[u32; 3]>,
    /// Its hooks tell the warps of a block apart.
    pub(crate) intra_block: bool,
    /// Every `griddepcontrol.wait` that it may come to has a hook, so that a launch may be taken to start early.
    pub(crate) follows_grid_wait: bool,
}

/// A module, ready to load.
#[derive(Debug, Default)]
pub(crate) struct Prepared {
    /// The texts; several are linked into one program.
    pub(crate) texts: Vec<Input>,
    pub(crate) sites: Vec<Site>,
    pub(crate) unsupported: Vec<UnsupportedInstruction>,
    pub(crate) instrumented_sites: u64,
    /// `None`: the modules are as they were.
    pub(crate) instrumentation: Option<Instrumentation>,
    pub(crate) kernels: Vec<Kernel>,
    /// Names of the user's variables in global memory.
    pub(crate) variables: Vec<String>,
    /// Of a hand-linked module: each kernel's source file.
    pub(crate) linked_files: HashMap<String, String>,
}

/// A text on its way to the driver.
#[derive(Debug, Clone)]
pub(crate) struct Input {
    pub(crate) name: String,
    pub(crate) text: String,
    /// How many registers its functions may use, where that is bounded.
    pub(crate) registers: Option<u32>,
}

impl Input {
    pub(crate) fn new(name: &str, text: impl Into<String>) -> Input {
        Input {
            name: name.into(),
            text: text.into(),
            registers: None,
        }
    }
}

/// Instruments the modules of a program and puts the runtime beside them, to be linked: the driver compiles each of its functions once,
/// where it would make a copy of all of them for every kernel of a module that held them. `program` is what reports call it; with
/// `intra_block` warps of a block are told apart where that is possible; without `stale_nc` non-coherent loads are left alone.
pub(crate) fn instrumented(
    program: &str,
    modules: &[(&str, &str)],
    runtime: &str,
    intra_block: bool,
    stale_nc: bool,
) -> Result<Prepared> {
    let mut all = Prepared::default();
    let mut blind = false;
    let mut needs = None::<RuntimeNeeds>;
    for (name, ptx) in modules {
        let options = Options {
            apart: true,
            part: modules.len() > 1,
            first_site: u32::try_from(all.sites.len()).unwrap_or(u32::MAX),
            intra_block,
            stale_nc,
            ..Options::new(runtime, name)
        };
        let result = gsan_ptx::instrument(ptx, &options).map_err(|e| refused(name, &e))?;
        if result.already_linked && modules.len() > 1 {
            let message = format!(
                "it is linked with gsan's runtime already, so it can't be linked into `{program}`: give the module as it was compiled"
            );
            return Err(Error::Instrument {
                module: name.to_string(),
                message,
            });
        }
        blind |= result.blind_function;
        if !result.already_linked {
            needs.get_or_insert_default().add(&result.needs);
        }
        all.add(prepared(name, ptx, result, modules.len() == 1));
    }
    if blind {
        // Any kernel may call that function.
        all.kernels.iter_mut().for_each(|k| k.intra_block = false);
    }
    let mut texts = modules.iter().zip(&all.texts);
    let follows = texts.all(|((_, before), after)| follows_grid_wait(before, &after.text));
    let kernels = all.kernels.iter_mut();
    kernels.for_each(|k| k.follows_grid_wait = follows);
    if let Some(needs) = needs {
        let text = needs.module(runtime);
        all.texts.push(Input {
            registers: Some(needs.registers()),
            ..Input::new("gsan's runtime", text.map_err(|e| refused(program, &e))?)
        });
    }
    Ok(all)
}

/// Whether instrumentation has put a hook behind the module's `griddepcontrol.wait`s, if it has any.
fn follows_grid_wait(before: &str, after: &str) -> bool {
    !before.contains("griddepcontrol.wait") || after.contains("__gsan_grid_wait, (")
}

/// `alone`: no other module can call this one's functions.
fn prepared(name: &str, ptx: &str, result: gsan_ptx::Instrumented, alone: bool) -> Prepared {
    let linked = result.already_linked;
    let linked_files = if linked {
        source_files(ptx)
    } else {
        HashMap::new()
    };
    let callers = match alone {
        true => gsan_ptx::site::callers(ptx, &result.sites),
        false => HashMap::new(),
    };
    let sites = result.sites.iter().enumerate();
    Prepared {
        sites: sites
            .map(|(n, s)| site(s, name, callers.get(&n).map_or(&[], Vec::as_slice)))
            .collect(),
        unsupported: result
            .unsupported
            .into_iter()
            .map(|u| UnsupportedInstruction {
                module: name.into(),
                ptx_line: u.ptx_line,
                text: u.text,
                why: u.why,
                partly: u.partly,
            })
            .collect(),
        instrumented_sites: result.stats.sites(),
        instrumentation: (!linked).then(|| Instrumentation::from(&result.stats)),
        kernels: kernels(
            result.entries,
            if linked {
                Hidden::Declared
            } else {
                Hidden::Added
            },
        ),
        variables: variables(&result.globals),
        linked_files,
        texts: vec![Input::new(name, result.text)],
    }
}

impl Prepared {
    fn add(&mut self, other: Prepared) {
        self.texts.extend(other.texts);
        self.sites.extend(other.sites);
        self.unsupported.extend(other.unsupported);
        self.instrumented_sites += other.instrumented_sites;
        self.instrumentation = sum(self.instrumentation, other.instrumentation);
        for kernel in other.kernels {
            // A weak one may be in several modules.
            let same = |k: &&mut Kernel| k.info.name == kernel.info.name;
            match self.kernels.iter_mut().find(same) {
                Some(known) => known.intra_block &= kernel.intra_block,
                None => self.kernels.push(kernel),
            }
        }
        for variable in other.variables {
            if !self.variables.contains(&variable) {
                self.variables.push(variable);
            }
        }
        self.linked_files.extend(other.linked_files);
    }
}

/// What was done to all of several modules.
pub(crate) fn sum(
    a: Option<Instrumentation>,
    b: Option<Instrumentation>,
) -> Option<Instrumentation> {
    match (a, b) {
        (Some(a), Some(b)) => Some(a.plus(b)),
        (a, b) => a.or(b),
    }
}

/// Takes the modules of a program as they are.
pub(crate) fn plain(modules: &[(&str, &str)]) -> Result<Prepared> {
    let mut all = Prepared::default();
    for (name, ptx) in modules {
        all.add(plain_one(name, ptx)?);
    }
    Ok(all)
}

fn plain_one(name: &str, ptx: &str) -> Result<Prepared> {
    let module = gsan_ptx::parse(ptx).map_err(|e| refused(name, &InstrumentError::Parse(e)))?;
    let described = gsan_ptx::instrument::describe(&module);
    if described.1.iter().any(|g| g.name == MODULE) {
        let message = "it is linked with gsan's runtime, which needs a session that checks: run it with instrumentation, or \
                       build it without the `sanitize` feature";
        return Err(Error::Instrument {
            module: name.into(),
            message: message.into(),
        });
    }
    Ok(Prepared {
        texts: vec![Input::new(name, ptx)],
        sites: Vec::new(),
        unsupported: Vec::new(),
        instrumented_sites: 0,
        instrumentation: None,
        kernels: kernels(described.0, Hidden::None),
        variables: variables(&described.1),
        linked_files: HashMap::new(),
    })
}

/// The file of each kernel's first `.loc`: where the kernel itself stands, whatever is inlined into it later.
fn source_files(ptx: &str) -> HashMap<String, String> {
    let Ok(module) = gsan_ptx::parse(ptx) else {
        return HashMap::new();
    };
    let file = |index: u32| {
        let entry = module.files.iter().find(|f| f.index == index)?;
        Some(match entry.directory {
            Some(directory) => format!("{directory}/{}", entry.name),
            None => entry.name.to_string(),
        })
    };
    let kernels = module.items.iter().filter_map(|item| match item {
        Item::Function(f) if f.entry => Some(f),
        _ => None,
    });
    kernels
        .filter_map(|f| {
            let first = first_loc(&f.body.as_ref()?.statements)?;
            Some((f.name.to_string(), file(first)?))
        })
        .collect()
}

fn first_loc(statements: &[Statement<'_>]) -> Option<u32> {
    statements.iter().find_map(|s| match s {
        Statement::Loc(loc) => Some(loc.file),
        Statement::Block { statements, .. } => first_loc(statements),
        _ => None,
    })
}

fn refused(name: &str, error: &InstrumentError) -> Error {
    let message = match error {
        InstrumentError::Parse(e) => {
            return Error::Syntax {
                message: format!("{name}:{}:{}: {}", e.line, e.column, e.message),
            };
        }
        other => other.to_string(),
    };
    Error::Instrument {
        module: match error.place() {
            Some((line, column)) => format!("{name}:{line}:{column}"),
            None => name.into(),
        },
        message,
    }
}

/// Where the launch record's address goes.
#[derive(Clone, Copy, PartialEq)]
enum Hidden {
    /// Nowhere.
    None,
    /// Behind the declared parameters.
    Added,
    /// It is the last declared one.
    Declared,
}

fn kernels(entries: Vec<EntryInfo>, hidden: Hidden) -> Vec<Kernel> {
    let users = entries
        .into_iter()
        .filter(|e| e.defined && !e.name.starts_with(PREFIX));
    users
        .map(|entry| {
            let mut params: Vec<ParamInfo> = entry.params.into_iter().map(param).collect();
            let declared = hidden == Hidden::Declared && params.last().is_some_and(|p| p.size == 8);
            if declared {
                params.pop();
            }
            Kernel {
                info: KernelInfo {
                    name: entry.name,
                    params,
                },
                hidden_parameter: declared || hidden == Hidden::Added,
                linked_by_hand: declared,
                required_threads: entry.required_threads,
                required_cluster: entry.required_cluster,
                intra_block: entry.intra_block,
                follows_grid_wait: false,
            }
        })
        .collect()
}

fn param(p: gsan_ptx::instrument::ParamInfo) -> ParamInfo {
    let narrow = |n: u64| u32::try_from(n).unwrap_or(u32::MAX);
    ParamInfo {
        name: p.name,
        ty: p.ty,
        size: narrow(p.size),
        align: narrow(p.align),
    }
}

fn variables(globals: &[GlobalVar]) -> Vec<String> {
    let users = globals
        .iter()
        .filter(|g| g.space == Space::Global && !g.name.starts_with(PREFIX));
    users.map(|g| g.name.clone()).collect()
}

/// `callers` are the user's places that call the function of a library which has no such place itself.
fn site(site: &gsan_ptx::Site, module: &str, callers: &[Vec<Place>]) -> Site {
    let (own, several) = match callers {
        [only] => (&only[..], &[][..]),
        several => (site.user_places(), several),
    };
    let mut places = own.iter();
    let plain = |p: &Place| (p.file.to_string(), p.line, p.column);
    let column = |c: u32| Some(c).filter(|&c| c != 0);
    let (file, line, at) = match places.next() {
        Some(place) => (place.file.to_string(), place.line, column(place.column)),
        None => (module.to_string(), site.ptx_line, column(site.ptx_column)),
    };
    Site {
        file,
        line,
        column: at,
        ptx_line: site.ptx_line,
        function: site.function.to_string(),
        inlined_at: places.map(plain).collect(),
        called_from: several
            .iter()
            .filter_map(|c| c.first())
            .map(plain)
            .collect(),
        // Callers say more.
        near: match callers {
            [] => site.near.iter().map(plain).collect(),
            _ => Vec::new(),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RUNTIME: &str = crate::CellFormat::Wide.built_in_runtime();
    const MODULE_TEXT: &str = "
.version 7.0
.target sm_80
.address_size 64
.visible .global .align 4 .u32 counter;
.global .align 4 .b8 table[12];
.const .align 4 .u32 fixed = 3;
.visible .entry k(.param .u64 p, .param .align 8 .b8 s[24])
.reqntid 64, 1, 1
{
    .reg .b64 %rd<2>;
    .reg .b32 %r<2>;
    ld.param.u64 %rd1, [p];
    mov.u32 %r1, 1;
    st.global.u32 [%rd1], %r1;
    ret;
}
";

    #[test]
    fn a_module_is_described_as_the_user_wrote_it() {
        for (prepared, hidden) in [
            (
                instrumented("m.ptx", &[("m.ptx", MODULE_TEXT)], RUNTIME, true, true).unwrap(),
                true,
            ),
            (plain(&[("m.ptx", MODULE_TEXT)]).unwrap(), false),
        ] {
            assert_eq!(prepared.kernels.len(), 1);
            let k = &prepared.kernels[0];
            assert_eq!((k.info.name.as_str(), k.hidden_parameter), ("k", hidden));
            assert_eq!(k.required_threads, Some([64, 1, 1]));
            let sizes: Vec<_> = k
                .info
                .params
                .iter()
                .map(|p| (p.name.as_str(), p.size, p.align))
                .collect();
            assert_eq!(sizes, [("p", 8, 8), ("s", 24, 8)]);
            assert_eq!(prepared.variables, ["counter", "table"]);
        }
    }

    #[test]
    fn sites_fall_back_to_the_line_of_the_ptx() {
        let prepared =
            instrumented("m.ptx", &[("m.ptx", MODULE_TEXT)], RUNTIME, true, true).unwrap();
        assert_eq!((prepared.sites.len(), prepared.instrumented_sites), (1, 1));
        let site = &prepared.sites[0];
        assert_eq!(
            (site.file.as_str(), site.function.as_str(), site.line),
            ("m.ptx", "k", site.ptx_line)
        );
        assert!(
            MODULE_TEXT
                .lines()
                .nth(site.line as usize - 1)
                .unwrap()
                .contains("st.global")
        );
    }

    #[test]
    fn a_librarys_own_function_is_told_at_its_call() {
        let text = |more: &str| {
            format!(
                ".version 7.0\n.target sm_80\n.address_size 64\n.func atomicAdd(.param .b64 p)\n{{\n.reg .b64 %p; .reg .b32 %r;\n\
                 .loc 2 30 3\nld.param.u64 %p, [p];\natom.add.u32 %r, [%p], 1;\nret;\n}}\n.visible .entry k(.param .u64 p)\n{{\n\
                 .reg .b64 %p;\nld.param.u64 %p, [p];\n.loc 1 7 5\n{{ .param .b64 q; call.uni atomicAdd, (q); }}\n{more}ret;\n}}\n\
                 .file 1 \"user.cu\"\n.file 2 \"sm_60_atomic_functions.hpp\"\n"
            )
        };
        let site = |text: &str, modules: usize| {
            let other = text.replace("k(", "other(").replace("atomicAdd", "another");
            let all = [("m.ptx", text), ("n.ptx", &*other)];
            let prepared = instrumented("p", &all[..modules], RUNTIME, true, true).unwrap();
            prepared.sites[0].clone()
        };
        let one = site(&text(""), 1);
        assert_eq!((one.file.as_str(), one.line), ("user.cu", 7));
        assert_eq!(
            (one.function.as_str(), one.called_from),
            ("atomicAdd", vec![])
        );
        let more = ".loc 1 9 5\n{ .param .b64 q; call.uni atomicAdd, (q); }\n";
        let two = site(&text(more), 1);
        assert_eq!(
            (two.file.as_str(), two.line),
            ("sm_60_atomic_functions.hpp", 30)
        );
        let calls = [("user.cu".to_string(), 7, 5), ("user.cu".to_string(), 9, 5)];
        assert_eq!(two.called_from, calls);
        // Another module may call it too.
        let linked = site(&text(""), 2);
        assert_eq!((linked.line, linked.called_from.len()), (30, 0));
    }

    #[test]
    fn the_runtime_brings_what_the_host_calls_by_name() {
        let prepared =
            instrumented("m.ptx", &[("m.ptx", MODULE_TEXT)], RUNTIME, true, true).unwrap();
        for name in [MODULE, "__gsan_join_rows"] {
            assert!(prepared.texts[1].text.contains(name), "{name}");
        }
    }

    #[test]
    fn a_linked_module_takes_the_launch_in_its_own_last_parameter() {
        let linked = MODULE_TEXT
            .replace(
                ".visible .entry",
                ".visible .global .align 8 .b8 __gsan_module[16];\n.visible .entry",
            )
            .replace(
                ".param .align 8 .b8 s[24]",
                ".param .u32 n, .param .u64 launch",
            );
        let prepared = instrumented("m.ptx", &[("m.ptx", &linked)], RUNTIME, true, true).unwrap();
        let k = &prepared.kernels[0];
        let names: Vec<_> = k.info.params.iter().map(|p| p.name.as_str()).collect();
        assert_eq!(
            (names.as_slice(), k.hidden_parameter),
            (["p", "n"].as_slice(), true)
        );
        assert_eq!(prepared.variables, ["counter", "table"]);
        assert!(prepared.linked_files.is_empty());
        let error = plain(&[("m.ptx", &linked)]).unwrap_err().to_string();
        assert!(error.contains("sanitize"), "{error}");
    }

    #[test]
    fn a_linked_kernels_file_is_that_of_its_first_loc() {
        let linked = MODULE_TEXT
            .replace(
                ".visible .entry",
                ".visible .global .align 8 .b8 __gsan_module[16];\n.visible .entry",
            )
            .replace(
                "    ld.param",
                "    .loc 2 49 0\n    .loc 1 7 9\n    ld.param",
            );
        let files = ".file 1 \"core.rs\"\n.file 2 \"src\" \"lib.rs\"\n";
        let prepared = instrumented(
            "m.ptx",
            &[("m.ptx", &format!("{linked}{files}"))],
            RUNTIME,
            true,
            true,
        )
        .unwrap();
        assert_eq!(
            prepared.linked_files.get("k").map(String::as_str),
            Some("src/lib.rs")
        );
        // A `.loc` without its `.file`.
        let prepared = instrumented("m.ptx", &[("m.ptx", &linked)], RUNTIME, true, true).unwrap();
        assert!(prepared.linked_files.is_empty());
    }

    #[test]
    fn a_syntax_error_is_one_line_that_names_file_and_line() {
        for parse in [
            |t: &str| instrumented("all", &[("bad.ptx", t)], RUNTIME, true, true),
            |t: &str| plain(&[("bad.ptx", t)]),
        ] {
            let error = parse(&MODULE_TEXT[..MODULE_TEXT.len() - 10])
                .unwrap_err()
                .to_string();
            assert!(
                error.starts_with("bad.ptx:") && error.lines().count() == 1,
                "{error}"
            );
        }
    }

    #[test]
    fn what_is_refused_at_one_place_names_it() {
        let old = MODULE_TEXT.replace("sm_80", "sm_52");
        let error = instrumented("m", &[("m.ptx", &old)], RUNTIME, true, true).unwrap_err();
        let error = error.to_string();
        assert!(
            error.contains("m.ptx:3:9: ") && error.contains("sm_52"),
            "{error}"
        );
    }

    #[test]
    fn linked_modules_number_their_sites_one_behind_the_other() {
        let other = MODULE_TEXT.replace(" k(", " second(");
        let modules = [("a.ptx", MODULE_TEXT), ("b.ptx", other.as_str())];
        let both = instrumented("program", &modules, RUNTIME, true, true).unwrap();
        let files: Vec<&str> = both.sites.iter().map(|s| s.file.as_str()).collect();
        assert_eq!(
            (files.as_slice(), both.texts.len()),
            (["a.ptx", "b.ptx"].as_slice(), 3)
        );
        assert!(both.texts[1].text.contains(", 1); st.global.u32"));
        // As many as its kernels' blocks leave.
        assert_eq!(both.texts[2].registers, Some(255));
        assert_eq!(both.variables, ["counter", "table"]);
        let names: Vec<&str> = both.kernels.iter().map(|k| k.info.name.as_str()).collect();
        assert_eq!(names, ["k", "second"]);
        assert!(both.kernels.iter().all(|k| k.intra_block));
        let one_thread = instrumented("program", &modules, RUNTIME, false, true).unwrap();
        assert!(one_thread.kernels.iter().all(|k| !k.intra_block));

        // A function that nobody can follow concerns the kernels of all modules; `setmaxnreg` is nothing of the kind.
        for (line, followed) in [
            ("bar.what 0;", false),
            ("setmaxnreg.inc.sync.aligned.u32 200;", true),
        ] {
            let more = format!("{other}.func f() {{ {line} ret; }}\n");
            let both = [modules[0], ("b.ptx", &more)];
            let both = instrumented("program", &both, RUNTIME, true, true).unwrap();
            assert!(
                both.kernels.iter().all(|k| k.intra_block == followed),
                "{line}"
            );
        }

        let done = format!("{MODULE_TEXT}.visible .global .align 8 .b8 __gsan_module[24];\n");
        let error = instrumented("program", &[("m", &done), modules[1]], RUNTIME, true, true);
        let error = error.unwrap_err().to_string();
        assert!(
            error.contains("already") && error.contains("`program`"),
            "{error}"
        );
    }
}
