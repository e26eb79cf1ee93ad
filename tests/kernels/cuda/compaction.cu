// Stream compaction: keeps the elements that a predicate accepts, in any order. One lane of each block reserves room
// for its block's elements.

__device__ bool keep(unsigned value)
{
    return value % 3 == 0;
}

// Each block's reservation is read, then written: two blocks can get the same room.
extern "C" __global__ void compact_racy(const unsigned *in, unsigned *out, unsigned *kept, int n)
{
    __shared__ unsigned base;
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    bool mine = i < n && keep(in[i]);
    unsigned votes = __ballot_sync(0xffffffffu, mine);
    if (threadIdx.x == 0) {
        base = *kept; *kept = base + __popc(votes);
    }
    __syncthreads();
    unsigned rank = __popc(votes & ((1u << threadIdx.x) - 1));
    if (mine)
        out[base + rank] = in[i];
}

extern "C" __global__ void compact_fixed(const unsigned *in, unsigned *out, unsigned *kept, int n)
{
    __shared__ unsigned base;
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    bool mine = i < n && keep(in[i]);
    unsigned votes = __ballot_sync(0xffffffffu, mine);
    if (threadIdx.x == 0) {
        base = atomicAdd(kept, __popc(votes));
    }
    __syncthreads();
    unsigned rank = __popc(votes & ((1u << threadIdx.x) - 1));
    if (mine)
        out[base + rank] = in[i];
}
