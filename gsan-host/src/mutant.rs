//! What tests take away to see that it is missed: one edge of one file, in one thread.

use std::cell::Cell;

thread_local! {
    static REMOVED: Cell<Option<(&'static str, u32)>> = const { Cell::new(None) };
}

/// Whether this thread is to do without an edge; `of` is the file that has it.
pub(crate) fn is_removed(of: &'static str, edge: u32) -> bool {
    REMOVED.get() == Some((of, edge))
}

/// Runs something in this thread without an edge.
pub(crate) fn removing<R>(of: &'static str, edge: u32, f: impl FnOnce() -> R) -> R {
    REMOVED.set(Some((of, edge)));
    let result = f();
    REMOVED.set(None);
    result
}
