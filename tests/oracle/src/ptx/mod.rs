//! Programs as PTX, and what becomes of them on the whole way: instrumented by gsan-ptx, loaded and launched by gsan-host,
//! run by gsan-sim's driver and machine.
//!
//! [`emit`] writes many programs into one module, [`run`] runs them and turns the machine's record into the trace that the
//! oracle judges, [`campaign`] does it often, [`bundle`] packs programs for a GPU.

mod asynchronous;
pub mod bundle;
pub mod campaign;
pub mod emit;
mod endings;
mod follow;
pub mod run;
