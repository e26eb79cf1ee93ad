//! `instrument_file RUNTIME.ptx IN.ptx OUT.ptx [REPEAT]`: instruments one file and says how fast that was.
//!
//! `instrument_file RUNTIME.ptx IN.ptx OUT.ptx apart RUNTIME_OUT.ptx`: with the part of the runtime that it needs beside it, and on
//! the standard output how many registers that may use.
use gsan_ptx::{Options, instrument};
use std::time::Instant;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let [runtime, input, output, rest @ ..] = &args[..] else {
        return Err(
            "usage: instrument_file RUNTIME.ptx IN.ptx OUT.ptx [REPEAT | apart RUNTIME_OUT.ptx]"
                .into(),
        );
    };
    let runtime = std::fs::read_to_string(runtime)?;
    let text = std::fs::read_to_string(input)?;
    let options = Options::new(&runtime, input);
    if let [apart, beside] = rest
        && apart == "apart"
    {
        let options = Options {
            apart: true,
            ..options
        };
        let result = instrument(&text, &options)?;
        std::fs::write(output, &result.text)?;
        std::fs::write(beside, result.needs.module(&runtime)?)?;
        println!("{}", result.needs.registers());
        return Ok(());
    }
    let repeat: u32 = rest.first().map_or(Ok(1), |r| r.parse())?;
    let start = Instant::now();
    let mut result = instrument(&text, &options)?;
    for _ in 1..repeat {
        result = instrument(&text, &options)?;
    }
    let seconds = start.elapsed().as_secs_f64() / f64::from(repeat);
    eprintln!(
        "{input}: {:.2} MB, {:.1} MB/s, {:?}",
        text.len() as f64 / 1e6,
        text.len() as f64 / 1e6 / seconds,
        result.stats
    );
    for u in &result.unsupported {
        eprintln!("{input}:{}: {}: {}", u.ptx_line, u.why, u.text);
    }
    std::fs::write(output, result.text)?;
    Ok(())
}
