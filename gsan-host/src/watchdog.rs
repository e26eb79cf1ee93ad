//! The watchdog: a thread that reports what was found when one wait of the host takes too long.
//!
//! An interrupt (Ctrl-C) counts as such a wait, if the caller names a flag that its signal handler sets.
//!
//! A kernel that never ends cannot be stopped through the driver, and the waiting thread cannot be woken. Race records
//! lie in page-locked memory, so this thread can still read them; its callback prints them and ends the process.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

#[derive(Default)]
struct State {
    deadline: Option<Instant>,
    stop: bool,
}

#[derive(Default)]
struct Shared {
    state: Mutex<State>,
    changed: Condvar,
    /// Set by a signal handler, which can wake nobody: looked at every [`GLANCE`].
    interrupt: Option<&'static AtomicBool>,
}

/// How often an interrupt's flag is looked at.
const GLANCE: Duration = Duration::from_millis(100);

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Runs until it is dropped, which waits for its thread.
pub(crate) struct Watchdog {
    shared: Arc<Shared>,
    limit: Duration,
    thread: Option<JoinHandle<()>>,
}

impl Watchdog {
    /// Starts it; `on_expiry` runs at most once, in its thread.
    pub(crate) fn start(
        limit: Duration,
        interrupt: Option<&'static AtomicBool>,
        on_expiry: impl FnOnce() + Send + 'static,
    ) -> std::io::Result<Watchdog> {
        let shared = Arc::new(Shared {
            interrupt,
            ..Shared::default()
        });
        let seen = shared.clone();
        let thread = std::thread::Builder::new()
            .name("gsan watchdog".into())
            .spawn(move || {
                if watch(&seen) {
                    on_expiry();
                }
            })?;
        Ok(Watchdog {
            shared,
            limit,
            thread: Some(thread),
        })
    }

    /// Says that the host begins to wait, until the guard is dropped. Waits may be nested: an inner one has its own limit.
    pub(crate) fn arm(&self) -> Armed {
        self.arm_for(self.limit)
    }

    /// The same for something that takes its time and is no kernel: the limit is at least `time`.
    pub(crate) fn arm_for(&self, time: Duration) -> Armed {
        let deadline = Instant::now().checked_add(self.limit.max(time));
        let outer = std::mem::replace(&mut self.shared.lock().deadline, deadline);
        self.shared.changed.notify_one();
        Armed {
            shared: self.shared.clone(),
            outer,
        }
    }
}

/// Waits for a deadline to pass or an interrupt (true), or for the end (false).
fn watch(shared: &Shared) -> bool {
    let mut state = shared.lock();
    loop {
        if state.stop {
            return false;
        }
        let now = Instant::now();
        let left = state.deadline.map(|d| d.saturating_duration_since(now));
        if left.is_some_and(|l| l.is_zero())
            || shared.interrupt.is_some_and(|i| i.load(Ordering::Relaxed))
        {
            return true;
        }
        let sleep = match (left, shared.interrupt) {
            (left, Some(_)) => Some(left.map_or(GLANCE, |l| l.min(GLANCE))),
            (left, None) => left,
        };
        state = match sleep {
            None => shared
                .changed
                .wait(state)
                .unwrap_or_else(PoisonError::into_inner),
            Some(time) => {
                shared
                    .changed
                    .wait_timeout(state, time)
                    .unwrap_or_else(PoisonError::into_inner)
                    .0
            }
        };
    }
}

impl Drop for Watchdog {
    fn drop(&mut self) {
        self.shared.lock().stop = true;
        self.shared.changed.notify_one();
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// The host waits while this lives.
pub(crate) struct Armed {
    shared: Arc<Shared>,
    outer: Option<Instant>,
}

impl Drop for Armed {
    fn drop(&mut self) {
        self.shared.lock().deadline = self.outer;
        self.shared.changed.notify_one();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::mpsc;

    #[test]
    fn it_calls_when_a_wait_takes_too_long() {
        let (send, receive) = mpsc::channel();
        let dog = Watchdog::start(Duration::from_millis(10), None, move || {
            send.send(()).unwrap()
        })
        .unwrap();
        let _armed = dog.arm();
        receive.recv_timeout(Duration::from_secs(20)).unwrap();
    }

    #[test]
    fn it_keeps_quiet_when_waits_end_in_time_or_nobody_waits() {
        let (send, receive) = mpsc::channel::<()>();
        let dog = Watchdog::start(Duration::from_secs(3600), None, move || {
            send.send(()).unwrap()
        })
        .unwrap();
        for _ in 0..100 {
            drop(dog.arm());
        }
        drop(dog);
        // The sender is gone without having sent.
        assert!(receive.recv().is_err());
    }

    #[test]
    fn an_inner_wait_does_not_end_the_outer_one() {
        let (send, receive) = mpsc::channel();
        let dog = Watchdog::start(Duration::from_millis(50), None, move || {
            send.send(()).unwrap()
        })
        .unwrap();
        let _outer = dog.arm();
        drop(dog.arm());
        receive.recv_timeout(Duration::from_secs(20)).unwrap();
    }

    #[test]
    fn what_takes_its_time_gets_it() {
        let (send, receive) = mpsc::channel::<()>();
        let dog = Watchdog::start(Duration::from_millis(1), None, move || {
            send.send(()).unwrap()
        })
        .unwrap();
        let armed = dog.arm_for(Duration::from_secs(3600));
        assert!(receive.recv_timeout(Duration::from_millis(50)).is_err());
        drop(armed);
    }

    #[test]
    fn an_interrupt_calls_although_nobody_waits() {
        static FLAG: AtomicBool = AtomicBool::new(false);
        let (send, receive) = mpsc::channel();
        let limit = Duration::from_secs(3600);
        let _dog = Watchdog::start(limit, Some(&FLAG), move || send.send(()).unwrap()).unwrap();
        FLAG.store(true, Ordering::Relaxed);
        receive.recv_timeout(Duration::from_secs(20)).unwrap();
    }
}
