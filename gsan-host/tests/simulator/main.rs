//! The whole host side on the simulated driver.

mod caching;
mod dependent;
mod endings;
mod graphs;
mod host_operations;
mod inside_blocks;
mod inspection;
mod launches;
mod linking;
mod memory;
mod multicast;
mod order;
mod support;
mod tensor_maps;
