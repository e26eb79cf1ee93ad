//! gsan's device side.
#![cfg_attr(not(test), no_std)]

pub mod layout;
