//! `sin`, `cos`, `ex2`, `lg2`, `tanh`: computed in double precision and rounded once.

use super::round::{canonical, finish, flush};
use super::{Alu, Mods, one};
use crate::machine::ty::Ty;

/// The function of that name, if it is one.
pub fn find(opcode: &str, mods: &Mods<'_>) -> Option<Alu> {
    if mods.ty()? != Ty::F32 {
        return None;
    }
    let func = match opcode {
        "sin" => one!(|f, a: f32| finish(f64::from(flush(a, f)).sin() as f32, f)),
        "cos" => one!(|f, a: f32| finish(f64::from(flush(a, f)).cos() as f32, f)),
        "ex2" => one!(|f, a: f32| finish(f64::from(flush(a, f)).exp2() as f32, f)),
        "lg2" => one!(|f, a: f32| finish(logarithm(flush(a, f)), f)),
        "tanh" => one!(|_, a: f32| canonical(f64::from(a).tanh() as f32)),
        _ => return None,
    };
    Some(Alu::same(func, mods.float_flags(), Ty::F32))
}

fn logarithm(a: f32) -> f32 {
    if a == 0.0 {
        f32::NEG_INFINITY
    } else {
        f64::from(a).log2() as f32
    }
}
