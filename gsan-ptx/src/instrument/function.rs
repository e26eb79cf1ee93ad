//! One pass over a function: finds the sites, writes their hooks, collects what can't be checked.

use super::block::BlockHooks;
use super::cluster::{self, ClusterHooks};
use super::dependent::DependentHooks;
use super::edits::Edits;
use super::emit::{ADDRESS, Base, Emitter, SCRATCH, scalar_text};
use super::graph::Node;
use super::info::{HookCounts, entry};
use super::own_memory::OwnMemory;
use super::registers::Registers;
use super::registers_bound::{Change, bound, room};
use super::repeat::Checked;
use super::{InstrumentError, Instrumented, Options, Unsupported, hidden_parameter};
use crate::ast::{Address, Function, Instruction, Item, Operand, Space, Statement};
use crate::hook::{Access, Hooks, OpWord, names};
use crate::memory_op::{AsyncCopy, Effect, MemoryOp, Piece, classify};
use crate::site::{Locations, Near, Site};
use crate::tokens::one_line;
use std::collections::{HashMap, HashSet};
use std::ops::Range;
use std::sync::Arc;

/// Walks the functions of a module in the order of the text.
pub(super) struct Walker<'m, 'e> {
    pub(super) text: &'m str,
    pub(super) emit: Emitter<'e>,
    pub(super) out: &'e mut Instrumented,
    locations: Locations<'m>,
    near: Near,
    lines: Lines<'m>,
    pub(super) registers: Registers<'m>,
    /// The module's variables that are not in global memory, as far as it has been read, and how far that is.
    variables: HashMap<&'m str, Space>,
    items_seen: usize,
    own_memory: OwnMemory<'m>,
    checked: Checked<'m>,
    function: Arc<str>,
    pub(super) entry: bool,
    /// Whether hooks for the order within a block are wanted.
    pub(super) block_hooks: bool,
    pub(super) block: BlockHooks,
    pub(super) cluster: ClusterHooks,
    pub(super) copy_hooks: bool,
    /// Whether there may be bulk copies whose end somebody has to look for.
    pub(super) copies_end: bool,
    /// The hooks of a thread that leaves with copies under way.
    copies_left: Vec<&'static str>,
    multicast_hooks: bool,
    stale_nc: bool,
    pub(super) dependents: DependentHooks,
    /// The runtime is linked, so that calls cost no registers.
    apart: bool,
    /// The module has its line about `setmaxnreg`.
    registers_said: bool,
    /// Whether the text names the size of shared memory, which instrumentation changes.
    shared_size: bool,
    /// The first read in the function in progress that a hook puts right.
    size_read: Option<Box<Unsupported>>,
    /// The number of the module's first site.
    first_site: usize,
    /// The functions so far, and of each what is undone if it turns out to need no hooks.
    pub(super) nodes: Vec<Node<'m>>,
    pub(super) traces: Vec<Trace>,
    pub(super) externs: super::externs::Externs<'m>,
    /// What no assembler takes together with calls.
    pub(super) refused: Option<InstrumentError>,
    /// Where a pragma stands that belongs to the next load, whose hook must not come between them; and which bytes it says are used.
    pragma: Option<(usize, Option<u32>)>,
}

impl<'m, 'e> Walker<'m, 'e> {
    pub(super) fn new(
        text: &'m str,
        locations: Locations<'m>,
        edits: &'e mut Edits,
        out: &'e mut Instrumented,
    ) -> Walker<'m, 'e> {
        Walker {
            text,
            emit: Emitter::new(edits),
            out,
            locations,
            near: Near::default(),
            lines: Lines {
                text,
                at: 0,
                line: 1,
                line_start: 0,
            },
            registers: Registers::new(),
            variables: HashMap::new(),
            items_seen: 0,
            own_memory: OwnMemory::default(),
            checked: Checked::default(),
            function: "".into(),
            entry: false,
            block_hooks: false,
            block: BlockHooks::default(),
            cluster: ClusterHooks::default(),
            copy_hooks: false,
            copies_end: false,
            copies_left: Vec::new(),
            multicast_hooks: false,
            stale_nc: true,
            dependents: DependentHooks::default(),
            apart: false,
            registers_said: false,
            shared_size: text.contains("_smem_size"),
            size_read: None,
            refused: None,
            pragma: None,
            first_site: 0,
            nodes: Vec::new(),
            traces: Vec::new(),
            externs: Default::default(),
        }
    }

    pub(super) fn configure(&mut self, options: &Options<'_>, targets: &[&str]) {
        self.first_site = options.first_site as usize;
        self.block_hooks = options.block_hooks();
        self.cluster.on = options.cluster_hooks() && cluster::possible(targets, self.text);
        self.cluster.missing = !options.cluster_hooks();
        self.copy_hooks = options.copy_hooks();
        self.copies_end = self.copy_hooks && (options.part || self.text.contains("async.bulk"));
        let small = |(at, word): (usize, &str)| !self.text[at + word.len()..].starts_with("bulk");
        let small = options.part || self.text.match_indices("cp.async.").any(small);
        self.copies_left = [
            (self.copies_end, names::COPY_LEAVE),
            (self.copy_hooks && small, names::COPY_LANDED),
        ]
        .into_iter()
        .filter_map(|(possible, hook)| possible.then_some(hook))
        .collect();
        self.multicast_hooks = options.multicast_hooks();
        self.dependents = options.dependent_hooks();
        self.stale_nc = options.stale_nc;
        self.apart = options.apart;
        self.externs.part = options.part;
    }

    /// `before` are the items that stand before it.
    pub(super) fn function(&mut self, before: &[Item<'m>], function: &Function<'m>) {
        for item in &before[self.items_seen..] {
            if let Item::Variable(v) = item
                && v.space != Space::Global
            {
                self.variables.insert(v.name, v.space);
            }
        }
        self.items_seen = before.len();
        if function.entry {
            self.out.entries.push(entry(function));
            hidden_parameter(self.emit.edits, function);
        }
        let Some(body) = &function.body else { return };
        self.function = function.name.into();
        self.entry = function.entry;
        let (ptx_line, _) = self.lines.position(function.span.start);
        let (first_edit, counts) = (self.emit.edits.count(), self.out.stats.hook_counts());
        let first_note = self.block.notes.len();
        self.locations.reset();
        self.near.function(&self.out.sites);
        self.registers = Registers::new();
        for param in function
            .returns
            .iter()
            .chain(&function.params)
            .filter(|p| p.space == Space::Reg)
        {
            self.registers.declare(param.name, None, param.ty);
        }
        for param in function.returns.iter().chain(&function.params) {
            if param.space != Space::Reg {
                self.registers.declare_variable(param.name, Space::Param);
            }
        }
        let text = &self.text[body.start..body.end];
        self.own_memory = OwnMemory::of(function, text);
        let change = Change::of(function, text);
        self.nodes.push(Node {
            name: function.name,
            entry: function.entry,
            checks: false,
            hooks: false,
            change,
            bound: if function.entry {
                bound(function)
            } else {
                None
            },
            calls: Vec::new(),
            indirect: false,
        });
        // In what is linked ptxas ignores it.
        self.block_hooks_begin(change.any && !self.apart);
        self.cluster.fenced = self.cluster.on && cluster::may_fence(text);
        self.cluster.said_so = false;
        let sites_before = self.out.sites.len();
        self.checked.forget();
        self.emit.needs = Default::default();
        self.emit.calls = Default::default();
        // What the beginning needs is known at the end.
        let prologue = self.emit.edits.reserve(body.start);
        self.statements(&body.statements);
        if function.entry && falls_through(&body.statements) {
            let from = self.emit.mark();
            self.emit.exit(&self.copies_left);
            self.emit.edits.insert_since(body.end, from);
        }
        let from = self.emit.mark();
        self.emit.prologue(function.entry);
        self.emit.edits.fill(prologue, from);
        let edits = first_edit..self.emit.edits.count();
        if let Some(node) = self.nodes.last_mut() {
            node.checks |= self.out.sites.len() > sites_before;
            // Beside the place that is kept for the beginning.
            node.hooks = edits.len() > 1;
        }
        let mut hooks = self.out.stats.hook_counts();
        hooks
            .iter_mut()
            .zip(counts)
            .for_each(|(n, before)| *n -= before);
        self.traces.push(Trace {
            ptx_line,
            entry: if function.entry {
                self.out.entries.len() - 1
            } else {
                0
            },
            edits,
            room: function.entry.then(|| room(function)),
            calls: self.emit.calls,
            hooks,
            notes: first_note..self.block.notes.len(),
            barriers: self.block.followed(),
            size_read: self.size_read.take(),
        });
    }

    /// Recursion is bounded by [`crate::parse::MAX_NESTING`].
    fn statements(&mut self, statements: &[Statement<'m>]) {
        for statement in statements {
            match statement {
                Statement::Instruction(instruction) => {
                    self.instruction(instruction);
                    self.pragma = None;
                }
                Statement::Block { statements, .. } => {
                    self.pragma = None;
                    self.registers.open();
                    // Names may mean other registers inside.
                    self.checked.forget();
                    self.statements(statements);
                    self.checked.forget();
                    self.registers.close();
                }
                Statement::Registers {
                    ty, names, vector, ..
                } => {
                    self.checked.forget();
                    for (name, count) in names {
                        // A vector register is never an address by itself.
                        self.registers
                            .declare(name, *count, if *vector == 1 { ty } else { "" });
                    }
                }
                Statement::Loc(loc) => {
                    self.locations.see(loc);
                    self.near.see(loc, &self.locations, &mut self.out.sites);
                }
                Statement::Pragma { text, span } => {
                    if let Some(mask) = text.trim_start().strip_prefix("used_bytes_mask") {
                        let mask = crate::parse::integer(mask.trim());
                        self.pragma = Some((span.start, mask.and_then(|m| u32::try_from(m).ok())));
                    }
                }
                Statement::Variable(variable) if variable.space == Space::Global => {
                    self.registers
                        .declare_variable(variable.name, Space::Global);
                    let why = "variables in global memory inside a function are not tracked";
                    self.list(variable.span.clone(), why, false);
                }
                Statement::Variable(variable) => {
                    self.registers
                        .declare_variable(variable.name, variable.space);
                }
                // A jump to a label between the two would pass by a hook that stands before the pragma.
                Statement::Label { name, .. } => {
                    self.locations.label(name);
                    self.pragma = None;
                    self.checked.forget();
                }
                // No directive that PTX has up to now touches memory; one that does would have to say so here.
                _ => {}
            }
        }
    }

    fn instruction(&mut self, instruction: &Instruction<'m>) {
        self.out.stats.instructions += 1;
        let effect = classify(instruction);
        if short_of_eight(instruction) && self.refused.is_none() {
            let (line, column) = self.lines.position(instruction.span.start);
            self.refused = Some(InstrumentError::Vector {
                text: one_line(&self.text[instruction.span.clone()]),
                place: (line as usize, column as usize),
            });
        }
        if self.shared_size {
            self.shared_size(instruction);
        }
        self.effect(instruction, &effect);
        self.checked.pass(instruction, &effect);
    }

    fn effect(&mut self, instruction: &Instruction<'m>, effect: &Effect<'_, 'm>) {
        let stats = &mut self.out.stats;
        match *effect {
            Effect::None => self.other(instruction),
            Effect::Barrier => stats.barriers += 1,
            // An mbarrier's operations are no accesses to data.
            Effect::Private(_)
                if instruction.opcode == "mbarrier" || instruction.has("mbarrier") =>
            {
                // `cp.async.mbarrier.arrive`: who waits there will know, and may go on before this thread does. (In doubt it is
                // over now: that is never wrong.)
                if instruction.opcode == "cp" {
                    self.landed_before(instruction);
                }
            }
            Effect::Private(space) => self.private(space),
            Effect::Fence(order, scope) => {
                stats.fences += 1;
                let from = self.emit.mark();
                let op = OpWord::new(Access::Fence, 0, order, scope);
                self.emit.guarded(instruction.guard, |emit| emit.fence(op));
                self.emit.edits.insert_since(instruction.span.start, from);
            }
            Effect::Unsupported(why) => {
                stats.unsupported += 1;
                self.list(instruction.span.clone(), why, false);
            }
            Effect::Access(ref op) => self.access(instruction, op),
            Effect::Copy(ref copy) => self.copy(instruction, copy),
            Effect::CopyGroup(group) => self.copy_group(instruction, group),
        }
        self.block_sync(instruction, effect);
    }

    fn private(&mut self, space: Space) {
        let stats = &mut self.out.stats;
        match space {
            Space::Local => stats.local += 1,
            Space::Param => stats.param += 1,
            Space::Const => stats.constant += 1,
            _ => stats.shared += 1,
        }
    }

    fn access(&mut self, instruction: &Instruction<'m>, op: &MemoryOp<'_, 'm>) {
        let used = self.pragma.and_then(|(_, used)| used);
        let partly = used.map(|used| op.clone().only(used));
        let op = partly.as_ref().unwrap_or(op);
        if op.generic && op.address.base.is_some_and(|b| self.own_memory.holds(b)) {
            self.out.stats.private_generic += 1;
            return self.own_memory_sync(instruction, op);
        }
        // Without a state space a variable's own decides.
        if let Some(space) = self.variable_space(op).filter(|s| *s != Space::Global) {
            self.private(space);
            if matches!(space, Space::Shared | Space::SharedCluster) {
                self.own_memory_sync(instruction, op);
            }
            return;
        }
        if op.multicast && !self.multicast_hooks {
            self.out.stats.unsupported += 1;
            let why = "accesses to multicast memory are not checked with this runtime, and what they release or acquire is not \
                       followed";
            return self.list(instruction.span.clone(), why, false);
        }
        if op.non_coherent && !self.stale_nc {
            self.out.stats.non_coherent += 1;
            return;
        }
        if self.checked.covers(op, instruction.guard) {
            self.out.stats.repeated += 1;
            return;
        }
        let amount = match self.amount(op) {
            _ if op.is_empty() => Amount::Nothing,
            Some(amount) => amount,
            None => {
                self.out.stats.unsupported += 1;
                let why = "how much of its source this copy reads is not understood";
                return self.list(instruction.span.clone(), why, false);
            }
        };
        let word = match amount {
            Amount::Nothing => {
                self.out.stats.empty += 1;
                return;
            }
            Amount::Bytes(bytes) => op.op_word().with_size(bytes),
            _ => op.op_word(),
        };
        let word = word.with(OpWord::ASYNCHRONOUS, self.copy_hooks && op.copy.is_some());
        self.checked.note(op, instruction.guard);
        self.count(instruction, op.access, op.is_strong(), op.generic);
        let site = self.site(instruction, word);

        let base = self.base(op.address);
        let after = op.is_strong() && op.returns;
        let far = !op.multicast && self.cluster_reaches(op);
        let releases = far && self.cluster_releases(op);
        let comparand = if after {
            op.comparand.and_then(scalar_text)
        } else {
            None
        };
        let mut comparand_saved = false;
        let from = self.emit.mark();
        let word_of = |piece: &Piece| op.used.map_or(word, |_| piece.word(word));
        self.emit.guarded(instruction.guard, |emit| {
            for (n, piece) in op.pieces().enumerate() {
                let offset = op.address.offset.wrapping_add(piece.offset.into());
                let at = Address {
                    offset,
                    ..*op.address
                };
                let (address, word) = (emit.address(base, &at, after), word_of(&piece));
                if let Some(comparand) = &comparand {
                    comparand_saved = emit.save_comparand(comparand, op.size);
                }
                if releases && n == 0 {
                    emit.with_state_in_cluster(address, names::CLUSTER_RELEASE);
                }
                match amount {
                    _ if op.multicast => emit.multimem(address, word, site, n),
                    _ if op.is_strong() => emit.sync_before(address, word, site, n),
                    Amount::Unless { predicate, negated } => {
                        emit.unless(predicate, negated, |emit| emit.access(address, word, site));
                    }
                    Amount::AtMost(register) => emit.access_part(address, word, register, site),
                    Amount::Bytes(_) | Amount::Nothing => emit.access(address, word, site),
                }
            }
        });
        let before = self.pragma.map_or(instruction.span.start, |(at, _)| at);
        self.emit.edits.insert_since(before, from);
        if op.asynchronous {
            let why = "it is taken to be carried out when it is issued";
            self.list(instruction.span.clone(), why, true);
        }
        if !after {
            return;
        }

        // The guard is still what it was: neither `ld` nor `atom` can write a predicate.
        let from = self.emit.mark();
        self.emit.edits.pieces.push(' ');
        let mut success_known = true;
        self.emit.guarded(instruction.guard, |emit| {
            let success = match (op.access, op.destination) {
                (Access::Cas, Some(Operand::Name(result))) if comparand_saved => {
                    emit.cas_success(result, op.size)
                }
                (Access::Cas, _) => {
                    success_known = false;
                    "0"
                }
                _ => "1",
            };
            let last = op.pieces().last().map_or(0, |piece| piece.offset);
            let mut at = i64::from(last);
            for (n, piece) in op.pieces().enumerate() {
                emit.add_offset(i64::from(piece.offset) - at);
                at = piece.offset.into();
                if op.multicast {
                    emit.multimem_after(word_of(&piece), site, n);
                    continue;
                }
                emit.sync_after(word_of(&piece), site, n, success);
            }
            if far {
                emit.with_state_in_cluster(ADDRESS, names::CLUSTER_ACQUIRE);
            }
        });
        self.emit.edits.insert_since(instruction.span.end, from);
        if !success_known {
            let why = "whether this compare-and-swap wrote is unknown, because its result is thrown away: \
                       it is checked as one that did not";
            self.list(instruction.span.clone(), why, true);
        }
    }

    /// The declared space of the variable that is a generic access's address.
    fn variable_space(&self, op: &MemoryOp<'_, 'm>) -> Option<Space> {
        let name = op
            .address
            .base
            .filter(|name| op.generic && !name.starts_with('%'))?;
        if self.registers.bytes(name).is_some() {
            return None;
        }
        let declared = self.registers.space(name);
        declared.or_else(|| self.variables.get(name).copied())
    }

    /// How much of the operation's size is accessed; `None` where that is not understood.
    fn amount<'o>(&self, op: &MemoryOp<'o, 'm>) -> Option<Amount<'m>> {
        let Some(AsyncCopy::Part(part)) = op.copy else {
            return Some(Amount::Bytes(op.size));
        };
        let (name, negated) = match part {
            Operand::Int(0) => return Some(Amount::Nothing),
            Operand::Int(bytes) => {
                let bytes = u32::try_from(*bytes).ok()?;
                return Some(Amount::Bytes(bytes.min(op.size)));
            }
            Operand::Name(name) => (*name, false),
            Operand::Not(inner) => match **inner {
                Operand::Name(name) => (name, true),
                _ => return None,
            },
            _ => return None,
        };
        match (self.registers.bytes(name)?, negated) {
            (4, false) => Some(Amount::AtMost(name)),
            // Predicates have no size.
            (0, _) => Some(Amount::Unless {
                predicate: name,
                negated,
            }),
            _ => None,
        }
    }

    /// The number of a new site.
    pub(super) fn site(&mut self, instruction: &Instruction<'m>, op: OpWord) -> usize {
        let (ptx_line, ptx_column) = self.lines.position(instruction.span.start);
        let places = self.locations.places();
        self.out.sites.push(Site {
            op,
            ptx_line,
            ptx_column,
            function: self.function.clone(),
            near: self.near.before(&places, &self.locations),
            places,
        });
        self.first_site + self.out.sites.len() - 1
    }

    pub(super) fn count(
        &mut self,
        instruction: &Instruction<'m>,
        access: Access,
        strong: bool,
        generic: bool,
    ) {
        let stats = &mut self.out.stats;
        match access {
            Access::Load => stats.loads += 1,
            Access::Store => stats.stores += 1,
            Access::Rmw => stats.rmws += 1,
            Access::Cas | Access::Fence => stats.compare_and_swaps += 1,
        }
        stats.strong += u64::from(strong);
        stats.generic += u64::from(generic);
        stats.predicated += u64::from(instruction.guard.is_some());
    }

    pub(super) fn base(&self, address: &Address<'m>) -> Base<'m> {
        let Some(name) = address.base else {
            return Base::Absolute;
        };
        match self.registers.bytes(name) {
            Some(8) => Base::Wide(name),
            Some(_) => Base::Narrow(name),
            // `%` names are registers even where their declaration was not understood (`%v.x` of a vector).
            None if name.starts_with('%') => Base::Wide(name),
            None => Base::Symbol(name),
        }
    }

    /// Instructions that touch no memory: the ends of threads, and reads of the size that instrumentation changes.
    fn other(&mut self, instruction: &Instruction<'m>) {
        if instruction.opcode == "exit" || (instruction.opcode == "ret" && self.entry) {
            let from = self.emit.mark();
            let copies = &self.copies_left;
            self.emit
                .guarded(instruction.guard, |emit| emit.exit(copies));
            self.emit.edits.insert_since(instruction.span.start, from);
            return;
        }
        if instruction.opcode == "setmaxnreg" {
            // The kernel in progress is the last one; in a function it says nothing about one kernel in particular.
            let entry = self.out.entries.last_mut().filter(|_| self.entry);
            if let Some(entry) = entry {
                entry.changes_registers = true;
            }
            match self.apart {
                true if !self.registers_said => {
                    self.registers_said = true;
                    self.list(instruction.span.clone(), NO_MORE_REGISTERS, true);
                }
                true => {}
                false => self.not_from_inside(instruction),
            }
            return;
        }
        if instruction.opcode == "griddepcontrol" {
            return self.dependent(instruction);
        }
        if instruction.opcode == "call" {
            self.call(instruction);
        }
    }

    fn call(&mut self, instruction: &Instruction<'m>) {
        let launches = |o: &Operand<'_>| matches!(o, Operand::Name(n) if n.contains("cudaLaunchDevice") || n.contains("cudaCDP2LaunchDevice"));
        if instruction.operands.iter().any(launches) {
            let why = "kernels that are launched by kernels get no launch record from the host: they can't run under gsan";
            return self.list(instruction.span.clone(), why, false);
        }
        let callee = instruction
            .operands
            .iter()
            .find(|o| !matches!(o, Operand::List(_)));
        let named = match callee {
            Some(Operand::Name(n)) if !n.starts_with('%') && self.registers.bytes(n).is_none() => {
                Some(*n)
            }
            _ => None,
        };
        let Some(node) = self.nodes.last_mut() else {
            return;
        };
        match named {
            Some(name) => {
                node.calls.push(name);
                self.callee(name, instruction);
            }
            None => node.indirect = true,
        }
    }

    /// The function in progress has a hook that it can't do without.
    pub(super) fn checks(&mut self) {
        if let Some(node) = self.nodes.last_mut() {
            node.checks = true;
        }
    }

    /// Reads of the size of shared memory, which is larger under gsan.
    fn shared_size(&mut self, instruction: &Instruction<'m>) {
        let direct = instruction.operands.iter().find_map(|o| match o {
            Operand::Name(name) if name.ends_with("_smem_size") => Some(*name),
            _ => None,
        });
        let special = direct.or_else(|| instruction.operands.iter().find_map(size_within));
        match (special, instruction.opcode) {
            (Some(register @ "%dynamic_smem_size"), "mov" | "cvt") if direct.is_some() => {
                // The same instruction again with the right number: this fits every type and conversion.
                let text = one_line(&self.text[instruction.span.clone()]);
                let again = text.replace(register, SCRATCH);
                let again = again
                    .split_once(instruction.opcode)
                    .map_or("", |(_, rest)| rest);
                let from = self.emit.mark();
                self.emit.edits.pieces.push(' ');
                self.emit.guarded(instruction.guard, |emit| {
                    emit.dynamic_size(instruction.opcode, again)
                });
                self.emit.edits.insert_since(instruction.span.end, from);
                self.checks();
                if self.size_read.is_none() {
                    let entry = self.unsupported(instruction.span.clone(), LARGER, true);
                    self.size_read = Some(Box::new(entry));
                }
            }
            (Some("%dynamic_smem_size" | "%total_smem_size" | "%aggr_smem_size"), _) => {
                self.list(instruction.span.clone(), LARGER, true);
            }
            _ => {}
        }
    }

    pub(super) fn list(&mut self, span: crate::ast::Span, why: &str, partly: bool) {
        let entry = self.unsupported(span, why, partly);
        self.out.unsupported.push(entry);
    }

    /// Something about the order of threads that is approximated: of no account in a function without hooks.
    pub(super) fn note(&mut self, span: crate::ast::Span, why: &str) {
        self.block.notes.push(self.out.unsupported.len());
        self.list(span, why, true);
    }

    pub(super) fn unsupported(
        &mut self,
        span: crate::ast::Span,
        why: &str,
        partly: bool,
    ) -> Unsupported {
        let (ptx_line, _) = self.lines.position(span.start);
        Unsupported {
            ptx_line,
            text: one_line(&self.text[span]),
            why: why.to_string(),
            function: self.function.clone(),
            places: self.locations.places(),
            partly,
        }
    }
}

/// What is undone of a function's hooks.
pub(super) struct Trace {
    /// Where the function begins.
    pub(super) ptx_line: u32,
    /// A kernel's place among the module's.
    pub(super) entry: usize,
    pub(super) edits: Range<usize>,
    /// A kernel's room for the registers of what it calls.
    pub(super) room: Option<u64>,
    /// What its hooks call.
    pub(super) calls: Hooks,
    pub(super) hooks: HookCounts,
    /// Its notes, among all.
    pub(super) notes: Range<usize>,
    /// It has hooks for the order within a block.
    pub(super) barriers: bool,
    /// A read of the size of shared memory that is not put right without hooks.
    pub(super) size_read: Option<Box<Unsupported>>,
}

const NO_MORE_REGISTERS: &str = "setmaxnreg has no effect in what is linked with gsan's runtime: every warp keeps as many registers as the \
                                 kernel begins with, and spills to its stack what needs more";

const LARGER: &str = "it reads the size of shared memory, which is larger under gsan";

/// A vector of eight elements of less than 32 bits. PTX has none (`.v8` came with accesses of 256 bits); ptxas 13.0 assembles some, and
/// crashes on some where the kernel has calls.
fn short_of_eight(instruction: &Instruction<'_>) -> bool {
    matches!(instruction.opcode, "ld" | "ldu" | "st")
        && instruction.has("v8")
        && !["b32", "u32", "s32", "f32"]
            .iter()
            .any(|t| instruction.has(t))
}

/// A register of a size of shared memory inside of a vector, a list or an expression.
fn size_within<'a>(operand: &Operand<'a>) -> Option<&'a str> {
    match operand {
        Operand::Name(name) if name.ends_with("_smem_size") => Some(name),
        Operand::Vector(list) | Operand::List(list) | Operand::Tensor(list) => {
            list.iter().find_map(size_within)
        }
        Operand::Pair(a, b) => size_within(a).or_else(|| size_within(b)),
        Operand::Not(inner) | Operand::Neg(inner) => size_within(inner),
        Operand::NameOffset(name, _) if name.ends_with("_smem_size") => Some(name),
        Operand::Raw(text) => ["%dynamic_smem_size", "%total_smem_size", "%aggr_smem_size"]
            .into_iter()
            .find(|register| text.contains(register)),
        _ => None,
    }
}

/// How much an instruction accesses.
#[derive(Clone, Copy)]
enum Amount<'a> {
    /// So many bytes.
    Bytes(u32),
    /// What the register says, and no more than the operation's size.
    AtMost(&'a str),
    /// All or, if the predicate holds (or, negated, doesn't), nothing.
    Unless { predicate: &'a str, negated: bool },
    /// Nothing, and the text says so.
    Nothing,
}

/// Whether control can reach the end of a body. In doubt it can: an exit hook that nobody reaches costs nothing.
fn falls_through(statements: &[Statement<'_>]) -> bool {
    // The targets of jumps are only looked for where a label stands behind the last instruction.
    let mut targets: Option<HashSet<&str>> = None;
    let mut list = statements;
    loop {
        let Some((last, rest)) = list.split_last() else {
            return true;
        };
        match last {
            Statement::Instruction(i) => {
                return i.guard.is_some()
                    || !matches!(i.opcode, "ret" | "exit" | "trap" | "bra" | "brx");
            }
            Statement::Label { name, .. } => {
                let targets = targets.get_or_insert_with(|| {
                    let mut found = HashSet::new();
                    jump_targets(statements, &mut found);
                    found
                });
                if targets.contains(name) {
                    return true;
                }
                list = rest;
            }
            // A scope at the end is looked into if that is simple; a jump from outside can't lead into it.
            Statement::Block {
                statements: inner, ..
            } => {
                let ends = matches!(inner.last(), Some(Statement::Instruction(i))
                    if i.guard.is_none() && matches!(i.opcode, "ret" | "exit" | "trap" | "bra" | "brx"));
                return !ends;
            }
            _ => list = rest,
        }
    }
}

fn jump_targets<'a>(statements: &[Statement<'a>], found: &mut HashSet<&'a str>) {
    for statement in statements {
        match statement {
            Statement::Instruction(i) if matches!(i.opcode, "bra" | "brx") => {
                found.extend(i.operands.iter().filter_map(|o| match o {
                    Operand::Name(name) => Some(*name),
                    _ => None,
                }));
            }
            Statement::Targets { targets, .. } => found.extend(targets),
            Statement::Block { statements, .. } => jump_targets(statements, found),
            _ => {}
        }
    }
}

/// Line numbers of offsets that only grow, in one pass over the text.
struct Lines<'a> {
    text: &'a str,
    at: usize,
    line: u32,
    line_start: usize,
}

impl Lines<'_> {
    /// Line and column, from 1.
    fn position(&mut self, offset: usize) -> (u32, u32) {
        debug_assert!(offset >= self.at, "offsets must grow");
        let between = &self.text.as_bytes()[self.at.min(offset)..offset];
        let breaks = between.iter().filter(|&&b| b == b'\n').count();
        if let Some(last) = between.iter().rposition(|&b| b == b'\n') {
            self.line_start = self.at + last + 1;
        }
        self.line = self
            .line
            .saturating_add(u32::try_from(breaks).unwrap_or(u32::MAX));
        self.at = offset;
        (
            self.line,
            u32::try_from(offset - self.line_start + 1).unwrap_or(u32::MAX),
        )
    }
}
