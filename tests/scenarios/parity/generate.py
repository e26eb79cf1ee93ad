#!/usr/bin/env python3
"""Writes parity scenarios beside this file: rows of the classic GSan's test list that are one kernel of a few blocks.

One block per SM and one logical thread per SM, the reference cell: the classic identity. `python3 generate.py`; the text is
checked in. The rows with several launches are written by hand.
"""

import functools
import pathlib
import sys

HERE = pathlib.Path(__file__).parent
sys.path.insert(0, str(HERE.parent))
sys.dont_write_bytecode = True

import kit  # noqa: E402
from kit import race, role, wait  # noqa: E402

CLASSIC = ("sms = 4", "blocks_per_sm = 1", "slots_per_sm = 1", 'cell = "reference"')


def row(name, test, why, roles, **more):
    t = len(roles)
    kit.litmus(HERE, name, test, f"Row {test}. {why}", roles, device=CLASSIC, groups={1: 1, 2: 2, 3: 1, 4: 1}[t], **more)


STORE = "st.global.u32 [%data], 1;"
LOAD = "ld.global.u32 %value, [%data]; @@read"
LOAD_OK = "ld.global.u32 %value, [%data];"
RELAXED_SET = "atom.global.relaxed.gpu.add.u32 %old, [%flag], 1;"
RELAXED_WAIT = wait("ld.relaxed.gpu.global.u32 %seen, [%flag];")
SCOPES = ("gpu", "sys")


def xchg(sem, scope, word="flag"):
    return f"atom.global.{sem}.{scope}.exch.b32 %old, [%{word}], 1;"


def add0(sem, scope, word="flag", at_least=1):
    return wait(f"atom.global.{sem}.{scope}.add.u32 %seen, [%{word}], 0;", at_least=at_least)


# --- 2.2: races --------------------------------------------------------------------------------------------------------

row("read_after_write", "test_read_after_write", "Store, relaxed add; the other block polls relaxed and loads: RAW at the load.",
    [role(STORE, RELAXED_SET), role(RELAXED_WAIT, LOAD)], expect=[("read", race())])
row("write_after_read", "test_write_after_read", "Load; the other block stores after a relaxed handoff: WAR at the store.",
    [role(LOAD_OK, RELAXED_SET), role(RELAXED_WAIT, "st.global.u32 [%data], 2; @@write")], expect=[("write", race(kind="WAR"))])
row("write_after_write", "test_write_after_write", "Both store, the second after a relaxed handoff: WAW at the second store.",
    [role(STORE, RELAXED_SET), role(RELAXED_WAIT, "st.global.u32 [%data], 2; @@write")], expect=[("write", race(kind="WAW"))])
MISMATCH = [("relaxed", "acquire"), ("release", "relaxed")]
for first, second in MISMATCH:
    row(f"mismatch_rmw_{first}_{second}", f"test_cross_sm_semantic_mismatch_read_after_write ({first}/{second}, gpu and sys)",
        "Exchange by the producer, add of 0 by the consumer; one half of the pattern is missing: RAW at the payload's load.",
        [[role(STORE, xchg(first, s)) for s in SCOPES], [role(add0(second, s), LOAD) for s in SCOPES]], expect=[("read", race())])
    row(f"mismatch_poll_{first}_{second}", f"test_atomic_poll_semantic_mismatch_read_after_write ({first}/{second}, gpu and sys)",
        "The poll is a compare-and-swap that fails: PTX has no poll instruction. RAW at the payload's load.",
        [[role(STORE, xchg(first, s)) for s in SCOPES],
         [role(wait(f"atom.global.{second}.{s}.cas.b32 %seen, [%flag], 7, 7;"), LOAD) for s in SCOPES]], expect=[("read", race())])
    row(f"mismatch_load_store_{first}_{second}", f"test_atomic_load_store_semantic_mismatch_read_after_write ({first}/{second}, gpu and sys)",
        "Strong store by the producer, strong load by the consumer: RAW at the payload's load.",
        [[role(STORE, f"st.{first}.{s}.global.u32 [%flag], 1;") for s in SCOPES],
         [role(wait(f"ld.{second}.{s}.global.u32 %seen, [%flag];"), LOAD) for s in SCOPES]], expect=[("read", race())])
COMBOS = [(r, a) for r in ("release", "acq_rel") for a in ("acquire", "acq_rel")]
row("cta_scope", "test_cross_sm_cta_scope_read_after_write (4 combinations)",
    "Block scope across SMs: the flag's atomics themselves race (RAW at the consumer's). The classic tool stops there; here the "
    "kernel goes on, and the payload, which nothing orders, may be reported as well.",
    [[role(STORE, xchg(r, "cta").replace("1;", "1; @@w")) for r, _ in COMBOS],
     [role(wait(f"atom.global.{a}.cta.add.u32 %seen, [%flag], 0; @@flag"), LOAD) for _, a in COMBOS]],
    expect=[("flag", race("flag", ["RAW", "WAR"], cls="scope-too-narrow", min=1)), ("w", race("flag", ["RAW", "WAR", "WAW"], cls="scope-too-narrow", min=0)),
            ("read", race(min=0))])
MIDDLE_SCOPES = [(m, s) for m in (("relaxed", "release"), ("release", "acq_rel")) for s in SCOPES]
row("transitive_no_middle_acquire", "test_transitive_release_acquire_requires_middle_acquire (gpu and sys)",
    "The relay polls flag 0 without acquiring (relaxed, or release only) and releases flag 1: it must not launder. RAW at the "
    "last payload load.",
    [[role(STORE, xchg("release", s)) for _, s in MIDDLE_SCOPES],
     [role(add0(m[0], s), xchg(m[1], s, "next")) for m, s in MIDDLE_SCOPES],
     [role(add0("acquire", s, "next"), LOAD) for _, s in MIDDLE_SCOPES]],
    words=("data", "flag", "next"), expect=[("read", race())])
row("transitive_cta_scope", "test_transitive_cta_scope_read_after_write (4 combinations)",
    "A chain of block-scope flags across SMs: RAW at the relay's access of flag 0. What the classic tool does not reach, "
    "because it stops there, is reported too.",
    [[role(STORE, xchg(r, "cta").replace("1;", "1; @@w")) for r, _ in COMBOS],
     [role(wait(f"atom.global.{a}.cta.add.u32 %seen, [%flag], 0; @@flag"), xchg(r, "cta", "next").replace("1;", "1; @@w1")) for r, a in COMBOS],
     [role(wait(f"atom.global.{a}.cta.add.u32 %seen, [%next], 0; @@flag1"), LOAD) for _, a in COMBOS]],
    words=("data", "flag", "next"),
    expect=[("flag", race("flag", ["RAW", "WAR"], cls="scope-too-narrow", min=1)), ("w", race("flag", ["RAW", "WAR", "WAW"], min=0)),
            ("w1", race("next", ["RAW", "WAR", "WAW"], min=0)), ("flag1", race("next", ["RAW", "WAR"], min=0)), ("read", race(min=0))])

# --- 2.1: what must be silent ------------------------------------------------------------------------------------------

ALL = [(r, a, s) for r, a in COMBOS for s in SCOPES]
row("release_acquire", "test_atomic_release_acquire_synchronizes_cross_sm (8 combinations)",
    "Store, exchange; add of 0 until the flag is seen, load. Silent.",
    [[role(STORE, xchg(r, s)) for r, _, s in ALL], [role(add0(a, s), LOAD_OK) for _, a, s in ALL]])
row("release_acquire_transitive", "test_atomic_release_acquire_transitively_synchronizes (8 combinations)",
    "Block 0, flag 0, block 1, flag 1, block 2. Silent.",
    [[role(STORE, xchg(r, s)) for r, _, s in ALL], [role(add0(a, s), xchg(r, s, "next")) for r, a, s in ALL],
     [role(add0(a, s, "next"), LOAD_OK) for _, a, s in ALL]], words=("data", "flag", "next"))
row("poll_acquire", "test_atomic_poll_acquire_synchronizes_cross_sm (gpu and sys)",
    "The poll is a load, or a compare-and-swap that fails. Silent.",
    [[role(STORE, xchg("release", s)) for s in SCOPES for _ in "ab"],
     [role(wait(l), LOAD_OK) for s in SCOPES for l in (f"ld.acquire.{s}.global.u32 %seen, [%flag];", f"atom.global.acquire.{s}.cas.b32 %seen, [%flag], 7, 7;")]])
row("poll_all_producers", "test_atomic_poll_tensor_acquires_all_producers (gpu and sys)",
    "Two blocks write the odd and the even words and release their flags; a third acquires both and reads all. Silent.",
    [[role(f"st.global.u32 [%data], 1;\nst.global.u32 [%data+8], 1;", xchg("release", s)) for s in SCOPES],
     [role(f"st.global.u32 [%data+4], 1;\nst.global.u32 [%data+12], 1;", xchg("release", s, "next")) for s in SCOPES],
     [role(wait(f"ld.acquire.{s}.global.u32 %seen, [%flag];"), wait(f"ld.acquire.{s}.global.u32 %seen, [%next];"),
           "\n".join(f"ld.global.u32 %value, [%data+{o}];" for o in (0, 4, 8, 12))) for s in SCOPES]],
    words=("data", "flag", "next"), width=4)
row("release_rmw_chain", "test_atomic_release_rmw_chain_synchronizes_all_writers (gpu and sys)",
    "Three blocks store their word and add with release to one counter; the fourth acquires 3 and loads all. Silent.",
    [[role(f"st.global.u32 [%data+{4 * i}], 1;", f"atom.global.release.{s}.add.u32 %old, [%flag], 1;") for s in SCOPES] for i in range(3)]
    + [[role(wait(f"ld.acquire.{s}.global.u32 %seen, [%flag];", at_least=3), "\n".join(f"ld.global.u32 %value, [%data+{o}];" for o in (0, 4, 8))) for s in SCOPES]],
    width=4)
row("ordered_mixed_scope", "test_ordered_mixed_scope_release_rmw_is_allowed",
    "Payload, gpu release add, relaxed ready flag; the other block polls relaxed and adds with sys acq_rel, which acquires: its "
    "load of the payload is ordered. Silent.",
    [role(STORE, "atom.global.release.gpu.add.u32 %old, [%flag], 1;\nst.relaxed.gpu.global.u32 [%next], 1;"),
     role(wait("ld.relaxed.gpu.global.u32 %seen, [%next];"), "atom.global.acq_rel.sys.add.u32 %old, [%flag], 1;", LOAD_OK)],
    words=("data", "flag", "next"))
row("mixed_scope_accumulation", "test_mixed_scope_release_rmw_accumulation (superseded)",
    "A gpu release add, then an unordered sys release add on the same counter. The classic tool gives up (\"unsupported\"); by the "
    "PTX model both releases reach whoever acquires the counter. Silent.",
    [role("st.global.u32 [%data], 1;", "atom.global.release.gpu.add.u32 %old, [%flag], 1;\nst.relaxed.gpu.global.u32 [%next], 1;"),
     role("st.global.u32 [%data+4], 1;", wait("ld.relaxed.gpu.global.u32 %seen, [%next];"), "atom.global.release.sys.add.u32 %old, [%flag], 1;"),
     role(wait("ld.acquire.sys.global.u32 %seen, [%flag];", at_least=2), "ld.global.u32 %value, [%data];\nld.global.u32 %value, [%data+4];")],
    words=("data", "flag", "next"), width=2)

# --- 1.2 ---------------------------------------------------------------------------------------------------------------

row("plain_write_drops_release", "1.2: a plain write drops earlier release history",
    "Block 0 releases the flag; block 1, which has acquired it, writes the flag plain and then signals relaxed; block 2 acquires "
    "the flag and loads the payload: nothing was left to acquire. RAW on the payload, and on the flag (weak against strong).",
    [role(STORE, "st.release.gpu.global.u32 [%flag], 1;"),
     role(wait("ld.acquire.gpu.global.u32 %seen, [%flag];"), "st.global.u32 [%flag], 2;\nst.relaxed.gpu.global.u32 [%next], 1;"),
     role(wait("ld.relaxed.gpu.global.u32 %seen, [%next];"), "ld.acquire.gpu.global.u32 %seen, [%flag]; @@flag", LOAD)],
    words=("data", "flag", "next"), expect=[("flag", race("flag")), ("read", race())])
row("exemption_both_atomic", "1.2: two atomics whose scopes reach each other are exempt",
    "Relaxed atomics of two blocks at gpu and system scope on one word. Silent.",
    [["atom.global.relaxed.gpu.add.u32 %old, [%data], 1;", "st.relaxed.gpu.global.u32 [%data], 1;", "red.relaxed.sys.global.add.u32 [%data], 1;"],
     ["atom.global.relaxed.sys.add.u32 %old, [%data], 1;", "ld.relaxed.sys.global.u32 %old, [%data];", "st.volatile.global.u32 [%data], 2;"]],
    words=("data",))
row("nonatomic_is_never_exempt", "1.2: a plain access is never exempt",
    "A relaxed atomic and a plain store of another block: WAW, or WAR and RAW where the atomic's read comes into it.",
    [role("atom.global.relaxed.sys.add.u32 %old, [%data], 1; @@a"), role("st.global.u32 [%data], 1; @@w")], words=("data",),
    expect=[("a", race(kind=["RAW", "WAW"], min=0)), ("w", race(kind=["WAR", "WAW"], min=0))])
row("failed_cas_is_a_read", "1.2: a compare-and-swap that fails is a read",
    "Two failing compare-and-swaps at block scope of two blocks: neither writes, so there is nothing to race with. Silent.",
    ["atom.global.relaxed.cta.cas.b32 %old, [%data], 7, 8;", "atom.global.relaxed.cta.cas.b32 %old, [%data], 9, 8;"], words=("data",))
row("release_rmw_without_acquire", "1.2: a release RMW publishes the earlier release without importing it",
    "The relay adds with release on top of block 0's release. Who acquires has both; the relay itself has not: its own load of "
    "the payload races.",
    [role(STORE, "st.release.gpu.global.u32 [%flag], 1;"),
     role(wait("ld.relaxed.gpu.global.u32 %seen, [%flag];"), "atom.global.release.gpu.add.u32 %old, [%flag], 1;", LOAD),
     role(wait("ld.acquire.gpu.global.u32 %seen, [%flag];", at_least=2), LOAD_OK)], expect=[("read", race())])
row("multi_word_atomic", "1.2: an atomic over two words",
    "A 64-bit release exchange, a 64-bit acquire load: both words carry the release. Silent.",
    [role(STORE, "mov.u64 %index, 1;\natom.global.release.gpu.exch.b64 %index, [%flag], %index;"),
     role(wait("ld.acquire.gpu.global.u64 %index, [%flag];\ncvt.u32.u64 %seen, %index;"), LOAD_OK)], width=2)
