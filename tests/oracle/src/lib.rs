//! The detector held against an oracle: random programs run on gsan-device's host instance, and a slow, independent
//! happens-before checker judges every finding and every miss.
//!
//! [`program`] has the programs, [`generate`] makes them, [`interpreter`] runs them, [`oracle`] says what races,
//! [`compare`] holds the two against each other, [`ptx`] takes programs the whole way through PTX and the simulator, [`shrink`] makes a failing program small, [`campaign`] does it often.

pub mod boxes;
pub mod campaign;
pub mod compare;
pub mod generate;
pub mod interpreter;
pub mod oracle;
pub mod program;
pub mod ptx;
pub mod random;
pub mod removed;
pub mod semantics;
pub mod setup;
pub mod shrink;
pub mod trace;
pub mod under_way;
