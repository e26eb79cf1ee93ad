//! The detector on the host instance: racy and repaired twins, one per synchronisation edge, for each cell format.

// The same tests for both formats: that is the point.
#![allow(clippy::duplicate_mod)]
// A block's number is its place in the grid.
#![allow(clippy::needless_range_loop)]

#[path = "tests"]
mod reference {
    type Format = crate::reference::ReferenceCell;
    const REFERENCE: bool = true;
    include!("tests/harness.rs");
    #[path = "atomics.rs"]
    mod atomics;
    #[path = "cluster.rs"]
    mod cluster;
    #[path = "copies.rs"]
    mod copies;
    #[path = "dependent.rs"]
    mod dependent;
    #[path = "fences.rs"]
    mod fences;
    #[path = "life.rs"]
    mod life;
    #[path = "multicast.rs"]
    mod multicast;
    #[path = "plain.rs"]
    mod plain;
    #[path = "ring.rs"]
    mod ring;
}

#[path = "tests"]
mod wide {
    type Format = crate::wide::Wide;
    const REFERENCE: bool = false;
    include!("tests/harness.rs");
    #[path = "atomics.rs"]
    mod atomics;
    #[path = "bytes.rs"]
    mod bytes;
    #[path = "cluster.rs"]
    mod cluster;
    #[path = "copies.rs"]
    mod copies;
    #[path = "dependent.rs"]
    mod dependent;
    #[path = "fences.rs"]
    mod fences;
    #[path = "life.rs"]
    mod life;
    #[path = "multicast.rs"]
    mod multicast;
    #[path = "plain.rs"]
    mod plain;
    #[path = "ring.rs"]
    mod ring;
    #[path = "warps.rs"]
    mod warps;
}
