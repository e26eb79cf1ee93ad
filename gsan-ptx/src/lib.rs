//! PTX: lossless tokens, a syntax tree, classification of memory operations, instrumentation and the site table.

pub mod ast;
