use super::*;
use crate::render::inspect_json;
use crate::render::samples::{racy_report, unknown_side};
use anstream::adapter::strip_str;
use gsan_host::CellFormat;
use gsan_host::inspection::SnapshotView;
use gsan_host::report::{Access, Side};
use serde_json::{Value, json};

/// One word with a store and an atomic, its empty neighbours, a thread, a device.
fn sample() -> Inspected {
    let report = racy_report();
    let race = &report.races[0];
    let word = |offset: u64| WordView {
        address: 0x1000 + offset,
        buffer: Some("data".into()),
        offset: Some(offset),
        format: CellFormat::Wide,
        accesses: vec![],
        release: None,
        reads: 0,
        dropped: false,
    };
    let store = AccessView {
        thread: 5,
        epoch: Some(2),
        side: race.current.clone(),
        bytes: 0b0011,
        element_size: Some(2),
        non_coherent: true,
        observed: false,
    };
    let atomic = AccessView {
        thread: 6,
        epoch: None,
        side: Side {
            access: Some(Access::Store),
            scope: Some(Scope::Gpu),
            ..unknown_side()
        },
        bytes: 15,
        element_size: None,
        non_coherent: false,
        observed: true,
    };
    let touched = WordView {
        accesses: vec![store, atomic],
        release: Some(ReleaseView {
            thread: 5,
            token: 3,
            scope: Scope::Sys,
            snapshot: Some(SnapshotView {
                clock: vec![(0, 4), (5, 2)],
                warps: vec![WarpClock {
                    thread: 5,
                    warp: 1,
                    epoch: 3,
                }],
                joined: true,
            }),
        }),
        reads: 1,
        dropped: true,
        ..word(8)
    };
    let tenant = |start_epoch, launch, kernel: &str, block| TenantView {
        start_epoch,
        launch,
        kernel: Some(kernel.into()),
        block,
        shared: false,
    };
    // The second is what an earlier tenant left.
    let mut warps = [0; 32];
    warps[..3].copy_from_slice(&[8, 3, 0]);
    let mut state = gsan_device::layout::ThreadState {
        epoch: 9,
        start_epoch: 7,
        clock_mode: 2,
        ring_head: 3,
        tenants: 70,
        intra_block: 1,
        warps,
        ..Default::default()
    };
    state.pending_warps[2] = 9;
    state.reach[2] = 8;
    state.pairs[2][0] = 8;
    state.fence_tokens[2] = 2;
    state.barriers[3] = 8;
    state.barrier_rows[3][0] = 7;
    state.barrier_rows[3][2] = 8;
    let thread = ThreadView {
        id: 5,
        device: 0,
        sm: 1,
        slot: 1,
        state,
        clock: vec![(0, 4), (5, 9)],
        warps: vec![],
        tenants: vec![
            tenant(7, Some(1), "_Z8consumerPjS_", Some([1, 0, 0])),
            tenant(6, None, "memset", None),
        ],
    };
    Inspected {
        global: vec![Default::default()],
        words: vec![WordsOf {
            name: "data".into(),
            words: vec![word(0), word(4), touched, word(12)],
        }],
        threads: vec![thread],
        touched: vec![],
    }
}

fn plain(inspected: &Inspected) -> String {
    let text = text(inspected, &racy_report(), &Sources::new());
    strip_str(&text).to_string()
}

#[test]
fn a_word_is_told_with_all_that_its_cell_keeps() {
    let text = plain(&sample());
    for part in [
        "`data`+0 to `data`+4: nothing recorded (2 words)\n",
        "`data`+8 (0x1008, wide cell): 1 read counted; an access was dropped for want of room\n",
        "* weak load (non-coherent), bytes 0-1, logical thread 5 at epoch 2\n",
        "by thread (3,0,0) of block (1,0,0) of `consumer(unsigned int*, unsigned int*)`, launch 1\n",
        "at handoff.cu:12:13, PTX line 88\n",
        "* strong write at .gpu, bytes 0-3, logical thread 6 at epoch forgotten, observed\n",
        "by a block that is not known any more\n",
        "* to acquire at .sys: token 3 of logical thread 5\n",
        "its clock: 0:4, 5:2; of warp 1 of 5 alone up to 3; clocks of other releases were joined in\n",
        "`data`+12: nothing recorded (1 word)\n",
    ] {
        assert!(text.contains(part), "{part}\n{text}");
    }
}

#[test]
fn a_thread_is_told_with_its_clock_and_tenants() {
    let text = plain(&sample());
    for part in [
        "logical thread 5 (device 0, SM 1, slot 1): epoch 9, its latest tenant's began at 7\n",
        "clock (its own): 0:4, 5:9\n",
        "  warp 0 knows all of its block's others up to 8\n",
        "  warp 2 knows up to 9 once an acquire fence follows, of single warps 0:8, some of them up to 8; its last release fence is in \
         token 2\n",
        "  barrier 3: the last arrival closed epoch 8; who arrived with a count knew of warps 0:7, 2:8\n",
        "from epoch 7: block (1,0,0) of `consumer(unsigned int*, unsigned int*)`, launch 1\n",
        "from epoch 6: the host's memset\n",
        "and 68 tenants before that are forgotten\n",
    ] {
        assert!(text.contains(part), "{part}\n{text}");
    }
    assert!(
        text.trim_end()
            .lines()
            .last()
            .unwrap()
            .contains("1 race found in 2 launches")
    );
}

#[test]
fn the_overview_is_one_line_per_thread_and_buffer() {
    let mut overview = sample();
    overview.words.clear();
    overview.threads = vec![overview.threads[0].clone(); 66];
    overview.touched.push(Touched {
        name: "data".into(),
        words: 64,
        touched: 3,
    });
    let text = plain(&overview);
    assert!(text.contains("`data`: 3 of 64 words touched\n"), "{text}");
    assert!(text.contains("and 2 more threads\n"), "{text}");
    assert!(
        text.contains("epoch 9, 70 tenants; the latest block (1,0,0)"),
        "{text}"
    );
}

#[test]
fn json_has_the_same_in_fields() {
    let value: Value =
        serde_json::from_str(&inspect_json::render(&sample(), &racy_report())).unwrap();
    assert_eq!(
        (&value["schema_version"], &value["outcome"], &value["races"]),
        (&json!(1), &json!("completed"), &json!(1))
    );
    let word = &value["words"][2];
    assert_eq!(
        (&word["address"], &word["offset"], &word["dropped"]),
        (&json!("0x1008"), &json!(8), &json!(true))
    );
    let access = &word["accesses"][0];
    assert_eq!(access["logical_thread"], 5);
    assert_eq!(access["bytes"], json!([0, 1]));
    assert_eq!(access["thread"], json!([3, 0, 0]));
    assert_eq!(access["site"]["line"], 12);
    assert_eq!(word["accesses"][1]["epoch"], Value::Null);
    assert_eq!(
        word["release"]["snapshot"]["clock"],
        json!([{ "thread": 0, "epoch": 4 }, { "thread": 5, "epoch": 2 }])
    );
    assert_eq!(value["words"][0]["release"], Value::Null);
    let thread = &value["threads"][0];
    assert_eq!(
        (&thread["epoch"], &thread["own_clock"]),
        (&json!(9), &json!(true))
    );
    assert_eq!(thread["tenants"][1]["kernel"], "memset");
    let block = &thread["in_block"];
    assert_eq!(
        block["warps"][1],
        json!({ "warp": 2, "knows_block": null, "after_fence": 9, "reach": 8, "pairs": [{ "warp": 0, "epoch": 8 }],
                "fence_token": 2 })
    );
    assert_eq!(
        block["barriers"],
        json!([{ "barrier": 3, "closed": 8, "whole_block": null,
                 "knew": [{ "warp": 0, "epoch": 7 }, { "warp": 2, "epoch": 8 }] }])
    );
    assert_eq!(value["global"][0]["num_threads"], 0);
}

#[test]
fn bytes_are_named_as_ranges_where_they_are_some() {
    for (mask, words) in [
        (0, "no byte"),
        (0b0100, "byte 2"),
        (0b1110, "bytes 1-3"),
        (0b1001, "bytes 0,3"),
    ] {
        assert_eq!(bytes(mask), words);
    }
}

#[test]
fn names_from_outside_are_cleaned() {
    let mut wild = sample();
    wild.words[0].words[2].buffer = Some("x\u{1b}]0;y\u{7}".into());
    wild.threads[0].tenants[0].kernel = Some("k\u{1b}[2J".into());
    let text = plain(&wild);
    assert!(!text.contains(['\u{1b}', '\u{7}']), "{text}");
}
