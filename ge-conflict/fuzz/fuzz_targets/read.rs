//! The first byte chooses the format; what reads goes through the whole pipeline.
#![no_main]

use ge_conflict::{Stage, cli, io};

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    let Some((first, rest)) = data.split_first() else { return };
    let name = ["a.json", "a.txt", "a.onnx"][usize::from(*first) % 3];
    if let Ok(loaded) = io::read(name, rest, None) {
        let (report, module) = cli::run(loaded, Stage::All, None);
        let _ = (cli::to_json(&report), ge_conflict::text::report(&report, Default::default()), io::to_json(&module));
    }
});
