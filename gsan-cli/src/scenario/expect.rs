//! Expect.
