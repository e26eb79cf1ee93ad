//! The text of hooks.
//!
//! All registers are declared once at a function's start and only live from a hook to the end of its instruction's last
//! hook, so one set serves every site. Arguments go straight into the call's list.

use super::copies::WaitedPhase;
use super::edits::Edits;
use crate::ast::{Address, Guard, Operand};
use crate::hook::{Hooks, OpWord, names};
use crate::memory_op::MOST_STRONG;
use std::fmt::Write;

/// The state that `__gsan_state` returned.
const STATE: &str = "%gsan_s";
/// An address.
pub(super) const ADDRESS: &str = "%gsan_a";
/// What `__gsan_sync_before` returned, for each piece of an access.
const CONTEXT: [&str; MOST_STRONG] = ["%gsan_c", "%gsan_c1", "%gsan_c2", "%gsan_c3"];

/// The places of pixels in their windows, before a copy that needs no context.
pub(super) const OFFSETS: &str = CONTEXT[0];

/// A 32-bit value.
pub(super) const SCRATCH: &str = "%gsan_r";

/// Which registers a function's hooks use.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Needs {
    /// Any hook that takes the state.
    state: bool,
    /// `%gsan_a`
    address: bool,
    /// How many of [`CONTEXT`].
    contexts: usize,
    /// `%gsan_r`, `%gsan_q`
    scratch: bool,
    /// `%gsan_p`
    predicate: bool,
    /// `%gsan_v16`, `%gsan_v32`, `%gsan_v64`, `%gsan_w64` with `%gsan_x64`, `%gsan_y64`.
    comparands: [bool; 4],
}

/// How a hook gets the address.
#[derive(Clone, Copy)]
pub(super) enum Base<'a> {
    /// A 64-bit register.
    Wide(&'a str),
    /// A narrower register.
    Narrow(&'a str),
    /// A variable.
    Symbol(&'a str),
    /// A number.
    Absolute,
}

/// Writes hooks to `edits.pieces`.
pub(super) struct Emitter<'e> {
    pub(super) edits: &'e mut Edits,
    pub(super) needs: Needs,
    /// What the function in progress calls.
    pub(super) calls: Hooks,
    next_label: u32,
}

/// Writing to a `String` can't fail.
macro_rules! put {
    ($emitter:expr, $($arg:tt)*) => { let _ = write!($emitter.edits.pieces, $($arg)*); };
}

impl<'e> Emitter<'e> {
    pub(super) fn new(edits: &'e mut Edits) -> Emitter<'e> {
        Emitter {
            edits,
            needs: Needs::default(),
            calls: Hooks::default(),
            next_label: 0,
        }
    }

    /// Where the text that is written from now on begins.
    pub(super) fn mark(&self) -> usize {
        self.edits.pieces.len()
    }

    /// Runs `hook` under the instruction's guard. A jump instead of predicated calls: a call is a branch anyway, and
    /// the guard is evaluated once.
    pub(super) fn guarded(&mut self, guard: Option<Guard<'_>>, hook: impl FnOnce(&mut Self)) {
        let Some(guard) = guard else {
            return hook(self);
        };
        let label = self.label();
        put!(
            self,
            "@{}{} bra $L__gsan_{label}; ",
            if guard.negated { "" } else { "!" },
            guard.register
        );
        hook(self);
        put!(self, "$L__gsan_{label}: ");
    }

    /// The only place that writes calls: it knows which functions of the runtime the text needs.
    fn call(&mut self, result: Option<&str>, hook: &str, arguments: std::fmt::Arguments<'_>) {
        self.calls.insert(hook);
        put!(self, "call.uni ");
        if let Some(result) = result {
            put!(self, "({result}), ");
        }
        put!(self, "{hook}, ({arguments}); ");
    }

    fn label(&mut self) -> u32 {
        self.next_label += 1;
        self.next_label
    }

    /// Puts the address into a register and names it. With `keep` that register is never the user's, so that it
    /// outlives the access, which may overwrite its own address.
    pub(super) fn address<'a>(
        &mut self,
        base: Base<'a>,
        address: &Address<'a>,
        keep: bool,
    ) -> &'a str {
        let offset = address.offset;
        match base {
            Base::Wide(register) if offset == 0 && !keep => return register,
            Base::Wide(register) if offset == 0 => {
                put!(self, "mov.b64 {ADDRESS}, {register}; ");
            }
            Base::Wide(register) => {
                put!(self, "add.s64 {ADDRESS}, {register}, {offset}; ");
            }
            Base::Narrow(register) => {
                put!(self, "cvt.u64.u32 {ADDRESS}, {register}; ");
                self.add_offset(offset);
            }
            Base::Symbol(symbol) => {
                put!(self, "mov.u64 {ADDRESS}, {symbol}; ");
                self.add_offset(offset);
            }
            Base::Absolute => {
                put!(self, "mov.u64 {ADDRESS}, {}; ", offset as u64);
            }
        }
        self.needs.address = true;
        ADDRESS
    }

    /// Moves [`ADDRESS`].
    pub(super) fn add_offset(&mut self, offset: i64) {
        if offset != 0 {
            put!(self, "add.s64 {ADDRESS}, {ADDRESS}, {offset}; ");
        }
    }

    pub(super) fn access(&mut self, address: &str, op: OpWord, site: usize) {
        self.needs.state = true;
        let arguments = format_args!("{STATE}, {address}, {}, {site}", op.0);
        self.call(None, names::ACCESS, arguments);
    }

    /// Runs `hook` where the predicate is false (or, negated, true).
    pub(super) fn unless(&mut self, predicate: &str, negated: bool, hook: impl FnOnce(&mut Self)) {
        let guard = Guard {
            negated: !negated,
            register: predicate,
        };
        self.guarded(Some(guard), hook);
    }

    /// A hook for as many bytes as a register says, and no more than `op` has; none for none.
    pub(super) fn access_part(&mut self, address: &str, op: OpWord, bytes: &str, site: usize) {
        self.needs.state = true;
        self.needs.scratch = true;
        self.needs.predicate = true;
        let label = self.label();
        put!(
            self,
            "min.u32 {SCRATCH}, {bytes}, {}; setp.eq.u32 %gsan_p, {SCRATCH}, 0; @%gsan_p bra $L__gsan_{label}; ",
            op.size()
        );
        put!(self, "or.b32 {SCRATCH}, {SCRATCH}, {}; ", op.with_size(0).0);
        let arguments = format_args!("{STATE}, {address}, {SCRATCH}, {site}");
        self.call(None, names::ACCESS, arguments);
        put!(self, "$L__gsan_{label}: ");
    }

    /// `arguments` are those behind the site.
    pub(super) fn copy(
        &mut self,
        hook: &str,
        address: &str,
        op: OpWord,
        site: usize,
        arguments: &str,
    ) {
        self.needs.state = true;
        let arguments = format_args!("{STATE}, {address}, {}, {site}, {arguments}", op.0);
        self.call(None, hook, arguments);
    }

    /// Puts up to three 16-bit registers into [`OFFSETS`].
    pub(super) fn pack_offsets(&mut self, offsets: &[Operand<'_>]) {
        self.needs.contexts = self.needs.contexts.max(1);
        self.needs.comparands[0] = true;
        let zero = "%gsan_v16";
        let at = |n: usize| offsets.get(n).and_then(scalar_text).unwrap_or(zero.into());
        let (a, b, c) = (at(0), at(1), at(2));
        put!(
            self,
            "mov.b16 {zero}, 0; mov.b64 {OFFSETS}, {{{a}, {b}, {c}, {zero}}}; "
        );
    }

    /// A 16-bit register, or number, as one of 32 bits.
    pub(super) fn widen_mask(&mut self, mask: &str) -> String {
        if !mask.starts_with('%') {
            return mask.to_string();
        }
        self.needs.scratch = true;
        put!(self, "cvt.u32.u16 {SCRATCH}, {mask}; ");
        SCRATCH.to_string()
    }

    /// Puts the name of an mbarrier's present phase into a register; 0 where it is another block's (`cluster`: it may be).
    pub(super) fn phase_of<'a>(
        &mut self,
        base: Base<'a>,
        address: &Address<'a>,
        cluster: bool,
    ) -> &'static str {
        self.needs.scratch = true;
        self.needs.predicate = true;
        let barrier = self.address(base, address, true);
        let label = self.label();
        if cluster {
            put!(
                self,
                "mov.b32 {SCRATCH}, 0; cvta.shared::cluster.u64 {barrier}, {barrier}; isspacep.shared::cta %gsan_p, {barrier}; \
                 @!%gsan_p bra $L__gsan_{label}; cvta.to.shared.u64 {barrier}, {barrier}; "
            );
        }
        put!(
            self,
            "mbarrier.test_wait.parity.shared::cta.b64 %gsan_p, [{barrier}], 0; selp.b32 {SCRATCH}, 1, 0, %gsan_p; "
        );
        self.phase(barrier, names::PHASE);
        if cluster {
            put!(self, "$L__gsan_{label}: ");
        }
        SCRATCH
    }

    /// The hook behind a wait for an mbarrier.
    pub(super) fn copy_waited(&mut self, phase: WaitedPhase<'_, '_>) {
        self.needs.state = true;
        let Some((base, address)) = phase.barrier else {
            return self.call(None, names::COPY_WAITED, format_args!("{STATE}, 0"));
        };
        self.needs.scratch = true;
        let barrier = self.address(base, address, true);
        if phase.generic {
            put!(self, "cvta.to.shared.u64 {barrier}, {barrier}; ");
        }
        let bits = match phase.parity {
            Some(parity) => {
                put!(self, "and.b32 {SCRATCH}, {parity}, 1; ");
                names::PHASE
            }
            None => {
                put!(self, "mov.b32 {SCRATCH}, 0; ");
                names::PHASE | names::ANY_PARITY
            }
        };
        self.phase(barrier, bits);
        self.call(None, names::COPY_WAITED, format_args!("{STATE}, {SCRATCH}"));
    }

    /// [`SCRATCH`], which holds a parity, becomes the phase's name.
    fn phase(&mut self, barrier: &str, bits: u32) {
        put!(
            self,
            "cvt.u32.u64 %gsan_q, {barrier}; and.b32 %gsan_q, %gsan_q, 16777208; or.b32 {SCRATCH}, {SCRATCH}, %gsan_q; \
             or.b32 {SCRATCH}, {SCRATCH}, {bits}; "
        );
    }

    pub(super) fn copy_wait(&mut self, groups: u32) {
        self.needs.state = true;
        self.call(None, names::COPY_WAIT, format_args!("{STATE}, {groups}"));
    }

    /// `piece` is the number of the access's piece.
    pub(super) fn sync_before(&mut self, address: &str, op: OpWord, site: usize, piece: usize) {
        self.needs.state = true;
        self.needs.contexts = self.needs.contexts.max(piece + 1);
        let arguments = format_args!("{STATE}, {address}, {}, {site}", op.0);
        self.call(Some(CONTEXT[piece]), names::SYNC_BEFORE, arguments);
    }

    pub(super) fn multimem(&mut self, address: &str, op: OpWord, site: usize, piece: usize) {
        self.needs.state = true;
        self.needs.contexts = self.needs.contexts.max(piece + 1);
        let arguments = format_args!("{STATE}, {address}, {}, {site}", op.0);
        self.call(Some(CONTEXT[piece]), names::MULTIMEM, arguments);
    }

    pub(super) fn multimem_after(&mut self, op: OpWord, site: usize, piece: usize) {
        let (op, context) = (op.0, CONTEXT[piece]);
        let arguments = format_args!("{STATE}, {ADDRESS}, {op}, {site}, {context}");
        self.call(None, names::MULTIMEM_AFTER, arguments);
    }

    /// `success` is an immediate or [`Emitter::cas_success`]'s register.
    pub(super) fn sync_after(&mut self, op: OpWord, site: usize, piece: usize, success: &str) {
        let (op, context) = (op.0, CONTEXT[piece]);
        let arguments = format_args!("{STATE}, {ADDRESS}, {op}, {site}, {context}, {success}");
        self.call(None, names::SYNC_AFTER, arguments);
    }

    /// Keeps a CAS's comparand: the result may go to the same register. False if it has a size that no CAS has.
    pub(super) fn save_comparand(&mut self, text: &str, size: u32) -> bool {
        match size {
            2 => {
                self.needs.comparands[0] = true;
                put!(self, "mov.b16 %gsan_v16, {text}; ");
            }
            4 => {
                self.needs.comparands[1] = true;
                put!(self, "mov.b32 %gsan_v32, {text}; ");
            }
            8 => {
                self.needs.comparands[2] = true;
                put!(self, "mov.b64 %gsan_v64, {text}; ");
            }
            16 => {
                self.needs.comparands[2] = true;
                self.needs.comparands[3] = true;
                put!(self, "mov.b128 {{%gsan_v64, %gsan_w64}}, {text}; ");
            }
            _ => return false,
        }
        true
    }

    /// Compares a CAS's result with the saved comparand: it wrote if they are equal. Returns the register.
    pub(super) fn cas_success(&mut self, result: &str, size: u32) -> &'static str {
        self.needs.predicate = true;
        self.needs.scratch = true;
        if size == 16 {
            put!(self, "mov.b128 {{%gsan_x64, %gsan_y64}}, {result}; ");
            put!(self, "setp.eq.b64 %gsan_p, %gsan_x64, %gsan_v64; ");
            put!(
                self,
                "setp.eq.and.b64 %gsan_p, %gsan_y64, %gsan_w64, %gsan_p; "
            );
        } else {
            let bits = size * 8;
            put!(self, "setp.eq.b{bits} %gsan_p, {result}, %gsan_v{bits}; ");
        }
        put!(self, "selp.b32 {SCRATCH}, 1, 0, %gsan_p; ");
        SCRATCH
    }

    pub(super) fn fence(&mut self, op: OpWord) {
        self.needs.state = true;
        self.call(None, names::FENCE, format_args!("{STATE}, {}", op.0));
    }

    /// Keeps a 32-bit value, one of the two that [`Needs::scratch`] declares.
    pub(super) fn save(&mut self, register: &str, value: &str) {
        self.needs.scratch = true;
        put!(self, "mov.b32 {register}, {value}; ");
    }

    /// Keeps a predicate.
    pub(super) fn save_predicate(&mut self, register: &str, value: &str) {
        self.needs.predicate = true;
        put!(self, "mov.pred {register}, {value}; ");
    }

    pub(super) fn barrier_before(&mut self, id: &str, count: &str) {
        self.needs.state = true;
        let arguments = format_args!("{STATE}, {id}, {count}");
        self.call(None, names::BARRIER_BEFORE, arguments);
    }

    pub(super) fn barrier_after(&mut self, id: &str, count: &str) {
        self.needs.state = true;
        let arguments = format_args!("{STATE}, {id}, {count}");
        self.call(None, names::BARRIER_AFTER, arguments);
    }

    /// A hook that takes the state alone.
    pub(super) fn with_state(&mut self, hook: &str) {
        self.needs.state = true;
        self.call(None, hook, format_args!("{STATE}"));
    }

    /// The same where a generic address is one of the cluster's shared memory.
    pub(super) fn with_state_in_cluster(&mut self, address: &str, hook: &str) {
        self.needs.predicate = true;
        put!(self, "isspacep.shared::cluster %gsan_p, {address}; ");
        self.unless("%gsan_p", true, |emit| emit.with_state(hook));
    }

    /// `copies` are the hooks for what the thread's copies have left.
    pub(super) fn exit(&mut self, copies: &[&str]) {
        for hook in copies {
            self.with_state(hook);
        }
        self.call(None, names::EXIT, format_args!(""));
    }

    /// Replaces what was read from `%dynamic_smem_size`: `opcode` + `rest` is the user's instruction with [`SCRATCH`]
    /// in that register's place.
    pub(super) fn dynamic_size(&mut self, opcode: &str, rest: &str) {
        self.needs.scratch = true;
        self.call(Some(SCRATCH), names::DYNAMIC_SIZE, format_args!(""));
        put!(
            self,
            "{opcode}{}{rest} ",
            if rest.starts_with('.') { "" } else { " " }
        );
    }

    /// The beginning of a function's body: declarations, the block's entry, the state.
    pub(super) fn prologue(&mut self, entry: bool) {
        if entry {
            self.needs.address = true;
            self.needs.scratch = true;
            self.needs.predicate = true;
        }
        let needs = self.needs;
        let comparands = needs.comparands;
        let declarations: [(bool, &str); 10] = [
            (needs.state, ".reg .b64 %gsan_s;"),
            (needs.address, ".reg .b64 %gsan_a;"),
            (needs.contexts > 0, ".reg .b64 %gsan_c;"),
            (
                needs.contexts > 1,
                ".reg .b64 %gsan_c1, %gsan_c2, %gsan_c3;",
            ),
            (needs.scratch, ".reg .b32 %gsan_r, %gsan_q;"),
            (needs.predicate, ".reg .pred %gsan_p;"),
            (comparands[0], ".reg .b16 %gsan_v16;"),
            (comparands[1], ".reg .b32 %gsan_v32;"),
            (comparands[2], ".reg .b64 %gsan_v64;"),
            (comparands[3], ".reg .b64 %gsan_w64, %gsan_x64, %gsan_y64;"),
        ];
        for (_, text) in declarations.iter().filter(|(needed, _)| *needed) {
            put!(self, " {text}");
        }
        if entry {
            let label = self.label();
            put!(self, " ld.param.u64 {ADDRESS}, [{}];", names::LAUNCH);
            put!(
                self,
                " mov.u32 %gsan_r, %tid.x; mov.u32 %gsan_q, %tid.y; or.b32 %gsan_r, %gsan_r, %gsan_q;"
            );
            put!(
                self,
                " mov.u32 %gsan_q, %tid.z; or.b32 %gsan_r, %gsan_r, %gsan_q;"
            );
            put!(
                self,
                " setp.ne.u32 %gsan_p, %gsan_r, 0; @%gsan_p bra $L__gsan_{label}; "
            );
            self.call(None, names::BLOCK_ENTER, format_args!("{ADDRESS}"));
            put!(self, "$L__gsan_{label}: bar.sync 0;");
        }
        if needs.state {
            put!(self, " ");
            self.call(Some(STATE), names::STATE, format_args!(""));
            // What follows begins with a blank of its own.
            self.edits.pieces.pop();
        }
    }
}

/// An operand as text for a `mov`; `None` for those that a CAS can't have.
pub(super) fn scalar_text(operand: &Operand<'_>) -> Option<String> {
    Some(match operand {
        Operand::Name(name) => name.to_string(),
        Operand::Int(value) => value.to_string(),
        Operand::F32(bits) => format!("0f{bits:08X}"),
        Operand::F64(bits) => format!("0d{bits:016X}"),
        _ => return None,
    })
}
