//! How a C function of the driver is written: the macro, the pointers that callers hand in, and the lock.
//!
//! Every function runs with the driver's lock held, in a [`Session`]. A panic inside becomes `CUDA_ERROR_UNKNOWN`: none
//! may cross into the caller.

use super::codes::{Answer, Code};
use super::state::{Driver, Handle, State};
use std::cell::{Cell, RefCell};
use std::ffi::{CStr, c_char, c_int};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Condvar, LazyLock, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// Defines functions of the driver API, and `symbol`, which finds them by name.
///
/// A body is given the [`Session`] and answers with an [`Answer`].
macro_rules! driver_api {
    ($(fn $name:ident($session:ident $(, $arg:ident: $type:ty)* $(,)?) $body:block)*) => {
        $(
            #[allow(non_snake_case, clippy::too_many_arguments)]
            extern "C" fn $name($($arg: $type),*) -> std::ffi::c_int {
                $crate::driver::api::enter(|$session: &mut $crate::driver::api::Session| -> $crate::driver::codes::Answer { $body })
            }
        )*

        /// The functions of this file by name.
        pub(super) fn symbol(name: &str) -> Option<*const ()> {
            match name {
                $(stringify!($name) => Some($name as *const ()),)*
                _ => None,
            }
        }
    };
}
pub(super) use driver_api;

/// A pointer to where a result goes; null is an error of the caller's.
#[repr(transparent)]
pub(super) struct Out<T>(*mut T);

impl<T> Out<T> {
    /// For a pointer that is itself a value in an array.
    pub(super) fn from_address(address: u64) -> Out<T> {
        Out(address as *mut T)
    }

    pub(super) fn set(&self, value: T) -> Answer {
        if self.0.is_null() {
            return Err(Code::INVALID_VALUE);
        }
        // SAFETY: the driver API's contract: what is not null points to room for the result. Callers in C need not align.
        unsafe { self.0.write_unaligned(value) };
        Ok(())
    }

    /// For results that the caller may leave out.
    pub(super) fn set_if_wanted(&self, value: T) {
        if !self.is_null() {
            let _ = self.set(value);
        }
    }

    pub(super) fn is_null(&self) -> bool {
        self.0.is_null()
    }

    /// For results that are arguments too.
    pub(super) fn address(&self) -> u64 {
        self.0 as u64
    }

    /// Refuses null before anything has been done that would have to be undone.
    pub(super) fn require(&self) -> Answer {
        if self.is_null() {
            Err(Code::INVALID_VALUE)
        } else {
            Ok(())
        }
    }

    /// The same place, for a part of the result.
    pub(super) fn cast<U>(&self) -> Out<U> {
        Out(self.0.cast())
    }

    /// The i-th element of an array of results.
    pub(super) fn at(&self, index: usize) -> Out<T> {
        if self.is_null() {
            Out(self.0)
        } else {
            Out(self.0.wrapping_add(index))
        }
    }
}

/// A pointer to arguments; null is an error of the caller's.
#[repr(transparent)]
pub(super) struct In<T>(*const T);

impl<T> In<T> {
    /// For a pointer that is itself a value in an array; 0 is null.
    pub(super) fn from_address(address: u64) -> In<T> {
        In(address as *const T)
    }
}

impl<T: Copy> In<T> {
    pub(super) fn get(&self) -> Answer<T> {
        self.at(0)
    }

    pub(super) fn at(&self, index: usize) -> Answer<T> {
        if self.0.is_null() {
            return Err(Code::INVALID_VALUE);
        }
        // SAFETY: the driver API's contract: what is not null points to as many elements as the call's count says.
        Ok(unsafe { self.0.wrapping_add(index).read_unaligned() })
    }

    pub(super) fn is_null(&self) -> bool {
        self.0.is_null()
    }
}

/// A NUL-terminated string of the caller's.
#[repr(transparent)]
pub(super) struct Text(*const c_char);

impl Text {
    pub(super) fn from_address(address: u64) -> Text {
        Text(address as *const c_char)
    }

    pub(super) fn get(&self) -> Answer<&CStr> {
        if self.0.is_null() {
            return Err(Code::INVALID_VALUE);
        }
        // SAFETY: the driver API's contract: what is not null is NUL-terminated and stays for the call.
        Ok(unsafe { CStr::from_ptr(self.0) })
    }

    pub(super) fn utf8(&self) -> Answer<&str> {
        self.get()?.to_str().map_err(|_| Code::NOT_FOUND)
    }
}

/// A caller's memory of `len` bytes as a slice; for a copy, or the bytes of a parameter.
///
/// # Safety
/// `address` is valid for reads of `len` bytes for as long as the result is used, and not null unless `len` is 0.
pub(super) unsafe fn bytes<'a>(address: u64, len: usize) -> &'a [u8] {
    if len == 0 {
        return &[];
    }
    // SAFETY: the caller's promise.
    unsafe { std::slice::from_raw_parts(address as *const u8, len) }
}

/// Takes the lock.
fn lock() -> MutexGuard<'static, State> {
    WAITING.fetch_add(1, Ordering::Relaxed);
    let guard = STATE.lock().unwrap_or_else(PoisonError::into_inner);
    WAITING.fetch_sub(1, Ordering::Relaxed);
    guard
}

/// Threads that wait for the lock.
static WAITING: AtomicUsize = AtomicUsize::new(0);
static STATE: LazyLock<Mutex<State>> = LazyLock::new(|| Mutex::new(State::new()));
/// Told whenever a host function has returned.
static HOST_FUNCTION_DONE: Condvar = Condvar::new();

thread_local! {
    /// This thread's stack of current contexts, and the generation that they belong to.
    static CURRENT: RefCell<(u64, Vec<Handle>)> = const { RefCell::new((0, Vec::new())) };
    /// Whether this thread is inside a host function of a stream, which may not call the driver.
    static IN_HOST_FUNCTION: Cell<bool> = const { Cell::new(false) };
}

/// A call of the driver: the lock, and what is reached through it.
pub(super) struct Session {
    /// Always there, but for the moments in which a host function runs.
    guard: Option<MutexGuard<'static, State>>,
}

/// Runs one call.
pub(super) fn enter(body: impl FnOnce(&mut Session) -> Answer) -> c_int {
    if IN_HOST_FUNCTION.get() {
        return Code::NOT_PERMITTED.0;
    }
    let answer = catch_unwind(AssertUnwindSafe(|| body(&mut Session::lock())));
    match answer {
        Ok(Ok(())) => 0,
        Ok(Err(code)) => code.0,
        Err(_) => Code::UNKNOWN.0,
    }
}

impl Session {
    /// Waits for the lock. A call that panicked has left nothing half-written that the next could trip over: handles are
    /// numbers that are looked up.
    pub(super) fn lock() -> Session {
        Session {
            guard: Some(lock()),
        }
    }

    pub(super) fn state(&mut self) -> &mut State {
        self.guard.get_or_insert_with(lock)
    }

    /// Lets other threads in that wait for the lock, in the middle of a long wait: one of them may be about to queue what
    /// this one waits for. With a single thread nothing happens, so that its runs can be repeated.
    pub(super) fn let_others_in(&mut self) {
        if WAITING.load(Ordering::Relaxed) > 0 {
            self.guard = None;
            // The lock is not fair: without a pause this thread would take it again at once.
            std::thread::sleep(Duration::from_micros(50));
            self.state();
        }
    }

    /// The driver, if `cuInit` was called.
    pub(super) fn driver(&mut self) -> Answer<&mut Driver> {
        self.state().driver.as_mut().ok_or(Code::NOT_INITIALIZED)
    }

    /// The driver and the thread's current context, whatever state that is in.
    pub(super) fn current(&mut self) -> Answer<(&mut Driver, Handle)> {
        let top = self.stack(|stack| stack.last().copied());
        let driver = self.driver()?;
        let context = top.ok_or(Code::INVALID_CONTEXT)?;
        if driver.contexts.contains_key(&context) {
            Ok((driver, context))
        } else {
            Err(Code::CONTEXT_IS_DESTROYED)
        }
    }

    /// The driver and the thread's current context, or the error that the context has been left with.
    pub(super) fn healthy(&mut self) -> Answer<(&mut Driver, Handle)> {
        let (driver, context) = self.current()?;
        driver.health(context)?;
        Ok((driver, context))
    }

    /// The thread's stack of contexts; one of an earlier generation (before a reset) is empty.
    pub(super) fn stack<R>(&mut self, f: impl FnOnce(&mut Vec<Handle>) -> R) -> R {
        let generation = self.state().generation;
        CURRENT.with_borrow_mut(|(of, stack)| {
            if *of != generation {
                *of = generation;
                stack.clear();
            }
            f(stack)
        })
    }

    /// Runs a function of the caller's without the lock. Afterwards the driver may be another one.
    pub(super) fn unlocked(&mut self, function: impl FnOnce()) {
        self.guard = None;
        IN_HOST_FUNCTION.set(true);
        let _ = catch_unwind(AssertUnwindSafe(function));
        IN_HOST_FUNCTION.set(false);
        self.state();
        HOST_FUNCTION_DONE.notify_all();
    }

    /// Lets another thread finish its host function.
    pub(super) fn wait_for_host_function(&mut self) {
        if let Some(guard) = self.guard.take() {
            let (guard, _) = HOST_FUNCTION_DONE
                .wait_timeout(guard, Duration::from_millis(20))
                .unwrap_or_else(PoisonError::into_inner);
            self.guard = Some(guard);
        }
    }
}
