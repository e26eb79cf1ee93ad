//! The kernels that are timed, and how each is launched.

/// The module with all of them (`bench/kernels/throughput.cu`).
pub const MODULE: &str = include_str!("../kernels/ptx/throughput.ptx");

/// How large everything is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Sizes {
    /// Words of the input and of the output; a power of two.
    pub words: u64,
    /// Words of the table that every block reads; a power of two.
    pub table: u64,
    /// Rows of the matrices; a multiple of 16.
    pub matrix: u32,
    /// Blocks of 256 threads that stride over the input.
    pub blocks: u32,
}

impl Sizes {
    /// For a GPU with that many multiprocessors: 256 MiB in, 256 MiB out, matrices of 2048 rows.
    pub fn gpu(sms: u32) -> Sizes {
        Sizes {
            words: 64 << 20,
            table: 256 << 10,
            matrix: 2048,
            blocks: sms.max(1) * 8,
        }
    }

    /// For the simulator, which runs some million instructions a second.
    pub fn simulator() -> Sizes {
        Sizes {
            words: 16 << 10,
            table: 1 << 10,
            matrix: 64,
            blocks: 8,
        }
    }

    /// Whether the kernels can be run like this.
    pub fn check(&self) -> Result<(), String> {
        if !self.words.is_power_of_two() || self.words < 16 {
            return Err(format!(
                "words = {}: it is a power of two from 16 on",
                self.words
            ));
        }
        if !self.table.is_power_of_two() || self.table > self.words {
            return Err(format!(
                "table = {}: it is a power of two, at most words",
                self.table
            ));
        }
        if self.matrix == 0 || !self.matrix.is_multiple_of(16) {
            return Err(format!("matrix = {}: it is a multiple of 16", self.matrix));
        }
        if 2 * u64::from(self.matrix) * u64::from(self.matrix) > self.words {
            return Err(format!(
                "matrix = {}: two such matrices do not fit {} words",
                self.matrix, self.words
            ));
        }
        if self.blocks == 0 {
            return Err("blocks = 0".into());
        }
        Ok(())
    }
}

/// A kernel's argument, before there are buffers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Arg {
    /// The input, that many words into it.
    Input(u64),
    /// The output.
    Output,
    /// A number.
    U32(u32),
    /// A number.
    U64(u64),
}

/// One kernel launch that is timed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Workload {
    /// The kernel, and what the table calls it.
    pub kernel: &'static str,
    /// Blocks.
    pub grid: [u32; 3],
    /// Threads per block.
    pub block: [u32; 3],
    /// Its arguments.
    pub args: Vec<Arg>,
    /// Bytes that its loads and stores ask for.
    pub bytes: u64,
}

/// The five patterns.
pub fn all(sizes: &Sizes) -> Vec<Workload> {
    let &Sizes {
        words,
        table,
        matrix,
        blocks,
    } = sizes;
    let strided = |kernel, args: Vec<Arg>, bytes| Workload {
        kernel,
        grid: [blocks, 1, 1],
        block: [256, 1, 1],
        args,
        bytes,
    };
    let n = u64::from(matrix);
    let tiles = matrix / 16;
    vec![
        strided(
            "copy",
            vec![Arg::Input(0), Arg::Output, Arg::U64(words)],
            8 * words,
        ),
        strided(
            "copy4",
            vec![Arg::Input(0), Arg::Output, Arg::U64(words / 4)],
            8 * words,
        ),
        strided(
            "table",
            vec![Arg::Input(0), Arg::Output, Arg::U64(words), Arg::U64(table)],
            8 * words,
        ),
        strided(
            "gather",
            vec![Arg::Input(0), Arg::Output, Arg::U64(words)],
            8 * words,
        ),
        Workload {
            kernel: "matmul",
            grid: [tiles, tiles, 1],
            block: [16, 16, 1],
            args: vec![
                Arg::Input(0),
                Arg::Input(n * n),
                Arg::Output,
                Arg::U32(matrix),
            ],
            // Each thread reads a row and a column's worth through the tiles, and writes one word.
            bytes: 4 * (2 * n * n * (n / 16) + n * n),
        },
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_workload_is_a_kernel_of_the_module_with_that_many_parameters() {
        let module = gsan_ptx::parse(MODULE).unwrap();
        let kernels: Vec<_> = module
            .items
            .iter()
            .filter_map(|item| match item {
                gsan_ptx::ast::Item::Function(f) if f.entry => Some((f.name, f.params.len())),
                _ => None,
            })
            .collect();
        for w in all(&Sizes::simulator()) {
            assert!(
                kernels.contains(&(w.kernel, w.args.len())),
                "{w:?} {kernels:?}"
            );
        }
    }

    #[test]
    fn sizes_that_the_kernels_cannot_take_are_refused() {
        let good = Sizes::simulator();
        assert_eq!(good.check(), Ok(()));
        assert_eq!(Sizes::gpu(132).check(), Ok(()));
        assert!(
            Sizes {
                words: 1000,
                ..good
            }
            .check()
            .is_err()
        );
        assert!(
            Sizes {
                table: good.words * 2,
                ..good
            }
            .check()
            .is_err()
        );
        assert!(Sizes { matrix: 40, ..good }.check().is_err());
        assert!(
            Sizes {
                matrix: 4096,
                ..good
            }
            .check()
            .is_err()
        );
        assert!(Sizes { blocks: 0, ..good }.check().is_err());
    }
}
