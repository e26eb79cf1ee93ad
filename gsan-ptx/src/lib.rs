//! PTX: lossless tokens, a syntax tree, classification of memory operations, instrumentation and the site table.

pub mod ast;
pub mod parse;
pub mod tokens;

pub use ast::{Module, ParseError};
pub use parse::{parse, parse_bytes};
