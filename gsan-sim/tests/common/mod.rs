//! What the machine's tests share: a kernel in, buffers out.
#![allow(dead_code)]

use gsan_sim::Config;
use gsan_sim::machine::{FunctionId, GridId, LaunchDesc, Machine, ModuleId, RunEvent, Stop};

/// A machine with one module.
pub struct Bench {
    pub machine: Machine,
    pub module: ModuleId,
}

/// `.version`, `.target` and so on before a snippet.
pub const HEADER: &str = ".version 8.0\n.target sm_90\n.address_size 64\n";

impl Bench {
    pub fn new(ptx: &str) -> Bench {
        Bench::with(Config::default(), ptx)
    }

    pub fn with(config: Config, ptx: &str) -> Bench {
        let mut machine = Machine::new(config);
        let text = if ptx.contains(".version") {
            ptx.to_string()
        } else {
            format!("{HEADER}{ptx}")
        };
        let module = machine
            .load_module(0, &text)
            .unwrap_or_else(|e| panic!("{e}\n{text}"));
        Bench { machine, module }
    }

    pub fn buffer(&mut self, bytes: &[u8]) -> u64 {
        let va = self
            .machine
            .memory_mut()
            .allocate(0, bytes.len() as u64)
            .unwrap();
        self.machine.memory_mut().write(va, bytes).unwrap();
        va
    }

    pub fn words(&mut self, words: &[u32]) -> u64 {
        let bytes: Vec<u8> = words.iter().flat_map(|w| w.to_le_bytes()).collect();
        self.buffer(&bytes)
    }

    pub fn read(&self, va: u64, n: usize) -> Vec<u32> {
        let mut bytes = vec![0; 4 * n];
        self.machine.memory().read(va, &mut bytes).unwrap();
        bytes
            .chunks_exact(4)
            .map(|c| u32::from_le_bytes(c.try_into().unwrap()))
            .collect()
    }

    pub fn read64(&self, va: u64, n: usize) -> Vec<u64> {
        let mut bytes = vec![0; 8 * n];
        self.machine.memory().read(va, &mut bytes).unwrap();
        bytes
            .chunks_exact(8)
            .map(|c| u64::from_le_bytes(c.try_into().unwrap()))
            .collect()
    }

    pub fn kernel(&self, name: &str) -> FunctionId {
        self.machine
            .function(self.module, name)
            .unwrap_or_else(|| panic!("no kernel {name}"))
    }

    /// Lays out the arguments (all of the sizes that the kernel says) and launches.
    pub fn start(
        &mut self,
        name: &str,
        grid: [u32; 3],
        block: [u32; 3],
        shared: u32,
        args: &[u64],
    ) -> GridId {
        let f = self.kernel(name);
        let info = self.machine.function_info(f).unwrap();
        let mut params = vec![0; info.param_bytes as usize];
        assert_eq!(info.params.len(), args.len());
        for (&(offset, size), arg) in info.params.iter().zip(args) {
            let n = size.min(8) as usize;
            params[offset as usize..offset as usize + n].copy_from_slice(&arg.to_le_bytes()[..n]);
        }
        let launch = LaunchDesc {
            device: 0,
            function: f,
            grid,
            block,
            cluster: [1; 3],
            dynamic_shared: shared,
            user_dynamic: None,
            params,
            cooperative: false,
        };
        self.machine.launch(launch).unwrap()
    }

    /// A cooperative launch, or one in clusters along x.
    pub fn start_together(
        &mut self,
        name: &str,
        grid: u32,
        block: u32,
        cluster: u32,
        cooperative: bool,
        args: &[u64],
    ) -> GridId {
        let f = self.kernel(name);
        let info = self.machine.function_info(f).unwrap();
        let mut params = vec![0; info.param_bytes as usize];
        for (&(offset, size), arg) in info.params.iter().zip(args) {
            let n = size.min(8) as usize;
            params[offset as usize..offset as usize + n].copy_from_slice(&arg.to_le_bytes()[..n]);
        }
        let launch = LaunchDesc {
            device: 0,
            function: f,
            grid: [grid, 1, 1],
            block: [block, 1, 1],
            cluster: [cluster, 1, 1],
            dynamic_shared: 512,
            user_dynamic: None,
            params,
            cooperative,
        };
        self.machine.launch(launch).unwrap()
    }

    pub fn finish(&mut self) -> Result<(), Stop> {
        loop {
            match self.machine.run(1 << 40) {
                RunEvent::Completed(_) => {}
                RunEvent::Idle => return Ok(()),
                RunEvent::Yield => panic!("the step limit was reached"),
                RunEvent::Stopped(stop) => return Err(stop),
            }
        }
    }

    pub fn try_run(&mut self, name: &str, grid: u32, block: u32, args: &[u64]) -> Result<(), Stop> {
        self.start(name, [grid, 1, 1], [block, 1, 1], 0, args);
        self.finish()
    }

    pub fn run(&mut self, name: &str, grid: u32, block: u32, args: &[u64]) {
        self.try_run(name, grid, block, args)
            .unwrap_or_else(|s| panic!("{s}"));
    }
}

/// A configuration with a seed.
pub fn seeded(seed: u64) -> Config {
    let mut config = Config::default();
    config.seed = seed;
    config
}
