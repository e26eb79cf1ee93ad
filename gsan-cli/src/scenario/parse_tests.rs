use super::*;
use gsan_host::CellFormat;
use gsan_host::report::{Outcome, RaceClass, RaceKind};

/// The page that fixes the format, whole.
const WHOLE: &str = r#"
name = "flag handoff without acquire"
[device]
sms = 4
devices = 2
blocks_per_sm = 8
slots_per_sm = 2
cell = "reference"
clock_buffer_size = 64

[[module]]
name = "m"
path = "handoff.ptx"
[[module]]
name = "n"
ptx = '''.version 8.0'''

[[buffer]]
name = "data"
type = "u32"
len = 64
init = "fill:3"
[[buffer]]
name = "other"
type = "f32"
len = 64
device = 1
memory = "pinned"

[[stream]]
name = "s2"
flags = "non-blocking"
device = 1

[[step]]
launch = "producer"
module = "m"
stream = "s0"
grid = [1]
block = [32, 2]
args = ["data", { u32 = 64 }, "data+16"]
cluster = [2]
shared = 1024
cooperative = true
pdl = true

[[step]]
record = "e0"
stream = "s0"
[[step]]
wait = "e0"
stream = "s1"
[[step]]
synchronize = "s0"
[[step]]
synchronize = "e0"
[[step]]
synchronize = "device"
[[step]]
memset = "data"
value = 255
stream = "s1"
[[step]]
copy = { from = "data", to = "other", bytes = 64 }
stream = "s1"
[[step]]
read_back = "data"
[[step]]
free = "data"
stream = "s0"
[[step]]
allocate = "data"

[expect]
schedules = 16
outcome = "trap"
message = "part"
[[expect.race]]
kind = "RAW"
class = "race"
buffer = "data"
offset = 0
kernel = "consumer"
line = 12
prior_line = 9
min_schedules = 0
[[expect.race]]
kind = ["RAW", "WAR"]
[[expect.value]]
buffer = "other"
values = [1, 0.5]
"#;

fn whole() -> Scenario {
    parse(Path::new("dir/s.toml"), WHOLE).unwrap()
}

#[test]
fn the_simulators_memory_and_schedule() {
    let of =
        |text: &str| parse(Path::new("s.toml"), text).map(|s| (s.device.memory, s.device.schedule));
    assert_eq!(
        of("[device]\nmemory = 'weak'\nschedule = 'priority'\n").unwrap(),
        (
            Some(gsan_sim::MemoryModel::Weak),
            Some(gsan_sim::Schedule::Priority)
        )
    );
    assert_eq!(
        of("[device]\nmemory = 'sc'\n").unwrap(),
        (Some(gsan_sim::MemoryModel::Sequential), None)
    );
    refused("[device]\nmemory = 'strong'\n", 2, "\"sc\" or \"weak\"");
    refused("[device]\nschedule = 1\n", 2, "");
}

#[test]
fn what_warps_that_have_exited_mean() {
    let of = |text: &str| parse(Path::new("s.toml"), text).map(|s| s.device.exited_warps);
    let (fault, arrive) = (gsan_sim::ExitedWarps::Fault, gsan_sim::ExitedWarps::Arrive);
    assert_eq!(
        of("[device]\nexited_warps = 'arrive'\n").unwrap(),
        Some(arrive)
    );
    assert_eq!(
        of("[device]\nexited_warps = 'fault'\n").unwrap(),
        Some(fault)
    );
    assert_eq!(of("[device]\n").unwrap(), None);
    refused(
        "[device]\nexited_warps = 'wait'\n",
        2,
        "\"fault\" or \"arrive\"",
    );
}

#[test]
fn a_tensor_map_is_an_argument() {
    let text = |arg: &str| {
        format!(
            "[[module]]\nptx = ''\n[[buffer]]\nname = 'data'\ntype = 'f32'\nlen = 64\n[[step]]\nlaunch = 'k'\n\
             grid = [1]\nblock = [1]\nargs = [{arg}]\n"
        )
    };
    let argument = |arg: &str| {
        let s = parse(Path::new("s.toml"), &text(arg)).unwrap();
        match &s.steps[0].action {
            Action::Launch(launch) => launch.args[0].clone(),
            other => panic!("{other:?}"),
        }
    };
    let short = argument("{ tensor = 'data+16', extents = [4, 3, 2], box = [4, 1, 1] }");
    assert_eq!(short.size(), 128);
    let Arg::Tensor(short) = short else { panic!() };
    assert_eq!((short.at.buffer, short.at.offset), (0, 16));
    assert_eq!(short.spec.strides, [16, 48]);
    assert_eq!(short.spec.ty, gsan_host::TensorType::F32);
    let long = argument(
        "{ tensor = 'data', extents = [4, 3], box = [4, 2], strides = [32], steps = [1, 2], swizzle = 64, fill = 'nan' }",
    );
    let Arg::Tensor(long) = long else { panic!() };
    assert_eq!(
        (long.spec.steps, long.spec.strides, long.spec.boxes),
        (vec![1, 2], vec![32], vec![4, 2])
    );
    assert!(long.spec.swizzle == 64 && long.spec.fill_nan);
    for (arg, why) in [
        ("tensor = 'data', extents = [65], box = [4]", "260 bytes"),
        (
            "tensor = 'data', extents = [-1], box = [4]",
            "list of numbers",
        ),
        ("tensor = 'data', extents = 4, box = [4]", "list of numbers"),
        (
            "tensor = 'data', extents = [4], box = [5000000000]",
            "too large",
        ),
        (
            "tensor = 'data', extents = [4], box = [4], swizzle = 16",
            "128 bytes",
        ),
        (
            "tensor = 'data', extents = [4], box = [4], fill = 'one'",
            "nan",
        ),
        ("tensor = 'data', extents = [4], boxes = [4]", "no `boxes`"),
        ("tensor = 5, extents = [4], box = [4]", "is a buffer"),
    ] {
        refused(&text(&format!("{{ {arg} }}")), 11, why);
    }
}

#[test]
fn an_array_is_an_argument_by_its_elements() {
    let bytes = |arg: &str| {
        let text = format!(
            "[[module]]\nptx = ''\n[[step]]\nlaunch = 'k'\ngrid = [1]\nblock = [1]\nargs = [{arg}]\n"
        );
        let s = parse(Path::new("s.toml"), &text).unwrap();
        match &s.steps[0].action {
            Action::Launch(launch) => match &launch.args[0] {
                Arg::Scalar { bytes, .. } => bytes.clone(),
                other => panic!("{other:?}"),
            },
            other => panic!("{other:?}"),
        }
    };
    assert_eq!(bytes("{ u16 = [1, 0x203] }"), [1, 0, 3, 2]);
    assert_eq!(bytes("{ u16 = 'iota', len = 3 }"), [0, 0, 1, 0, 2, 0]);
    assert_eq!(bytes("{ len = 2, u8 = 'fill:7' }"), [7, 7]);
}

#[test]
fn everything_that_the_format_has() {
    let s = whole();
    assert_eq!(s.name, "flag handoff without acquire");
    assert_eq!(
        s.device,
        DeviceShape {
            sms: Some(4),
            devices: Some(2),
            blocks_per_sm: Some(8),
            slots_per_sm: Some(2),
            clock_buffer_size: Some(64),
            cell: Some(CellFormat::Reference),
            sc_order: false,
            memory: None,
            schedule: None,
            exited_warps: None,
        }
    );
    assert_eq!(
        s.modules[0].source,
        ModuleSource::File("dir/handoff.ptx".into())
    );
    assert_eq!(
        s.modules[1].source,
        ModuleSource::Inline(".version 8.0".into())
    );
    assert_eq!(
        (s.buffers[0].bytes(), s.buffers[0].memory),
        (256, Memory::Device)
    );
    assert_eq!(s.buffers[0].init, Init::Fill(Number::Int(3)));
    assert_eq!(
        (s.buffers[1].device, s.buffers[1].memory),
        (1, Memory::Pinned)
    );
    let streams: Vec<_> = s
        .streams
        .iter()
        .map(|s| (s.name.as_str(), s.flags, s.device))
        .collect();
    assert_eq!(
        streams,
        [
            ("s2", StreamFlags::NonBlocking, 1),
            ("s0", StreamFlags::Blocking, 0),
            ("s1", StreamFlags::Blocking, 0)
        ]
    );
    let Action::Launch(launch) = &s.steps[0].action else {
        panic!()
    };
    assert_eq!(
        (launch.grid, launch.block, launch.cluster),
        ([1, 1, 1], [32, 2, 1], Some([2, 1, 1]))
    );
    assert_eq!(
        (launch.shared, launch.cooperative, launch.pdl),
        (1024, true, true)
    );
    assert_eq!(
        launch.args,
        [
            Arg::Buffer(BufferRef {
                buffer: 0,
                offset: 0
            }),
            Arg::Scalar {
                ty: ElementType::U32,
                bytes: vec![64, 0, 0, 0]
            },
            Arg::Buffer(BufferRef {
                buffer: 0,
                offset: 16
            }),
        ]
    );
    assert_eq!(s.steps[0].stream, Some(1));
    let actions: Vec<_> = s.steps[1..].iter().map(|s| s.action.clone()).collect();
    assert_eq!(
        actions,
        [
            Action::Record { event: 0 },
            Action::Wait { event: 0 },
            Action::Synchronize(SyncTarget::Stream(1)),
            Action::Synchronize(SyncTarget::Event(0)),
            Action::Synchronize(SyncTarget::Device),
            Action::Memset {
                buffer: 0,
                value: 255
            },
            Action::Copy {
                from: BufferRef {
                    buffer: 0,
                    offset: 0
                },
                to: BufferRef {
                    buffer: 1,
                    offset: 0
                },
                bytes: 64
            },
            Action::ReadBack { buffer: 0 },
            Action::Free { buffer: 0 },
            Action::Allocate { buffer: 0 },
        ]
    );
    let e = s.expect.unwrap();
    assert_eq!(
        (e.schedules, e.outcome, e.message.as_deref()),
        (Some(16), Outcome::Trap, Some("part"))
    );
    assert_eq!(e.races.len(), 2);
    let race = &e.races[0];
    assert_eq!(
        (race.kinds.as_deref(), race.classes.as_deref()),
        (Some(&[RaceKind::Raw][..]), Some(&[RaceClass::Race][..]))
    );
    assert_eq!(
        (
            race.offset,
            race.source_lines.clone(),
            race.prior_line,
            race.min_schedules
        ),
        (Some(0), Some(vec![12]), Some(9), 0)
    );
    assert_eq!(
        e.races[1].kinds.as_deref(),
        Some(&[RaceKind::Raw, RaceKind::War][..])
    );
    assert_eq!(
        (e.races[1].classes.is_none(), e.races[1].min_schedules),
        (true, 1)
    );
    assert_eq!(e.values[0].values, [Number::Int(1), Number::Float(0.5)]);
}

#[test]
fn steps_know_the_line_of_what_they_do() {
    let s = whole();
    for (step, text) in s
        .steps
        .iter()
        .zip(["launch = ", "record = ", "wait = ", "synchronize = "])
    {
        let line = WHOLE.lines().nth(step.line as usize - 1).unwrap();
        assert!(line.starts_with(text), "{line}");
    }
}

#[test]
fn a_file_with_nothing_in_it_is_a_scenario_without_expectations() {
    let s = parse(Path::new("x/empty.toml"), "").unwrap();
    assert_eq!(
        (s.name.as_str(), s.steps.len(), s.expect),
        ("empty", 0, None)
    );
    assert_eq!(
        parse(Path::new("s.toml"), "[expect]\nraces = []\n")
            .unwrap()
            .expect
            .unwrap()
            .races,
        []
    );
}

/// A module and a buffer, then the step under test.
const HEAD: &str =
    "[[module]]\nname = 'm'\nptx = ''\n[[buffer]]\nname = 'data'\ntype = 'u32'\nlen = 4\n";

#[track_caller]
fn refused(text: &str, line: u32, part: &str) {
    let error = parse(Path::new("s.toml"), text).unwrap_err();
    assert_eq!(error.code, 2);
    let start = format!("s.toml:{line}:");
    assert!(
        error.message.starts_with(&start)
            && error.excerpt.contains(&format!("\n{line} | "))
            && error.excerpt.ends_with("^\n"),
        "{} (wanted {start})",
        error.message
    );
    assert!(
        error.message.contains(part),
        "{} (wanted {part})",
        error.message
    );
    assert!(!error.message.contains('\n'), "{}", error.message);
}

#[track_caller]
fn step_refused(step: &str, line: u32, part: &str) {
    // HEAD has seven lines, so the step's own lines count from 9.
    refused(&format!("{HEAD}[[step]]\n{step}\n"), line + 8, part);
}

#[test]
fn unknown_keys_are_named_with_their_line() {
    refused("name = 'x'\nnmae = 'y'\n", 2, "nmae");
    refused("[device]\nsms = 1\nwarps = 2\n", 3, "warps");
    refused("[[module]]\npath = 'x'\nfile = 'y'\n", 3, "file");
    refused(&format!("{HEAD}align = 4\n"), 8, "align");
    refused("[[stream]]\nname = 's'\npriority = 1\n", 3, "priority");
    step_refused("launch = 'k'\ngird = [1]", 2, "gird");
    step_refused("copy = { from = 'data', to = 'data', size = 4 }", 1, "size");
    refused("[expect]\nrace_count = 1\n", 2, "race_count");
    refused("[expect]\n[[expect.race]]\nknd = 'RAW'\n", 3, "knd");
    refused(
        "[expect]\n[[expect.value]]\nbuffer = 'b'\nvalues = []\nfrom = 1\n",
        5,
        "from",
    );
    refused("[graphs]\n", 1, "graphs");
}

#[test]
fn toml_mistakes_and_wrong_types() {
    refused("name = \n", 1, "");
    refused("\n\nname == 'x'\n", 3, "");
    refused("name = 3\n", 1, "string");
    refused("[device]\nsms = 'four'\n", 2, "");
    refused("[device]\nsms = -1\n", 2, "");
    refused("[device]\nsms = 0\n", 2, "at least 1");
    refused("[device]\nslots_per_sm = 33\n", 2, "at most 32");
    refused("[device]\ncell = \"narrow\"\n", 2, "`cell` is");
    refused(
        "[[buffer]]\nname = 'a'\ntype = 'u32'\nlen = 4\nmemory = 'host'\n",
        5,
        "host",
    );
    refused("[[stream]]\nname = 's'\nflags = 'fast'\n", 3, "fast");
    refused("name = 'a'\nname = 'b'\n", 2, "duplicate");
}

#[test]
fn modules_and_buffers() {
    refused("[[module]]\nname = 'm'\n", 1, "`path` or `ptx`");
    refused("[[module]]\npath = 'x'\nptx = ''\n", 2, "not both");
    refused(
        "[[module]]\nname='m'\nptx=''\n[[module]]\nname='m'\nptx=''\n",
        5,
        "already",
    );
    refused("[[buffer]]\nname = 'a'\ntype = 'u33'\nlen = 4\n", 3, "u33");
    refused(
        "[[buffer]]\nname = 'a'\ntype = 'u32'\nlen = 0\n",
        4,
        "at least one",
    );
    refused(
        "[[buffer]]\nname = 'a'\ntype = 'u64'\nlen = 9223372036854775807\n",
        4,
        "more than any device",
    );
    refused(
        "[[buffer]]\nname = 'a'\ntype = 'u8'\nlen = 4\ninit = 'fill:256'\n",
        5,
        "does not fit",
    );
    refused(
        "[[buffer]]\nname = 'a'\ntype = 'u8'\nlen = 4\ninit = 'ones'\n",
        5,
        "ones",
    );
    refused("[[buffer]]\nname = 'a+1'\ntype = 'u8'\nlen = 4\n", 2, "`+`");
    refused(
        "[[buffer]]\nname = 'a'\ntype = 'u8'\nlen = 4\ndevice = 1\n",
        5,
        "no device 1",
    );
    refused(
        &format!("{HEAD}[[buffer]]\nname = 'data'\ntype = 'u8'\nlen = 4\n"),
        9,
        "already",
    );
    refused("[[buffer]]\nname = 'a'\nlen = 4\n", 1, "type");
}

#[test]
fn steps_do_one_thing_with_the_keys_that_belong_to_it() {
    step_refused("stream = 's'", 0, "does nothing");
    step_refused("free = 'data'\nread_back = 'data'", 1, "not both");
    step_refused(
        "free = 'data'\ngrid = [1]",
        2,
        "`grid` means nothing in a `free` step",
    );
    step_refused(
        "launch = 'k'\ngrid = [1]\nblock = [1]\nvalue = 1",
        4,
        "`value`",
    );
    step_refused("synchronize = 'device'\nstream = 's'", 2, "`stream`");
}

#[test]
fn launches() {
    step_refused("launch = 'k'\nblock = [1]", 1, "`grid`");
    step_refused("launch = 'k'\ngrid = [1]", 1, "`block`");
    step_refused("launch = 'k'\ngrid = []\nblock = [1]", 2, "one to three");
    step_refused(
        "launch = 'k'\ngrid = [1, 1, 1, 1]\nblock = [1]",
        2,
        "one to three",
    );
    step_refused("launch = 'k'\ngrid = [1]\nblock = [0]", 3, "at least 1");
    step_refused(
        "launch = 'k'\ngrid = [1]\nblock = [1]\nmodule = 'n'",
        4,
        "no module `n`; there are: m",
    );
    let args =
        |a: &str| format!("launch = 'k'\ngrid = [1]\nblock = [1]\nargs = [\n  'data',\n  {a},\n]");
    step_refused(&args("'dat'"), 6, "no buffer `dat`; there are: data");
    step_refused(&args("'data+x'"), 6, "byte offset");
    step_refused(&args("'data+17'"), 6, "outside the buffer's 16 bytes");
    step_refused(&args("3"), 6, "typed number");
    step_refused(&args("{ u32 = 1, i32 = 2 }"), 6, "typed number");
    step_refused(&args("{ q = 1 }"), 6, "not an element type");
    step_refused(&args("{ u8 = 256 }"), 6, "does not fit");
    step_refused(&args("{ u32 = 'x' }"), 6, "typed number");
    step_refused(&args("{ u32 = [] }"), 6, "its elements");
    step_refused(&args("{ u32 = [1, 'x'] }"), 6, "its elements");
    step_refused(&args("{ u8 = [1, 256] }"), 6, "256");
    step_refused(&args("{ u32 = 5, len = 2 }"), 6, "its elements");
    for len in ["0", "-1", "8192", "'x'"] {
        let arg = format!("{{ u32 = 'iota', len = {len} }}");
        step_refused(&args(&arg), 6, "its elements");
    }
    step_refused(&args("{ u32 = 'fill:x', len = 2 }"), 6, "x");
    step_refused(&args("{ u32 = '@f', len = 2 }"), 6, "from a file");
    refused(
        "[[step]]\nlaunch = 'k'\ngrid = [1]\nblock = [1]\n",
        2,
        "no [[module]]",
    );
    refused(
        "[[module]]\nptx=''\n[[module]]\nptx=''\n[[step]]\nlaunch = 'k'\n",
        6,
        "several modules",
    );
}

#[test]
fn events_and_streams_are_known_before_they_are_waited_for() {
    step_refused("wait = 'e0'\nstream = 's'", 1, "no step records");
    step_refused("synchronize = 's0'", 1, "neither `device`");
}

#[test]
fn graphs_have_nodes_with_edges_to_earlier_ones() {
    let graph = |node: &str| format!("{HEAD}[[graph]]\nname = 'g'\n[[graph.node]]\n{node}\n");
    for (node, line, part) in [
        ("empty = true\nafter = ['x']", 2, "no earlier node"),
        ("memset = 'data'\nstream = 's'", 2, "has no stream"),
        ("read_back = 'data'", 1, "no node of a graph"),
        ("after = []", 0, "does nothing"),
        ("graph = 'g'", 1, "no graph `g`"),
        (
            "name = 'a'\nempty = true\n[[graph.node]]\nname = 'a'\nempty = true",
            4,
            "already",
        ),
    ] {
        refused(&graph(node), line + 10, part);
    }
    let twice = format!("{}[[graph]]\nname = 'g'\n", graph("empty = true"));
    refused(&twice, 13, "no other has it");
    step_refused("graph = 'g'", 1, "no graph `g`");
    step_refused("end_capture = 'g'", 1, "no graph `g`");
    step_refused("memset = 'data'\nafter = ['a']", 2, "node of a graph");
    step_refused("empty = true", 0, "node of a graph");
    step_refused("forget = 'data'\nbytes = 4096", 2, "more than");
    step_refused("query = 's'", 1, "neither `device`");
}

#[test]
fn memory_steps() {
    step_refused("memset = 'dat'", 1, "no buffer");
    step_refused("memset = 'data'\nvalue = 256", 2, "one byte");
    step_refused("memset = 'data'\nvalue = 1.0", 2, "one byte");
    step_refused(
        "copy = { from = 'data', to = 'data+8', bytes = 9 }",
        1,
        "more than `data+8` has (8)",
    );
    step_refused("free = 'data'\n[[step]]\nfree = 'data'", 3, "freed before");
    step_refused("allocate = 'data'", 1, "allocated already");
}

#[test]
fn expectations() {
    let refuse =
        |text: &str, line: u32, part: &str| refused(&format!("{HEAD}{text}"), line + 7, part);
    refuse("[expect]\nschedules = 0\n", 2, "at least 1");
    refuse("[expect]\noutcome = 'crash'\n", 2, "crash");
    refuse(
        "[expect]\nraces = []\n[[expect.race]]\nkind = 'RAW'\n",
        2,
        "exclude each other",
    );
    refuse("[[expect.race]]\nkind = 'RAR'\n", 2, "RAR");
    refuse("[[expect.race]]\nkind = []\n", 2, "allows nothing");
    refuse("[[expect.race]]\nkind = 3\n", 2, "a word or a list");
    for wrong in ["'12'", "[]", "[9, 'x']", "-1", "4294967296"] {
        let text = format!("[[expect.race]]\nline = {wrong}\n");
        refuse(&text, 2, "the number of a line, or a list");
    }
    refuse("[[expect.race]]\nclass = 'races'\n", 2, "races");
    refuse(
        "[[expect.value]]\nbuffer = 'dat'\nvalues = [1]\n",
        2,
        "no buffer `dat`",
    );
    refuse(
        "[[expect.value]]\nbuffer = 'data'\nvalues = [1,2,3,4,5]\n",
        3,
        "has 4 elements",
    );
    refuse(
        "[[expect.value]]\nbuffer = 'data'\nvalues = [1,\n-1]\n",
        4,
        "does not fit",
    );
    refuse(
        "[[expect.value]]\nbuffer = 'data'\nvalues = [true]\n",
        3,
        "a number",
    );
}

#[test]
fn what_is_no_text_is_refused() {
    let path = std::env::temp_dir().join(format!("gsan-binary-{}.toml", std::process::id()));
    std::fs::write(&path, b"name = 'x'\n\xff\xfe").unwrap();
    let error = load(&path).unwrap_err();
    assert!(
        error.message.contains(":2:1: not UTF-8"),
        "{}",
        error.message
    );
    std::fs::remove_file(&path).unwrap();
    let error = load(&path).unwrap_err();
    assert!(
        error.message.starts_with("cannot read "),
        "{}",
        error.message
    );
    assert_eq!(error.code, 2);
}

#[test]
fn no_cut_of_a_file_crashes_the_parser() {
    for end in (0..WHOLE.len()).filter(|i| WHOLE.is_char_boundary(*i)) {
        let _ = parse(Path::new("s.toml"), &WHOLE[..end]);
    }
}

#[test]
fn classes_are_switched_off_by_name() {
    let with = |classes: &str, expected: &str| {
        format!(
            "[device]\nclasses_off = {classes}\n[expect]\n[[expect.race]]\nclass = {expected}\n"
        )
    };
    let parsed = parse(
        Path::new("s.toml"),
        &with("['stale-nc', 'race']", "['race', 'mixed-width']"),
    );
    assert_eq!(
        parsed.unwrap().classes_off,
        [RaceClass::StaleNc, RaceClass::Race]
    );
    refused(&with("['nc']", "'race'"), 2, "there is no class `nc`");
    refused(&with("'race'", "'race'"), 2, "sequence");
    refused(&with("['race']", "'race'"), 5, "switched off");
}
