//! Programs for a GPU.
