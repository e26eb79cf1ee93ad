#pragma once
__device__ void fail_(unsigned *out, unsigned id) { atomicAdd(out, 1u); atomicCAS(out + 1, 0u, id); }
#define CHECK(id, ...) do { atomicAdd(out + 2, 1u); if (!(__VA_ARGS__)) fail_(out, id); } while (0)
#define K(name) extern "C" __global__ void name(unsigned *out, const unsigned *in)
