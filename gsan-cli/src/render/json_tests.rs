use super::*;
use crate::render::json_read::read;
use crate::render::samples::*;
use gsan_host::report::RaceClass;
use serde_json::{Value, json};

#[test]
fn the_document_has_the_specified_fields() {
    let value: Value = serde_json::from_str(&render(&racy_report(), &[])).unwrap();
    assert_eq!(value["schema_version"], 1);
    assert_eq!(value["outcome"], "completed");
    assert_eq!(value["message"], Value::Null);
    assert_eq!(value["seed"], 7);
    assert_eq!(value["schedules"], 16);
    assert_eq!(
        value["device"],
        json!({ "kind": "sim", "name": "simulated GPU", "sms": 4 })
    );
    assert_eq!(
        value["launches"][0],
        json!({ "id": 0, "kernel": "producer", "module": "handoff.ptx", "grid": [1,1,1], "block": [32,1,1], "stream": "s0" })
    );
    let race = &value["races"][0];
    assert_eq!(race["kind"], "RAW");
    assert_eq!(race["class"], "missing-acquire");
    assert_eq!(race["count"], 31);
    assert_eq!(race["address"], "0x7f0000000010");
    assert_eq!(
        (&race["buffer"], &race["offset"], &race["size"]),
        (&json!("data"), &json!(16), &json!(4))
    );
    let current = &race["current"];
    assert_eq!(current["launch"], 1);
    assert_eq!(current["block"], json!([1, 0, 0]));
    assert_eq!(current["thread"], json!([3, 0, 0]));
    assert_eq!(
        (&current["access"], &current["order"], &current["scope"]),
        (&json!("load"), &json!("weak"), &Value::Null)
    );
    assert_eq!(current["site"]["file"], "handoff.cu");
    assert_eq!(
        (&current["site"]["line"], &current["site"]["column"]),
        (&json!(12), &json!(13))
    );
    assert_eq!(
        (&current["site"]["ptx_line"], &current["site"]["function"]),
        (&json!(88), &json!("_Z8consumerPjS_"))
    );
    assert_eq!(current["warp"], 0);
    assert!(
        race["help"]
            .as_str()
            .unwrap()
            .contains("the acquire is not")
    );
    assert_eq!(race["prior"]["block"], Value::Null);
    assert_eq!(race["prior"]["site"], Value::Null);
    assert_eq!(
        value["stats"],
        json!({ "instrumented_sites": 12,
                "instrumentation": { "barriers": 2, "barrier_hooks": 1, "block_syncs": 0, "cluster_syncs": 5,
                    "left_out": { "shared": 3, "local": 0, "parameter": 0, "constant": 0, "private_generic": 0, "repeated": 4,
                        "non_coherent": 6 } },
                "checked_accesses": 4096, "unchecked_accesses": 0,
            "misses": { "shared-slot": 0, "slot-reuse": 0, "ring-wrap": 0, "saturated": 0, "early-copy": 0,
            "unknown-map": 0, "unknown-multicast": 0 }, "dropped_records": 0 })
    );
    assert_eq!(value["unsupported"], json!([]));
}

#[test]
fn what_is_not_known_is_null() {
    let value: Value = serde_json::from_str(&render(&broken_report(), &[])).unwrap();
    assert_eq!(value["outcome"], "fault");
    assert_eq!(value["device"]["kind"], "cuda");
    assert_eq!(value["seed"], Value::Null);
    assert_eq!(value["stats"]["checked_accesses"], Value::Null);
    let race = &value["races"][0];
    assert_eq!(
        (&race["buffer"], &race["offset"]),
        (&Value::Null, &Value::Null)
    );
    for side in ["current", "prior"] {
        let fields = race[side].as_object().unwrap();
        assert_eq!(fields.len(), 9);
        assert!(fields.values().all(Value::is_null));
    }
    assert_eq!(value["unsupported"][0]["ptx_line"], 40);
    let partly = |n: usize| &value["unsupported"][n]["partly"];
    assert_eq!((partly(0), partly(1)), (&json!(false), &json!(true)));
}

#[test]
fn reading_is_the_inverse_of_writing() {
    let printed = [Printed {
        buffer: "out".into(),
        ty: "u64".into(),
        values: vec!["18446744073709551615".into()],
    }];
    let mut hidden = racy_report();
    hidden.hide(&[RaceClass::MissingAcquire]);
    let past = past_end_report();
    let flag = racy_report_with_flag();
    for report in [
        clean_report(),
        racy_report(),
        broken_report(),
        hidden,
        past,
        flag,
    ] {
        let text = render(&report, &printed);
        let (read_back, read_printed) = read(&text).unwrap();
        assert_eq!(format!("{read_back:?}"), format!("{report:?}"));
        assert_eq!(read_printed, printed);
    }
}

#[test]
fn fields_of_later_writers_are_ignored_and_missing_ones_named() {
    let mut value: Value = serde_json::from_str(&render(&racy_report(), &[])).unwrap();
    value["new"] = json!({ "x": 1 });
    value["races"][0]["current"]["site"]["new"] = json!(2);
    value["stats"]["misses"]["new-class"] = json!(3);
    assert!(read(&value.to_string()).is_ok());
    value.as_object_mut().unwrap().remove("outcome");
    assert!(
        read(&value.to_string())
            .unwrap_err()
            .what
            .contains("outcome")
    );
}

#[test]
fn what_is_no_report_is_refused_with_a_reason() {
    for (text, reason) in [
        ("", "EOF"),
        ("{", "EOF"),
        ("[]", "invalid length"),
        ("{}", "no schema_version"),
        ("{\"schema_version\": 2}", "schema_version 2"),
        ("{\"schema_version\": 1}", "missing field"),
        ("\u{0}\u{1}", "expected value"),
    ] {
        let error = read(text).unwrap_err();
        assert!(error.what.contains(reason), "{text:?}: {error}");
    }
    let good = render(&racy_report(), &[]);
    for (from, to) in [
        ("\"RAW\"", "\"XXX\""),
        ("0x7f0000000010", "7f"),
        ("\"sim\"", "\"x\""),
        ("\"weak\"", "\"strong\""),
    ] {
        assert!(read(&good.replace(from, to)).is_err(), "{to}");
    }
}
