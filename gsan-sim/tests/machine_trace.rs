//! What a traced run records.

mod common;

use common::{Bench, seeded};
use gsan_sim::machine::TraceStep;

/// Lines count from the three of the header.
const PTX: &str = ".func helper(.param .b64 p) {
.reg .b64 %a; ld.param.b64 %a, [p]; st.global.u32 [%a], 9; ret;
}
.visible .entry k(.param .u64 p) {
.reg .b64 %a; .reg .b32 %r; .reg .pred %p;
ld.param.u64 %a, [p];
mov.u32 %r, %tid.x;
setp.ne.u32 %p, %r, 32;
@%p bra other;
st.global.u32 [%a], 1;
barrier.sync 0;
exit;
other:
barrier.sync 0;
setp.ne.u32 %p, %r, 0;
@%p exit;
fence.acq_rel.gpu;
atom.global.add.u32 %r, [%a], 1;
{ .param .b64 q; st.param.b64 [q], %a; call helper, (q); }
exit;
}
";

fn trace(on: bool) -> Vec<TraceStep> {
    let mut config = seeded(3);
    config.trace = on;
    let mut b = Bench::with(config, PTX);
    let word = b.words(&[0]);
    b.start("k", [1, 1, 1], [64, 1, 1], 0, &[word]);
    b.finish().unwrap();
    assert_eq!(b.read(word, 1), [9]);
    b.machine.take_trace()
}

#[test]
fn the_kernels_own_memory_operations_are_recorded_in_order() {
    let steps = trace(true);
    let place = |wanted: u32, thread: u32| {
        steps.iter().position(|s| {
            matches!(*s, TraceStep::Instruction { line, warp, lanes, .. }
                if line == wanted && warp == thread / 32 && lanes >> (thread % 32) & 1 == 1)
        })
    };
    let complete = (steps.iter()).position(|s| matches!(s, TraceStep::Barrier { id: 0, .. }));
    let order = [
        place(13, 32),
        place(14, 32),
        complete,
        place(20, 0),
        place(21, 0),
    ];
    assert!(order.is_sorted() && order[0].is_some(), "{steps:?}");
    assert!(matches!(&steps[0], TraceStep::Begin { kernel, .. } if kernel == "k"));
    assert!(matches!(steps.last(), Some(TraceStep::End { .. })));
    // Neither parameters nor what a function does.
    let lines: Vec<u32> = (steps.iter())
        .filter_map(|s| match s {
            TraceStep::Instruction { line, .. } => Some(*line),
            _ => None,
        })
        .collect();
    assert!(
        lines.iter().all(|l| [13, 14, 17, 20, 21].contains(l)),
        "{lines:?}"
    );
}

#[test]
fn nothing_is_recorded_unless_asked_for() {
    assert_eq!(trace(false), []);
}

/// An instruction that the machine carries out in parts is one step.
#[test]
fn an_arrival_for_copies_is_recorded_once() {
    for form in ["", ".noinc"] {
        let mut config = seeded(1);
        config.trace = true;
        let text = format!(
            ".visible .entry k() {{ .reg .b32 %b; .shared .align 8 .b8 bar[8]; mov.u32 %b, bar;
mbarrier.init.shared.b64 [%b], 2;
cp.async.mbarrier.arrive{form}.shared.b64 [%b];
exit; }}"
        );
        let mut b = Bench::with(config, &text);
        b.start("k", [1, 1, 1], [1, 1, 1], 0, &[]);
        b.finish().unwrap();
        let steps = b.machine.take_trace();
        let at = |s: &&TraceStep| matches!(s, TraceStep::Instruction { line: 6, .. });
        assert_eq!(steps.iter().filter(at).count(), 1, "{form}: {steps:?}");
    }
}
