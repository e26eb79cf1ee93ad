//! Generic addresses that are the thread's own stack, or the block's shared memory, whatever the run does.
//!
//! `cvta.local`, `cvta.shared`, `cvta.const` and `cvta.param` make generic addresses that are none of global memory, and
//! so do copies of them and additions of offsets: PTX leaves undefined what an address does that leaves its variable. A
//! register is such an address if everything that is ever assigned to it is one. The analysis looks at the function's
//! assignments in no order, so loops need no care; a register that is declared in an inner scope, where the name may
//! mean another one, is not looked at.

use crate::ast::{Function, Instruction, Operand, Space, Statement};
use std::collections::{HashMap, HashSet};

/// The registers of a function that hold addresses of private memory and nothing else.
#[derive(Default)]
pub(super) struct OwnMemory<'a>(HashSet<&'a str>);

impl<'a> OwnMemory<'a> {
    /// `text` is the function's.
    pub(super) fn of(function: &Function<'a>, text: &str) -> OwnMemory<'a> {
        let Some(body) = &function.body else {
            return OwnMemory::default();
        };
        if !makes_private_addresses(text) {
            return OwnMemory::default();
        }
        let mut facts = Facts::default();
        for parameter in function.returns.iter().chain(&function.params) {
            if parameter.space == Space::Reg {
                facts.assign(parameter.name, Value::Other);
            }
        }
        facts.statements(&body.statements, false);
        OwnMemory(facts.solve())
    }

    pub(super) fn holds(&self, register: &str) -> bool {
        // Nearly every function is done with the first.
        !self.0.is_empty() && self.0.contains(register)
    }
}

/// A look at the text: most functions have no such instruction.
fn makes_private_addresses(text: &str) -> bool {
    text.match_indices("cvta.").any(|(at, word)| {
        let rest = &text[at + word.len()..];
        !rest.starts_with("to.") && !rest.starts_with("global")
    })
}

/// What an instruction assigns.
#[derive(Clone, Copy)]
enum Value<'a> {
    /// An address of private memory.
    Private,
    /// The same as that register, perhaps with a number added.
    As(&'a str),
    /// One of these two, or their sum where one of them is an offset.
    Either(&'a str, &'a str),
    Sum(&'a str, &'a str),
    /// An offset: the result of an instruction that computes no addresses.
    Offset,
    Other,
}

#[derive(Default)]
struct Facts<'a> {
    assigned: HashMap<&'a str, Vec<Value<'a>>>,
    /// Names that inner scopes declare, whole ones and beginnings of numbered ones.
    inner: HashSet<(&'a str, bool)>,
}

impl<'a> Facts<'a> {
    fn assign(&mut self, register: &'a str, value: Value<'a>) {
        self.assigned.entry(register).or_default().push(value);
    }

    /// Recursion is bounded by [`crate::parse::MAX_NESTING`].
    fn statements(&mut self, statements: &[Statement<'a>], inner: bool) {
        for statement in statements {
            match statement {
                Statement::Instruction(instruction) => self.instruction(instruction),
                Statement::Block { statements, .. } => self.statements(statements, true),
                Statement::Registers { names, .. } if inner => {
                    self.inner
                        .extend(names.iter().map(|(name, count)| (*name, count.is_some())));
                }
                _ => {}
            }
        }
    }

    fn instruction(&mut self, instruction: &Instruction<'a>) {
        let Some(target) = instruction.operands.first() else {
            return;
        };
        match target {
            Operand::Name(register) => self.assign(register, value(instruction)),
            Operand::Address(_) => {}
            other => self.scatter(other),
        }
    }

    fn scatter(&mut self, operand: &Operand<'a>) {
        match operand {
            Operand::Name(name) => self.assign(name, Value::Other),
            Operand::Vector(list) | Operand::List(list) | Operand::Tensor(list) => {
                list.iter().for_each(|o| self.scatter(o));
            }
            Operand::Pair(a, b) => {
                self.scatter(a);
                self.scatter(b);
            }
            _ => {}
        }
    }

    /// The largest set that agrees with all assignments: start with every candidate, and drop what depends on others. Linear in
    /// the assignments: each is looked at once to begin with, and once more for each of its sources that falls.
    fn solve(self) -> HashSet<&'a str> {
        let offsets: HashSet<&str> = self
            .assigned
            .iter()
            .filter(|(_, values)| values.iter().all(|v| matches!(v, Value::Offset)))
            .map(|(name, _)| *name)
            .collect();
        let possible = |values: &[Value<'_>]| {
            values
                .iter()
                .all(|v| !matches!(v, Value::Offset | Value::Other))
        };
        let mut own: HashSet<&str> = self
            .assigned
            .iter()
            .filter(|(name, values)| possible(values) && !self.declared_inside(name))
            .map(|(name, _)| *name)
            .collect();
        // Which source of a value has to be such an address, and whether the value is none whatever its sources are. An offset
        // is no candidate, so of a sum one side at most is one.
        let sources = |value: &Value<'a>, own: &HashSet<&str>| match *value {
            Value::Private => Some([None, None]),
            Value::As(a) => Some([Some(a), None]),
            Value::Either(a, b) => Some([Some(a), Some(b)]),
            Value::Sum(a, b) if own.contains(a) && offsets.contains(b) => Some([Some(a), None]),
            Value::Sum(a, b) if own.contains(b) && offsets.contains(a) => Some([Some(b), None]),
            Value::Sum(..) | Value::Offset | Value::Other => None,
        };
        let mut users: HashMap<&str, Vec<&str>> = HashMap::new();
        let mut falling: Vec<&str> = Vec::new();
        for name in &own {
            for value in &self.assigned[name] {
                match sources(value, &own) {
                    Some(list) if list.iter().flatten().all(|s| own.contains(s)) => {
                        for source in list.into_iter().flatten() {
                            users.entry(source).or_default().push(name);
                        }
                    }
                    _ => falling.push(name),
                }
            }
        }
        while let Some(name) = falling.pop() {
            if own.remove(name) {
                falling.extend(users.remove(name).into_iter().flatten());
            }
        }
        own
    }

    /// Whether an inner scope declares the name: `%r12` itself, or as one of `%r<…>` or `%r1<…>`.
    fn declared_inside(&self, name: &str) -> bool {
        if self.inner.is_empty() {
            return false;
        }
        let digits = name.bytes().rev().take_while(u8::is_ascii_digit).count();
        self.inner.contains(&(name, false))
            || (1..=digits.min(name.len()))
                .take(10)
                .any(|n| self.inner.contains(&(&name[..name.len() - n], true)))
    }
}

fn value<'a>(instruction: &Instruction<'a>) -> Value<'a> {
    let has = |m| instruction.has(m);
    let wide = || ["b64", "u64", "s64"].iter().any(|t| has(t));
    let operand = |n: usize| instruction.operands.get(n);
    match (instruction.opcode, operand(1), operand(2)) {
        ("cvta", ..) => {
            let private = [
                "local",
                "shared",
                "shared::cta",
                "const",
                "param",
                "param::entry",
            ];
            if !has("to") && private.iter().any(|space| has(space)) {
                Value::Private
            } else {
                Value::Other
            }
        }
        ("mov", Some(Operand::Name(from)), None) if wide() => Value::As(from),
        ("mov", Some(Operand::Int(_)), None) => Value::Offset,
        ("add" | "sub", Some(Operand::Name(from)), Some(Operand::Int(_))) if wide() => {
            Value::As(from)
        }
        ("add", Some(Operand::Name(a)), Some(Operand::Name(b))) if wide() => Value::Sum(a, b),
        ("selp", Some(Operand::Name(a)), Some(Operand::Name(b))) if wide() => Value::Either(a, b),
        ("mul" | "shl" | "cvt" | "bfe", ..) => Value::Offset,
        _ => Value::Other,
    }
}
