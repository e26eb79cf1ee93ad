//! gsan's host side.

pub mod report;
