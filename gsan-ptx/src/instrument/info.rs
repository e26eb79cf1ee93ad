//! What the host must know of a module: its kernels, their parameters, its variables.

use crate::ast::{Function, Item, Module, Space, Variable};
use crate::memory_op::type_size;
use std::collections::HashSet;

/// A kernel.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EntryInfo {
    /// Its name.
    pub name: String,
    /// The user's parameters; the hidden one comes behind them.
    pub params: Vec<ParamInfo>,
    /// `.reqntid`: the block shape that it demands.
    pub required_threads: Option<[u32; 3]>,
    /// `.maxntid`: the largest block, threads.
    pub max_threads: Option<u64>,
    /// `.maxnreg`: registers per thread that it allows itself.
    pub max_registers: Option<u32>,
    /// `.reqnctapercluster`: the cluster shape that it demands.
    pub required_cluster: Option<[u32; 3]>,
    /// Whether it has a body here.
    pub defined: bool,
    /// It moves registers between its warps (`setmaxnreg`).
    pub changes_registers: bool,
    /// Its hooks follow the order of a block's threads, so that races between them can be found. False with
    /// [`super::Options::intra_block`] off, with a runtime that lacks those hooks, in kernels with `setmaxnreg`, and where a barrier was
    /// not understood: the runtime then has to take a block as one thread. False too where there are no hooks at all.
    pub intra_block: bool,
    /// Whether it has hooks. Without any there is nothing in it that is checked; where there would be, the list of what is not
    /// checked names the kernel.
    pub hooks: bool,
}

impl EntryInfo {
    /// Bytes of the user's parameters, gaps for alignment included.
    pub fn parameter_bytes(&self) -> u64 {
        self.params.iter().fold(0u64, |at, p| {
            let at = at.checked_next_multiple_of(p.align.max(1)).unwrap_or(at);
            at.saturating_add(p.size)
        })
    }
}

/// A kernel's parameter.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ParamInfo {
    /// Its name.
    pub name: String,
    /// Bytes.
    pub size: u64,
    /// Bytes.
    pub align: u64,
    /// The scalar type as written, `b8` for structs.
    pub ty: String,
    /// The compiler says that it is a pointer (`.ptr`).
    pub pointer: bool,
}

/// A variable of the module in global or constant memory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GlobalVar {
    /// Its name.
    pub name: String,
    /// Bytes; 0 for `.extern` arrays of unknown length.
    pub size: u64,
    /// Bytes.
    pub align: u64,
    /// [`Space::Global`] or [`Space::Const`].
    pub space: Space,
    /// `.attribute(.managed)`.
    pub managed: bool,
    /// `visible`, `extern`, `weak`, `common`; `None`: the module's own.
    pub linkage: Option<String>,
}

/// Counts of a module.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Stats {
    /// Instructions in all bodies.
    pub instructions: u64,
    /// Instrumented loads.
    pub loads: u64,
    /// Instrumented stores.
    pub stores: u64,
    /// Instrumented `atom` and `red`, compare-and-swap apart.
    pub rmws: u64,
    /// Instrumented compare-and-swaps.
    pub compare_and_swaps: u64,
    /// How many of the above are strong (relaxed or more).
    pub strong: u64,
    /// How many of the above have a generic address.
    pub generic: u64,
    /// How many of the above are predicated.
    pub predicated: u64,
    /// Fences with a hook.
    pub fences: u64,
    /// `bar` and `barrier`, hooked or not.
    pub barriers: u64,
    /// Barriers with hooks.
    pub barrier_hooks: u64,
    /// Strong accesses to shared memory, and waits for mbarriers and for the cluster, with a hook.
    pub block_syncs: u64,
    /// Arrivals and releases that other blocks of a cluster may see, with a hook.
    pub cluster_syncs: u64,
    /// Accesses to shared memory of the block or cluster: not checked.
    pub shared: u64,
    /// Accesses to local memory: no hook.
    pub local: u64,
    /// Accesses to parameters: no hook.
    pub param: u64,
    /// Accesses to constant memory: no hook.
    pub constant: u64,
    /// Plain accesses to what the same straight-line code has checked before: no hook.
    pub repeated: u64,
    /// Generic accesses that are provably to the thread's own stack or the block's shared memory: no hook.
    pub private_generic: u64,
    /// Accesses of no bytes (copies of size 0, vectors of which nothing is used): no hook.
    pub empty: u64,
    /// Non-coherent loads without a hook, with [`super::Options::stale_nc`] off.
    pub non_coherent: u64,
    /// Instructions that touch global memory and get no hook.
    pub unsupported: u64,
}

/// The counts of what has hooks, or is covered by some.
pub(super) type HookCounts = [u64; 12];

impl Stats {
    fn hook_counts_mut(&mut self) -> [&mut u64; 12] {
        [
            &mut self.loads,
            &mut self.stores,
            &mut self.rmws,
            &mut self.compare_and_swaps,
            // What a check covers that has gone is not checked either.
            &mut self.repeated,
            &mut self.strong,
            &mut self.generic,
            &mut self.predicated,
            &mut self.fences,
            &mut self.barrier_hooks,
            &mut self.block_syncs,
            &mut self.cluster_syncs,
        ]
    }

    pub(super) fn hook_counts(mut self) -> HookCounts {
        self.hook_counts_mut().map(|n| *n)
    }

    /// Hooks are taken back; what would have been checked is not.
    pub(super) fn take_back(&mut self, counts: HookCounts) {
        for (sum, count) in self.hook_counts_mut().into_iter().zip(counts) {
            *sum -= count;
        }
        self.unsupported += counts[..5].iter().sum::<u64>();
    }

    /// Everything that got an access or sync hook.
    pub fn sites(&self) -> u64 {
        self.loads + self.stores + self.rmws + self.compare_and_swaps
    }
}

/// Bytes of a variable; `None` where a dimension is missing or the type has no size.
fn size(variable: &Variable<'_>) -> Option<u64> {
    let scalar = u64::from(type_size(variable.ty)?) * u64::from(variable.vector);
    variable
        .dims
        .iter()
        .try_fold(scalar, |size, dim| size.checked_mul((*dim)?))
}

fn align(variable: &Variable<'_>) -> u64 {
    let natural = u64::from(type_size(variable.ty).unwrap_or(8)) * u64::from(variable.vector);
    variable.align.map_or(natural, u64::from)
}

/// A kernel that is declared, and defined elsewhere in the module, is one kernel.
pub(super) fn without_declarations(entries: &mut Vec<EntryInfo>) {
    let names = |e: &EntryInfo| e.defined.then(|| e.name.clone());
    if entries.iter().all(|e| e.defined) {
        return;
    }
    let mut known: HashSet<String> = entries.iter().filter_map(names).collect();
    entries.retain(|e| e.defined || known.insert(e.name.clone()));
}

pub(super) fn entries(module: &Module<'_>) -> Vec<EntryInfo> {
    let functions = module.items.iter().filter_map(|item| match item {
        Item::Function(f) if f.entry => Some(f),
        _ => None,
    });
    let mut entries = functions.map(entry).collect();
    without_declarations(&mut entries);
    entries
}

/// What the host must know of a kernel.
pub(super) fn entry(function: &Function<'_>) -> EntryInfo {
    let attribute = |name| {
        function
            .attributes
            .iter()
            .find(|a| a.name == name)
            .map(|a| &a.values)
    };
    let shape = |name| {
        attribute(name).map(|values| {
            let at = |i: usize| {
                values
                    .get(i)
                    .map_or(1, |&v| u32::try_from(v).unwrap_or(u32::MAX))
            };
            [at(0), at(1), at(2)]
        })
    };
    let params = function.params.iter().map(|p| ParamInfo {
        name: p.name.to_string(),
        // Opaque handles (`.texref`, `.samplerref`) are passed as 64-bit numbers.
        size: size(p).unwrap_or(8),
        align: align(p),
        ty: p.ty.to_string(),
        pointer: p.ptr.is_some(),
    });
    EntryInfo {
        name: function.name.to_string(),
        params: params.collect(),
        required_threads: shape("reqntid"),
        max_threads: attribute("maxntid").map(|v| v.iter().fold(1u64, |n, &d| n.saturating_mul(d))),
        max_registers: attribute("maxnreg").and_then(|v| u32::try_from(*v.first()?).ok()),
        required_cluster: shape("reqnctapercluster"),
        defined: function.body.is_some(),
        changes_registers: false,
        intra_block: false,
        hooks: false,
    }
}

pub(super) fn globals(module: &Module<'_>) -> Vec<GlobalVar> {
    let variables = module.items.iter().filter_map(|item| match item {
        Item::Variable(v) if matches!(v.space, Space::Global | Space::Const) => Some(v),
        _ => None,
    });
    let described = variables.map(|v| {
        // `x[] = {…}` takes its length from the initialiser.
        let initial = || {
            let scalar = u64::from(type_size(v.ty)?) * u64::from(v.vector);
            Some(scalar * v.init.as_ref()?.len() as u64)
        };
        GlobalVar {
            name: v.name.to_string(),
            size: size(v).or_else(initial).unwrap_or(0),
            align: align(v),
            space: v.space,
            managed: v.managed,
            linkage: v.linkage.map(str::to_string),
        }
    });
    described.collect()
}
