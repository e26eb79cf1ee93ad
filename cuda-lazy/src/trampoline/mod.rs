//! The symbols that cust links to: one trampoline per driver function.
//!
//! A trampoline jumps through its entry of [`TABLE`]. Entries start as null; the first call of each function takes the
//! slow path, which keeps every argument register, asks [`resolve`] for the target and goes on there. Two threads that
//! race for the first call both resolve, to the same address.
//!
//! The functions are naked: their bodies are nothing but the assembly of `x86_64.rs` or `aarch64.rs`. They are Rust
//! symbols all the same, so rustc itself keeps them in every program that depends on this crate, whatever the linker's
//! view of archives is. Their Rust signature says nothing of their arguments; cust_raw's and [`crate::ext`]'s
//! declarations of the same names do.

use crate::functions::all_functions;
use core::arch::naked_asm;
use core::sync::atomic::{AtomicPtr, Ordering};

#[cfg(any(test, target_arch = "aarch64"))]
#[cfg_attr(not(target_arch = "aarch64"), allow(unused_macros, unused_imports))]
pub(crate) mod aarch64;
#[cfg(target_arch = "x86_64")]
pub(crate) mod x86_64;

#[cfg(target_arch = "aarch64")]
use aarch64::{entry, slow};
#[cfg(target_arch = "x86_64")]
use x86_64::{entry, slow};

#[cfg(not(all(
    target_os = "linux",
    target_pointer_width = "64",
    any(target_arch = "x86_64", target_arch = "aarch64")
)))]
compile_error!(
    "cuda-lazy has trampolines for 64-bit Linux on x86-64 and aarch64 only; add a file like src/trampoline/x86_64.rs"
);

/// Where each function's calls go, by its index in the list; null before its first call.
static TABLE: [AtomicPtr<()>; NAMES.len()] =
    [const { AtomicPtr::new(core::ptr::null_mut()) }; NAMES.len()];

/// Called by the slow path with the index of a function: finds its target and puts it into the table.
extern "C" fn resolve(index: u32) -> *const () {
    let index = index as usize;
    let target = crate::choice::target(NAMES[index]);
    TABLE[index].store(target.cast_mut(), Ordering::Release);
    target
}

/// Entered by a jump from a trampoline, the index in the scratch register and the caller's arguments in place.
#[unsafe(naked)]
extern "C" fn resolve_and_jump() {
    naked_asm!(slow!(), resolve = sym resolve)
}

macro_rules! define {
    ($($old:ident)* ; $($new:ident)*) => {
        /// A function's place in the table.
        #[allow(non_camel_case_types)]
        enum Index { $($old,)* $($new,)* }

        /// The names, by index.
        pub(crate) static NAMES: [&str; [$(stringify!($old),)* $(stringify!($new),)*].len()] =
            [$(stringify!($old),)* $(stringify!($new),)*];

        /// How many of them cust_raw declares; they come first.
        #[cfg(test)]
        pub(crate) const OF_CUST_RAW: usize = [$(stringify!($old)),*].len();

        /// The symbols themselves. Nothing in Rust calls them through this module.
        #[allow(non_snake_case)]
        mod symbols {
            use super::*;
            $(define!(@one $old);)*
            $(define!(@one $new);)*
        }
    };
    (@one $name:ident) => {
        #[unsafe(no_mangle)]
        #[unsafe(naked)]
        extern "C" fn $name() {
            naked_asm!(
                entry!(),
                table = sym TABLE,
                offset = const { Index::$name as usize * size_of::<AtomicPtr<()>>() },
                index = const { Index::$name as u32 },
                slow = sym resolve_and_jump,
            )
        }
    };
}

all_functions!(define);

#[cfg(test)]
mod tests;
