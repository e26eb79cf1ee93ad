//! The wider kind of programs: clusters, mbarriers, asynchronous copies and graphs beside what the classic kind has; in some (`GROWN`)
//! dependent launches, boxes of a tensor, multicasts and arrivals behind copies as well.

use super::{Generator, Who, Widths};
use crate::program::{Block, Graph, HostStep, Kernel, Kind, Node, Place, Program, Space};
use crate::random::Random;
use crate::setup::{MAX_BLOCKS, MAX_STEPS};

/// Bytes at a time of what copies read and write.
const CHUNK: u32 = 16;
/// Where chunks begin, behind the words and flags of the classic kind.
const CHUNKS_AT: u32 = 64;
/// The chunk that kernels have in common.
const COMMON: u32 = Space::SIZE - CHUNK;

/// So many of a hundred programs have all of it. Their choice is no choice of the generator's: the others stayed what they were.
const GROWN: usize = 45;

/// A random program of the wider kind.
pub fn program(seed: u64, widths: Widths) -> Program {
    let mut g = Generator::new(seed, widths);
    g.grown = Random::new(seed ^ 0x6772_6f77).chance(GROWN);
    let graph = g.random.chance(25);
    let kernels = if graph {
        2 + g.random.below(2)
    } else {
        g.random.pick(&[1, 1, 2, 2, 3])
    };
    for _ in 0..kernels {
        g.wide_kernel(graph);
    }
    if graph {
        g.graph();
    } else {
        g.host();
        if g.grown {
            g.dependent_launches();
            g.host_operations();
        }
    }
    g.program
}

impl Generator {
    fn wide_kernel(&mut self, graph: bool) {
        let cluster = if self.random.chance(55) { 2 } else { 1 };
        let first = self.program.kernels.is_empty();
        let blocks = match (graph, cluster) {
            (true, 2) => 2,
            (true, _) => 1 + self.random.below(2),
            (_, 2) if first && self.random.chance(40) => 4,
            (_, 2) => 2,
            _ => 1 + usize::from(first) + self.random.below(2),
        };
        let many_threads = self.random.chance(75);
        let blocks: Vec<Block> = (0..blocks).map(|_| self.block(many_threads)).collect();
        self.barriers = vec![1; blocks.len()];
        self.program.kernels.push(Kernel {
            cluster,
            blocks,
            ..Kernel::default()
        });
        if self.random.chance(20) {
            self.common();
        }
        for _ in 0..1 + self.random.below(3) {
            self.wide_shape(graph);
        }
        if self.grown {
            self.grown_shape();
        }
        if self.random.chance(20) {
            self.common();
        }
    }

    fn wide_shape(&mut self, graph: bool) {
        // A flag keeps its value until a graph runs again.
        let shapes = if graph && self.random.chance(70) {
            12
        } else {
            22
        };
        match self.random.below(shapes) {
            0..=2 => self.cluster_barrier(),
            3 | 4 => self.remote_arrivals(),
            5 | 6 => self.local_phases(),
            7 => self.fetch_into_block(),
            8 => self.small_of_a_block(),
            9 => self.put_to_block(),
            10 => self.team(),
            11 => self.producer_consumer(),
            12 => self.cluster_message(),
            13 | 14 => self.put(),
            15 => self.put_groups(),
            16 | 17 => self.fetch(),
            18 => self.small(),
            19 => self.reduce(),
            20 => self.message(),
            _ => self.classic_shape(),
        }
    }

    fn classic_shape(&mut self) {
        match self.random.below(6) {
            0 => self.lock(),
            1 => self.last_block(),
            2 => self.chain(),
            3 => self.team_release(),
            4 => self.block_message(),
            _ => self.noise(),
        }
    }

    /// What other kernels touch as well.
    fn common(&mut self) {
        let who = self.anyone();
        let place = Place {
            space: Space::Checked,
            offset: COMMON,
            size: CHUNK,
        };
        match self.random.below(8) {
            0 | 1 => self.put_and_leave(who, place),
            2 => self.small_and_leave(who, place),
            3 => {
                let value = self.random.below(9) as u32;
                self.plain(who, Kind::Store(value), Self::word(place, 1));
            }
            _ => self.plain(who, Kind::Load, Self::word(place, 1)),
        }
    }

    /// Memory for a copy that nobody uses yet, if there is some.
    pub(super) fn chunk(&mut self, words: u32) -> Place {
        let size = (4 * words).next_multiple_of(CHUNK);
        let room = COMMON - CHUNKS_AT;
        let offset = CHUNKS_AT + self.chunks % room / CHUNK * CHUNK;
        if offset + size > COMMON {
            self.chunks += COMMON - offset;
            return self.chunk(words);
        }
        if !self.random.chance(7) {
            self.chunks += size;
        }
        let variable = size <= 32 && self.random.chance(6);
        Place {
            space: if variable {
                Space::Variable
            } else {
                Space::Checked
            },
            offset: if variable { 0 } else { offset },
            size,
        }
    }

    /// The `i`-th word of a chunk.
    pub(super) fn word(chunk: Place, i: usize) -> Place {
        Place {
            offset: chunk.offset + 4 * i as u32 % chunk.size,
            size: 4,
            ..chunk
        }
    }

    /// The blocks of a cluster of several.
    pub(super) fn some_cluster(&mut self) -> Option<Vec<usize>> {
        let kernel = self.program.kernels.last()?;
        let (size, blocks) = (kernel.cluster, kernel.blocks.len());
        if size < 2 || blocks < size {
            return None;
        }
        let first = self.random.below(blocks / size) * size;
        Some((first..first + size).collect())
    }

    /// All threads of these blocks.
    pub(super) fn threads_of(&self, blocks: &[usize]) -> Vec<Who> {
        let all = blocks.iter().flat_map(|&b| {
            let threads = self.blocks()[b].threads.len();
            (0..threads).map(move |t| (b, t))
        });
        all.collect()
    }

    /// The kernels become a graph, which is launched once or twice, with something else around it.
    fn graph(&mut self) {
        let n = self.program.kernels.len();
        let blocks: usize = self.program.kernels.iter().map(|k| k.blocks.len()).sum();
        let runs = if 2 * blocks <= MAX_BLOCKS && self.random.chance(50) {
            2
        } else {
            1
        };
        // Some other kernel may come before or after.
        let alone = if self.random.chance(30) { 1 } else { 0 };
        let mut nodes: Vec<Node> = Vec::new();
        for i in alone..n {
            let index = i - alone;
            let after = match self.random.below(10) {
                // At most two run at a time.
                0 | 1 if index < 2 => Vec::new(),
                2 | 3 if index == 2 => vec![0],
                _ => (0..index).collect(),
            };
            nodes.push(Node {
                kernels: vec![i],
                after,
            });
        }
        for _ in 1..runs {
            for (i, node) in nodes.iter_mut().enumerate() {
                node.kernels.push(self.program.kernels.len());
                let again = self.program.kernels[alone + i].clone();
                self.program.kernels.push(again);
            }
        }
        self.program.graphs.push(Graph { nodes });
        let streams = 1 + self.random.below(2);
        let mut steps = Vec::new();
        for run in 0..runs {
            let stream = self.random.below(streams);
            steps.push(HostStep::Graph {
                graph: 0,
                run,
                stream,
            });
            if self.random.chance(15) {
                steps.push(HostStep::Synchronize { stream });
            }
        }
        if alone == 1 {
            let stream = self.random.below(streams);
            let launch = HostStep::Launch { kernel: 0, stream };
            let at = self.random.below(steps.len() + 1);
            steps.insert(at, launch);
            if self.random.chance(40) {
                let other = self.random.below(streams);
                steps.insert(at + 1, HostStep::Record { event: 0, stream });
                steps.insert(
                    at + 2,
                    HostStep::Wait {
                        event: 0,
                        stream: other,
                    },
                );
            }
        }
        self.program.host = steps;
        self.program.host.truncate(MAX_STEPS);
    }
}
