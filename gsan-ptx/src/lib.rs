//! PTX: lossless tokens, a syntax tree, classification of memory operations, instrumentation and the site table.
//!
//! * [`tokens`]: every byte of a text in exactly one token.
//! * [`parse()`] → [`ast::Module`]: names are slices of the text, every node knows its byte range.
//! * [`memory_op::classify`]: what an instruction does to global memory.
//! * [`instrument()`]: the text with hooks inserted, the [`site::Site`] table, what could not be checked.
//! * [`excerpt`]: the line of an error with a caret.
//! * [`link()`](link::link): several modules made one, for machines that run PTX itself.

pub mod ast;
pub mod excerpt;
pub mod hook;
pub mod instrument;
pub mod link;
pub mod memory_op;
pub mod parse;
pub mod site;
pub mod tokens;

pub use ast::{Module, ParseError};
pub use instrument::{InstrumentError, Instrumented, Options, RuntimeNeeds, instrument};
pub use parse::{parse, parse_bytes};
pub use site::{Place, Site};
