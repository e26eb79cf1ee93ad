//! The classic GSan's shadow state, row by row (docs/parity.md): what an access leaves in the `reference` cell and in its
//! logical thread, seen through gsan-host's inspection. One logical thread per SM, one block per SM.

use gsan_device::layout::{ScalarClock, Scope, ShadowCell};
use gsan_host::report::Outcome;
use gsan_host::{
    Arg, Buffer, CellFormat, CellState, LaunchSpec, MemoryKind, Session, TensorSpec, TensorType,
};
use std::sync::{Mutex, MutexGuard, PoisonError};

static SIMULATOR: Mutex<()> = Mutex::new(());

const SEMANTICS: [&str; 4] = ["relaxed", "acquire", "release", "acq_rel"];
const SCOPES: [(&str, Scope); 3] = [
    ("cta", Scope::Cta),
    ("gpu", Scope::Gpu),
    ("sys", Scope::Sys),
];

/// Of the buffer: 40 rows of 40 words.
const BYTES: u64 = 40 * 40 * 4;

/// A simulated device of `sms` SMs in the classic shape, and a buffer of zeros.
struct Classic {
    session: Session,
    data: Buffer,
    _turn: MutexGuard<'static, ()>,
}

impl Classic {
    fn new(sms: u32) -> Classic {
        Classic::with(|config| config.sms = sms)
    }

    fn with(shape: impl FnOnce(&mut gsan_sim::Config)) -> Classic {
        let turn = SIMULATOR.lock().unwrap_or_else(PoisonError::into_inner);
        // Refused where an earlier test has made the same choice already.
        let _ = cuda_lazy::select(cuda_lazy::Choice::Sim);
        gsan_sim::driver::reset();
        let mut config = gsan_sim::Config::default();
        config.blocks_per_sm = 1;
        shape(&mut config);
        gsan_sim::driver::configure(config);
        let mut session = Session::builder()
            .slots_per_sm(Some(1))
            .cell(CellFormat::Reference)
            .build()
            .unwrap();
        let data = session.alloc("data", BYTES, MemoryKind::Device, 0).unwrap();
        Classic {
            session,
            data,
            _turn: turn,
        }
    }

    /// Runs `body` as a kernel of `blocks` blocks of one thread; `%p` is the buffer, `%block` the block.
    fn run(&mut self, blocks: u32, body: &str) {
        self.run_threads(blocks, 1, body);
    }

    fn run_threads(&mut self, blocks: u32, threads: u32, body: &str) {
        let text = format!(
            ".version 7.0\n.target sm_80\n.address_size 64\n\
             .visible .entry row(.param .u64 p)\n{{\n.reg .pred %yes;\n.reg .b32 %block, %old, %polls;\n.reg .b64 %p, %long;\n\
             ld.param.u64 %p, [p];\nmov.u32 %block, %ctaid.x;\n{body}\nEND:\nret;\n}}\n"
        );
        let module = self.session.load_module("row.ptx", &text).unwrap();
        let stream = self.session.default_stream(0).unwrap();
        let spec = LaunchSpec::new(module, "row", [blocks, 1, 1], [threads, 1, 1], stream);
        self.session
            .launch(&spec.arg(Arg::Pointer(self.data.address)))
            .unwrap();
    }

    /// Runs `body` as a kernel of one thread; `%map` is a map of a tensor of 35 rows of 37 elements, whose rows are 40 apart, with
    /// boxes of `rows` by 32, `%at` the block's shared memory, `%bar` an mbarrier.
    fn run_with_map(&mut self, ty: TensorType, bytes: u64, rows: u32, body: &str) {
        let text = format!(
            ".version 8.6\n.target sm_100a\n.address_size 64\n\
             .visible .entry row(.param .align 64 .b8 map_of[128])\n{{\n.reg .pred %yes;\n.reg .b32 %at, %bar;\n.reg .b64 %map, %state;\n\
             .shared .align 128 .b8 tile[8192];\n.shared .align 8 .b64 full;\n\
             mov.b64 %map, map_of;\ncvta.param.u64 %map, %map;\nmov.u32 %at, tile;\nmov.u32 %bar, full;\n{body}\nret;\n}}\n"
        );
        let module = self.session.load_module("row.ptx", &text).unwrap();
        let stream = self.session.default_stream(0).unwrap();
        let tensor = TensorSpec {
            ty,
            extents: vec![37, 35],
            strides: vec![40 * bytes],
            boxes: vec![32, rows],
            steps: Vec::new(),
            swizzle: 0,
            fill_nan: false,
            windows: None,
        };
        let map = self.session.tensor_map(self.data.address, &tensor).unwrap();
        let spec = LaunchSpec::new(module, "row", [1, 1, 1], [1, 1, 1], stream);
        self.session.launch(&spec.arg(map)).unwrap();
    }

    fn cell(&mut self, word: u64) -> ShadowCell {
        let address = self.data.address + 4 * word;
        match self.session.shadow_cell(address).unwrap().unwrap() {
            CellState::Reference(cell) => cell,
            other => panic!("not the format that was asked for: {other:?}"),
        }
    }

    fn epoch(&mut self, thread: u32) -> u32 {
        let thread = self.session.thread_state(thread).unwrap().unwrap();
        thread.state.epoch
    }

    /// Whether exactly those words of the 40 by 40 have been touched, by a write or by a read.
    fn touched(mut self, write: bool, expected: &dyn Fn(u64, u64) -> bool) {
        for word in 0..1600 {
            let (row, column) = (word / 40, word % 40);
            let cell = self.cell(word);
            let found = (!readers(cell).is_empty(), !cell.write.is_empty());
            let touched = expected(row, column);
            assert_eq!(
                found,
                (touched && !write, touched && write),
                "row {row}, column {column}"
            );
        }
        self.silent();
    }

    fn silent(self) {
        let report = self.session.finish().unwrap();
        assert!(report.races.is_empty(), "{:?}", report.races);
    }
}

fn readers(cell: ShadowCell) -> Vec<ScalarClock> {
    let reads = cell.reads.into_iter().map(ScalarClock::plain);
    reads.filter(|r| !r.is_empty()).collect()
}

#[test]
fn load_store_updates_shadow() {
    let mut classic = Classic::new(1);
    classic.run(1, "st.global.u32 [%p], 1;");
    let stored = classic.cell(0);
    let write = stored.write;
    assert_eq!(
        (write.thread(), write.scope(), write.is_release()),
        (0, Scope::None, false)
    );
    assert!(readers(stored).is_empty() && stored.num_reads == 0 && stored.lock == 0);
    classic.run(1, "ld.global.u32 %old, [%p];");
    let loaded = classic.cell(0);
    assert_eq!(loaded.write, write);
    assert_eq!(
        readers(loaded),
        [ScalarClock::access(write.epoch() + 1, 0, Scope::None)]
    );
    assert_eq!(loaded.num_reads, 1);
    // Its neighbour has not been touched.
    assert_eq!(classic.cell(1), ShadowCell::default());
    classic.silent();
}

#[test]
fn a_plain_write_keeps_readers_and_their_count() {
    let mut classic = Classic::new(1);
    classic.run(1, "ld.global.u32 %old, [%p];\nst.global.u32 [%p], 1;");
    let cell = classic.cell(0);
    assert_eq!(readers(cell), [cell.write]);
    assert_eq!(cell.num_reads, 1);
    classic.silent();
}

/// Atomic add, and a compare-and-swap that matches: four semantics, three scopes.
#[test]
fn atomics_that_write_update_shadow() {
    for operation in ["add.u32 %old, [%p], 1", "cas.b32 %old, [%p], 0, 1"] {
        for semantics in SEMANTICS {
            for (name, scope) in SCOPES {
                let mut classic = Classic::new(1);
                classic.run(1, &format!("atom.global.{semantics}.{name}.{operation};"));
                let what = format!("{semantics}.{name}.{operation}");
                let cell = classic.cell(0);
                let reads = readers(cell);
                assert_eq!((reads.len(), cell.num_reads), (1, 1), "{what}");
                assert_eq!((reads[0].thread(), reads[0].scope()), (0, scope), "{what}");
                assert_eq!(
                    (cell.write.thread(), cell.write.scope()),
                    (0, scope),
                    "{what}"
                );
                // A block is one logical thread: nobody could acquire what a release at block scope published.
                let releases = ["release", "acq_rel"].contains(&semantics) && scope > Scope::Cta;
                assert_eq!(cell.write.is_release(), releases, "{what}");
                let epoch = classic.epoch(0);
                if releases {
                    assert_eq!(epoch, reads[0].epoch() + 1, "{what}");
                } else {
                    assert_eq!((cell.write, epoch), (reads[0], reads[0].epoch()), "{what}");
                }
                classic.silent();
            }
        }
    }
}

#[test]
fn a_failed_compare_and_swap_only_records_a_read() {
    for semantics in SEMANTICS {
        for (name, scope) in SCOPES {
            let mut classic = Classic::new(1);
            classic.run(
                1,
                &format!("atom.global.{semantics}.{name}.cas.b32 %old, [%p], 7, 8;"),
            );
            let what = format!("{semantics}.{name}");
            let cell = classic.cell(0);
            let reads = readers(cell);
            assert_eq!((reads.len(), cell.num_reads), (1, 1), "{what}");
            assert_eq!((reads[0].thread(), reads[0].scope()), (0, scope), "{what}");
            if ["relaxed", "acquire"].contains(&semantics) || scope == Scope::Cta {
                assert!(cell.write.is_empty(), "{what}");
            } // Else the release's offer stands there, which names no write: the next row shows that.
            let bytes = classic.session.contents(classic.data.address, 4).unwrap();
            assert_eq!(bytes, [0; 4]);
            classic.silent();
        }
    }
}

/// A release compare-and-swap that fails has written nothing: a plain load of another block, unordered, does not race.
#[test]
fn a_failed_release_compare_and_swap_is_no_write() {
    let mut classic = Classic::new(2);
    classic.run(
        2,
        "setp.eq.u32 %yes, %block, 0;
         @!%yes bra OTHER;
         atom.global.release.gpu.cas.b32 %old, [%p], 7, 8;
         bra END;
         OTHER:
         ld.global.u32 %old, [%p];",
    );
    classic.silent();
}

/// The classic tool's poll that has matched is a strong load here: PTX has no poll instruction.
#[test]
fn a_poll_only_records_reads() {
    for (width, register, words) in [("u16", "%h", 1), ("u32", "%old", 1), ("u64", "%long", 2)] {
        for semantics in ["relaxed", "acquire"] {
            for (name, scope) in SCOPES {
                let mut classic = Classic::new(1);
                classic.run(
                    1,
                    &format!(
                        ".reg .b16 %h;\nld.{semantics}.{name}.global.{width} {register}, [%p];"
                    ),
                );
                for word in 0..2 {
                    let cell = classic.cell(word);
                    let reads = readers(cell);
                    assert!(cell.write.is_empty());
                    if word < words {
                        assert_eq!((reads.len(), cell.num_reads), (1, 1));
                        assert_eq!((reads[0].thread(), reads[0].scope()), (0, scope));
                    } else {
                        assert_eq!(cell, ShadowCell::default());
                    }
                }
                classic.silent();
            }
        }
    }
}

/// Four readers have a slot each; the fifth takes one of them; a reader that comes again takes its own.
#[test]
fn readers_are_sampled() {
    let mut classic = Classic::new(4);
    for launch in 1..=3 {
        classic.run(4, "ld.global.u32 %old, [%p];");
        let cell = classic.cell(0);
        let mut threads: Vec<u32> = readers(cell).iter().map(|r| r.thread()).collect();
        threads.sort();
        assert_eq!((threads, cell.num_reads), (vec![0, 1, 2, 3], 4 * launch));
    }
    classic.silent();
    let mut classic = Classic::new(5);
    classic.run(5, "ld.global.u32 %old, [%p];");
    let cell = classic.cell(0);
    let mut threads: Vec<u32> = readers(cell).iter().map(|r| r.thread()).collect();
    threads.sort();
    threads.dedup();
    assert_eq!((threads.len(), cell.num_reads), (4, 5));
    classic.silent();
}

#[test]
fn the_count_of_reads_saturates() {
    let mut classic = Classic::new(1);
    classic.run(
        1,
        "mov.u32 %polls, 65600;
         MORE:
         ld.relaxed.gpu.global.u32 %old, [%p];
         sub.u32 %polls, %polls, 1;
         setp.ne.u32 %yes, %polls, 0;
         @%yes bra MORE;",
    );
    let cell = classic.cell(0);
    assert_eq!((cell.num_reads, readers(cell).len()), (u16::MAX, 1));
    classic.silent();
}

/// Waits, not for ever, until the word at byte `at` is at least `value`.
fn wait(at: u32, value: u32, label: &str) -> String {
    format!(
        "mov.u32 %polls, 1000;
         {label}:
         ld.acquire.gpu.global.u32 %old, [%p+{at}];
         setp.ge.u32 %yes, %old, {value};
         @%yes bra {label}_SEEN;
         sub.u32 %polls, %polls, 1;
         setp.ne.u32 %yes, %polls, 0;
         @%yes bra {label};
         bra END;
         {label}_SEEN:"
    )
}

/// The flag's clock is a release, and the consumer's clock covers the payload's write.
#[test]
fn release_and_acquire_move_the_clock() {
    let mut classic = Classic::new(2);
    classic.run(
        2,
        &format!(
            "setp.eq.u32 %yes, %block, 1;
             @%yes bra CONSUMER;
             st.global.u32 [%p], 1;
             atom.global.release.gpu.exch.b32 %old, [%p+128], 1;
             bra END;
             CONSUMER:
             {}
             ld.global.u32 %old, [%p];",
            wait(128, 1, "W")
        ),
    );
    let (payload, flag) = (classic.cell(0), classic.cell(32));
    assert!(flag.write.is_release() && flag.write.scope() == Scope::Gpu);
    let reader = readers(payload)[0].thread();
    let writer = payload.write.thread();
    assert_ne!(reader, writer);
    let consumer = classic.session.thread_state(reader).unwrap().unwrap();
    assert!(consumer.clock[writer as usize] >= payload.write.epoch());
    classic.silent();
}

/// Three writers release on one counter; who acquires it knows all three.
#[test]
fn a_chain_of_release_rmws_moves_every_writers_clock() {
    let mut classic = Classic::new(4);
    classic.run(
        4,
        &format!(
            "setp.eq.u32 %yes, %block, 3;
             @%yes bra CONSUMER;
             mul.wide.u32 %long, %block, 4;
             add.u64 %long, %p, %long;
             st.global.u32 [%long], 1;
             atom.global.release.gpu.add.u32 %old, [%p+128], 1;
             bra END;
             CONSUMER:
             {}
             ld.global.u32 %old, [%p];
             ld.global.u32 %old, [%p+4];
             ld.global.u32 %old, [%p+8];",
            wait(128, 3, "W")
        ),
    );
    let reader = readers(classic.cell(0))[0].thread();
    let consumer = classic.session.thread_state(reader).unwrap().unwrap();
    let mut writers = Vec::new();
    for word in 0..3 {
        let write = classic.cell(word).write;
        assert!(consumer.clock[write.thread() as usize] >= write.epoch());
        writers.push(write.thread());
    }
    writers.sort();
    writers.dedup();
    assert_eq!(writers.len(), 3);
    classic.silent();
}

/// A logical thread is an SM: its epochs go on from launch to launch.
#[test]
fn a_logical_thread_outlives_its_blocks() {
    let mut classic = Classic::new(1);
    let mut last = 0;
    for _ in 0..3 {
        classic.run(1, "st.global.u32 [%p], 1;");
        let write = classic.cell(0).write;
        assert_eq!((write.thread(), write.epoch() > last), (0, true));
        last = write.epoch();
    }
    classic.silent();
}

/// An arrival at another block's mbarrier is a release, which closes an epoch. The reference cell has 16 bits for them: where they
/// end, a clock counts as ordered (class `saturated`); nothing aborts, and nothing is reported.
#[test]
fn more_mbarrier_phases_than_epochs() {
    let scenario = gsan_tests::scenario::path("parity/mbarrier_phases");
    let text = gsan_tests::scenario::read(&scenario);
    let text = text["module"][0]["ptx"].as_str().unwrap();
    let more = text.replace("%round, 1000;", "%round, 65600;");
    assert_ne!(more, text);
    let mut classic = Classic::with(|config| {
        config.sms = 2;
        config.step_budget = 4_000_000_000;
    });
    let module = classic.session.load_module("row.ptx", &more).unwrap();
    let stream = classic.session.default_stream(0).unwrap();
    let mut spec = LaunchSpec::new(module, "row", [2, 1, 1], [1, 1, 1], stream);
    spec.cluster = Some([2, 1, 1]);
    for at in [0, 64, 128] {
        spec = spec.arg(Arg::Pointer(classic.data.address + at));
    }
    classic.session.launch(&spec).unwrap();
    // Block 1 arrives, block 0 waits.
    let epochs = [0, 1].map(|thread| classic.epoch(thread));
    assert!(epochs[0] < 10 && epochs[1] < 10, "{epochs:?}");
    let marker = classic.cell(1).write;
    assert_eq!(marker.thread(), 1);
    assert!(marker.epoch() < 10, "{marker:?}");
    let report = classic.session.finish().unwrap();
    assert_eq!(
        (report.outcome, report.races.len()),
        (Outcome::Completed, 0)
    );
}

/// `cp.async` by 128 threads, of which 5 to 116 copy: their words are read, and nothing else is touched.
#[test]
fn asynchronous_copies_read_what_they_copy() {
    let mut classic = Classic::new(1);
    classic.run_threads(
        1,
        128,
        ".shared .align 4 .b8 tile[512];\n.reg .b32 %at;\n.reg .pred %no;\n\
         mov.u32 %old, %tid.x;\nmul.wide.u32 %long, %old, 4;\nadd.u64 %p, %p, %long;\n\
         shl.b32 %at, %old, 2;\nmov.u32 %polls, tile;\nadd.u32 %at, %at, %polls;\n\
         setp.ge.u32 %yes, %old, 5;\nsetp.ge.u32 %no, %old, 117;\n@!%yes bra END;\n@%no bra END;\n\
         cp.async.ca.shared.global [%at], [%p], 4;\ncp.async.commit_group;\ncp.async.wait_group 0;",
    );
    for word in 0..160 {
        let cell = classic.cell(word);
        if (5..117).contains(&word) {
            assert_eq!((readers(cell).len(), cell.num_reads), (1, 1), "{word}");
            assert!(cell.write.is_empty(), "{word}");
        } else {
            assert_eq!(cell, ShadowCell::default(), "{word}");
        }
    }
    classic.silent();
}

const LOAD_BOX: &str = "mbarrier.init.shared::cta.b64 [%bar], 1;\nmbarrier.arrive.expect_tx.shared::cta.b64 %state, [%bar], 4096;\n\
    cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [%at], [%map, {X, Y}], [%bar];\n\
    AGAIN:\nmbarrier.try_wait.parity.shared::cta.b64 %yes, [%bar], 0;\n@!%yes bra AGAIN;";
const STORE_BOX: &str = "cp.async.bulk.tensor.2d.global.shared::cta.tile.bulk_group [%map, {X, Y}], [%at];\n\
    cp.async.bulk.commit_group;\ncp.async.bulk.wait_group 0;";

/// A box of 32 by 32 at three corners of a tensor of 35 by 37 in rows of 40: the cells of its elements inside the tensor are read,
/// or written, and no others. So are single rows, gathered and scattered.
#[test]
fn tensor_copies_touch_what_is_inside() {
    for (x, y) in [(4, 8), (28, 8), (4, 32)] {
        for (body, write) in [(LOAD_BOX, false), (STORE_BOX, true)] {
            let body = body
                .replace('X', &x.to_string())
                .replace('Y', &y.to_string());
            let mut classic = Classic::new(1);
            classic.run_with_map(TensorType::U32, 4, 32, &body);
            let rows = y..35.min(y + 32);
            classic.touched(write, &|row, column| {
                rows.contains(&row) && (x..37.min(x + 32)).contains(&column)
            });
        }
    }
    // Two of these rows are outside.
    let rows = [1, 3, 34, 36];
    let gather = LOAD_BOX
        .replace("{X, Y}", "{8, 1, 3, 34, 36}")
        .replace("4096", "512")
        .replace("global.tile.", "global.tile::gather4.");
    let scatter = STORE_BOX
        .replace("{X, Y}", "{8, 1, 3, 34, 36}")
        .replace("cta.tile.", "cta.tile::scatter4.");
    for (body, write) in [(gather, false), (scatter, true)] {
        let mut classic = Classic::new(1);
        classic.run_with_map(TensorType::U32, 4, 1, &body);
        classic.touched(write, &|row, column| {
            row < 35 && rows.contains(&row) && (8..37).contains(&column)
        });
    }
}

/// An addition through a tensor map is one relaxed read-modify-write at gpu scope per element.
#[test]
fn tensor_reductions_are_relaxed_atomics() {
    for (ty, bytes) in [
        (TensorType::I32, 4),
        (TensorType::U64, 8),
        (TensorType::F16, 2),
        (TensorType::Bf16, 2),
    ] {
        let mut classic = Classic::new(1);
        let body = STORE_BOX
            .replace("cp.async.bulk.tensor", "cp.reduce.async.bulk.tensor")
            .replace("cta.tile.", "cta.add.tile.")
            .replace("{X, Y}", "{0, 0}");
        classic.run_with_map(ty, bytes, 1, &body);
        for word in 0..80 {
            let cell = classic.cell(word);
            if word >= 8 * bytes {
                assert_eq!(cell, ShadowCell::default(), "{word}");
                continue;
            }
            let reads = readers(cell);
            // Two elements of two bytes share a cell.
            assert!(
                reads.len() == 1 && (1..=2).contains(&cell.num_reads),
                "{word}"
            );
            assert_eq!(
                (reads[0].scope(), cell.write.scope()),
                (Scope::Gpu, Scope::Gpu),
                "{word}"
            );
            assert!(!cell.write.is_release(), "{word}");
        }
        classic.silent();
    }
}
