//! Several modules made one: what a linker does, on the text.
//!
//! A GPU's driver links machine code (`cuLinkAddData`); a machine that runs PTX gets one text from here. What a module keeps
//! to itself is renamed where another module has the same name, one of several weak definitions stays, declarations of what
//! is defined elsewhere go. Lines keep their number within their module: the text of each begins on a line of its own.

use crate::ast::{Function, Item, Module, ParseError, Space, Span, Variable};
use crate::parse::parse;
use crate::tokens::{Kind, Tokens};
use std::collections::{HashMap, HashSet};

/// Why modules can't be linked.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum LinkError {
    /// One of them is no PTX.
    #[error("{module}: {error}")]
    Parse {
        /// Its name.
        module: String,
        /// What is wrong.
        error: ParseError,
    },
    /// Two of them define the same name.
    #[error(
        "`{name}` is defined in {first} and in {second}: make one of them `.weak`, or keep it to its module"
    )]
    DefinedTwice {
        /// The name.
        name: String,
        /// The module that had it first.
        first: String,
        /// The other one.
        second: String,
    },
    /// A variable has to go, and the others of its declaration have to stay.
    #[error(
        "{module}: `{name}` is declared together with variables that other modules define: give each a declaration of its own"
    )]
    OneDeclaration {
        /// The module.
        module: String,
        /// A variable that stays.
        name: String,
    },
}

/// What a name at module level is to the other modules.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Role {
    /// Nothing.
    Own,
    Declared,
    Weak,
    Defined,
}

/// Links modules, given as name and text.
///
/// # Errors
/// Where one can't be parsed, or two define the same name. What none of them defines stays undefined.
pub fn link(modules: &[(&str, &str)]) -> Result<String, LinkError> {
    let mut parsed = Vec::with_capacity(modules.len());
    for (name, text) in modules {
        parsed.push(parse(text).map_err(|error| LinkError::Parse {
            module: name.to_string(),
            error,
        })?);
    }
    let definitions = definitions(modules, &parsed)?;
    let mut names: HashSet<String> = HashSet::new();
    let mut users: HashMap<&str, usize> = HashMap::new();
    for module in &parsed {
        let own: HashSet<&str> = named(module).map(|(name, ..)| name).collect();
        for name in own {
            *users.entry(name).or_default() += 1;
            names.insert(name.to_string());
        }
    }
    let version = parsed.iter().filter_map(|m| m.version).max();
    let mut out = String::with_capacity(modules.iter().map(|(_, text)| text.len() + 1).sum());
    let mut files = 0;
    for (index, module) in parsed.iter().enumerate() {
        let text = modules[index].1;
        let mut part = Part {
            text,
            first: index == 0,
            version: version.filter(|v| Some(*v) != module.version),
            version_span: module.version_span.clone(),
            gone: Vec::new(),
            renamed: HashMap::new(),
            files,
        };
        for item in &module.items {
            if let Item::Section { span, .. } = item {
                part.gone.push(span.clone());
            }
        }
        for (name, role, span) in named(module) {
            match role {
                Role::Own if users[name] > 1 => {
                    let taken = |new: &String| names.contains(new) || text.contains(new.as_str());
                    let new = (index..)
                        .map(|n| format!("{name}$part{n}"))
                        .find(|new| !taken(new))
                        .unwrap_or_default();
                    names.insert(new.clone());
                    part.renamed.insert(name, new);
                }
                // The prototype of a function may stay, and must where calls come before the definition.
                Role::Declared if definitions.contains_key(name) && variable(module, name) => {
                    part.gone.push(span);
                }
                Role::Weak if definitions.get(name) != Some(&index) => part.gone.push(span),
                _ => {}
            }
        }
        part.gone.sort_by_key(|s| (s.start, s.end));
        if let Some(name) = torn_apart(module, &part.gone) {
            return Err(LinkError::OneDeclaration {
                module: modules[index].0.to_string(),
                name: name.to_string(),
            });
        }
        part.write(&mut out);
        let highest = module.files.iter().map(|f| f.index).max().unwrap_or(0);
        files = files.saturating_add(highest);
    }
    Ok(out)
}

/// Which module defines a name.
fn definitions<'a>(
    modules: &[(&str, &str)],
    parsed: &[Module<'a>],
) -> Result<HashMap<&'a str, usize>, LinkError> {
    let mut found: HashMap<&str, (usize, Role)> = HashMap::new();
    for (index, module) in parsed.iter().enumerate() {
        for (name, role, _) in named(module) {
            match (role, found.get(name)) {
                (Role::Defined, Some(&(first, Role::Defined))) if first != index => {
                    return Err(LinkError::DefinedTwice {
                        name: name.to_string(),
                        first: modules[first].0.to_string(),
                        second: modules[index].0.to_string(),
                    });
                }
                (Role::Defined, _) | (Role::Weak, None) => {
                    found.insert(name, (index, role));
                }
                _ => {}
            }
        }
    }
    Ok(found
        .into_iter()
        .map(|(name, (at, _))| (name, at))
        .collect())
}

/// The names of a module, without the prototypes of what it defines itself.
fn named<'m, 'a>(module: &'m Module<'a>) -> impl Iterator<Item = (&'a str, Role, Span)> + 'm {
    module.items.iter().filter_map(|item| match item {
        Item::Function(f) => Some((f.name, function_role(f), f.span.clone())),
        Item::Variable(v) => Some((v.name, variable_role(v), v.span.clone())),
        _ => None,
    })
}

/// A variable that stays although its declaration, `.global .u32 a, b;`, goes.
fn torn_apart<'a>(module: &Module<'a>, gone: &[Span]) -> Option<&'a str> {
    if gone.is_empty() {
        return None;
    }
    let goes: HashSet<usize> = gone.iter().map(|s| s.start).collect();
    let ends: HashSet<&Span> = gone.iter().collect();
    module.items.iter().find_map(|item| match item {
        Item::Variable(v) if goes.contains(&v.span.start) && !ends.contains(&v.span) => {
            Some(v.name)
        }
        _ => None,
    })
}

fn variable(module: &Module<'_>, name: &str) -> bool {
    let same = |item: &Item<'_>| matches!(item, Item::Variable(v) if v.name == name);
    module.items.iter().any(same)
}

fn function_role(function: &Function<'_>) -> Role {
    match function.linkage {
        _ if function.body.is_none() => Role::Declared,
        Some("weak") => Role::Weak,
        Some(_) => Role::Defined,
        None => Role::Own,
    }
}

fn variable_role(variable: &Variable<'_>) -> Role {
    match variable.linkage {
        // The launch's dynamic memory, whatever each module calls it.
        Some("extern") if variable.space == Space::Shared => Role::Own,
        Some("extern") => Role::Declared,
        Some("weak" | "common") => Role::Weak,
        Some(_) => Role::Defined,
        None => Role::Own,
    }
}

/// One module on its way into the result.
struct Part<'a> {
    text: &'a str,
    first: bool,
    /// The version of PTX that the result needs, where this module says less.
    version: Option<(u32, u32)>,
    version_span: Span,
    /// What is left out, in order.
    gone: Vec<Span>,
    renamed: HashMap<&'a str, String>,
    /// Added to the numbers of its files.
    files: u32,
}

impl Part<'_> {
    fn write(&self, out: &mut String) {
        let tokens = Tokens::new(self.text);
        let mut gone = self.gone.iter().peekable();
        let mut header = false;
        let mut file_number = false;
        for i in 0..tokens.len() {
            let (start, word) = (tokens.start(i), tokens.text(i));
            while gone.peek().is_some_and(|s| s.end <= start) {
                gone.next();
            }
            let left_out = gone.peek().is_some_and(|s| s.start <= start);
            match tokens.kind(i) {
                Kind::Space => {
                    // Line ends always stay.
                    header &= !word.contains('\n');
                    match word.matches('\n').count() {
                        _ if !left_out => out.push_str(word),
                        0 => out.push(' '),
                        lines => out.extend(std::iter::repeat_n('\n', lines)),
                    }
                    continue;
                }
                Kind::DotWord if matches!(word, ".version" | ".target" | ".address_size") => {
                    header = !self.first;
                }
                _ => {}
            }
            if left_out || header {
                continue;
            }
            match tokens.kind(i) {
                Kind::Number if std::mem::take(&mut file_number) => {
                    let number = word.parse::<u32>().unwrap_or(0);
                    out.push_str(&number.saturating_add(self.files).to_string());
                    continue;
                }
                Kind::Ident if word == "inlined_at" => file_number = true,
                Kind::Ident => {
                    if let Some(new) = self.renamed.get(word) {
                        out.push_str(new);
                        continue;
                    }
                }
                Kind::DotWord if matches!(word, ".file" | ".loc") => file_number = true,
                _ => {}
            }
            match self.version {
                Some((major, minor)) if self.version_span.contains(&start) => {
                    // The number may be of several tokens; it is written in the first one's place.
                    if start == self.version_span.start {
                        out.push_str(&format!("{major}.{minor}"));
                    }
                }
                _ => out.push_str(word),
            }
        }
        if !out.ends_with('\n') {
            out.push('\n');
        }
    }
}
