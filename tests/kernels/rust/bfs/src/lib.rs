//! One level of a breadth-first search over a board of cells, four neighbours each.

#![no_std]
#![feature(abi_ptx)]

use core::sync::atomic::{AtomicU32, Ordering};
use support::global_thread;

const UNSEEN: u32 = u32::MAX;

/// The cells next to `cell` on a board of `rows` × `columns`.
fn neighbours(cell: u32, columns: u32, rows: u32) -> [Option<u32>; 4] {
    let (row, column) = (cell / columns, cell % columns);
    [
        (column > 0).then(|| cell - 1),
        (column + 1 < columns).then(|| cell + 1),
        (row > 0).then(|| cell - columns),
        (row + 1 < rows).then(|| cell + columns),
    ]
}

/// Where the search starts.
#[unsafe(no_mangle)]
pub unsafe extern "ptx-kernel" fn bfs_start(levels: *mut u32, start: u32) {
    if global_thread() == 0 {
        unsafe { *levels.add(start as usize) = 0 };
    }
}

/// "It does not matter who wins, they all write the same." It is a race all the same: the compiler and the hardware
/// may assume that there is none.
#[unsafe(no_mangle)]
pub unsafe extern "ptx-kernel" fn bfs_level_racy(
    levels: *mut u32,
    columns: u32,
    rows: u32,
    level: u32,
) {
    let cell = global_thread() as u32;
    unsafe {
        let own = *levels.add(cell as usize);
        if own != level {
            return;
        }
        for next in neighbours(cell, columns, rows).into_iter().flatten() {
            let seen = *levels.add(next as usize);
            if seen == UNSEEN {
                *levels.add(next as usize) = level + 1;
            }
        }
    }
}

/// The first one to find a cell claims it.
#[unsafe(no_mangle)]
pub unsafe extern "ptx-kernel" fn bfs_level_fixed(
    levels: *mut u32,
    columns: u32,
    rows: u32,
    level: u32,
) {
    let cell = global_thread() as u32;
    let level_of = |cell: u32| unsafe { AtomicU32::from_ptr(levels.add(cell as usize)) };
    if level_of(cell).load(Ordering::Relaxed) != level {
        return;
    }
    for next in neighbours(cell, columns, rows).into_iter().flatten() {
        let _ = level_of(next).compare_exchange(
            UNSEEN,
            level + 1,
            Ordering::Relaxed,
            Ordering::Relaxed,
        );
    }
}
