//! Where variables and parameters lie: sizes, initial values, shared memory.

use gsan_ptx::ast::{self, Init, Item, Operand, Space, Statement};
use rustc_hash::{FxHashMap, FxHashSet};

use super::{Context, Symbol};
use crate::machine::LoadError;
use crate::machine::ty::Ty;

/// Bytes of one element, vector included.
fn element(v: &ast::Variable<'_>) -> u64 {
    let scalar = Ty::parse(v.ty).map_or(8, Ty::bytes);
    u64::from(scalar) * u64::from(v.vector.max(1))
}

/// Alignment of a variable.
pub fn align_of(v: &ast::Variable<'_>) -> u32 {
    v.align
        .unwrap_or(element(v) as u32)
        .clamp(1, 1 << 20)
        .next_power_of_two()
}

/// Bytes of a variable; an open dimension takes its length from the initialiser (0 without).
pub fn size_of(v: &ast::Variable<'_>) -> Option<u64> {
    let mut count = 1u64;
    for (i, dim) in v.dims.iter().enumerate() {
        let n = match dim {
            Some(n) => *n,
            None if i == 0 => v.init.as_ref().map_or(0, |init| init.len() as u64),
            None => return None,
        };
        count = count.checked_mul(n)?;
    }
    count.checked_mul(element(v)).filter(|&n| n < 1 << 40)
}

/// Offsets and sizes of parameters, and the bytes of all.
pub fn params(list: &[ast::Variable<'_>]) -> (Vec<(u32, u32)>, u32) {
    let mut at = 0u32;
    let mut out = Vec::new();
    for v in list {
        let size = size_of(v).unwrap_or(0).min(1 << 20) as u32;
        at = at.next_multiple_of(align_of(v));
        out.push((at, size));
        at = at.saturating_add(size);
    }
    (out, at)
}

/// The bytes of an initialised variable.
pub fn initial(
    v: &ast::Variable<'_>,
    size: u64,
    context: &Context<'_>,
) -> Result<Vec<u8>, LoadError> {
    let mut bytes = vec![0; size as usize];
    let scalar = u64::from(Ty::parse(v.ty).map_or(8, Ty::bytes));
    // Bytes of one row at each depth of braces.
    let mut strides = Vec::new();
    let mut dims: Vec<u64> = v.dims.iter().map(|d| d.unwrap_or(0)).collect();
    if v.vector > 1 {
        dims.push(u64::from(v.vector));
    }
    for depth in 1..=dims.len() {
        strides.push(dims[depth..].iter().product::<u64>() * scalar);
    }
    if let Some(init) = &v.init {
        fill(v, init, 0, 0, &strides, scalar, &mut bytes, context)?;
    }
    Ok(bytes)
}

#[allow(clippy::too_many_arguments)]
fn fill(
    v: &ast::Variable<'_>,
    items: &[Init<'_>],
    start: u64,
    depth: usize,
    strides: &[u64],
    scalar: u64,
    bytes: &mut [u8],
    context: &Context<'_>,
) -> Result<(), LoadError> {
    let mut at = start;
    for item in items {
        let value = match item {
            Init::Nested(inner) => {
                fill(v, inner, at, depth + 1, strides, scalar, bytes, context)?;
                at += strides.get(depth).copied().unwrap_or(scalar);
                continue;
            }
            Init::Int(n) => *n as u128,
            Init::Float(x) => match v.ty {
                "f32" => u128::from((*x as f32).to_bits()),
                _ => u128::from(x.to_bits()),
            },
            Init::Symbol {
                name, offset, mask, ..
            } => {
                let address = match context.symbols.get(name) {
                    Some(Symbol::Memory(address)) => *address,
                    Some(Symbol::Function(index)) => super::FUNCTION_BASE + 16 * u64::from(*index),
                    _ => {
                        return Err(context.error(
                            v.span.start,
                            format!("`{name}` in the initialiser of `{}` has no address", v.name),
                        ));
                    }
                };
                let full = address.wrapping_add_signed(*offset);
                u128::from(match mask {
                    Some(m) if *m != 0 => (full & m) >> m.trailing_zeros(),
                    _ => full,
                })
            }
        };
        let at_index = at as usize;
        if let Some(slot) = bytes.get_mut(at_index..at_index + scalar as usize) {
            slot.copy_from_slice(&value.to_le_bytes()[..scalar as usize]);
        } else {
            return Err(context.error(
                v.span.start,
                format!("too many initial values for `{}`", v.name),
            ));
        }
        at += scalar;
    }
    Ok(())
}

/// Calls `f` with every variable declared inside a body.
pub fn inner_variables<'m, 'a>(
    statements: &'m [Statement<'a>],
    f: &mut impl FnMut(&'m ast::Variable<'a>),
) {
    for s in statements {
        match s {
            Statement::Variable(v) => f(v),
            Statement::Block { statements, .. } => inner_variables(statements, f),
            _ => {}
        }
    }
}

/// Calls `f` with every name that instructions mention.
fn names<'a>(statements: &[Statement<'a>], f: &mut impl FnMut(&'a str)) {
    fn operand<'a>(o: &Operand<'a>, f: &mut impl FnMut(&'a str)) {
        match o {
            Operand::Name(n) | Operand::NameOffset(n, _) => f(n),
            Operand::Not(o) | Operand::Neg(o) => operand(o, f),
            Operand::Vector(list) | Operand::List(list) | Operand::Tensor(list) => {
                list.iter().for_each(|o| operand(o, f));
            }
            Operand::Pair(a, b) => {
                operand(a, f);
                operand(b, f);
            }
            Operand::Address(a) => a.base.into_iter().for_each(f),
            _ => {}
        }
    }
    for s in statements {
        match s {
            Statement::Instruction(i) => i.operands.iter().for_each(|o| operand(o, f)),
            Statement::Block { statements, .. } => names(statements, f),
            Statement::Targets { targets, .. } => targets.iter().for_each(|t| f(t)),
            _ => {}
        }
    }
}

/// Shared memory of each function with a body.
pub struct Shared {
    /// Bytes of static shared memory that a kernel needs.
    pub statics: Vec<u32>,
    /// The largest alignment.
    pub aligns: Vec<u32>,
}

/// Gives static shared variables their addresses.
///
/// What several kernels reach has the same address in all of them and comes first; a kernel's own variables follow what
/// it shares with others. So a kernel that shares nothing has exactly what it declares.
pub fn shared<'a>(
    module: &ast::Module<'a>,
    bodies: &[&ast::Function<'a>],
    context: &mut Context<'a>,
    reserved: u32,
) -> Result<Shared, LoadError> {
    let mut variables: Vec<&ast::Variable<'a>> = Vec::new();
    let mut by_name: FxHashMap<&str, usize> = FxHashMap::default();
    let mut dynamic: FxHashMap<&str, u32> = FxHashMap::default();
    for item in &module.items {
        if let Item::Variable(v) = item
            && v.space == Space::Shared
        {
            if v.linkage == Some("extern") {
                dynamic.insert(v.name, align_of(v));
                context
                    .symbols
                    .insert(v.name, Symbol::DynamicShared(align_of(v)));
            } else {
                by_name.insert(v.name, variables.len());
                variables.push(v);
            }
        }
    }
    let top_level = variables.len();
    let function_index: FxHashMap<&str, usize> = bodies
        .iter()
        .enumerate()
        .map(|(i, f)| (f.name, i))
        .collect();
    let mut uses: Vec<FxHashSet<usize>> = vec![FxHashSet::default(); bodies.len()];
    let mut calls: Vec<FxHashSet<usize>> = vec![FxHashSet::default(); bodies.len()];
    let mut dynamic_align = vec![0u32; bodies.len()];
    for (i, f) in bodies.iter().enumerate() {
        let Some(body) = &f.body else { continue };
        inner_variables(&body.statements, &mut |v| {
            if v.space == Space::Shared {
                uses[i].insert(variables.len());
                variables.push(v);
            }
        });
        names(&body.statements, &mut |name| {
            if let Some(&v) = by_name.get(name) {
                uses[i].insert(v);
            }
            if let Some(&callee) = function_index.get(name) {
                calls[i].insert(callee);
            }
            if let Some(&align) = dynamic.get(name) {
                dynamic_align[i] = dynamic_align[i].max(align);
            }
        });
    }
    // Functions whose address stands in a variable can be called from anywhere.
    let mut addressed = Vec::new();
    for item in &module.items {
        if let Item::Variable(ast::Variable {
            init: Some(init), ..
        }) = item
        {
            initial_functions(init, &function_index, &mut addressed);
        }
    }
    let reach = |entry: usize| {
        let mut seen = FxHashSet::default();
        let mut todo = addressed.clone();
        todo.push(entry);
        while let Some(i) = todo.pop() {
            if seen.insert(i) {
                todo.extend(calls[i].iter().copied());
            }
        }
        seen
    };
    let entries: Vec<usize> = (0..bodies.len()).filter(|&i| bodies[i].entry).collect();
    let mut users: Vec<Vec<usize>> = vec![Vec::new(); variables.len()];
    let mut aligns = vec![1u32; bodies.len()];
    let mut open = vec![0u32; bodies.len()];
    for &entry in &entries {
        let mut mine: Vec<usize> = Vec::new();
        for i in reach(entry) {
            mine.extend(uses[i].iter().copied());
            open[entry] = open[entry].max(dynamic_align[i]);
        }
        mine.sort_unstable();
        mine.dedup();
        for v in mine {
            users[v].push(entry);
            aligns[entry] = aligns[entry].max(align_of(variables[v]));
        }
        aligns[entry] = aligns[entry].max(open[entry]);
    }
    let mut statics = vec![0u32; bodies.len()];
    let mut offsets = vec![0u32; variables.len()];
    let mut common_end = 0;
    for common in [true, false] {
        for (v, variable) in variables.iter().enumerate() {
            if (users[v].len() > 1) != common || users[v].is_empty() {
                continue;
            }
            let size = size_of(variable).filter(|&s| s <= 1 << 24).ok_or_else(|| {
                context.error(
                    variable.span.start,
                    format!("`{}` is too large for shared memory", variable.name),
                )
            })? as u32;
            let after = if common {
                common_end
            } else {
                users[v].iter().map(|&e| statics[e]).max().unwrap_or(0)
            };
            offsets[v] = after.next_multiple_of(align_of(variable));
            let end = offsets[v] + size;
            if common {
                common_end = end;
            }
            for &e in &users[v] {
                statics[e] = statics[e].max(end);
            }
        }
    }
    for &e in &entries {
        if open[e] > 0 {
            statics[e] = statics[e].next_multiple_of(open[e]);
        }
    }
    for (v, variable) in variables.iter().enumerate() {
        let address = reserved + offsets[v];
        if v < top_level {
            context
                .symbols
                .insert(variable.name, Symbol::Shared(address));
        } else {
            context.shared.insert(variable.span.start, address);
        }
    }
    Ok(Shared { statics, aligns })
}

fn initial_functions(init: &[Init<'_>], functions: &FxHashMap<&str, usize>, out: &mut Vec<usize>) {
    for item in init {
        match item {
            Init::Nested(inner) => initial_functions(inner, functions, out),
            Init::Symbol { name, .. } => out.extend(functions.get(name)),
            _ => {}
        }
    }
}
