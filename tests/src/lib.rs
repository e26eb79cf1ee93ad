//! What the end-to-end tests share: the built `gsan` program, and where its inputs lie.
//!
//! The tests see the program as a user does: arguments in, exit code and text out. None of them links the crates
//! that they test, except parity.rs, which looks at the shadow state.

mod program;
pub mod scenario;
mod tree;

pub use program::{Finished, Gsan, exit};
pub use tree::{kernels, repository, scenarios, tree};
