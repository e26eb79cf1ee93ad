//! The `gsan` program.

fn main() {}
