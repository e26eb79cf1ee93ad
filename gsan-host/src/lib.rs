//! gsan's host side: memory, modules, streams and launches through the CUDA driver API, and the report of what was found.
//!
//! [`Session`] is the entry point. It knows only the driver API, so the same code runs on a GPU and on the simulator,
//! which is a driver too (`cuda_lazy` finds one or the other).
//!
//! | file | holds |
//! |---|---|
//! | `session/` | the public calls |
//! | `driver/` | the driver API as owned objects |
//! | `buddy.rs`, `reservation.rs` | checked memory with its shadow |
//! | `forget.rs` | forgetting for caching allocators that know no session, in C too |
//! | `graph.rs`, `graph_plan.rs` | graphs of work, built or captured, and how their launches are issued |
//! | `clocks.rs`, `rows.rs` | what the host's calls order, and the clock rows that launches inherit |
//! | `runtime_state.rs` | the runtime's state on each device |
//! | `prepare.rs`, `launch_plan.rs` | modules and launches before the driver sees them |
//! | `catalogue.rs`, `records.rs`, `merge.rs`, `report.rs` | from race records to the report |
//! | `tensor.rs` | tensor maps, and the device's table of them |
//! | `inspection.rs` | the detector's state in words |
//! | `watchdog.rs` | the report of a run that hangs |

// cuda-lazy defines the symbols that cust links to.
use cuda_lazy as _;
// The integration tests' support is used by unit tests, too.
#[cfg(test)]
extern crate self as gsan_host;

mod agree;
mod buddy;
mod catalogue;
mod cell_format;
mod clocks;
mod driver;
pub mod error;
pub mod forget;
pub mod graph;
mod graph_plan;
mod in_block;
pub mod inspection;
mod launch_plan;
mod merge;
#[cfg(test)]
mod mutant;
mod prepare;
mod records;
pub mod report;
pub mod request;
mod reservation;
mod rows;
mod runtime_state;
pub mod session;
pub mod tensor;
mod watchdog;

pub use cell_format::CellFormat;
pub use error::{Error, ErrorKind, Result};
pub use graph::{Capture, Graph, NodeId, NodeWork};
pub use request::{
    Arg, Buffer, EventId, GraphId, KernelInfo, LaunchId, LaunchSpec, MemoryKind, ModuleId,
    ParamInfo, ReadId, StreamFlags, StreamId, Wait,
};
pub use session::{Builder, CellState, MulticastBuffer, Session, ThreadClock, list_devices};
pub use tensor::{TensorSpec, TensorType, Windows};
