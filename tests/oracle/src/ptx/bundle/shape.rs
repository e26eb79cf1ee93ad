//! What the programs of a module have in common: the host's steps, graphs, and how kernels are launched.

use crate::campaign::Constructs;
use crate::program::{Graph, HostStep, Kernel, Program};
use crate::ptx::campaign;
use crate::ptx::emit::launchable;
use crate::semantics::operations_of;
use crate::setup::MAX_BLOCKS;
use std::collections::BTreeSet;

/// The shape of a module's programs.
pub(super) struct Shape {
    host: Vec<HostStep>,
    graphs: Vec<Graph>,
    clusters: Vec<usize>,
    dependent: Vec<bool>,
    constructs: Constructs,
}

impl Shape {
    /// That of the first program from `seed` on that suits the `n`-th module.
    pub(super) fn of(n: usize, seed: &mut u64, constructs: Constructs) -> Shape {
        loop {
            *seed = seed.wrapping_add(1);
            let program = campaign::program(*seed, constructs);
            if !suits(n, &program, constructs) {
                continue;
            }
            return Shape {
                clusters: program.kernels.iter().map(|k| k.cluster).collect(),
                dependent: program.kernels.iter().map(|k| k.dependent).collect(),
                host: program.host,
                graphs: program.graphs,
                constructs,
            };
        }
    }

    /// The program in this shape; none if it has another number of kernels.
    pub(super) fn apply(&self, program: Program) -> Option<Program> {
        if program.graphs.is_empty() != self.graphs.is_empty()
            || !operations_of(&program).is_empty()
        {
            return None;
        }
        let own: Vec<&Kernel> = (program.kernels.iter().enumerate())
            .filter(|(k, _)| !program.is_repeated(*k))
            .map(|(_, kernel)| kernel)
            .collect();
        let mut shaped = Program {
            graphs: self.graphs.clone(),
            host: self.host.clone(),
            ..Program::default()
        };
        for k in 0..self.clusters.len() {
            // What a graph runs again is what it ran.
            let first = match shaped.node_of(k) {
                Some((g, n, _)) => *self.graphs[g].nodes[n].kernels.first()?,
                None => k,
            };
            // What the wider kind does in clusters needs their size.
            let kernel = own.get(first)?;
            if self.constructs == Constructs::Wide && kernel.cluster != self.clusters[k] {
                return None;
            }
            shaped.kernels.push(Kernel {
                cluster: self.clusters[k],
                dependent: self.dependent[k],
                blocks: kernel.blocks.clone(),
                ..Kernel::default()
            });
        }
        let repeated = (0..shaped.kernels.len()).filter(|&k| shaped.is_repeated(k));
        let same = shaped.kernels.len() - repeated.count() == own.len();
        let shaped = launchable(&shaped);
        let blocks: usize = shaped.kernels.iter().map(|k| k.blocks.len()).sum();
        (same && blocks <= MAX_BLOCKS).then_some(shaped)
    }
}

/// Whether the `n`-th module can have the shape of the program.
fn suits(n: usize, program: &Program, constructs: Constructs) -> bool {
    const KERNELS: [usize; 8] = [1, 2, 1, 3, 2, 1, 2, 3];
    if !operations_of(program).is_empty() {
        return false;
    }
    let clusters = program.kernels.iter().any(|k| k.cluster > 1);
    let wide = constructs == Constructs::Wide;
    if wide && n % 4 == 1 {
        return !program.graphs.is_empty() && clusters;
    }
    let kernels = program.kernels.len();
    let launches = (program.host.iter())
        .filter(|s| matches!(s, HostStep::Launch { .. }))
        .count();
    let streams: BTreeSet<usize> = program.host.iter().map(|s| s.stream()).collect();
    let dependent = program.kernels.iter().any(|k| k.dependent);
    let right_kind = if wide && n % 4 == 3 {
        dependent && kernels > 1
    } else {
        let several = kernels == 1 || streams.len() > 1;
        !dependent && kernels == KERNELS[n % KERNELS.len()] && several
    };
    let alone = launches == kernels && program.graphs.is_empty();
    right_kind && alone && clusters == (wide || n % 8 == 5)
}
