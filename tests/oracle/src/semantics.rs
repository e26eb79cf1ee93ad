//! What a program's instructions do to memory, wherever it runs.

use crate::program::{Access, Kind, Program, Work};
use crate::setup::MEMORY;
use crate::trace::{self, ThreadInfo};

/// Does an access in the memory of all spaces; returns what it read and whether it wrote. `held` is what the thread has read last.
pub fn perform(memory: &mut [u8; MEMORY], access: Access, held: u128) -> (u128, bool) {
    let (start, size) = (access.place.start() as usize, access.place.size as usize);
    let bytes = &mut memory[start..start + size];
    let mut buffer = [0; 16];
    buffer[..size].copy_from_slice(bytes);
    let old = u128::from_le_bytes(buffer);
    let new = match access.kind {
        Kind::Load => None,
        Kind::Store(v) | Kind::Exchange(v) => Some(u128::from(v)),
        Kind::Paste => Some(held),
        Kind::Add(v) | Kind::Reduce(v) => Some(old.wrapping_add(u128::from(v))),
        Kind::Cas { expect, new } => (old == u128::from(expect)).then_some(u128::from(new)),
    };
    if let Some(new) = new {
        bytes.copy_from_slice(&new.to_le_bytes()[..size]);
    }
    (old, new.is_some())
}

/// What the trace says of an access that wrote or did not.
pub fn event(thread: usize, index: usize, access: &Access, wrote: bool) -> trace::Access {
    trace::Access {
        thread,
        index,
        copy: None,
        place: access.place,
        reads: !matches!(access.kind, Kind::Store(_) | Kind::Paste),
        writes: wrote,
        reduction: matches!(access.kind, Kind::Reduce(_)),
        attempt: matches!(access.kind, Kind::Cas { .. }),
        order: access.order,
        scope: access.scope,
    }
}

/// The program's threads, numbered through.
pub fn threads_of(program: &Program) -> Vec<ThreadInfo> {
    let (mut blocks, mut clusters) = (0, 0);
    let mut threads = Vec::new();
    for (kernel, k) in program.kernels.iter().enumerate() {
        for (block, b) in k.blocks.iter().enumerate() {
            blocks += 1;
            clusters += usize::from(block % k.cluster.max(1) == 0);
            threads.extend((0..b.threads.len()).map(|thread| ThreadInfo {
                kernel,
                block,
                global_block: blocks - 1,
                cluster: clusters,
                clustered: k.cluster > 1,
                fenced: k.may_fence(),
                thread,
                linear: b.linear(thread),
            }));
        }
    }
    threads
}

/// The kernels that are operations of the host.
pub fn operations_of(program: &Program) -> Vec<usize> {
    let kernels = program.kernels.iter().enumerate();
    let operations = kernels.filter(|(_, k)| k.work != Work::Grid);
    operations.map(|(n, _)| n).collect()
}
