//! How the blocks of one cluster synchronise: the cluster's barrier, and flags and mbarriers in each other's shared memory.
//!
//! A hook says "releases" before what another block of the cluster may see, and "acquires" after what may have seen another
//! block's. The runtime takes all of a cluster's as one place, which may add order and never leaves any out. So may the choice of
//! what gets a hook: every wait for an mbarrier, for example, though only those with remote arrivals would need one.

use super::function::Walker;
use crate::ast::{Instruction, Space};
use crate::hook::{Access, Order, Scope, names};
use crate::memory_op::{Effect, MemoryOp};

/// What is noted while a function is walked.
#[derive(Default)]
pub(super) struct ClusterHooks {
    /// Whether the module gets such hooks.
    pub(super) on: bool,
    /// The runtime has none.
    pub(super) missing: bool,
    /// A fence may have been before, in this function or around a call, so that what is relaxed releases too.
    pub(super) fenced: bool,
    /// The note about waits without a call is made.
    pub(super) said_so: bool,
}

/// What goes before an instruction.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Before {
    Nothing,
    Arrive,
    Release,
}

/// Whether a module for these targets may have clusters. Whatever concerns them needs sm_90; that a comment may mention them
/// in a module which could have them does no harm.
pub(super) fn possible(targets: &[&str], text: &str) -> bool {
    let words = ["::cluster", ".cluster", "mapa"];
    let newest = targets.iter().filter_map(|t| super::target_number(t)).max();
    newest.is_some_and(|t| t >= 90) && words.iter().any(|w| text.contains(w))
}

/// Whether a relaxed write in the function with this text may stand behind a fence that reaches the cluster. In a loop the fence
/// may come later in the text. Those for proxies and for the initialisation of mbarriers release no data.
pub(super) fn may_fence(text: &str) -> bool {
    let mut fences = ["fence.", "membar."].iter().flat_map(|word| {
        let places = text.match_indices(word);
        places.map(|(at, _)| text[at..].split(';').next().unwrap_or(""))
    });
    let other = [".cta", ".mbarrier_init", ".proxy", ".sync_restrict"];
    text.contains("call") || fences.any(|fence| !other.iter().any(|word| fence.contains(word)))
}

/// What `instruction` is to the other blocks of its cluster: what goes before it, and whether it acquires.
fn sync(instruction: &Instruction<'_>, effect: &Effect<'_, '_>, fenced: bool) -> (Before, bool) {
    let has = |m: &str| instruction.has(m);
    let any = |list: &[&str]| list.iter().any(|m| has(m));
    let releases = fenced || any(&["release", "acq_rel"]);
    match (effect, instruction.opcode) {
        (Effect::Barrier, _) if has("cluster") && has("wait") => (Before::Nothing, true),
        (Effect::Barrier, _) if has("cluster") && (!has("relaxed") || fenced) => {
            (Before::Arrive, false)
        }
        (Effect::Private(_), "mbarrier") => {
            // Without a space the address is generic.
            let far = any(&["cluster", "shared::cluster"]) || !any(&["shared", "shared::cta"]);
            if has("test_wait") || has("try_wait") {
                (Before::Nothing, true)
            } else if far && any(&["arrive", "arrive_drop"]) && (fenced || !has("relaxed")) {
                (Before::Release, false)
            } else {
                (Before::Nothing, false)
            }
        }
        (Effect::Private(space @ (Space::Shared | Space::SharedCluster)), opcode) => {
            let far = *space == Space::SharedCluster || !has("cta");
            let strong = any(&["volatile", "mmio", "relaxed", "acquire", "release"]);
            match opcode {
                _ if !far => (Before::Nothing, false),
                "ld" => (Before::Nothing, strong),
                "atom" if releases => (Before::Release, true),
                "atom" => (Before::Nothing, true),
                // Their completion releases at an mbarrier.
                "st" | "red" if has("async") => (Before::Release, false),
                "st" | "red" if releases => (Before::Release, false),
                _ => (Before::Nothing, false),
            }
        }
        // So does this, and who waits there knows that the source has been read.
        (Effect::Copy(copy), _) if copy.cluster => (Before::Release, false),
        _ => (Before::Nothing, false),
    }
}

impl<'m> Walker<'m, '_> {
    /// The hook before an instruction, and whether one goes behind it.
    pub(super) fn cluster_before(
        &mut self,
        instruction: &Instruction<'m>,
        effect: &Effect<'_, 'm>,
    ) -> bool {
        if !self.cluster.on {
            if self.cluster.missing {
                self.cluster_unseen(instruction);
            }
            return false;
        }
        // A function's fence may stand in its caller.
        let (before, after) = sync(instruction, effect, self.cluster.fenced || !self.entry);
        self.cluster_hook_before(instruction, before);
        after
    }

    fn cluster_hook_before(&mut self, instruction: &Instruction<'m>, before: Before) {
        let hook = match before {
            Before::Nothing => return,
            Before::Arrive => names::CLUSTER_ARRIVE,
            Before::Release => names::CLUSTER_RELEASE,
        };
        self.out.stats.cluster_syncs += 1;
        let from = self.emit.mark();
        self.emit
            .guarded(instruction.guard, |emit| emit.with_state(hook));
        self.emit.edits.insert_since(instruction.span.start, from);
    }

    /// An access with a generic address that is provably the block's own shared memory: whether it acquires from the cluster.
    pub(super) fn cluster_own_memory(
        &mut self,
        instruction: &Instruction<'m>,
        op: &MemoryOp<'_, 'm>,
    ) -> bool {
        let far = self.cluster_reaches(op);
        if far && self.cluster_releases(op) {
            self.cluster_hook_before(instruction, Before::Release);
        }
        far
    }

    /// Whether a strong generic access may concern other blocks of the cluster.
    pub(super) fn cluster_reaches(&self, op: &MemoryOp<'_, 'm>) -> bool {
        self.cluster.on && op.generic && op.is_strong() && op.scope != Scope::Cta
    }

    /// Whether a strong access is, or may be together with a fence, a release.
    pub(super) fn cluster_releases(&self, op: &MemoryOp<'_, 'm>) -> bool {
        op.access != Access::Load
            && (self.cluster.fenced
                || !self.entry
                || matches!(op.order, Order::Release | Order::AcqRel | Order::Sc))
    }

    /// With a runtime that has no hooks for it, the report must say that order may be missing.
    fn cluster_unseen(&mut self, instruction: &Instruction<'m>) {
        let concerned = matches!(instruction.opcode, "bar" | "barrier" | "mbarrier");
        if concerned && (instruction.has("cluster") || instruction.has("shared::cluster")) {
            let why = "synchronisation inside a cluster is not followed: findings between blocks of one cluster may be wrong";
            self.note(instruction.span.clone(), why);
        }
    }

    /// In a kernel with `setmaxnreg` waits for mbarriers have no call.
    pub(super) fn cluster_wait_unseen(&mut self, instruction: &Instruction<'m>) {
        if !std::mem::replace(&mut self.cluster.said_so, true) {
            let why = "in kernels with setmaxnreg waits for mbarriers have no hook: in a launch with clusters, order that comes from \
                       another block's arrival is not followed, and findings between blocks of one cluster may be wrong";
            self.note(instruction.span.clone(), why);
        }
    }
}
