//! For Rust kernels that link the detector in by hand: loads, stores, atomics and fences that check themselves.
//!
//! ```ignore
//! #[unsafe(no_mangle)]
//! pub unsafe extern "ptx-kernel" fn kernel(data: *mut u32, flag: *mut u32, gsan: Launch) {
//!     let _block = unsafe { enter(gsan) };
//!     unsafe { store(data, 1) };
//!     unsafe { atomic_store(flag, 1, Order::Release, Scope::Gpu) };
//! }
//! ```
//!
//! With the feature `sanitize` off, each function is its one instruction and `Launch` an unused parameter. With it on, the
//! module holds the runtime already: gsan recognises it by the symbol `__gsan_module`, inserts nothing, and passes
//! the launch record as the kernel's last argument. Line and column of the caller travel in the site number.
//!
//! The atomics spell their instruction: they keep the ordering that rustc drops from `fetch_*` and `swap` on this target,
//! and they have the scopes that `core::sync::atomic` lacks.

pub use crate::layout::{Order, Scope};

#[cfg(feature = "sanitize")]
use crate::{
    block,
    clock::State,
    detector,
    layout::{Access, Op},
    machine::Machine,
    nvptx::{Format, Nvptx},
};
use core::arch::asm;
#[cfg(feature = "sanitize")]
use core::panic::Location;

/// The kernel's last parameter: filled in by gsan; 0 where the kernel runs without it.
#[derive(Clone, Copy)]
#[repr(transparent)]
pub struct Launch(pub u64);

/// The block's stay: dropped when the thread leaves the kernel.
pub struct Block(());

/// First thing in the kernel, by every thread: the block takes its logical thread.
///
/// # Safety
/// Every thread of the block calls it, once, before it branches (there is a barrier in it); `launch` is the parameter that
/// gsan passed. The kernel does not end without dropping the result.
#[inline(always)]
pub unsafe fn enter(launch: Launch) -> Block {
    #[cfg(feature = "sanitize")]
    {
        if Nvptx.thread() == [0, 0, 0] {
            block::enter(Nvptx, launch.0);
        }
        // SAFETY: the caller says that all threads come here.
        unsafe { core::arch::nvptx::_syncthreads() };
    }
    let _ = launch;
    Block(())
}

impl Drop for Block {
    #[inline(always)]
    fn drop(&mut self) {
        #[cfg(feature = "sanitize")]
        block::exit(Nvptx);
    }
}

/// The caller's line and column as a site number.
#[cfg(feature = "sanitize")]
#[inline(always)]
fn site(at: &Location<'_>) -> u32 {
    crate::report::LINKED_SITE | (at.line() & 0x1f_ffff) << 10 | at.column() & 0x3ff
}

#[cfg(feature = "sanitize")]
#[inline(always)]
fn me() -> State<Nvptx> {
    State::at(Nvptx, block::state(Nvptx))
}

/// A checked weak load.
///
/// # Safety
/// As for [`core::ptr::read`].
#[inline(always)]
#[track_caller]
pub unsafe fn load<T: Copy>(ptr: *const T) -> T {
    #[cfg(feature = "sanitize")]
    detector::access::<Format, _>(
        me(),
        ptr as u64,
        Op::new(
            Access::Load,
            size_of::<T>() as u32,
            Order::Weak,
            Scope::None,
        ),
        site(Location::caller()),
    );
    // SAFETY: the caller's promise.
    unsafe { ptr.read() }
}

/// A checked weak store.
///
/// # Safety
/// As for [`core::ptr::write`].
#[inline(always)]
#[track_caller]
pub unsafe fn store<T: Copy>(ptr: *mut T, value: T) {
    #[cfg(feature = "sanitize")]
    detector::access::<Format, _>(
        me(),
        ptr as u64,
        Op::new(
            Access::Store,
            size_of::<T>() as u32,
            Order::Weak,
            Scope::None,
        ),
        site(Location::caller()),
    );
    // SAFETY: the caller's promise.
    unsafe { ptr.write(value) }
}

/// Runs a strong instruction between its hooks; `run` returns its result and whether it wrote.
#[inline(always)]
#[track_caller]
#[cfg_attr(not(feature = "sanitize"), allow(unused_variables))]
fn strong<R>(
    ptr: *const u32,
    access: crate::layout::Access,
    order: Order,
    scope: Scope,
    run: impl FnOnce() -> (R, bool),
) -> R {
    #[cfg(feature = "sanitize")]
    {
        let (op, site) = (Op::new(access, 4, order, scope), site(Location::caller()));
        let context = detector::strong_before::<Format, _>(me(), ptr as u64, op, site);
        let (result, wrote) = run();
        if access != Access::Store {
            detector::strong_after::<Format, _>(me(), ptr as u64, op, site, context, wrote);
        }
        result
    }
    #[cfg(not(feature = "sanitize"))]
    run().0
}

/// One instruction per order and scope. An order that the instruction can't have becomes the next stronger one.
macro_rules! by_scope {
    ($scope:expr, $instruction:literal, $ordered:literal, $rest:literal, $($operands:tt)*) => {
        match $scope {
            Scope::None | Scope::Cta => asm!(concat!($instruction, $ordered, ".cta", $rest), $($operands)*),
            Scope::Cluster | Scope::Gpu => asm!(concat!($instruction, $ordered, ".gpu", $rest), $($operands)*),
            Scope::Sys => asm!(concat!($instruction, $ordered, ".sys", $rest), $($operands)*),
        }
    };
}

/// `ld.relaxed` or `ld.acquire`.
///
/// # Safety
/// `ptr` is valid for reads and aligned.
#[inline(always)]
#[track_caller]
pub unsafe fn atomic_load(ptr: *const u32, order: Order, scope: Scope) -> u32 {
    strong(ptr, crate::layout::Access::Load, order, scope, || {
        let value: u32;
        // SAFETY: the caller's promise.
        unsafe {
            if order.acquires() {
                by_scope!(scope, "ld", ".acquire", ".b32 {}, [{}];", out(reg32) value, in(reg64) ptr, options(nostack));
            } else {
                by_scope!(scope, "ld", ".relaxed", ".b32 {}, [{}];", out(reg32) value, in(reg64) ptr, options(nostack));
            }
        }
        (value, true)
    })
}

/// `st.relaxed` or `st.release`.
///
/// # Safety
/// `ptr` is valid for writes and aligned.
#[inline(always)]
#[track_caller]
pub unsafe fn atomic_store(ptr: *mut u32, value: u32, order: Order, scope: Scope) {
    strong(ptr, crate::layout::Access::Store, order, scope, || {
        // SAFETY: the caller's promise.
        unsafe {
            if order.releases() {
                by_scope!(scope, "st", ".release", ".b32 [{}], {};", in(reg64) ptr, in(reg32) value, options(nostack));
            } else {
                by_scope!(scope, "st", ".relaxed", ".b32 [{}], {};", in(reg64) ptr, in(reg32) value, options(nostack));
            }
        }
        ((), true)
    })
}

/// `atom.add`; returns the old value.
///
/// # Safety
/// `ptr` is valid for reads and writes and aligned.
#[inline(always)]
#[track_caller]
pub unsafe fn atomic_add(ptr: *mut u32, value: u32, order: Order, scope: Scope) -> u32 {
    strong(ptr, crate::layout::Access::Rmw, order, scope, || {
        let old: u32;
        // SAFETY: the caller's promise.
        unsafe {
            match (order.acquires(), order.releases()) {
                (false, false) => by_scope!(scope, "atom.add", ".relaxed", ".u32 {}, [{}], {};",
                    out(reg32) old, in(reg64) ptr, in(reg32) value, options(nostack)),
                (true, false) => by_scope!(scope, "atom.add", ".acquire", ".u32 {}, [{}], {};",
                    out(reg32) old, in(reg64) ptr, in(reg32) value, options(nostack)),
                (false, true) => by_scope!(scope, "atom.add", ".release", ".u32 {}, [{}], {};",
                    out(reg32) old, in(reg64) ptr, in(reg32) value, options(nostack)),
                (true, true) => by_scope!(scope, "atom.add", ".acq_rel", ".u32 {}, [{}], {};",
                    out(reg32) old, in(reg64) ptr, in(reg32) value, options(nostack)),
            }
        }
        (old, true)
    })
}

/// `atom.cas`; returns the old value, which is `expected` if it wrote.
///
/// # Safety
/// `ptr` is valid for reads and writes and aligned.
#[inline(always)]
#[track_caller]
pub unsafe fn atomic_cas(
    ptr: *mut u32,
    expected: u32,
    new: u32,
    order: Order,
    scope: Scope,
) -> u32 {
    strong(ptr, crate::layout::Access::Cas, order, scope, || {
        let old: u32;
        // SAFETY: the caller's promise.
        unsafe {
            match (order.acquires(), order.releases()) {
                (false, false) => {
                    by_scope!(scope, "atom.cas", ".relaxed", ".b32 {}, [{}], {}, {};",
                    out(reg32) old, in(reg64) ptr, in(reg32) expected, in(reg32) new, options(nostack))
                }
                (true, false) => by_scope!(scope, "atom.cas", ".acquire", ".b32 {}, [{}], {}, {};",
                    out(reg32) old, in(reg64) ptr, in(reg32) expected, in(reg32) new, options(nostack)),
                (false, true) => by_scope!(scope, "atom.cas", ".release", ".b32 {}, [{}], {}, {};",
                    out(reg32) old, in(reg64) ptr, in(reg32) expected, in(reg32) new, options(nostack)),
                (true, true) => by_scope!(scope, "atom.cas", ".acq_rel", ".b32 {}, [{}], {}, {};",
                    out(reg32) old, in(reg64) ptr, in(reg32) expected, in(reg32) new, options(nostack)),
            }
        }
        (old, old == expected)
    })
}

/// `fence.acq_rel` (or `.sc` for [`Order::Sc`]).
#[inline(always)]
pub fn fence(order: Order, scope: Scope) {
    #[cfg(feature = "sanitize")]
    detector::fence::<Format, _>(me(), Op::new(Access::Fence, 0, order, scope));
    // SAFETY: a fence has no operands.
    unsafe {
        if order == Order::Sc {
            by_scope!(scope, "fence", ".sc", ";", options(nostack));
        } else {
            by_scope!(scope, "fence", ".acq_rel", ";", options(nostack));
        }
    }
}
