//! Makes a failing program small: leaves out what it can while the program still fails.

use crate::program::{HostStep, LEGACY, Op, Program, Work};

/// The smallest program found that still `fails`; the given one does.
pub fn shrink(program: Program, mut fails: impl FnMut(&Program) -> bool) -> Program {
    let mut best = program;
    loop {
        let before = best.clone();
        for candidate in CANDIDATES {
            let mut n = 0;
            while let Some(smaller) = candidate(&best, n) {
                if smaller != best && fails(&smaller) {
                    best = smaller;
                } else {
                    n += 1;
                }
            }
        }
        if best == before {
            return best;
        }
    }
}

/// The `n`-th smaller program of a kind, or none.
type Candidate = fn(&Program, usize) -> Option<Program>;

const CANDIDATES: [Candidate; 7] = [
    without_kernel,
    without_step,
    without_block,
    without_thread,
    without_op,
    without_waiting,
    weaker_retries,
];

fn without_kernel(program: &Program, n: usize) -> Option<Program> {
    if program.kernels.len() < 2 || n >= program.kernels.len() {
        return None;
    }
    let nodes = || program.graphs.iter().flat_map(|g| &g.nodes);
    if nodes().any(|node| node.kernels.contains(&n)) {
        return Some(program.clone());
    }
    let mut p = program.clone();
    p.kernels.remove(n);
    let nodes = p.graphs.iter_mut().flat_map(|g| &mut g.nodes);
    for kernel in nodes.flat_map(|node| &mut node.kernels) {
        *kernel -= usize::from(*kernel > n);
    }
    p.host
        .retain(|s| !matches!(*s, HostStep::Launch { kernel, .. } if kernel == n));
    for step in &mut p.host {
        if let HostStep::Launch { kernel, .. } = step
            && *kernel > n
        {
            *kernel -= 1;
        }
    }
    Some(p)
}

fn without_step(program: &Program, n: usize) -> Option<Program> {
    let mut p = program.clone();
    let at = (0..p.host.len())
        .filter(|&i| {
            let waits_for_operation = i > 0
                && matches!(p.host[i], HostStep::Synchronize { stream: LEGACY })
                && p.host[i - 1].stream() == LEGACY;
            !matches!(p.host[i], HostStep::Launch { .. }) && !waits_for_operation
        })
        .nth(n)?;
    p.host.remove(at);
    Some(p)
}

fn without_block(program: &Program, n: usize) -> Option<Program> {
    let mut p = program.clone();
    let (k, b) = (p.kernels.iter().enumerate())
        .filter(|(_, kernel)| kernel.blocks.len() > 1)
        .flat_map(|(k, kernel)| (0..kernel.blocks.len()).map(move |b| (k, b)))
        .nth(n)?;
    p.kernels[k].blocks.remove(b);
    Some(p)
}

fn without_thread(program: &Program, n: usize) -> Option<Program> {
    let mut p = program.clone();
    let (k, b, t) = program
        .threads()
        .filter(|&(k, b, _, _)| program.kernels[k].blocks[b].threads.len() > 1)
        .map(|(k, b, t, _)| (k, b, t))
        .nth(n)?;
    p.kernels[k].blocks[b].threads.remove(t);
    Some(p)
}

fn nth_op(program: &mut Program, n: usize) -> Option<(&mut Vec<Op>, usize)> {
    let mut left = n;
    for kernel in &mut program.kernels {
        for block in &mut kernel.blocks {
            for ops in &mut block.threads {
                if left < ops.len() {
                    return Some((ops, left));
                }
                left -= ops.len();
            }
        }
    }
    None
}

fn without_op(program: &Program, n: usize) -> Option<Program> {
    let mut p = program.clone();
    let all = program
        .threads()
        .flat_map(|(k, _, _, ops)| vec![k; ops.len()]);
    if program.kernels[all.into_iter().nth(n)?].work != Work::Grid {
        // An operation of the host is what it is.
        return Some(p);
    }
    let (ops, i) = nth_op(&mut p, n)?;
    ops.remove(i);
    Some(p)
}

fn without_waiting(program: &Program, n: usize) -> Option<Program> {
    let mut p = program.clone();
    let (ops, i) = nth_op(&mut p, n)?;
    if let Op::Access(access) = &mut ops[i] {
        access.until = None;
    }
    Some(p)
}

fn weaker_retries(program: &Program, n: usize) -> Option<Program> {
    let mut p = program.clone();
    let (ops, i) = nth_op(&mut p, n)?;
    if let Op::Access(access) = &mut ops[i]
        && let Some(until) = &mut access.until
    {
        until.retries = 0;
    }
    Some(p)
}
