//! Programs as PTX text: a kernel for each of theirs, a line for each of a thread's operations.
//!
//! Where a warp has one thread, its other lanes go the same way and do nothing but meet at barriers, so that the warp stays
//! of one mind. Where it has more, each goes its own way, and the others leave.

use super::asynchronous;
use super::endings::{self, Last};
use crate::program::{
    Access, Barrier, Block, Condition, Kernel, Kind, Op, Place, Program, Space, Until, WARP, Work,
};
use gsan_device::layout::{Order, Scope};
use std::fmt::Write;

/// A module that holds programs.
#[derive(Clone, Debug, Default)]
pub struct Module {
    /// The PTX.
    pub text: String,
    /// By line, from 1: whose operation stands there.
    lines: Vec<Option<At>>,
    /// Programs so far.
    programs: usize,
    labels: usize,
    /// Copies of the kernel so far.
    copies: usize,
    /// How often a wait tries again, where it does at all; `None`: as the program says.
    patience: Option<u32>,
    /// Whether threads wait at their end until the copy engine has read what it takes from their memory: a GPU asks for that.
    for_gpu: bool,
}

/// An operation of a program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct At {
    /// The program in the module.
    pub program: usize,
    /// The thread, in the order of [`Program::threads`].
    pub thread: usize,
    /// Its operation.
    pub op: usize,
}

/// The module's variable: [`Space::SIZE`] bytes for each program.
pub const VARIABLE: &str = "var";

/// Name of the `k`-th kernel of a packed module.
pub fn packed_name(kernel: usize) -> String {
    format!("all_k{kernel}")
}

/// The kernel of a packed module that makes its memory zero; a block for each program, [`Space::SIZE`]` / 4` threads.
pub const RESET: &str = "reset";

const REGISTERS: &str = ".reg .pred %p, %g, %l; .reg .b16 %k; .reg .b32 %a, %b, %c, %t, %w, %n, %r, %s, %q<4>; .reg .b64 %m, %f, %h, %v, %x;";

/// A kernel's parameters.
const PARAMETERS: &str = "(.param .u64 m, .param .u64 f, .param .align 64 .b8 h[128])";

/// Puts the parameters into registers.
const ARGUMENTS: [&str; 3] = [
    "ld.param.u64 %m, [m]; cvta.to.global.u64 %m, %m;",
    "ld.param.u64 %f, [f]; cvta.to.global.u64 %f, %f;",
    "mov.b64 %h, h; cvta.param.u64 %h, %h;",
];

/// Guards what only a warp's first lane does.
const LEAD: &str = "@%l ";

const HEADER: &str = ".version 8.6\n.target sm_90\n.address_size 64\n";

/// Name of a program's kernel.
pub fn kernel_name(program: usize, kernel: usize) -> String {
    format!("p{program}_k{kernel}")
}

/// Program and kernel of that name.
pub fn kernel_of(name: &str) -> Option<(usize, usize)> {
    let (program, kernel) = name.strip_prefix('p')?.split_once("_k")?;
    Some((program.parse().ok()?, kernel.parse().ok()?))
}

/// The program with what PTX and the hardware ask for: read-modify-writes have at least four bytes, and grids are whole
/// clusters.
pub fn launchable(program: &Program) -> Program {
    let mut program = program.clone();
    for kernel in &mut program.kernels {
        for block in &mut kernel.blocks {
            for op in block.threads.iter_mut().flatten() {
                if let Op::Access(access) = op
                    && access.kind.is_rmw()
                {
                    let size = access.place.size.clamp(4, 8);
                    access.place.offset = access.place.offset / size * size;
                    access.place.size = size;
                }
            }
        }
        let blocks = kernel.blocks.len().next_multiple_of(kernel.cluster.max(1));
        kernel.blocks.resize(
            blocks,
            Block {
                threads: vec![Vec::new()],
                lanes: 1,
                mbarriers: Vec::new(),
            },
        );
    }
    program
}

impl Module {
    /// A module for `programs` programs, whose waits try that often.
    pub fn new(programs: usize, patience: Option<u32>) -> Module {
        let mut module = Module {
            patience,
            // There is no line 0.
            lines: vec![None],
            ..Module::default()
        };
        let bytes = Space::SIZE as usize * programs.max(1);
        let variable = format!(".visible .global .align 16 .b8 {VARIABLE}[{bytes}];");
        let shared = asynchronous::declaration();
        for line in HEADER.lines().chain([variable.as_str(), shared.as_str()]) {
            module.line(line);
        }
        module
    }

    /// Adds a program; what [`launchable`] has made of it.
    pub fn add(&mut self, program: &Program) {
        let mut thread = 0;
        for (k, kernel) in program.kernels.iter().enumerate() {
            if !program.is_repeated(k) && kernel.work == Work::Grid {
                self.kernel(k, kernel, thread);
            }
            thread += kernel.blocks.iter().map(|b| b.threads.len()).sum::<usize>();
        }
        self.programs += 1;
    }

    /// The lines of a program's operations.
    pub fn lines_of(&self, program: usize) -> impl Iterator<Item = usize> {
        let lines = self.lines.iter().enumerate();
        lines.filter_map(move |(n, at)| (at.as_ref()?.program == program).then_some(n))
    }

    /// Whose operation stands in a line.
    pub fn at(&self, line: u32) -> Option<At> {
        *self.lines.get(line as usize)?
    }

    fn line(&mut self, text: &str) {
        self.text.push_str(text);
        self.text.push('\n');
        self.lines.push(None);
    }

    fn marked(&mut self, text: &str, at: At) {
        self.line(text);
        if let Some(last) = self.lines.last_mut() {
            *last = Some(at);
        }
    }

    fn label(&mut self) -> String {
        self.labels += 1;
        format!("L{}", self.labels)
    }

    fn kernel(&mut self, index: usize, kernel: &Kernel, first_thread: usize) {
        let name = kernel_name(self.programs, index);
        self.line(&format!(".visible .entry {name}{PARAMETERS}"));
        self.line("{");
        self.line(REGISTERS);
        self.line("mov.u32 %b, %ctaid.x;");
        ARGUMENTS.iter().for_each(|line| self.line(line));
        self.blocks(kernel, first_thread);
    }

    /// The same as a function, for [`Module::pack`]: it is told the block's number in the program.
    fn function(&mut self, index: usize, kernel: &Kernel, first_thread: usize) {
        let name = kernel_name(self.programs, index);
        self.line(&format!(
            ".func {name}(.param .b32 b, .param .b64 m, .param .b64 f, .param .b64 h)"
        ));
        self.line("{");
        self.line(REGISTERS);
        self.line("ld.param.b32 %b, [b]; ld.param.b64 %m, [m]; ld.param.b64 %f, [f]; ld.param.b64 %h, [h];");
        self.blocks(kernel, first_thread);
    }

    /// What a kernel's blocks do, to the closing brace.
    fn blocks(&mut self, kernel: &Kernel, first_thread: usize) {
        let offset = self.programs * Space::SIZE as usize;
        self.line(&format!(
            "mov.u64 %v, {VARIABLE}; add.u64 %v, %v, {offset};"
        ));
        self.line("mov.u32 %t, %tid.x; shr.u32 %w, %t, 5;");
        self.line("and.b32 %s, %t, 31; setp.eq.u32 %l, %s, 0;");
        for line in asynchronous::initialisation(kernel) {
            self.line(&line);
        }
        self.copies = 0;
        let end = self.label();
        let mut bodies = Vec::new();
        let mut thread = first_thread;
        for (b, block) in kernel.blocks.iter().enumerate() {
            for t in 0..block.threads.len() {
                let body = self.label();
                let linear = block.linear(t);
                let who = match block.lanes() {
                    1 => format!("%w, {}", linear as usize / WARP),
                    _ => format!("%t, {linear}"),
                };
                self.line(&format!(
                    "setp.eq.u32 %p, %b, {b}; setp.eq.and.u32 %p, {who}, %p; @%p bra {body};"
                ));
                bodies.push((body, b, t, thread));
                thread += 1;
            }
        }
        self.line(&format!("bra {end};"));
        for (label, b, t, thread) in bodies {
            let block = &kernel.blocks[b];
            self.line(&format!("{label}:"));
            let lasts = endings::phases(kernel, b);
            if !self.for_gpu && lasts.is_empty() {
                self.thread(block, t, thread, &end);
                continue;
            }
            let through = self.label();
            self.thread(block, t, thread, &through);
            self.line(&format!("{through}:"));
            self.ending(block, t, (first_thread, thread), &lasts);
            self.line(&format!("bra {end};"));
        }
        self.line(&format!("{end}:"));
        self.line("ret;");
        self.line("}");
    }

    /// A module in which the `k`-th kernels of all programs are one, [`packed_name`], whose grid has all their blocks,
    /// in the order of the programs. A GPU's compiler takes its time for each kernel.
    pub fn pack(programs: &[&Program], patience: Option<u32>) -> Module {
        let mut module = Module::new(programs.len(), patience);
        module.for_gpu = true;
        for program in programs {
            let mut thread = 0;
            for (k, kernel) in program.kernels.iter().enumerate() {
                if !program.is_repeated(k) {
                    module.function(k, kernel, thread);
                }
                thread += kernel.blocks.iter().map(|b| b.threads.len()).sum::<usize>();
            }
            module.programs += 1;
        }
        let kernels = programs.iter().map(|p| p.kernels.len()).max().unwrap_or(0);
        for k in 0..kernels {
            let has_text = |p: &&Program| k < p.kernels.len() && !p.is_repeated(k);
            if programs.iter().any(has_text) {
                module.packed(programs, k);
            }
        }
        module.reset(programs.len());
        module
    }

    fn packed(&mut self, programs: &[&Program], k: usize) {
        let name = packed_name(k);
        self.line(&format!(".visible .entry {name}{PARAMETERS}"));
        self.line("{");
        self.line(".reg .pred %p; .reg .b32 %b; .reg .b64 %m, %f, %h;");
        self.line("mov.u32 %b, %ctaid.x;");
        ARGUMENTS.iter().for_each(|line| self.line(line));
        let end = self.label();
        for (n, program) in programs.iter().enumerate() {
            // What a graph runs again has no text of its own.
            let kernel = program.kernels.get(k).filter(|_| !program.is_repeated(k));
            if let Some(kernel) = kernel {
                let (blocks, next) = (kernel.blocks.len(), self.label());
                self.line(&format!("setp.ge.u32 %p, %b, {blocks}; @%p bra {next};"));
                let function = kernel_name(n, k);
                self.line(&format!(
                    "call.uni {function}, (%b, %m, %f, %h); bra {end};"
                ));
                self.line(&format!("{next}:"));
                self.line(&format!("sub.u32 %b, %b, {blocks};"));
            }
            let size = Space::SIZE;
            self.line(&format!("add.u64 %m, %m, {size}; add.u64 %f, %f, {size};"));
        }
        self.line(&format!("{end}:"));
        self.line("ret;");
        self.line("}");
    }

    /// A kernel that makes all memory zero again, a thread for each word of a program's.
    fn reset(&mut self, programs: usize) {
        let words = Space::SIZE / 4;
        self.line(&format!(
            ".visible .entry {RESET}(.param .u64 m, .param .u64 f)"
        ));
        self.line("{");
        self.line(".reg .b32 %b, %t; .reg .b64 %m, %f, %v, %x; .reg .pred %p;");
        self.line("ld.param.u64 %m, [m]; cvta.to.global.u64 %m, %m;");
        self.line("ld.param.u64 %f, [f]; cvta.to.global.u64 %f, %f;");
        self.line("mov.u32 %b, %ctaid.x; mov.u32 %t, %tid.x;");
        self.line(&format!(
            "setp.ge.u32 %p, %b, {programs}; @%p exit; mad.lo.u32 %t, %b, {words}, %t;"
        ));
        self.line(&format!("mul.wide.u32 %x, %t, 4; mov.u64 %v, {VARIABLE};"));
        for base in ["%m", "%f", "%v"] {
            self.line(&format!("add.u64 {base}, {base}, %x;"));
            self.line(&format!("st.global.u32 [{base}], 0;"));
        }
        self.line("ret;");
        self.line("}");
    }

    fn thread(&mut self, block: &Block, t: usize, thread: usize, end: &str) {
        let ops = &block.threads[t];
        let alone = block.lanes() == 1;
        let guard = if alone { LEAD } else { "" };
        let skipped = |op: &Op| matches!(op, Op::Access(_) | Op::Fence { .. });
        // Where a thread goes on that gives up: all that is left but its accesses and fences.
        let rest: Vec<(usize, String)> = (ops.iter().enumerate())
            .filter(|(_, op)| !skipped(op))
            .map(|(i, _)| (i, self.label()))
            .collect();
        let mut gives_up = false;
        let first_copy = self.copies;
        for (i, op) in ops.iter().enumerate() {
            let at = At {
                program: self.programs,
                thread,
                op: i,
            };
            match op {
                Op::Access(access) => {
                    let rest = rest.iter().find(|(b, _)| *b > i);
                    let give_up = rest.map_or(end, |(_, label)| label);
                    gives_up |= rest.is_some() && access.until.is_some();
                    self.access(access, at, give_up, alone);
                }
                Op::Fence { order, scope } => {
                    let text = format!("{guard}fence{}{};", suffix(*order), dotted(*scope));
                    self.marked(&text, at);
                }
                _ => self.operation(op, block, at),
            }
        }
        self.line(&format!("bra {end};"));
        if !gives_up {
            return;
        }
        self.copies = first_copy;
        for (op, label) in &rest {
            self.line(&format!("{label}:"));
            let at = At {
                program: self.programs,
                thread,
                op: *op,
            };
            self.operation(&ops[*op], block, at);
        }
        self.line(&format!("bra {end};"));
    }

    /// What a thread does before it leaves; given the numbers of the kernel's first thread and its own. On the simulator these are none of the
    /// program's operations, whose record has to fit.
    fn ending(&mut self, block: &Block, t: usize, (first, thread): (usize, usize), lasts: &[Last]) {
        let program = self.programs;
        let at = |thread, op| At {
            program,
            thread,
            op,
        };
        let guard = if block.lanes() == 1 { LEAD } else { "" };
        if let Some(op) = endings::last_put(&block.threads[t]).filter(|_| self.for_gpu) {
            for line in endings::put_lines(guard) {
                self.marked(&line, at(thread, op));
            }
        }
        if lasts.is_empty() {
            return;
        }
        // All that take part in the program meet: the block has touched all that it touches.
        self.line(&barrier_text(Barrier::ALL, block));
        for &Last {
            mbarrier,
            phase,
            by,
        } in lasts.iter().filter(|_| t == 0)
        {
            let wait = Op::Await {
                mbarrier,
                phase,
                scope: Scope::Cluster,
            };
            let from = self.lines.len();
            self.operation(&wait, block, at(first + by.0, by.1));
            if !self.for_gpu {
                self.lines[from..].fill(None);
            }
        }
    }

    /// What also a thread does that has given up.
    fn operation(&mut self, op: &Op, block: &Block, at: At) {
        let alone = block.lanes() == 1;
        let guard = if alone { LEAD } else { "" };
        if let Op::Barrier(barrier) = op {
            return self.marked(&barrier_text(*barrier, block), at);
        }
        let lines = asynchronous::lines(op, guard, (self.programs, self.copies), address);
        self.copies += usize::from(matches!(op, Op::Copy(_)));
        let Some((last, before)) = lines.split_last() else {
            return;
        };
        before.iter().for_each(|line| self.line(line));
        let Op::Await { .. } = op else {
            return self.marked(last, at);
        };
        let again = self.label();
        self.line(&format!("{again}:"));
        self.marked(last, at);
        if alone {
            self.line("selp.u32 %s, 1, 0, %g; shfl.sync.idx.b32 %s, %s, 0, 31, 0xffffffff;");
            self.line("setp.ne.u32 %g, %s, 0;");
        }
        self.line(&format!("@!%g bra {again};"));
    }

    fn access(&mut self, access: &Access, at: At, give_up: &str, alone: bool) {
        let guard = if alone { LEAD } else { "" };
        let text = format!("{guard}{}", access_text(access));
        let Some(Until { condition, retries }) = access.until else {
            return self.marked(&text, at);
        };
        let retries = match self.patience {
            Some(patience) if retries > 0 => patience,
            _ => retries,
        };
        let (again, done) = (self.label(), self.label());
        self.line(&format!("mov.u32 %n, {retries};"));
        self.line(&format!("{again}:"));
        self.marked(&text, at);
        let (compare, value) = match condition {
            Condition::AtLeast(v) => ("ge", v),
            Condition::Equals(v) => ("eq", v),
        };
        let (bits, register) = match access.place.size {
            8 => (64, "%x"),
            _ => (32, "%r"),
        };
        self.line(&format!("setp.{compare}.u{bits} %p, {register}, {value};"));
        if alone {
            self.line("selp.u32 %s, 1, 0, %p; shfl.sync.idx.b32 %s, %s, 0, 31, 0xffffffff;");
            self.line("setp.ne.u32 %p, %s, 0;");
        }
        self.line(&format!("@%p bra {done};"));
        self.line(&format!("setp.eq.u32 %g, %n, 0; @%g bra {give_up};"));
        if self.patience.is_some() {
            self.line("nanosleep.u32 200;");
        }
        self.line(&format!("sub.u32 %n, %n, 1; bra {again};"));
        self.line(&format!("{done}:"));
    }
}

fn barrier_text(barrier: Barrier, block: &Block) -> String {
    let name = if barrier.arrive { "arrive" } else { "sync" };
    // `bar` is for warps that are of one mind.
    let family = if block.lanes() > 1 { "barrier" } else { "bar" };
    let mut text = format!("{family}.{name} {}", barrier.id);
    if barrier.count > 0 {
        let _ = write!(text, ", {}", barrier.count);
    }
    text.push(';');
    text
}

fn suffix(order: Order) -> &'static str {
    match order {
        Order::Weak => ".weak",
        Order::Relaxed => ".relaxed",
        Order::Acquire => ".acquire",
        Order::Release => ".release",
        Order::AcqRel => ".acq_rel",
        Order::Sc => ".sc",
    }
}

fn dotted(scope: Scope) -> &'static str {
    match scope {
        Scope::None => "",
        Scope::Cta => ".cta",
        Scope::Cluster => ".cluster",
        Scope::Gpu => ".gpu",
        Scope::Sys => ".sys",
    }
}

fn address(place: Place) -> String {
    let base = match place.space {
        Space::Checked => "%m",
        Space::Variable => "%v",
        Space::Foreign => "%f",
    };
    format!("[{base}+{}]", place.offset)
}

fn access_text(access: &Access) -> String {
    let order = if access.volatile {
        ".volatile".to_string()
    } else {
        format!("{}{}", suffix(access.order), dotted(access.scope))
    };
    let (size, at) = (access.place.size, address(access.place));
    let bits = 8 * size;
    let register = if size == 8 { "%x" } else { "%r" };
    match access.kind {
        Kind::Load if size == 16 => {
            format!("ld{order}.global.v4.u32 {{%q0, %q1, %q2, %q3}}, {at};")
        }
        Kind::Load => format!("ld{order}.global.u{bits} {register}, {at};"),
        Kind::Paste => String::new(),
        Kind::Store(v) if size == 16 => format!("st{order}.global.v4.u32 {at}, {{{v}, 0, 0, 0}};"),
        Kind::Store(v) => format!("st{order}.global.u{bits} {at}, {v};"),
        Kind::Add(v) => format!("atom{order}.global.add.u{bits} {register}, {at}, {v};"),
        Kind::Exchange(v) => format!("atom{order}.global.exch.b{bits} {register}, {at}, {v};"),
        Kind::Cas { expect, new } => {
            format!("atom{order}.global.cas.b{bits} {register}, {at}, {expect}, {new};")
        }
        Kind::Reduce(v) => format!("red{order}.global.add.u{bits} {at}, {v};"),
    }
}
