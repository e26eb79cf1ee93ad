//! gsan-sim
