//! Who calls a library's function that was not inlined, as with nvcc's `-G`: `atomicAdd` is a function of its own there, in
//! which no `.loc` and no DWARF names the user's line. The calls in the module do.

use super::{Locations, Place, Site};
use crate::ast::{Init, Instruction, Item, Operand, Statement};
use crate::parse::{Stream, parse};
use std::collections::{HashMap, HashSet};

/// More callers than this are not listed, and nothing is said.
const MOST: usize = 16;

/// For each site without a place of the user's, by index: all places of the user's from which the code can have been called, each
/// with those that it was inlined at. A site that may have other callers is left out (its function's address is taken).
pub fn callers(text: &str, sites: &[Site]) -> HashMap<usize, Vec<Vec<Place>>> {
    // nvcc's own `__iAtomicAdd` and the like have no lines at all.
    let lost = |s: &Site| s.places.iter().all(Place::is_library);
    let mut found = HashMap::new();
    if !sites.iter().any(lost) {
        return found;
    }
    let Some(calls) = Calls::read(text) else {
        return found;
    };
    let mut known: HashMap<&str, Option<Vec<Vec<Place>>>> = HashMap::new();
    for (index, site) in sites.iter().enumerate().filter(|(_, s)| lost(s)) {
        let of = known
            .entry(&site.function)
            .or_insert_with(|| calls.users(&site.function));
        if let Some(places) = of {
            found.insert(index, places.clone());
        }
    }
    found
}

/// The calls of a module.
#[derive(Default)]
struct Calls<'a> {
    /// By callee: the caller, and the places of the call.
    of: HashMap<&'a str, Vec<(&'a str, Vec<Place>)>>,
    /// Kernels: nobody calls them.
    entries: HashSet<&'a str>,
    /// Names that are used in other ways than in a direct call.
    mentioned: HashSet<&'a str>,
}

impl<'a> Calls<'a> {
    fn read(text: &'a str) -> Option<Calls<'a>> {
        let tables = Stream::new(text).ok()?.tables();
        let module = parse(text).ok()?;
        let mut locations = Locations::new(&tables.files, tables.texts);
        let mut calls = Calls::default();
        for item in &module.items {
            match item {
                Item::Function(f) => {
                    if f.entry {
                        calls.entries.insert(f.name);
                    }
                    locations.reset();
                    let body = f.body.as_ref().map_or(&[][..], |b| &b.statements[..]);
                    calls.statements(f.name, body, &mut locations);
                }
                Item::Variable(v) => calls.symbols(v.init.as_deref().unwrap_or_default()),
                _ => {}
            }
        }
        Some(calls)
    }

    fn statements(
        &mut self,
        function: &'a str,
        all: &[Statement<'a>],
        locations: &mut Locations<'a>,
    ) {
        for statement in all {
            match statement {
                Statement::Loc(loc) => locations.see(loc),
                Statement::Label { name, .. } => locations.label(name),
                Statement::Block { statements, .. } => {
                    self.statements(function, statements, locations)
                }
                Statement::Instruction(i) => self.instruction(function, i, locations),
                Statement::Targets { targets, .. } => self.mentioned.extend(targets),
                Statement::Variable(v) => self.symbols(v.init.as_deref().unwrap_or_default()),
                _ => {}
            }
        }
    }

    fn instruction(
        &mut self,
        function: &'a str,
        instruction: &Instruction<'a>,
        locations: &mut Locations<'a>,
    ) {
        let mut operands = &instruction.operands[..];
        if instruction.opcode == "call" {
            // Before the callee there may be a list of results.
            let at = operands.iter().position(|o| matches!(o, Operand::Name(_)));
            if let Some(at) = at
                && let Operand::Name(callee) = operands[at]
            {
                let call = (function, locations.places());
                self.of.entry(callee).or_default().push(call);
                operands = &operands[at + 1..];
            }
        }
        self.names(operands);
    }

    /// Names that stand in operands, as values.
    fn names(&mut self, operands: &[Operand<'a>]) {
        for operand in operands {
            match operand {
                Operand::Name(name) | Operand::NameOffset(name, _) => {
                    self.mentioned.insert(name);
                }
                Operand::Vector(all) | Operand::List(all) | Operand::Tensor(all) => self.names(all),
                _ => {}
            }
        }
    }

    fn symbols(&mut self, init: &[Init<'a>]) {
        for element in init {
            match element {
                Init::Symbol { name, .. } => {
                    self.mentioned.insert(name);
                }
                Init::Nested(inner) => self.symbols(inner),
                _ => {}
            }
        }
    }

    /// The user's places that lead to a function through functions of libraries; `None` if there may be others.
    fn users(&self, function: &str) -> Option<Vec<Vec<Place>>> {
        let mut found: Vec<Vec<Place>> = Vec::new();
        let (mut todo, mut seen) = (vec![function], HashSet::from([function]));
        while let Some(callee) = todo.pop() {
            if self.entries.contains(callee) || self.mentioned.contains(callee) {
                return None;
            }
            for (caller, places) in self.of.get(callee).into_iter().flatten() {
                match places.iter().position(|p| !p.is_library()) {
                    Some(from) if found.iter().any(|f| f[..] == places[from..]) => {}
                    Some(from) => found.push(places[from..].to_vec()),
                    None if seen.insert(caller) => todo.push(caller),
                    None => {}
                }
            }
            if found.len() > MOST {
                return None;
            }
        }
        Some(found).filter(|f| !f.is_empty())
    }
}
