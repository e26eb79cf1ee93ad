//! What an instruction does to memory that other blocks can see.
//!
//! The rule that everything here serves: an instruction that can touch global memory is either an [`Effect::Access`],
//! which gets hooks, or [`Effect::Unsupported`], which is listed in the report. Nothing in between: an opcode that this
//! file does not know and that has an operand in brackets is unsupported.
//!
//! Producers disagree on the order of modifiers (`atom.global.gpu.acq_rel.add`, `atom.add.acq_rel.gpu`,
//! `atom.cas.b128.relaxed.gpu.global`), so they are read as a set.

mod copy;
mod used;

pub use copy::{AsyncCopy, BulkCopy, BulkGroup, Remote};
pub use used::{MOST_STRONG, Piece};

use crate::ast::{Address, Instruction, Operand, Space};
use crate::hook::{Access, OpWord, Order, Scope};
use copy::copy;

/// What an instruction does.
#[derive(Debug, Clone, PartialEq)]
pub enum Effect<'i, 'a> {
    /// Nothing that concerns data in global memory.
    None,
    /// A load, store or atomic in global or generic space.
    Access(MemoryOp<'i, 'a>),
    /// A bulk copy from or to global memory.
    Copy(BulkCopy<'i, 'a>),
    /// What a thread does with its bulk copies to global memory.
    CopyGroup(BulkGroup),
    /// A fence between threads.
    Fence(Order, Scope),
    /// A barrier of the block, or of the cluster.
    Barrier,
    /// An access to memory that no other block can see, or that nobody writes: shared, local, parameter, constant.
    Private(Space),
    /// Touches global memory, or may do so, and is not checked.
    Unsupported(&'static str),
}

/// A load, store or atomic in global or generic space.
#[derive(Debug, Clone, PartialEq)]
pub struct MemoryOp<'i, 'a> {
    /// What it does.
    pub access: Access,
    /// Its ordering.
    pub order: Order,
    /// Its scope; [`Scope::None`] for weak accesses.
    pub scope: Scope,
    /// Bytes.
    pub size: u32,
    /// Scalar elements that it consists of (vectors, packed types): PTX's memory model sees that many accesses.
    pub elements: u32,
    /// True if the address is generic.
    pub generic: bool,
    /// `.volatile` was written.
    pub volatile: bool,
    /// `ld.global.nc`, `ldu`.
    pub non_coherent: bool,
    /// Whether a result comes back that tells of the old value (`ld`, `atom`), so that there is something to acquire.
    pub returns: bool,
    /// The address.
    pub address: &'i Address<'a>,
    /// Where the result goes.
    pub destination: Option<&'i Operand<'a>>,
    /// What a CAS compares with.
    pub comparand: Option<&'i Operand<'a>>,
    /// For `cp.async`, which reads its source as a plain load does.
    pub copy: Option<AsyncCopy<'i, 'a>>,
    /// Carried out later than issued: `st.async`, `red.async`.
    pub asynchronous: bool,
    /// Of multicast memory: of all that is bound there.
    pub multicast: bool,
    /// The bytes of it that are accessed, one bit each, where that is not all of them.
    pub used: Option<u32>,
}

impl MemoryOp<'_, '_> {
    /// The hooks' word for it.
    pub fn op_word(&self) -> OpWord {
        OpWord::new(self.access, self.size, self.order, self.scope)
            .elements(self.elements)
            .with(OpWord::VOLATILE, self.volatile)
            .with(OpWord::NON_COHERENT, self.non_coherent)
            .with(OpWord::GENERIC, self.generic)
    }

    /// Whether it synchronises, or could: everything but plain loads and stores.
    pub fn is_strong(&self) -> bool {
        self.order != Order::Weak
    }
}

/// Bytes of a scalar type; `None` for types that memory operations do not have.
pub fn type_size(ty: &str) -> Option<u32> {
    Some(match ty {
        "b8" | "u8" | "s8" | "e4m3" | "e5m2" => 1,
        "b16" | "u16" | "s16" | "f16" | "bf16" | "e4m3x2" | "e5m2x2" => 2,
        "b32" | "u32" | "s32" | "f32" | "f16x2" | "bf16x2" | "tf32" | "e4m3x4" | "e5m2x4" => 4,
        "b64" | "u64" | "s64" | "f64" => 8,
        "b128" => 16,
        _ => return None,
    })
}

/// Says what `instruction` does.
pub fn classify<'i, 'a>(instruction: &'i Instruction<'a>) -> Effect<'i, 'a> {
    let has = |m| instruction.has(m);
    match instruction.opcode {
        "ld" | "ldu" => load_store(instruction, Access::Load),
        "st" if has("async") || has("bulk") => async_store(instruction),
        "st" => load_store(instruction, Access::Store),
        "atom" => atomic(instruction, true),
        "red" if has("async") => async_store(instruction),
        "red" => atomic(instruction, false),
        "fence" | "membar" => fence(instruction),
        // `bar.warp.sync` orders the threads of one warp, which are one logical thread at least.
        "bar" | "barrier" if has("warp") => Effect::None,
        "bar" | "barrier" => Effect::Barrier,
        "cp" => copy(instruction),
        "multimem" => multimem(instruction),
        _ => by_opcode(instruction),
    }
}

/// Everything that is neither `ld/st/atom/red` nor a fence, barrier or copy.
fn by_opcode<'i, 'a>(instruction: &'i Instruction<'a>) -> Effect<'i, 'a> {
    let shared = matches!(
        space(instruction),
        Some(Space::Shared | Space::SharedCluster)
    );
    match instruction.opcode {
        // Hints. They bring lines into caches or rank them; no value is read or written, so they race with nothing.
        "prefetch" | "prefetchu" | "applypriority" | "createpolicy" => Effect::None,
        // Unlike those, `discard` makes the old contents undefined: that is a write, though nobody sees its value.
        "discard" => discard(instruction),
        // Address arithmetic and queries with a bracketed operand or a space in their name.
        "cvta" | "isspacep" | "mapa" | "getctarank" | "txq" | "suq" | "istypep" => Effect::None,
        // Shared memory only, by definition.
        "ldmatrix" | "stmatrix" | "mbarrier" | "clusterlaunchcontrol" => {
            Effect::Private(Space::Shared)
        }
        // Tensor memory and shared memory through descriptors. The brackets hold tensor memory addresses.
        "tcgen05" => Effect::None,
        "wgmma" | "mma" => Effect::None,
        "wmma" if instruction.has("mma") => Effect::None,
        "wmma" if shared => Effect::Private(Space::Shared),
        "wmma" => {
            Effect::Unsupported("matrix loads and stores (wmma) in global memory are not checked")
        }
        "tex" | "tld4" => Effect::Unsupported("texture reads are not checked"),
        "suld" | "sust" | "sured" => Effect::Unsupported("surface accesses are not checked"),
        "tensormap" if shared => Effect::Private(Space::Shared),
        "tensormap" => {
            Effect::Unsupported("changes of a tensor map in global memory are not checked")
        }
        // `mov` takes addresses (`mov.u64 %rd1, table[3]`), it follows none.
        "mov" => Effect::None,
        "stackrestore" | "stacksave" | "alloca" | "call" | "bra" | "brx" | "ret" | "exit" => {
            Effect::None
        }
        _ if instruction.operands.iter().any(is_bracketed) => {
            Effect::Unsupported("unknown instruction with a memory operand")
        }
        _ => Effect::None,
    }
}

fn is_bracketed(operand: &Operand<'_>) -> bool {
    match operand {
        Operand::Address(_) | Operand::Tensor(_) => true,
        Operand::Raw(text) => text.contains('['),
        Operand::Vector(list) | Operand::List(list) => list.iter().any(is_bracketed),
        Operand::Pair(a, b) => is_bracketed(a) || is_bracketed(b),
        _ => false,
    }
}

/// The state space among the modifiers; `None` if there is none: generic.
fn space(instruction: &Instruction<'_>) -> Option<Space> {
    instruction.modifiers.iter().find_map(|m| {
        Some(match *m {
            "global" => Space::Global,
            "shared" | "shared::cta" => Space::Shared,
            "shared::cluster" => Space::SharedCluster,
            "local" => Space::Local,
            "const" => Space::Const,
            "param" | "param::entry" | "param::func" => Space::Param,
            _ => return None,
        })
    })
}

fn scope(instruction: &Instruction<'_>) -> Option<Scope> {
    instruction.modifiers.iter().find_map(|m| {
        Some(match *m {
            "cta" => Scope::Cta,
            "cluster" => Scope::Cluster,
            "gpu" | "gl" => Scope::Gpu,
            "sys" => Scope::Sys,
            _ => return None,
        })
    })
}

fn order(instruction: &Instruction<'_>) -> Option<Order> {
    instruction.modifiers.iter().find_map(|m| {
        Some(match *m {
            "weak" => Order::Weak,
            "relaxed" => Order::Relaxed,
            "acquire" => Order::Acquire,
            "release" => Order::Release,
            "acq_rel" => Order::AcqRel,
            "sc" => Order::Sc,
            _ => return None,
        })
    })
}

/// Bytes (vector length times type) and scalar elements. `None` if the type is missing or unknown.
fn size(instruction: &Instruction<'_>) -> Option<(u32, u32)> {
    let mut lanes = 1;
    let mut packed = 1;
    let mut size = None;
    for m in &instruction.modifiers {
        match *m {
            "v2" => lanes = 2,
            "v4" => lanes = 4,
            "v8" => lanes = 8,
            // The last type counts: conversions name the register's type first.
            _ => {
                if let Some(bytes) = type_size(m) {
                    size = Some(bytes);
                    packed = match m.as_bytes() {
                        [.., b'x', n @ (b'2' | b'4')] => u32::from(n - b'0'),
                        _ => 1,
                    };
                }
            }
        }
    }
    size.map(|s| (s * lanes, packed * lanes))
}

/// The space of an access that gets hooks: `Ok(true)` for generic; otherwise what to answer.
fn hooked_space<'i, 'a>(instruction: &Instruction<'_>) -> Result<bool, Effect<'i, 'a>> {
    match space(instruction) {
        None => Ok(true),
        Some(Space::Global) => Ok(false),
        Some(other) => Err(Effect::Private(other)),
    }
}

fn address<'i, 'a>(operand: Option<&'i Operand<'a>>) -> Option<&'i Address<'a>> {
    match operand {
        Some(Operand::Address(address)) => Some(address),
        _ => None,
    }
}

const ODD_ADDRESS: &str = "its address is written in a form that is not understood";
const ODD_TYPE: &str = "its type is not understood, so its size is unknown";
const ODD_OPERANDS: &str = "its operands are not understood";

fn load_store<'i, 'a>(instruction: &'i Instruction<'a>, access: Access) -> Effect<'i, 'a> {
    let generic = match hooked_space(instruction) {
        Ok(generic) => generic,
        Err(effect) => return effect,
    };
    let load = access == Access::Load;
    let Some((size, elements)) = size(instruction) else {
        return Effect::Unsupported(ODD_TYPE);
    };
    let Some(address) = address(instruction.operands.get(usize::from(load))) else {
        return Effect::Unsupported(ODD_ADDRESS);
    };
    let volatile = instruction.has("volatile");
    let (order, scope) = if volatile || instruction.has("mmio") {
        // Both are performed as relaxed accesses at system scope; `.mmio` may carry acquire or release besides.
        (order(instruction).unwrap_or(Order::Relaxed), Scope::Sys)
    } else {
        match order(instruction) {
            None | Some(Order::Weak) => (Order::Weak, Scope::None),
            Some(order) => (order, scope(instruction).unwrap_or(Scope::Gpu)),
        }
    };
    let mut op = MemoryOp {
        access,
        order,
        scope,
        size,
        elements,
        generic,
        volatile,
        non_coherent: instruction.has("nc") || instruction.opcode == "ldu",
        returns: load,
        address,
        destination: if load {
            instruction.operands.first()
        } else {
            None
        },
        comparand: None,
        copy: None,
        asynchronous: false,
        multicast: false,
        used: None,
    };
    op.leave_out(used::named_elements(instruction, load, size));
    Effect::Access(op)
}

/// `atom` and `red`. Without `.sem` they are relaxed, without `.scope` they mean the device.
fn atomic<'i, 'a>(instruction: &'i Instruction<'a>, returns: bool) -> Effect<'i, 'a> {
    let generic = match hooked_space(instruction) {
        Ok(generic) => generic,
        Err(effect) => return effect,
    };
    let Some((size, elements)) = size(instruction) else {
        return Effect::Unsupported(ODD_TYPE);
    };
    let at = usize::from(returns);
    let Some(address) = address(instruction.operands.get(at)) else {
        return Effect::Unsupported(ODD_ADDRESS);
    };
    let cas = instruction.has("cas");
    let comparand = if cas {
        instruction.operands.get(at + 1)
    } else {
        None
    };
    if cas
        && !matches!(
            comparand,
            Some(Operand::Name(_) | Operand::Int(_) | Operand::F32(_) | Operand::F64(_))
        )
    {
        return Effect::Unsupported(ODD_OPERANDS);
    }
    Effect::Access(MemoryOp {
        access: if cas { Access::Cas } else { Access::Rmw },
        order: order(instruction).unwrap_or(Order::Relaxed),
        scope: scope(instruction).unwrap_or(Scope::Gpu),
        size,
        elements,
        generic,
        volatile: false,
        non_coherent: false,
        returns,
        address,
        destination: if returns {
            instruction.operands.first()
        } else {
            None
        },
        comparand,
        copy: None,
        asynchronous: false,
        multicast: false,
        used: None,
    })
}

/// `st.async`, `st.bulk`, `red.async`. Those to global memory are releases of system scope; what they release is what was before
/// they were issued, so they are taken as carried out at once. Those to shared memory complete on an mbarrier, which is an operand
/// more: so without a space it is known, too, where they go.
fn async_store<'i, 'a>(instruction: &'i Instruction<'a>) -> Effect<'i, 'a> {
    let completes = address(instruction.operands.get(2)).is_some();
    match space(instruction) {
        Some(space @ (Space::Shared | Space::SharedCluster)) => return Effect::Private(space),
        None if instruction.has("async") && completes => {
            return Effect::Private(Space::SharedCluster);
        }
        None | Some(Space::Global) if instruction.has("async") => {}
        _ => return Effect::Unsupported("bulk stores to global memory are not checked"),
    }
    let strong = match instruction.opcode {
        "red" => atomic(instruction, false),
        _ => load_store(instruction, Access::Store),
    };
    match strong {
        Effect::Access(op) => Effect::Access(MemoryOp {
            order: order(instruction).unwrap_or(Order::Relaxed),
            scope: scope(instruction).unwrap_or(Scope::Sys),
            asynchronous: true,
            ..op
        }),
        other => other,
    }
}

/// `multimem`: weak where nothing is said, but for a reduction, which is relaxed. What else is done to that memory is done by other
/// devices too, so that all of them count as operations of system scope.
fn multimem<'i, 'a>(instruction: &'i Instruction<'a>) -> Effect<'i, 'a> {
    let has = |m| instruction.has(m);
    let accessed = if has("cp") {
        return Effect::Unsupported(
            "copies and reductions by the copy engine to multicast memory are not checked",
        );
    } else if has("ld_reduce") {
        load_store(instruction, Access::Load)
    } else if has("red") {
        atomic(instruction, false)
    } else {
        load_store(instruction, Access::Store)
    };
    match accessed {
        Effect::Access(op) => Effect::Access(MemoryOp {
            scope: if op.is_strong() {
                Scope::Sys
            } else {
                Scope::None
            },
            multicast: true,
            ..op
        }),
        other => other,
    }
}

fn fence<'i, 'a>(instruction: &'i Instruction<'a>) -> Effect<'i, 'a> {
    // These order proxies, or the initialisation of mbarriers; between threads they neither acquire nor release data
    // in global memory. (`fence.proxy.tensormap…acquire` does so for the tensor map alone, which is not checked.)
    let other = |m: &&str| {
        *m == "proxy"
            || m.starts_with("proxy::")
            || *m == "mbarrier_init"
            || m.starts_with("sync_restrict")
    };
    if instruction.modifiers.iter().any(other) {
        return Effect::None;
    }
    let scope = scope(instruction).unwrap_or(Scope::Gpu);
    let order = match (instruction.opcode, order(instruction)) {
        // Since sm_70 `membar` is `fence.sc` of its scope.
        ("membar", _) => Order::Sc,
        (_, Some(order)) => order,
        (_, None) => Order::AcqRel,
    };
    Effect::Fence(order, scope)
}

/// `discard.global.L2 [a], 128`
fn discard<'i, 'a>(instruction: &'i Instruction<'a>) -> Effect<'i, 'a> {
    match &instruction.operands[..] {
        [Operand::Address(address), Operand::Int(size @ 1..=512)] => {
            let Effect::Access(op) = plain(Access::Store, *size as u32, address, None) else {
                return Effect::Unsupported(ODD_OPERANDS);
            };
            Effect::Access(MemoryOp {
                generic: space(instruction).is_none(),
                ..op
            })
        }
        _ => Effect::Unsupported(ODD_OPERANDS),
    }
}

/// A weak access to global memory.
fn plain<'i, 'a>(
    access: Access,
    size: u32,
    address: &'i Address<'a>,
    copy: Option<AsyncCopy<'i, 'a>>,
) -> Effect<'i, 'a> {
    Effect::Access(MemoryOp {
        access,
        order: Order::Weak,
        scope: Scope::None,
        size,
        elements: 1,
        generic: false,
        volatile: false,
        non_coherent: false,
        returns: false,
        address,
        destination: None,
        comparand: None,
        copy,
        asynchronous: false,
        multicast: false,
        used: None,
    })
}
