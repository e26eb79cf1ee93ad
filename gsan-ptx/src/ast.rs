//! The syntax tree of a PTX module: names are slices of the user's text, and every node knows its byte range there.
//!
//! The tree is made for two readers: the instrumenter, which needs positions, scopes, guards, address operands and
//! state spaces, and the simulator, which needs everything that executes. What neither understands stays a value
//! (`Statement::Unknown`, `Directive::Other`) so that nothing is lost and nothing is skipped in silence.

use std::ops::Range;

/// A byte range of the module's text.
pub type Span = Range<usize>;

/// A whole PTX file.
#[derive(Debug, Clone, Default)]
pub struct Module<'a> {
    /// `.version`, major and minor.
    pub version: Option<(u32, u32)>,
    /// The span of the version number itself (`8.7`), for the instrumenter to raise.
    pub version_span: Span,
    /// `.target` words: `sm_90a`, `debug`, …
    pub target: Vec<&'a str>,
    /// `.address_size`, 64 unless said otherwise.
    pub address_size: u32,
    /// Everything at module level, in order.
    pub items: Vec<Item<'a>>,
    /// `.file N "name"` in any place.
    pub files: Vec<FileEntry<'a>>,
}

/// `.file INDEX ["DIRECTORY"] "NAME"`.
#[derive(Debug, Clone)]
pub struct FileEntry<'a> {
    /// The number that `.loc` uses.
    pub index: u32,
    /// The directory before the name, where there is one.
    pub directory: Option<&'a str>,
    /// The name between the quotes, escapes untouched.
    pub name: &'a str,
    /// Of the whole directive.
    pub span: Span,
}

/// One item at module level.
#[derive(Debug, Clone)]
pub enum Item<'a> {
    /// `.global`, `.const`, `.shared` variables (and module-level `.param`, `.tex`).
    Variable(Variable<'a>),
    /// `.entry` or `.func`, with or without a body.
    Function(Function<'a>),
    /// `.section NAME { … }`, debugging data.
    Section {
        /// `.debug_info`, …
        name: &'a str,
        /// Of the whole section.
        span: Span,
    },
    /// Any other directive, its words as they stand (`.alias`, `.pragma`, …).
    Other {
        /// The directive's first word.
        name: &'a str,
        /// Of the whole directive.
        span: Span,
    },
}

/// A state space.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[allow(missing_docs)]
pub enum Space {
    Generic,
    Global,
    Shared,
    SharedCluster,
    Local,
    Const,
    Param,
    Reg,
}

/// A scalar type, as written (`.b32`, `.f16x2`, `.pred`, `.tf32`, …).
pub type TypeName<'a> = &'a str;

/// A variable of any space but registers.
#[derive(Debug, Clone)]
pub struct Variable<'a> {
    /// Where it lives.
    pub space: Space,
    /// `visible`, `extern`, `weak`, `common`.
    pub linkage: Option<&'a str>,
    /// `.align`, bytes.
    pub align: Option<u32>,
    /// `u32`, `b8`, …
    pub ty: TypeName<'a>,
    /// `.v2`, `.v4`; 1 without.
    pub vector: u32,
    /// The variable's name.
    pub name: &'a str,
    /// Array dimensions; `None` for `[]`. Empty: a scalar.
    pub dims: Vec<Option<u64>>,
    /// The initialiser, flattened row by row.
    pub init: Option<Vec<Init<'a>>>,
    /// `.attribute(.managed)`.
    pub managed: bool,
    /// `.ptr` parameters: their space and alignment.
    pub ptr: Option<(Option<Space>, Option<u32>)>,
    /// Of the declaration.
    pub span: Span,
}

/// One element of an initialiser.
#[derive(Debug, Clone)]
pub enum Init<'a> {
    /// An integer, or the bits of a float.
    Int(i128),
    /// A float literal, as a double.
    Float(f64),
    /// `symbol`, `symbol+offset`, `generic(symbol)`, or `0xFF00(symbol)` (a masked byte of its address).
    Symbol {
        /// The symbol.
        name: &'a str,
        /// Bytes added.
        offset: i64,
        /// Whether it stood in `generic(…)`.
        generic: bool,
        /// `0xFF(sym)`, `0xFF00(sym)`, …: the mask.
        mask: Option<u64>,
    },
    /// A nested brace: where a row is shorter than its dimension, the rest is zero.
    Nested(Vec<Init<'a>>),
}

/// An `.entry` or a `.func`.
#[derive(Debug, Clone)]
pub struct Function<'a> {
    /// True for `.entry`.
    pub entry: bool,
    /// `visible`, `extern`, `weak`.
    pub linkage: Option<&'a str>,
    /// The name.
    pub name: &'a str,
    /// Return parameters (of a `.func`).
    pub returns: Vec<Variable<'a>>,
    /// Parameters.
    pub params: Vec<Variable<'a>>,
    /// Where a further parameter can be inserted: just before the `)` of the parameter list.
    /// `None` when the function has no parameter list at all; then `(…)` goes to `name_end`.
    pub params_end: Option<usize>,
    /// The byte after the name.
    pub name_end: usize,
    /// `.maxntid`, `.reqntid`, `.minnctapersm`, `.maxnreg`, `.noreturn`, `.explicitcluster`, `.reqnctapercluster`, `.pragma`
    pub attributes: Vec<Attribute<'a>>,
    /// The body; `None` for a declaration.
    pub body: Option<Body<'a>>,
    /// Of the whole function.
    pub span: Span,
}

/// A performance or other directive of a function.
#[derive(Debug, Clone)]
pub struct Attribute<'a> {
    /// Without the dot.
    pub name: &'a str,
    /// Its numbers.
    pub values: Vec<u64>,
    /// Of the directive.
    pub span: Span,
}

/// The outer `{ … }` of a function.
#[derive(Debug, Clone)]
pub struct Body<'a> {
    /// The byte after `{`.
    pub start: usize,
    /// The byte of the closing `}`.
    pub end: usize,
    /// The statements.
    pub statements: Vec<Statement<'a>>,
}

/// One statement of a body.
#[derive(Debug, Clone)]
pub enum Statement<'a> {
    /// An instruction (calls too).
    Instruction(Box<Instruction<'a>>),
    /// `name:`
    Label {
        /// The label.
        name: &'a str,
        /// With the colon.
        span: Span,
    },
    /// `{ … }`: a scope of its own for registers, variables and labels.
    Block {
        /// The byte after `{`.
        start: usize,
        /// The byte of the closing `}`.
        end: usize,
        /// What stands in it.
        statements: Vec<Statement<'a>>,
    },
    /// `.reg .b32 %r<24>, %x;`
    Registers {
        /// `b32`, `pred`, …
        ty: TypeName<'a>,
        /// `.v2`, `.v4`; 1 without.
        vector: u32,
        /// Each name with its count (`%r<24>`: `("%r", Some(24))`).
        names: Vec<(&'a str, Option<u32>)>,
        /// Of the declaration.
        span: Span,
    },
    /// `.local`, `.shared`, `.param`, `.global`, `.const` variables inside a body.
    Variable(Box<Variable<'a>>),
    /// `.loc FILE LINE COLUMN[, function_name …, inlined_at FILE LINE COLUMN]`
    Loc(Loc<'a>),
    /// `.pragma "…";`
    Pragma {
        /// The text in quotes.
        text: &'a str,
        /// Of the directive.
        span: Span,
    },
    /// `NAME: .branchtargets L1, L2;` or `.calltargets`.
    Targets {
        /// The label that stands before it.
        name: &'a str,
        /// The listed labels or functions.
        targets: Vec<&'a str>,
        /// Of the directive.
        span: Span,
    },
    /// `NAME: .callprototype (…) _ (…);`
    CallPrototype {
        /// The label that stands before it.
        name: &'a str,
        /// Return parameters.
        returns: Vec<Variable<'a>>,
        /// Parameters.
        params: Vec<Variable<'a>>,
        /// Of the directive.
        span: Span,
    },
    /// Anything else up to its `;` (or line end for line-oriented directives).
    Unknown {
        /// Of the statement.
        span: Span,
    },
}

/// A `.loc` directive.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Loc<'a> {
    /// Index of a `.file`.
    pub file: u32,
    /// Line, from 1; 0 = no line.
    pub line: u32,
    /// Column, from 1; 0 = none.
    pub column: u32,
    /// The label (and offset) after `function_name`: where its name stands in `.debug_str`.
    pub function_name: Option<(&'a str, u64)>,
    /// file, line, column after `inlined_at`.
    pub inlined_at: Option<(u32, u32, u32)>,
    /// Of the directive.
    pub span: Span,
}

/// `@p` or `@!p`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Guard<'a> {
    /// True for `@!p`.
    pub negated: bool,
    /// The predicate register.
    pub register: &'a str,
}

/// One instruction.
#[derive(Debug, Clone)]
pub struct Instruction<'a> {
    /// From the guard (or opcode) to the `;`, inclusive.
    pub span: Span,
    /// The predicate.
    pub guard: Option<Guard<'a>>,
    /// The first word: `ld`, `atom`, `cp`, `call`, …
    pub opcode: &'a str,
    /// The dotted words after it, in the order of the text, without their dots; a word keeps its `::` parts
    /// (`shared::cluster`, `L1::no_allocate`, `mbarrier::complete_tx::bytes`).
    pub modifiers: Vec<&'a str>,
    /// Operands, as they stand. For `call` see [`Operand::List`].
    pub operands: Vec<Operand<'a>>,
}

impl<'a> Instruction<'a> {
    /// Whether a modifier is there, wherever it stands.
    pub fn has(&self, modifier: &str) -> bool {
        self.modifiers.contains(&modifier)
    }

    /// `opcode.mod.mod…` as written.
    pub fn full_name(&self) -> String {
        let mut name = self.opcode.to_string();
        for m in &self.modifiers {
            name.push('.');
            name.push_str(m);
        }
        name
    }
}

/// One operand.
#[derive(Debug, Clone, PartialEq)]
pub enum Operand<'a> {
    /// A register, variable, label, function or special register (`%tid.x` is one name).
    Name(&'a str),
    /// An integer; `U` suffixes and all bases understood.
    Int(i128),
    /// `0fXXXXXXXX`
    F32(u32),
    /// `0dXXXXXXXXXXXXXXXX`, or a decimal float literal
    F64(u64),
    /// `!p`
    Not(Box<Operand<'a>>),
    /// `-x` of a register
    Neg(Box<Operand<'a>>),
    /// `{a, b}`
    Vector(Vec<Operand<'a>>),
    /// `(a, b)`: of a call.
    List(Vec<Operand<'a>>),
    /// `d|p`
    Pair(Box<Operand<'a>>, Box<Operand<'a>>),
    /// `_`
    Sink,
    /// `[base+offset]`
    Address(Address<'a>),
    /// `[a, {x, y}]` or `[a, {x, y}, b]`: tensors, textures
    Tensor(Vec<Operand<'a>>),
    /// `name+imm` outside brackets (`mov %rd, sym+4`)
    NameOffset(&'a str, i64),
    /// Anything that did not parse as one of the above, as it stands.
    Raw(&'a str),
}

/// `[base+offset]`.
#[derive(Debug, Clone, PartialEq)]
pub struct Address<'a> {
    /// Register or variable; `None` for `[imm]`.
    pub base: Option<&'a str>,
    /// Bytes.
    pub offset: i64,
    /// The text between the brackets.
    pub text: &'a str,
}

// A module has a statement for every few dozen bytes of its text: what is rare is boxed.
const _: () = assert!(size_of::<Statement<'_>>() <= 96 && size_of::<Operand<'_>>() <= 48);

/// A syntax error.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("line {line}, column {column}: {message}")]
pub struct ParseError {
    /// What was expected or wrong.
    pub message: String,
    /// Byte offset in the text.
    pub offset: usize,
    /// Line, from 1.
    pub line: usize,
    /// Column, from 1, in bytes.
    pub column: usize,
}
