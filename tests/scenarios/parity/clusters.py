#!/usr/bin/env python3
"""Writes parity scenarios beside this file: rows of the classic GSan's test list about clusters, mbarriers and tensor copies.

A row is one kernel; each cluster has words of its own. One block per SM and one logical thread per SM, the reference cell:
the classic identity. `python3 clusters.py`; the text is checked in. `@@TAG` marks lines, as in kit.py.
"""

import pathlib
import re
import sys
import textwrap

HERE = pathlib.Path(__file__).parent
sys.path.insert(0, str(HERE.parent))
sys.dont_write_bytecode = True

from kit import code, race  # noqa: E402

WORDS = 16  # of each buffer, per cluster
BUFFERS = ("data", "flag", "out")

HEAD = f"""
    .shared .align 8 .b64 bars[4];
    .shared .align 4 .b32 word;
    .reg .pred %yes, %first;
    .reg .b32 %rank, %other, %cluster, %thread, %warp, %value, %old, %seen, %round, %parity, %bar, %far;
    .reg .b64 %data, %flag, %out, %mine, %theirs, %index;
    mov.u32 %rank, %cluster_ctarank;
    xor.b32 %other, %rank, 1;
    mov.u32 %cluster, %clusterid.x;
    mov.u32 %thread, %tid.x;
    shr.u32 %warp, %thread, 5;
    mul.wide.u32 %index, %cluster, {4 * WORDS};
    ld.param.u64 %data, [data];
    add.u64 %data, %data, %index;
    ld.param.u64 %flag, [flag];
    add.u64 %flag, %flag, %index;
    ld.param.u64 %out, [out];
    add.u64 %out, %out, %index;
    // The words of this block and of its neighbour.
    mul.wide.u32 %index, %rank, 4;
    add.u64 %mine, %data, %index;
    mul.wide.u32 %index, %other, 4;
    add.u64 %theirs, %data, %index;
"""

# A tensor of 8 rows of 16 words, and what copies of it need.
TENSOR = 128
TILE = """
    .shared .align 128 .b8 tile[128];
    .reg .b32 %tile;
    .reg .b64 %map, %state;
    mov.b64 %map, map;
    cvta.param.u64 %map, %map;
    mov.u32 %tile, tile;
    mov.u32 %bar, bars;
    mov.u32 %rank, %ctaid.x;
"""

SYNC = "barrier.cluster.arrive;\nbarrier.cluster.wait;"
RELAXED = "barrier.cluster.arrive.relaxed;\nbarrier.cluster.wait;"


def init(count, bars=1):
    """Block 0 makes its mbarriers, and everybody knows of it, without knowing anything else by it."""
    made = "\n".join(f"mbarrier.init.shared::cta.b64 [bars+{8 * b}], {count};" for b in range(bars))
    return f"""\
NEW:
    setp.ne.u32 %yes, %thread, 0;
    @%yes bra KNOWN_N;
    {made}
    fence.mbarrier_init.release.cluster;
KNOWN_N:
    {SYNC}
"""


def bar_of(rank, at=0):
    """%far: an mbarrier of another block."""
    return f"mov.u32 %bar, bars;\nadd.u32 %bar, %bar, {at};\nmapa.shared::cluster.u32 %far, %bar, {rank};"


def arrive(rank=0, sem="release", at=0):
    return f"{bar_of(rank, at)}\nmbarrier.arrive.{sem}.cluster.shared::cluster.b64 _, [%far];"


def await_phase(parity="%parity", at=0, sem="acquire"):
    return f"""\
NEW:
POLL_N:
    mbarrier.try_wait.parity.{sem}.cluster.shared::cta.b64 %yes, [bars+{at}], {parity};
    @!%yes bra POLL_N;
"""


TELL = "atom.global.relaxed.gpu.add.u32 %old, [%flag], 1;"
HEAR = """\
NEW:
POLL_N:
    ld.relaxed.gpu.global.u32 %seen, [%flag];
    setp.ne.u32 %yes, %seen, 0;
    @!%yes bra POLL_N;
"""


def only(rank, *body):
    return f"""\
NEW:
    setp.ne.u32 %yes, %rank, {rank};
    @%yes bra KNOWN_N;
""" + "\n".join(body) + "\nKNOWN_N:\n"


def lines_of(*parts):
    """Labels are numbered inside out: a part may hold others."""
    count = 0
    stack, out = [], []
    for line in "".join(code(p) for p in parts if p).splitlines():
        if line == "NEW:":
            stack.append(count)
            count += 1
            continue
        out.append(re.sub(r"\b(POLL|KNOWN)_N\b", lambda m: f"{m[1]}_{stack[-1]}", line))
        if line == "KNOWN_N:" or re.match(r"\s*@!%yes bra POLL_N;", line):
            stack.pop()
    return out


def row(name, test, why, *body, cluster=2, clusters=2, block=1, expect=(), values=(), funcs="", schedules=16,
        tensor=None, target=("8.0", "sm_90")):
    text = [f".version {target[0]}", f".target {target[1]}", ".address_size 64", ""]
    text += funcs.strip("\n").splitlines() + ([""] if funcs else [])
    map_of = ".param .align 64 .b8 map[128], " if tensor else ""
    text += [f".visible .entry row({map_of}.param .u64 data, .param .u64 flag, .param .u64 out)", "{"]
    head = HEAD.replace("%clusterid.x", "0") + TILE if tensor else HEAD
    text += lines_of(head, *body, "ret;") + ["}"]
    tags = {}
    for i, line in enumerate(text):
        found = re.search(r"\s*@@(\w+)\s*$", line)
        if found:
            tags.setdefault(found[1], []).append(i + 1)
            text[i] = line[: found.start()]
    out = [f"# {line}" for line in textwrap.wrap(f"Row {test}. {why}", 118)]
    out += [f'name = "parity: {test}"', "", "[device]"]
    out += [f"sms = {cluster * clusters}", "blocks_per_sm = 1", "slots_per_sm = 1", 'cell = "reference"']
    out += ["", "[[module]]", 'name = "row"', "ptx = '''", *text, "'''"]
    for buffer in BUFFERS:
        words = TENSOR if tensor and buffer == "data" else WORDS
        out += ["", "[[buffer]]", f'name = "{buffer}"', 'type = "u32"', f"len = {words * clusters}"]
    out += ["", "[[step]]", 'launch = "row"', f"grid = [{cluster * clusters}]", f"block = [{block}]"]
    out += [f"cluster = [{cluster}]"] if cluster > 1 and not tensor else []
    given = ([tensor] if tensor else []) + [f'"{buffer}"' for buffer in BUFFERS]
    out += [f"args = [{', '.join(given)}]"]
    out += ["", "[expect]", f"schedules = {schedules}"]
    if not expect:
        out.append("races = []")
    for tag, fields in expect:
        for line in tags.pop(tag):
            out += ["", "[[expect.race]]"]
            kinds = fields["kind"]
            out.append("kind = " + (f'"{kinds}"' if isinstance(kinds, str) else "[" + ", ".join(f'"{k}"' for k in kinds) + "]"))
            out += [f'buffer = "{fields["buffer"]}"', f"line = {line}", f"min_schedules = {fields.get('min', schedules)}"]
    assert not tags, (name, tags)
    for buffer, shown in values:
        out += ["", "[[expect.value]]", f'buffer = "{buffer}"', f"values = [{', '.join(map(str, shown))}]"]
    (HERE / f"{name}.toml").write_text("\n".join(out) + "\n")


def exchange(barrier, tag=""):
    return f"""
add.u32 %value, %rank, 5;
st.global.u32 [%mine], %value;
{barrier}
ld.global.u32 %value, [%theirs];{tag}
mul.wide.u32 %index, %rank, 4;
add.u64 %mine, %out, %index;
st.global.u32 [%mine], %value;
"""


# --- cluster barriers ----------------------------------------------------------------------------------------------------

row("cluster_barrier", "test_gluon_cluster_barrier_synchronizes_vector_clocks",
    "Each block of a cluster writes a word, the cluster's barrier, each reads the other's word. Silent.",
    exchange(SYNC), values=[("out", [6, 5])])
row("cluster_barrier_relaxed", "test_relaxed_cluster_barrier_does_not_synchronize",
    "First a whole barrier, then the exchange across a relaxed one: RAW at the load.",
    SYNC, exchange(RELAXED, " @@read"), expect=[("read", race())])
row("cluster_atomic", "test_gluon_cluster_synchronizing_atomic_synchronizes_vector_clocks",
    "The classic tool's atomics of a cluster have the cluster's barrier around them, which PTX spells out: one block writes and adds "
    "with release between two barriers, the other reads. Silent.",
    only(0, "st.global.u32 [%data], 7;"), SYNC,
    only(0, "atom.global.release.gpu.add.u32 %old, [%flag], 1;"), SYNC,
    only(1, "ld.global.u32 %value, [%data];\nst.global.u32 [%out], %value;"), values=[("out", [7]), ("flag", [1])])
row("cluster_atomic_alone", "test_gluon_cluster_synchronizing_atomic_synchronizes_vector_clocks, without the barriers",
    "The release alone orders nobody: the other block looks at the counter with a relaxed load until it has been added to. RAW at "
    "the load.",
    only(0, "st.global.u32 [%data], 7;\natom.global.release.gpu.add.u32 %old, [%flag], 1;"),
    only(1, HEAR,
         "ld.global.u32 %value, [%data]; @@read"), expect=[("read", race())])
PARTITIONS = f"""
shl.b32 %bar, %warp, 3;
mov.u32 %value, bars;
add.u32 %bar, %bar, %value;
mapa.shared::cluster.u32 %far, %bar, %other;
mul.wide.u32 %index, %warp, 8;
add.u64 %mine, %mine, %index;
add.u64 %theirs, %theirs, %index;
add.u64 %out, %out, %index;
"""
row("cluster_partitions", "test_gluon_cluster_barriers_in_warp_specialize",
    "Two partitions (warps), each with a barrier of its own between the two blocks. PTX has one cluster barrier, for all threads; a "
    "partition's own one is a pair of mbarriers: each warp arrives at the other block's and waits at its own. Silent, for 4 words.",
    init(1, bars=2), PARTITIONS,
    """
    and.b32 %thread, %thread, 31;
    setp.ne.u32 %yes, %thread, 0;
    @%yes bra DONE;
    shl.b32 %value, %warp, 1;
    add.u32 %value, %value, %rank;
    add.u32 %value, %value, 5;
    st.global.u32 [%mine], %value;
    mbarrier.arrive.release.cluster.shared::cluster.b64 _, [%far];
AGAIN:
    mbarrier.try_wait.parity.acquire.cluster.shared::cta.b64 %yes, [%bar], 0;
    @!%yes bra AGAIN;
    ld.global.u32 %value, [%theirs];
    mul.wide.u32 %index, %rank, 4;
    add.u64 %out, %out, %index;
    st.global.u32 [%out], %value;
DONE:
    """, SYNC, block=64, values=[("out", [6, 5, 8, 7])])
row("cluster_noinline_call", "test_gluon_two_cta_warp_specialize_noinline_call",
    "A warp of each block of the cluster calls a function that does nothing. Silent, and nothing is written.",
    "setp.lt.u32 %yes, %thread, 32;\n@%yes bra DONE;\ncall.uni nothing, ();\nDONE:", SYNC, block=64,
    funcs=".func nothing()\n{\n    ret;\n}", values=[("out", [0, 0])])
BROADCAST = """
mov.u32 %bar, word;
st.shared::cta.u32 [%bar], %old;
mapa.shared::cluster.u32 %far, %bar, 1;
st.shared::cluster.u32 [%far], %old;
"""
SPREAD = """
ld.shared::cta.u32 %value, [word];
setp.ge.u32 %yes, %thread, 8;
mul.wide.u32 %index, %thread, 4;
add.u64 %mine, %out, %index;
mul.wide.u32 %index, %rank, 32;
add.u64 %mine, %mine, %index;
@!%yes st.global.u32 [%mine], %value;
"""
for op, atomic, old, new in (("rmw", "add.u32 %old, [%flag], 3;", 0, 3), ("cas", "cas.b32 %old, [%flag], 0, 9;", 0, 9)):
    row(f"cluster_broadcast_{op}", f"test_scalar_atomic_{op}_cluster_result_broadcast",
        "One thread of the cluster does the atomic and hands the old value to both blocks through their shared memory. Silent; the "
        "word changed once, and all lanes have the old value.",
        only(0, f"setp.ne.u32 %first, %thread, 0;\n@%first bra GIVEN;\natom.global.acq_rel.gpu.{atomic}\nadd.u32 %old, %old, 40;", BROADCAST, "GIVEN:"),
        SYNC, SPREAD, block=32, values=[("flag", [new]), ("out", [old + 40] * 16)])

# --- mbarriers -----------------------------------------------------------------------------------------------------------

row("mbarrier_initial_phase", "test_gluon_mbarrier_initial_empty_phase_is_ready",
    "Waiting for phase 1 of a fresh mbarrier returns at once, and acquires nothing. Silent.",
    init(1), "mov.u32 %parity, 1;", await_phase(), exchange(SYNC), values=[("out", [6, 5])])
LOOP = """
mov.u32 %round, 0;
ROUND:
and.b32 %parity, %round, 1;
mul.wide.u32 %index, %round, 4;
add.u64 %mine, %data, %index;
"""
NEXT = """
add.u32 %round, %round, 1;
setp.lt.u32 %yes, %round, 4;
@%yes bra ROUND;
"""
row("mbarrier_completed_epochs", "test_gluon_mbarrier_wait_preserves_completed_epochs",
    "Four times: block 1 writes a word, closes its epoch by a release, and arrives at block 0's mbarrier; block 0 waits and reads; a "
    "relaxed cluster barrier. Silent.",
    init(1), LOOP,
    only(1, "add.u32 %value, %round, 5;\nst.global.u32 [%mine], %value;\natom.global.release.gpu.add.u32 %old, [%flag], 1;", arrive(0)),
    only(0, await_phase(), "ld.global.u32 %value, [%mine];\nadd.u64 %mine, %out, %index;\nst.global.u32 [%mine], %value;"),
    RELAXED, NEXT, values=[("out", [5, 6, 7, 8])])
row("mbarrier_partitions", "test_gluon_mbarrier_sync_in_warp_specialized_partitions",
    "Two partitions with an mbarrier each: a warp of block 1 writes a word and arrives, the same warp of block 0 waits and reads. Silent.",
    init(1, bars=2), PARTITIONS,
    """
    mapa.shared::cluster.u32 %far, %bar, 0;
    and.b32 %thread, %thread, 31;
    setp.ne.u32 %yes, %thread, 0;
    @%yes bra DONE;
    setp.eq.u32 %yes, %rank, 0;
    @%yes bra READER;
    add.u32 %value, %warp, 5;
    st.global.u32 [%mine], %value;
    atom.global.release.gpu.add.u32 %old, [%flag], 1;
    mbarrier.arrive.release.cluster.shared::cluster.b64 _, [%far];
    bra DONE;
READER:
    mbarrier.try_wait.parity.acquire.cluster.shared::cta.b64 %yes, [%bar], 0;
    @!%yes bra READER;
    ld.global.u32 %value, [%theirs];
    st.global.u32 [%out], %value;
DONE:
    """, SYNC, block=64, values=[("out", [5, 0, 6])])
row("mbarrier_current_epoch", "test_mbarrier_wait_does_not_acquire_current_epoch, before arrival (superseded)",
    "Block 1 writes and arrives, with no release in between; block 0 waits and reads. The classic tool imports the epoch before the "
    "current one only, and reports. By PTX the arrival is a release and the wait an acquire: silent.",
    init(1), only(1, "st.global.u32 [%data], 5;", arrive(0)),
    only(0, "mov.u32 %parity, 0;", await_phase(), "ld.global.u32 %value, [%data];\nst.global.u32 [%out], %value;"), RELAXED,
    values=[("out", [5])])
row("mbarrier_relaxed", "test_mbarrier_wait_does_not_acquire_current_epoch, with a relaxed arrival",
    "As the row before, but the arrival is relaxed: it orders nothing. RAW at the load.",
    init(1), only(1, "st.global.u32 [%data], 5;", arrive(0, sem="relaxed")),
    only(0, "mov.u32 %parity, 0;", await_phase(), "ld.global.u32 %value, [%data]; @@read"), RELAXED, expect=[("read", race())],
    target=("8.6", "sm_90"))
row("mbarrier_after_arrival", "test_mbarrier_wait_does_not_acquire_current_epoch, after arrival",
    "Block 1 arrives and then writes; block 0 waits, the cluster meets at a relaxed barrier, block 0 reads: RAW at the load.",
    init(1), only(1, arrive(0), "st.global.u32 [%data], 5;"), only(0, "mov.u32 %parity, 0;", await_phase()), RELAXED,
    only(0, "ld.global.u32 %value, [%data]; @@read"), expect=[("read", race())])
row("mbarrier_phases", "test_gluon_mbarrier_repeated_phases_reuse_epochs_and_snapshots (arrive)",
    "A release and a marker, 1,000 phases of an mbarrier with relaxed cluster barriers between them, the marker again. Silent. (The "
    "test in tests/parity.rs runs 65,536 of them.)",
    init(1),
    only(1, "atom.global.release.gpu.exch.b32 %old, [%flag], 1;"),
    "st.global.u32 [%mine], 1;\nmov.u32 %round, 0;\nROUND:\nand.b32 %parity, %round, 1;",
    only(1, arrive(0)), only(0, await_phase()), RELAXED,
    "add.u32 %round, %round, 1;\nsetp.lt.u32 %yes, %round, 1000;\n@%yes bra ROUND;\nst.global.u32 [%mine], 2;",
    values=[("data", [2, 2])], schedules=4)
row("mbarrier_transitive", "test_gluon_mbarrier_preserves_transitively_imported_clocks",
    "Four blocks: 1 arrives at 0's mbarrier and 3 at 2's, then 2 at 0's second one. Block 0 has then waited for all, and reads all "
    "words. Silent.",
    init(1, bars=2), "add.u32 %value, %rank, 5;\nst.global.u32 [%mine], %value;\nmov.u32 %parity, 0;",
    only(1, arrive(0)), only(3, arrive(2)), only(2, await_phase(), arrive(0, at=8)), only(0, await_phase(), await_phase(at=8),
         "\n".join(f"ld.global.u32 %value, [%data+{4 * r}];\nst.global.u32 [%out+{4 * r}], %value;" for r in range(4))), RELAXED,
    cluster=4, clusters=1, values=[("out", [5, 6, 7, 8])])
row("mbarrier_not_transitive", "test_gluon_mbarrier_preserves_transitively_imported_clocks, those that do not wait",
    "The same, but block 2 arrives without having waited for block 3: what that one wrote is not known to block 0. RAW, or WAR where "
    "it came later, for word 3 only.",
    init(1, bars=2), "add.u32 %value, %rank, 5;",
    only(3, "st.global.u32 [%mine], %value; @@write"), only(2, "st.global.u32 [%mine], %value;", arrive(0)),
    only(0, "mov.u32 %parity, 0;", await_phase(), "ld.global.u32 %value, [%data+8];\nld.global.u32 %value, [%data+12]; @@read"), RELAXED,
    cluster=4, clusters=1, expect=[("read", race(min=1)), ("write", race(kind="WAR", min=0))])

row("mbarrier_only_leader_waits", "test_mbarrier_multicast_partial_wait_only_acquires_on_leader_ctas",
    "Of four blocks one writes and arrives at the leader's mbarrier; the leader waits and tells another block by a relaxed flag, which "
    "reads, and has not waited itself. RAW at the load. (There a multicast copy completes the barrier: scenario bulk_multicast_racy.)",
    init(1), only(1, "st.global.u32 [%data], 5;", arrive(0)), only(0, "mov.u32 %parity, 0;", await_phase(),
         "ld.global.u32 %value, [%data];\nst.relaxed.gpu.global.u32 [%flag], 1;"),
    only(2, HEAR,
         "ld.global.u32 %value, [%data]; @@read"),
    cluster=4, clusters=1, expect=[("read", race())])
row("tcgen05_commit", "test_tcgen05_commit_does_not_publish_vector_clock",
    "A phase that only a tcgen05.commit completes: it speaks for the tensor cores' work, not for what its thread has written. RAW at "
    "the load.",
    init(1), only(1, "st.global.u32 [%data], 5;", bar_of(0),
                  "tcgen05.commit.cta_group::1.mbarrier::arrive::one.shared::cluster.b64 [%far];"),
    only(0, "mov.u32 %parity, 0;", await_phase(), "ld.global.u32 %value, [%data]; @@read"), RELAXED,
    expect=[("read", race())], target=("8.6", "sm_100a"))

# --- copies through tensor maps: two blocks, no cluster ---------------------------------------------------------------------

MAP = '{ tensor = "data", extents = [16, 8], box = [8, 4] }'
ROWS = '{ tensor = "data", extents = [16, 8], box = [8, 1] }'
FLAGS = '{ tensor = "flag", extents = [4], box = [4] }'
BLACKWELL = ("8.6", "sm_100a")
ITEM = 4 * (3 * 16 + 5)  # a word of the box at column 4, row 2


def box_load(what="tile", corner="{4, 2}", tag=""):
    return f"""\
NEW:
    mbarrier.init.shared::cta.b64 [%bar], 1;
    fence.mbarrier_init.release.cluster;
    mbarrier.arrive.expect_tx.shared::cta.b64 %state, [%bar], 128;
    cp.async.bulk.tensor.2d.shared::cluster.global.{what}.mbarrier::complete_tx::bytes [%tile], [%map, {corner}], [%bar];{tag}
POLL_N:
    mbarrier.try_wait.parity.shared::cta.b64 %yes, [%bar], 0;
    @!%yes bra POLL_N;
"""


def box_store(what="tile", corner="{4, 2}", tag=""):
    return f"""
    st.shared::cta.u32 [%tile], 5;
    fence.proxy.async.shared::cta;
    cp.async.bulk.tensor.2d.global.shared::cta.{what}.bulk_group [%map, {corner}], [%tile];{tag}
    cp.async.bulk.commit_group;
    cp.async.bulk.wait_group 0;
"""


row("tma_read_after_write", "test_tma_read_after_write",
    "Block 0 stores a box, block 1 loads one of its words after a relaxed handoff. RAW at the load.",
    only(0, box_store(), TELL), only(1, HEAR, f"ld.global.u32 %value, [%data+{ITEM}]; @@read"),
    clusters=1, tensor=MAP, expect=[("read", race())])
row("tma_write_after_read", "test_host_tma_write_after_read",
    "Block 0 loads a box, block 1 stores to one of its words after a relaxed handoff. WAR at the store.",
    only(0, box_load(), TELL), only(1, HEAR, f"st.global.u32 [%data+{ITEM}], 1; @@write"),
    clusters=1, tensor=MAP, expect=[("write", race(kind="WAR"))])
ORDERED = TELL.replace("relaxed", "release")
HEARD = HEAR.replace("relaxed", "acquire")
row("tma_store_ordered", "test_tma_read_after_write, repaired",
    "The same with a release and an acquire. Silent.",
    only(0, box_store(), ORDERED), only(1, HEARD, f"ld.global.u32 %value, [%data+{4 * 36}];\nst.global.u32 [%out], %value;"),
    clusters=1, tensor=MAP, values=[("out", [5])])
row("tma_load_ordered", "test_host_tma_write_after_read, repaired",
    "The same with a release and an acquire. Silent.",
    only(0, box_load(), ORDERED), only(1, HEARD, f"st.global.u32 [%data+{ITEM}], 1;"), clusters=1, tensor=MAP)
PICKED = "{4, 1, 3, 5, 6}"
row("tma_gather_write_after_read", "test_host_tma_gather_write_after_read",
    "The same with gathered rows 1, 3, 5 and 6. WAR at the store.",
    only(0, box_load("tile::gather4", PICKED), TELL), only(1, HEAR, f"st.global.u32 [%data+{ITEM}], 1; @@write"),
    clusters=1, tensor=ROWS, target=BLACKWELL, expect=[("write", race(kind="WAR"))])
row("tma_scatter_write_after_read", "test_host_tma_scatter_write_after_read",
    "Block 0 loads a word, block 1 scatters rows over it after a relaxed handoff. WAR at the scatter.",
    only(0, f"ld.global.u32 %value, [%data+{ITEM}];", TELL), only(1, HEAR, box_store("tile::scatter4", PICKED, " @@write")),
    clusters=1, tensor=ROWS, target=BLACKWELL, expect=[("write", race(kind="WAR"))])
row("tma_rows_between", "test_host_tma_gather_updates_shadow, test_host_tma_scatter_updates_shadow (2.1)",
    "Block 0 scatters rows 1, 3, 5 and 6, and block 1 meanwhile writes the rows between them and the columns beside: nothing else is "
    "touched. Silent.",
    only(0, box_store("tile::scatter4", PICKED)),
    only(1, "\n".join(f"st.global.u32 [%data+{4 * (16 * r + c)}], 1;" for r in range(8)
                      for c in ([4, 11] if r in (0, 2, 4, 7) else [3, 12]))),
    clusters=1, tensor=ROWS, target=BLACKWELL)
row("tma_atomic_on_release_flag", "test_host_tma_atomic_on_release_flag_does_not_publish_data",
    "Block 0 writes the payload and releases the flag; block 1 adds to the flag through a tensor map, which is relaxed and acquires "
    "nothing, and loads the payload. RAW at the load.",
    only(0, "st.global.u32 [%data], 7;\nst.release.gpu.global.u32 [%flag], 1;"),
    only(1, HEAR, """
    st.shared::cta.u32 [%tile], 1;
    fence.proxy.async.shared::cta;
    cp.reduce.async.bulk.tensor.1d.global.shared::cta.add.tile.bulk_group [%map, {0}], [%tile];
    cp.async.bulk.commit_group;
    cp.async.bulk.wait_group 0;
    """, "ld.global.u32 %value, [%data]; @@read"),
    clusters=1, tensor=FLAGS, expect=[("read", race())])
