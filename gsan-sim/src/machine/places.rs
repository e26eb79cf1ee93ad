//! Where a warp may be stopped: the places of a kernel, for the schedule by priorities. And which functions are gsan's own.

use super::exec::touches;
use super::ir::{Function, Op, Program, Target};
use super::priority::Place;

/// The places of a function and of those that it calls by name, hooks excepted.
pub fn of(program: &Program, function: u32) -> Vec<Place> {
    let mut places = Vec::new();
    let mut functions = vec![(function, false)];
    let mut next = 0;
    while let Some(&(index, repeats)) = functions.get(next) {
        next += 1;
        let Some(function) = program.functions.get(index as usize) else {
            continue;
        };
        let loops = loops(program, function);
        // The hook before the instruction at hand.
        let mut hook = None;
        for pc in function.start..function.end {
            let op = &program.code[pc as usize].op;
            let repeats = repeats || loops.iter().any(|(from, to)| (from..=to).contains(&&pc));
            if let Op::Call(call) = op {
                if let Target::Direct(callee) = call.target {
                    if is_hook(program, callee) {
                        hook = Some(pc);
                        continue;
                    }
                    if !functions.iter().any(|(f, _)| *f == callee) {
                        functions.push((callee, repeats));
                    }
                }
            } else if !touches(op) {
                continue;
            }
            places.push(Place {
                pc: hook.take().unwrap_or(pc),
                repeats,
            });
        }
    }
    places
}

/// Marks the hooks and all that they call.
pub fn mark_runtime(program: &mut Program) {
    let hooks = (0..program.functions.len() as u32).filter(|&f| is_hook(program, f));
    let mut own: Vec<u32> = hooks.collect();
    while let Some(index) = own.pop() {
        let function = &mut program.functions[index as usize];
        if function.entry || std::mem::replace(&mut function.runtime, true) {
            continue;
        }
        for inst in &program.code[function.start as usize..function.end as usize] {
            if let Op::Call(call) = &inst.op
                && let Target::Direct(callee) = call.target
                && (callee as usize) < program.functions.len()
            {
                own.push(callee);
            }
        }
    }
}

fn is_hook(program: &Program, function: u32) -> bool {
    let function = program.functions.get(function as usize);
    function.is_some_and(|f| f.name.starts_with(gsan_ptx::hook::names::PREFIX))
}

/// Branches back, from where they lead to where they stand.
fn loops(program: &Program, function: &Function) -> Vec<(u32, u32)> {
    (function.start..function.end)
        .filter_map(|pc| match program.code[pc as usize].op {
            Op::Branch { target, .. } if target <= pc => Some((target, pc)),
            _ => None,
        })
        .collect()
}
