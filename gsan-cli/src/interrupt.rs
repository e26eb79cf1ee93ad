//! Ctrl-C: the first one prints what was found, the second one ends the process at once.

use std::sync::atomic::{AtomicBool, Ordering};

/// Whether the user has interrupted the run.
pub static INTERRUPTED: AtomicBool = AtomicBool::new(false);

/// From now on an interrupt sets [`INTERRUPTED`]; the watchdog of a session looks at it.
pub fn catch() {
    #[cfg(unix)]
    // SAFETY: the handler stores to an atomic and calls `signal`, both of which are async-signal-safe, and nothing else.
    unsafe {
        libc::signal(
            libc::SIGINT,
            on_interrupt as *const () as libc::sighandler_t,
        );
    }
}

/// Whether it has happened.
pub fn happened() -> bool {
    INTERRUPTED.load(Ordering::Relaxed)
}

#[cfg(unix)]
extern "C" fn on_interrupt(_: libc::c_int) {
    INTERRUPTED.store(true, Ordering::Relaxed);
    // SAFETY: as above; the next interrupt ends the process.
    unsafe {
        libc::signal(libc::SIGINT, libc::SIG_DFL);
    }
}
