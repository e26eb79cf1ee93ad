//! From PTX text to a [`Program`]: variables get addresses, functions are decoded.

mod cancel;
mod control;
mod copy;
mod data;
mod function;
mod layout;
mod matrix;
mod multimem;
mod opcode;
mod operand;
pub mod slack;
mod tcgen05;
mod texture;
mod video;

use std::sync::Arc;

use gsan_ptx::ast::{self, Item};
use rustc_hash::FxHashMap;

use super::ir::{Builtin, Function, Program};
use super::memory::{Access, Backing, Memory};
use super::places;
use super::{FunctionInfo, LoadError, ModuleId};
use crate::{Config, MemoryModel};

/// Function addresses: this plus the function's index times 16.
pub const FUNCTION_BASE: u64 = 0x0003_0010_0000_0000;

/// What a name stands for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Symbol {
    /// A `.global` or `.const` variable.
    Memory(u64),
    /// A static `.shared` variable, at that shared address.
    Shared(u32),
    /// An `.extern .shared` array of that alignment.
    DynamicShared(u32),
    /// A `.local` or `.param` variable of the frame: offset and size.
    Frame(u32, u32),
    /// A kernel's parameter: offset and size.
    Param(u32, u32),
    /// A function with a body.
    Function(u32),
    /// A function that the machine provides.
    Builtin(Builtin),
    /// Declared `.extern` and defined nowhere.
    Undefined,
}

/// A module in memory.
pub struct LoadedModule {
    /// Its code.
    pub program: Arc<Program>,
    /// The device.
    pub device: u32,
    /// Name, address and size of its variables.
    pub globals: FxHashMap<String, (u64, u64)>,
    /// The regions that they live in.
    allocations: Vec<u64>,
    managed: Vec<Arc<Backing>>,
    /// Its kernels: index in the program, and what is known of them.
    pub kernels: Vec<(u32, FunctionInfo)>,
}

impl LoadedModule {
    /// Gives the variables' memory back.
    pub fn free(self, memory: &mut Memory) {
        for va in self.allocations {
            memory.free_internal(va);
        }
        for backing in self.managed {
            memory.unregister_host(backing.as_ptr());
        }
    }
}

/// What all functions of a module share while they are decoded.
pub struct Context<'a> {
    /// Names at module level.
    pub symbols: FxHashMap<&'a str, Symbol>,
    /// Static shared variables inside functions, by the start of their declaration.
    pub shared: FxHashMap<usize, u32>,
    /// Variables in `.global` and `.const` space inside functions, by the start of their declaration.
    pub inner: FxHashMap<usize, u64>,
    /// For line numbers.
    pub newlines: Vec<usize>,
    /// The text.
    pub text: &'a str,
}

impl Context<'_> {
    /// Line and column, from 1, of a byte.
    pub fn place(&self, offset: usize) -> (u32, u32) {
        let line = self.newlines.partition_point(|&n| n < offset);
        let start = if line == 0 {
            0
        } else {
            self.newlines[line - 1] + 1
        };
        (line as u32 + 1, (offset - start) as u32 + 1)
    }

    /// An error at a byte.
    pub fn error(&self, offset: usize, message: impl Into<String>) -> LoadError {
        let (line, column) = self.place(offset);
        LoadError {
            message: message.into(),
            line,
            column,
        }
    }
}

/// Loads a module onto a device.
pub fn load(
    text: &str,
    device: u32,
    id: ModuleId,
    memory: &mut Memory,
    config: &Config,
) -> Result<LoadedModule, LoadError> {
    let text = text.trim_end_matches('\0');
    let module = gsan_ptx::parse(text).map_err(|e| LoadError {
        message: e.message,
        line: e.line as u32,
        column: e.column as u32,
    })?;
    let mut context = Context {
        symbols: FxHashMap::default(),
        shared: FxHashMap::default(),
        inner: FxHashMap::default(),
        newlines: text
            .bytes()
            .enumerate()
            .filter(|&(_, b)| b == b'\n')
            .map(|(i, _)| i)
            .collect(),
        text,
    };
    let bodies = functions(&module);
    declare_functions(&module, &bodies, &mut context);
    let mut loaded = LoadedModule {
        program: Arc::default(),
        device,
        globals: FxHashMap::default(),
        allocations: Vec::new(),
        managed: Vec::new(),
        kernels: Vec::new(),
    };
    match build(
        &module,
        &bodies,
        &mut context,
        &mut loaded,
        id,
        memory,
        config,
    ) {
        Ok(()) => Ok(loaded),
        Err(e) => {
            loaded.free(memory);
            Err(e)
        }
    }
}

fn build<'a>(
    module: &ast::Module<'a>,
    bodies: &[&ast::Function<'a>],
    context: &mut Context<'a>,
    loaded: &mut LoadedModule,
    id: ModuleId,
    memory: &mut Memory,
    config: &Config,
) -> Result<(), LoadError> {
    let const_bytes = place_variables(module, bodies, context, loaded, memory)?;
    let shared = layout::shared(module, bodies, context, config.reserved_shared)?;
    let mut program = Program::default();
    for file in &module.files {
        program.files.insert(file.index, file.name.to_string());
    }
    let mut constants = FxHashMap::default();
    for (index, body) in bodies.iter().enumerate() {
        let mut f = function::decode(body, context, &mut program, &mut constants)?;
        f.static_shared = shared.statics[index];
        if body.entry {
            let info = info(body, &f, module, id, const_bytes, shared.aligns[index]);
            loaded.kernels.push((index as u32, info));
        }
        program.functions.push(f);
    }
    places::mark_runtime(&mut program);
    if config.memory == MemoryModel::Weak {
        program.slack = slack::all(&program);
    }
    loaded.program = Arc::new(program);
    Ok(())
}

/// The functions with bodies, in the order of the text.
fn functions<'m, 'a>(module: &'m ast::Module<'a>) -> Vec<&'m ast::Function<'a>> {
    module
        .items
        .iter()
        .filter_map(|item| match item {
            Item::Function(f) if f.body.is_some() => Some(f),
            _ => None,
        })
        .collect()
}

fn declare_functions<'a>(
    module: &ast::Module<'a>,
    bodies: &[&ast::Function<'a>],
    context: &mut Context<'a>,
) {
    for item in &module.items {
        if let Item::Function(f) = item {
            let symbol = match f.name {
                "vprintf" => Symbol::Builtin(Builtin::Vprintf),
                "__assertfail" => Symbol::Builtin(Builtin::AssertFail),
                "malloc" => Symbol::Builtin(Builtin::Malloc),
                "free" => Symbol::Builtin(Builtin::Free),
                _ => Symbol::Undefined,
            };
            context.symbols.insert(f.name, symbol);
        }
    }
    for (index, f) in bodies.iter().enumerate() {
        context
            .symbols
            .insert(f.name, Symbol::Function(index as u32));
    }
    for item in &module.items {
        if let Item::Other { span, .. } = item
            && let Some((alias, of)) = context.text.get(span.clone()).and_then(alias)
            && let Some(&symbol) = context.symbols.get(of)
        {
            context.symbols.insert(alias, symbol);
        }
    }
}

/// The two names in `.alias NAME, FUNCTION;`.
fn alias(text: &str) -> Option<(&str, &str)> {
    let names = text.trim().strip_prefix(".alias")?.trim_end_matches(';');
    let (alias, of) = names.split_once(',')?;
    Some((alias.trim(), of.trim()))
}

/// Gives `.global` and `.const` variables memory and their first values; returns the bytes of constants.
fn place_variables<'a>(
    module: &ast::Module<'a>,
    bodies: &[&ast::Function<'a>],
    context: &mut Context<'a>,
    loaded: &mut LoadedModule,
    memory: &mut Memory,
) -> Result<u32, LoadError> {
    let mut variables: Vec<(&ast::Variable<'a>, bool)> = Vec::new();
    for item in &module.items {
        if let Item::Variable(v) = item {
            variables.push((v, true));
        }
    }
    for body in bodies.iter().filter_map(|f| f.body.as_ref()) {
        layout::inner_variables(&body.statements, &mut |v| variables.push((v, false)));
    }
    let mut placed = Vec::new();
    let mut const_bytes = 0u64;
    for (v, top) in variables {
        if !matches!(v.space, ast::Space::Global | ast::Space::Const) {
            continue;
        }
        let size = layout::size_of(v).ok_or_else(|| {
            context.error(
                v.span.start,
                format!("the size of `{}` is not known", v.name),
            )
        })?;
        if v.linkage == Some("extern") {
            context.symbols.entry(v.name).or_insert(Symbol::Undefined);
            continue;
        }
        let no_memory = context.error(
            v.span.start,
            format!("no memory for `{}` ({size} bytes)", v.name),
        );
        let address = if v.managed {
            let backing = Backing::new(size).ok_or(no_memory.clone())?;
            // SAFETY: the backing lives in `loaded`, which unregisters the memory before it drops it.
            unsafe { memory.register_host(backing.as_ptr(), size) }.map_err(|_| no_memory)?;
            loaded.managed.push(backing.clone());
            backing.as_ptr() as u64
        } else {
            let va = memory
                .allocate_internal(loaded.device, size)
                .ok_or(no_memory)?;
            loaded.allocations.push(va);
            va
        };
        if v.space == ast::Space::Const {
            const_bytes += size;
        }
        if top {
            context.symbols.insert(v.name, Symbol::Memory(address));
            loaded.globals.insert(v.name.to_string(), (address, size));
        } else {
            context.inner.insert(v.span.start, address);
        }
        placed.push((v, address, size));
    }
    for (v, address, size) in placed {
        if v.init.is_some() {
            let bytes = layout::initial(v, size, context)?;
            memory
                .write(address, &bytes)
                .map_err(|e| context.error(v.span.start, e.to_string()))?;
        }
        if v.space == ast::Space::Const {
            let rights = Access {
                read: u64::MAX,
                write: 0,
            };
            memory
                .set_access(address, size, rights)
                .map_err(|e| context.error(v.span.start, e.to_string()))?;
        }
    }
    Ok(const_bytes.min(u64::from(u32::MAX)) as u32)
}

fn info(
    body: &ast::Function<'_>,
    f: &Function,
    module: &ast::Module<'_>,
    id: ModuleId,
    const_bytes: u32,
    shared_align: u32,
) -> FunctionInfo {
    let attribute = |name: &str| {
        body.attributes
            .iter()
            .find(|a| a.name == name)
            .map(|a| &a.values[..])
    };
    let three = |values: &[u64]| [0, 1, 2].map(|i| values.get(i).copied().unwrap_or(1) as u32);
    let required_block = attribute("reqntid").map(three);
    let product = |v: [u32; 3]| v.iter().fold(1u32, |p, &x| p.saturating_mul(x));
    let max_threads = required_block
        .or_else(|| attribute("maxntid").map(three))
        .map_or(1024, |v| product(v).clamp(1, 1024));
    let limit = attribute("maxnreg")
        .and_then(|v| v.first().copied())
        .unwrap_or(255) as u32;
    let (params, param_bytes) = layout::params(&body.params);
    let (major, minor) = module.version.unwrap_or((0, 0));
    let target = module.target.iter().find_map(|t| {
        let digits: String = t
            .strip_prefix("sm_")?
            .chars()
            .take_while(char::is_ascii_digit)
            .collect();
        digits.parse().ok()
    });
    FunctionInfo {
        name: body.name.to_string(),
        module: id,
        static_shared: f.static_shared,
        shared_align,
        local_bytes: f.frame,
        const_bytes,
        registers: f.pressure.clamp(16, 255).min(limit.max(16)),
        max_threads,
        required_block,
        required_cluster: attribute("reqnctapercluster").map(three),
        params,
        param_bytes,
        ptx_version: major * 10 + minor,
        target: target.unwrap_or(0),
    }
}
