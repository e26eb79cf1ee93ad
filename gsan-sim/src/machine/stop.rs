//! The named ways in which a run ends early, and the place in the program where it did.

use std::fmt;

/// Where a thread was.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Site {
    /// The launched kernel.
    pub kernel: String,
    /// The function that held the instruction (the kernel itself, or one that it called).
    pub function: String,
    /// Line of the PTX text, from 1; 0 = unknown.
    pub ptx_line: u32,
    /// File and line of the source, where the PTX has `.loc`.
    pub source: Option<(String, u32)>,
    /// The hook of gsan's runtime inside which it happened, if it was one: the other fields name the user's instruction
    /// that it was called for.
    pub hook: Option<String>,
    /// `%ctaid`.
    pub block: [u32; 3],
    /// `%tid`.
    pub thread: [u32; 3],
}

impl fmt::Display for Site {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "kernel {}", self.kernel)?;
        if self.function != self.kernel && !self.function.is_empty() {
            write!(f, ", function {}", self.function)?;
        }
        write!(f, ", PTX line {}", self.ptx_line)?;
        if let Some((file, line)) = &self.source {
            write!(f, " ({file}:{line})")?;
        }
        let [bx, by, bz] = self.block;
        let [tx, ty, tz] = self.thread;
        write!(f, ", block ({bx},{by},{bz}), thread ({tx},{ty},{tz})")?;
        match &self.hook {
            Some(hook) => write!(f, ", while {hook} checked it"),
            None => Ok(()),
        }
    }
}

/// What was wrong with an access.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum FaultKind {
    /// No memory at the address, or the access runs past the end of a buffer.
    OutOfBounds,
    /// Memory without the right to this access from this device.
    NoAccess,
    /// Multicast memory, by an instruction that is no `multimem`; or other memory by one that is.
    Multicast,
    /// The address is not a multiple of the access's size.
    Misaligned,
    /// An address of another state space than the instruction names.
    WrongSpace,
    /// Past the block's shared memory.
    SharedOutOfBounds,
    /// Shared memory of a block of the cluster that has exited already.
    ClusterBlockGone,
    /// Past the thread's local memory.
    LocalOutOfBounds,
    /// The stack grew past its limit (deep recursion).
    StackOverflow,
    /// A call or branch through a value that is no function or target.
    BadTarget,
    /// A write to constant or parameter memory.
    ReadOnly,
    /// A barrier with a number or a thread count that there is not, or with two counts at once.
    Barrier,
    /// An aligned barrier to which not all threads of a warp come.
    DivergentBarrier,
    /// A barrier for the whole block, of which whole warps have exited: see [`ExitedWarps`](crate::ExitedWarps).
    ExitedWarps,
    /// An mbarrier that has not been initialised, or that is told of more arrivals than it waits for.
    Mbarrier,
    /// An instruction whose operands have no meaning (a copy of 24 bytes, a negative corner of a tensor store, …).
    IllegalInstruction,
}

impl fmt::Display for FaultKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            FaultKind::OutOfBounds => "no memory there",
            FaultKind::NoAccess => "no right to access that memory",
            FaultKind::Multicast => "multimem instructions use multicast memory, and no others do",
            FaultKind::Misaligned => "misaligned address",
            FaultKind::WrongSpace => "address of another state space",
            FaultKind::SharedOutOfBounds => "outside the block's shared memory",
            FaultKind::ClusterBlockGone => "shared memory of a block that has exited",
            FaultKind::LocalOutOfBounds => "outside the thread's local memory",
            FaultKind::StackOverflow => "stack overflow",
            FaultKind::BadTarget => "call or branch to something that is no target",
            FaultKind::ReadOnly => "write to read-only memory",
            FaultKind::Barrier => "wrong use of a barrier",
            FaultKind::DivergentBarrier => "barrier to which not all threads of a warp come",
            FaultKind::ExitedWarps => "barrier that warps which have exited cannot reach",
            FaultKind::Mbarrier => "wrong use of an mbarrier",
            FaultKind::IllegalInstruction => "illegal operands",
        })
    }
}

/// Why a run ended before its kernels were complete. All running kernels are gone; memory can still be read.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Stop {
    /// `trap`.
    Trap {
        /// Where.
        site: Box<Site>,
    },
    /// `__assertfail`.
    Assert {
        /// Where.
        site: Box<Site>,
        /// What the kernel said: expression, file, line, function.
        message: String,
    },
    /// A wrong access.
    Fault {
        /// Where.
        site: Box<Site>,
        /// What was wrong.
        kind: FaultKind,
        /// The address.
        address: u64,
        /// More, in words; may be empty.
        detail: String,
    },
    /// Nobody can go on.
    Deadlock {
        /// The device.
        device: u32,
        /// Who waits where.
        description: String,
    },
    /// [`crate::Config::step_budget`] is used up.
    Budget {
        /// Which kernels still run, and the PTX lines where their warps are.
        description: String,
    },
    /// An instruction that the machine lacks.
    Unsupported {
        /// Where.
        site: Box<Site>,
        /// The instruction and what is missing.
        what: String,
    },
}

impl Stop {
    /// The place, if it is one.
    pub fn site(&self) -> Option<&Site> {
        match self {
            Stop::Trap { site }
            | Stop::Assert { site, .. }
            | Stop::Fault { site, .. }
            | Stop::Unsupported { site, .. } => Some(site),
            Stop::Deadlock { .. } | Stop::Budget { .. } => None,
        }
    }
}

impl fmt::Display for Stop {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Stop::Trap { site } => write!(f, "trap in {site}"),
            Stop::Assert { site, message } => write!(f, "assertion failed: {message}; in {site}"),
            Stop::Fault {
                site,
                kind,
                address,
                detail,
            } => {
                match kind {
                    FaultKind::Barrier | FaultKind::DivergentBarrier | FaultKind::ExitedWarps => {
                        write!(f, "fault: {kind}")?;
                    }
                    _ => write!(f, "fault at address {address:#x}: {kind}")?,
                }
                if !detail.is_empty() {
                    write!(f, " ({detail})")?;
                }
                write!(f, "; in {site}")
            }
            Stop::Deadlock {
                device,
                description,
            } => write!(f, "deadlock on device {device}: {description}"),
            Stop::Budget { description } => write!(f, "step budget used up: {description}"),
            Stop::Unsupported { site, what } => {
                write!(f, "the simulator cannot run `{what}`; in {site}")
            }
        }
    }
}
