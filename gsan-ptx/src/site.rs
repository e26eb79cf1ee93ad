//! The site table: where in the source, and in the PTX, an instrumented instruction stands.

mod callers;
mod debug_info;
mod debug_str;
mod near;
mod section;

pub use callers::callers;

use crate::ast::{FileEntry, Loc};
use crate::hook::OpWord;
use debug_info::DebugInfo;
pub(crate) use debug_info::DebugTexts;
use debug_str::DebugStrings;
pub(crate) use near::Near;
use std::collections::{HashMap, HashSet};
use std::sync::Arc;

/// An instrumented instruction. The hooks' `site` argument is its index in the module's table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Site {
    /// What it does.
    pub op: OpWord,
    /// Line in the PTX, from 1.
    pub ptx_line: u32,
    /// Column in the PTX, from 1, in bytes.
    pub ptx_column: u32,
    /// The `.entry` or `.func` that holds it, as the PTX names it.
    pub function: Arc<str>,
    /// The `.loc` in force and where that was inlined, innermost first. Empty: the module has no line for it.
    pub places: Vec<Place>,
    /// Where all of these are a library's: the last line of the user's before the instruction in the text of its function, and the first one
    /// behind it, if they are others. What the user wrote for it is there or close by.
    pub near: Vec<Place>,
}

/// A place in the source, as the compiler recorded it.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Place {
    /// The file, with its directory where the compiler names one.
    pub file: Arc<str>,
    /// From 1.
    pub line: u32,
    /// From 1; 0 = not recorded.
    pub column: u32,
    /// The function that was inlined from here, as the linker names it; `None` where the PTX does not say, which is
    /// always so for the outermost place (that is [`Site::function`]).
    pub function: Option<Arc<str>>,
}

impl Place {
    /// Whether this is code of a language's or vendor's library: what a user did not write.
    pub fn is_library(&self) -> bool {
        is_library(&self.file)
    }
}

fn is_library(file: &str) -> bool {
    const LIBRARIES: &[&str] = &[
        "library/core/",
        "library/alloc/",
        "library/std/",
        "stdarch/crates/",
        "compiler-builtins",
        "compiler_builtins",
        "/rustc/",
        "libcudacxx",
        "/cuda/std/",
        "/cuda/__",
        "/cub/",
        "/thrust/",
        "/cooperative_groups",
        "cuda/include/",
        "include/crt/",
        "__clang_cuda",
        "lib/clang/",
        "triton/language/",
        "gsan-device/src/",
    ];
    const HEADERS: &[&str] = &[
        "cuda_fp16.hpp",
        "cuda_bf16.hpp",
        "sm_20_intrinsics.hpp",
        "sm_30_intrinsics.hpp",
        "sm_32_intrinsics.hpp",
        "sm_32_atomic_functions.hpp",
        "sm_60_atomic_functions.hpp",
        "sm_70_rt.hpp",
        "device_atomic_functions.hpp",
        "device_functions.hpp",
        "cooperative_groups.h",
    ];
    LIBRARIES.iter().any(|part| file.contains(part))
        || HEADERS.iter().any(|name| file.ends_with(name))
}

impl Site {
    /// The innermost place outside of libraries; the innermost one of all where there is none.
    pub fn user_place(&self) -> Option<&Place> {
        self.places
            .iter()
            .find(|p| !p.is_library())
            .or_else(|| self.places.first())
    }

    /// The places from [`Site::user_place`] outwards.
    pub fn user_places(&self) -> &[Place] {
        let from = self
            .places
            .iter()
            .position(|p| !p.is_library())
            .unwrap_or(0);
        &self.places[from.min(self.places.len())..]
    }
}

/// Follows the `.loc`s of a function.
pub(crate) struct Locations<'a> {
    files: HashMap<u32, Arc<str>>,
    /// Those that no user wrote.
    libraries: HashSet<Arc<str>>,
    strings: DebugStrings<'a>,
    current: Option<Position>,
    /// What each position of this function was last said to be inlined at. nvcc writes one `.loc` per level, the outermost
    /// first, so the latest statement about a position is the one that belongs to the instruction.
    inlined: HashMap<Position, Inlined<'a>>,
    /// What the debugging sections say of inlined calls, where no `.loc` does.
    info: DebugInfo<'a>,
    /// Those that the code in progress stands in, by their number in `info`, outermost first.
    open: Vec<u32>,
}

/// File, line, column.
type Position = (u32, u32, u32);

#[derive(Clone, Copy)]
struct Inlined<'a> {
    at: Position,
    function: Option<(&'a str, u64)>,
}

/// Deeper chains than this are cut; compilers' inliners stop far earlier.
const MAX_CHAIN: usize = 64;

impl<'a> Locations<'a> {
    /// `files` are the module's, `texts` its debugging sections.
    pub(crate) fn new(files: &[FileEntry<'a>], texts: DebugTexts<'a>) -> Locations<'a> {
        let files: HashMap<u32, Arc<str>> = files.iter().map(|f| (f.index, path(f))).collect();
        Locations {
            libraries: files.values().filter(|f| is_library(f)).cloned().collect(),
            files,
            info: DebugInfo::read(&texts),
            open: Vec::new(),
            strings: DebugStrings::new(texts.strings),
            current: None,
            inlined: HashMap::new(),
        }
    }

    /// A new function begins.
    pub(crate) fn reset(&mut self) {
        self.current = None;
        self.open.clear();
        // Not `clear`: that walks the whole table, which one large function may have left behind.
        self.inlined = HashMap::new();
    }

    /// The line, if a user wrote it.
    fn user_line(&self, loc: &Loc<'a>) -> Option<Place> {
        // Without libraries nobody asks.
        if self.libraries.is_empty() || loc.line == 0 {
            return None;
        }
        let file = self.files.get(&loc.file)?;
        (!self.libraries.contains(file)).then(|| Place {
            file: file.clone(),
            line: loc.line,
            column: loc.column,
            function: None,
        })
    }

    /// Whether there are places, and all of them are a library's.
    fn lost(&self, places: &[Place]) -> bool {
        !places.is_empty() && places.iter().all(|p| self.libraries.contains(&p.file))
    }

    /// The code has come to a label.
    pub(crate) fn label(&mut self, name: &str) {
        if self.info.calls.is_empty() {
            return;
        }
        if let Some(ends) = self.info.ends.get(name) {
            self.open.retain(|call| !ends.contains(call));
        }
        if let Some(begins) = self.info.begins.get(name) {
            let calls = &self.info.calls;
            // A broken file could open one call a thousand times.
            let room = MAX_CHAIN.saturating_sub(self.open.len());
            self.open.extend(begins.iter().take(room));
            self.open.sort_by_key(|call| calls[*call as usize].depth);
        }
    }

    pub(crate) fn see(&mut self, loc: &Loc<'a>) {
        let position = (loc.file, loc.line, loc.column);
        match loc.inlined_at {
            Some(at) => {
                self.inlined.insert(
                    position,
                    Inlined {
                        at,
                        function: loc.function_name,
                    },
                );
            }
            None if self.inlined.is_empty() => {}
            None => {
                self.inlined.remove(&position);
            }
        }
        self.current = Some(position);
    }

    /// The chain in force, innermost first. Positions without a line (line 0: the compiler's own code) are left out.
    pub(crate) fn places(&mut self) -> Vec<Place> {
        let mut places = Vec::new();
        let Some(mut position) = self.current else {
            return places;
        };
        for _ in 0..MAX_CHAIN {
            let next = self.inlined.get(&position).copied();
            let (file, line, column) = position;
            if let (Some(file), true) = (self.files.get(&file), line > 0) {
                let function = next
                    .and_then(|n| n.function)
                    .and_then(|(label, offset)| self.strings.get(label, offset));
                places.push(Place {
                    file: file.clone(),
                    line,
                    column,
                    function,
                });
            }
            match next {
                Some(next) if next.at != position => position = next.at,
                _ => break,
            }
        }
        if self.inlined.is_empty() {
            self.callers(&mut places);
        }
        places
    }

    /// Adds the calls that the debugging sections know to a place that no `.loc` has a call for.
    fn callers(&self, places: &mut Vec<Place>) {
        let calls = || {
            self.open
                .iter()
                .rev()
                .map(|call| &self.info.calls[*call as usize])
        };
        let (Some(innermost), Some(place)) = (calls().next(), places.last_mut()) else {
            return;
        };
        // The range of a call that was taken apart covers what stands between its parts as well. There is no telling for
        // sure, but the user's own line in the midst of a library's function is such a gap.
        let called_by_library = self
            .files
            .get(&innermost.call.0)
            .is_some_and(|file| is_library(file));
        if !place.is_library() && called_by_library {
            return;
        }
        place.function = innermost.function.clone();
        for (n, call) in calls().enumerate() {
            let (file, line, column) = call.call;
            if let (Some(file), true) = (self.files.get(&file), line > 0) {
                places.push(Place {
                    file: file.clone(),
                    line,
                    column,
                    function: calls().nth(n + 1).and_then(|outer| outer.function.clone()),
                });
            }
        }
    }
}

fn path(file: &FileEntry<'_>) -> Arc<str> {
    match file.directory {
        Some(directory) if !directory.is_empty() && !file.name.starts_with('/') => {
            format!("{}/{}", directory.trim_end_matches('/'), file.name).into()
        }
        _ => file.name.into(),
    }
}
