//! The detector held against an oracle.
