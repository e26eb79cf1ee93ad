//! What the machine executes: PTX with names resolved to register slots, addresses and program counters.

use rustc_hash::FxHashMap;

use super::alu::compare::Combine;
use super::alu::integer::CarryFn;
use super::alu::{Fn1, Fn2, Fn3, Fn4, FnCmp};
use super::ty::{Row, Ty};
use super::weak::Strength;

mod flow;
mod tensor_core;

pub use flow::Passed;
pub use tensor_core::{GroupProduct, MatrixOp, Role, Scales, Tcgen, TensorScales, TensorShape};

/// A 64-bit register slot of the frame, or with [`CONSTANT`] a row of the program's constants.
pub type Src = u32;
/// Marks a [`Src`] as a constant.
pub const CONSTANT: u32 = 1 << 31;
/// A register slot of the frame.
pub type Reg = u32;
/// A predicate slot of the frame. Slot 0 is the carry flag.
pub type Pred = u32;
/// No register, no predicate.
pub const NONE: u32 = u32::MAX;
/// The carry flag's predicate slot.
pub const CARRY: Pred = 0;

/// A predicate to read: slot × 2, plus 1 where negated.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PredSrc(pub u32);

impl PredSrc {
    /// Always true.
    pub const TRUE: PredSrc = PredSrc(u32::MAX);
    /// Always false.
    pub const FALSE: PredSrc = PredSrc(u32::MAX - 1);

    /// A slot's value.
    pub fn slot(slot: Pred, negated: bool) -> PredSrc {
        PredSrc(slot << 1 | u32::from(negated))
    }

    /// The opposite.
    pub fn not(self) -> PredSrc {
        PredSrc(self.0 ^ 1)
    }
}

/// State spaces as the executor tells them apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum Space {
    Generic,
    Global,
    Const,
    Shared,
    SharedCluster,
    Local,
}

/// Where an address starts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Base {
    /// A register or constant.
    Value(Src),
    /// The current frame in local memory.
    Frame,
    /// Dynamic shared memory, at that alignment.
    Dynamic(u32),
}

/// An address operand.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Addr {
    /// Where it starts.
    pub base: Base,
    /// Bytes added.
    pub offset: i64,
}

/// One instruction.
#[derive(Debug)]
pub struct Inst {
    /// Lanes that execute it.
    pub guard: PredSrc,
    /// What it does.
    pub op: Op,
}

/// Logic on predicates.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum Logic {
    And,
    Or,
    Xor,
}

/// What an instruction does.
#[derive(Debug)]
#[allow(missing_docs)]
pub enum Op {
    Nop,
    Alu1 {
        f: Fn1,
        flags: u32,
        d: Reg,
        a: Src,
    },
    Alu2 {
        f: Fn2,
        flags: u32,
        d: Reg,
        a: Src,
        b: Src,
    },
    Alu3 {
        f: Fn3,
        flags: u32,
        d: Reg,
        a: Src,
        b: Src,
        c: Src,
    },
    Alu4 {
        f: Fn4,
        flags: u32,
        d: Reg,
        a: Src,
        b: Src,
        c: Src,
        e: Src,
    },
    Carry(Box<CarryOp>),
    Compare {
        f: FnCmp,
        flags: u32,
        a: Src,
        b: Src,
        combine: Combine,
        c: PredSrc,
        d: Pred,
        q: Pred,
    },
    PredLogic {
        logic: Logic,
        d: Pred,
        a: PredSrc,
        b: PredSrc,
    },
    Select {
        d: Reg,
        a: Src,
        b: Src,
        p: PredSrc,
    },
    Mov {
        d: Reg,
        a: Src,
    },
    Pack {
        d: Reg,
        bytes: u32,
        parts: Box<[Src]>,
    },
    Unpack {
        a: Src,
        bytes: u32,
        parts: Box<[Reg]>,
    },
    Special {
        d: Reg,
        s: Special,
    },
    /// The address in its own space.
    AddressOf {
        d: Reg,
        addr: Addr,
    },
    /// `cvta.param` and `cvta.to.param`: addresses in parameter space count from the first parameter.
    ParamAddress {
        d: Reg,
        a: Src,
        to: bool,
    },
    /// `cvta` and `cvta.to`.
    Convert {
        d: Reg,
        a: Src,
        space: Space,
        to: bool,
    },
    IsSpace {
        d: Pred,
        a: Src,
        space: Window,
    },
    Load {
        space: Space,
        mem: Mem,
        d: Reg,
        addr: Addr,
    },
    LoadVector {
        space: Space,
        mem: Mem,
        addr: Addr,
        d: Box<[Reg]>,
    },
    LoadParam {
        mem: Mem,
        offset: u32,
        d: Box<[Reg]>,
    },
    Store {
        space: Space,
        mem: Mem,
        addr: Addr,
        a: Src,
    },
    StoreVector {
        space: Space,
        mem: Mem,
        addr: Addr,
        a: Box<[Src]>,
    },
    Atomic(Box<Atomic>),
    Multimem(Box<Multimem>),
    Copy(Box<CopyOp>),
    /// `cp.async.commit_group` and `wait_group`, also `.bulk`.
    CopyGroup {
        end: CopyEnd,
        wait: Wait,
        /// Whether it is only the beginning of an instruction.
        part: bool,
    },
    /// `st.bulk`: zeros.
    Fill {
        space: Space,
        addr: Addr,
        size: Src,
    },
    Tensor(Box<TensorOp>),
    Mbarrier(Box<Mbarrier>),
    TryCancel(Box<TryCancel>),
    Fence,
    Branch {
        target: u32,
    },
    BranchIndexed {
        index: Src,
        targets: Box<[u32]>,
    },
    Call(Box<Call>),
    Builtin(Box<BuiltinCall>),
    Return,
    Exit,
    Trap,
    Barrier(Box<Barrier>),
    ClusterBarrier {
        arrive: bool,
        wait: bool,
        aligned: bool,
    },
    /// `griddepcontrol.wait`
    GridWait,
    /// `griddepcontrol.launch_dependents`
    LaunchDependents,
    WarpSync {
        mask: Src,
    },
    Warp(Box<WarpOp>),
    Matrix(Box<MatrixOp>),
    Tcgen(Box<Tcgen>),
    ActiveMask {
        d: Reg,
    },
    Sleep,
    Texture(Box<TextureOp>),
    /// A predicate of whether a register is not zero.
    Test {
        a: Src,
        d: Pred,
    },
    Alloca {
        d: Reg,
        size: Src,
        align: u32,
    },
    StackSave {
        d: Reg,
    },
    StackRestore {
        a: Src,
    },
    MapShared {
        d: Reg,
        a: Src,
        rank: Src,
        generic: bool,
    },
    SharedRank {
        d: Reg,
        a: Src,
    },
    Unsupported(Box<str>),
}

/// How a value sits in memory and in its register.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Mem {
    /// Bytes in memory, of each element.
    pub bytes: u8,
    /// Whether loading extends the sign.
    pub signed: bool,
    /// Bytes of the register.
    pub register: u8,
}

/// What `isspacep` asks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum Window {
    Global,
    Shared,
    SharedCluster,
    Local,
    Const,
    Param,
}

/// An addition or product with the carry flag.
#[derive(Debug)]
#[allow(missing_docs)]
pub struct CarryOp {
    pub f: CarryFn,
    pub carry_in: bool,
    pub carry_out: bool,
    pub d: Reg,
    pub a: Src,
    pub b: Src,
    pub c: Src,
}

/// A special register, with its dimension where it has one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum Special {
    Tid(u8),
    Ntid(u8),
    Ctaid(u8),
    Nctaid(u8),
    LaneId,
    WarpId,
    NwarpId,
    SmId,
    NsmId,
    GridId,
    LanemaskEq,
    LanemaskLe,
    LanemaskLt,
    LanemaskGe,
    LanemaskGt,
    Clock,
    ClockHi,
    Clock64,
    GlobalTimer,
    GlobalTimerLo,
    GlobalTimerHi,
    DynamicSharedSize,
    TotalSharedSize,
    AggregateSharedSize,
    ReservedSharedBegin,
    ReservedSharedOffset(u8),
    ReservedSharedEnd,
    ClusterId(u8),
    NclusterId(u8),
    ClusterCtaId(u8),
    ClusterNctaId(u8),
    ClusterCtaRank,
    ClusterNctaRank,
    IsExplicitCluster,
    EnvReg(u8),
    Pm(u8),
}

/// Read-modify-write operations.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum AtomicOp {
    And,
    Or,
    Xor,
    Exch,
    Add,
    Inc,
    Dec,
    Min,
    Max,
    Cas,
}

/// `atom` and `red`.
#[derive(Debug)]
#[allow(missing_docs)]
pub struct Atomic {
    pub op: AtomicOp,
    pub ty: Ty,
    pub space: Space,
    pub addr: Addr,
    /// One register per element; [`NONE`] where the result is dropped.
    pub d: Box<[Reg]>,
    pub b: Box<[Src]>,
    /// The new value of a CAS.
    pub c: Src,
}

/// An operation on multicast memory.
#[derive(Debug)]
#[allow(missing_docs)]
pub struct Multimem {
    pub kind: MultimemKind,
    pub op: AtomicOp,
    pub sum: Sum,
    /// Of a register's value.
    pub bytes: u32,
    pub addr: Addr,
    /// Targets of a load, sources of the others ([`Src`]), one per element of a vector.
    pub registers: Box<[u32]>,
}

/// What a [`Multimem`] does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum MultimemKind {
    LoadReduce,
    Store,
    Reduce,
}

/// How values of several memories are combined.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sum {
    /// As an atomic operation of that type would.
    Whole(Ty),
    /// f16 or bf16 (one or two in a register), in an f32.
    Wide {
        /// bf16
        brain: bool,
    },
    /// Elements of eight bits.
    Small {
        /// e5m2
        wide_range: bool,
        /// In an f16.
        half: bool,
    },
}

/// `cp.async` and `cp.async.bulk`: carried out at issue or later, before their end is known.
#[derive(Debug)]
#[allow(missing_docs)]
pub struct CopyOp {
    pub to: (Space, Addr),
    pub from: (Space, Addr),
    /// Bytes written.
    pub size: Src,
    /// Bytes read; the rest is zero. [`NONE`]: all.
    pub source_size: u32,
    /// `.ignore-src`: nothing is read where it holds.
    pub ignore: PredSrc,
    /// The mbarrier whose transaction count the copy completes.
    pub barrier: Option<(Space, Addr)>,
    /// Whether sizes must be multiples of 16.
    pub bulk: bool,
    /// `cp.reduce.async.bulk`: what is done with the bytes that are there.
    pub reduce: Option<(AtomicOp, Ty)>,
    /// The blocks of the cluster that get a copy, a bit for each; [`NONE`]: the one that the address names.
    pub blocks: Src,
    /// The bytes of each 16 that are written; [`NONE`]: all.
    pub bytes: Src,
    pub end: CopyEnd,
}

/// How a thread knows the end of a copy.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CopyEnd {
    /// It is carried out when it is issued.
    Issue,
    /// By `cp.async.wait_group`, or an mbarrier at which it arrives "when they have arrived".
    Group,
    /// By `cp.async.bulk.wait_group`.
    BulkGroup,
    /// By the mbarrier whose transaction count it completes.
    Barrier,
}

/// What is done with groups of copies.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Wait {
    /// What has been issued since the last one is a group.
    Commit,
    /// Until at most so many groups are pending.
    Pending(u32),
    /// Until none is, nor any copy that belongs to none yet.
    All,
}

/// Which way a tensor copy goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum TensorKind {
    Load,
    Store,
    Reduce(AtomicOp),
}

/// `clusterlaunchcontrol.try_cancel`.
#[derive(Debug)]
#[allow(missing_docs)]
pub struct TryCancel {
    /// Where the answer goes, in shared memory.
    pub to: Addr,
    pub barrier: Addr,
    /// Every block of the cluster gets it.
    pub all: bool,
}

/// `cp.async.bulk.tensor`, in time like [`CopyOp`]: a load ends at its mbarrier, the others in a group.
#[derive(Debug)]
#[allow(missing_docs)]
pub struct TensorOp {
    pub kind: TensorKind,
    /// Generic address of the tensor map.
    pub map: Src,
    /// As many as the instruction has dimensions. With `rows`: the column and four rows.
    pub coordinates: Box<[Src]>,
    /// `.tile::gather4` and `.tile::scatter4`.
    pub rows: bool,
    /// `.im2col`.
    pub windows: bool,
    /// Its places in the window.
    pub offsets: Box<[Src]>,
    pub shared: (Space, Addr),
    pub barrier: Option<Addr>,
    /// As in [`CopyOp`].
    pub blocks: Src,
}

/// What an mbarrier instruction does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum MbarrierOp {
    Init,
    Inval,
    /// Arrive after adding to the transaction count where `expect`; `drop` leaves for good.
    Arrive {
        expect: bool,
        drop: bool,
        complete: bool,
    },
    /// `cp.async.mbarrier.arrive`: one arrival more is waited for, and has come since copies are done at issue.
    ArriveForCopies,
    ExpectTx,
    CompleteTx,
    /// `try_wait` may lose its turn.
    Test {
        parity: bool,
        wait: bool,
    },
    PendingCount,
}

/// An mbarrier instruction.
#[derive(Debug)]
#[allow(missing_docs)]
pub struct Mbarrier {
    pub op: MbarrierOp,
    pub space: Space,
    pub addr: Addr,
    /// State result (64 bits) or count.
    pub d: Reg,
    /// Predicate result.
    pub p: Pred,
    /// Count, state or phase.
    pub a: Src,
    /// Transaction count.
    pub tx: Src,
}

/// A call of a function with a body.
#[derive(Debug)]
pub struct Call {
    /// The callee.
    pub target: Target,
    /// (offset in the caller's frame, size) of each argument.
    pub args: Box<[(u32, u32)]>,
    /// (offset in the caller's frame, size) of each result.
    pub rets: Box<[(u32, u32)]>,
}

/// Whom a call calls.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Target {
    /// Index of the function.
    Direct(u32),
    /// A register that holds a function's address.
    Indirect(Src),
}

/// Functions that the machine itself provides.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum Builtin {
    Vprintf,
    AssertFail,
    Malloc,
    Free,
}

/// A call of such a function.
#[derive(Debug)]
#[allow(missing_docs)]
pub struct BuiltinCall {
    pub which: Builtin,
    pub args: Box<[(u32, u32)]>,
    pub rets: Box<[(u32, u32)]>,
}

/// What a block barrier does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum BarrierKind {
    Sync,
    Arrive,
    Popc,
    And,
    Or,
}

/// `bar` and `barrier`.
#[derive(Debug)]
#[allow(missing_docs)]
pub struct Barrier {
    pub kind: BarrierKind,
    /// `bar`, and `barrier` with `.aligned`: all threads of a warp come to it together.
    pub aligned: bool,
    pub id: Src,
    /// Threads; [`NONE`]: the whole block.
    pub count: Src,
    /// The predicate that a reduction gathers.
    pub p: PredSrc,
    /// Result register (`popc`) or predicate.
    pub d: u32,
}

/// Instructions that exchange values within a warp.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum WarpKind {
    ShflUp,
    ShflDown,
    ShflBfly,
    ShflIdx,
    VoteAll,
    VoteAny,
    VoteUni,
    VoteBallot,
    MatchAny,
    MatchAll,
    ReduxAdd,
    ReduxMin,
    ReduxMax,
    ReduxAnd,
    ReduxOr,
    ReduxXor,
    Elect,
}

/// One of them.
#[derive(Debug)]
#[allow(missing_docs)]
pub struct WarpOp {
    pub kind: WarpKind,
    pub ty: Ty,
    pub d: Reg,
    pub p: Pred,
    pub a: Src,
    pub b: Src,
    pub c: Src,
    /// The predicate that a vote gathers.
    pub vote: PredSrc,
    /// The lanes that take part; [`NONE`]: those that are there (the forms without `.sync`).
    pub mask: Src,
    /// `redux` of floats: `.abs`, `.NaN`.
    pub abs: bool,
    pub nan: bool,
}

/// The coordinates of a texture or surface.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum Geometry {
    One,
    Two,
    Three,
    LayersOfOne,
    LayersOfTwo,
    Cube,
    LayersOfCube,
}

impl Geometry {
    /// How many words say where; the first one of several layers is one's number.
    pub fn words(self) -> usize {
        match self {
            Geometry::One => 1,
            Geometry::Two | Geometry::LayersOfOne => 2,
            Geometry::Three | Geometry::LayersOfTwo | Geometry::Cube => 3,
            Geometry::LayersOfCube => 4,
        }
    }

    /// Whether there are layers.
    pub fn is_layered(self) -> bool {
        matches!(
            self,
            Geometry::LayersOfOne | Geometry::LayersOfTwo | Geometry::LayersOfCube
        )
    }

    /// Whether a read gives a direction.
    pub fn is_cube(self) -> bool {
        matches!(self, Geometry::Cube | Geometry::LayersOfCube)
    }
}

/// What becomes of a surface's coordinate outside.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum Outside {
    Trap,
    Clamp,
    Zero,
}

/// What is done with a texture or surface.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TextureKind {
    /// A read at a point, or at whole coordinates.
    Sample {
        /// Whether they are whole.
        whole: bool,
    },
    /// A channel of four texels (`tld4`).
    Gather(usize),
    /// Elements of that many bytes, as they lie there.
    Surface {
        /// Of an element.
        bytes: u8,
        /// Where the coordinates lead nowhere.
        outside: Outside,
    },
    /// A texel from registers of 32 bits, as the surface has it (`sust.p`).
    Formatted(Outside),
    /// `sured`.
    Reduce {
        /// What is done.
        op: AtomicOp,
        /// Of what; the surface says whether it is signed where the coordinates count texels.
        ty: Ty,
        /// Whether they do; or else bytes.
        formatted: bool,
        /// Where they lead nowhere.
        outside: Outside,
    },
    /// How many texels there are in that direction, of a level (`txq`, `suq`).
    Extent(usize),
}

/// The level of detail of a read.
#[derive(Debug)]
pub enum DetailOp {
    /// That of no derivative.
    Base,
    /// `.level`.
    Level(Src),
    /// `.grad`: how the coordinates change, in two directions.
    Steps([Box<[Src]>; 2]),
}

/// `tex`, `tld4`, `txq`, `suld`, `sust`, `sured`, `suq`.
#[derive(Debug)]
#[allow(missing_docs)]
pub struct TextureOp {
    pub kind: TextureKind,
    pub geometry: Geometry,
    /// The object's handle.
    pub object: Src,
    pub at: Box<[Src]>,
    pub detail: DetailOp,
    /// Texels further on.
    pub offset: Box<[Src]>,
    pub store: bool,
    /// Registers of the result, or with `store` what is stored.
    pub values: Box<[u32]>,
}

/// Where an instruction stands.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Line {
    /// Line of the PTX text.
    pub ptx: u32,
    /// `.file` index; 0 = none.
    pub file: u32,
    /// Source line.
    pub line: u32,
}

/// A function with a body.
#[derive(Debug, Default)]
#[allow(missing_docs)]
pub struct Function {
    pub name: String,
    pub entry: bool,
    /// First instruction.
    pub start: u32,
    /// One past the last.
    pub end: u32,
    /// Register slots of a frame.
    pub regs: u32,
    /// Predicate slots of a frame.
    pub preds: u32,
    /// Bytes of a frame in local memory.
    pub frame: u32,
    /// (frame offset, size) of a `.func`'s parameters.
    pub params: Vec<(u32, u32)>,
    /// (frame offset, size) of a `.func`'s results.
    pub returns: Vec<(u32, u32)>,
    /// Registers of the hardware that it would take, roughly.
    pub pressure: u32,
    /// Static shared memory of a kernel.
    pub static_shared: u32,
    /// Whether something wants the address of its parameters.
    pub takes_param_address: bool,
    /// A hook of gsan's runtime, or what one calls.
    pub runtime: bool,
}

/// A module's code.
#[derive(Debug, Default)]
#[allow(missing_docs)]
pub struct Program {
    pub code: Vec<Inst>,
    pub lines: Vec<Line>,
    /// Order and scope of each instruction.
    pub strengths: Vec<Strength>,
    /// For weak memory: how many instructions behind an access may be executed before it. Empty otherwise.
    pub slack: Vec<u8>,
    pub constants: Vec<Row>,
    pub functions: Vec<Function>,
    pub files: FxHashMap<u32, String>,
    /// Whether it asks where the system's part of shared memory lies.
    pub reserved_shared: bool,
    /// Instructions that end the run when they are executed: line and text.
    pub unsupported: Vec<(u32, String)>,
    /// What is known of barriers that threads have gone past.
    pub passed: Passed,
}

impl Program {
    /// The function that holds an instruction.
    pub fn function_at(&self, pc: u32) -> Option<&Function> {
        self.functions.iter().find(|f| f.start <= pc && pc < f.end)
    }
}
