//! Litmus tests in which threads meet by atomics: read-modify-writes may be put off like loads and stores, one side or both.

use super::{Litmus, Outcome, Where, X, Y, iriw, lb, mp, sb, three};

fn r(o: &Outcome) -> bool {
    o[Y] == 2 && o[0] == 0
}

fn ones(o: &Outcome) -> bool {
    o[X] == 1 && o[Y] == 1
}

/// They begin like those of [`super::ALL`]: what is exchanged is dropped into registers that the outcome does not name.
#[rustfmt::skip]
pub const ATOMICS: &[Litmus] = litmus! {
    allowed Grid "SB, atomics" ["atom.relaxed.gpu.exch.b32 %r2, [x], 1; atom.relaxed.gpu.add.u32 %r0, [y], 0;", "atom.relaxed.gpu.exch.b32 %r3, [y], 1; atom.relaxed.gpu.add.u32 %r1, [x], 0;"] "r0=0 r1=0" sb;
    allowed Grid "SB, atomics, .sys" ["atom.relaxed.sys.exch.b32 %r2, [x], 1; atom.relaxed.sys.add.u32 %r0, [y], 0;", "atom.relaxed.sys.exch.b32 %r3, [y], 1; atom.relaxed.sys.or.b32 %r1, [x], 0;"] "r0=0 r1=0" sb;
    allowed Block "SB, atomics, in a block" ["atom.relaxed.cta.exch.b32 %r2, [x], 1; atom.relaxed.cta.add.u32 %r0, [y], 0;", "atom.relaxed.cta.exch.b32 %r3, [y], 1; atom.relaxed.cta.add.u32 %r1, [x], 0;"] "r0=0 r1=0" sb;
    allowed Cluster "SB, atomics, in a cluster" ["atom.relaxed.cluster.exch.b32 %r2, [x], 1; atom.relaxed.cluster.add.u32 %r0, [y], 0;", "atom.relaxed.cluster.exch.b32 %r3, [y], 1; atom.relaxed.cluster.add.u32 %r1, [x], 0;"] "r0=0 r1=0" sb;
    allowed Grid "SB, red and atom" ["red.relaxed.gpu.add.u32 [x], 1; atom.relaxed.gpu.add.u32 %r0, [y], 0;", "red.relaxed.gpu.or.b32 [y], 1; atom.relaxed.gpu.max.u32 %r1, [x], 0;"] "r0=0 r1=0" sb;
    allowed Grid "SB, st and atom" ["st.relaxed.gpu.u32 [x], 1; atom.relaxed.gpu.add.u32 %r0, [y], 0;", "st.relaxed.gpu.u32 [y], 1; atom.relaxed.gpu.add.u32 %r1, [x], 0;"] "r0=0 r1=0" sb;
    allowed Grid "SB, weak st and atom.cas" ["st.u32 [x], 1; atom.relaxed.gpu.cas.b32 %r0, [y], 7, 8;", "st.u32 [y], 1; atom.relaxed.gpu.cas.b32 %r1, [x], 7, 8;"] "r0=0 r1=0" sb;
    allowed Grid "SB, a vector's st and atom" ["st.relaxed.gpu.v2.u32 [x], {%one, %one}; atom.relaxed.gpu.add.u32 %r0, [y], 0;", "st.relaxed.gpu.v2.u32 [y], {%one, %one}; atom.relaxed.gpu.add.u32 %r1, [x], 0;"] "r0=0 r1=0" sb;
    allowed Grid "SB, atom.release and atom.acquire" ["atom.release.gpu.exch.b32 %r2, [x], 1; atom.acquire.gpu.add.u32 %r0, [y], 0;", "atom.release.gpu.exch.b32 %r3, [y], 1; atom.acquire.gpu.add.u32 %r1, [x], 0;"] "r0=0 r1=0" sb;
    allowed Grid "SB, atomics, one fence.sc" ["atom.relaxed.gpu.exch.b32 %r2, [x], 1; fence.sc.gpu; atom.relaxed.gpu.add.u32 %r0, [y], 0;", "atom.relaxed.gpu.exch.b32 %r3, [y], 1; atom.relaxed.gpu.add.u32 %r1, [x], 0;"] "r0=0 r1=0" sb;
    forbidden Grid "SB, atomics, fence.sc" ["atom.relaxed.gpu.exch.b32 %r2, [x], 1; fence.sc.gpu; atom.relaxed.gpu.add.u32 %r0, [y], 0;", "atom.relaxed.gpu.exch.b32 %r3, [y], 1; fence.sc.gpu; atom.relaxed.gpu.add.u32 %r1, [x], 0;"] "r0=0 r1=0" sb;
    forbidden Grid "SB, red and atom.sys, membar.sys" ["red.relaxed.sys.add.u32 [x], 1; membar.sys; atom.relaxed.sys.add.u32 %r0, [y], 0;", "red.relaxed.sys.add.u32 [y], 1; membar.sys; atom.relaxed.sys.add.u32 %r1, [x], 0;"] "r0=0 r1=0" sb;
    forbidden Block "SB, atomics, fence.sc.cta in a block" ["atom.relaxed.cta.exch.b32 %r2, [x], 1; fence.sc.cta; atom.relaxed.cta.add.u32 %r0, [y], 0;", "atom.relaxed.cta.exch.b32 %r3, [y], 1; fence.sc.cta; atom.relaxed.cta.add.u32 %r1, [x], 0;"] "r0=0 r1=0" sb;
    forbidden Grid "SB, atomics, fence.acq_rel: the exchange reads what the addition left" ["atom.relaxed.gpu.exch.b32 %r2, [x], 1; fence.acq_rel.gpu; atom.relaxed.gpu.add.u32 %r0, [y], 0;", "atom.relaxed.gpu.exch.b32 %r3, [y], 1; fence.acq_rel.gpu; atom.relaxed.gpu.add.u32 %r1, [x], 0;"] "r0=0 r1=0" sb;
    forbidden Grid "SB, atom.acq_rel" ["atom.acq_rel.gpu.exch.b32 %r2, [x], 1; atom.acq_rel.gpu.add.u32 %r0, [y], 0;", "atom.acq_rel.gpu.exch.b32 %r3, [y], 1; atom.acq_rel.gpu.add.u32 %r1, [x], 0;"] "r0=0 r1=0" sb;
    allowed Grid "SB, st and atom, fence.acq_rel" ["st.relaxed.gpu.u32 [x], 1; fence.acq_rel.gpu; atom.relaxed.gpu.add.u32 %r0, [y], 0;", "st.relaxed.gpu.u32 [y], 1; fence.acq_rel.gpu; atom.relaxed.gpu.add.u32 %r1, [x], 0;"] "r0=0 r1=0" sb;
    forbidden Grid "SB, st and atom, fence.sc" ["st.relaxed.gpu.u32 [x], 1; fence.sc.gpu; atom.relaxed.gpu.add.u32 %r0, [y], 0;", "st.relaxed.gpu.u32 [y], 1; fence.sc.gpu; atom.relaxed.gpu.add.u32 %r1, [x], 0;"] "r0=0 r1=0" sb;

    allowed Grid "MP, atomics" ["atom.relaxed.gpu.exch.b32 %r2, [x], 1; atom.relaxed.gpu.exch.b32 %r3, [y], 1;", "atom.relaxed.gpu.add.u32 %r0, [y], 0; atom.relaxed.gpu.add.u32 %r1, [x], 0;"] "r0=1 r1=0" mp;
    allowed Grid "MP, atomics, .sys" ["atom.relaxed.sys.exch.b32 %r2, [x], 1; atom.relaxed.sys.exch.b32 %r3, [y], 1;", "atom.relaxed.sys.add.u32 %r0, [y], 0; atom.relaxed.sys.add.u32 %r1, [x], 0;"] "r0=1 r1=0" mp;
    allowed Block "MP, atomics, in a block" ["atom.relaxed.cta.exch.b32 %r2, [x], 1; atom.relaxed.cta.exch.b32 %r3, [y], 1;", "atom.relaxed.cta.add.u32 %r0, [y], 0; atom.relaxed.cta.add.u32 %r1, [x], 0;"] "r0=1 r1=0" mp;
    allowed Block "MP, atomics, one of them on shared memory" ["atom.relaxed.cta.exch.b32 %r2, [x], 1; atom.relaxed.cta.shared.exch.b32 %r3, [s], 1;", "atom.relaxed.cta.shared.add.u32 %r0, [s], 0; atom.relaxed.cta.add.u32 %r1, [x], 0;"] "r0=1 r1=0" mp;
    allowed Grid "MP, two red" ["red.relaxed.gpu.add.u32 [x], 1; red.relaxed.gpu.add.u32 [y], 1;", "ld.relaxed.gpu.u32 %r0, [y]; fence.acq_rel.gpu; ld.relaxed.gpu.u32 %r1, [x];"] "r0=1 r1=0" mp;
    allowed Grid "MP, atomics, reader's fence only" ["atom.relaxed.gpu.exch.b32 %r2, [x], 1; atom.relaxed.gpu.exch.b32 %r3, [y], 1;", "atom.relaxed.gpu.add.u32 %r0, [y], 0; fence.acq_rel.gpu; atom.relaxed.gpu.add.u32 %r1, [x], 0;"] "r0=1 r1=0" mp;
    allowed Grid "MP, atomics, writer's fence only" ["atom.relaxed.gpu.exch.b32 %r2, [x], 1; fence.acq_rel.gpu; atom.relaxed.gpu.exch.b32 %r3, [y], 1;", "atom.relaxed.gpu.add.u32 %r0, [y], 0; atom.relaxed.gpu.add.u32 %r1, [x], 0;"] "r0=1 r1=0" mp;
    allowed Grid "MP, st and red, atomics behind fence.sc" ["st.u32 [x], 1; red.relaxed.gpu.add.u32 [y], 1;", "atom.relaxed.gpu.add.u32 %r0, [y], 0; fence.sc.gpu; atom.relaxed.gpu.add.u32 %r1, [x], 0;"] "r0=1 r1=0" mp;
    allowed Grid "MP, two st, atomics behind fence.sc" ["st.relaxed.gpu.u32 [x], 1; st.relaxed.gpu.u32 [y], 1;", "atom.relaxed.gpu.add.u32 %r0, [y], 0; fence.sc.gpu; atom.relaxed.gpu.add.u32 %r1, [x], 0;"] "r0=1 r1=0" mp;
    allowed Grid "MP, atomics, behind an acquire of another word" ["atom.relaxed.gpu.exch.b32 %r2, [x], 1; ld.acquire.gpu.u32 %r4, [z]; atom.relaxed.gpu.exch.b32 %r3, [y], 1;", "atom.relaxed.gpu.add.u32 %r0, [y], 0; fence.sc.gpu; atom.relaxed.gpu.add.u32 %r1, [x], 0;"] "r0=1 r1=0" mp;
    forbidden Grid "MP, atomics, behind a release of another word, read before" ["atom.relaxed.gpu.exch.b32 %r2, [x], 1; st.release.gpu.u32 [z], 1; st.relaxed.gpu.u32 [z], 2;", "ld.acquire.gpu.u32 %r0, [z]; atom.relaxed.gpu.add.u32 %r1, [x], 0;"] "r0!=0 r1=0" |o| o[0] != 0 && o[1] == 0;
    forbidden Grid "MP, atomics, fences" ["atom.relaxed.gpu.exch.b32 %r2, [x], 1; fence.acq_rel.gpu; atom.relaxed.gpu.exch.b32 %r3, [y], 1;", "atom.relaxed.gpu.add.u32 %r0, [y], 0; fence.acq_rel.gpu; atom.relaxed.gpu.add.u32 %r1, [x], 0;"] "r0=1 r1=0" mp;
    forbidden Grid "MP, two red, fences" ["red.relaxed.gpu.add.u32 [x], 1; fence.acq_rel.gpu; red.relaxed.gpu.add.u32 [y], 1;", "ld.relaxed.gpu.u32 %r0, [y]; fence.acq_rel.gpu; ld.relaxed.gpu.u32 %r1, [x];"] "r0=1 r1=0" mp;
    forbidden Grid "MP, atom.release and atom.acquire" ["atom.relaxed.gpu.exch.b32 %r2, [x], 1; atom.release.gpu.exch.b32 %r3, [y], 1;", "atom.acquire.gpu.add.u32 %r0, [y], 0; atom.relaxed.gpu.add.u32 %r1, [x], 0;"] "r0=1 r1=0" mp;
    forbidden Grid "MP, red.release and atom.acquire.sys, weak data" ["st.u32 [x], 1; red.release.sys.add.u32 [y], 1; st.u32 [z], 1;", "atom.acquire.sys.add.u32 %r0, [y], 0; ld.u32 %r1, [x];"] "r0=1 r1=0" mp;
    forbidden Block "MP, atom.release.cta in a block" ["atom.relaxed.cta.exch.b32 %r2, [x], 1; atom.release.cta.exch.b32 %r3, [y], 1;", "atom.acquire.cta.add.u32 %r0, [y], 0; atom.relaxed.cta.add.u32 %r1, [x], 0;"] "r0=1 r1=0" mp;
    forbidden Block "MP, red, bar.sync" ["red.relaxed.gpu.add.u32 [x], 1; bar.sync 1, 64; st.u32 [y], 1;", "bar.sync 1, 64; ld.u32 %r1, [x];"] "r1=0" |o| o[1] == 0;
    forbidden Block "MP, atomics, bar.sync" ["atom.relaxed.cta.exch.b32 %r2, [x], 1; bar.sync 1, 64; atom.relaxed.cta.exch.b32 %r3, [y], 1;", "bar.sync 1, 64; atom.relaxed.cta.add.u32 %r1, [x], 0;"] "r1=0" |o| o[1] == 0;
    forbidden Cluster "MP, red, barrier.cluster" ["red.relaxed.gpu.add.u32 [x], 1; barrier.cluster.arrive.aligned; barrier.cluster.wait.aligned; st.u32 [y], 1;", "barrier.cluster.arrive.aligned; barrier.cluster.wait.aligned; ld.u32 %r1, [x];"] "r1=0" |o| o[1] == 0;
    forbidden Block "MP, red, mbarrier" ["red.relaxed.gpu.add.u32 [x], 1; mbarrier.arrive.shared.b64 _, [m]; bar.sync 3, 64;", "L@: mbarrier.try_wait.parity.shared.b64 %p, [m], %parity; @!%p bra L@; ld.u32 %r1, [x]; bar.sync 3, 64;"] "r1=0" |o| o[1] == 0;
    forbidden Grid "MP, through two relaxed read-modify-writes" ["st.u32 [x], 1; st.release.gpu.u32 [y], 1;", "atom.relaxed.gpu.add.u32 %r2, [y], 1; atom.relaxed.gpu.exch.b32 %r4, [z], 1;", "ld.acquire.gpu.u32 %r0, [y]; ld.u32 %r1, [x];"] "r2=1 r0=2 r1=0" |o| o[2] == 1 && o[0] == 2 && o[1] == 0;

    allowed Grid "LB, atomics" ["atom.relaxed.gpu.add.u32 %r0, [x], 0; atom.relaxed.gpu.exch.b32 %r2, [y], 1;", "atom.relaxed.gpu.add.u32 %r1, [y], 0; atom.relaxed.gpu.exch.b32 %r3, [x], 1;"] "r0=1 r1=1" lb;
    allowed Grid "LB, ld and atom" ["ld.relaxed.gpu.u32 %r0, [x]; atom.relaxed.gpu.exch.b32 %r2, [y], 1;", "ld.relaxed.gpu.u32 %r1, [y]; atom.relaxed.gpu.exch.b32 %r3, [x], 1;"] "r0=1 r1=1" lb;
    allowed Grid "LB, weak ld and red" ["ld.u32 %r0, [x]; red.relaxed.gpu.add.u32 [y], 1;", "ld.u32 %r1, [y]; red.relaxed.gpu.add.u32 [x], 1;"] "r0=1 r1=1" lb;
    allowed Grid "LB, atom and st" ["atom.relaxed.gpu.add.u32 %r0, [x], 0; st.relaxed.gpu.u32 [y], 1;", "atom.relaxed.gpu.add.u32 %r1, [y], 0; st.relaxed.gpu.u32 [x], 1;"] "r0=1 r1=1" lb;
    allowed Grid "LB, a vector's ld and st" ["ld.relaxed.gpu.v2.u32 {%r0, %r2}, [x]; st.relaxed.gpu.u32 [y], 1;", "ld.relaxed.gpu.v2.u32 {%r1, %r3}, [y]; st.relaxed.gpu.u32 [x], 1;"] "r0=1 r1=1" lb;
    allowed Grid "LB, atomics, one side depends" ["atom.relaxed.gpu.add.u32 %r0, [x], 0; atom.relaxed.gpu.exch.b32 %r2, [y], 1;", "atom.relaxed.gpu.add.u32 %r1, [y], 0; atom.relaxed.gpu.exch.b32 %r3, [x], %r1;"] "r0=1 r1=1" lb;
    forbidden Grid "LB, atomics depend by data: thin air" ["atom.relaxed.gpu.add.u32 %r0, [x], 0; atom.relaxed.gpu.exch.b32 %r2, [y], %r0;", "atom.relaxed.gpu.add.u32 %r1, [y], 0; atom.relaxed.gpu.exch.b32 %r3, [x], %r1;"] "r0!=0 r1!=0" lb;
    forbidden Grid "LB, red depends by data" ["atom.relaxed.gpu.add.u32 %r0, [x], 0; or.b32 %r2, %r0, 1; red.relaxed.gpu.max.u32 [y], %r2;", "atom.relaxed.gpu.add.u32 %r1, [y], 0; or.b32 %r3, %r1, 1; red.relaxed.gpu.max.u32 [x], %r3;"] "r0=1 r1=1" lb;
    forbidden Grid "LB, atomics depend by address" ["atom.relaxed.gpu.add.u32 %r0, [x], 0; and.b32 %r4, %r0, %zero; cvt.u64.u32 %d0, %r4; add.u64 %d0, %d0, %y; atom.relaxed.gpu.exch.b32 %r2, [%d0], 1;", "atom.relaxed.gpu.add.u32 %r1, [y], 0; and.b32 %r5, %r1, %zero; cvt.u64.u32 %d0, %r5; add.u64 %d0, %d0, %x; st.relaxed.gpu.u32 [%d0], 1;"] "r0=1 r1=1" lb;
    forbidden Grid "LB, atomics depend by control" ["atom.relaxed.gpu.add.u32 %r0, [x], 0; setp.eq.u32 %p, %r0, 0; @%p bra L@; atom.relaxed.gpu.exch.b32 %r2, [y], 1; L@:", "atom.relaxed.gpu.add.u32 %r1, [y], 0; setp.ne.u32 %p, %r1, 0; @%p red.relaxed.gpu.add.u32 [x], 1;"] "r0=1 r1=1" lb;
    forbidden Grid "LB, atom.acquire and atom.release" ["atom.acquire.gpu.add.u32 %r0, [x], 0; atom.relaxed.gpu.exch.b32 %r2, [y], 1;", "atom.relaxed.gpu.add.u32 %r1, [y], 0; atom.release.gpu.exch.b32 %r3, [x], 1;"] "r0=1 r1=1" lb;
    forbidden Grid "LB, atomics, fences" ["atom.relaxed.gpu.add.u32 %r0, [x], 0; fence.acq_rel.gpu; atom.relaxed.gpu.exch.b32 %r2, [y], 1;", "atom.relaxed.gpu.add.u32 %r1, [y], 0; fence.acq_rel.gpu; atom.relaxed.gpu.exch.b32 %r3, [x], 1;"] "r0=1 r1=1" lb;

    allowed Grid "S, atomics" ["atom.relaxed.gpu.exch.b32 %r2, [x], 2; atom.relaxed.gpu.exch.b32 %r3, [y], 1;", "atom.relaxed.gpu.add.u32 %r0, [y], 0; atom.relaxed.gpu.exch.b32 %r4, [x], 1;"] "r0=1 x=2" |o| o[0] == 1 && o[X] == 2;
    forbidden Grid "S, atom.release and atom.acquire" ["atom.relaxed.gpu.exch.b32 %r2, [x], 2; atom.release.gpu.exch.b32 %r3, [y], 1;", "atom.acquire.gpu.add.u32 %r0, [y], 0; atom.relaxed.gpu.exch.b32 %r4, [x], 1;"] "r0=1 x=2" |o| o[0] == 1 && o[X] == 2;
    allowed Grid "R, atomics" ["atom.relaxed.gpu.exch.b32 %r2, [x], 1; atom.relaxed.gpu.exch.b32 %r3, [y], 1;", "atom.relaxed.gpu.exch.b32 %r4, [y], 2; atom.relaxed.gpu.add.u32 %r0, [x], 0;"] "y=2 r0=0" r;
    forbidden Grid "R, atomics, fence.sc" ["atom.relaxed.gpu.exch.b32 %r2, [x], 1; fence.sc.gpu; atom.relaxed.gpu.exch.b32 %r3, [y], 1;", "atom.relaxed.gpu.exch.b32 %r4, [y], 2; fence.sc.gpu; atom.relaxed.gpu.add.u32 %r0, [x], 0;"] "y=2 r0=0" r;
    forbidden Grid "R, atomics, fence.acq_rel" ["atom.relaxed.gpu.exch.b32 %r2, [x], 1; fence.acq_rel.gpu; atom.relaxed.gpu.exch.b32 %r3, [y], 1;", "atom.relaxed.gpu.exch.b32 %r4, [y], 2; fence.acq_rel.gpu; atom.relaxed.gpu.add.u32 %r0, [x], 0;"] "y=2 r0=0" r;
    allowed Grid "2+2W, atomics" ["atom.relaxed.gpu.exch.b32 %r0, [x], 1; atom.relaxed.gpu.exch.b32 %r1, [y], 2;", "atom.relaxed.gpu.exch.b32 %r2, [y], 1; atom.relaxed.gpu.exch.b32 %r3, [x], 2;"] "x=1 y=1" ones;
    allowed Grid "2+2W, st and atom" ["st.relaxed.gpu.u32 [x], 1; atom.relaxed.gpu.exch.b32 %r1, [y], 2;", "st.relaxed.gpu.u32 [y], 1; atom.relaxed.gpu.exch.b32 %r3, [x], 2;"] "x=1 y=1" ones;
    forbidden Grid "2+2W, atomics, fence.sc" ["atom.relaxed.gpu.exch.b32 %r0, [x], 1; fence.sc.gpu; atom.relaxed.gpu.exch.b32 %r1, [y], 2;", "atom.relaxed.gpu.exch.b32 %r2, [y], 1; fence.sc.gpu; atom.relaxed.gpu.exch.b32 %r3, [x], 2;"] "x=1 y=1" ones;
    forbidden Grid "2+2W, atomics, fence.acq_rel" ["atom.relaxed.gpu.exch.b32 %r0, [x], 1; fence.acq_rel.gpu; atom.relaxed.gpu.exch.b32 %r1, [y], 2;", "atom.relaxed.gpu.exch.b32 %r2, [y], 1; fence.acq_rel.gpu; atom.relaxed.gpu.exch.b32 %r3, [x], 2;"] "x=1 y=1" ones;

    allowed Grid "IRIW, atomics" ["atom.relaxed.gpu.exch.b32 %r4, [x], 1;", "atom.relaxed.gpu.exch.b32 %r5, [y], 1;", "atom.relaxed.gpu.add.u32 %r0, [x], 0; atom.relaxed.gpu.add.u32 %r1, [y], 0;", "atom.relaxed.gpu.add.u32 %r2, [y], 0; atom.relaxed.gpu.add.u32 %r3, [x], 0;"] "r0=1 r1=0 r2=1 r3=0" iriw;
    forbidden Grid "IRIW, atomics, fence.sc" ["atom.relaxed.gpu.exch.b32 %r4, [x], 1;", "atom.relaxed.gpu.exch.b32 %r5, [y], 1;", "atom.relaxed.gpu.add.u32 %r0, [x], 0; fence.sc.gpu; atom.relaxed.gpu.add.u32 %r1, [y], 0;", "atom.relaxed.gpu.add.u32 %r2, [y], 0; fence.sc.gpu; atom.relaxed.gpu.add.u32 %r3, [x], 0;"] "r0=1 r1=0 r2=1 r3=0" iriw;
    forbidden Grid "IRIW, atomics, fence.acq_rel" ["atom.relaxed.gpu.exch.b32 %r4, [x], 1;", "atom.relaxed.gpu.exch.b32 %r5, [y], 1;", "atom.relaxed.gpu.add.u32 %r0, [x], 0; fence.acq_rel.gpu; atom.relaxed.gpu.add.u32 %r1, [y], 0;", "atom.relaxed.gpu.add.u32 %r2, [y], 0; fence.acq_rel.gpu; atom.relaxed.gpu.add.u32 %r3, [x], 0;"] "r0=1 r1=0 r2=1 r3=0" iriw;
    allowed Grid "WRC, atomics" ["atom.relaxed.gpu.exch.b32 %r4, [x], 1;", "atom.relaxed.gpu.add.u32 %r0, [x], 0; atom.relaxed.gpu.exch.b32 %r5, [y], 1;", "atom.relaxed.gpu.add.u32 %r1, [y], 0; atom.relaxed.gpu.add.u32 %r2, [x], 0;"] "r0=1 r1=1 r2=0" three;
    forbidden Grid "WRC, atom.release and atom.acquire" ["atom.relaxed.gpu.exch.b32 %r4, [x], 1;", "atom.relaxed.gpu.add.u32 %r0, [x], 0; atom.release.gpu.exch.b32 %r5, [y], 1;", "atom.acquire.gpu.add.u32 %r1, [y], 0; atom.relaxed.gpu.add.u32 %r2, [x], 0;"] "r0=1 r1=1 r2=0" three;
    forbidden Grid "ISA2, atomics" ["red.relaxed.gpu.add.u32 [x], 1; red.release.gpu.add.u32 [y], 1;", "atom.acquire.gpu.add.u32 %r0, [y], 0; atom.release.gpu.exch.b32 %r5, [z], 1;", "atom.acquire.gpu.add.u32 %r1, [z], 0; atom.relaxed.gpu.add.u32 %r2, [x], 0;"] "r0=1 r1=1 r2=0" three;

    forbidden Grid "CoRR, atomics" ["atom.relaxed.gpu.exch.b32 %r2, [x], 1; st.relaxed.gpu.u32 [y], 1;", "atom.relaxed.gpu.add.u32 %r0, [x], 0; atom.relaxed.gpu.add.u32 %r1, [x], 0; st.relaxed.gpu.u32 [z], 1;"] "r0=1 r1=0" mp;
    forbidden Grid "CoRR, atom and ld" ["red.relaxed.gpu.add.u32 [x], 1; st.u32 [y], 1;", "atom.relaxed.gpu.add.u32 %r0, [x], 0; ld.relaxed.gpu.u32 %r1, [x]; st.u32 [z], 1;"] "r0=1 r1=0" mp;
    forbidden Grid "CoRR, ld and atom" ["red.relaxed.gpu.add.u32 [x], 1; st.u32 [y], 1;", "ld.relaxed.gpu.u32 %r0, [x]; atom.relaxed.gpu.add.u32 %r1, [x], 0; st.u32 [z], 1;"] "r0=1 r1=0" mp;
    forbidden Grid "CoWR, red and ld" ["red.relaxed.gpu.add.u32 [x], 1; ld.relaxed.gpu.u32 %r0, [x]; st.u32 [y], 1;", "red.relaxed.gpu.add.u32 [x], 1; atom.relaxed.gpu.exch.b32 %r2, [z], 1;"] "r0=0" |o| o[0] == 0;
    forbidden Grid "CoWR, st and atom" ["st.u32 [x], 1; atom.relaxed.gpu.add.u32 %r0, [x], 0; st.u32 [y], 1;", "st.relaxed.gpu.u32 [z], 1; atom.relaxed.gpu.add.u32 %r1, [y], 0;"] "r0=0" |o| o[0] == 0;
    forbidden Grid "CoRW, atom and st" ["atom.relaxed.gpu.add.u32 %r0, [x], 0; st.relaxed.gpu.u32 [x], 1; st.u32 [y], 1;", "ld.u32 %r1, [x]; st.u32 [z], 1;"] "r0=1" |o| o[0] == 1;
    forbidden Grid "CoWW, st, red and st" ["st.u32 [x], 1; red.relaxed.gpu.add.u32 [x], 1; st.u32 [y], 1;", "st.u32 [z], 1;"] "x!=2" |o| o[X] != 2;
    forbidden Grid "additions, put off" ["atom.relaxed.gpu.add.u32 %r0, [x], 1; atom.relaxed.gpu.exch.b32 %r4, [y], 1;", "atom.relaxed.gpu.add.u32 %r1, [x], 1; atom.relaxed.gpu.exch.b32 %r5, [z], 1;", "red.relaxed.gpu.add.u32 [x], 1; red.relaxed.gpu.add.u32 [y], 1;"] "x!=3, or r0=r1" |o| o[X] != 3 || o[0] == o[1];
    forbidden Grid "a store inside an exchange, put off" ["atom.relaxed.gpu.exch.b32 %r0, [x], 1; st.relaxed.gpu.u32 [y], 1;", "st.relaxed.gpu.u32 [x], 2; st.relaxed.gpu.u32 [z], 1;"] "r0=0 x=1" |o| o[0] == 0 && o[X] == 1;
    forbidden Grid "two compare-and-swaps" ["atom.relaxed.gpu.cas.b32 %r0, [x], 0, 1; atom.relaxed.gpu.exch.b32 %r4, [y], 1;", "atom.relaxed.gpu.cas.b32 %r1, [x], 0, 2; atom.relaxed.gpu.exch.b32 %r5, [z], 1;"] "both have won, or none" |o| (o[0] == 0) == (o[1] == 0) || o[X] != if o[0] == 0 { 1 } else { 2 };
    forbidden Grid "a lock by atomics and fences" ["atom.relaxed.gpu.cas.b32 %r2, [y], 0, 1; setp.ne.u32 %p, %r2, 0; @%p bra L@; fence.acq_rel.gpu; ld.u32 %r0, [x]; add.u32 %r4, %r0, 1; st.u32 [x], %r4; fence.acq_rel.gpu; atom.relaxed.gpu.exch.b32 %r6, [y], 0; L@:", "atom.relaxed.gpu.cas.b32 %r3, [y], 0, 1; setp.ne.u32 %p, %r3, 0; @%p bra L@; fence.acq_rel.gpu; ld.u32 %r1, [x]; add.u32 %r5, %r1, 1; st.u32 [x], %r5; fence.acq_rel.gpu; atom.relaxed.gpu.exch.b32 %r7, [y], 0; L@:"] "both had it, x=1" |o| o[2] == 0 && o[3] == 0 && o[X] == 1;
};
