//! Litmus tests of the weak memory mode: small programs, an outcome each, and whether PTX allows it.
//!
//! A kernel runs many instances: blocks (or the warps of a block) form groups, a group runs an instance per round, each on
//! words of its own, and roles rotate. Roles use `[x]`, `[y]`, `[z]` for the words and `%r0` to `%r7` for what they read;
//! `%zero` is 0, which no compiler knows: it would fold a dependency on `xor r, r` away.

use gsan_sim::machine::{LaunchDesc, Machine, RunEvent};
use gsan_sim::{Config, MemoryModel};

/// Where an instance's threads are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Where {
    /// Each in a block of its own.
    Grid,
    /// Each in a warp of its own, all in one block. `[s]` is a word of shared memory, too.
    Block,
    /// Each in a block of its own, all in one cluster.
    Cluster,
}

/// What one instance ended with: `r0` to `r7`, then `x`, `y`, `z`.
pub type Outcome = [u32; 11];
const X: usize = 8;
const Y: usize = 9;

/// A litmus test.
pub struct Litmus {
    pub name: &'static str,
    pub place: Where,
    pub roles: &'static [&'static str],
    /// The outcome in words, and in code.
    pub asks: &'static str,
    pub seen: fn(&Outcome) -> bool,
    /// Whether it may be seen: then it must be, often enough.
    pub allowed: bool,
}

macro_rules! litmus {
    ($($allowed:ident $place:ident $name:literal [$($role:literal),+] $asks:literal $seen:expr;)*) => {
        &[$(Litmus { name: $name, place: Where::$place, roles: &[$($role),+], asks: $asks, seen: $seen,
            allowed: litmus!(@ $allowed) }),*]
    };
    (@ allowed) => { true };
    (@ forbidden) => { false };
}

fn sb(o: &Outcome) -> bool {
    o[0] == 0 && o[1] == 0
}

fn mp(o: &Outcome) -> bool {
    o[0] == 1 && o[1] == 0
}

fn lb(o: &Outcome) -> bool {
    o[0] != 0 && o[1] != 0
}

fn three(o: &Outcome) -> bool {
    o[0] == 1 && o[1] == 1 && o[2] == 0
}

fn iriw(o: &Outcome) -> bool {
    o[0] == 1 && o[1] == 0 && o[2] == 1 && o[3] == 0
}

#[path = "atomics.rs"]
mod atomics;

/// All of them.
pub fn all() -> impl Iterator<Item = &'static Litmus> {
    PLAIN.iter().chain(atomics::ATOMICS)
}

/// Those in which threads meet by loads and stores, mostly.
#[rustfmt::skip]
const PLAIN: &[Litmus] = litmus! {
    allowed Grid "SB, relaxed" ["st.relaxed.gpu.u32 [x], 1; ld.relaxed.gpu.u32 %r0, [y];", "st.relaxed.gpu.u32 [y], 1; ld.relaxed.gpu.u32 %r1, [x];"] "r0=0 r1=0" sb;
    allowed Grid "SB, weak" ["st.u32 [x], 1; ld.u32 %r0, [y];", "st.u32 [y], 1; ld.u32 %r1, [x];"] "r0=0 r1=0" sb;
    allowed Grid "SB, release and acquire" ["st.release.gpu.u32 [x], 1; ld.acquire.gpu.u32 %r0, [y];", "st.release.gpu.u32 [y], 1; ld.acquire.gpu.u32 %r1, [x];"] "r0=0 r1=0" sb;
    allowed Grid "SB, fence.acq_rel" ["st.relaxed.gpu.u32 [x], 1; fence.acq_rel.gpu; ld.relaxed.gpu.u32 %r0, [y];", "st.relaxed.gpu.u32 [y], 1; fence.acq_rel.gpu; ld.relaxed.gpu.u32 %r1, [x];"] "r0=0 r1=0" sb;
    allowed Grid "SB, one fence.sc" ["st.relaxed.gpu.u32 [x], 1; fence.sc.gpu; ld.relaxed.gpu.u32 %r0, [y];", "st.relaxed.gpu.u32 [y], 1; ld.relaxed.gpu.u32 %r1, [x];"] "r0=0 r1=0" sb;
    allowed Grid "SB, fence.sc.cta between blocks" ["st.relaxed.gpu.u32 [x], 1; fence.sc.cta; ld.relaxed.gpu.u32 %r0, [y];", "st.relaxed.gpu.u32 [y], 1; fence.sc.cta; ld.relaxed.gpu.u32 %r1, [x];"] "r0=0 r1=0" sb;
    allowed Grid "SB, fence.sc of unequal scope, one too narrow" ["st.relaxed.gpu.u32 [x], 1; fence.sc.gpu; ld.relaxed.gpu.u32 %r0, [y];", "st.relaxed.gpu.u32 [y], 1; fence.sc.cta; ld.relaxed.gpu.u32 %r1, [x];"] "r0=0 r1=0" sb;
    allowed Grid "SB, atom.exch" ["atom.relaxed.gpu.exch.b32 %r2, [x], 1; ld.relaxed.gpu.u32 %r0, [y];", "atom.relaxed.gpu.exch.b32 %r3, [y], 1; ld.relaxed.gpu.u32 %r1, [x];"] "r0=0 r1=0" sb;
    allowed Block "SB, relaxed, in a block" ["st.relaxed.cta.u32 [x], 1; ld.relaxed.cta.u32 %r0, [y];", "st.relaxed.cta.u32 [y], 1; ld.relaxed.cta.u32 %r1, [x];"] "r0=0 r1=0" sb;
    forbidden Grid "SB, fence.sc.gpu" ["st.relaxed.gpu.u32 [x], 1; fence.sc.gpu; ld.relaxed.gpu.u32 %r0, [y];", "st.relaxed.gpu.u32 [y], 1; fence.sc.gpu; ld.relaxed.gpu.u32 %r1, [x];"] "r0=0 r1=0" sb;
    forbidden Grid "SB, weak accesses, membar.gl and fence.sc.sys" ["st.u32 [x], 1; membar.gl; ld.u32 %r0, [y];", "st.u32 [y], 1; fence.sc.sys; ld.u32 %r1, [x];"] "r0=0 r1=0" sb;
    forbidden Block "SB, fence.sc.cta in a block" ["st.relaxed.cta.u32 [x], 1; fence.sc.cta; ld.relaxed.cta.u32 %r0, [y];", "st.relaxed.cta.u32 [y], 1; fence.sc.gpu; ld.relaxed.cta.u32 %r1, [x];"] "r0=0 r1=0" sb;
    forbidden Cluster "SB, fence.sc.cluster in a cluster" ["st.relaxed.gpu.u32 [x], 1; fence.sc.cluster; ld.relaxed.gpu.u32 %r0, [y];", "st.relaxed.gpu.u32 [y], 1; fence.sc.cluster; ld.relaxed.gpu.u32 %r1, [x];"] "r0=0 r1=0" sb;

    allowed Grid "MP, weak" ["st.u32 [x], 1; st.u32 [y], 1;", "ld.u32 %r0, [y]; ld.u32 %r1, [x];"] "r0=1 r1=0" mp;
    allowed Grid "MP, relaxed" ["st.relaxed.gpu.u32 [x], 1; st.relaxed.gpu.u32 [y], 1;", "ld.relaxed.gpu.u32 %r0, [y]; ld.relaxed.gpu.u32 %r1, [x];"] "r0=1 r1=0" mp;
    allowed Grid "MP, volatile" ["st.volatile.u32 [x], 1; st.volatile.u32 [y], 1;", "ld.volatile.u32 %r0, [y]; ld.volatile.u32 %r1, [x];"] "r0=1 r1=0" mp;
    allowed Grid "MP, release only" ["st.u32 [x], 1; st.release.gpu.u32 [y], 1;", "ld.relaxed.gpu.u32 %r0, [y]; ld.u32 %r1, [x];"] "r0=1 r1=0" mp;
    allowed Grid "MP, acquire only" ["st.u32 [x], 1; st.relaxed.gpu.u32 [y], 1;", "ld.acquire.gpu.u32 %r0, [y]; ld.u32 %r1, [x];"] "r0=1 r1=0" mp;
    allowed Grid "MP, writer's fence only" ["st.u32 [x], 1; fence.acq_rel.gpu; st.relaxed.gpu.u32 [y], 1;", "ld.relaxed.gpu.u32 %r0, [y]; ld.u32 %r1, [x];"] "r0=1 r1=0" mp;
    allowed Grid "MP, weak flag behind a fence" ["st.u32 [x], 1; fence.acq_rel.gpu; st.u32 [y], 1;", "ld.relaxed.gpu.u32 %r0, [y]; fence.acq_rel.gpu; ld.u32 %r1, [x];"] "r0=1 r1=0" mp;
    allowed Grid "MP, .cta between blocks" ["st.u32 [x], 1; st.release.cta.u32 [y], 1;", "ld.acquire.cta.u32 %r0, [y]; ld.u32 %r1, [x];"] "r0=1 r1=0" mp;
    allowed Grid "MP, the release is .cta" ["st.u32 [x], 1; st.release.cta.u32 [y], 1;", "ld.acquire.gpu.u32 %r0, [y]; ld.u32 %r1, [x];"] "r0=1 r1=0" mp;
    allowed Grid "MP, the writer's fence is .cta" ["st.u32 [x], 1; fence.acq_rel.cta; st.relaxed.gpu.u32 [y], 1;", "ld.acquire.gpu.u32 %r0, [y]; ld.u32 %r1, [x];"] "r0=1 r1=0" mp;
    allowed Grid "MP, store behind the release" ["st.release.gpu.u32 [y], 1; st.u32 [x], 1;", "ld.u32 %r1, [x]; fence.acq_rel.gpu; ld.acquire.gpu.u32 %r0, [y];"] "x seen, not y" |o| o[1] == 1 && o[0] == 0;
    forbidden Grid "MP, release and acquire" ["st.u32 [x], 1; st.release.gpu.u32 [y], 1;", "ld.acquire.gpu.u32 %r0, [y]; ld.u32 %r1, [x];"] "r0=1 r1=0" mp;
    forbidden Grid "MP, fences" ["st.u32 [x], 1; fence.acq_rel.gpu; st.relaxed.gpu.u32 [y], 1;", "ld.relaxed.gpu.u32 %r0, [y]; fence.acq_rel.gpu; ld.u32 %r1, [x];"] "r0=1 r1=0" mp;
    forbidden Grid "MP, membar and volatile" ["st.u32 [x], 1; membar.gl; st.volatile.u32 [y], 1;", "ld.volatile.u32 %r0, [y]; membar.gl; ld.u32 %r1, [x];"] "r0=1 r1=0" mp;
    forbidden Grid "MP, mixed scopes" ["st.u32 [x], 1; st.release.sys.u32 [y], 1;", "ld.relaxed.gpu.u32 %r0, [y]; fence.acq_rel.gpu; ld.u32 %r1, [x];"] "r0=1 r1=0" mp;
    forbidden Grid "MP, red.release and atom.acquire" ["st.u32 [x], 1; red.release.gpu.add.u32 [y], 1;", "atom.acquire.gpu.add.u32 %r0, [y], 0; ld.u32 %r1, [x];"] "r0=1 r1=0" mp;
    forbidden Grid "MP, relaxed store behind the release" ["st.u32 [x], 1; st.release.gpu.u32 [y], 2; st.relaxed.gpu.u32 [y], 1;", "ld.acquire.gpu.u32 %r0, [y]; ld.u32 %r1, [x];"] "r0=1 r1=0" mp;
    forbidden Grid "MP, acquire behind a relaxed load" ["st.u32 [x], 1; st.release.gpu.u32 [y], 1;", "ld.relaxed.gpu.u32 %r0, [y]; ld.acquire.gpu.u32 %r2, [y]; ld.u32 %r1, [x];"] "r0=1 r1=0" mp;
    forbidden Block "MP, .cta in a block" ["st.u32 [x], 1; st.release.cta.u32 [y], 1;", "ld.acquire.cta.u32 %r0, [y]; ld.u32 %r1, [x];"] "r0=1 r1=0" mp;
    forbidden Block "MP, flag in shared memory" ["st.u32 [x], 1; st.release.cta.shared.u32 [s], 1;", "ld.acquire.cta.shared.u32 %r0, [s]; ld.u32 %r1, [x];"] "r0=1 r1=0" mp;
    allowed Block "MP, relaxed flag in shared memory" ["st.u32 [x], 1; st.relaxed.cta.shared.u32 [s], 1;", "ld.relaxed.cta.shared.u32 %r0, [s]; ld.u32 %r1, [x];"] "r0=1 r1=0" mp;
    forbidden Cluster "MP, .cluster in a cluster" ["st.u32 [x], 1; st.release.cluster.u32 [y], 1;", "ld.acquire.cluster.u32 %r0, [y]; ld.u32 %r1, [x];"] "r0=1 r1=0" mp;
    allowed Grid "MP, .cluster between clusters" ["st.u32 [x], 1; st.release.cluster.u32 [y], 1;", "ld.acquire.cluster.u32 %r0, [y]; ld.u32 %r1, [x];"] "r0=1 r1=0" mp;
    forbidden Block "MP, bar.sync" ["st.u32 [x], 1; bar.sync 1, 64;", "bar.sync 1, 64; ld.u32 %r1, [x];"] "r1=0" |o| o[1] == 0;
    forbidden Block "MP, bar.arrive" ["st.u32 [x], 1; bar.arrive 1, 64; bar.sync 3, 64;", "bar.sync 1, 64; ld.u32 %r1, [x]; bar.sync 3, 64;"] "r1=0" |o| o[1] == 0;
    forbidden Cluster "MP, barrier.cluster" ["st.u32 [x], 1; barrier.cluster.arrive.aligned; barrier.cluster.wait.aligned;", "barrier.cluster.arrive.aligned; barrier.cluster.wait.aligned; ld.u32 %r1, [x];"] "r1=0" |o| o[1] == 0;
    forbidden Block "MP, mbarrier" ["st.u32 [x], 1; mbarrier.arrive.shared.b64 _, [m]; bar.sync 3, 64;", "L@: mbarrier.try_wait.parity.shared.b64 %p, [m], %parity; @!%p bra L@; ld.u32 %r1, [x]; bar.sync 3, 64;"] "r1=0" |o| o[1] == 0;
    forbidden Grid "MP, the reader's bytes of a wider flag" ["st.u32 [x], 1; st.release.gpu.u64 [y], 1;", "ld.acquire.gpu.u64 %d0, [y]; cvt.u32.u64 %r0, %d0; ld.u32 %r1, [x];"] "r0=1 r1=0" mp;

    forbidden Grid "MP, through a relaxed read-modify-write" ["st.u32 [x], 1; st.release.gpu.u32 [y], 1;", "atom.relaxed.gpu.add.u32 %r2, [y], 1;", "ld.acquire.gpu.u32 %r0, [y]; ld.u32 %r1, [x];"] "r2=1 r0=2 r1=0" |o| o[2] == 1 && o[0] == 2 && o[1] == 0;
    allowed Grid "MP, through a relaxed store by another" ["st.u32 [x], 1; st.release.gpu.u32 [y], 1;", "ld.relaxed.gpu.u32 %r2, [y]; add.u32 %r3, %r2, 1; st.relaxed.gpu.u32 [y], %r3;", "ld.acquire.gpu.u32 %r0, [y]; ld.u32 %r1, [x];"] "r0=2 r1=0" |o| o[0] == 2 && o[1] == 0;
    forbidden Grid "MP, a failed compare-and-swap acquires" ["st.u32 [x], 1; st.release.gpu.u32 [y], 1;", "atom.acquire.gpu.cas.b32 %r0, [y], 7, 8; ld.u32 %r1, [x];"] "r0=1 r1=0" mp;
    allowed Grid "MP, a failed compare-and-swap releases nothing" ["st.relaxed.gpu.u32 [y], 1;", "st.u32 [x], 1; atom.release.gpu.cas.b32 %r2, [y], 7, 8;", "ld.acquire.gpu.u32 %r0, [y]; ld.u32 %r1, [x];"] "r2=1 r0=1 r1=0" |o| o[2] == 1 && o[0] == 1 && o[1] == 0;

    allowed Grid "LB, relaxed" ["ld.relaxed.gpu.u32 %r0, [x]; st.relaxed.gpu.u32 [y], 1;", "ld.relaxed.gpu.u32 %r1, [y]; st.relaxed.gpu.u32 [x], 1;"] "r0=1 r1=1" lb;
    allowed Grid "LB, weak" ["ld.u32 %r0, [x]; st.u32 [y], 1;", "ld.u32 %r1, [y]; st.u32 [x], 1;"] "r0=1 r1=1" lb;
    allowed Grid "LB, one side depends" ["ld.relaxed.gpu.u32 %r0, [x]; st.relaxed.gpu.u32 [y], 1;", "ld.relaxed.gpu.u32 %r1, [y]; st.relaxed.gpu.u32 [x], %r1;"] "r0=1 r1=1" lb;
    forbidden Grid "LB, both depend by data: thin air" ["ld.relaxed.gpu.u32 %r0, [x]; st.relaxed.gpu.u32 [y], %r0;", "ld.relaxed.gpu.u32 %r1, [y]; st.relaxed.gpu.u32 [x], %r1;"] "r0!=0 r1!=0" |o| o[0] != 0 || o[1] != 0;
    forbidden Grid "LB, both depend by data, through arithmetic" ["ld.u32 %r0, [x]; and.b32 %r2, %r0, %zero; add.u32 %r2, %r2, 1; st.u32 [y], %r2;", "ld.u32 %r1, [y]; and.b32 %r3, %r1, %zero; add.u32 %r3, %r3, 1; st.u32 [x], %r3;"] "r0=1 r1=1" lb;
    forbidden Grid "LB, both depend by control" ["ld.relaxed.gpu.u32 %r0, [x]; setp.eq.u32 %p, %r0, 0; @%p bra L@; st.relaxed.gpu.u32 [y], 1; L@:", "ld.relaxed.gpu.u32 %r1, [y]; setp.eq.u32 %p, %r1, 0; @%p bra L@; st.relaxed.gpu.u32 [x], 1; L@:"] "r0=1 r1=1" lb;
    forbidden Grid "LB, acquire and release" ["ld.acquire.gpu.u32 %r0, [x]; st.relaxed.gpu.u32 [y], 1;", "ld.relaxed.gpu.u32 %r1, [y]; st.release.gpu.u32 [x], 1;"] "r0=1 r1=1" lb;
    forbidden Grid "LB, fences" ["ld.relaxed.gpu.u32 %r0, [x]; fence.acq_rel.gpu; st.relaxed.gpu.u32 [y], 1;", "ld.relaxed.gpu.u32 %r1, [y]; fence.acq_rel.gpu; st.relaxed.gpu.u32 [x], 1;"] "r0=1 r1=1" lb;

    allowed Grid "S, relaxed" ["st.relaxed.gpu.u32 [x], 2; st.relaxed.gpu.u32 [y], 1;", "ld.relaxed.gpu.u32 %r0, [y]; st.relaxed.gpu.u32 [x], 1;"] "r0=1 x=2" |o| o[0] == 1 && o[X] == 2;
    forbidden Grid "S, release and acquire" ["st.u32 [x], 2; st.release.gpu.u32 [y], 1;", "ld.acquire.gpu.u32 %r0, [y]; st.u32 [x], 1;"] "r0=1 x=2" |o| o[0] == 1 && o[X] == 2;
    allowed Grid "R, release" ["st.relaxed.gpu.u32 [x], 1; st.release.gpu.u32 [y], 1;", "st.relaxed.gpu.u32 [y], 2; ld.acquire.gpu.u32 %r0, [x];"] "y=2 r0=0" |o| o[Y] == 2 && o[0] == 0;
    forbidden Grid "R, fence.sc" ["st.relaxed.gpu.u32 [x], 1; fence.sc.gpu; st.relaxed.gpu.u32 [y], 1;", "st.relaxed.gpu.u32 [y], 2; fence.sc.gpu; ld.relaxed.gpu.u32 %r0, [x];"] "y=2 r0=0" |o| o[Y] == 2 && o[0] == 0;
    allowed Grid "2+2W, relaxed" ["st.relaxed.gpu.u32 [x], 1; st.relaxed.gpu.u32 [y], 2;", "st.relaxed.gpu.u32 [y], 1; st.relaxed.gpu.u32 [x], 2;"] "x=1 y=1" |o| o[X] == 1 && o[Y] == 1;
    forbidden Grid "2+2W, fence.sc" ["st.relaxed.gpu.u32 [x], 1; fence.sc.gpu; st.relaxed.gpu.u32 [y], 2;", "st.relaxed.gpu.u32 [y], 1; fence.sc.gpu; st.relaxed.gpu.u32 [x], 2;"] "x=1 y=1" |o| o[X] == 1 && o[Y] == 1;

    allowed Grid "IRIW, relaxed" ["st.relaxed.gpu.u32 [x], 1;", "st.relaxed.gpu.u32 [y], 1;", "ld.relaxed.gpu.u32 %r0, [x]; ld.relaxed.gpu.u32 %r1, [y];", "ld.relaxed.gpu.u32 %r2, [y]; ld.relaxed.gpu.u32 %r3, [x];"] "r0=1 r1=0 r2=1 r3=0" iriw;
    allowed Grid "IRIW, acquire" ["st.release.gpu.u32 [x], 1;", "st.release.gpu.u32 [y], 1;", "ld.acquire.gpu.u32 %r0, [x]; ld.acquire.gpu.u32 %r1, [y];", "ld.acquire.gpu.u32 %r2, [y]; ld.acquire.gpu.u32 %r3, [x];"] "r0=1 r1=0 r2=1 r3=0" iriw;
    forbidden Grid "IRIW, fence.sc" ["st.relaxed.gpu.u32 [x], 1;", "st.relaxed.gpu.u32 [y], 1;", "ld.relaxed.gpu.u32 %r0, [x]; fence.sc.gpu; ld.relaxed.gpu.u32 %r1, [y];", "ld.relaxed.gpu.u32 %r2, [y]; fence.sc.gpu; ld.relaxed.gpu.u32 %r3, [x];"] "r0=1 r1=0 r2=1 r3=0" iriw;
    allowed Grid "WRC, relaxed" ["st.relaxed.gpu.u32 [x], 1;", "ld.relaxed.gpu.u32 %r0, [x]; st.relaxed.gpu.u32 [y], 1;", "ld.relaxed.gpu.u32 %r1, [y]; ld.relaxed.gpu.u32 %r2, [x];"] "r0=1 r1=1 r2=0" three;
    allowed Grid "WRC, without the release" ["st.relaxed.gpu.u32 [x], 1;", "ld.relaxed.gpu.u32 %r0, [x]; st.relaxed.gpu.u32 [y], 1;", "ld.acquire.gpu.u32 %r1, [y]; ld.relaxed.gpu.u32 %r2, [x];"] "r0=1 r1=1 r2=0" three;
    allowed Grid "WRC, without the acquire" ["st.relaxed.gpu.u32 [x], 1;", "ld.relaxed.gpu.u32 %r0, [x]; st.release.gpu.u32 [y], 1;", "ld.relaxed.gpu.u32 %r1, [y]; ld.relaxed.gpu.u32 %r2, [x];"] "r0=1 r1=1 r2=0" three;
    forbidden Grid "WRC, release and acquire" ["st.relaxed.gpu.u32 [x], 1;", "ld.relaxed.gpu.u32 %r0, [x]; st.release.gpu.u32 [y], 1;", "ld.acquire.gpu.u32 %r1, [y]; ld.relaxed.gpu.u32 %r2, [x];"] "r0=1 r1=1 r2=0" three;
    forbidden Grid "ISA2" ["st.u32 [x], 1; st.release.gpu.u32 [y], 1;", "ld.acquire.gpu.u32 %r0, [y]; st.release.gpu.u32 [z], 1;", "ld.acquire.gpu.u32 %r1, [z]; ld.u32 %r2, [x];"] "r0=1 r1=1 r2=0" three;
    allowed Grid "ISA2, without the first acquire" ["st.u32 [x], 1; st.release.gpu.u32 [y], 1;", "ld.relaxed.gpu.u32 %r0, [y]; st.release.gpu.u32 [z], 1;", "ld.acquire.gpu.u32 %r1, [z]; ld.u32 %r2, [x];"] "r0=1 r1=1 r2=0" three;
    allowed Grid "ISA2, without the second release" ["st.u32 [x], 1; st.release.gpu.u32 [y], 1;", "ld.acquire.gpu.u32 %r0, [y]; st.relaxed.gpu.u32 [z], 1;", "ld.acquire.gpu.u32 %r1, [z]; ld.u32 %r2, [x];"] "r0=1 r1=1 r2=0" three;
    allowed Grid "ISA2, the middle is .cta" ["st.u32 [x], 1; st.release.gpu.u32 [y], 1;", "ld.acquire.cta.u32 %r0, [y]; st.release.gpu.u32 [z], 1;", "ld.acquire.gpu.u32 %r1, [z]; ld.u32 %r2, [x];"] "r0=1 r1=1 r2=0" three;
    allowed Grid "RWC, acquire" ["st.relaxed.gpu.u32 [x], 1;", "ld.acquire.gpu.u32 %r0, [x]; ld.acquire.gpu.u32 %r1, [y];", "st.release.gpu.u32 [y], 1; ld.acquire.gpu.u32 %r2, [x];"] "r0=1 r1=0 r2=0" |o| o[0] == 1 && o[1] == 0 && o[2] == 0;
    forbidden Grid "RWC, fence.sc" ["st.relaxed.gpu.u32 [x], 1;", "ld.relaxed.gpu.u32 %r0, [x]; fence.sc.gpu; ld.relaxed.gpu.u32 %r1, [y];", "st.relaxed.gpu.u32 [y], 1; fence.sc.gpu; ld.relaxed.gpu.u32 %r2, [x];"] "r0=1 r1=0 r2=0" |o| o[0] == 1 && o[1] == 0 && o[2] == 0;

    allowed Grid "SB, in one word of 8 bytes" ["st.relaxed.gpu.u32 [x], 1; ld.relaxed.gpu.u32 %r0, [%x+4];", "st.relaxed.gpu.u32 [%x+4], 1; ld.relaxed.gpu.u32 %r1, [x];"] "r0=0 r1=0" sb;
    allowed Grid "MP, in one word of 8 bytes" ["st.u32 [x], 1; st.u32 [%x+4], 1;", "ld.u32 %r0, [%x+4]; ld.u32 %r1, [x];"] "r0=1 r1=0" mp;
    allowed Grid "MP, in one word of 8 bytes, the upper half first" ["st.relaxed.gpu.u16 [%x+6], 1; st.relaxed.gpu.u32 [x], 1;", "ld.relaxed.gpu.u32 %r0, [x]; ld.relaxed.gpu.u32 %r1, [%x+4];"] "r0=1 r1=0" mp;
    forbidden Grid "MP, in one word of 8 bytes, release and acquire" ["st.u32 [x], 1; st.release.gpu.u32 [%x+4], 1;", "ld.acquire.gpu.u32 %r0, [%x+4]; ld.u32 %r1, [x];"] "r0=1 r1=0" mp;
    forbidden Grid "MP, read as one word of 8 bytes" ["st.relaxed.gpu.u32 [x], 1; st.release.gpu.u32 [y], 1;", "ld.acquire.gpu.u32 %r0, [y]; ld.relaxed.gpu.u64 %d0, [x]; cvt.u32.u64 %r1, %d0;"] "r0=1 r1=0" mp;
    forbidden Grid "MP, written as one word of 8 bytes" ["st.relaxed.gpu.u64 [x], 1; fence.acq_rel.gpu; st.relaxed.gpu.u32 [y], 1;", "ld.relaxed.gpu.u32 %r0, [y]; fence.acq_rel.gpu; ld.relaxed.gpu.u32 %r1, [x];"] "r0=1 r1=0" mp;
    forbidden Grid "a torn word, half of it stored too" ["st.relaxed.gpu.u64 [x], 0x100000001;", "st.relaxed.gpu.u32 [%x+4], 0;", "ld.relaxed.gpu.u64 %d0, [x]; cvt.u32.u64 %r0, %d0; shr.u64 %d0, %d0, 32; cvt.u32.u64 %r1, %d0;"] "r0=0 r1=1" |o| o[0] == 0 && o[1] == 1;
    forbidden Grid "CoRR, of a half and of the whole" ["st.relaxed.gpu.u32 [x], 1;", "ld.relaxed.gpu.u32 %r0, [x]; ld.relaxed.gpu.u64 %d0, [x]; cvt.u32.u64 %r1, %d0;"] "r0=1 r1=0" mp;
    forbidden Grid "CoRR" ["st.u32 [x], 1;", "ld.u32 %r0, [x]; ld.u32 %r1, [x];"] "r0=1 r1=0" mp;
    forbidden Grid "CoRR, two readers" ["st.relaxed.gpu.u32 [x], 1;", "st.relaxed.gpu.u32 [x], 2;", "ld.relaxed.gpu.u32 %r0, [x]; ld.relaxed.gpu.u32 %r1, [x];", "ld.relaxed.gpu.u32 %r2, [x]; ld.relaxed.gpu.u32 %r3, [x];"] "r0=1 r1=2 r2=2 r3=1" |o| o[..4] == [1, 2, 2, 1];
    forbidden Grid "CoWW" ["st.u32 [x], 1; st.u32 [x], 2;", "st.u32 [y], 1;"] "x=1" |o| o[X] == 1;
    forbidden Grid "CoWR" ["st.u32 [x], 1; ld.u32 %r0, [x];", "st.relaxed.gpu.u32 [y], 1; ld.relaxed.gpu.u32 %r1, [x];"] "r0=0" |o| o[0] == 0;
    forbidden Grid "CoRW" ["ld.u32 %r0, [x]; st.u32 [x], 1;", "ld.u32 %r1, [x];"] "r0=1" |o| o[0] == 1;
    forbidden Grid "CoRW, another's store" ["ld.relaxed.gpu.u32 %r0, [x]; st.relaxed.gpu.u32 [x], 1;", "st.relaxed.gpu.u32 [x], 2;"] "r0=2 x=2" |o| o[0] == 2 && o[X] == 2;
    forbidden Grid "two atomic additions" ["atom.relaxed.gpu.add.u32 %r0, [x], 1;", "atom.relaxed.gpu.add.u32 %r1, [x], 1;"] "x!=2, or r0=r1" |o| o[X] != 2 || o[0] == o[1];
    forbidden Grid "a store inside an exchange" ["atom.relaxed.gpu.exch.b32 %r0, [x], 1;", "st.relaxed.gpu.u32 [x], 2;"] "r0=0 x=1" |o| o[0] == 0 && o[X] == 1;
    forbidden Grid "a torn word" ["st.relaxed.gpu.u64 [x], 0x100000001;", "ld.relaxed.gpu.u64 %d0, [x]; cvt.u32.u64 %r0, %d0; shr.u64 %d0, %d0, 32; cvt.u32.u64 %r1, %d0;"] "r0!=r1" |o| o[0] != o[1];
    forbidden Grid "a torn pair" ["st.relaxed.gpu.v2.u32 [x], {%one, %one};", "ld.relaxed.gpu.v2.u32 {%r0, %r1}, [x];"] "r0!=r1" |o| o[0] != o[1];
    forbidden Grid "a lock by exchange" ["atom.acquire.gpu.cas.b32 %r2, [y], 0, 1; setp.ne.u32 %p, %r2, 0; @%p bra L@; ld.u32 %r0, [x]; add.u32 %r4, %r0, 1; st.u32 [x], %r4; st.release.gpu.u32 [y], 0; L@:", "atom.acquire.gpu.cas.b32 %r3, [y], 0, 1; setp.ne.u32 %p, %r3, 0; @%p bra L@; ld.u32 %r1, [x]; add.u32 %r5, %r1, 1; st.u32 [x], %r5; st.release.gpu.u32 [y], 0; L@:"] "both had it, x=1" |o| o[2] == 0 && o[3] == 0 && o[X] == 1;
    allowed Grid "a lock released without a release" ["atom.acquire.gpu.cas.b32 %r2, [y], 0, 1; setp.ne.u32 %p, %r2, 0; @%p bra L@; ld.u32 %r0, [x]; add.u32 %r4, %r0, 1; st.u32 [x], %r4; st.relaxed.gpu.u32 [y], 0; L@:", "atom.acquire.gpu.cas.b32 %r3, [y], 0, 1; setp.ne.u32 %p, %r3, 0; @%p bra L@; ld.u32 %r1, [x]; add.u32 %r5, %r1, 1; st.u32 [x], %r5; st.relaxed.gpu.u32 [y], 0; L@:"] "both had it, x=1" |o| o[2] == 0 && o[3] == 0 && o[X] == 1;
};

const ROUNDS: u32 = 64;
const GROUPS: u32 = 8;
/// Instances of one launch.
pub const EACH: u32 = ROUNDS * GROUPS;
/// Bytes between the words of an instance.
const APART: u32 = 64;

/// What a module begins with.
pub const HEADER: &str = ".version 8.0\n.target sm_90\n.address_size 64\n";

/// Who runs a kernel: what it has before each instance.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Runner {
    /// The simulator, whose schedules are random.
    Simulator,
    /// A GPU: threads meet before each instance, wait a little each, and may have the words in their caches.
    Gpu,
}

impl Litmus {
    /// The kernel's PTX.
    pub fn kernel(&self, name: &str, runner: Runner) -> String {
        let (roles, gpu) = (self.roles.len(), runner == Runner::Gpu);
        let cluster = match self.place {
            Where::Cluster if gpu => format!(".explicitcluster\n.reqnctapercluster {roles}\n"),
            _ => String::new(),
        };
        let mut out = format!(
            ".visible .entry {name}(.param .u64 words, .param .u64 out, .param .u64 met, .param .u32 mode, .param .u32 zero)\n{cluster}{{\n\
             .shared .align 8 .b64 m;\n.shared .align 8 .b8 shared[4096];\n\
             .reg .pred %p, %q;\n.reg .b32 %r<8>, %one, %role, %group, %round, %at, %thread, %parity, %n, %k, %h, %zero;\n\
             .reg .b64 %x, %y, %z, %s, %o, %d0, %met;\n\
             mov.u32 %one, 1; ld.param.u32 %zero, [zero]; mov.u32 %round, 0; mov.u32 %thread, %tid.x;\n",
        );
        if self.place == Where::Block {
            let ready = if gpu {
                "mov.u64 %s, shared; mul.wide.u32 %d0, %thread, 8; add.u64 %s, %s, %d0; st.shared.u64 [%s], 0;\nbar.sync 0;\n"
            } else {
                "setp.ne.u32 %p, %role, 0; @%p bra READY;\nmbarrier.init.shared.b64 [m], 1;\nREADY: bar.sync 2, BLOCK;\n"
            };
            let lanes = "and.b32 %at, %thread, 31; setp.ne.u32 %p, %at, 0; @%p ret;\n";
            out += "shr.u32 %role, %thread, 5; mov.u32 %group, %ctaid.x;\n";
            out += &match gpu {
                true => format!("{ready}{lanes}"),
                false => format!("{lanes}{ready}"),
            }
            .replace("BLOCK", &(32 * roles).to_string());
        } else {
            out += &format!(
                "mov.u32 %at, %ctaid.x; div.u32 %group, %at, {roles}; rem.u32 %role, %at, {roles};\n"
            );
        }
        out += &format!(
            "ROUND: mad.lo.u32 %at, %group, {ROUNDS}, %round; and.b32 %parity, %round, 1;\n\
             mul.wide.u32 %d0, %at, {}; ld.param.u64 %x, [words]; add.u64 %x, %x, %d0; add.u64 %y, %x, {APART};\n\
             add.u64 %z, %y, {APART}; mul.wide.u32 %d0, %at, 32; ld.param.u64 %o, [out]; add.u64 %o, %o, %d0;\n\
             mul.wide.u32 %d0, %round, 8; mov.u64 %s, shared; add.u64 %s, %s, %d0;\n",
            3 * APART
        );
        if gpu {
            out += &meeting(roles);
        }
        for i in 1..roles {
            out += &format!("setp.eq.u32 %p, %role, {i}; @%p bra ROLE_{i};\n");
        }
        for (i, role) in self.roles.iter().enumerate() {
            let mut code = role.replace('@', "@@");
            // `L@` is a label of this role; another `@` is a guard.
            code = code.replace("L@@", &format!("L_{i}")).replace("@@", "@");
            for w in ["x", "y", "z", "s"] {
                code = code.replace(&format!("[{w}]"), &format!("[%{w}]"));
            }
            let named = |r: &u32| role.contains(&format!("%r{r}"));
            out += &format!("ROLE_{i}:\n");
            // What a branch skips reads 0.
            for r in (0..8).filter(named).filter(|_| role.contains("bra")) {
                out += &format!("mov.u32 %r{r}, 0;\n");
            }
            out += &format!("{}\n", code.replace("; ", ";\n"));
            for r in (0..8).filter(named) {
                out += &format!("st.u32 [%o+{}], %r{r};\n", 4 * r);
            }
            out += "bra NEXT;\n";
        }
        out += "NEXT: add.u32 %round, %round, 1;\n";
        if self.place != Where::Block && (self.place == Where::Grid || gpu) {
            out += &format!("add.u32 %role, %role, 1; rem.u32 %role, %role, {roles};\n");
        }
        out += &format!("setp.lt.u32 %p, %round, {ROUNDS}; @%p bra ROUND; ret;\n}}\n");
        out
    }

    /// Runs at least `instances`, from `seed` on: in how many the outcome was seen, and how many there were.
    pub fn run(&self, instances: u32, seed: u64, memory: MemoryModel) -> (u32, u32) {
        let (mut seen, mut all) = (0, 0);
        self.outcomes(instances, seed, memory, |outcome| {
            seen += u32::from((self.seen)(outcome));
            all += 1;
        });
        (seen, all)
    }

    /// Runs at least `instances`, from `seed` on.
    pub fn outcomes(
        &self,
        instances: u32,
        seed: u64,
        memory: MemoryModel,
        mut each: impl FnMut(&Outcome),
    ) {
        let roles = self.roles.len() as u32;
        let ptx = format!("{HEADER}{}", self.kernel("k", Runner::Simulator));
        for seed in seed..seed + u64::from(instances.div_ceil(EACH)) {
            let mut config = Config::default();
            (config.seed, config.memory) = (seed, memory);
            config.sms = 8;
            let mut machine = Machine::new(config);
            let module = machine
                .load_module(0, &ptx)
                .unwrap_or_else(|e| panic!("{}: {e}\n{ptx}", self.name));
            let words = u64::from(EACH * 3 * APART);
            let words = machine.memory_mut().allocate(0, words).unwrap();
            let out = machine
                .memory_mut()
                .allocate(0, u64::from(EACH) * 32)
                .unwrap();
            let (grid, block, cluster) = match self.place {
                Where::Grid => (GROUPS * roles, 1, 1),
                Where::Block => (GROUPS, 32 * roles, 1),
                Where::Cluster => (GROUPS * roles, 1, roles),
            };
            let launch = LaunchDesc {
                device: 0,
                function: machine.function(module, "k").unwrap(),
                grid: [grid, 1, 1],
                block: [block, 1, 1],
                cluster: [cluster, 1, 1],
                dynamic_shared: 0,
                user_dynamic: None,
                params: [words, out, 0, 0]
                    .iter()
                    .flat_map(|p: &u64| p.to_le_bytes())
                    .collect(),
                cooperative: false,
            };
            machine.launch(launch).unwrap();
            loop {
                match machine.run(1 << 40) {
                    RunEvent::Completed(_) => {}
                    RunEvent::Idle => break,
                    other => panic!("{}: seed {seed}: {other:?}", self.name),
                }
            }
            let word = |at: u64| {
                let mut bytes = [0; 4];
                machine.memory().read(at, &mut bytes).unwrap();
                u32::from_le_bytes(bytes)
            };
            for i in 0..u64::from(EACH) {
                let mut outcome = [0; 11];
                for (r, o) in outcome.iter_mut().enumerate() {
                    *o = match r as u64 {
                        r @ 0..8 => word(out + 32 * i + 4 * r),
                        v => word(words + u64::from(APART) * (3 * i + v - 8)),
                    };
                }
                each(&outcome);
            }
        }
    }
}

/// Threads of an instance meet, unless one is too late; then each waits a little, some with the words in their caches.
fn meeting(roles: usize) -> String {
    format!(
        "ld.param.u32 %h, [mode]; mad.lo.u32 %h, %at, 0x9E3779B1, %h; mad.lo.u32 %h, %role, 0x85EBCA6B, %h;\n\
         shr.u32 %n, %h, 15; xor.b32 %h, %h, %n; mul.lo.u32 %h, %h, 0x2C1B3C6D; shr.u32 %n, %h, 12; xor.b32 %h, %h, %n;\n\
         and.b32 %n, %h, 1; setp.eq.u32 %p, %n, 0; @%p bra COLD;\n\
         prefetch.global.L1 [%x]; prefetch.global.L1 [%y]; prefetch.global.L1 [%z];\n\
         COLD: mul.wide.u32 %d0, %at, 4; ld.param.u64 %met, [met]; add.u64 %met, %met, %d0; mov.u32 %k, 0;\n\
         red.relaxed.gpu.global.add.u32 [%met], 1;\n\
         MEET: ld.relaxed.gpu.global.u32 %n, [%met]; setp.ge.u32 %p, %n, {roles}; @%p bra MET;\n\
         add.u32 %k, %k, 1; setp.lt.u32 %q, %k, 2000; @%q bra MEET;\n\
         MET: shr.u32 %n, %h, 8; and.b32 %n, %n, 63; shr.u32 %k, %h, 16; and.b32 %k, %k, 1; mul.lo.u32 %n, %n, %k;\n\
         DELAY: setp.eq.u32 %p, %n, 0; @%p bra GO; ld.volatile.shared.b64 %d0, [m]; sub.u32 %n, %n, 1; bra DELAY;\n\
         GO:\n"
    )
}
