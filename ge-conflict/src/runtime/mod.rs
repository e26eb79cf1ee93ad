//! The run-time half: memory blocks that several streams use ([`mif`], [`block`]), branches that hand out different inputs
//! ([`branch`]), outputs that share the user's inputs ([`reuse`]), and a script that drives them ([`script`]).

pub mod block;
pub mod branch;
pub mod mif;
pub mod reuse;
pub mod script;
