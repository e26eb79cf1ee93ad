//! gsan's host side: memory, modules, streams and launches through the CUDA driver API, and the report of what was found.

pub mod error;
mod merge;
pub mod report;
pub mod request;
pub mod session;

pub use error::{Error, ErrorKind, Result};
pub use request::{
    Arg, Buffer, EventId, KernelInfo, LaunchId, LaunchSpec, MemoryKind, ModuleId, ParamInfo,
    ReadId, StreamFlags, StreamId, Wait,
};
pub use session::{Builder, Session};
