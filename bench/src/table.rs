//! The table that the benchmark program prints: Markdown, so that it can go to `bench/results` as it is.

use crate::measure::{Measured, Times};
use crate::workload::Sizes;
use std::fmt::Write;

/// The table with a heading that says what was measured where.
pub fn render(measured: &Measured, sizes: &Sizes, runs: u32, driver: &str) -> String {
    let device = &measured.device;
    let simulated = device.simulated;
    let mut text = String::new();
    let _ = writeln!(
        text,
        "{} ({} SMs), {driver}; gsan {}",
        device.name,
        device.sms,
        env!("CARGO_PKG_VERSION")
    );
    let _ = writeln!(
        text,
        "{} words in and out, table of {} words, {}×{} matrices, {} blocks; medians of {runs} launches\n",
        sizes.words, sizes.table, sizes.matrix, sizes.matrix, sizes.blocks
    );
    // The simulator's device time is simulated: what a user waits for is the host's.
    let time = |t: &Times| {
        if simulated {
            t.host.as_secs_f64() * 1e3
        } else {
            t.device_ms
        }
    };
    let unit = if simulated { "host ms" } else { "ms" };
    let _ = writeln!(
        text,
        "| kernel | plain, {unit} | GB/s | instrumented, {unit} | slowdown |"
    );
    let _ = writeln!(text, "|---|---:|---:|---:|---:|");
    let mut product = 1.0;
    for row in &measured.rows {
        let (plain, checked) = (time(&row.plain), time(&row.checked));
        let ratio = checked / plain;
        product *= ratio;
        let _ = writeln!(
            text,
            "| {} | {plain:.3} | {:.2} | {checked:.3} | {ratio:.2}× |",
            row.kernel,
            row.bytes as f64 / plain / 1e6
        );
    }
    let mean = product.powf(1.0 / measured.rows.len().max(1) as f64);
    let _ = writeln!(text, "\ngeometric mean of the slowdowns: {mean:.2}×");
    if let Some(checked) = measured.checked_accesses {
        let _ = writeln!(text, "{checked} accesses checked, no race");
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::measure::Row;
    use gsan_host::report::DeviceInfo;
    use std::time::Duration;

    #[test]
    fn ratios_and_rates() {
        let times = |ms: f64| Times {
            device_ms: ms,
            host: Duration::from_secs(1),
        };
        let row = |kernel, plain, checked| Row {
            kernel,
            bytes: 8_000_000,
            plain: times(plain),
            checked: times(checked),
        };
        let measured = Measured {
            device: DeviceInfo {
                simulated: false,
                name: "NVIDIA H200".into(),
                sms: 132,
            },
            checked_accesses: Some(12),
            rows: vec![row("copy", 2.0, 4.0), row("gather", 1.0, 8.0)],
        };
        let text = render(&measured, &Sizes::simulator(), 5, "CUDA 13.0");
        assert!(
            text.contains("| copy | 2.000 | 4.00 | 4.000 | 2.00× |"),
            "{text}"
        );
        assert!(
            text.contains("| gather | 1.000 | 8.00 | 8.000 | 8.00× |"),
            "{text}"
        );
        assert!(text.contains("slowdowns: 4.00×"), "{text}");
    }
}
