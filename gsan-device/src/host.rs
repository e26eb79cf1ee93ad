//! The host instance of [`Machine`](crate::machine::Machine).
