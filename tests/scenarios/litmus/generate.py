#!/usr/bin/env python3
"""Writes the litmus scenarios beside this file: `python3 generate.py`. Their text is what counts, and it is checked in."""

import functools
import pathlib
import sys

HERE = pathlib.Path(__file__).parent
sys.path.insert(0, str(HERE.parent))
sys.dont_write_bytecode = True

import kit  # noqa: E402
from kit import GO, once, race, role, wait  # noqa: E402

litmus = functools.partial(kit.litmus, HERE)

# --- Message passing: data, then a flag; the flag, then the data. ------------------------------------------------------

STORE = "st.global.u32 [%data], 1;"
LOAD = "ld.global.u32 %value, [%data]; @@read"
LOAD_OK = "ld.global.u32 %value, [%data];"

# What makes a complete release, by scope.
RELEASES = {
    "st_release_gpu": "st.release.gpu.global.u32 [%flag], 1;",
    "st_release_sys": "st.release.sys.global.u32 [%flag], 1;",
    "fence_st_relaxed": "fence.acq_rel.gpu;\nst.relaxed.gpu.global.u32 [%flag], 1;",
    "fence_sc_st_relaxed_sys": "fence.sc.sys;\nst.relaxed.sys.global.u32 [%flag], 1;",
    "membar_st_volatile": "membar.gl;\nst.volatile.global.u32 [%flag], 1;",
    "atom_release": "atom.global.release.gpu.exch.b32 %old, [%flag], 1;",
    "atom_acq_rel_sys": "atom.global.acq_rel.sys.add.u32 %old, [%flag], 1;",
    "cas_release": "atom.global.release.gpu.cas.b32 %old, [%flag], 0, 1;",
    "red_release": "red.release.gpu.global.add.u32 [%flag], 1;",
    "fence_atom_relaxed": "fence.acq_rel.gpu;\natom.global.relaxed.gpu.or.b32 %old, [%flag], 1;",
    "fence_red": "membar.gl;\nred.global.add.u32 [%flag], 1;",
}

# What makes a complete acquire, as a poll and what follows it.
ACQUIRES = {
    "ld_acquire_gpu": ("ld.acquire.gpu.global.u32 %seen, [%flag];", ""),
    "ld_acquire_sys": ("ld.acquire.sys.global.u32 %seen, [%flag];", ""),
    "ld_relaxed_fence": ("ld.relaxed.gpu.global.u32 %seen, [%flag];", "fence.acq_rel.gpu;"),
    "ld_relaxed_fence_sc_sys": ("ld.relaxed.sys.global.u32 %seen, [%flag];", "fence.sc.sys;"),
    "ld_volatile_membar": ("ld.volatile.global.u32 %seen, [%flag];", "membar.gl;"),
    "atom_acquire": ("atom.global.acquire.gpu.add.u32 %seen, [%flag], 0;", ""),
    "cas_acq_rel": ("atom.global.acq_rel.gpu.cas.b32 %seen, [%flag], 7, 8;", ""),
    "atom_relaxed_fence": ("atom.global.relaxed.gpu.or.b32 %seen, [%flag], 0;", "fence.acq_rel.gpu;"),
}

HALF_RELEASES = {
    "st_relaxed": ("st.relaxed.gpu.global.u32 [%flag], 1;",
                   "A relaxed store publishes nothing: there is no release pattern, whatever the reader does."),
    "st_volatile": ("st.volatile.global.u32 [%flag], 1;",
                    "A volatile store is a relaxed one at system scope: it publishes nothing."),
    "atom_relaxed": ("atom.global.exch.b32 %old, [%flag], 1;",
                     "An atomic without an order is relaxed: it publishes nothing."),
    "atom_acquire": ("atom.global.acquire.gpu.exch.b32 %old, [%flag], 1;",
                     "An acquire exchange takes and does not give."),
    "red_relaxed": ("red.relaxed.gpu.global.add.u32 [%flag], 1;",
                    "A relaxed reduction publishes nothing."),
    "fence_after": ("st.relaxed.gpu.global.u32 [%flag], 1;\nfence.acq_rel.gpu;",
                    "The fence comes after the flag's store; a release pattern is a fence and then a strong write."),
    "fence_cta": ("fence.acq_rel.cta;\nst.relaxed.gpu.global.u32 [%flag], 1;",
                  "The fence reaches the own block only: it and the reader's acquire are not morally strong."),
}

HALF_ACQUIRES = {
    "ld_relaxed": ("ld.relaxed.gpu.global.u32 %seen, [%flag];", "",
                   "A relaxed load with no fence after it is no acquire pattern."),
    "ld_volatile": ("ld.volatile.global.u32 %seen, [%flag];", "",
                    "A volatile load is a relaxed one at system scope; with no fence after it, it acquires nothing."),
    "atom_relaxed": ("atom.global.add.u32 %seen, [%flag], 0;", "",
                     "An atomic without an order is relaxed: it acquires nothing."),
    "atom_release": ("atom.global.release.gpu.add.u32 %seen, [%flag], 0;", "",
                     "A release read-modify-write gives and does not take."),
    "fence_before": ("fence.acq_rel.gpu;\nld.relaxed.gpu.global.u32 %seen, [%flag];", "",
                     "The fence comes before the flag's load; an acquire pattern is a strong read and then a fence."),
    "fence_cta": ("ld.relaxed.gpu.global.u32 %seen, [%flag];", "fence.acq_rel.cta;",
                  "The fence reaches the own block only: it and the writer's release are not morally strong."),
}

READERS = [role(wait(load), after, LOAD_OK) for load, after in ACQUIRES.values()]
RACY_READERS = [role(wait(load), after, LOAD) for load, after in ACQUIRES.values()]
WRITERS = [role(STORE, release) for release in RELEASES.values()]

for name, release in RELEASES.items():
    litmus(f"mp_{name}", f"message passing, {name}",
           "Message passing. The write side is a release pattern, every variant of the read side an acquire pattern that "
           "reaches it: the store of data happens before the load. No race by the PTX model.",
           [role(STORE, release), READERS])
for name, (release, why) in HALF_RELEASES.items():
    litmus(f"mp_{name}_racy", f"message passing, no release: {name}",
           f"Message passing with half of the pattern. {why} So the load of data races, in every variant of the read side. The "
           "store of data stands before the flag's: whenever the flag is seen, the race shows. Of 8 instances per "
           "variant some see it in every schedule.",
           [role(STORE, release), RACY_READERS],
           expect=[("read", race(cls=["missing-release", "race"]))])
for name, (load, after, why) in HALF_ACQUIRES.items():
    litmus(f"mp_{name}_reader_racy", f"message passing, no acquire: {name}",
           f"Message passing with half of the pattern. {why} So the load of data races, in every variant of the write side; it "
           "shows whenever the flag is seen.",
           [WRITERS, role(wait(load), after, LOAD)],
           expect=[("read", race(cls="missing-acquire"))])

# The newer fences that are a release or an acquire alone.
litmus("mp_fence_release_acquire", "message passing, fence.release and fence.acquire",
       "The two halves of fence.acq_rel, each where it is enough. No race by the PTX model.",
       [[role(STORE, f"fence.release.{s};\nst.relaxed.{s}.global.u32 [%flag], 1;") for s in ("gpu", "sys")],
        [role(wait(f"ld.relaxed.{s}.global.u32 %seen, [%flag];"), f"fence.acquire.{s};", LOAD_OK) for s in ("gpu", "sys")]],
       target="sm_90", version="8.6")
litmus("mp_fence_wrong_half_racy", "message passing, fence.acquire before the release's store",
       "An acquire fence before the flag's store is no release pattern. The load of data races whenever the flag is seen.",
       [role(STORE, "fence.acquire.gpu;\nst.relaxed.gpu.global.u32 [%flag], 1;"),
        role(wait("ld.relaxed.gpu.global.u32 %seen, [%flag];"), "fence.acquire.gpu;", LOAD)],
       target="sm_90", version="8.6", expect=[("read", race(cls=["missing-release", "race"]))])
litmus("mp_fence_wrong_half_reader_racy", "message passing, fence.release after the acquire's load",
       "A release fence after the flag's load is no acquire pattern. The load of data races whenever the flag is seen.",
       [role(STORE, "fence.release.gpu;\nst.relaxed.gpu.global.u32 [%flag], 1;"),
        role(wait("ld.relaxed.gpu.global.u32 %seen, [%flag];"), "fence.release.gpu;", LOAD)],
       target="sm_90", version="8.6", expect=[("read", race(cls=["missing-acquire", "race"]))])
litmus("mp_cluster_scope_racy", "message passing at cluster scope between clusters",
       "Blocks of a launch without clusters are clusters of their own: a scope of one cluster does not reach the other block. "
       "The flag's accesses are not morally strong, and the data races. (Named miss: cluster scope is taken for gpu scope as long as "
       "clusters are not modelled, so this may stay silent.)",
       [role(STORE, "st.release.cluster.global.u32 [%flag], 1; @@flagw"),
        role(wait("ld.acquire.cluster.global.u32 %seen, [%flag]; @@flag"), LOAD)],
       target="sm_90", version="7.8",
       expect=[("flagw", race("flag", ["WAR", "WAW"], min=0)), ("flag", race("flag", "RAW", min=0)), ("read", race(min=0))])

# Scopes that do not reach.
SCOPES = ["race", "scope-too-narrow", "missing-acquire", "missing-release"]
litmus("mp_cta_scope_racy", "message passing at block scope between blocks",
       "Both sides say cta, which does not reach the other block: the flag's accesses are not morally strong and race "
       "themselves, and so does the data. The reader sees the flag in every schedule.",
       [role(STORE, "st.release.cta.global.u32 [%flag], 1; @@flagw"),
        role(wait("ld.acquire.cta.global.u32 %seen, [%flag]; @@flag"), LOAD)],
       expect=[("flagw", race("flag", ["WAR", "WAW"], cls="scope-too-narrow", min=0)),
               ("flag", race("flag", "RAW", cls="scope-too-narrow")), ("read", race(cls=SCOPES))])
litmus("mp_cta_scope_writer_racy", "message passing, the writer at block scope",
       "The writer's scope does not cover the reader, so the pair is not morally strong: both the flag and the data race.",
       [role(STORE, "st.release.cta.global.u32 [%flag], 1; @@flagw"),
        role(wait("ld.acquire.gpu.global.u32 %seen, [%flag]; @@flag"), LOAD)],
       expect=[("flagw", race("flag", ["WAR", "WAW"], cls="scope-too-narrow", min=0)),
               ("flag", race("flag", "RAW", cls="scope-too-narrow")), ("read", race(cls=SCOPES))])
litmus("mp_cta_scope_reader_racy", "message passing, the reader at block scope",
       "The reader's scope does not cover the writer, so the pair is not morally strong: both the flag and the data race.",
       [role(STORE, "st.release.gpu.global.u32 [%flag], 1; @@flagw"),
        role(wait("ld.acquire.cta.global.u32 %seen, [%flag]; @@flag"), LOAD)],
       expect=[("flagw", race("flag", ["WAR", "WAW"], cls="scope-too-narrow", min=0)),
               ("flag", race("flag", "RAW", cls="scope-too-narrow")), ("read", race(cls=SCOPES))])
litmus("mp_mixed_scopes", "message passing, gpu against sys",
       "Scopes may differ as long as each covers the other side. No race by the PTX model.",
       [[role(STORE, "st.release.gpu.global.u32 [%flag], 1;"), role(STORE, "st.release.sys.global.u32 [%flag], 1;"),
         role(STORE, "fence.acq_rel.gpu;\nst.volatile.global.u32 [%flag], 1;"),
         role(STORE, "fence.acq_rel.sys;\nst.relaxed.gpu.global.u32 [%flag], 1;")],
        [role(wait("ld.acquire.sys.global.u32 %seen, [%flag];"), LOAD_OK), role(wait("ld.acquire.gpu.global.u32 %seen, [%flag];"), LOAD_OK),
         role(wait("ld.relaxed.gpu.global.u32 %seen, [%flag];"), "fence.acq_rel.sys;", LOAD_OK),
         role(wait("ld.volatile.global.u32 %seen, [%flag];"), "fence.acq_rel.gpu;", LOAD_OK)]])

# Weak flags.
litmus("mp_weak_flag_racy", "message passing, the flag is plain",
       "Both accesses of the flag are weak: they race, fence or not, and so does the data.",
       [role(STORE, "fence.acq_rel.gpu;\nst.global.u32 [%flag], 1; @@flagw"),
        role(wait("ld.global.u32 %seen, [%flag]; @@flag"), "fence.acq_rel.gpu;", LOAD)],
       expect=[("flagw", race("flag", "WAR", min=0)), ("flag", race("flag", "RAW", min=0)), ("read", race())])
litmus("mp_weak_flag_store_racy", "message passing, the flag's store is plain",
       "A weak store is no part of a release pattern, and it races with the strong poll. The flag's race shows at the store if "
       "a poll came first, else at the poll.",
       [role(STORE, "fence.acq_rel.gpu;\nst.global.u32 [%flag], 1; @@flagw"),
        role(wait("ld.acquire.gpu.global.u32 %seen, [%flag]; @@flag"), LOAD)],
       expect=[("flagw", race("flag", "WAR", min=0)), ("flag", race("flag", "RAW", min=0)), ("read", race())])
litmus("mp_weak_flag_load_racy", "message passing, the flag's load is plain",
       "A weak load is no part of an acquire pattern, and it races with the strong store.",
       [role(STORE, "st.release.gpu.global.u32 [%flag], 1; @@flagw"),
        role(wait("ld.global.u32 %seen, [%flag]; @@flag"), LOAD)],
       expect=[("flagw", race("flag", "WAR", min=0)), ("flag", race("flag", "RAW", min=0)), ("read", race())])
litmus("mp_no_flag_racy", "no message passing: two plain accesses",
       "Nothing orders the two; which comes first, and so RAW or WAR, is up to the schedule.",
       [role("st.global.u32 [%data], 1; @@write"), role(LOAD)], words=("data",),
       expect=[("write", race(kind="WAR", min=1)), ("read", race(min=1))])

# Release patterns of several writes, and reads after which an acquire comes.
litmus("mp_release_then_relaxed", "message passing, a relaxed store after the release store",
       "PTX: a release operation on M followed, in program order, by a strong write on M is a release pattern, too. The reader "
       "sees the second value only and so reads from the relaxed store; data is ordered. No race by the PTX model.",
       [role(STORE, "st.release.gpu.global.u32 [%flag], 1;\nst.relaxed.gpu.global.u32 [%flag], 2;", GO), role(once(2), LOAD_OK)],
       words=("data", "flag", "go"))
litmus("mp_release_then_volatile", "message passing, a volatile store after the release exchange",
       "As mp_release_then_relaxed, with an exchange and a volatile store: still a release pattern. No race by the PTX model.",
       [role(STORE, "atom.global.release.gpu.exch.b32 %old, [%flag], 1;\nst.volatile.global.u32 [%flag], 2;", GO), role(once(2), LOAD_OK)],
       words=("data", "flag", "go"))
litmus("mp_relaxed_then_acquire", "message passing, an acquire load after the relaxed one",
       "PTX: a strong read on M followed, in program order, by an acquire operation on M is an acquire pattern. No race.",
       [role(STORE, "st.release.gpu.global.u32 [%flag], 1;"),
        role(wait("ld.relaxed.gpu.global.u32 %seen, [%flag];"), "ld.acquire.gpu.global.u32 %seen, [%flag];", LOAD_OK)])
litmus("mp_two_flags_one_fence", "one fence, two flags",
       "A fence belongs to every strong write after it: each of the two flags makes a release pattern with it. No race.",
       [role(STORE, "fence.acq_rel.gpu;\nst.relaxed.gpu.global.u32 [%other], 1;\nst.relaxed.gpu.global.u32 [%flag], 1;"),
        [role(wait("ld.acquire.gpu.global.u32 %seen, [%flag];"), LOAD_OK),
         role(wait("ld.acquire.gpu.global.u32 %seen, [%other];"), LOAD_OK),
         role(wait("ld.relaxed.gpu.global.u32 %seen, [%other];"), wait("ld.relaxed.gpu.global.u32 %seen, [%flag];"), "fence.acq_rel.gpu;", LOAD_OK)]],
       words=("data", "flag", "other"))
litmus("mp_store_after_release_racy", "data is stored after the release",
       "What follows the release in program order is not published: the store of data comes too late. The race shows at "
       "the load or, where the reader was quicker, at the store.",
       [role("st.release.gpu.global.u32 [%flag], 1;\nst.global.u32 [%data], 1; @@write"),
        role(wait("ld.acquire.gpu.global.u32 %seen, [%flag];"), LOAD)],
       expect=[("write", race(kind="WAR", min=0)), ("read", race(min=0))])
litmus("mp_load_before_acquire_racy", "data is loaded before the acquire",
       "The load of data does not wait for the flag: it races with the store whichever comes first.",
       [role("st.global.u32 [%data], 1; @@write", "st.release.gpu.global.u32 [%flag], 1;"),
        role(LOAD, "ld.acquire.gpu.global.u32 %seen, [%flag];")],
       expect=[("write", race(kind="WAR", min=1)), ("read", race(min=1))])
litmus("mp_unseen_flag_racy", "the flag is read once and its value is not looked at",
       "Where the load sees the flag's old value nothing synchronizes, and the plain accesses of data race; where it sees "
       "the new one, they are ordered. Which one it is, is up to the schedule, 16 instances per schedule.",
       [role("st.global.u32 [%data], 1; @@write", "st.release.gpu.global.u32 [%flag], 1;"),
        role("ld.acquire.gpu.global.u32 %seen, [%flag];", LOAD)],
       expect=[("write", race(kind="WAR", min=1)), ("read", race(min=0))])

# Handing over in the other directions: WAR and WAW.
litmus("handoff_war", "read, then let the other write",
       "The load of data happens before the other block's store. No race by the PTX model.",
       [[role(LOAD_OK, r) for r in ("st.release.gpu.global.u32 [%flag], 1;", "fence.acq_rel.gpu;\nst.volatile.global.u32 [%flag], 1;")],
        role(wait("ld.acquire.gpu.global.u32 %seen, [%flag];"), "st.global.u32 [%data], 1;")])
litmus("handoff_war_racy", "read, then let the other write, relaxed",
       "The flag orders nothing: the store races with the earlier load (WAR), whenever the flag is seen.",
       [role(LOAD_OK, "st.relaxed.gpu.global.u32 [%flag], 1;"),
        role(wait("ld.acquire.gpu.global.u32 %seen, [%flag];"), "st.global.u32 [%data], 1; @@write")],
       expect=[("write", race(kind="WAR", cls=["missing-release", "race"]))])
litmus("s_waw", "S: write, then let the other write",
       "S, with the write of data plain: the two stores are ordered by the flag. No race by the PTX model.",
       [role("st.global.u32 [%data], 2;", "st.release.gpu.global.u32 [%flag], 1;"),
        role(wait("ld.acquire.gpu.global.u32 %seen, [%flag];"), "st.global.u32 [%data], 1;")])
litmus("s_waw_racy", "S: write, then let the other write, relaxed",
       "The relaxed poll acquires nothing: the stores race (WAW), whenever the flag is seen.",
       [role("st.global.u32 [%data], 2;", "st.release.gpu.global.u32 [%flag], 1;"),
        role(wait("ld.relaxed.gpu.global.u32 %seen, [%flag];"), "st.global.u32 [%data], 1; @@write")],
       expect=[("write", race(kind="WAW", cls="missing-acquire"))])
litmus("ping_pong", "data goes there and back",
       "Two hand-overs, one per direction, each with release and acquire. No race by the PTX model.",
       [role(STORE, "st.release.gpu.global.u32 [%flag], 1;", wait("ld.acquire.gpu.global.u32 %seen, [%back];"), LOAD_OK),
        role(wait("ld.acquire.gpu.global.u32 %seen, [%flag];"), "st.global.u32 [%data], 2;", "st.release.gpu.global.u32 [%back], 1;")],
       words=("data", "flag", "back"))
litmus("ping_pong_racy", "data goes there and back, the way back is relaxed",
       "The way back has no release: the last load races with the other block's store, whenever its flag is seen.",
       [role(STORE, "st.release.gpu.global.u32 [%flag], 1;", wait("ld.acquire.gpu.global.u32 %seen, [%back];"), LOAD),
        role(wait("ld.acquire.gpu.global.u32 %seen, [%flag];"), "st.global.u32 [%data], 2;", "st.relaxed.gpu.global.u32 [%back], 1;")],
       words=("data", "flag", "back"), expect=[("read", race(cls=["missing-release", "race"]))])

# --- Store buffering ---------------------------------------------------------------------------------------------------

def pair(first, second, swap=("x", "y")):
    """Two roles that are mirror images."""
    a = role(*(p.format(x="x", y="y") for p in (first, second)))
    b = role(*(p.format(x="y", y="x") for p in (first, second)))
    return a, b

XY = ("x", "y")
for scope in ("gpu", "sys"):
    litmus(f"sb_relaxed_{scope}", f"store buffering, relaxed at {scope} scope",
           "Each writes its own word and reads the other's. All accesses are strong and reach each other: both may read 0, "
           "and there is no race by the PTX model.",
           pair(f"st.relaxed.{scope}.global.u32 [%{{x}}], 1;", f"ld.relaxed.{scope}.global.u32 %seen, [%{{y}}];"), words=XY)
    litmus(f"sb_fence_sc_{scope}", f"store buffering, fence.sc.{scope}",
           "As sb_relaxed, with a fence.sc in between: at most one reads 0. No race either.",
           pair(f"st.relaxed.{scope}.global.u32 [%{{x}}], 1;\nfence.sc.{scope};", f"ld.relaxed.{scope}.global.u32 %seen, [%{{y}}];"), words=XY)
litmus("sb_volatile", "store buffering, volatile", "Volatile is relaxed at system scope: strong, no race.",
       pair("st.volatile.global.u32 [%{x}], 1;", "ld.volatile.global.u32 %seen, [%{y}];"), words=XY)
litmus("sb_atom", "store buffering, atomics", "Read-modify-writes on both sides: strong, no race.",
       pair("atom.global.exch.b32 %old, [%{x}], 1;", "atom.global.add.u32 %seen, [%{y}], 0;"), words=XY)
litmus("sb_weak_racy", "store buffering, plain",
       "Weak accesses of the other block's word: each of the two words has a racing pair, seen at the load (RAW) or at the "
       "store (WAR).",
       [role("st.global.u32 [%x], 1; @@sx", "ld.global.u32 %seen, [%y]; @@ly"),
        role("st.global.u32 [%y], 1; @@sy", "ld.global.u32 %seen, [%x]; @@lx")], words=XY,
       expect=[("sx", race("x", "WAR", min=0)), ("ly", race("y", "RAW")), ("sy", race("y", "WAR", min=0)), ("lx", race("x", "RAW"))])
litmus("sb_half_weak_racy", "store buffering, plain stores and relaxed loads",
       "A weak store and a strong load of another block race.",
       [role("st.global.u32 [%x], 1; @@sx", "ld.relaxed.gpu.global.u32 %seen, [%y]; @@ly"),
        role("st.global.u32 [%y], 1; @@sy", "ld.relaxed.gpu.global.u32 %seen, [%x]; @@lx")], words=XY,
       expect=[("sx", race("x", "WAR", min=0)), ("ly", race("y", "RAW")), ("sy", race("y", "WAR", min=0)), ("lx", race("x", "RAW"))])
DEKKER = "st.relaxed.gpu.global.u32 [%{x}], 1;\n%s\nld.relaxed.gpu.global.u32 %%seen, [%%{y}];"
ENTER = "setp.ne.u32 %yes, %seen, 0;\n@%yes bra NEXT;\nst.global.u32 [%data], 1;"
litmus("sb_dekker", "Dekker's try-lock with fence.sc",
       "Who does not see the other's flag stores to data. With fence.sc in between at most one of the two can, so there is one "
       "access and no race by the PTX model.",
       pair("st.relaxed.gpu.global.u32 [%{x}], 1;\nfence.sc.gpu;\nld.relaxed.gpu.global.u32 %seen, [%{y}];", ENTER), words=("x", "y", "data"))
litmus("sb_dekker_racy", "Dekker's try-lock with too weak a fence",
       "fence.acq_rel does not order a store before a load: both may read 0, and then both store to data. A race by the PTX "
       "model; it shows only in a run with that outcome, which the simulator (sequentially consistent) never has and a GPU "
       "hardly ever, since the inserted checks lie between the two accesses.",
       [role("st.relaxed.gpu.global.u32 [%x], 1;\nfence.acq_rel.gpu;\nld.relaxed.gpu.global.u32 %seen, [%y];", ENTER.replace("1;", "1; @@a")),
        role("st.relaxed.gpu.global.u32 [%y], 1;\nfence.acq_rel.gpu;\nld.relaxed.gpu.global.u32 %seen, [%x];", ENTER.replace("1;", "1; @@b"))],
       words=("x", "y", "data"), expect=[("a", race(kind="WAW", min=0)), ("b", race(kind="WAW", min=0))])
SC_ONLY = [role("st.global.u32 [%data], 1;\nfence.sc.gpu;\nld.relaxed.gpu.global.u32 %seen, [%y];\nsetp.ne.u32 %yes, %seen, 0;\n"
                "@%yes bra NEXT;\nst.relaxed.gpu.global.u32 [%z], 1;"),
           role("st.relaxed.gpu.global.u32 [%y], 1;\nfence.sc.gpu;", wait("ld.relaxed.gpu.global.u32 %seen, [%z];"), LOAD_OK)]
litmus("sb_sc_order", "a load that only the order of two fence.sc puts after the store",
       "The writer did not see y, so its fence comes first; z says so, but the reader has no fence after it. By PTX's letter the "
       "fences order the two (C++ would call it a race). With sc_order gsan goes by that. No race.",
       SC_ONLY, words=("data", "y", "z"), device=("sc_order = true",))
litmus("sb_sc_order_racy", "the same without sc_order",
       "By default two fence.sc synchronise as C++'s do, only through a value that was read: the reader lacks the acquire fence after "
       "reading z. It shows only where the writer was early enough not to see y: on an H200 in none of 16,384 instances.",
       [SC_ONLY[0], SC_ONLY[1].replace(LOAD_OK, LOAD)], words=("data", "y", "z"), expect=[("read", race(cls="missing-acquire", min=0))])
litmus("r_relaxed", "R", "x, y against y, then a load of x; relaxed with fence.sc. Strong, no race.",
       [role("st.relaxed.gpu.global.u32 [%x], 1;\nfence.sc.gpu;\nst.relaxed.gpu.global.u32 [%y], 1;"),
        role("st.relaxed.gpu.global.u32 [%y], 2;\nfence.sc.gpu;\nld.relaxed.gpu.global.u32 %seen, [%x];")], words=XY)
litmus("r_weak_racy", "R, the last load is plain",
       "Nothing releases x to the reader (its load waits for nothing): RAW or WAR, as the schedule has it.",
       [role("st.relaxed.gpu.global.u32 [%x], 1;  @@w\nfence.sc.gpu;\nst.relaxed.gpu.global.u32 [%y], 1;"),
        role("st.relaxed.gpu.global.u32 [%y], 2;\nfence.sc.gpu;\nld.global.u32 %seen, [%x]; @@read")], words=XY,
       expect=[("w", race("x", "WAR", min=0)), ("read", race("x", "RAW"))])

# --- Load buffering ----------------------------------------------------------------------------------------------------

litmus("lb_relaxed", "load buffering, relaxed", "Each reads one word and writes the other. Strong, no race.",
       pair("ld.relaxed.gpu.global.u32 %seen, [%{x}];", "st.relaxed.gpu.global.u32 [%{y}], 1;"), words=XY)
litmus("lb_acquire_release", "load buffering, acquire and release", "As lb_relaxed; the outcome 1, 1 is forbidden. No race.",
       pair("ld.acquire.gpu.global.u32 %seen, [%{x}];", "st.release.gpu.global.u32 [%{y}], 1;"), words=XY)
litmus("lb_thin_air", "load buffering, no value out of thin air",
       "Each stores only if it has seen the other's store. Neither does, in any execution: the plain stores never race.",
       [role("ld.relaxed.gpu.global.u32 %seen, [%x];\nsetp.eq.u32 %yes, %seen, 0;\n@%yes bra NEXT;\nst.global.u32 [%data], 1;\nst.relaxed.gpu.global.u32 [%y], 1;"),
        role("ld.relaxed.gpu.global.u32 %seen, [%y];\nsetp.eq.u32 %yes, %seen, 0;\n@%yes bra NEXT;\nst.global.u32 [%data], 2;\nst.relaxed.gpu.global.u32 [%x], 1;")],
       words=("x", "y", "data"))
litmus("lb_weak_racy", "load buffering, plain", "Weak accesses of the same words, unordered: WAR at the store or RAW at the load.",
       [role("ld.global.u32 %seen, [%x]; @@lx\nst.global.u32 [%y], 1; @@sy"),
        role("ld.global.u32 %seen, [%y]; @@ly\nst.global.u32 [%x], 1; @@sx")], words=XY,
       expect=[("lx", race("x", "RAW", min=0)), ("sy", race("y", "WAR")), ("ly", race("y", "RAW", min=0)), ("sx", race("x", "WAR"))])

# --- Coherence ---------------------------------------------------------------------------------------------------------

litmus("coherence_strong", "coherence: CoRR, CoRW, CoWR, CoWW",
       "One word, strong accesses of two blocks in every combination: a total order of writes, and no race.",
       [["st.relaxed.gpu.global.u32 [%x], 1;", "st.relaxed.gpu.global.u32 [%x], 1;\nst.volatile.global.u32 [%x], 2;",
         "ld.relaxed.gpu.global.u32 %seen, [%x];\nst.relaxed.gpu.global.u32 [%x], 1;",
         "atom.global.add.u32 %old, [%x], 1;\nld.relaxed.gpu.global.u32 %seen, [%x];"],
        ["ld.relaxed.gpu.global.u32 %seen, [%x];\nld.relaxed.gpu.global.u32 %value, [%x];",
         "ld.volatile.global.u32 %seen, [%x];\nst.relaxed.gpu.global.u32 [%x], 3;",
         "st.relaxed.sys.global.u32 [%x], 3;\nld.acquire.gpu.global.u32 %value, [%x];",
         "st.relaxed.gpu.global.u32 [%x], 3;\nred.global.add.u32 [%x], 4;"]], words=("x",))
litmus("coherence_weak_reader_racy", "CoRR with plain loads",
       "Weak loads against a relaxed store: RAW at a load, WAR at the store.",
       [role("st.relaxed.gpu.global.u32 [%x], 1; @@w"), role("ld.global.u32 %seen, [%x]; @@r\nld.global.u32 %value, [%x]; @@s")],
       words=("x",), expect=[("w", race("x", "WAR", min=1)), ("r", race("x", "RAW", min=1)), ("s", race("x", "RAW", min=0))])
litmus("coherence_weak_writer_racy", "CoWW with a plain store",
       "A weak store against a relaxed store of another block: WAW at whichever comes second.",
       [role("st.relaxed.gpu.global.u32 [%x], 1; @@w"), role("st.global.u32 [%x], 2; @@v")],
       words=("x",), expect=[("w", race("x", "WAW", min=1)), ("v", race("x", "WAW", min=1))])
litmus("coherence_observed", "a plain access after the own strong one has seen the write",
       "PTX: a write precedes, in causality order, what follows a strong read of its value in program order (observation "
       "order). So the plain load after the poll is ordered after the relaxed store, and so is a plain store.",
       ["st.relaxed.gpu.global.u32 [%x], 1;",
        [role(wait("ld.relaxed.gpu.global.u32 %seen, [%x];"), "ld.global.u32 %value, [%x];"),
         role(wait("ld.relaxed.gpu.global.u32 %seen, [%x];"), "st.global.u32 [%x], 2;")]], words=("x",))
litmus("coherence_observed_by_another", "a plain access after another block has seen the write and released",
       "Observation and then base causality: block 1 sees the relaxed store and releases, block 2 acquires. The relaxed store "
       "precedes block 2's plain access in causality order. No race by the PTX model.",
       ["st.relaxed.gpu.global.u32 [%x], 1;",
        role(wait("ld.relaxed.gpu.global.u32 %seen, [%x];"), "st.release.gpu.global.u32 [%flag], 1;"),
        [role(wait("ld.acquire.gpu.global.u32 %seen, [%flag];"), "ld.global.u32 %value, [%x];"),
         role(wait("ld.acquire.gpu.global.u32 %seen, [%flag];"), "st.global.u32 [%x], 2;")]], words=("x", "flag"))
litmus("coherence_observed_by_atomic", "a plain access after an atomic has seen the write",
       "As coherence_observed, the observer a read-modify-write that takes the value (1 becomes 3); then it owns the word.",
       ["st.relaxed.gpu.global.u32 [%x], 1;",
        role(wait("atom.global.cas.b32 %seen, [%x], 1, 3;"), "ld.global.u32 %value, [%x];\nst.global.u32 [%x], 4;")], words=("x",))
litmus("two_plus_two_writes", "2+2W, strong", "Two words, written in opposite order, relaxed. Strong, no race.",
       [role("st.relaxed.gpu.global.u32 [%x], 1;\nst.relaxed.gpu.global.u32 [%y], 2;"),
        role("st.relaxed.gpu.global.u32 [%y], 1;\nst.relaxed.gpu.global.u32 [%x], 2;")], words=XY)
litmus("two_plus_two_writes_racy", "2+2W, plain", "Two words, written in opposite order, weak: both race, at whichever store comes second.",
       [role("st.global.u32 [%x], 1; @@ax\nst.global.u32 [%y], 2; @@ay"),
        role("st.global.u32 [%y], 1; @@by\nst.global.u32 [%x], 2; @@bx")], words=XY,
       expect=[("ax", race("x", "WAW", min=0)), ("ay", race("y", "WAW")), ("by", race("y", "WAW", min=0)), ("bx", race("x", "WAW"))])

# --- Three and four blocks ---------------------------------------------------------------------------------------------

MIDDLES = {
    "acquire_release": (("ld.acquire.gpu.global.u32 %seen, [%flag];", ""), "st.release.gpu.global.u32 [%next], 1;"),
    "one_fence": (("ld.relaxed.gpu.global.u32 %seen, [%flag];", "fence.acq_rel.gpu;"), "st.relaxed.gpu.global.u32 [%next], 1;"),
    "volatile_membar": (("ld.volatile.global.u32 %seen, [%flag];", "membar.gl;"), "st.volatile.global.u32 [%next], 1;"),
    "sys": (("ld.acquire.sys.global.u32 %seen, [%flag];", ""), "st.release.sys.global.u32 [%next], 1;"),
    "acq_rel_atom": (("atom.global.acq_rel.gpu.add.u32 %seen, [%flag], 0;", ""), "atom.global.acq_rel.gpu.exch.b32 %old, [%next], 1;"),
}
FIRST = role(STORE, "st.release.gpu.global.u32 [%flag], 1;")
def last(load):
    return role(wait("ld.acquire.gpu.global.u32 %seen, [%next];"), load)
litmus("isa2", "ISA2: three blocks, data by two hand-overs",
       "The middle block passes on what it has acquired: causality order is transitive. No race by the PTX model.",
       [FIRST, [role(wait(l), f, s) for (l, f), s in MIDDLES.values()], last(LOAD_OK)], words=("data", "flag", "next"))
litmus("isa2_middle_acquire_racy", "ISA2: the middle does not acquire",
       "A middle that releases but has not acquired passes nothing on. The last load races whenever it sees its flag; in each "
       "instance all three must be on time, 5 instances per schedule.",
       [FIRST, [role(wait(l), s) for l, s in (("ld.relaxed.gpu.global.u32 %seen, [%flag];", "st.release.gpu.global.u32 [%next], 1;"),
                                              ("ld.volatile.global.u32 %seen, [%flag];", "st.release.sys.global.u32 [%next], 1;"),
                                              ("atom.global.release.gpu.add.u32 %seen, [%flag], 0;", "st.release.gpu.global.u32 [%next], 1;"))],
        last(LOAD)], words=("data", "flag", "next"), expect=[("read", race())])
litmus("isa2_middle_release_racy", "ISA2: the middle does not release",
       "A middle that acquires but does not release passes nothing on.",
       [FIRST, [role(wait(l), s) for l, s in (("ld.acquire.gpu.global.u32 %seen, [%flag];", "st.relaxed.gpu.global.u32 [%next], 1;"),
                                              ("ld.acquire.gpu.global.u32 %seen, [%flag];", "st.volatile.global.u32 [%next], 1;"),
                                              ("ld.acquire.gpu.global.u32 %seen, [%flag];", "atom.global.acquire.gpu.exch.b32 %old, [%next], 1;"))],
        last(LOAD)], words=("data", "flag", "next"), expect=[("read", race(cls=["missing-release", "race"]))])
litmus("isa2_last_acquire_racy", "ISA2: the last does not acquire",
       "The chain ends in a relaxed poll: the load of data is not ordered.",
       [FIRST, role(wait("ld.acquire.gpu.global.u32 %seen, [%flag];"), "st.release.gpu.global.u32 [%next], 1;"),
        role(wait("ld.relaxed.gpu.global.u32 %seen, [%next];"), LOAD)], words=("data", "flag", "next"),
       expect=[("read", race(cls="missing-acquire"))])
litmus("isa2_middle_cta_racy", "ISA2: the middle acquires at block scope",
       "The middle's acquire does not cover the first block: the flag itself races, and so does the data at the end.",
       [role(STORE, "st.release.gpu.global.u32 [%flag], 1; @@flagw"),
        role(wait("ld.acquire.cta.global.u32 %seen, [%flag]; @@flag"), "st.release.gpu.global.u32 [%next], 1;"), last(LOAD)],
       words=("data", "flag", "next"),
       expect=[("flagw", race("flag", "WAR", cls="scope-too-narrow", min=0)), ("flag", race("flag", "RAW", cls="scope-too-narrow")), ("read", race())])
litmus("wrc", "write-to-read causality",
       "Block 1 reads data itself before it passes the word on to block 2. No race by the PTX model.",
       [FIRST, role(wait("ld.acquire.gpu.global.u32 %seen, [%flag];"), LOAD_OK, "st.release.gpu.global.u32 [%next], 1;"), last(LOAD_OK)],
       words=("data", "flag", "next"))
litmus("wrc_racy", "write-to-read causality, the relay is relaxed",
       "Block 1's own load is ordered, block 2's is not.",
       [FIRST, role(wait("ld.acquire.gpu.global.u32 %seen, [%flag];"), LOAD_OK, "st.relaxed.gpu.global.u32 [%next], 1;"), last(LOAD)],
       words=("data", "flag", "next"), expect=[("read", race(cls=["missing-release", "race"]))])
litmus("wrc_strong", "write-to-read causality, all strong", "The textbook form: the words are only accessed by relaxed operations. No race.",
       ["st.relaxed.gpu.global.u32 [%x], 1;",
        "ld.relaxed.gpu.global.u32 %seen, [%x];\nfence.acq_rel.gpu;\nst.relaxed.gpu.global.u32 [%y], 1;",
        "ld.relaxed.gpu.global.u32 %seen, [%y];\nfence.acq_rel.gpu;\nld.relaxed.gpu.global.u32 %value, [%x];"], words=XY)
litmus("rwc_strong", "read-to-write causality, all strong", "Relaxed operations and fence.sc. No race.",
       ["st.relaxed.gpu.global.u32 [%x], 1;",
        "ld.relaxed.gpu.global.u32 %seen, [%x];\nfence.sc.gpu;\nld.relaxed.gpu.global.u32 %value, [%y];",
        "st.relaxed.gpu.global.u32 [%y], 1;\nfence.sc.gpu;\nld.relaxed.gpu.global.u32 %value, [%x];"], words=XY)
litmus("wrw_2w", "write-to-read causality that ends in a write",
       "As wrc, and block 2 stores to data: ordered after both other accesses. No race by the PTX model.",
       [FIRST, role(wait("ld.acquire.gpu.global.u32 %seen, [%flag];"), LOAD_OK, "st.release.gpu.global.u32 [%next], 1;"),
        last("st.global.u32 [%data], 2;")], words=("data", "flag", "next"))
litmus("wrw_2w_racy", "write-to-read causality that ends in a write, the relay is relaxed",
       "Block 2's store races with block 1's load or with block 0's store: one of the two is reported.",
       [FIRST, role(wait("ld.acquire.gpu.global.u32 %seen, [%flag];"), LOAD_OK, "st.relaxed.gpu.global.u32 [%next], 1;"),
        last("st.global.u32 [%data], 2; @@write")], words=("data", "flag", "next"),
       expect=[("write", race(kind=["WAR", "WAW"], cls=["missing-release", "race"]))])

IRIW_W = ["st.relaxed.gpu.global.u32 [%x], 1;", "st.relaxed.gpu.global.u32 [%y], 1;"]
litmus("iriw_strong", "independent reads of independent writes, all strong",
       "Two writers, two readers that look in opposite order, with every fence in between. No race, whatever they see.",
       IRIW_W + [[f"ld.relaxed.gpu.global.u32 %seen, [%{a}];\n{f}\nld.relaxed.gpu.global.u32 %value, [%{b}];"
                  for f in ("", "fence.acq_rel.gpu;", "fence.sc.gpu;")] for a, b in (("x", "y"), ("y", "x"))], words=XY)
def iriw_decides(fence, tag=""):
    return [role(f"ld.relaxed.gpu.global.u32 %seen, [%{a}];\n{fence}\nld.relaxed.gpu.global.u32 %value, [%{b}];\n"
                 "setp.eq.u32 %yes, %seen, 0;\n@%yes bra NEXT;\nsetp.ne.u32 %yes, %value, 0;\n@%yes bra NEXT;\n"
                 f"st.global.u32 [%data], 1;{tag and f' @@{tag}{a}'}") for a, b in (("x", "y"), ("y", "x"))]
litmus("iriw_decides", "independent reads decide who may write",
       "A reader that saw the first word set and the second not stores to data. With fence.sc between the loads the readers "
       "agree on the order of the writes, so only one of them does. No race by the PTX model.",
       IRIW_W + iriw_decides("fence.sc.gpu;"), words=("x", "y", "data"))
litmus("iriw_decides_racy", "independent reads decide who may write, relaxed",
       "Without fence.sc the readers may disagree, and then both store to data. A race by the PTX model; the simulator is "
       "sequentially consistent and never shows it, and GPUs so far are multi-copy atomic.",
       IRIW_W + iriw_decides("", "w"), words=("x", "y", "data"), expect=[("wx", race(kind="WAW", min=0)), ("wy", race(kind="WAW", min=0))])
IRIW_DATA = [role(f"st.global.u32 [%d{w}], 1;\nst.release.gpu.global.u32 [%{w}], 1;") for w in "xy"]
litmus("iriw_data", "independent reads of independent data",
       "Each reader waits for both flags, in opposite order, and reads both data words. No race by the PTX model.",
       IRIW_DATA + [role(wait(f"ld.acquire.gpu.global.u32 %seen, [%{a}];"), wait(f"ld.acquire.gpu.global.u32 %seen, [%{b}];"),
                         "ld.global.u32 %value, [%dx];\nld.global.u32 %value, [%dy];") for a, b in (("x", "y"), ("y", "x"))],
       words=("x", "y", "dx", "dy"))
litmus("iriw_data_racy", "independent reads of independent data, one acquire is missing",
       "The poll for y is relaxed, so dy is unordered for both readers; dx is fine.",
       IRIW_DATA + [role(wait("ld.acquire.gpu.global.u32 %seen, [%x];"), wait("ld.relaxed.gpu.global.u32 %seen, [%y];"),
                         "ld.global.u32 %value, [%dx];\nld.global.u32 %value, [%dy]; @@r1"),
                    role(wait("ld.relaxed.gpu.global.u32 %seen, [%y];"), wait("ld.acquire.gpu.global.u32 %seen, [%x];"),
                         "ld.global.u32 %value, [%dx];\nld.global.u32 %value, [%dy]; @@r2")],
       words=("x", "y", "dx", "dy"), expect=[("r1", race("dy", cls="missing-acquire")), ("r2", race("dy", cls="missing-acquire"))])

# --- Release sequences and read-modify-writes --------------------------------------------------------------------------

TWO_WAIT = wait("ld.acquire.gpu.global.u32 %seen, [%flag];", at_least=2)
BUMP = role(wait("ld.relaxed.gpu.global.u32 %seen, [%flag];"))
litmus("rmw_sequence", "a release goes on through another block's relaxed atomic",
       "The reader sees what the relaxed read-modify-write wrote on top of the release: observation order goes through the "
       "read-modify-write. No race by the PTX model.",
       [FIRST, [role(wait("ld.relaxed.gpu.global.u32 %seen, [%flag];"), a, GO) for a in
                ("atom.global.add.u32 %old, [%flag], 1;", "atom.global.relaxed.gpu.exch.b32 %old, [%flag], 2;",
                 "atom.global.cas.b32 %old, [%flag], 1, 2;", "atom.global.acquire.gpu.inc.u32 %old, [%flag], 9;",
                 "red.relaxed.gpu.global.add.u32 [%flag], 1;")],
        role(once(2), LOAD_OK)], words=("data", "flag", "go"))
litmus("rmw_sequence_store_racy", "a relaxed store of another block ends the release sequence",
       "The reader sees what a plain relaxed store wrote: it is no read-modify-write, so the release before it is not observed. "
       "A race by the PTX model. The checker keeps a release that the store is not ordered after (it can't know whose value "
       "the reader has seen), so it may stay silent: a named miss.",
       [FIRST, role(wait("ld.relaxed.gpu.global.u32 %seen, [%flag];"), "st.relaxed.gpu.global.u32 [%flag], 2;", GO),
        role(once(2), LOAD)], words=("data", "flag", "go"), expect=[("read", race(min=0))])
kit.litmus(HERE.parent / "later", "rmw_sequence_ordered_store_racy", "an acquired release, then a relaxed store over it",
       "The middle acquires and then overwrites the flag by a relaxed store: what it knew is not passed on.",
       [FIRST, role(wait("ld.acquire.gpu.global.u32 %seen, [%flag];"), "st.relaxed.gpu.global.u32 [%flag], 2;", GO),
        role(once(2), LOAD)], words=("data", "flag", "go"), expect=[("read", race(cls=["missing-release", "race"]))])
litmus("rmw_joined_releases", "two writers release on one counter",
       "Each stores its word and adds to the counter with release; who reads 2 with acquire has both. No race.",
       [role("st.global.u32 [%x], 1;\nred.release.gpu.global.add.u32 [%flag], 1;"),
        role("st.global.u32 [%y], 1;\natom.global.add.release.gpu.u32 %old, [%flag], 1;"),
        role(TWO_WAIT, "ld.global.u32 %value, [%x];\nld.global.u32 %value, [%y];")], words=("x", "y", "flag"))
litmus("rmw_joined_releases_racy", "two writers add on one counter, one of them relaxed",
       "The second writer's add is relaxed: its word is unordered, the first one's is ordered.",
       [role("st.global.u32 [%x], 1;\nred.release.gpu.global.add.u32 [%flag], 1;"),
        role("st.global.u32 [%y], 1;\natom.global.add.u32 %old, [%flag], 1;"),
        role(TWO_WAIT, "ld.global.u32 %value, [%x];\nld.global.u32 %value, [%y]; @@read")], words=("x", "y", "flag"),
       expect=[("read", race("y"))])
litmus("rmw_mixed_scope_releases", "two writers release on one counter, gpu and sys",
       "The classic tool gives up here (mixed-scope accumulation). PTX defines it: both patterns reach the reader. No race.",
       [role("st.global.u32 [%x], 1;\nred.release.gpu.global.add.u32 [%flag], 1;"),
        role("st.global.u32 [%y], 1;\nred.release.sys.global.add.u32 [%flag], 1;"),
        role(TWO_WAIT, "ld.global.u32 %value, [%x];\nld.global.u32 %value, [%y];")], words=("x", "y", "flag"))
litmus("rmw_last_block", "whoever comes last reads the others' words",
       "Three blocks store and add with acq_rel; the one that gets 2 is last and reads all three. No race by the PTX model.",
       [role(f"st.global.u32 [%{w}], 1;\n{a}\nsetp.ne.u32 %yes, %old, 2;\n@%yes bra NEXT;\nld.global.u32 %value, [%x];\n"
             "ld.global.u32 %value, [%y];\nld.global.u32 %value, [%z];") for w, a in
        (("x", "atom.global.acq_rel.gpu.add.u32 %old, [%flag], 1;"), ("y", "fence.acq_rel.gpu;\natom.global.add.u32 %old, [%flag], 1;\nfence.acq_rel.gpu;"),
         ("z", "membar.gl;\natom.global.inc.u32 %old, [%flag], 9;\nmembar.gl;"))], words=("x", "y", "z", "flag"))
litmus("rmw_last_block_racy", "whoever comes last reads the others' words, relaxed",
       "The adds are relaxed: the last one's loads race with the others' stores (not with its own).",
       [role(f"st.global.u32 [%{w}], 1;\natom.global.add.u32 %old, [%flag], 1;\nsetp.ne.u32 %yes, %old, 2;\n@%yes bra NEXT;\n" +
             "\n".join(f"ld.global.u32 %value, [%{v}];" + (f" @@{v}" if v != w else "") for v in "xyz")) for w in "xyz"],
       words=("x", "y", "z", "flag"), expect=[(v, race(v, min=0)) for v in "xyz"])
litmus("cas_failed_acquires", "a compare-and-swap that fails still acquires",
       "A failed acquire CAS is an acquire read. No race.",
       [FIRST, role(wait("atom.global.acquire.gpu.cas.b32 %seen, [%flag], 7, 8;"), LOAD_OK)])
litmus("cas_failed_releases_racy", "a compare-and-swap that fails releases nothing",
       "Block 0's release CAS never writes (the word is not 7), block 1 sets the flag without having acquired anything. Block 2 "
       "acquires nothing of block 0's: its load races, at the load or at the store.",
       [role("st.global.u32 [%data], 1; @@write\natom.global.release.gpu.cas.b32 %old, [%flag], 7, 8;"),
        "st.release.gpu.global.u32 [%flag], 1;", role(wait("ld.acquire.gpu.global.u32 %seen, [%flag];"), LOAD)],
       expect=[("write", race(kind="WAR", min=0)), ("read", race(min=1))])
LOCK = wait("atom.global.acquire.gpu.cas.b32 %old, [%flag], 0, 1;\nsetp.eq.u32 %no, %old, 0;\nselp.u32 %seen, 1, 0, %no;")
CRITICAL = "ld.global.u32 %value, [%data];\nadd.u32 %value, %value, 1;\nst.global.u32 [%data], %value;"
litmus("lock", "a spin lock around plain accesses",
       "Compare-and-swap with acquire, exchange or store with release. No race by the PTX model.",
       [role(LOCK, CRITICAL, "atom.global.release.gpu.exch.b32 %old, [%flag], 0;"),
        [role(LOCK, CRITICAL, "st.release.gpu.global.u32 [%flag], 0;"), role(LOCK, CRITICAL, "fence.acq_rel.gpu;\nst.volatile.global.u32 [%flag], 0;"),
         role(LOCK.replace("acquire", "relaxed"), "fence.acq_rel.gpu;", CRITICAL, "membar.gl;\natom.global.exch.b32 %old, [%flag], 0;")]])
RACY_CRITICAL = "ld.global.u32 %value, [%data]; @@{0}l\nadd.u32 %value, %value, 1;\nst.global.u32 [%data], %value; @@{0}s"
litmus("lock_relaxed_unlock_racy", "a spin lock that is given back relaxed",
       "The unlock publishes nothing. The second holder's load races with the first one's store (RAW), in every instance in "
       "which both get the lock; its store then races with the first one's accesses.",
       [role(LOCK, RACY_CRITICAL.format(c), "atom.global.exch.b32 %old, [%flag], 0;") for c in "ab"],
       expect=[(f"{c}l", race(kind="RAW")) for c in "ab"] + [(f"{c}s", race(kind=["WAR", "WAW"], min=0)) for c in "ab"])
litmus("lock_relaxed_lock_racy", "a spin lock that is taken relaxed",
       "The lock acquires nothing. As lock_relaxed_unlock_racy.",
       [role(LOCK.replace("acquire", "relaxed"), RACY_CRITICAL.format(c), "st.release.gpu.global.u32 [%flag], 0;") for c in "ab"],
       expect=[(f"{c}l", race(kind="RAW")) for c in "ab"] + [(f"{c}s", race(kind=["WAR", "WAW"], min=0)) for c in "ab"])
litmus("seqlock", "a sequence lock with strong data",
       "The reader reads data while the writer may write it: both relaxed, so there is no race, torn values or not.",
       [role("st.relaxed.gpu.global.u32 [%flag], 1;\nfence.acq_rel.gpu;\nst.relaxed.gpu.global.u32 [%data], 1;\nst.release.gpu.global.u32 [%flag], 2;"),
        role("ld.acquire.gpu.global.u32 %seen, [%flag];\nld.relaxed.gpu.global.u32 %value, [%data];\nfence.acq_rel.gpu;\nld.relaxed.gpu.global.u32 %old, [%flag];")])
litmus("seqlock_racy", "a sequence lock with plain data",
       "The optimistic load is weak and waits for nothing: it races with the store, at the load or at the store.",
       [role("st.relaxed.gpu.global.u32 [%flag], 1;\nfence.acq_rel.gpu;\nst.global.u32 [%data], 1; @@write\nst.release.gpu.global.u32 [%flag], 2;"),
        role("ld.acquire.gpu.global.u32 %seen, [%flag];", LOAD, "fence.acq_rel.gpu;\nld.relaxed.gpu.global.u32 %old, [%flag];")],
       expect=[("write", race(kind="WAR", min=1)), ("read", race(min=0))])

# --- Widths ------------------------------------------------------------------------------------------------------------

litmus("bytes_apart", "neighbouring bytes and halves of one word",
       "Plain accesses of different bytes don't conflict. No race (the reference cell, which sees words only, would report one).",
       [["st.global.u8 [%x], %half;", "st.global.u16 [%x], %half;", "ld.global.u8 %half, [%x];", "atom.global.cas.b16 %half, [%x], 0, 1;"],
        ["st.global.u8 [%x+1], %half;", "st.global.u16 [%x+2], %half;", "st.global.u8 [%x+3], %half;", "atom.global.cas.b16 %half, [%x+2], 0, 1;"]],
       words=("x",), device=('cell = "wide"',))
litmus("bytes_overlap_racy", "overlapping bytes of one word",
       "A half and a byte of it, both plain: WAW at whichever comes second.",
       [role("st.global.u16 [%x], %half; @@a"), role("st.global.u8 [%x+1], %half; @@b")], words=("x",), device=('cell = "wide"',),
       expect=[("a", race("x", "WAW", min=1)), ("b", race("x", "WAW", min=1))])
litmus("mixed_width_racy", "a strong word store and a strong half-word load",
       "Both strong, scopes reach: but the two don't overlap completely, so they are not morally strong, and race.",
       [role("st.relaxed.gpu.global.u32 [%x], 1; @@a"), role("ld.relaxed.gpu.global.u16 %half, [%x]; @@b")], words=("x",), device=('cell = "wide"',),
       expect=[("a", race("x", "WAR", cls="mixed-width", min=1)), ("b", race("x", "RAW", cls="mixed-width", min=1))])
litmus("mixed_width_flag_racy", "message passing, the flag is read by its low half",
       "The load of the half does not overlap the store completely: no pattern, the flag races and so does the data.",
       [role(STORE, "st.release.gpu.global.u32 [%flag], 1; @@flagw"),
        role(wait("ld.acquire.gpu.global.u16 %half, [%flag]; @@flag\ncvt.u32.u16 %seen, %half;"), LOAD)], device=('cell = "wide"',),
       expect=[("flagw", race("flag", "WAR", cls="mixed-width", min=0)), ("flag", race("flag", "RAW", cls="mixed-width")), ("read", race(min=0))])
litmus("vector_strong", "strong vectors and strong scalars",
       "PTX models a vector access as one scalar access per element: a relaxed v2.u32 and relaxed u32 accesses of its elements "
       "overlap completely. No race.",
       [["st.relaxed.gpu.global.v2.u32 [%x], {%round, %role};", "ld.relaxed.gpu.global.v2.u32 {%seen, %value}, [%x];"],
        ["ld.relaxed.gpu.global.u32 %seen, [%x+4];", "st.relaxed.gpu.global.u32 [%x], 1;"]], words=("x",), width=2)
litmus("vector_flag", "message passing, the flag is half of a strong vector",
       "As vector_strong: the store of the vector is a release pattern with its fence, for each element. No race.",
       [role(STORE, "mov.u32 %old, 1;\nfence.acq_rel.gpu;\nst.relaxed.gpu.global.v2.u32 [%flag], {%old, %old};"),
        role(wait("ld.acquire.gpu.global.u32 %seen, [%flag+4];"), LOAD_OK)], width=2)
litmus("double_word_racy", "a strong double word and a strong word of it",
       "A u64 store and a u32 load are scalars of different width: a race.",
       [role("st.relaxed.gpu.global.u64 [%x], %index; @@a"), role("ld.relaxed.gpu.global.u32 %seen, [%x+4]; @@b")], words=("x",), width=2, device=('cell = "wide"',),
       expect=[("a", race("x", "WAR", cls="mixed-width", min=1)), ("b", race("x", "RAW", cls="mixed-width", min=1))])
litmus("packed_strong", "a packed atomic and an atomic of one of its halves",
       "PTX models an operation on packed data as one scalar operation per element: f16x2 and f16 overlap completely. No race.",
       [role("mov.u32 %old, 0;\nred.relaxed.gpu.global.add.noftz.f16x2 [%x], %old;"), role("mov.b16 %half, 0;\natom.relaxed.gpu.global.add.noftz.f16 %half, [%x+2], %half;")],
       words=("x",))
litmus("double_word_flag", "message passing by a 64-bit flag", "A 64-bit release store and a 64-bit acquire load. No race.",
       [role(STORE, "mov.u64 %index, 1;\nst.release.gpu.global.u64 [%flag], %index;"),
        role(wait("ld.acquire.gpu.global.u64 %index, [%flag];\ncvt.u32.u64 %seen, %index;"), LOAD_OK)], width=2)

# --- Blocks of two warps -----------------------------------------------------------------------------------------------

def only(thread, text):
    """One thread does it."""
    return f"NEW:\nsetp.ne.u32 %yes, %thread, {thread};\n@%yes bra KNOWN_N;\n{text}\nKNOWN_N:\n"


def warp(number, text):
    """One warp does it."""
    return f"NEW:\nshr.u32 %old, %thread, 5;\nsetp.ne.u32 %yes, %old, {number};\n@%yes bra KNOWN_N;\n{text}\nKNOWN_N:\n"


def wait_block(load, after="", barrier="bar.sync 0;"):
    """Thread 0 polls, and tells the others through shared memory."""
    return f"""\
NEW:
    setp.ne.u32 %yes, %thread, 0;
    @%yes bra KNOWN_N;
    mov.u32 %polls, 64;
POLL_N:
    {load}
    setp.ge.u32 %yes, %seen, 1;
    @%yes bra SEEN_N;
    sub.u32 %polls, %polls, 1;
    setp.ne.u32 %yes, %polls, 0;
    @%yes bra POLL_N;
SEEN_N:
    {after}
    st.shared.u32 [known], %seen;
KNOWN_N:
    {barrier}
    ld.shared.u32 %seen, [known];
    setp.eq.u32 %yes, %seen, 0;
    @%yes bra NEXT;
"""


BLOCK = dict(block=64, words=("data", "flag"))
MINE = "st.global.u32 [%mine], 1;"
RELEASE_ONE = only(0, "st.release.gpu.global.u32 [%flag], 1;")
BARRIERS = {
    "bar_sync": "bar.sync 0;", "bar_sync_count": "bar.sync 1, 64;", "barrier_sync": "barrier.sync 2;",
    "barrier_sync_count": "barrier.sync 3, 64;", "bar_red": "setp.ge.u32 %no, %thread, 0;\nbar.red.popc.u32 %old, 0, %no;",
}
READ_OTHERS = "ld.global.u32 %value, [%mine];\nld.global.u32 %value, [%other];"
litmus("block_barrier_then_release", "a block stores, one thread releases",
       "All threads store, a barrier, thread 0 releases: the barrier puts the other threads' stores before the release "
       "(causality order goes through barriers). The reading block does it the other way round. No race by the PTX model.",
       [[role(MINE, b, RELEASE_ONE) for b in BARRIERS.values()],
        [role(wait_block("ld.acquire.gpu.global.u32 %seen, [%flag];", "", b), READ_OTHERS) for b in ("bar.sync 0;", "bar.sync 4, 64;", "barrier.sync 5;")]],
       **BLOCK)
litmus("block_arrive_then_release", "a warp arrives, the other warp releases",
       "Warp 1 stores and arrives at a named barrier, warp 0 syncs on it and thread 0 releases: ordered. No race.",
       [role(MINE, warp(1, "bar.arrive 1, 64;"), warp(0, "bar.sync 1, 64;"), RELEASE_ONE),
        role(wait_block("ld.acquire.gpu.global.u32 %seen, [%flag];"), READ_OTHERS)], **BLOCK)
litmus("block_fence_patterns", "a block stores, one thread fences and sets the flag",
       "As block_barrier_then_release, the patterns made of fences: the fence follows the barrier on the one side, and the "
       "barrier follows the fence on the other. No race by the PTX model.",
       [role(MINE, "bar.sync 0;", only(0, "membar.gl;\nst.volatile.global.u32 [%flag], 1;")),
        role(wait_block("ld.volatile.global.u32 %seen, [%flag];", "membar.gl;"), READ_OTHERS)], **BLOCK)
litmus("block_relaxed_racy", "a block stores, one thread sets the flag, relaxed",
       "The barrier orders within the block; between the blocks nothing does. All loads race whenever the flag is seen.",
       [role(MINE, "bar.sync 0;", only(0, "st.relaxed.gpu.global.u32 [%flag], 1;")),
        role(wait_block("ld.acquire.gpu.global.u32 %seen, [%flag];"), "ld.global.u32 %value, [%mine]; @@r1\nld.global.u32 %value, [%other]; @@r2")],
       expect=[("r1", race()), ("r2", race())], **BLOCK)
litmus("block_one_warp_each", "each warp hands its half over by itself",
       "Two flags' worth of patterns: thread 0 and thread 32 release after bar.warp.sync, what their warp has stored. The other "
       "block's thread 0 acquires both. No race by the PTX model.",
       [role(MINE, "bar.warp.sync 0xffffffff;", only(0, "red.release.gpu.global.add.u32 [%flag], 1;"), only(32, "red.release.gpu.global.add.u32 [%flag], 1;")),
        role(wait_block("ld.acquire.gpu.global.u32 %seen, [%flag];\nshr.u32 %seen, %seen, 1;"), READ_OTHERS)], **BLOCK)
litmus("block_relay", "ISA2 through a block: one thread acquires, another releases",
       "In the middle block thread 0 acquires, and after the barrier thread 32 releases: cumulativity through bar.sync. No race.",
       [role(MINE, "bar.sync 0;", RELEASE_ONE),
        role(wait_block("ld.acquire.gpu.global.u32 %seen, [%flag];"), only(32, "st.release.gpu.global.u32 [%next], 1;")),
        role(wait_block("ld.acquire.gpu.global.u32 %seen, [%next];"), READ_OTHERS)], block=64, words=("data", "flag", "next"))
litmus("block_relay_relaxed_racy", "ISA2 through a block, the acquire is missing",
       "As block_relay, the middle's poll is relaxed: the barrier has nothing to pass on.",
       [role(MINE, "bar.sync 0;", RELEASE_ONE),
        role(wait_block("ld.relaxed.gpu.global.u32 %seen, [%flag];"), only(32, "st.release.gpu.global.u32 [%next], 1;")),
        role(wait_block("ld.acquire.gpu.global.u32 %seen, [%next];"), "ld.global.u32 %value, [%mine]; @@r1\nld.global.u32 %value, [%other]; @@r2")],
       block=64, words=("data", "flag", "next"), expect=[("r1", race()), ("r2", race())])
litmus("block_relay_fence", "ISA2 through a block: a fence on either side of the barrier",
       "Thread 0 polls relaxed and fences; after the barrier thread 32 fences and sets the next flag. No race.",
       [role(MINE, "bar.sync 0;", RELEASE_ONE),
        role(wait_block("ld.relaxed.gpu.global.u32 %seen, [%flag];", "fence.acq_rel.gpu;"), only(32, "fence.acq_rel.gpu;\nst.relaxed.gpu.global.u32 [%next], 1;")),
        role(wait_block("ld.acquire.gpu.global.u32 %seen, [%next];"), READ_OTHERS)], block=64, words=("data", "flag", "next"))

INNER = dict(block=64, words=("data",))
GIVE_TAKE = "st.global.u32 [%mine], 1;\n{0}\nld.global.u32 %value, [%other];"
litmus("warps_barrier", "two warps exchange words across a barrier",
       "Every kind of barrier in its turn, whole block or counted. No race.",
       [[role(MINE, b, "ld.global.u32 %value, [%other];") for b in BARRIERS.values()]], **INNER)
litmus("warps_arrive_sync", "a producer warp arrives, a consumer warp syncs",
       "bar.arrive and bar.sync on one named barrier: what comes before the arrival precedes what comes after the sync. No race.",
       [role(warp(1, "st.global.u32 [%mine], 1;\nbar.arrive 1, 64;"), warp(0, "bar.sync 1, 64;\nld.global.u32 %value, [%other];"))], **INNER)
litmus("warps_two_named", "two named barriers, there and back",
       "Full and empty barrier, as a warp-specialised pipeline has them: the buffer is written, read and written again. No race.",
       [role(warp(1, "st.global.u32 [%mine], 1;\nbar.arrive 1, 64;\nbar.sync 2, 64;\nst.global.u32 [%mine], 2;\nbar.arrive 3, 64;"),
             warp(0, "bar.sync 1, 64;\nld.global.u32 %value, [%other];\nbar.arrive 2, 64;\nbar.sync 3, 64;\nld.global.u32 %value, [%other];"))], **INNER)
litmus("lanes_warp_sync", "two lanes of a warp exchange words",
       "bar.warp.sync orders the memory accesses of the lanes that take part. No race.",
       [role("st.global.u32 [%mine], 1;\nbar.warp.sync 0xffffffff;\nxor.b32 %old, %thread, 1;\nmul.wide.u32 %index, %old, 4;\n"
             "add.u64 %other, %data, %index;\nld.global.u32 %value, [%other];")], **INNER)
litmus("warps_atomics", "two warps add to one word",
       "Atomics at block scope within a block: strong, scopes reach. No race.",
       [role("atom.cta.global.add.u32 %old, [%data], 1;\nred.relaxed.gpu.global.add.u32 [%data+4], 1;\nst.relaxed.cta.global.u32 [%data+8], 1;")], **INNER)
litmus("warps_flag_cta", "a warp hands over to the other by a flag at block scope",
       "Within a block cta scope reaches: release and acquire order the words of the two threads. No race by the PTX model.",
       [role(only(0, "st.global.u32 [%data], 1;\nst.release.cta.global.u32 [%flag], 1;"),
             only(32, "ld.acquire.cta.global.u32 %seen, [%flag];\nsetp.eq.u32 %yes, %seen, 0;\n@%yes bra KNOWN_N;\nld.global.u32 %value, [%data];"))], **BLOCK)

# --- Races inside one block --------------------------------------------------------------------------------------------

ANY = ["RAW", "WAR", "WAW"]


# The reference cell keeps no thread: it can't tell the warps of a block apart.
WIDE = dict(device=('cell = "wide"',))


def inside(buffer="data", **more):
    return race(buffer, ANY, cls="intra-block", **more)


litmus("warps_no_barrier_racy", "two warps exchange words, no barrier",
       "Nothing orders the warps: the loads race with the other warp's stores, seen at whichever comes second. Every schedule "
       "has it, at one of the two places.",
       [role("st.global.u32 [%mine], 1; @@s\nld.global.u32 %value, [%other]; @@l")],
       expect=[("s", inside(min=0)), ("l", inside())], **WIDE, **INNER)
litmus("warps_own_barriers_racy", "two warps exchange words, each with a barrier of its own",
       "Each warp syncs with itself: a barrier that the other does not take part in orders nothing.",
       [role("st.global.u32 [%mine], 1; @@s", warp(0, "bar.sync 1, 32;"), warp(1, "bar.sync 2, 32;"), "ld.global.u32 %value, [%other]; @@l")],
       expect=[("s", inside(min=0)), ("l", inside())], **WIDE, **INNER)
litmus("warps_arrive_sync_racy", "the consumer arrives, the producer syncs",
       "bar.arrive does not wait: only what comes before the consumer's arrival is ordered. Its load races with the store, at "
       "whichever comes second.",
       [role(warp(1, "bar.sync 1, 64;\nst.global.u32 [%mine], 1; @@s"), warp(0, "bar.arrive 1, 64;\nld.global.u32 %value, [%other]; @@l"))],
       expect=[("s", inside(min=0)), ("l", inside(min=0))], **WIDE, **INNER)
litmus("warps_flag_relaxed_racy", "a warp hands over to the other by a relaxed flag",
       "As warps_flag_cta without release and acquire. The load only follows a flag that was seen, which is up to the schedule.",
       [role(only(0, "st.global.u32 [%data], 1;\nst.relaxed.cta.global.u32 [%flag], 1;"),
             only(32, "mov.u32 %polls, 64;\nPOLL_N:\nld.relaxed.cta.global.u32 %seen, [%flag];\nsetp.ne.u32 %yes, %seen, 0;\n@%yes bra SEEN_N;\n"
                  "sub.u32 %polls, %polls, 1;\nsetp.ne.u32 %yes, %polls, 0;\n@%yes bra POLL_N;\nbra KNOWN_N;\nSEEN_N:\nld.global.u32 %value, [%data]; @@l"))],
       expect=[("l", inside(min=1))], **WIDE, **BLOCK)
litmus("warps_atomic_and_plain_racy", "a warp adds, the other loads plain",
       "A plain access and an atomic one of different warps: a race, in one block as in two.",
       [role(warp(0, "atom.cta.global.add.u32 %old, [%data], 1; @@a"), warp(1, "ld.global.u32 %value, [%data]; @@l"))],
       expect=[("a", inside(min=0)), ("l", inside(min=0))], **WIDE, **INNER)
litmus("block_release_too_early_racy", "one thread releases before its block has stored",
       "The barrier before the release is missing: thread 32's and its warp's stores are not ordered before thread 0's release. The "
       "loads of the reading block race with them; the checker may see the loads (class race, where the store came after the "
       "release) or blame the missing barrier (class intra-block).",
       [role("st.global.u32 [%mine], 1; @@s", RELEASE_ONE),
        role(wait_block("ld.acquire.gpu.global.u32 %seen, [%flag];"), "ld.global.u32 %value, [%mine]; @@r1\nld.global.u32 %value, [%other]; @@r2")],
       expect=[("s", race(kind=["WAR", "WAW"], min=0)), ("r1", race(min=1)), ("r2", race(min=1))], **WIDE, **BLOCK)
