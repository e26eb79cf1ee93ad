//! How blocks have to end on a GPU: not before what still comes to their shared memory, and not before the copy engine has read
//! what it takes from there.
//!
//! A block whose mbarriers other blocks or copies complete waits for their last phases once all its threads are through: nothing
//! that it does comes later, so that this orders none of the program's accesses.

use crate::program::{AsyncCopy, Kernel, MBARRIERS, Mbarrier, Mechanism, Op, Transfer};
use std::collections::BTreeMap;

/// The last phase of an mbarrier that comes from elsewhere.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Last {
    /// The block's mbarrier.
    pub(super) mbarrier: usize,
    /// The phase.
    pub(super) phase: u32,
    /// Who has a part in it, in the order of the kernel's threads, and by which operation.
    pub(super) by: (usize, usize),
}

/// What a block has to wait for at its end.
pub(super) fn phases(kernel: &Kernel, block: usize) -> Vec<Last> {
    let Some(counts) = kernel.blocks.get(block).map(|b| &b.mbarriers) else {
        return Vec::new();
    };
    let cluster = kernel.cluster.max(1);
    let first = block / cluster * cluster;
    let mut arrivals = [0; MBARRIERS];
    let mut from_elsewhere = BTreeMap::new();
    let mut thread = 0;
    for (b, other) in kernel.blocks.iter().enumerate() {
        for ops in &other.threads {
            for (i, op) in ops.iter().enumerate() {
                if let Op::Copy(AsyncCopy {
                    what: Transfer::Multicast { index, blocks },
                    ..
                }) = op
                    && b / cluster * cluster == first
                    && blocks & 1 << (block - first) != 0
                    && *index < MBARRIERS
                {
                    from_elsewhere.insert(*index, (thread, i));
                    continue;
                }
                let (Mbarrier { rank, index }, copy) = match op {
                    Op::Arrive(arrival) => (arrival.at, false),
                    Op::ArriveBehindCopies {
                        mbarrier: index,
                        counted: true,
                    } => (
                        Mbarrier {
                            rank: None,
                            index: *index,
                        },
                        false,
                    ),
                    Op::Copy(AsyncCopy {
                        what: Transfer::Fetch(at),
                        ..
                    }) => (*at, true),
                    _ => continue,
                };
                let home = rank.map_or(b, |rank| b / cluster * cluster + rank);
                if home != block || b / cluster * cluster != first || index >= MBARRIERS {
                    continue;
                }
                arrivals[index] += u32::from(!copy);
                if copy || b != block {
                    from_elsewhere.insert(index, (thread, i));
                }
            }
            thread += 1;
        }
    }
    let lasts = from_elsewhere.into_iter().filter_map(|(mbarrier, by)| {
        let count = *counts.get(mbarrier)?;
        let phases = arrivals[mbarrier].checked_div(count)?;
        let phase = phases.checked_sub(1)?;
        Some(Last {
            mbarrier,
            phase,
            by,
        })
    });
    lasts.collect()
}

/// A thread's last operation that lets the copy engine read the block's memory.
pub(super) fn last_put(ops: &[Op]) -> Option<usize> {
    ops.iter().rposition(
        |op| matches!(op, Op::Copy(copy) if copy.what.mechanism() == Some(Mechanism::Bulk)),
    )
}

/// Waits until the copy engine has read it: this orders nothing.
pub(super) fn put_lines(guard: &str) -> [String; 2] {
    [
        format!("{guard}cp.async.bulk.commit_group;"),
        format!("{guard}cp.async.bulk.wait_group.read 0;"),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::campaign::Constructs;
    use crate::program::{Arrival, Block};
    use crate::ptx::campaign;
    use gsan_device::layout::Scope;

    fn arrival(rank: Option<usize>) -> Op {
        Op::Arrive(Arrival {
            at: Mbarrier { rank, index: 0 },
            bytes: 0,
            relaxed: false,
            scope: Scope::Cluster,
        })
    }

    fn block(threads: Vec<Vec<Op>>, mbarriers: Vec<u32>) -> Block {
        Block {
            threads,
            lanes: 1,
            mbarriers,
        }
    }

    #[test]
    fn a_block_waits_for_what_its_neighbour_sends() {
        let own = block(vec![vec![arrival(None)]], vec![2]);
        let other = block(vec![vec![], vec![arrival(Some(0))]], vec![]);
        let far = block(vec![vec![arrival(Some(0))]], vec![]);
        let kernel = Kernel {
            cluster: 2,
            blocks: vec![own, other, block(vec![], vec![1]), far],
            ..Kernel::default()
        };
        let last = |by| Last {
            mbarrier: 0,
            phase: 0,
            by,
        };
        assert_eq!(phases(&kernel, 0), [last((2, 0))]);
        assert_eq!(phases(&kernel, 1), []);
        assert_eq!(phases(&kernel, 2), [last((3, 0))]);
        assert_eq!(phases(&kernel, 9), []);
    }

    #[test]
    fn what_a_block_completes_itself_needs_no_wait() {
        let own = block(vec![vec![arrival(None), arrival(None)]], vec![1]);
        let kernel = Kernel {
            cluster: 1,
            blocks: vec![own],
            ..Kernel::default()
        };
        assert_eq!(phases(&kernel, 0), []);
    }

    /// An arrival more than a phase waits for is undefined.
    #[test]
    fn no_thread_announces_bytes_before_the_phase_before_is_over() {
        for seed in 0..4_000 {
            let program = campaign::program(seed, Constructs::Wide);
            for (.., ops) in program.threads() {
                let mut open = [false; MBARRIERS];
                for op in ops {
                    match op {
                        Op::Arrive(Arrival { at, bytes: 1.., .. }) if at.rank.is_none() => {
                            assert!(!open[at.index], "seed {seed}:\n{program}");
                            open[at.index] = true;
                        }
                        Op::Await { mbarrier, .. } => open[*mbarrier] = false,
                        _ => {}
                    }
                }
            }
        }
    }
}
