//! Memory conflicts of operator graphs.
#![forbid(unsafe_code)]
mod cause;
pub mod cli;
mod ctx;
pub mod dot;
pub mod explain;
mod glossary;
pub mod inplace;
pub mod io;
pub mod ir;
pub mod layout;
pub mod lint;
pub mod passes;
pub mod report;
pub mod runtime;
pub mod rw;
pub mod shared;
mod story;
pub mod text;
pub use ctx::{Ctx, PassError};
pub use passes::Stage;
