//! The checkers that look at one pair of anchors, and the rule for pairs that never go together.

use super::attrs::AnchorAttr;
use super::detect::Detector;
use super::symbols::{AnchorId, alias_input};
use super::table::Checker;
use crate::ctx::PassError;
use crate::ir::{Kind, MemType, OutRef};

type Side = (AnchorId, AnchorAttr);

/// Which of a pair that never goes together is isolated.
pub(super) fn absolute(d: &Detector<'_>, a: AnchorId, b: AnchorId) -> Result<AnchorId, PassError> {
    match (d.space.at(a).input, d.space.at(b).input) {
        (true, true) => Ok(smaller_unreferenced(d, a, b)),
        (true, false) => Ok(a),
        (false, true) => Ok(b),
        (false, false) => Err(PassError::Failed(format!(
            "{} and {} never go together and neither is an input: no copy can part them",
            d.space.key(d.module, a),
            d.space.key(d.module, b)
        ))),
    }
}

/// The anchor to isolate, if the pair is in conflict. `members`: the class that they are in.
pub(super) fn check(
    d: &Detector<'_>,
    c: Checker,
    members: &[AnchorId],
    a: Side,
    b: Side,
) -> Option<AnchorId> {
    use AnchorAttr as A;
    let side = |want: fn(A) -> bool| if want(a.1) { (a.0, b.0) } else { (b.0, a.0) };
    match c {
        Checker::ContinuousRts => {
            let (special, continuous) = side(|x| matches!(x, A::RtsIn | A::RtsOut));
            continuous_and_special(d, continuous, special)
        }
        Checker::UserInContinuous => {
            let (user, other) = side(|x| x == A::UserIn);
            let what = if a.1 == A::UserIn { b.1 } else { a.1 };
            if what == A::Npci && super::continuous::one_source(d, other) {
                return None;
            }
            if what == A::Npco && d.mode.user_in_npco {
                return None;
            }
            Some(after_assign(d, members, other).unwrap_or(user))
        }
        Checker::UserInUnrefreshOut => {
            let (user, fixed) = side(|x| x == A::UserIn);
            let choice = if refreshes(d, user, fixed) {
                fixed
            } else {
                user
            };
            Some(after_assign(d, members, fixed).unwrap_or(choice))
        }
        Checker::UserInRtsOut => {
            let (user, special) = side(|x| x == A::UserIn);
            Some(after_assign(d, members, special).unwrap_or(user))
        }
        Checker::UserOutUnrefreshOut | Checker::UserOutUnrefreshIn => {
            let (user, fixed) = side(|x| x == A::UserOut);
            Some(if refreshes(d, user, fixed) {
                fixed
            } else {
                user
            })
        }
        Checker::UserOutImmutable => {
            let (user, fixed) = side(|x| x == A::UserOut);
            let kind = d.node(d.space.at(fixed)).kind;
            (d.mode.root_static && !kind.is_var_like()).then_some(user)
        }
        Checker::UserOutContinuousIn => {
            let (user, continuous) = side(|x| x == A::UserOut);
            let at = d.space.at(user);
            let producer = d
                .module
                .graph(at.graph)
                .producer(at.in_ref())
                .map(|o| (at.graph, o.node));
            (producer != Some(d.space.at(continuous).place())).then_some(user)
        }
        Checker::ImmutableRtsOut => {
            let (fixed, special) = side(|x| x == A::Immutable);
            Some(after_assign(d, members, special).unwrap_or(fixed))
        }
        Checker::ImmutableNpci => {
            let (_, continuous) = side(|x| x == A::Immutable);
            (!super::continuous::one_source(d, continuous)).then_some(continuous)
        }
        Checker::ImmutableContinuousOut => {
            let (_, continuous) = side(|x| x == A::Immutable);
            Some(
                after_assign(d, members, continuous)
                    .or_else(|| own_input(d, members, continuous))
                    .unwrap_or(continuous),
            )
        }
        Checker::NpciNpco => {
            let (concat, split) = side(|x| x == A::Npci);
            (!concat_feeds_split(d, concat, split)).then_some(concat)
        }
        Checker::RtsInRtsIn => {
            (mem(d, a.0) != mem(d, b.0)).then(|| smaller_unreferenced(d, a.0, b.0))
        }
        Checker::RtsInRtsOut => {
            let (out, _) = side(|x| x == A::RtsOut);
            (mem(d, a.0) != mem(d, b.0)).then_some(out)
        }
        Checker::RtsOutRtsOut => {
            (mem(d, a.0) != mem(d, b.0)).then(|| if id(d, b.0) < id(d, a.0) { b.0 } else { a.0 })
        }
        Checker::UnrefreshIn => {
            refreshes(d, a.0, b.0).then_some(if b.1 == A::UnrefreshIn { b.0 } else { a.0 })
        }
        Checker::UnrefreshOut => {
            refreshes(d, a.0, b.0).then_some(if a.1 == A::UnrefreshOut { a.0 } else { b.0 })
        }
        // These look at lists: `continuous` has them.
        Checker::CiCi | Checker::CoCi | Checker::CoCo | Checker::NpciNpci | Checker::NpcoNpco => {
            None
        }
    }
}

/// Whether addresses are refreshed, or physical memory is mapped anew around an operator that can't follow.
fn refreshes(d: &Detector<'_>, a: AnchorId, b: AnchorId) -> bool {
    let switch = |x: AnchorId| d.node(d.space.at(x)).kind.is_address_switch();
    d.mode.fm_refreshable || (d.mode.physical && (switch(a) || switch(b)))
}

fn mem(d: &Detector<'_>, a: AnchorId) -> MemType {
    let at = d.space.at(a);
    let node = d.node(at);
    if at.input {
        node.input_mem(at.index as usize)
    } else {
        node.output_mem(at.index as usize)
    }
}

fn id(d: &Detector<'_>, a: AnchorId) -> Option<i64> {
    d.node(d.space.at(a)).id
}

/// The one that runs first, unless its operator passes that very memory on.
fn smaller_unreferenced(d: &Detector<'_>, a: AnchorId, b: AnchorId) -> AnchorId {
    if id(d, a) < id(d, b) && !is_referenced(d, a) {
        a
    } else {
        b
    }
}

/// Whether an output of the same operator is this input.
fn is_referenced(d: &Detector<'_>, a: AnchorId) -> bool {
    let at = d.space.at(a);
    let node = d.node(at);
    at.input && (0..node.outputs.len()).any(|o| alias_input(node, o) == Some(at.index as usize))
}

fn continuous_and_special(
    d: &Detector<'_>,
    continuous: AnchorId,
    special: AnchorId,
) -> Option<AnchorId> {
    if mem(d, continuous).is_special() {
        return None;
    }
    Some(if is_referenced(d, continuous) {
        special
    } else {
        continuous
    })
}

/// If the operator of `other` gets this memory straight from an assignment, its input is the place for the copy: put
/// before the assignment, it would keep the new value from the variable.
fn after_assign(d: &Detector<'_>, members: &[AnchorId], other: AnchorId) -> Option<AnchorId> {
    let at = d.space.at(other);
    let graph = d.module.graph(at.graph);
    let inputs = graph
        .node(at.node)
        .inputs
        .iter()
        .enumerate()
        .filter_map(|(i, x)| {
            let from = x.from?;
            (graph.node(from.node).kind == Kind::Assign).then_some(i as u32)
        });
    inputs
        .filter_map(|index| {
            d.space.input(
                at.graph,
                crate::ir::InRef {
                    node: at.node,
                    index,
                },
            )
        })
        .filter(|a| d.shares(*a, members))
        .min_by_key(|a| *a != other)
}

/// The input that a continuous operator's output is.
fn own_input(d: &Detector<'_>, members: &[AnchorId], out: AnchorId) -> Option<AnchorId> {
    let at = d.space.at(out);
    let input = if at.input {
        at.index as usize
    } else {
        alias_input(d.node(at), at.index as usize)?
    };
    let a = d.space.input(
        at.graph,
        crate::ir::InRef {
            node: at.node,
            index: input as u32,
        },
    )?;
    d.shares(a, members).then_some(a)
}

fn concat_feeds_split(d: &Detector<'_>, concat: AnchorId, split: AnchorId) -> bool {
    let (c, s) = (d.space.at(concat), d.space.at(split));
    let input = crate::ir::InRef {
        node: s.node,
        index: 0,
    };
    c.graph == s.graph
        && d.module.graph(s.graph).producer(input)
            == Some(OutRef {
                node: c.node,
                index: 0,
            })
}
