//! Progress on long runs: on the standard error, only where that is a terminal.

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use std::time::Duration;

/// A bar over schedules; hidden where there is only one, and elsewhere than on a terminal.
pub fn schedules(name: &str, count: u32) -> ProgressBar {
    let bar = ProgressBar::with_draw_target(Some(u64::from(count)), ProgressDrawTarget::stderr());
    let template = if count > 1 {
        "{spinner} {msg} [{bar:30}] {pos}/{len} schedules {eta}"
    } else {
        "{spinner} {msg} {elapsed}"
    };
    if let Ok(style) = ProgressStyle::with_template(template) {
        bar.set_style(style);
    }
    bar.set_message(name.to_string());
    bar.enable_steady_tick(Duration::from_millis(200));
    bar
}
