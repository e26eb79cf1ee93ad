//! The CUDA driver API in front of the machine.
