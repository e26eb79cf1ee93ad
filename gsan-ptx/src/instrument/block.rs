//! How the threads of one block synchronise with each other: what gets a hook so that races inside of a block are found
//! and those that are none are not.
//!
//! Barriers are followed exactly. Everything else that can order two threads of a block (strong accesses to shared
//! memory, waits on mbarriers and for the cluster) is told to the runtime as "has synchronised with others of its block".

use super::emit::{Emitter, scalar_text};
use super::function::Walker;
use crate::ast::{Guard, Instruction, Operand, Space};
use crate::hook::{Access, names};
use crate::memory_op::{Effect, MemoryOp};

/// What is noted while a function is walked.
#[derive(Default)]
pub(super) struct BlockHooks {
    /// Whether the function gets such hooks.
    pub(super) on: bool,
    /// Some function has synchronisation without hooks, so that no kernel of the module can be looked at from inside.
    pub(super) blind_function: bool,
    /// Whether its waits may have no calls, because it changes its warps' registers.
    counts_registers: bool,
    /// Of what is listed, the notes about order: those of functions without hooks go.
    pub(super) notes: Vec<usize>,
    hooks: u64,
    /// The note about `setmaxnreg` is made.
    said_so: bool,
}

impl BlockHooks {
    /// Whether the function in progress has such hooks.
    pub(super) fn followed(&self) -> bool {
        self.hooks > 0
    }
}

/// How an instruction synchronises within the block.
#[derive(Debug, Clone, PartialEq)]
enum Sync<'a> {
    None,
    Barrier(Barrier<'a>),
    /// It has synchronised; where a predicate says whether it did, this is it.
    Done(Option<&'a str>),
    /// A barrier whose operands are not understood.
    Odd,
}

/// `bar`, `barrier`.
#[derive(Debug, Clone, PartialEq)]
struct Barrier<'a> {
    /// The barrier's number: a register or a number.
    id: String,
    /// How many threads take part; 0 for all.
    count: String,
    /// False for those that only arrive.
    waits: bool,
    /// A register that the instruction writes.
    result: Option<&'a str>,
}

/// What a barrier's hooks call the values that it may overwrite.
const SAVED_ID: &str = "%gsan_r";
const SAVED_COUNT: &str = "%gsan_q";
const SAVED_GUARD: &str = "%gsan_p";

impl<'m> Walker<'m, '_> {
    /// At a function's beginning. Warp-specialised kernels count their registers: a call in one of their wait loops could cost
    /// them all.
    pub(super) fn block_hooks_begin(&mut self, counts_registers: bool) {
        self.block.on = self.block_hooks && !counts_registers;
        self.block.counts_registers = counts_registers;
        self.block.hooks = 0;
        self.block.said_so = false;
        if counts_registers && !self.entry {
            self.block.blind_function = true;
        }
        if let Some(entry) = self.out.entries.last_mut().filter(|_| self.entry) {
            entry.intra_block = self.block.on;
        }
    }

    /// Hooks for what `instruction` does to the order of its block's threads, and of its cluster's blocks.
    pub(super) fn block_sync(&mut self, instruction: &Instruction<'m>, effect: &Effect<'_, 'm>) {
        let cluster = self.cluster_before(instruction, effect);
        if !self.block.on && !cluster {
            return;
        }
        match sync(instruction, effect) {
            Sync::None => {}
            Sync::Barrier(barrier) => self.barrier(instruction, barrier),
            Sync::Done(_) if self.block.counts_registers && instruction.opcode == "mbarrier" => {
                self.cluster_wait_unseen(instruction);
            }
            Sync::Done(whether) => {
                let mut guard = instruction.guard;
                if guard.is_some_and(|g| Some(g.register) == whether) {
                    guard = self.save_guard(instruction, guard);
                }
                self.synchronised(instruction, guard, whether, cluster);
            }
            Sync::Odd => {
                let why = "the operands of this barrier are not understood: races between threads of one block are not looked for";
                self.note(instruction.span.clone(), why);
                match self.out.entries.last_mut().filter(|_| self.entry) {
                    Some(entry) => entry.intra_block = false,
                    None => self.block.blind_function = true,
                }
            }
        }
    }

    /// The same for an access with a generic address that is provably the thread's own stack or shared memory.
    pub(super) fn own_memory_sync(&mut self, instruction: &Instruction<'m>, op: &MemoryOp<'_, 'm>) {
        let cluster = self.cluster_own_memory(instruction, op);
        if (self.block.on || cluster) && op.is_strong() && op.access != Access::Store {
            self.synchronised(instruction, instruction.guard, None, cluster);
        }
    }

    /// A kernel with `setmaxnreg` says once that it is not looked at from inside.
    pub(super) fn not_from_inside(&mut self, instruction: &Instruction<'m>) {
        if self.block_hooks && !std::mem::replace(&mut self.block.said_so, true) {
            let why = "in kernels with setmaxnreg, whose wait loops must not have calls, barriers inside a block are not followed: \
                       races between threads of one block are not looked for";
            self.note(instruction.span.clone(), why);
        }
    }

    fn barrier(&mut self, instruction: &Instruction<'m>, barrier: Barrier<'m>) {
        self.out.stats.barrier_hooks += 1;
        let Barrier { id, count, .. } = &barrier;
        let mut guard = instruction.guard;
        let overwritten = |text: &str| barrier.waits && barrier.result == Some(text);
        if guard.is_some_and(|g| overwritten(g.register)) {
            guard = self.save_guard(instruction, guard);
        }
        let (mut id_after, mut count_after) = (id.as_str(), count.as_str());
        let from = self.emit.mark();
        self.emit.guarded(instruction.guard, |emit| {
            if overwritten(id) {
                emit.save(SAVED_ID, id);
                id_after = SAVED_ID;
            }
            if overwritten(count) {
                emit.save(SAVED_COUNT, count);
                count_after = SAVED_COUNT;
            }
            emit.barrier_before(id, count);
        });
        self.block_hook(instruction.span.start, from);
        if barrier.waits {
            let from = self.emit.mark();
            self.emit.edits.pieces.push(' ');
            self.emit
                .guarded(guard, |emit| emit.barrier_after(id_after, count_after));
            self.block_hook(instruction.span.end, from);
        }
    }

    /// The guard's value, kept in a register that the instruction does not write.
    fn save_guard(
        &mut self,
        instruction: &Instruction<'m>,
        guard: Option<Guard<'m>>,
    ) -> Option<Guard<'m>> {
        let guard = guard?;
        let from = self.emit.mark();
        self.emit.save_predicate(SAVED_GUARD, guard.register);
        self.block_hook(instruction.span.start, from);
        Some(Guard {
            register: SAVED_GUARD,
            ..guard
        })
    }

    fn synchronised(
        &mut self,
        instruction: &Instruction<'m>,
        guard: Option<Guard<'m>>,
        whether: Option<&'m str>,
        cluster: bool,
    ) {
        self.out.stats.block_syncs += 1;
        let hook = if cluster {
            names::CLUSTER_ACQUIRE
        } else {
            names::BLOCK_SYNC
        };
        let phase = self.waited_phase(instruction);
        let from = self.emit.mark();
        self.emit.edits.pieces.push(' ');
        self.emit.guarded(guard, |emit| {
            let hooks = |emit: &mut Emitter<'_>| {
                if let Some(phase) = phase {
                    emit.copy_waited(phase);
                }
                emit.with_state(hook);
            };
            match whether {
                Some(predicate) => emit.unless(predicate, true, hooks),
                None => hooks(emit),
            }
        });
        self.block_hook(instruction.span.end, from);
    }

    fn block_hook(&mut self, at: usize, from: usize) {
        self.emit.edits.insert_since(at, from);
        self.block.hooks += 1;
    }
}

fn sync<'a>(instruction: &Instruction<'a>, effect: &Effect<'_, 'a>) -> Sync<'a> {
    let has = |m| instruction.has(m);
    match (effect, instruction.opcode) {
        // Arriving alone orders nobody yet.
        (Effect::Barrier, _) if has("cluster") && has("wait") => Sync::Done(None),
        (Effect::Barrier, _) if has("cluster") => Sync::None,
        (Effect::Barrier, _) => barrier(instruction).map_or(Sync::Odd, Sync::Barrier),
        (Effect::Private(_), "mbarrier") if has("test_wait") || has("try_wait") => {
            Sync::Done(match instruction.operands.first() {
                Some(Operand::Name(complete)) => Some(complete),
                _ => None,
            })
        }
        (Effect::Private(Space::Shared | Space::SharedCluster), opcode) => match opcode {
            "atom" => Sync::Done(None),
            "red" if !has("async") => Sync::Done(None),
            "ld" if ["volatile", "relaxed", "acquire"].iter().any(|m| has(m)) => Sync::Done(None),
            _ => Sync::None,
        },
        _ => Sync::None,
    }
}

/// `bar.sync a{, b}`, `bar.arrive a, b`, `bar.red.popc.u32 d, a{, b}, {!}p`, `bar.red.and.pred d, a{, b}, {!}p`
fn barrier<'a>(instruction: &Instruction<'a>) -> Option<Barrier<'a>> {
    let none = Operand::Int(0);
    let has = |m| instruction.has(m);
    let (id, count, waits, result) = match &instruction.operands[..] {
        [] if has("sync") => (&none, &none, true, None),
        [id] if has("sync") => (id, &none, true, None),
        [id, count] if has("sync") => (id, count, true, None),
        [id] if has("arrive") => (id, &none, false, None),
        [id, count] if has("arrive") => (id, count, false, None),
        [d, id, _] if has("red") => (id, &none, true, Some(d)),
        [d, id, count, _] if has("red") => (id, count, true, Some(d)),
        _ => return None,
    };
    let number = |operand: &Operand<'_>| match operand {
        Operand::Name(_) | Operand::Int(0..=0xffff_ffff) => scalar_text(operand),
        _ => None,
    };
    Some(Barrier {
        id: number(id)?,
        count: number(count)?,
        waits,
        result: match result {
            Some(Operand::Name(name)) => Some(name),
            _ => None,
        },
    })
}
