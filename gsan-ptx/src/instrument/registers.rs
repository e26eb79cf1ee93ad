//! Which registers are declared, scope by scope, and how wide they are.
//!
//! An address may stand in a 32-bit register; only its declaration says so. Names may be declared again in an inner
//! scope with another type.

use crate::ast::Space;
use crate::memory_op::type_size;
use std::collections::HashMap;

/// The declarations in force.
pub(super) struct Registers<'a> {
    /// Innermost last.
    scopes: Vec<Scope<'a>>,
    /// Variables of the same scopes; most have none.
    variables: Vec<HashMap<&'a str, Space>>,
}

#[derive(Default)]
struct Scope<'a> {
    plain: Names<'a>,
    /// `%r<24>`
    numbered: Names<'a>,
}

/// Names of few lengths in most scopes, so that a look at those saves nearly every search for a name that is not there.
#[derive(Default)]
struct Names<'a> {
    /// One bit for each length; the last one for all that are longer.
    lengths: u64,
    of: HashMap<&'a str, Declaration>,
}

impl<'a> Names<'a> {
    fn length(name: &str) -> u64 {
        1 << name.len().min(63)
    }

    fn insert(&mut self, name: &'a str, declaration: Declaration) {
        self.lengths |= Names::length(name);
        self.of.insert(name, declaration);
    }

    fn get(&self, name: &str) -> Option<Declaration> {
        if self.lengths & Names::length(name) == 0 {
            return None;
        }
        self.of.get(name).copied()
    }
}

#[derive(Clone, Copy)]
struct Declaration {
    count: u32,
    bytes: u32,
}

impl<'a> Registers<'a> {
    pub(super) fn new() -> Registers<'a> {
        Registers {
            scopes: vec![Scope::default()],
            variables: vec![HashMap::new()],
        }
    }

    pub(super) fn open(&mut self) {
        self.scopes.push(Scope::default());
        self.variables.push(HashMap::new());
    }

    pub(super) fn close(&mut self) {
        self.scopes.pop();
        self.variables.pop();
    }

    pub(super) fn declare_variable(&mut self, name: &'a str, space: Space) {
        if let Some(scope) = self.variables.last_mut() {
            scope.insert(name, space);
        }
    }

    /// The space of a variable that is declared in the function.
    pub(super) fn space(&self, name: &str) -> Option<Space> {
        let mut scopes = self.variables.iter().rev();
        scopes.find_map(|scope| scope.get(name).copied())
    }

    /// A declared name; types without a size (`.pred`) count as none.
    pub(super) fn declare(&mut self, name: &'a str, count: Option<u32>, ty: &str) {
        let declaration = Declaration {
            count: count.unwrap_or(0),
            bytes: type_size(ty).unwrap_or(0),
        };
        if let Some(scope) = self.scopes.last_mut() {
            match count {
                Some(_) => scope.numbered.insert(name, declaration),
                None => scope.plain.insert(name, declaration),
            }
        }
    }

    /// The bytes of a register; `None` if no register has this name.
    pub(super) fn bytes(&self, name: &str) -> Option<u32> {
        self.scopes.iter().rev().find_map(|scope| {
            if let Some(found) = scope.plain.get(name) {
                return Some(found.bytes);
            }
            // `%r12` may be number 12 of `%r<…>` or number 2 of `%r1<…>`.
            let digits = name
                .bytes()
                .rev()
                .take_while(u8::is_ascii_digit)
                .take(9)
                .count();
            (1..=digits).find_map(|n| {
                let (prefix, number) = name.split_at(name.len() - n);
                if n > 1 && number.starts_with('0') {
                    return None;
                }
                let found = scope.numbered.get(prefix)?;
                (number.parse::<u32>().ok()? < found.count).then_some(found.bytes)
            })
        })
    }
}
