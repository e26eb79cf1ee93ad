"""What the generators of litmus and parity scenarios share.

A litmus test is one small program for two to four blocks of one thread each. A kernel runs many instances: blocks form
groups, a group runs an instance per round, every instance has words of its own, and the blocks of a group swap roles from
round to round, so that no role is always the early one. Where a role has several variants, rounds take them in turn.
Nobody waits for ever: a flag is polled 64 times, then the instance is given up.

In the text of a role, `@@TAG` at the end of a line marks a place where a race is expected; `expect` says which.
"""

import re
import textwrap

ROUNDS = 2048  # room for so many per group; litmus.sh raises the number of rounds to it


def wait(load, value="%seen", at_least=1):
    """Polls with `load` until it yields `at_least`; the rest of the role runs only then."""
    return f"""\
NEW:
    mov.u32 %polls, 64;
POLL_N:
    {load}
    setp.ge.u32 %yes, {value}, {at_least};
    @%yes bra SEEN_N;
    sub.u32 %polls, %polls, 1;
    setp.ne.u32 %yes, %polls, 0;
    @%yes bra POLL_N;
    bra NEXT;
SEEN_N:
"""


def once(value):
    """Waits until `go` is set, without acquiring anything, and then looks at the flag a single time: it must be `value`."""
    return wait("ld.relaxed.gpu.global.u32 %seen, [%go];") + f"""\
    ld.acquire.gpu.global.u32 %seen, [%flag];
    setp.ne.u32 %yes, %seen, {value};
    @%yes bra NEXT;
"""


GO = "st.relaxed.gpu.global.u32 [%go], 1;"


def code(text):
    """Instructions, one per `;`-ended line, indented; labels and `wait` blocks as they are."""
    lines = []
    for line in text.strip("\n").splitlines():
        stripped = line.strip()
        if not stripped:
            continue
        label = re.match(r"^\w+:", stripped)
        lines.append(stripped if label else "    " + stripped)
    return "\n".join(lines) + "\n"


def numbered(lines):
    """Every part that starts with the line `NEW:` gets labels of its own."""
    n = -1
    for line in lines:
        if line == "NEW:":
            n += 1
        else:
            yield re.sub(r"\b(POLL|SEEN|KNOWN)_N\b", rf"\g<1>_{n}", line)


def role(*parts):
    return "".join(code(p) for p in parts)


def kernel(roles, words, target, version, block, width, room):
    t = len(roles)
    out = [f".version {version}", f".target {target}", ".address_size 64", ""]
    out.append(".visible .entry litmus(")
    for w in words:
        out.append(f"    .param .u64 {w},")
    out.append("    .param .u32 rounds")
    out.append(")")
    out.append("{")
    if block != 1:
        out.append("    .shared .align 4 .u32 known;")
    out.append("    .reg .pred %yes, %no;")
    out.append("    .reg .b32 %block, %group, %role, %variant, %round, %rounds, %polls, %seen, %value, %old, %thread;")
    out.append("    .reg .b16 %half;")
    if block != 1:
        out.append("    .reg .b64 %mine, %other;")
    out.append("    .reg .b64 %index, " + ", ".join(f"%{w}" for w in words) + ";")
    out.append("    mov.u32 %block, %ctaid.x;")
    out.append("    mov.u32 %thread, %tid.x;")
    out.append(f"    div.u32 %group, %block, {t};")
    out.append("    ld.param.u32 %rounds, [rounds];")
    out.append("    mov.u32 %round, 0;")
    out.append("ROUND:")
    out.append("    setp.ge.u32 %yes, %round, %rounds;")
    out.append("    @%yes bra END;")
    out.append("    // The words of this instance.")
    out.append(f"    mad.lo.u32 %variant, %group, {room}, %round;")
    out.append(f"    mul.wide.u32 %index, %variant, {4 * width};")
    for w in words:
        out.append(f"    ld.param.u64 %{w}, [{w}];")
        out.append(f"    add.u64 %{w}, %{w}, %index;")
    if block != 1:
        out.append("    // The word of this thread, and that of the thread with the same lane in the other warp.")
        out.append("    mul.wide.u32 %index, %thread, 4;")
        out.append(f"    add.u64 %mine, %{words[0]}, %index;")
        out.append("    xor.b32 %old, %thread, 32;")
        out.append("    mul.wide.u32 %index, %old, 4;")
        out.append(f"    add.u64 %other, %{words[0]}, %index;")
    most = max(len(r) for r in roles)
    if t > 1:
        out.append("    // The role of this block, and which variant of it.")
        out.append("    add.u32 %role, %block, %round;")
        out.append(f"    rem.u32 %role, %role, {t};")
    if most > 1:
        out.append(f"    div.u32 %variant, %round, {t};")
    for i in range(1, t):
        out.append(f"    setp.eq.u32 %yes, %role, {i};")
        out.append(f"    @%yes bra ROLE_{i};")
    for i, variants in enumerate(roles):
        out.append("")
        out.append(f"ROLE_{i}:")
        n = len(variants)
        if n > 1:
            out.append(f"    rem.u32 %variant, %variant, {n};")
            for v in range(1, n):
                out.append(f"    setp.eq.u32 %yes, %variant, {v};")
                out.append(f"    @%yes bra ROLE_{i}_{v};")
        for v, body in enumerate(variants):
            if v:
                out.append(f"ROLE_{i}_{v}:")
            out.extend(body.rstrip("\n").splitlines())
            out.append("    bra NEXT;")
    out.append("")
    out.append("NEXT:")
    if block != 1:
        out.append("    bar.sync 0;")
    out.append("    add.u32 %round, %round, 1;")
    out.append("    bra ROUND;")
    out.append("END:")
    out.append("    ret;")
    out.append("}")
    return out


def litmus(folder, name, title, why, roles, words=("data", "flag"), expect=(), target="sm_70", version="7.0", block=1,
           width=1, device=(), groups=None):
    """`roles`: per block of a group, a text or a list of variants. `expect`: (tag, dict) per race; none: it must be silent."""
    roles = [[r] if isinstance(r, str) else list(r) for r in roles]
    t = len(roles)
    most = max(len(r) for r in roles)
    groups = groups or {1: 16, 2: 8, 3: 5, 4: 5}[t]
    room = ROUNDS
    if block != 1:
        width, groups, room = block, max(4 // t, 2), ROUNDS // 4
    lines = list(numbered(kernel(roles, words, target, version, block, width, room)))
    tags = {}
    for i, line in enumerate(lines):
        found = re.search(r"\s*@@([\w,]+)\s*$", line)
        if found:
            for tag in found.group(1).split(","):
                tags.setdefault(tag, []).append(i + 1)
            lines[i] = line[: found.start()]
    text = "\n".join(lines)
    out = []
    for line in textwrap.wrap(why, 118):
        out.append(f"# {line}")
    out.append(f'name = "{folder.name}: {title}"')
    if device:
        out += ["", "[device]", *device]
    out += ["", "[[module]]", 'name = "litmus"', "ptx = '''", text, "'''"]
    for w in words:
        out += ["", "[[buffer]]", f'name = "{w}"', 'type = "u32"', f"len = {groups * room * width}"]
    out += ["", "[[step]]", 'launch = "litmus"', f"grid = [{groups * t}]", f"block = [{block}]"]
    args = ", ".join(f'"{w}"' for w in words)
    rounds = max(t * most, 2)
    out.append(f"args = [{args}, {{ u32 = {rounds} }}]")
    out += ["", "[expect]", "schedules = 8"]
    if not expect:
        out.append("races = []")
    for tag, fields in expect:
        lines_of = tags[tag]
        for line in lines_of:
            out += ["", "[[expect.race]]"]
            for key in ("kind", "class"):
                if key in fields:
                    value = fields[key]
                    shown = f'"{value}"' if isinstance(value, str) else "[" + ", ".join(f'"{v}"' for v in value) + "]"
                    out.append(f"{key} = {shown}")
            out.append(f'buffer = "{fields["buffer"]}"')
            out.append(f"line = {line}")
            out.append(f"min_schedules = {fields.get('min', 8)}")
    unused = set(tags) - {tag for tag, _ in expect}
    assert not unused, (name, unused)
    (folder / f"{name}.toml").write_text("\n".join(out) + "\n")


def race(buffer="data", kind="RAW", **more):
    fields = dict(buffer=buffer, kind=kind)
    if "cls" in more:
        fields["class"] = more.pop("cls")
    fields.update(more)
    return fields
