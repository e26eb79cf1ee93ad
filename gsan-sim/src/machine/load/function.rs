//! Decodes one function: scopes, registers, labels, and the walk over its statements.

use gsan_ptx::ast::{self, Guard, Instruction, Statement};
use rustc_hash::FxHashMap;

use super::{Context, Symbol, layout};
use crate::machine::LoadError;
use crate::machine::ir::{
    Addr, Base, Function, Inst, Line, Mem, Op, PredSrc, Program, Reg, Space, Src,
};
use crate::machine::ty::Ty;
use crate::machine::weak::Strength;

/// Why an instruction could not be decoded.
pub enum Problem {
    /// The machine lacks it: it stops the run when it is executed.
    Unsupported(String),
    /// The module is wrong: it is refused.
    Invalid(String),
}

/// What decoding gives.
pub type Decoded<T> = Result<T, Problem>;

/// A declared register.
#[derive(Debug, Clone, Copy)]
pub struct Register {
    /// Slot among the registers, or among the predicates.
    pub slot: u32,
    /// Its type.
    pub ty: Ty,
}

/// Registers declared with one name.
#[derive(Debug, Clone, Copy)]
struct Declaration {
    id: u32,
    ty: Ty,
    count: Option<u32>,
}

#[derive(Default)]
struct Scope<'a> {
    registers: FxHashMap<&'a str, Declaration>,
    variables: FxHashMap<&'a str, Symbol>,
    labels: FxHashMap<&'a str, u32>,
    targets: FxHashMap<&'a str, Vec<&'a str>>,
}

/// Constants of a program by value.
pub type Constants = FxHashMap<u64, u32>;

/// Decodes a function.
pub struct Decoder<'d, 'a> {
    /// The module's names.
    pub context: &'d Context<'a>,
    program: &'d mut Program,
    constants: &'d mut Constants,
    function: Function,
    scopes: Vec<Scope<'a>>,
    declarations: u32,
    slots: FxHashMap<(u32, u32), Register>,
    cache: FxHashMap<&'a str, Register>,
    label_places: Vec<u32>,
    lifetimes: FxHashMap<u32, (u32, u32)>,
    wide: FxHashMap<u32, u32>,
    /// The guard of the instruction that is being decoded.
    pub guard: PredSrc,
    line: Line,
    strength: Strength,
    loc: (u32, u32),
    /// `.reg` results of a `.func`: stored before each `ret`.
    register_returns: Vec<(Reg, u32, u32)>,
}

/// Decodes a function and appends its code to the program.
pub fn decode<'a>(
    f: &ast::Function<'a>,
    context: &Context<'a>,
    program: &mut Program,
    constants: &mut Constants,
) -> Result<Function, LoadError> {
    let start = program.code.len() as u32;
    let mut d = Decoder {
        context,
        program,
        constants,
        function: Function {
            name: f.name.to_string(),
            entry: f.entry,
            start,
            preds: 1,
            ..Function::default()
        },
        scopes: vec![Scope::default()],
        declarations: 0,
        slots: FxHashMap::default(),
        cache: FxHashMap::default(),
        label_places: Vec::new(),
        lifetimes: FxHashMap::default(),
        wide: FxHashMap::default(),
        guard: PredSrc::TRUE,
        line: Line {
            ptx: context.place(f.span.start).0,
            ..Line::default()
        },
        strength: Strength::WEAK,
        loc: (0, 0),
        register_returns: Vec::new(),
    };
    d.parameters(f)?;
    if let Some(body) = &f.body {
        d.enter(&body.statements);
        d.statements(&body.statements)?;
        d.scopes.pop();
        // Control that runs off the end returns.
        d.line.ptx = context.place(body.end).0;
        d.guard = PredSrc::TRUE;
        d.emit_return();
    }
    d.finish()
}

/// Bytes of arguments that a function without a fixed number of them can be given.
const VARIADIC: u32 = 1 << 12;

impl<'a> Decoder<'_, 'a> {
    fn parameters(&mut self, f: &ast::Function<'a>) -> Result<(), LoadError> {
        if f.entry {
            let (offsets, _) = layout::params(&f.params);
            for (v, (offset, size)) in f.params.iter().zip(offsets) {
                self.scopes[0]
                    .variables
                    .insert(v.name, Symbol::Param(offset, size));
            }
            return Ok(());
        }
        for (list, results) in [(&f.returns, true), (&f.params, false)] {
            for v in list.iter() {
                let (offset, size) = if v.dims.first() == Some(&None) && !results {
                    // `.param .b8 %VAParam[]`: what the caller passes beyond the others.
                    (self.frame_bytes(VARIADIC, layout::align_of(v)), VARIADIC)
                } else {
                    self.frame_variable(v)?
                };
                if results {
                    self.function.returns.push((offset, size));
                } else {
                    self.function.params.push((offset, size));
                }
                if v.space == ast::Space::Reg {
                    self.register_parameter(v, offset, size, results);
                } else {
                    self.scopes[0]
                        .variables
                        .insert(v.name, Symbol::Frame(offset, size));
                }
            }
        }
        Ok(())
    }

    fn register_parameter(&mut self, v: &ast::Variable<'a>, offset: u32, size: u32, result: bool) {
        let ty = Ty::parse(v.ty).unwrap_or(Ty::B64);
        self.declare(v.name, ty, None);
        let Some(register) = self.register(v.name) else {
            return;
        };
        if result {
            self.register_returns.push((register.slot, offset, size));
        } else {
            let mem = Mem {
                bytes: size.min(8) as u8,
                signed: false,
                register: size.min(8) as u8,
            };
            let addr = Addr {
                base: Base::Frame,
                offset: i64::from(offset),
            };
            self.emit(Op::Load {
                space: Space::Local,
                mem,
                d: register.slot,
                addr,
            });
        }
    }

    fn frame_variable(&mut self, v: &ast::Variable<'a>) -> Result<(u32, u32), LoadError> {
        let size = layout::size_of(v)
            .filter(|&s| s <= 1 << 24)
            .ok_or_else(|| {
                self.context.error(
                    v.span.start,
                    format!("`{}` is too large for a thread's local memory", v.name),
                )
            })? as u32;
        Ok((self.frame_bytes(size, layout::align_of(v)), size))
    }

    /// Room in the frame. Everything starts on an 8-byte word of its own.
    pub fn frame_bytes(&mut self, size: u32, align: u32) -> u32 {
        let at = self.function.frame.next_multiple_of(align.clamp(8, 128));
        self.function.frame = at + size.next_multiple_of(8);
        at
    }

    /// Opens a scope and numbers its labels, which may be used before they stand.
    fn enter(&mut self, statements: &[Statement<'a>]) {
        let mut scope = Scope::default();
        for s in statements {
            match s {
                Statement::Label { name, .. } => {
                    scope.labels.insert(name, self.label_places.len() as u32);
                    self.label_places.push(u32::MAX);
                }
                Statement::Targets { name, targets, .. } => {
                    scope.targets.insert(name, targets.clone());
                }
                _ => {}
            }
        }
        self.scopes.push(scope);
        self.cache.clear();
    }

    fn statements(&mut self, statements: &[Statement<'a>]) -> Result<(), LoadError> {
        for s in statements {
            match s {
                Statement::Instruction(i) => self.instruction(i)?,
                Statement::Label { name, .. } => {
                    if let Some(&id) = self.scopes.last().and_then(|s| s.labels.get(name)) {
                        self.label_places[id as usize] = self.program.code.len() as u32;
                    }
                }
                Statement::Block { statements, .. } => {
                    self.enter(statements);
                    self.statements(statements)?;
                    self.scopes.pop();
                    self.cache.clear();
                }
                Statement::Registers {
                    ty,
                    vector,
                    names,
                    span,
                } => {
                    let parsed = Ty::parse(ty).filter(|_| *vector <= 1);
                    let ty = parsed.ok_or_else(|| {
                        self.context.error(
                            span.start,
                            format!("registers of type `.{ty}` are not supported"),
                        )
                    })?;
                    for (name, count) in names {
                        self.declare(name, ty, *count);
                    }
                }
                Statement::Variable(v) => self.variable(v)?,
                Statement::Loc(loc) => self.loc = (loc.file, loc.line),
                Statement::Unknown { span } => {
                    self.begin(span.start);
                    let text = self.context.text.get(span.clone()).unwrap_or_default();
                    self.unsupported(text.trim().to_string());
                }
                Statement::Pragma { .. }
                | Statement::Targets { .. }
                | Statement::CallPrototype { .. } => {}
            }
        }
        Ok(())
    }

    fn variable(&mut self, v: &ast::Variable<'a>) -> Result<(), LoadError> {
        let symbol = match v.space {
            ast::Space::Local | ast::Space::Param => {
                let (offset, size) = self.frame_variable(v)?;
                Symbol::Frame(offset, size)
            }
            ast::Space::Shared if v.linkage == Some("extern") => {
                Symbol::DynamicShared(layout::align_of(v))
            }
            ast::Space::Shared => {
                Symbol::Shared(self.context.shared.get(&v.span.start).copied().unwrap_or(0))
            }
            _ => Symbol::Memory(self.context.inner.get(&v.span.start).copied().unwrap_or(0)),
        };
        if let Some(scope) = self.scopes.last_mut() {
            scope.variables.insert(v.name, symbol);
        }
        Ok(())
    }

    fn declare(&mut self, name: &'a str, ty: Ty, count: Option<u32>) {
        let id = self.declarations;
        self.declarations += 1;
        if let Some(scope) = self.scopes.last_mut() {
            scope.registers.insert(name, Declaration { id, ty, count });
        }
        self.cache.clear();
    }

    fn begin(&mut self, offset: usize) {
        self.line = Line {
            ptx: self.context.place(offset).0,
            file: self.loc.0,
            line: self.loc.1,
        };
        self.guard = PredSrc::TRUE;
        self.strength = Strength::WEAK;
    }

    fn instruction(&mut self, i: &Instruction<'a>) -> Result<(), LoadError> {
        self.begin(i.span.start);
        self.strength = Strength::parse(i.opcode, i.modifiers.iter().copied());
        let before = self.program.code.len();
        let done = self.guard_of(i.guard.as_ref()).and_then(|g| {
            self.guard = g;
            super::opcode::decode(self, i)
        });
        match done {
            Ok(()) => Ok(()),
            Err(Problem::Invalid(message)) => Err(self.context.error(i.span.start, message)),
            Err(Problem::Unsupported(why)) => {
                self.program.code.truncate(before);
                self.program.lines.truncate(before);
                self.program.strengths.truncate(before);
                let text = self.context.text.get(i.span.clone()).unwrap_or_default();
                let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
                self.unsupported(if why.is_empty() {
                    text
                } else {
                    format!("{text} ({why})")
                });
                Ok(())
            }
        }
    }

    fn unsupported(&mut self, what: String) {
        self.program.unsupported.push((self.line.ptx, what.clone()));
        self.emit(Op::Unsupported(what.into()));
    }

    fn guard_of(&mut self, guard: Option<&Guard<'a>>) -> Decoded<PredSrc> {
        match guard {
            None => Ok(PredSrc::TRUE),
            Some(g) => Ok(PredSrc::slot(self.predicate(g.register)?, g.negated)),
        }
    }

    /// Appends an instruction under the current guard.
    pub fn emit(&mut self, op: Op) {
        self.emit_guarded(self.guard, op);
    }

    /// Appends an instruction that every lane executes: it sets a register that nobody else sees.
    pub fn emit_always(&mut self, op: Op) {
        self.emit_guarded(PredSrc::TRUE, op);
    }

    fn emit_guarded(&mut self, guard: PredSrc, op: Op) {
        self.program.code.push(Inst { guard, op });
        self.program.lines.push(self.line);
        self.program.strengths.push(self.strength);
    }

    /// `ret`, with the results that live in registers stored first.
    pub fn emit_return(&mut self) {
        for (slot, offset, size) in self.register_returns.clone() {
            let mem = Mem {
                bytes: size.min(8) as u8,
                signed: false,
                register: size.min(8) as u8,
            };
            let addr = Addr {
                base: Base::Frame,
                offset: i64::from(offset),
            };
            self.emit(Op::Store {
                space: Space::Local,
                mem,
                addr,
                a: slot,
            });
        }
        self.emit(if self.function.entry {
            Op::Exit
        } else {
            Op::Return
        });
    }

    /// A register by name, declared here or in an outer scope.
    pub fn register(&mut self, name: &'a str) -> Option<Register> {
        let found = match self.cache.get(name) {
            Some(&r) => r,
            None => {
                let r = self.find_register(name)?;
                self.cache.insert(name, r);
                r
            }
        };
        if found.ty != Ty::Pred {
            let now = self.program.code.len() as u32;
            self.lifetimes
                .entry(found.slot)
                .and_modify(|l| l.1 = now)
                .or_insert((now, now));
            self.wide.insert(found.slot, found.ty.bytes().div_ceil(4));
        }
        Some(found)
    }

    fn find_register(&mut self, name: &'a str) -> Option<Register> {
        let stem = name.trim_end_matches(|c: char| c.is_ascii_digit());
        for scope in self.scopes.iter().rev() {
            if let Some(&Declaration {
                id,
                ty,
                count: None,
            }) = scope.registers.get(name)
            {
                return Some(self.slot(id, 0, ty));
            }
            // `%r12` of `%r<24>`; a stem may itself end in digits (`%r1<24>` declares `%r10` … `%r123`).
            let mut end = stem.len();
            while end < name.len() {
                let index = &name[end..];
                let canonical = index.len() == 1 || !index.starts_with('0');
                if canonical
                    && let Some(&Declaration {
                        id,
                        ty,
                        count: Some(n),
                    }) = scope.registers.get(&name[..end])
                    && let Ok(index) = index.parse::<u32>()
                    && index < n
                {
                    return Some(self.slot(id, index, ty));
                }
                end += 1;
            }
        }
        None
    }

    fn slot(&mut self, id: u32, index: u32, ty: Ty) -> Register {
        if let Some(&r) = self.slots.get(&(id, index)) {
            return r;
        }
        let slot = if ty == Ty::Pred {
            self.function.preds += 1;
            self.function.preds - 1
        } else {
            // A 128-bit register takes two slots.
            self.function.regs += 1 + u32::from(ty.bytes() == 16);
            self.function.regs - 1 - u32::from(ty.bytes() == 16)
        };
        let r = Register { slot, ty };
        self.slots.insert((id, index), r);
        r
    }

    /// A register that the program does not name.
    pub fn fresh(&mut self) -> Reg {
        self.function.regs += 1;
        self.function.regs - 1
    }

    /// A predicate that the program does not name.
    pub fn fresh_predicate(&mut self) -> u32 {
        self.function.preds += 1;
        self.function.preds - 1
    }

    /// A predicate register's slot.
    pub fn predicate(&mut self, name: &'a str) -> Decoded<u32> {
        match self.register(name) {
            Some(Register { slot, ty: Ty::Pred }) => Ok(slot),
            Some(_) => Err(Problem::Invalid(format!("`{name}` is no predicate"))),
            None => Err(Problem::Invalid(format!("`{name}` is not declared"))),
        }
    }

    /// A variable or function by name.
    pub fn symbol(&self, name: &str) -> Option<Symbol> {
        self.scopes
            .iter()
            .rev()
            .find_map(|s| s.variables.get(name))
            .or_else(|| self.context.symbols.get(name))
            .copied()
    }

    /// A label's number.
    pub fn label(&self, name: &str) -> Decoded<u32> {
        self.scopes
            .iter()
            .rev()
            .find_map(|s| s.labels.get(name))
            .copied()
            .ok_or_else(|| Problem::Invalid(format!("there is no label `{name}` here")))
    }

    /// The labels of a `.branchtargets`.
    pub fn branch_targets(&self, name: &str) -> Decoded<Vec<&'a str>> {
        self.scopes
            .iter()
            .rev()
            .find_map(|s| s.targets.get(name))
            .cloned()
            .ok_or_else(|| Problem::Invalid(format!("there are no branch targets `{name}`")))
    }

    /// A constant's row.
    pub fn constant(&mut self, value: u64) -> Src {
        let program = &mut *self.program;
        let index = *self.constants.entry(value).or_insert_with(|| {
            program.constants.push([value; 32]);
            program.constants.len() as u32 - 1
        });
        index | crate::machine::ir::CONSTANT
    }

    /// Notes that the kernel's parameters need an address.
    pub fn take_param_address(&mut self) {
        self.function.takes_param_address = true;
    }

    /// Notes that the system's part of shared memory needs room.
    pub fn take_reserved_shared(&mut self) {
        self.program.reserved_shared = true;
    }

    /// Whether a kernel is being decoded.
    pub fn in_kernel(&self) -> bool {
        self.function.entry
    }

    /// Resolves labels and measures the function.
    fn finish(mut self) -> Result<Function, LoadError> {
        let places = &self.label_places;
        let place = |id: u32| places.get(id as usize).copied().unwrap_or(0);
        for inst in &mut self.program.code[self.function.start as usize..] {
            match &mut inst.op {
                Op::Branch { target } => *target = place(*target),
                Op::BranchIndexed { targets, .. } => {
                    targets.iter_mut().for_each(|t| *t = place(*t))
                }
                _ => {}
            }
        }
        self.function.end = self.program.code.len() as u32;
        self.function.frame = self.function.frame.next_multiple_of(16);
        self.function.pressure = self.pressure();
        Ok(self.function)
    }

    /// The most 32-bit registers that are alive at one place, from first to last mention.
    fn pressure(&self) -> u32 {
        let mut events: Vec<(u32, i64)> = Vec::with_capacity(2 * self.lifetimes.len());
        for (slot, &(from, to)) in &self.lifetimes {
            let width = i64::from(self.wide.get(slot).copied().unwrap_or(1));
            events.push((from, width));
            events.push((to + 1, -width));
        }
        events.sort_unstable();
        let (mut alive, mut most) = (0, 0);
        for (_, change) in events {
            alive += change;
            most = most.max(alive);
        }
        (most as u32).saturating_add(10)
    }
}
