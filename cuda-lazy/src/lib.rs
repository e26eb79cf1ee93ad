//! cuda-lazy
